//! Starting with a long past: a million Events behind it, and a hundred thousand Works that wait.

use std::time::{Duration, Instant};

use crate::Setting;
use crate::figure::{Goal, Report};
use crate::http::Daemon;
use crate::past::{self, By};

const EVENTS: i64 = 1_000_000;
const PARKED_WORKS: i64 = 100_000;
const PENDING_WORKS: i64 = 10_000;
/// Who ran the Works that wait.
const SHELL: By = By { binding: "bench", executor: "shell" };
/// How long a daemon has to finish what it does at its start.
const SETTLES: Duration = Duration::from_secs(2);
/// How long it is then watched.
const IDLE: Duration = Duration::from_secs(10);

pub(crate) async fn run(setting: &Setting, report: &mut Report) {
    with_a_past(setting, report).await;
    after_a_kill(setting, report).await;
}

/// How soon a daemon whose predecessor was killed is there, and starts what waits for it.
async fn after_a_kill(setting: &Setting, report: &mut Report) {
    let home = setting.fresh("start-killed");
    let config = "[[scopes]]\nname = \"bench\"\nsettings = { concurrency = 8 }\n\
                  [[scopes.bindings]]\nname = \"work\"\nexecutor = \"shell\"\nconfig = { argv = [\"true\"] }\n";
    drop(Daemon::start(&home, config).await);
    let database = home.join("conduit.db");
    past::parked(&database, PARKED_WORKS, PARKED_WORKS, SHELL);
    past::pending(&database, PENDING_WORKS, "work");
    let first = Daemon::again(&home).await;
    // Dropping one kills it, in the middle of what it starts.
    drop(first);
    let start = Instant::now();
    let daemon = Daemon::again(&home).await;
    let ready = start.elapsed().as_secs_f64();
    while daemon.claimed().await == 0 {
        assert!(start.elapsed() < Duration::from_mins(1), "what waits is started");
    }
    let started = start.elapsed().as_secs_f64() - ready;
    let name = "start: ready after a kill, 100,000 parked and 10,000 pending Works";
    report.add_absolute(name, ready, "s", Goal::AtMost(0.5));
    report.add_absolute("start: from then to the first of them claimed", started, "s", Goal::AtMost(0.5));
}

async fn with_a_past(setting: &Setting, report: &mut Report) {
    let home = setting.fresh("start");
    drop(Daemon::start(&home, "[[scopes]]\nname = \"bench\"\n").await);
    past::parked(&home.join("conduit.db"), EVENTS, PARKED_WORKS, SHELL);
    let start = Instant::now();
    let daemon = Daemon::again(&home).await;
    let ready = start.elapsed().as_secs_f64();
    report.add(
        "start: ready, 1,000,000 events and 100,000 parked Works behind it",
        ready,
        "s",
        None,
        Goal::AtMost(1.0),
    );
    report.add("start: resident memory", daemon.resident_mb(), "MB", None, Goal::AtMost(100.0));
    crate::lone::idle(SETTLES).await;
    let before = daemon.cpu();
    crate::lone::idle(IDLE).await;
    let used = daemon.cpu().saturating_sub(before).as_secs_f64() * 1000.0;
    report.add("start: processor time of ten idle seconds", used, "ms", None, Goal::AtMost(10.0));

    let start = Instant::now();
    let mut tasks = Vec::new();
    for client in 0..64 {
        let mut connection = daemon.client().await;
        let time = setting.seconds;
        tasks.push(tokio::spawn(async move {
            let mut number = 0;
            while start.elapsed() < time + Duration::from_secs(2) {
                assert_eq!(connection.emit(&format!("load-{client}-{number}")).await, 202);
                number += 1;
            }
        }));
    }
    for task in tasks {
        task.await.expect("a client");
    }
    let peak = daemon.resident_mb();
    crate::lone::idle(Duration::from_secs(3)).await;
    report.note("start: resident memory under load", peak, "MB");
    let after = daemon.resident_mb();
    report.add("start: resident memory after the load", after, "MB", None, Goal::AtMost(200.0));
}
