//! Budgets, seen from outside: what a held Work says, and what lets it go on.

use serde_json::json;

use super::{CONFIG, TestDaemon};

#[tokio::test]
async fn a_held_work_says_which_budget_is_used_up_and_a_release_lets_one_turn_through() {
    let daemon = TestDaemon::start().await;
    let budgets = "budgets = [{ unit = 'turns', per = 'work', window = 'life', limit = 1 }, \
                   { unit = 'usd', per = 'scope', window = 'day', limit = 2.5 }]";
    let edited = CONFIG.replacen("name = \"main\"\n", &format!("name = \"main\"\n{budgets}\n"), 1);
    let applied = daemon.post("/v1/config/apply", &json!({ "config": edited })).await;
    assert_eq!(applied.status, 200, "{}", applied.text());
    let emit = || json!({ "scope": "main", "type": "manual.work", "key": { "source": "hook/x", "external_id": "k" } });
    daemon.emit(&emit()).await;
    let runs = |page: &serde_json::Value, number: usize| {
        let runs = page["items"].as_array().unwrap();
        runs.len() == number && runs.iter().all(|run| run["state"] == "completed")
    };
    daemon.until("/v1/runs", |page| runs(page, 1)).await;
    daemon.emit(&emit()).await;
    let works = daemon.until("/v1/work", |works| works["items"][0]["hold"].is_object()).await;
    let id = works["items"][0]["id"].as_str().unwrap().to_owned();
    let shown = daemon.get_json(&format!("/v1/work/{id}")).await;
    assert_eq!(shown["hold"]["because"], "budget");
    assert_eq!(shown["hold"]["reason"], "the budget of turns per Work for life is used up: 1 of 1 turns");
    let turns = &shown["budgets"][0];
    assert_eq!(
        (&turns["used"], &turns["limit"], &turns["is_used_up"]),
        (&json!("1"), &json!("1"), &json!(true))
    );
    let needs = daemon.get_json("/v1/needs").await;
    assert_eq!((&needs["held"][0]["because"], &needs["held"][0]["works"]), (&json!("budget"), &json!(1)));
    let scope = daemon.get_json("/v1/scopes?name=main").await;
    let of_scope = &scope["items"][0]["budgets"];
    assert_eq!(
        (&of_scope[0]["used"], &of_scope[1]["limit"]),
        (&json!(null), &json!("2.5")),
        "each Work has its own"
    );
    assert_eq!(of_scope[1]["used"], "0");
    let events = daemon.get_json("/v1/events?type=core.budget.exceeded").await;
    assert_eq!(events["items"].as_array().unwrap().len(), 1);

    let released = daemon.post(&format!("/v1/work/{id}/release"), &json!({})).await;
    assert_eq!(released.status, 200, "{}", released.text());
    daemon.until("/v1/runs", |page| runs(page, 2)).await;
    assert_eq!(daemon.post(&format!("/v1/work/{id}/release"), &json!({})).await.code(), "work_conflict");
    daemon.running.stop().await.unwrap();
}
