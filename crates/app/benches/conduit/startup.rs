//! Starting with a long past: a million Events behind it, and a hundred thousand Works that wait.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::Setting;
use crate::figure::{Goal, Report};
use crate::http::Daemon;

const EVENTS: i64 = 1_000_000;
const PARKED_WORKS: i64 = 100_000;

pub(crate) async fn run(setting: &Setting, report: &mut Report) {
    let home = setting.fresh("start");
    drop(Daemon::start(&home, "[[scopes]]\nname = \"bench\"\n").await);
    fill(&home.join("conduit.db"));
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
    report.add("start: resident memory", daemon.resident_mb(), "MB", None, Goal::AtMost(120.0));

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

/// Writes the past straight into the tables, as a million days of work would have left it.
fn fill(path: &Path) {
    let connection = Connection::open(path).expect("the database opens");
    connection.execute_batch("PRAGMA synchronous = OFF; BEGIN").expect("a transaction");
    // Every table as the store declares it; a column that is renamed fails here and is seen.
    let statements = [
        "CREATE TEMP TABLE number AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n
         WHERE i < ?1) SELECT i FROM n",
        "INSERT INTO event (sequence, id, source, delivery_id, event_type, scope, root, depth, max_depth,
            per_minute, accepted_at)
         SELECT 10000000 + i, 10000000 + i, 'bench/past', 'past-' || i, 'bench.happened', 'bench',
         10000000 + i, 0, 32, 128, 1700000000000000 + i FROM number",
        "INSERT INTO payload (sequence, body) SELECT 10000000 + i, CAST('\"' || hex(zeroblob(100)) || '\"' AS BLOB)
         FROM number",
        "INSERT INTO checkpoint (sequence, event, outcome, generation, at)
         SELECT 10000000 + i, 10000000 + i, 1, 1, 1700000000000000 + i FROM number",
        "INSERT INTO work (id, scope, kind, lifecycle, state, queue, queued_at, failures, eligibility, wait,
                revision, attempts, created_at)
         SELECT 10000000 + i, 'bench', 'match.keyed', 2, 2, 0, 1700000000000000, 0, 0, 10000000 + i, 1, 1,
         1700000000000000 FROM number WHERE i <= ?2",
        "INSERT INTO execution (id, work, scope, attempt, state, epoch, recovering, trigger, trigger_sequence,
            binding, executor, generation, timeout, turn, cause, used, claimed_at, unstopped, host, controls)
         SELECT 10000000 + i, 10000000 + i, 'bench', 1, 3, 1, 0, 10000000 + i, 10000000 + i, 'bench', 'shell', 1,
         3600000000, 1, 10000000 + i, 1000000, 1700000000000000, 0, 0, 0 FROM number WHERE i <= ?2",
        "INSERT INTO wait (id, work, scope, execution, keys, types, after_sequence, timer, timeout_at,
            registered_at, state)
         SELECT 10000000 + i, 10000000 + i, 'bench', 10000000 + i,
         '[{\"source\":\"bench/past\",\"external_id\":\"thing-' || i || '\"}]', '[]', 10000000 + i,
         10000000 + i, 4000000000000000 + i, 1700000000000000, 0 FROM number WHERE i <= ?2",
        "INSERT INTO timer (id, kind, scope, work, wait, armed_at, due_at)
         SELECT 10000000 + i, 1, 'bench', 10000000 + i, 10000000 + i, 1700000000000000, 4000000000000000 + i
         FROM number WHERE i <= ?2",
        "INSERT INTO work_key (source, external_id, work)
         SELECT 'bench/past', 'thing-' || i, 10000000 + i FROM number WHERE i <= ?2",
        "UPDATE coordination SET next_sequence = 20000000 + ?1",
    ];
    for statement in statements {
        let mut prepared = connection.prepare(statement).expect("the tables are as the store declares them");
        let wanted = [EVENTS, PARKED_WORKS];
        let parameters = &wanted[..prepared.parameter_count()];
        if statement.contains("?2") && !statement.contains("?1") {
            prepared.raw_bind_parameter(2, PARKED_WORKS).expect("a parameter");
            prepared.raw_execute().expect("rows are written");
        } else {
            prepared.execute(rusqlite::params_from_iter(parameters)).expect("rows are written");
        }
    }
    connection.execute_batch("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)").expect("the past is there");
}
