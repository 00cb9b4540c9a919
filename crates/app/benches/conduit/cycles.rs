//! Full cycles: accepted, routed, claimed, run by an executor that does nothing, completed and announced.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::store::Store;
use runtime::{Progress, Runtime, Stage, Stages};
use store::{Location, Options, Tape};

use crate::Setting;
use crate::figure::{Goal, Report};
use crate::node::{self, Nothing};
use crate::raw::{Database, Transaction};

/// Works in flight.
const CLIENTS: u64 = 64;
/// Works that wait in the long queue.
const LONG: u64 = 100_000;
/// Works that wait in the short one.
const SHORT: u64 = 100;
/// How often each of the two is measured.
const ROUNDS: u32 = 4;

pub(crate) async fn run(setting: &Setting, report: &mut Report) {
    let (before, statements) = raw_rate(setting).await;
    report.note("cycle: statements of one, batch 64", statements, "");
    report.note("cycle: bare loop of the same statements", before, "/s");
    let (rate, commits) = closed_loop(setting).await;
    let (after, _statements) = raw_rate(setting).await;
    report.note("cycle: bare loop of the same statements, again", after, "/s");
    let limit = Some(f64::midpoint(before, after));
    report.add("cycle: 64 Works in flight", rate, "/s", limit, Goal::RatioAtLeast(0.3));
    report.add_absolute("cycle: 64 Works in flight, absolute", rate, "/s", Goal::AtLeast(5000.0));
    report.add("cycle: commits of one, 64 in flight", commits, "", None, Goal::AtMost(0.15));

    let (mut short, mut long) = (Queue::filled(setting, SHORT).await, Queue::filled(setting, LONG).await);
    // By turns: a disk that others use is another one a few seconds later.
    for _ in 0..ROUNDS {
        short.work_off(setting.seconds / 2).await;
        long.work_off(setting.seconds / 2).await;
    }
    report.note("cycle: with 100 Works pending", short.rate(), "/s");
    let limit = Some(short.rate());
    report.add("cycle: with 100,000 Works pending", long.rate(), "/s", limit, Goal::RatioAtLeast(0.8));
}

fn scope() -> domain::scope::EffectiveScope {
    node::scope("nothing", serde_json::Value::Null, 64)
}

async fn open(path: std::path::PathBuf) -> Store {
    let options = Options { rehearse: false, ..Options::default() };
    store::open(&Location::Sqlite(path), options).await.expect("a store")
}

/// The bare loop of the statements that 64 cycles run, stage by stage, and how many one cycle has.
async fn raw_rate(setting: &Setting) -> (f64, f64) {
    let path = setting.fresh("cycle-raw").join("conduit.db");
    let tape = Arc::new(Tape::default());
    let clock = Arc::new(Still);
    let options =
        Options { clock, inline: true, rehearse: false, tape: Some(Arc::clone(&tape)), ..Options::default() };
    let store = store::open(&Location::Sqlite(path.clone()), options).await.expect("a store");
    let (runtime, mut stages) = node::runtime(store, vec![Arc::new(Nothing::default())], scope()).await;
    let mut recorded = Vec::new();
    for batch in 0..3 {
        recorded.push(record(&runtime, &mut stages, &tape, batch).await);
    }
    runtime.store().close().await.expect("the store closes");
    if setting.statements {
        print_statements(&recorded[2]);
    }
    let batch: Vec<Transaction> =
        recorded[1].iter().zip(&recorded[2]).map(|(one, two)| Transaction::learn(one, two)).collect();
    let statements: usize = batch.iter().map(Transaction::len).sum();
    let raw = Database::open(&path);
    let mut n = 2;
    let rate = raw.rate(&batch, &mut n, setting.seconds) * CLIENTS as f64;
    (rate, statements as f64 / CLIENTS as f64)
}

/// Prints what each stage says in a batch, and how often for each cycle.
fn print_statements(said: &[Vec<store::Spoken>]) {
    for (stage, spoken) in ["accept", "route", "schedule", "complete"].iter().zip(said) {
        let mut counted: BTreeMap<String, u64> = BTreeMap::new();
        for one in spoken {
            let text = one.text.split_whitespace().collect::<Vec<_>>().join(" ");
            *counted.entry(text).or_default() += 1;
        }
        println!("{stage}: {:.2} statements a cycle", spoken.len() as f64 / CLIENTS as f64);
        for (text, count) in counted {
            println!("  {:>6.2}  {text}", count as f64 / CLIENTS as f64);
        }
    }
}

/// A clock that stands still, so that ids and times go on evenly from batch to batch.
#[derive(Debug)]
struct Still;

impl domain::time::Clock for Still {
    fn wall(&self) -> domain::time::Timestamp {
        domain::time::Timestamp::from_micros(1_800_000_000_000_000)
    }

    fn boot(&self) -> Duration {
        Duration::from_secs(1)
    }
}

