//! A past, written straight into the tables, since nobody waits while a million Events are accepted.
//!
//! Every table as the store declares it. A test of this package writes the same with a few rows and reads them back
//! through the store, so a column that is new or renamed fails there and not in the middle of a benchmark.

use rusqlite::Connection;

/// Ids and sequences of what has ended or is parked begin here.
pub(crate) const FIRST: i64 = 10_000_000;
/// Those of what waits to be started.
const FIRST_PENDING: i64 = 30_000_000;
/// What is given out next.
const NEXT: i64 = 40_000_000;
/// A minute, in microseconds.
const MINUTE: i64 = 60_000_000;
/// When Works began to wait, in microseconds since 1970.
const LONG_AGO: i64 = 1_700_000_000_000_000;

/// Who runs the Works of the past.
#[derive(Debug, Clone, Copy)]
pub(crate) struct By {
    pub(crate) binding: &'static str,
    pub(crate) executor: &'static str,
}

/// Runs statements in one transaction that nobody waits for, and moves the log into the file.
fn write(path: &std::path::Path, statements: &[String]) {
    let connection = Connection::open(path).expect("the database opens");
    connection.execute_batch("PRAGMA synchronous = OFF; BEGIN").expect("a transaction");
    for statement in statements {
        connection.execute(statement, []).expect("the tables are as the store declares them");
    }
    connection.execute_batch("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)").expect("the past is there");
}

/// The numbers from 1 to `last`, each with a time a minute before that of the next one.
fn numbers(last: i64) -> String {
    format!(
        "CREATE TEMP TABLE number AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {last})
         SELECT i, (SELECT clock FROM coordination) - ({last} - i) * {MINUTE} AS at FROM n"
    )
}

fn sequences() -> String {
    format!("UPDATE coordination SET next_sequence = {NEXT}")
}

/// Events of the past, one for each number.
fn events() -> String {
    format!(
        "INSERT INTO event (sequence, id, source, delivery_id, event_type, scope, root, depth, max_depth,
            per_minute, accepted_at)
         SELECT {FIRST} + i, {FIRST} + i, 'bench/past', 'past-' || i, 'bench.happened', 'bench', {FIRST} + i, 0, 32,
            128, at FROM number"
    )
}

/// Works that have had many runs each, the last of which has just ended; as a week would have left them.
pub(crate) fn runs(path: &std::path::Path, runs: i64, of_a_work: i64) {
    let works = runs / of_a_work;
    write(
        path,
        &[
            numbers(runs),
            events(),
            format!(
                "INSERT INTO work (id, scope, kind, lifecycle, state, queue, queued_at, failures, eligibility,
                    revision, attempts, created_at)
                 SELECT {FIRST} + i, 'bench', 'match.keyed', 2, 0, 0, at, 0, 0, 1, {of_a_work}, at
                 FROM number WHERE i <= {works}"
            ),
            format!(
                "INSERT INTO work_key (source, external_id, work)
                 SELECT 'bench/past', 'a-thing-with-a-name-of-usual-length/' || i, {FIRST} + i
                 FROM number WHERE i <= {works}"
            ),
            format!(
                "INSERT INTO execution (id, work, scope, attempt, state, epoch, recovering, trigger,
                    trigger_sequence, binding, executor, generation, timeout, turn, cause, used, outcome, claimed_at,
                    started_at, ended_at, unstopped, host, controls)
                 SELECT {FIRST} + i, {FIRST} + 1 + i % {works}, 'bench', 1 + i / {works},
                    CASE WHEN i % 97 = 0 THEN 7 ELSE 4 END, 1, 0, {FIRST} + i, {FIRST} + i, 'bench', 'shell', 1,
                    3600000000, 1, {FIRST} + i, 0, CASE WHEN i % 97 = 0 THEN 3 ELSE 0 END, at - 30000000,
                    at - 30000000, at, 0, 0, 0
                 FROM number"
            ),
            format!(
                "INSERT INTO turn_result (execution, body)
                 SELECT {FIRST} + i, CAST('{{\"outcome\":\"completed\",\"summary\":\"built ' || i ||
                    ' of the things that were asked for, in the usual time\"}}' AS BLOB) FROM number"
            ),
            sequences(),
        ],
    );
}

