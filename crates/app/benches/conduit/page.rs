//! Pages with a long past: what a person waits for, and how much is sent.

use std::path::Path;
use std::time::Instant;

use domain::id::ExecutionId;
use rusqlite::Connection;

use crate::Setting;
use crate::figure::{Goal, Report, Times};
use crate::http::Daemon;

const RUNS: i64 = 10_000;
/// Bytes of the longest log.
const LOG_BYTES: usize = 100_000_000;
/// Runs for each Work, so that the timeline has rows with very many bars.
const RUNS_OF_A_WORK: i64 = 100;
/// How often each page is asked for.
const ASKED: usize = 40;
/// The last run ended that many microseconds ago, and each before it a minute earlier.
const MINUTE: i64 = 60_000_000;

pub(crate) async fn run(setting: &Setting, report: &mut Report) {
    let home = setting.fresh("page");
    drop(Daemon::start(&home, "[[scopes]]\nname = \"bench\"\n").await);
    fill(&home.join("conduit.db"));
    let run = ExecutionId::from_number(10_000_000 + RUNS);
    long_log(&home, run);
    let daemon = Daemon::again(&home).await;
    let (shown, log) = (format!("/runs/{run}"), format!("/runs/{run}/log"));
    for (name, path, goal) in [
        ("page: run list with 10,000 runs", "/", 100.0),
        ("page: the same, past 7 days", "/?span=7d", 100.0),
        ("page: the same, a search that finds nothing", "/?q=no+such+run", 100.0),
        ("page: the same, failed runs only", "/?state=failed", 100.0),
        ("page: the list of Events, 10,000 in the store", "/events", 100.0),
        ("page: the list of Works, each with 100 runs", "/work", 100.0),
        ("page: a run with a log of 100 MB", shown.as_str(), 300.0),
        ("page: the end of a log of 100 MB", log.as_str(), 300.0),
    ] {
        let (mut times, mut heaviest) = (Times::default(), 0);
        let mut pages = daemon.pages().await;
        for _ in 0..ASKED {
            let before = Instant::now();
            heaviest = heaviest.max(pages.weight(path).await);
            times.push(before.elapsed());
        }
        report.add(name, times.at(0.5), "ms", None, Goal::AtMost(goal));
        let weight = heaviest as f64 / 1000.0;
        report.add(&format!("{name}, weight"), weight, "kB", None, Goal::AtMost(150.0));
    }
}

/// Gives a run a log of 100 MB, as its command would have written it.
fn long_log(home: &Path, run: ExecutionId) {
    let folder = home.join("runs").join(run.to_string()).join("e1");
    std::fs::create_dir_all(&folder).expect("the run's folder");
    let line =
        "\u{1b}[32mok\u{1b}[0m one of very many lines, each of a usual length, as a build writes them\n";
    let piece = line.repeat(LOG_BYTES / 100 / line.len());
    let mut file = std::fs::File::create(folder.join("output.log")).expect("the log");
    for _ in 0..100 {
        std::io::Write::write_all(&mut file, piece.as_bytes()).expect("room for the log");
    }
}

/// Writes the past straight into the tables, as a week of work would have left it.
fn fill(path: &Path) {
    let connection = Connection::open(path).expect("the database opens");
    connection.execute_batch("PRAGMA synchronous = OFF; BEGIN").expect("a transaction");
    let now: i64 = connection
        .query_row("SELECT clock FROM coordination", [], |row| row.get(0))
        .expect("the daemon has committed something");
    let works = RUNS / RUNS_OF_A_WORK;
    // Every table as the store declares it; a column that is renamed fails here and is seen.
    let statements = [
        format!(
            "CREATE TEMP TABLE number AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n
             WHERE i < {RUNS}) SELECT i, {now} - ({RUNS} - i) * {MINUTE} AS at FROM n"
        ),
        "INSERT INTO event (sequence, id, source, delivery_id, event_type, scope, root, depth, max_depth,
            per_minute, accepted_at)
         SELECT 10000000 + i, 10000000 + i, 'bench/past', 'past-' || i, 'bench.happened', 'bench',
         10000000 + i, 0, 32, 128, at FROM number"
            .to_owned(),
        format!(
            "INSERT INTO work (id, scope, kind, lifecycle, state, queue, queued_at, failures, eligibility,
                revision, attempts, created_at)
             SELECT 10000000 + i, 'bench', 'match.keyed', 2, 0, 0, at, 0, 0, 1, {RUNS_OF_A_WORK}, at
             FROM number WHERE i <= {works}"
        ),
        format!(
            "INSERT INTO work_key (source, external_id, work)
             SELECT 'bench/past', 'a-thing-with-a-name-of-usual-length/' || i, 10000000 + i
             FROM number WHERE i <= {works}"
        ),
        format!(
            "INSERT INTO execution (id, work, scope, attempt, state, epoch, recovering, trigger, trigger_sequence,
                binding, executor, generation, timeout, turn, cause, used, outcome, claimed_at, started_at, ended_at,
                unstopped, host, controls)
             SELECT 10000000 + i, 10000001 + i % {works}, 'bench', 1 + i / {works},
                CASE WHEN i % 97 = 0 THEN 7 ELSE 4 END, 1, 0, 10000000 + i, 10000000 + i, 'bench', 'shell', 1,
                3600000000, 1, 10000000 + i, 0, CASE WHEN i % 97 = 0 THEN 3 ELSE 0 END, at - 30000000,
                at - 30000000, at, 0, 0, 0
             FROM number"
        ),
        "INSERT INTO turn_result (execution, body)
         SELECT 10000000 + i, CAST('{\"outcome\":\"completed\",\"summary\":\"built ' || i ||
            ' of the things that were asked for, in the usual time\"}' AS BLOB) FROM number"
            .to_owned(),
        format!("UPDATE coordination SET next_sequence = 20000000 + {RUNS}"),
    ];
    for statement in statements {
        connection.execute(&statement, []).expect("the tables are as the store declares them");
    }
    connection.execute_batch("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)").expect("the past is there");
}
