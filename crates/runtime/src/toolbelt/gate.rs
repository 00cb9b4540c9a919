//! Gates on calls: asked outside every transaction, before a call runs. One that nothing guards costs nothing more.
//!
//! *Reads* the attempt that calls, and whether it made the call before; then nobody is asked. *Decides* at the gates, in
//! their order. *Writes*, where a gate has the call wait, what the turn waits for, under the epoch in force, and not
//! the call: it did not run, and is decided again when it is made again.

use std::sync::Arc;
use std::time::Duration;

use domain::store::{Snapshot, StoreError, Tx};
use domain::text::{CallId, Code, plain};
use domain::toolbelt::{CallRefusal, Presented};
use domain::wait::Registration;
use extension::{CallDecision, CallGate, CallSubject, CallView, WorkView};

use super::{Answered, Awaited, CallError, Effect, Outcome, Proposed, Request, caller, json, known, wait};
use crate::caught::caught;
use crate::generation::ActiveGeneration;
use crate::node::Runtime;
use crate::stage;

/// The longest a gate may take over one call.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// The most bytes of a reason that are told.
const REASON_BYTES_MAX: usize = 500;

/// What a gate has a turn wait for, instead of making a call.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    gate: Code,
    reason: String,
    awaited: Awaited,
}

impl Plan {
    /// What has to be declared.
    pub(super) fn request(&self) -> Request {
        Request::Wait(self.awaited.clone())
    }
}

impl Runtime {
    /// Asks the gates about a call. None where it may run, and where it ran before.
    pub(super) async fn planned(
        &self,
        by: Presented,
        id: &CallId,
        request: &Request,
    ) -> Result<Option<Plan>, CallError> {
        let operation = request.operation();
        let guards = |gate: &&Arc<dyn CallGate>| gate.guards(operation);
        let gates: Vec<Arc<dyn CallGate>> =
            self.registry().call_gates().iter().filter(guards).cloned().collect();
        if gates.is_empty() {
            return Ok(None);
        }
        let (id, request) = (id.clone(), request.clone());
        let read = move |tx: &mut dyn Snapshot| view(tx, by, id.clone(), &request);
        let Some(call) = self.store().read("call.read", read).await? else { return Ok(None) };
        for gate in gates {
            let name = gate.name();
            let answer = tokio::select! {
                biased;
                () = self.ending().cancelled() => None,
                answer = caught(gate.decide(&call)) => answer.ok(),
                () = stage::pause(ANSWER_WITHIN) => None,
            };
            match answer {
                Some(CallDecision::Allow) => {}
                Some(CallDecision::Refuse { reason }) => {
                    let reason = plain(&reason, REASON_BYTES_MAX);
                    return Err(CallRefusal::Gate { gate: name, reason }.into());
                }
                Some(CallDecision::Wait { reason, registration }) => {
                    return Ok(Some(plan(name, &reason, registration)));
                }
                None => return Err(CallRefusal::GateSilent(name).into()),
            }
        }
        Ok(None)
    }
}

fn plan(gate: Code, reason: &str, registration: Registration) -> Plan {
    let awaited = Awaited { registration: Some(registration), watch: Vec::new() };
    Plan { gate, reason: plain(reason, REASON_BYTES_MAX), awaited }
}

/// What gates are shown of a call; none when it was made before.
fn view(
    tx: &mut dyn Snapshot,
    by: Presented,
    id: CallId,
    request: &Request,
) -> Result<Option<CallView>, CallError> {
    let execution = caller(tx, by)?;
    if tx.call(execution.id, &id)?.is_some() {
        return Ok(None);
    }
    let work = tx
        .work(execution.work)?
        .ok_or_else(|| StoreError::Corrupt { table: "execution", reason: "names no work".to_owned() })?;
    Ok(Some(CallView {
        execution: execution.id,
        keys: tx.keys_of(work.id)?,
        work: WorkView::from(&work),
        call: id,
        operation: request.operation(),
        subject: subject(request),
    }))
}

fn subject(request: &Request) -> CallSubject {
    match request {
        Request::Emit(emission) => CallSubject::Event {
            event_type: emission.event_type.clone(),
            key: emission.key.clone(),
            payload: emission.payload.clone(),
        },
        Request::Child(birth) => CallSubject::Child {
            scope: birth.scope.clone(),
            kind: birth.kind.clone(),
            binding: birth.binding.clone(),
            keys: birth.keys.clone(),
            input: birth.input.clone(),
        },
        Request::Wait(_) | Request::Progress(_) | Request::Usage(_) | Request::Acknowledge(_) => {
            CallSubject::Attempt
        }
    }
}

/// Declares what a turn waits for instead of making a call. A call that another one made meanwhile under the same id
/// is answered as it was.
pub(super) fn hold(
    tx: &mut dyn Tx,
    active: &ActiveGeneration,
    (by, id, request): (Presented, &CallId, &Request),
    (plan, proposed): (&Plan, &Proposed),
) -> Result<Outcome, CallError> {
    let execution = caller(tx, by)?;
    if let Some(answered) = known(tx, &execution, id, request)? {
        return Ok(Ok((answered, Effect::default())));
    }
    let (said, effect) = wait::declare(tx, active, &execution, (&plan.awaited, proposed))?;
    let answer = json(&serde_json::json!({
        "held": true,
        "gate": plan.gate.as_str(),
        "reason": plan.reason,
        "wait": said,
    }));
    Ok(Ok((Answered { answer, again: false, held: true }, effect)))
}
