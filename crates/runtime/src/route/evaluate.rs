//! Asking the handlers, outside every transaction and beside one another.
//!
//! Most answers are there at once. One that is not goes on in a task of its own, so that a handler that
//! hangs on one Event holds up that Event's lane and nothing else.

use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use domain::decision::{Basis, Decision, Looked};
use domain::route::{RouteAnswer, WhileActive};
use domain::text::{Code, RouteName};
use extension::{BoxFuture, EventView, HandlerError, RouteInput, ScopeView, WorkView};

use crate::caught::{Panicked, caught};
use crate::generation::{ActiveGeneration, ActiveScope};
use crate::node::Runtime;
use crate::route::Candidate;
use crate::route::apply::{Item, Verdict};
use crate::stage;

/// Payloads above this many bytes take more than a moment to look at.
const AT_ONCE_BYTES_MAX: usize = 16 << 10;
/// The longest a handler may take over one Event.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// An answer, now or later.
pub(crate) enum Asked {
    /// It is there.
    Now(Box<Item>),
    /// It takes longer.
    Later(BoxFuture<'static, Item>),
}

impl Asked {
    /// Waits for the answer.
    pub(crate) async fn item(self) -> Item {
        match self {
            Self::Now(item) => *item,
            Self::Later(answer) => answer.await,
        }
    }
}

/// Asks a scope's routes in order, until one matches.
pub(crate) async fn evaluate(
    runtime: &Runtime,
    active: &Arc<ActiveGeneration>,
    candidate: Candidate,
) -> Asked {
    let generation = active.number;
    let held = |code: &str| Verdict::Held { code: Code::known(code) };
    let scope = match active.scope(&candidate.event.scope) {
        None => return Asked::Now(Box::new(Item { candidate, generation, verdict: held("unknown_scope") })),
        Some(scope) if scope.scope.disabled => {
            return Asked::Now(Box::new(Item { candidate, generation, verdict: held("scope_disabled") }));
        }
        Some(scope) => scope,
    };
    let long = candidate.payload.as_bytes().len() > AT_ONCE_BYTES_MAX
        || scope.routes.iter().any(|route| route.prepared.may_take_long());
    let mut answer = bounded(runtime.clone(), Arc::clone(active), candidate, long);
    match std::future::poll_fn(|context| Poll::Ready(answer.as_mut().poll(context))).await {
        Poll::Ready(item) => Asked::Now(Box::new(item)),
        Poll::Pending => Asked::Later(answer),
    }
}

/// The answer for one Event, within the time a handler has.
fn bounded(
    runtime: Runtime,
    active: Arc<ActiveGeneration>,
    candidate: Candidate,
    long: bool,
) -> Pin<Box<dyn Future<Output = Item> + Send>> {
    Box::pin(async move {
        let generation = active.number;
        let candidate = Arc::new(candidate);
        let asked = Arc::clone(&candidate);
        let end = runtime.ending().clone();
        let answer = async move {
            tokio::select! {
                biased;
                decision = caught(ask(&active, &asked)) => decision.unwrap_or_else(|Panicked| {
                    failed(generation, "handler_panicked", "it failed by a bug")
                }),
                () = stage::pause(ANSWER_WITHIN) => failed(generation, "handler_timeout", "it took too long"),
                () = end.cancelled() => failed(generation, "handler_cut_short", "the runtime ended"),
            }
        };
        let decision = if long {
            // A handler's future is computation here; it is polled to its end on a thread that may block. One
            // that never comes back is not waited for, and nor does shutdown.
            let handle = tokio::runtime::Handle::current();
            let task = tokio::task::spawn_blocking(move || handle.block_on(answer));
            tokio::select! {
                biased;
                decision = task => decision
                    .unwrap_or_else(|_panicked| failed(generation, "handler_panicked", "it failed by a bug")),
                () = stage::pause(ANSWER_WITHIN) => failed(generation, "handler_timeout", "it took too long"),
            }
        } else {
            answer.await
        };
        let candidate = Candidate::clone(&candidate);
        Item { candidate, generation, verdict: Verdict::Decided(decision) }
    })
}

fn failed(generation: domain::id::Generation, code: &str, how: &str) -> Decision<RouteAnswer> {
    let reason = format!("a handler did not answer: {how}");
    let answer = RouteAnswer::Failed {
        route: RouteName::known("unknown"),
        code: Code::known(code),
        reason,
        is_final: false,
    };
    Decision { answer, basis: Basis::of(generation) }
}

async fn ask(active: &ActiveGeneration, candidate: &Candidate) -> Decision<RouteAnswer> {
    let scope = active.scope(&candidate.event.scope).expect("the caller found the scope");
    ask_scope(scope, candidate, Basis::of(active.number)).await
}

async fn ask_scope(scope: &ActiveScope, candidate: &Candidate, mut basis: Basis) -> Decision<RouteAnswer> {
    let event = &candidate.event;
    let work = candidate.work.as_ref().map(WorkView::from);
    let view = ScopeView { name: scope.scope.name.clone(), lineage: scope.scope.lineage.clone() };
    let input = RouteInput::new(EventView::from(event), candidate.payload.clone(), view, work);
    // What the runtime itself says reaches only the routes that ask for it by name.
    let announced = event.event_type.is_core();
    for active in &scope.routes {
        if announced && !active.prepared.takes_announcement(&event.event_type) {
            continue;
        }
        if !active.prepared.ignores_work() {
            basis.work = match &candidate.work {
                Some(work) => Looked::At(work.id, work.revision),
                None => Looked::AtNone,
            };
        }
        let route = active.route.name.clone();
        match active.prepared.decide(&input).await {
            Ok(None) => {}
            Ok(Some(wants)) => {
                let binding = active.route.binding.clone();
                let (policy, fallbacks) = (active.route.active_policy, active.route.fallbacks);
                let active = WhileActive { policy, fallbacks };
                return Decision { answer: RouteAnswer::Matched { route, binding, active, wants }, basis };
            }
            Err(error) => {
                let HandlerError { code, reason, is_final } = error;
                let answer = RouteAnswer::Failed { route, code, reason, is_final };
                return Decision { answer, basis };
            }
        }
    }
    Decision { answer: RouteAnswer::Unmatched, basis }
}
