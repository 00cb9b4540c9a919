//! A runtime in this process, with an executor that does nothing.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use domain::causal::Origin;
use domain::delivery::{Authority, Delivery};
use domain::event::{Key, Payload};
use domain::outcome::{Outcome, TurnResult};
use domain::route::ActivePolicy;
use domain::scope::{Binding, EffectiveScope, Route, SecretRef, Settings};
use domain::store::Store;
use domain::text::{
    BindingName, DeliveryId, EventType, ExecutorName, ExternalId, HandlerName, RouteName, ScopeName,
    SourceName,
};
use domain::wait::Registration;
use extension::{
    AttemptHost, BoxFuture, Capabilities, ConfigProblem, Executor, Log, LogRequest, Recovery, ResumeRequest,
    RunError, RunRequest, Secret, SecretError, Segment, Stopped,
};
use runtime::{Options, Registry, Runtime, Scopes, SecretSource, Stages};
use serde_json::{Value, json};

/// The payload of every Event here: half a kilobyte.
pub(crate) const PAYLOAD_BYTES: usize = 512;

/// How long a turn that ends to wait waits at most, in seconds: longer than anybody looks.
const WAIT_SECONDS: u64 = 86_400;

/// An executor whose turns end at once. It notes when it was called last.
#[derive(Debug, Default)]
pub(crate) struct Nothing {
    /// Whether its turns end to wait.
    pub(crate) parks: bool,
    pub(crate) calls: AtomicU64,
    /// How many of its turns went on from a Wait.
    pub(crate) resumed: AtomicU64,
    pub(crate) called_at: Mutex<Option<Instant>>,
}

impl Nothing {
    fn turn(&self) -> BoxFuture<'_, Result<TurnResult, RunError>> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        *self.called_at.lock().expect("no holder panics") = Some(Instant::now());
        let result = if self.parks {
            TurnResult::waiting(Registration {
                timeout_seconds: Some(WAIT_SECONDS),
                ..Registration::default()
            })
        } else {
            TurnResult::of(Outcome::Completed)
        };
        Box::pin(async { Ok(result) })
    }
}

impl Executor for Nothing {
    fn name(&self) -> ExecutorName {
        ExecutorName::known("nothing")
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { holds_until_pinned: false, controls: extension::Controls::NONE, resumes: true }
    }

    fn validate(&self, _config: &Value, _resource: Option<&Value>) -> Result<String, Vec<ConfigProblem>> {
        Ok("nothing".to_owned())
    }

    fn run<'a>(
        &'a self,
        _request: RunRequest,
        _host: &'a dyn AttemptHost,
    ) -> BoxFuture<'a, Result<TurnResult, RunError>> {
        self.turn()
    }

    fn resume<'a>(
        &'a self,
        _request: ResumeRequest,
        _host: &'a dyn AttemptHost,
    ) -> BoxFuture<'a, Result<TurnResult, RunError>> {
        self.resumed.fetch_add(1, Ordering::Relaxed);
        self.turn()
    }

    fn recover(&self, _segment: Segment) -> BoxFuture<'_, Recovery> {
        Box::pin(async {
            Recovery::NotAdoptable { reason: "nothing is left of it".to_owned(), stopped: true }
        })
    }

    fn observe(&self, _segment: Segment) -> BoxFuture<'_, Result<TurnResult, RunError>> {
        Box::pin(std::future::pending())
    }

    fn stop(&self, _segment: Segment) -> BoxFuture<'_, Stopped> {
        Box::pin(async { Stopped::Confirmed })
    }

    fn log(&self, _request: LogRequest) -> BoxFuture<'_, Result<Log, RunError>> {
        Box::pin(async { Ok(Log { from: 0, bytes: Vec::new(), size: 0 }) })
    }

    fn artifact(&self, _execution: extension::ExecutionId, _path: &str) -> Option<std::path::PathBuf> {
        None
    }
}

#[derive(Debug)]
struct NoSecrets;

impl SecretSource for NoSecrets {
    fn resolve<'a>(
        &'a self,
        name: &'a str,
        _reference: &'a SecretRef,
    ) -> BoxFuture<'a, Result<Secret, SecretError>> {
        let error = SecretError { name: name.to_owned(), reason: "there are none here".to_owned() };
        Box::pin(async move { Err(error) })
    }
}

