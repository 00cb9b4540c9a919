//! How things are as a whole: searching runs, the timeline, what waits for a person, starts of the daemon.

use serde_json::{Value, json};

use super::TestDaemon;
use crate::api::query::Query;
use crate::api::runs;

/// Emits an Event with a key of its own for a run that completes, and says which.
async fn built(daemon: &TestDaemon, key: &str) -> String {
    let body =
        json!({ "scope": "main", "type": "manual.work", "key": { "source": "hook/x", "external_id": key } });
    daemon.emit(&body).await["event"].as_str().unwrap().to_owned()
}

/// Waits until so many runs have completed, and gives them, newest first.
async fn completed(daemon: &TestDaemon, number: usize) -> Vec<Value> {
    let page = daemon
        .until("/v1/runs", |page| {
            let runs = page["items"].as_array().unwrap();
            runs.iter().filter(|run| run["state"] == "completed").count() == number
        })
        .await;
    page["items"].as_array().unwrap().clone()
}

fn ids(page: &Value) -> Vec<&str> {
    page["items"].as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap()).collect()
}

async fn listed(daemon: &TestDaemon, query: &str) -> Value {
    daemon.get_json(&format!("/v1/runs?{query}")).await
}

#[tokio::test]
async fn runs_are_searched_by_what_people_remember_or_by_an_id() {
    let daemon = TestDaemon::start().await;
    let event = built(&daemon, "PR/Ärger").await;
    completed(&daemon, 1).await;
    built(&daemon, "pr/8").await;
    let runs = completed(&daemon, 2).await;
    let id = |place: usize| runs[place]["id"].as_str().unwrap();
    for (query, expect) in [
        ("q=pr%2F%C3%A4RGER", vec![id(1)]),
        ("q=hook/x+pr/8", vec![id(0)]),
        ("q=MANUAL.work", vec![id(0), id(1)]),
        ("q=done", vec![id(0), id(1)]),
        ("q=nothing+like+it", vec![]),
        ("q=pr&trigger_source=core.manual", vec![id(0), id(1)]),
        ("trigger_source=core", vec![]),
        ("q=pr&state=failed", vec![]),
        ("q=pr&state=completed&scope=main", vec![id(0), id(1)]),
        ("q=pr&scope=team/off", vec![]),
        ("work_kind=no.such", vec![]),
    ] {
        assert_eq!(ids(&listed(&daemon, query).await), expect, "{query}");
    }
    let prefix = |id: &str| id[..id.len() - 1].to_owned();
    let work = runs[0]["work"].as_str().unwrap();
    for (query, expect) in [
        (id(0).to_owned(), vec![id(0)]),
        (work.to_owned(), vec![id(0)]),
        (event.clone(), vec![id(1)]),
        (format!("{event}&state=failed"), vec![]),
        (format!("{work}&scope=team/off"), vec![]),
    ] {
        assert_eq!(ids(&listed(&daemon, &format!("q={query}")).await), expect, "{query}");
    }
    // What begins alike in one second may be several.
    assert!(ids(&listed(&daemon, &format!("q={}", prefix(&event))).await).contains(&id(1)));
    for wrong in ["order=oldest", "trigger_source=a%00b", "state=lost", &format!("q={}", "x".repeat(201))] {
        assert_eq!(daemon.get(&format!("/v1/runs?{wrong}")).await.code(), "bad_request", "{wrong}");
    }
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn what_is_active_comes_first_and_pages_neither_repeat_nor_skip() {
    let daemon = TestDaemon::start().await;
    for number in 0..2 {
        daemon.emit(&json!({ "scope": "main", "type": "hang.please" })).await;
        built(&daemon, &format!("k-{number}")).await;
        completed(&daemon, number + 1).await;
    }
    let newest = listed(&daemon, "").await;
    let (newest_ids, running): (Vec<&str>, Vec<&str>) = (
        ids(&newest),
        newest["items"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|run| run["state"] == "running")
            .map(|run| run["id"].as_str().unwrap())
            .collect(),
    );
    assert_eq!((newest_ids.len(), running.len()), (4, 2));
    let ended: Vec<&str> = newest_ids.iter().copied().filter(|id| !running.contains(id)).collect();
    let expect: Vec<String> = running.iter().chain(&ended).map(|id| (*id).to_owned()).collect();
    for limit in 1..=4 {
        let (mut seen, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = listed(&daemon, &format!("order=active&limit={limit}{cursor}")).await;
            seen.extend(ids(&page).into_iter().map(str::to_owned));
            let Some(next) = page["next"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        assert_eq!(seen, expect, "{limit} at a time");
    }
    assert_eq!(ids(&listed(&daemon, "order=active&state=running").await), running);
    let live = listed(&daemon, "order=active&limit=1").await["next"].as_str().unwrap().to_owned();
    assert_eq!(daemon.get(&format!("/v1/runs?cursor={live}")).await.code(), "bad_request");
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_search_stops_at_its_bound_says_so_and_goes_on() {
    let daemon = TestDaemon::start().await;
    for number in 0..5 {
        built(&daemon, &format!("k-{number}")).await;
        completed(&daemon, number + 1).await;
    }
    let search = async |cursor: Option<&str>, text: &str| {
        let mut query = vec![("q", text), ("limit", "1")];
        query.extend(cursor.map(|cursor| ("cursor", cursor)));
        runs::within(daemon.running.daemon(), &Query::of(&query), 2).await.unwrap()
    };
    let first = search(None, "k-0").await;
    assert_eq!((first.items.len(), first.searched), (0, Some(2)));
    let second = search(first.next.as_deref(), "k-0").await;
    assert_eq!((second.items.len(), second.searched), (0, Some(2)));
    let third = search(second.next.as_deref(), "k-0").await;
    assert_eq!((third.items.len(), third.searched, third.next), (1, None, None));
    let near = search(None, "k-4").await;
    assert_eq!((near.items.len(), near.searched), (1, Some(2)), "whether there are older ones is not known");
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn the_timeline_has_a_row_for_each_work_and_live_runs_first() {
    let daemon = TestDaemon::start().await;
    daemon.emit(&json!({ "scope": "main", "type": "hang.please" })).await;
    built(&daemon, "k-1").await;
    completed(&daemon, 1).await;
    let drawn = daemon.get_json("/v1/runs/timeline?span=1h").await;
    let rows = drawn["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    assert_eq!(
        (&rows[0]["runs"][0]["state"], &rows[0]["trigger_type"]),
        (&json!("running"), &json!("hang.please"))
    );
    assert!(rows[0]["runs"][0]["ended_at"].is_null());
    assert_eq!(
        (&rows[1]["keys"][0]["external_id"], &rows[1]["runs"][0]["attempt"]),
        (&json!("k-1"), &json!(1))
    );
    assert_eq!((&drawn["cut"], &drawn["more"], &drawn["downtimes"]), (&json!(false), &json!(0), &json!([])));
    assert_eq!(daemon.get("/v1/runs/timeline?span=2h").await.code(), "bad_request");
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn starts_say_since_when_nobody_was_there_and_what_was_found() {
    let daemon = TestDaemon::start().await;
    assert!(daemon.get_json("/v1/status").await["last_downtime"].is_null());
    daemon.emit(&json!({ "scope": "main", "type": "hang.please" })).await;
    daemon.until("/v1/runs", |page| page["items"][0]["state"] == "running").await;
    let daemon = daemon.restart().await;
    let status = daemon.until("/v1/status", |status| status["last_downtime"]["relaunched"] == 1).await;
    let down = &status["last_downtime"];
    assert_eq!((&down["stopped"], &down["adopted"], &down["here"]), (&json!(true), &json!(0), &json!(true)));
    let starts = daemon.get_json("/v1/daemon/starts?limit=1").await;
    assert_eq!(&starts["items"][0], down);
    let next = starts["next"].as_str().unwrap();
    let first = daemon.get_json(&format!("/v1/daemon/starts?cursor={next}")).await;
    assert_eq!((first["items"].as_array().unwrap().len(), &first["next"]), (1, &Value::Null));
    assert!(first["items"][0]["down_since"].is_null(), "the first start of a home follows none");
    assert_eq!(daemon.get_json("/v1/runs/timeline").await["downtimes"][0], *down);
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn what_only_a_person_can_settle_is_told() {
    let daemon = TestDaemon::start().await;
    let needs = daemon.get_json("/v1/needs").await;
    assert_eq!((&needs["held"], &needs["lanes_count"]), (&json!([]), &json!(0)));
    let held = json!({ "scope": "team/off", "type": "a.b" });
    let event = daemon.emit(&held).await["event"].as_str().unwrap().to_owned();
    let needs = daemon.until("/v1/needs", |needs| needs["lanes_count"] == 1).await;
    let lane = &needs["lanes"][0];
    assert_eq!(
        (&lane["event"], &lane["code"], &lane["tries"]),
        (&json!(event), &json!("scope_disabled"), &json!(0))
    );
    daemon.running.stop().await.unwrap();
}
