//! Durable accepts in process, at 1, 16 and 64 clients.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use runtime::{Runtime, Stages};
use store::{Location, Options, Tape};

use crate::Setting;
use crate::figure::{Goal, Report, Times};
use crate::node::{self, Nothing};
use crate::raw::{Database, Transaction};

/// Accepts in one recorded batch.
const BATCH: u64 = 64;

pub(crate) async fn run(setting: &Setting, report: &mut Report) {
    let raw = raw_rate(setting).await;
    report.note("accept: bare loop, batch 64", raw, "/s");
    for clients in [1, 16, 64] {
        let (rate, mut times) = at(setting, clients).await;
        let name = format!("accept: {clients} clients");
        if clients == 64 {
            // The limit is measured again, since the disk may have changed its mind.
            let again = raw_rate(setting).await;
            report.note("accept: bare loop, batch 64, again", again, "/s");
            report.add(&name, rate, "/s", Some(f64::midpoint(raw, again)), Goal::RatioAtLeast(0.6));
            report.add("accept: 64 clients, p50", times.at(0.5), "ms", None, Goal::AtMost(2.0));
        } else {
            report.add(&name, rate, "/s", Some(raw), Goal::None);
            report.note(&format!("{name}, p50"), times.at(0.5), "ms");
        }
        report.note(&format!("{name}, p99"), times.at(0.99), "ms");
    }
}

/// The bare loop of the statements that 64 accepts run.
async fn raw_rate(setting: &Setting) -> f64 {
    let path = setting.fresh("accept-raw").join("conduit.db");
    let tape = Arc::new(Tape::default());
    let options =
        Options { inline: true, rehearse: false, tape: Some(Arc::clone(&tape)), ..Options::default() };
    let store = store::open(&Location::Sqlite(path.clone()), options).await.expect("a store");
    let (runtime, _stages) = node::runtime(store, vec![Arc::new(Nothing::default())], scope()).await;
    let mut recorded = Vec::new();
    for batch in 0..3 {
        tape.take();
        for number in 0..BATCH {
            node::accept(&runtime, batch * BATCH + number).await;
        }
        recorded.push(tape.take());
    }
    runtime.store().close().await.expect("the store closes");
    let batch = [Transaction::learn(&recorded[1], &recorded[2])];
    let raw = Database::open(&path);
    let mut n = 2;
    raw.rate(&batch, &mut n, setting.seconds) * BATCH as f64
}

fn scope() -> domain::scope::EffectiveScope {
    node::scope("nothing", serde_json::Value::Null, 64)
}

async fn at(setting: &Setting, clients: u64) -> (f64, Times) {
    let path = setting.fresh("accept").join("conduit.db");
    let options = Options { rehearse: false, ..Options::default() };
    let store = store::open(&Location::Sqlite(path), options).await.expect("a store");
    let (runtime, _stages): (Runtime, Stages) =
        node::runtime(store, vec![Arc::new(Nothing::default())], scope()).await;
    let result = load(&runtime, clients, setting.seconds).await;
    runtime.store().close().await.expect("the store closes");
    result
}

/// Closed-loop clients that accept for a time.
pub(crate) async fn load(runtime: &Runtime, clients: u64, time: Duration) -> (f64, Times) {
    let next = Arc::new(AtomicU64::new(0));
    let start = Instant::now();
    let mut tasks = Vec::new();
    for _ in 0..clients {
        let (runtime, next) = (runtime.clone(), Arc::clone(&next));
        tasks.push(tokio::spawn(async move {
            let mut times = Times::default();
            while start.elapsed() < time {
                let before = Instant::now();
                node::accept(&runtime, next.fetch_add(1, Ordering::Relaxed)).await;
                times.push(before.elapsed());
            }
            times
        }));
    }
    let mut times = Times::default();
    for task in tasks {
        times.extend(task.await.expect("a client"));
    }
    (times.count() as f64 / start.elapsed().as_secs_f64(), times)
}
