//! Works that wait: how fast they park, how soon what they wait for reaches its executor, and how fast what a
//! process left is taken over.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use domain::delivery::{Authority, Delivery};
use domain::event::Key;
use domain::scope::EffectiveScope;
use domain::store::Store;
use domain::text::{ExternalId, SourceName};
use runtime::{Progress, Runtime, Stage};
use serde_json::json;
use store::{Location, Options};

use crate::Setting;
use crate::cycles::in_flight;
use crate::figure::{Goal, Report, Times};
use crate::node::{self, Nothing};
use crate::past::{self, By};
use crate::raw::Database;

/// Works that wait while one is woken.
const PARKED: i64 = 100_000;
/// Works that are woken, one after the other.
const WAKES: i64 = 400;
/// Works in flight, and in one step.
const CLIENTS: u64 = 64;
/// Attempts whose process has ended.
const LEFT: u64 = 1000;
/// How long the runtime has nothing to do between two wakes.
const REST: Duration = Duration::from_millis(2);

pub(crate) async fn run(setting: &Setting, report: &mut Report) {
    let directory = setting.fresh("wait");
    let commit = Database::open(&directory.join("raw.db")).one_row_commit_ms(setting.seconds / 4);
    report.note("wait: a one-row commit meanwhile", commit, "ms");
    wakes(setting, report).await;
    let rate = park_steps(setting).await;
    report.add_absolute("wait: the park step alone, 64 at a time", rate, "/s", Goal::AtLeast(5000.0));
    let rate = parks(setting).await;
    report.add_absolute("wait: accepted to parked, 64 in flight", rate, "/s", Goal::AtLeast(3000.0));
    let time = recovery(setting).await;
    report.add_absolute("recover: 1,000 attempts of a dead process", time, "s", Goal::AtMost(1.0));
}

async fn open(path: std::path::PathBuf) -> Store {
    let options = Options { rehearse: false, ..Options::default() };
    store::open(&Location::Sqlite(path), options).await.expect("a store")
}

/// A scope whose route gives Events with one key to one Work.
fn keyed(concurrency: u32) -> EffectiveScope {
    let mut scope = node::scope("nothing", serde_json::Value::Null, concurrency);
    scope.routes[0].config = json!({ "types": ["*"], "work": "keyed" });
    scope
}

/// A delivery that a Work of the past waits for.
fn awaited(runtime: &Runtime, number: i64) -> Delivery {
    let key = Key {
        source: SourceName::known("bench/past"),
        external_id: ExternalId::known(&format!("thing-{number}")),
    };
    Delivery { key: Some(key), ..node::delivery(runtime, number.unsigned_abs()) }
}

/// From an accepted Event to the executor that goes on with it, in a store with very many Works that wait.
async fn wakes(setting: &Setting, report: &mut Report) {
    let path = setting.fresh("wake").join("conduit.db");
    {
        let store = open(path.clone()).await;
        let (runtime, _stages) = node::runtime(store, vec![Arc::<Nothing>::default()], keyed(64)).await;
        runtime.store().close().await.expect("the store closes");
    }
    past::parked(&path, PARKED, PARKED, By { binding: "work", executor: "nothing" });
    let executor = Arc::new(Nothing::default());
    let (runtime, stages) =
        node::runtime(open(path).await, vec![Arc::<Nothing>::clone(&executor)], keyed(64)).await;
    runtime.start(stages);
    let mut feed = runtime.hints().feed.subscribe();
    let (mut from_answer, mut from_call) = (Times::default(), Times::default());
    for number in 0..WAKES {
        crate::lone::idle(REST).await;
        let called = Instant::now();
        // Far from each other in every index.
        let accepted = runtime.accept(awaited(&runtime, 1 + number * 241), Authority::Ingress).await;
        let answered = Instant::now();
        accepted.expect("the delivery is accepted");
        while node::ended(&runtime) <= number.unsigned_abs() {
            feed.changed().await.expect("the runtime lives");
        }
        let at = executor.called_at.lock().expect("no holder panics").take().expect("it was called");
        from_answer.push(at.saturating_duration_since(answered));
        from_call.push(at.duration_since(called));
    }
    assert_eq!(executor.resumed.load(Ordering::Relaxed), WAKES.unsigned_abs(), "each goes on where it was");
    let name = "wait: matching Event accepted to executor called, 100,000 parked";
    report.add_absolute(&format!("{name}, p50"), from_answer.at(0.5), "ms", Goal::AtMost(3.0));
    report.add_absolute(&format!("{name}, p99"), from_answer.at(0.99), "ms", Goal::AtMost(15.0));
    report.note("wait: the same with its acceptance, p50", from_call.at(0.5), "ms");
    runtime.shutdown().await.expect("the runtime ends");
    runtime.store().close().await.expect("the store closes");
}