pub(crate) fn scope_name() -> ScopeName {
    ScopeName::known("bench")
}

/// One scope whose route makes each Event a Work of its own, run by `executor`.
pub(crate) fn scope(executor: &str, config: Value, concurrency: u32) -> EffectiveScope {
    let name = scope_name();
    let binding = Binding {
        name: BindingName::known("work"),
        executor: ExecutorName::known(executor),
        config,
        resource: None,
        timeout_seconds: None,
        inactivity_seconds: None,
        credential: None,
        retry: None,
        secrets: BTreeMap::new(),
        declared_in: name.clone(),
    };
    let route = Route {
        name: RouteName::known("all"),
        handler: HandlerName::known("match"),
        binding: Some(binding.name.clone()),
        active_policy: ActivePolicy::Queue,
        fallbacks: domain::route::Fallbacks::default(),
        config: json!({"types": ["*"], "work": "fresh"}),
        declared_in: name.clone(),
    };
    EffectiveScope {
        name: name.clone(),
        lineage: vec![name],
        disabled: false,
        settings: Settings { concurrency, ..Settings::default() },
        routes: vec![route],
        bindings: BTreeMap::from([(binding.name.clone(), binding)]),
        extensions: BTreeMap::new(),
        read_scopes: Vec::new(),
        write_scopes: Vec::new(),
        budgets: Vec::new(),
    }
}

/// A runtime over a store, with one scope applied. The stages stand still.
pub(crate) async fn runtime(
    store: Store,
    executors: Vec<Arc<dyn Executor>>,
    scope: EffectiveScope,
) -> (Runtime, Stages) {
    let scopes = Scopes::from([(scope.name.clone(), Arc::new(scope))]);
    let options = Options {
        read_scopes: Arc::new(move |_text| Ok(scopes.clone())),
        secrets: Arc::new(NoSecrets),
        tokens: Arc::new(runtime::NoTokens),
        look_again: None,
    };
    let registry = Registry::new(bundled::handlers(), executors);
    let (runtime, stages) = Runtime::new(store, registry, options);
    runtime.prepare().await.expect("the store is ready");
    if runtime.generations().active().number.number() == 0 {
        runtime.apply("bench".to_owned(), "bench".to_owned()).await.expect("the scope is applied");
    }
    (runtime, stages)
}

/// A delivery like those of a code host: half a kilobyte, a key of its own.
pub(crate) fn delivery(runtime: &Runtime, number: u64) -> Delivery {
    Delivery {
        id: runtime.store().ids(domain::id::IdMaker::event),
        source: SourceName::known("bench/source"),
        delivery_id: DeliveryId::known(&format!("delivery-{number:012}")),
        event_type: EventType::known("bench.happened"),
        scope: scope_name(),
        key: Some(Key {
            source: SourceName::known("bench/source"),
            external_id: ExternalId::known(&format!("thing-{number:012}")),
        }),
        work: None,
        occurred_at: None,
        payload: Payload::stored(format!("\"{}\"", "x".repeat(PAYLOAD_BYTES - 2)).into_bytes()),
        origin: Origin::Root,
    }
}

/// Accepts one delivery.
pub(crate) async fn accept(runtime: &Runtime, number: u64) {
    let accepted = runtime.accept(delivery(runtime, number), Authority::Ingress).await;
    accepted.expect("the delivery is accepted");
}

/// How many attempts have ended.
pub(crate) fn ended(runtime: &Runtime) -> u64 {
    ["completed", "failed", "handoff", "waiting"]
        .into_iter()
        .map(|outcome| {
            let outcome = runtime::metrics::Outcome { outcome };
            runtime.metrics().ended.get_or_create(&outcome).get()
        })
        .sum()
}

/// A figure of the store, by name.
pub(crate) fn fact(store: &Store, name: &str) -> f64 {
    let facts = store.backend().facts();
    let found = facts.iter().find(|(known, _value)| *known == name);
    found.and_then(|(_name, value)| value.parse().ok()).unwrap_or(f64::NAN)
}
