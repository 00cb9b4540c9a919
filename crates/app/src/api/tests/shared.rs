//! Several daemons on one PostgreSQL database, each in a home of its own.
//!
//! `OPEN_CONDUIT_TEST_POSTGRES` names the server. Without it these tests fail, unless
//! `OPEN_CONDUIT_TEST_WITHOUT` names `postgres`.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use serde_json::json;
use store::Location;
use tokio_postgres::NoTls;

use super::sessions::{Browser, ends, stream};
use super::{CONFIG, LOOK_AGAIN, SOON, TestDaemon, home_in};

async fn execute(dsn: &str, statement: &str) {
    let (client, connection) = tokio_postgres::connect(dsn, NoTls).await.unwrap();
    tokio::runtime::Handle::current().spawn(connection);
    client.batch_execute(statement).await.unwrap();
}

/// Runs a test with the location of a database of its own.
fn on_database(label: &str, test: impl AsyncFnOnce(Location)) {
    let without = std::env::var("OPEN_CONDUIT_TEST_WITHOUT").unwrap_or_default();
    let Ok(server) = std::env::var("OPEN_CONDUIT_TEST_POSTGRES") else {
        let left_out = without.split([',', ' ']).any(|word| word == "postgres");
        assert!(left_out, "set OPEN_CONDUIT_TEST_POSTGRES, or OPEN_CONDUIT_TEST_WITHOUT=postgres");
        return;
    };
    // A schema does for a database of its own, and any kind of connection string can name one.
    let name = format!("conduit_{label}_{}", std::process::id());
    let dsn = if server.contains("://") {
        let mark = if server.contains('?') { '&' } else { '?' };
        format!("{server}{mark}options=-csearch_path%3D{name}")
    } else {
        format!("{server} options='-csearch_path={name}'")
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(execute(&server, &format!("CREATE SCHEMA {name}")));
    let test = AssertUnwindSafe(|| runtime.block_on(test(Location::Postgres(dsn))));
    let result = catch_unwind(test);
    runtime.block_on(execute(&server, &format!("DROP SCHEMA {name} CASCADE")));
    if let Err(panic) = result {
        resume_unwind(panic);
    }
}

/// A daemon in a new home, on the database.
async fn daemon(location: &Location) -> TestDaemon {
    let directory = tempfile::tempdir().unwrap();
    let home = home_in(directory.path());
    home.create().unwrap();
    std::fs::write(home.root().join("conduit.toml"), CONFIG).unwrap();
    TestDaemon::start_at(directory, Some(location.clone())).await
}

fn build(delivery: &str) -> serde_json::Value {
    json!({ "scope": "main", "type": "build.finished", "delivery_id": delivery, "payload": {} })
}

fn ended(runs: &serde_json::Value, number: usize) -> bool {
    let runs = runs["items"].as_array().unwrap();
    runs.len() == number && runs.iter().all(|run| run["state"] == "completed")
}

#[test]
fn daemons_share_a_database_and_what_one_accepts_runs_once() {
    on_database("shared", async |location| {
        let (one, two) = (daemon(&location).await, daemon(&location).await);
        let owner = |daemon: &TestDaemon| daemon.running.daemon().runtime().owns_loops();
        one.until("/v1/status", |_status| owner(&one) || owner(&two)).await;
        one.emit(&build("d-1")).await;
        two.emit(&build("d-2")).await;
        for daemon in [&one, &two] {
            daemon.until("/v1/runs", |runs| ended(runs, 2)).await;
        }
        assert_ne!(owner(&one), owner(&two));

        // What is applied at one is in force at the other.
        let edited = CONFIG.replace("concurrency = 4", "concurrency = 5");
        let applied = one.post("/v1/config/apply", &json!({ "config": edited })).await;
        assert_eq!(applied.status, 200, "{}", applied.text());
        two.until("/v1/status", |status| status["generation"] == 2).await;

        // Whoever is left goes on, and a home that comes back revokes no token but its own.
        let (left, other) = if owner(&one) { (two, one) } else { (one, two) };
        let directory = other.stop().await;
        left.emit(&build("d-3")).await;
        left.until("/v1/runs", |runs| ended(runs, 3)).await;
        let back = TestDaemon::start_at(directory, Some(location.clone())).await;
        assert_eq!(left.get("/v1/status").await.status, 200);
        back.until("/v1/runs", |runs| ended(runs, 3)).await;
        assert!(!owner(&back));
        let left = left.restart_at(Some(location.clone())).await;
        assert_eq!(left.get("/v1/status").await.status, 200);
        left.stop().await;
        back.stop().await;
    });
}

/// Waits until a browser is answered with a status.
async fn is_answered(daemon: &TestDaemon, browser: &Browser, status: u16) {
    let waited = tokio::time::timeout(SOON, async {
        while browser.get(daemon, "/v1/status").await.status != status {
            // What another daemon did rings no bell here.
            drop(tokio::time::timeout(LOOK_AGAIN, std::future::pending::<()>()).await);
        }
    });
    waited.await.unwrap_or_else(|_elapsed| panic!("no {status}"));
}

#[test]
fn a_session_that_one_daemon_revokes_ends_at_the_other() {
    on_database("sessions", async |location| {
        let (one, two) = (daemon(&location).await, daemon(&location).await);
        let at_one = Browser::logged_in(&one).await;
        let at_two = Browser { cookie: at_one.cookie.clone(), ..Browser::new(&two) };
        assert_ne!(at_one.host, at_two.host, "each home has a name of its own");
        is_answered(&two, &at_two, 200).await;
        let stream = stream(&two, &at_two).await;
        assert_eq!(one.unix("DELETE", "/v1/sessions", &[], b"").await.status, 200);
        ends(stream).await;
        is_answered(&two, &at_two, 401).await;
        one.stop().await;
        two.stop().await;
    });
}
