//! What a push says about its files, and when that is certain.

use extension::Payload;
use serde_json::{Value, json};

use super::{body, bytes, facts};

const ZEROS: &str = "0000000000000000000000000000000000000000";

fn push(with: Value) -> Value {
    let mut push = body(json!({
        "ref": "refs/heads/main", "before": "aaa", "after": "bbb",
        "created": false, "deleted": false, "forced": false, "commits": [],
    }));
    let Value::Object(with) = with else { panic!("an object") };
    push.as_object_mut().unwrap().extend(with);
    push
}

fn commit(files: &[&str]) -> Value {
    json!({ "id": "c", "added": files, "removed": [], "modified": [], "message": "m" })
}

fn files(count: usize) -> Value {
    let names: Vec<String> = (0..count).map(|n| format!("d/{n}")).collect();
    json!([{ "added": names }])
}

fn is_complete(with: Value) -> bool {
    facts("push", &push(with))["files_complete"].as_bool().unwrap()
}

#[test]
fn a_push_names_its_ref_and_every_file_once() {
    let commits = json!([
        { "added": ["a"], "removed": ["b"], "modified": ["c"] },
        { "added": [], "removed": ["a"], "modified": ["c", "d"] },
    ]);
    let facts = facts("push", &push(json!({ "ref": "refs/heads/bugfix/master", "commits": commits })));
    assert_eq!(facts["ref"], "refs/heads/bugfix/master");
    assert_eq!((&facts["before"], &facts["after"]), (&json!("aaa"), &json!("bbb")));
    assert_eq!(facts["files"], json!(["a", "b", "c", "d"]));
    assert_eq!((&facts["commits"], &facts["files_complete"]), (&json!(2), &json!(true)));
    assert_eq!(facts["fork"], false);
}

#[test]
fn a_deleted_branch_changes_nothing() {
    let facts = facts("push", &push(json!({ "after": ZEROS, "deleted": true, "head_commit": null })));
    assert_eq!((&facts["deleted"], &facts["after"]), (&json!(true), &json!(ZEROS)));
    assert_eq!((&facts["files"], &facts["files_complete"]), (&json!([]), &json!(true)));
}

#[test]
fn a_list_at_its_limit_counts_as_cut() {
    assert!(is_complete(json!({ "commits": files(468) })));
    assert!(is_complete(json!({ "commits": files(999) })));
    assert!(!is_complete(json!({ "commits": files(1000) })));
    assert!(!is_complete(json!({ "commits": files(1001) })));
    let listed = facts("push", &push(json!({ "commits": files(1001) })));
    assert_eq!(listed["files"].as_array().unwrap().len(), 1000);
    let commits = |count: usize| json!({ "commits": vec![commit(&["a"]); count] });
    assert!(is_complete(commits(2047)));
    assert!(!is_complete(commits(2048)));
}

#[test]
fn an_empty_list_proves_nothing_of_a_ref_that_was_made_or_forced() {
    assert!(!is_complete(json!({ "forced": true })));
    assert!(!is_complete(json!({ "created": true, "before": ZEROS })));
    assert!(is_complete(json!({ "created": true, "commits": [commit(&["a"])] })));
    assert!(is_complete(json!({ "commits": [commit(&["a"])] })));
    assert!(is_complete(json!({ "commits": [commit(&[])] })));
    assert!(!is_complete(json!({ "commits": null })));
    assert!(!is_complete(json!({ "ref": "refs/tags/v1", "commits": [commit(&["a"])] })));
}

#[test]
fn refs_that_are_made_or_deleted_are_named_in_full() {
    for (event, kind, expected) in [
        ("create", "branch", "refs/heads/a/b"),
        ("create", "tag", "refs/tags/a/b"),
        ("delete", "branch", "refs/heads/a/b"),
    ] {
        let facts = facts(event, &body(json!({ "ref": "a/b", "ref_type": kind })));
        assert_eq!(facts["ref"], expected);
        assert_eq!(facts["files_complete"], Value::Null);
    }
}

#[test]
fn a_large_push_is_read_and_its_facts_stay_small() {
    let long: Vec<String> = (0..1000).map(|n| format!("{n}/{}", "\u{1}".repeat(1000))).collect();
    let commits = vec![json!({ "added": long, "message": "m".repeat(20_000) }); 3];
    let text =
        serde_json::to_vec(&push(json!({ "commits": commits, "unknown": "x".repeat(1 << 20) }))).unwrap();
    assert!(text.len() > 10 << 20, "{}", text.len());
    let delivery = bytes("push", &text).unwrap();
    assert!(delivery.payload.as_bytes().len() < 512 << 10);
    assert!(Payload::new(delivery.payload.as_bytes().to_vec()).is_ok());
    let facts: Value = serde_json::from_slice(delivery.payload.as_bytes()).unwrap();
    assert_eq!(facts["files_complete"], false);
    assert_eq!(facts["commits"], 3);
}
