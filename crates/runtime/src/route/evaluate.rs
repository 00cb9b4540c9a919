//! Asking the handlers, outside every transaction.

use domain::decision::{Basis, Decision};
use domain::route::RouteAnswer;
use domain::text::Code;
use extension::{EventView, RouteInput, ScopeView, WorkView};

use crate::generation::{ActiveGeneration, ActiveScope};
use crate::route::Candidate;
use crate::route::apply::{Item, Verdict};

/// Payloads above this many bytes are evaluated on a thread of their own, so that the stage goes on.
const INLINE_BYTES_MAX: usize = 16 << 10;

/// Asks a scope's routes in order, until one matches.
pub(super) async fn evaluate(active: &std::sync::Arc<ActiveGeneration>, candidate: Candidate) -> Item {
    let number = active.number;
    let verdict = match active.scope(&candidate.event.scope) {
        None => Verdict::Held { code: Code::known("unknown_scope") },
        Some(scope) if scope.scope.disabled => Verdict::Held { code: Code::known("scope_disabled") },
        Some(scope) if candidate.payload.as_bytes().len() <= INLINE_BYTES_MAX => {
            Verdict::Decided(ask(scope, &candidate, Basis::of(number)).await)
        }
        Some(_) => return elsewhere(std::sync::Arc::clone(active), candidate).await,
    };
    Item { candidate, generation: number, verdict }
}

/// Evaluates on the blocking pool. A handler's future is computation; it is polled to its end there.
async fn elsewhere(active: std::sync::Arc<ActiveGeneration>, candidate: Candidate) -> Item {
    let number = active.number;
    let handle = tokio::runtime::Handle::current();
    let shared = std::sync::Arc::new(candidate);
    let asked = std::sync::Arc::clone(&shared);
    let answer = tokio::task::spawn_blocking(move || {
        let scope = active.scope(&asked.event.scope).expect("the caller found the scope");
        handle.block_on(ask(scope, &asked, Basis::of(number)))
    })
    .await;
    let candidate = std::sync::Arc::into_inner(shared).expect("the task has ended");
    let decided = answer.unwrap_or_else(|_panicked| Decision {
        answer: failed(&candidate, "handler_panicked", "a handler failed by a bug of its own"),
        basis: Basis::of(number),
    });
    Item { candidate, generation: number, verdict: Verdict::Decided(decided) }
}

fn failed(candidate: &Candidate, code: &str, reason: &str) -> RouteAnswer {
    tracing::warn!(event = %candidate.event.id, code, "a handler failed");
    RouteAnswer::Failed {
        route: domain::text::RouteName::known("unknown"),
        code: Code::known(code),
        reason: reason.to_owned(),
    }
}

async fn ask(scope: &ActiveScope, candidate: &Candidate, mut basis: Basis) -> Decision<RouteAnswer> {
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
            basis.work = candidate.work.as_ref().map(|work| (work.id, work.revision));
        }
        let route = active.route.name.clone();
        match active.prepared.decide(&input).await {
            Ok(None) => {}
            Ok(Some(wants)) => {
                let binding = active.route.binding.clone();
                let policy = active.route.active_policy;
                return Decision { answer: RouteAnswer::Matched { route, binding, policy, wants }, basis };
            }
            Err(error) => {
                let answer = RouteAnswer::Failed { route, code: error.code, reason: error.reason };
                return Decision { answer, basis };
            }
        }
    }
    Decision { answer: RouteAnswer::Unmatched, basis }
}