/// Events of which nothing is left to do, and Works that wait: each for news of its key, `thing-1` and so on, or for
/// a time that nobody lives to see.
pub(crate) fn parked(path: &std::path::Path, events_: i64, works: i64, by: By) {
    let By { binding, executor } = by;
    let far = 4_000_000_000_000_000_i64;
    write(
        path,
        &[
            numbers(events_.max(works)),
            events(),
            format!(
                "INSERT INTO payload (sequence, body)
                 SELECT {FIRST} + i, CAST('\"' || hex(zeroblob(100)) || '\"' AS BLOB) FROM number"
            ),
            format!(
                "INSERT INTO checkpoint (sequence, event, outcome, generation, at)
                 SELECT {FIRST} + i, {FIRST} + i, 1, 1, at FROM number"
            ),
            format!(
                "INSERT INTO work (id, scope, kind, lifecycle, state, queue, queued_at, failures, eligibility, wait,
                    revision, attempts, created_at)
                 SELECT {FIRST} + i, 'bench', 'match.keyed', 2, 2, 0, {LONG_AGO}, 0, 0, {FIRST} + i, 1, 1, {LONG_AGO}
                 FROM number WHERE i <= {works}"
            ),
            format!(
                "INSERT INTO execution (id, work, scope, attempt, state, epoch, recovering, trigger,
                    trigger_sequence, binding, executor, generation, timeout, turn, cause, used, claimed_at,
                    unstopped, host, controls)
                 SELECT {FIRST} + i, {FIRST} + i, 'bench', 1, 3, 1, 0, {FIRST} + i, {FIRST} + i, '{binding}',
                    '{executor}', 1, 3600000000, 1, {FIRST} + i, 1000000, {LONG_AGO}, 0, 0, 0
                 FROM number WHERE i <= {works}"
            ),
            format!(
                "INSERT INTO turn_result (execution, body)
                 SELECT {FIRST} + i, CAST('{{\"outcome\":\"waiting\"}}' AS BLOB) FROM number WHERE i <= {works}"
            ),
            format!(
                "INSERT INTO wait (id, work, scope, execution, keys, types, after_sequence, timer, timeout_at,
                    registered_at, state)
                 SELECT {FIRST} + i, {FIRST} + i, 'bench', {FIRST} + i,
                    '[{{\"source\":\"bench/past\",\"external_id\":\"thing-' || i || '\"}}]', '[]', {FIRST} + i,
                    {FIRST} + i, {far} + i, {LONG_AGO}, 0
                 FROM number WHERE i <= {works}"
            ),
            format!(
                "INSERT INTO timer (id, kind, scope, work, wait, armed_at, due_at)
                 SELECT {FIRST} + i, 1, 'bench', {FIRST} + i, {FIRST} + i, {LONG_AGO}, {far} + i
                 FROM number WHERE i <= {works}"
            ),
            format!(
                "INSERT INTO work_key (source, external_id, work)
                 SELECT 'bench/past', 'thing-' || i, {FIRST} + i FROM number WHERE i <= {works}"
            ),
            sequences(),
        ],
    );
}

/// Works that can be started, each with one Event.
pub(crate) fn pending(path: &std::path::Path, works: i64, binding: &str) {
    write(
        path,
        &[
            numbers(works),
            format!(
                "INSERT INTO event (sequence, id, source, delivery_id, event_type, scope, root, depth, max_depth,
                    per_minute, accepted_at)
                 SELECT {FIRST_PENDING} + i, {FIRST_PENDING} + i, 'bench/pending', 'pending-' || i, 'bench.happened',
                    'bench', {FIRST_PENDING} + i, 0, 32, 128, at FROM number"
            ),
            format!(
                "INSERT INTO payload (sequence, body) SELECT {FIRST_PENDING} + i, CAST('{{}}' AS BLOB) FROM number"
            ),
            format!(
                "INSERT INTO checkpoint (sequence, event, outcome, work, generation, at)
                 SELECT {FIRST_PENDING} + i, {FIRST_PENDING} + i, 0, {FIRST_PENDING} + i, 1, at FROM number"
            ),
            format!(
                "INSERT INTO work (id, scope, kind, lifecycle, state, queue, queued_at, failures, eligibility,
                    revision, attempts, created_at)
                 SELECT {FIRST_PENDING} + i, 'bench', 'match.fresh', 0, 0, 1, at, 0, 0, 1, 0, at FROM number"
            ),
            format!(
                "INSERT INTO input (work, sequence, event, binding)
                 SELECT {FIRST_PENDING} + i, {FIRST_PENDING} + i, {FIRST_PENDING} + i, '{binding}' FROM number"
            ),
            sequences(),
        ],
    );
}