/// An executor each of whose turns ends to wait.
fn parking() -> Arc<Nothing> {
    Arc::new(Nothing { parks: true, ..Nothing::default() })
}

/// How fast the step alone parks what was reported.
async fn park_steps(setting: &Setting) -> f64 {
    let store = open(setting.fresh("park").join("conduit.db")).await;
    let scope = node::scope("nothing", serde_json::Value::Null, 64);
    let (runtime, mut stages) = node::runtime(store, vec![parking()], scope).await;
    let (start, mut parked, mut took) = (Instant::now(), 0, Duration::ZERO);
    while start.elapsed() < setting.seconds {
        for number in 0..CLIENTS {
            node::accept(&runtime, parked + number).await;
        }
        while stages.route.step().await.expect("routed") == Progress::Advanced {}
        while stages.schedule.step().await.expect("scheduled") == Progress::Advanced {}
        while stages.execute.step().await.expect("executed") == Progress::Advanced {}
        while (stages.complete.waiting() as u64) < CLIENTS {
            tokio::task::yield_now().await;
        }
        let before = Instant::now();
        assert_eq!(stages.complete.step().await.expect("parked"), Progress::Advanced);
        took += before.elapsed();
        parked += CLIENTS;
        assert_eq!(node::ended(&runtime), parked, "one batch, one step");
    }
    runtime.store().close().await.expect("the store closes");
    parked as f64 / took.as_secs_f64()
}

/// How fast Works go all the way from their Event to their Wait.
async fn parks(setting: &Setting) -> f64 {
    let store = open(setting.fresh("parks").join("conduit.db")).await;
    let scope = node::scope("nothing", serde_json::Value::Null, 64);
    let (runtime, stages) = node::runtime(store, vec![parking()], scope).await;
    runtime.start(stages);
    let start = Instant::now();
    in_flight(&runtime, CLIENTS, start, setting.seconds).await;
    let rate = node::ended(&runtime) as f64 / start.elapsed().as_secs_f64();
    runtime.shutdown().await.expect("the runtime ends");
    runtime.store().close().await.expect("the store closes");
    rate
}

/// How long it takes until everything that a dead process had claimed is settled, from the start of the next.
async fn recovery(setting: &Setting) -> f64 {
    let path = setting.fresh("recover").join("conduit.db");
    let scope = || node::scope("nothing", serde_json::Value::Null, u32::try_from(LEFT).unwrap_or(u32::MAX));
    {
        // Its claims are never launched, as if it had been killed right then.
        let (runtime, mut stages) =
            node::runtime(open(path.clone()).await, vec![Arc::<Nothing>::default()], scope()).await;
        let mut accepts = tokio::task::JoinSet::new();
        for number in 0..LEFT {
            let runtime = runtime.clone();
            accepts.spawn(async move { node::accept(&runtime, number).await });
        }
        accepts.join_all().await;
        while stages.route.step().await.expect("routed") == Progress::Advanced {}
        while stages.schedule.step().await.expect("scheduled") == Progress::Advanced {}
        runtime.store().close().await.expect("the store closes");
    }
    let store = open(path).await;
    let start = Instant::now();
    let (runtime, stages) = node::runtime(store, vec![Arc::<Nothing>::default()], scope()).await;
    let mut feed = runtime.hints().feed.subscribe();
    runtime.start(stages);
    while node::ended(&runtime) < LEFT {
        feed.changed().await.expect("the runtime lives");
    }
    let time = start.elapsed().as_secs_f64();
    assert_eq!(runtime.metrics().recovered.get(), LEFT, "each was taken over once");
    runtime.shutdown().await.expect("the runtime ends");
    runtime.store().close().await.expect("the store closes");
    time
}
