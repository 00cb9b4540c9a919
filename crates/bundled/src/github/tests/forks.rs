//! Which deliveries count as a fork's, and what becomes of them.

use serde_json::{Value, json};

use super::super::fork::Origin;
use super::{ELSEWHERE, HOME, accept, accepting, body, delivery, pull_request, receive, repository};

fn origin(event: &str, with: Value) -> Origin {
    let accepted = accept(event, &body(with));
    let facts: Value = serde_json::from_slice(accepted.payload.as_bytes()).unwrap();
    let origin = match facts["fork"].as_bool() {
        Some(false) => Origin::Own,
        Some(true) => Origin::Fork,
        None => Origin::Unknown,
    };
    assert_eq!(accepted.drop.is_none(), origin == Origin::Own, "{event}");
    if let Some((code, reason)) = accepted.drop {
        assert_eq!(code.as_str(), "fork");
        assert!(reason.contains("fork"));
    }
    origin
}

#[test]
fn a_pull_request_is_judged_by_its_head_repository() {
    let comment = json!({ "id": 1, "body": "b", "commit_id": "aaa" });
    for event in ["pull_request", "pull_request_review", "pull_request_review_comment", "an_event_of_2031"] {
        let with = |head: Value| json!({ "pull_request": pull_request(&head), "comment": comment });
        assert_eq!(origin(event, with(repository(HOME))), Origin::Own, "{event}");
        assert_eq!(origin(event, with(repository(ELSEWHERE))), Origin::Fork, "{event}");
        assert_eq!(origin(event, with(Value::Null)), Origin::Unknown, "{event}");
        // A name can be taken over, an id can't.
        let same_name = json!({ "id": ELSEWHERE, "full_name": "acme/app" });
        assert_eq!(origin(event, with(same_name)), Origin::Fork, "{event}");
        assert_eq!(origin(event, with(json!({ "full_name": "Acme/App" }))), Origin::Own, "{event}");
        assert_eq!(origin(event, with(json!({}))), Origin::Unknown, "{event}");
    }
}

#[test]
fn a_comment_on_a_pull_request_proves_nothing_and_one_on_an_issue_needs_no_proof() {
    let comment = json!({ "id": 1, "body": "b" });
    let on_pull = json!({ "issue": { "number": 7, "pull_request": {} }, "comment": comment });
    assert_eq!(origin("issue_comment", on_pull), Origin::Unknown);
    let on_issue = json!({ "issue": { "number": 3 }, "comment": comment });
    assert_eq!(origin("issue_comment", on_issue), Origin::Own);
    assert_eq!(origin("issues", json!({ "issue": { "number": 3, "pull_request": null } })), Origin::Own);
    let on_commit = json!({ "comment": { "id": 1, "body": "b", "commit_id": "aaa" } });
    assert_eq!(origin("commit_comment", on_commit), Origin::Unknown);
}

#[test]
fn a_check_is_judged_by_its_pull_requests() {
    let pull = |head: u64| json!({ "number": 7, "head": { "ref": "fix", "repo": { "id": head } } });
    for event in ["check_suite", "check_run"] {
        let with = |pulls: Value| json!({ "action": "completed", event: { "head_branch": "main", "pull_requests": pulls } });
        assert_eq!(origin(event, with(json!([pull(HOME)]))), Origin::Own, "{event}");
        assert_eq!(origin(event, with(json!([pull(HOME), pull(ELSEWHERE)]))), Origin::Fork, "{event}");
        assert_eq!(origin(event, with(json!([]))), Origin::Unknown, "{event}");
        assert_eq!(origin(event, with(json!([{ "number": 7 }]))), Origin::Unknown, "{event}");
    }
}

#[test]
fn a_run_is_judged_by_its_head_repository() {
    let with = |head: Value| json!({ "workflow_run": { "head_branch": "main", "head_repository": head } });
    assert_eq!(origin("workflow_run", with(repository(HOME))), Origin::Own);
    assert_eq!(origin("workflow_run", with(repository(ELSEWHERE))), Origin::Fork);
    assert_eq!(origin("workflow_run", with(Value::Null)), Origin::Unknown);
    assert_eq!(origin("workflow_job", json!({ "workflow_job": { "head_branch": "main" } })), Origin::Unknown);
}

#[test]
fn a_status_is_ours_when_its_commit_is_on_a_branch_of_ours() {
    assert_eq!(origin("status", json!({ "sha": "a", "branches": [{ "name": "main" }] })), Origin::Own);
    assert_eq!(origin("status", json!({ "sha": "a", "branches": [] })), Origin::Unknown);
}

#[test]
fn what_names_no_foreign_code_is_ours() {
    for (event, with) in [
        ("push", json!({ "ref": "refs/heads/main" })),
        ("create", json!({ "ref": "x", "ref_type": "branch" })),
        ("delete", json!({ "ref": "x", "ref_type": "tag" })),
        ("release", json!({ "release": { "tag_name": "v1" } })),
        ("ping", json!({})),
    ] {
        assert_eq!(origin(event, with), Origin::Own, "{event}");
    }
    assert_eq!(origin("an_event_of_2031", json!({ "ref": "refs/pull/7/merge" })), Origin::Unknown);
}

#[test]
fn accepting_forks_drops_nothing_and_still_says_so() {
    let from_fork = body(json!({ "pull_request": pull_request(&repository(ELSEWHERE)) }));
    let request = delivery("pull_request", "application/json", &serde_json::to_vec(&from_fork).unwrap());
    let accepted = receive(accepting(), &request).unwrap().remove(0);
    assert_eq!(accepted.drop, None);
    let facts: Value = serde_json::from_slice(accepted.payload.as_bytes()).unwrap();
    assert_eq!(facts["fork"], true);
}