/// Runs 64 cycles stage by stage and returns what each stage said.
async fn record(runtime: &Runtime, stages: &mut Stages, tape: &Tape, batch: u64) -> Vec<Vec<store::Spoken>> {
    let mut said = Vec::new();
    tape.take();
    for number in 0..CLIENTS {
        node::accept(runtime, batch * CLIENTS + number).await;
    }
    said.push(tape.take());
    assert_eq!(stages.route.step().await.expect("routed"), Progress::Advanced);
    said.push(tape.take());
    assert_eq!(stages.schedule.step().await.expect("scheduled"), Progress::Advanced);
    assert_eq!(stages.execute.step().await.expect("executed"), Progress::Advanced);
    let done = (batch + 1) * CLIENTS;
    // The executor's tasks only have to be polled; the reports arrive together.
    let asked = Instant::now();
    while (stages.complete.waiting() as u64) < CLIENTS {
        assert!(asked.elapsed() < Duration::from_secs(10), "the executor answers at once");
        tokio::task::yield_now().await;
    }
    said.push(tape.take());
    assert_eq!(stages.complete.step().await.expect("completed"), Progress::Advanced);
    said.push(tape.take());
    assert_eq!(node::ended(runtime), done, "one batch, one step of each stage");
    said
}

/// Keeps 64 Works in flight for a time. Returns cycles in a second, and commits for each.
async fn closed_loop(setting: &Setting) -> (f64, f64) {
    let store = open(setting.fresh("cycle").join("conduit.db")).await;
    let (runtime, stages) = node::runtime(store, vec![Arc::new(Nothing::default())], scope()).await;
    runtime.start(stages);
    let commits = node::fact(runtime.store(), "commits");
    let start = Instant::now();
    in_flight(&runtime, CLIENTS, start, setting.seconds).await;
    let (count, time) = (node::ended(&runtime) as f64, start.elapsed().as_secs_f64());
    let commits = node::fact(runtime.store(), "commits") - commits;
    runtime.shutdown().await.expect("the runtime ends");
    runtime.store().close().await.expect("the store closes");
    (count / time, commits / count)
}

/// Accepts as fast as Works end, so that `width` are always on their way.
pub(crate) async fn in_flight(runtime: &Runtime, width: u64, start: Instant, time: Duration) {
    in_flight_from(runtime, width, (start, time), 0).await;
}

/// Does the same with deliveries numbered from `first`. Returns how many there were.
async fn in_flight_from(
    runtime: &Runtime,
    width: u64,
    (start, time): (Instant, Duration),
    first: u64,
) -> u64 {
    let mut feed = runtime.hints().feed.subscribe();
    let mut accepted = 0;
    let mut accepts = tokio::task::JoinSet::new();
    while start.elapsed() < time {
        let ended = node::ended(runtime);
        while accepted < ended + width {
            let (runtime, number) = (runtime.clone(), first + accepted);
            accepts.spawn(async move { node::accept(&runtime, number).await });
            accepted += 1;
        }
        while accepts.try_join_next().is_some() {}
        feed.changed().await.expect("the runtime lives");
    }
    accepted
}

/// A store in which Works wait, and how fast they were worked off.
struct Queue {
    path: std::path::PathBuf,
    accepted: u64,
    ended: u64,
    time: Duration,
}

impl Queue {
    /// A store in which so many wait: filled by a runtime whose scheduler stands still.
    async fn filled(setting: &Setting, waiting: u64) -> Self {
        let path = setting.fresh(&format!("queue-{waiting}")).join("conduit.db");
        let store = open(path.clone()).await;
        let (runtime, mut stages) = node::runtime(store, vec![Arc::new(Nothing::default())], scope()).await;
        for part in 0..waiting.div_ceil(1000) {
            let mut accepts = tokio::task::JoinSet::new();
            for number in part * 1000..waiting.min((part + 1) * 1000) {
                let runtime = runtime.clone();
                accepts.spawn(async move { node::accept(&runtime, 1_000_000_000 + number).await });
            }
            accepts.join_all().await;
            while stages.route.step().await.expect("routed") == Progress::Advanced {}
        }
        runtime.store().close().await.expect("the store closes");
        Self { path, accepted: 0, ended: 0, time: Duration::ZERO }
    }

    /// Works them off for a time. As many arrive as end, so that the queue keeps its length.
    async fn work_off(&mut self, time: Duration) {
        let store = open(self.path.clone()).await;
        let (runtime, stages) = node::runtime(store, vec![Arc::new(Nothing::default())], scope()).await;
        runtime.start(stages);
        let start = Instant::now();
        self.accepted += in_flight_from(&runtime, CLIENTS, (start, time), self.accepted).await;
        self.ended += node::ended(&runtime);
        self.time += start.elapsed();
        runtime.shutdown().await.expect("the runtime ends");
        runtime.store().close().await.expect("the store closes");
    }

    fn rate(&self) -> f64 {
        self.ended as f64 / self.time.as_secs_f64()
    }
}
