//! One job alone: how long an Event takes to reach its executor, and how many commits that costs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use store::{Location, Options};

use crate::Setting;
use crate::figure::{Goal, Report, Times};
use crate::node::{self, Nothing};
use crate::raw::Database;

/// Jobs, one after the other.
const JOBS: u64 = 400;

pub(crate) async fn run(setting: &Setting, report: &mut Report) {
    let directory = setting.fresh("lone");
    let commit = Database::open(&directory.join("raw.db")).one_row_commit_ms(setting.seconds / 4);
    let executor = Arc::new(Nothing::default());
    let options = Options { rehearse: false, ..Options::default() };
    let store = store::open(&Location::Sqlite(directory.join("conduit.db")), options).await.expect("a store");
    let scope = node::scope("nothing", serde_json::Value::Null, 64);
    let (runtime, stages) = node::runtime(store, vec![Arc::<Nothing>::clone(&executor)], scope).await;
    runtime.start(stages);
    let commits = node::fact(runtime.store(), "commits");
    let (mut called, mut completed) = (Times::default(), Times::default());
    let mut feed = runtime.hints().feed.subscribe();
    for number in 0..JOBS {
        let start = Instant::now();
        node::accept(&runtime, number).await;
        while node::ended(&runtime) <= number {
            feed.changed().await.expect("the runtime lives");
        }
        completed.push(start.elapsed());
        let at = executor.called_at.lock().expect("no holder panics").take().expect("it was called");
        called.push(at.duration_since(start));
    }
    let commits = (node::fact(runtime.store(), "commits") - commits) / JOBS as f64;
    let goal = |most: f64| {
        // Where a commit is slow, what counts is how many of them one has to wait for.
        if commit <= 0.2 { Goal::AtMost(most) } else { Goal::AtMost(10.0 * commit) }
    };
    report.note("lone job: a one-row commit meanwhile", commit, "ms");
    report.add("lone job: accept to executor called, p50", called.at(0.5), "ms", None, goal(2.0));
    report.add("lone job: accept to completed, p50", completed.at(0.5), "ms", None, goal(3.0));
    report.note("lone job: accept to completed, p99", completed.at(0.99), "ms");
    report.add("lone job: commits", commits, "", None, Goal::AtMost(5.0));

    let statements = node::fact(runtime.store(), "statements");
    idle(Duration::from_secs(2)).await;
    let polled = node::fact(runtime.store(), "statements") - statements;
    report.add("idle: statements in two seconds", polled, "", None, Goal::AtMost(0.0));
    runtime.shutdown().await.expect("the runtime ends");
    runtime.store().close().await.expect("the store closes");
}

/// Nothing at all happens for a while.
pub(crate) async fn idle(time: Duration) {
    tokio::time::sleep(time).await;
}
