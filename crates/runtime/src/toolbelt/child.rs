//! Children: Works that an attempt creates below its own, each with the Event that tells of it and is its first input.

use domain::causal::Origin;
use domain::delivery::{AcceptFacts, AcceptRefusal, CORE_SOURCE, Delivery};
use domain::event::{Key, PAYLOAD_BYTES_MAX, Payload, PayloadError};
use domain::execution::Execution;
use domain::id::EventId;
use domain::input::Input;
use domain::route::{Checkpoint, CheckpointOutcome, canonical};
use domain::scope::EffectiveScope;
use domain::store::{StoreError, Tx};
use domain::succession::WORK_CREATED;
use domain::text::{BindingName, DeliveryId, EventType, ScopeName, SourceName, WorkKind};
use domain::toolbelt::{CallRefusal, Fingerprint, KEYS_MAX, Parentage};
use domain::work::{Lifecycle, Work};
use serde::Serialize;

use super::{CallError, Proposed, json};
use crate::causal::{self, Derived};
use crate::generation::ActiveGeneration;
use crate::route::apply::join_backlog_of;

/// A Work to create.
#[derive(Debug, Clone)]
pub struct Birth {
    /// Its scope; none for the attempt's own. Another one takes the right to write there.
    pub scope: Option<ScopeName>,
    /// Its kind.
    pub kind: WorkKind,
    /// The binding that runs it; none for the attempt's own.
    pub binding: Option<BindingName>,
    /// Its keys.
    pub keys: Vec<Key>,
    /// What it is to work on.
    pub input: Payload,
}

impl Birth {
    pub(super) fn fingerprint(&self, of: impl Fn(&[&[u8]]) -> Fingerprint) -> Fingerprint {
        let Self { scope, kind, binding, keys, input } = self;
        of(&[format!("{scope:?} {kind} {binding:?} {keys:?}").as_bytes(), input.as_bytes()])
    }
}

/// The body of the `core.work.created` Event of a child, without the `input` that comes last.
#[derive(Debug, Serialize)]
struct ChildCreated<'a> {
    work: domain::id::WorkId,
    parent: domain::id::WorkId,
    execution: domain::id::ExecutionId,
    kind: &'a str,
}

/// Creates a Work below an attempt's own, with its Event and its input. (TOO-7)
pub(super) fn create(
    tx: &mut dyn Tx,
    active: &ActiveGeneration,
    execution: &Execution,
    (birth, proposed): (&Birth, &Proposed),
) -> Result<Result<Vec<u8>, AcceptRefusal>, CallError> {
    let binding = birth.binding.clone().unwrap_or_else(|| execution.binding.clone());
    let home = birth.scope.as_ref().unwrap_or(&execution.scope);
    let may_write = |own: &EffectiveScope| own.may_write(home);
    if !active.scope(&execution.scope).is_some_and(|active| may_write(&active.scope)) {
        let (from, scope) = (execution.scope.clone(), home.clone());
        return Err(CallRefusal::ScopeNotWritable { from, scope }.into());
    }
    let scope = active.scope(home).map(|active| &active.scope);
    if !scope.is_some_and(|scope| scope.bindings.contains_key(&binding)) {
        return Err(CallRefusal::UnknownBinding(binding).into());
    }
    if birth.keys.len() > KEYS_MAX {
        return Err(CallRefusal::TooManyKeys.into());
    }
    let keys = canonical(birth.keys.clone());
    for key in &keys {
        if key.source.is_core() {
            return Err(CallRefusal::ReservedSource.into());
        }
        if tx.key_owner(key)?.is_some() {
            return Err(CallRefusal::KeyTaken.into());
        }
    }
    let now = tx.now();
    let work = Work::create(proposed.work, home.clone(), birth.kind.clone(), Lifecycle::Once, now);
    let delivery = delivery(execution, &work, birth, proposed.event)?;
    let facts = AcceptFacts {
        target: Some(work.clone()),
        parent: tx.event(execution.turn.cause)?,
        ..AcceptFacts::new(active.bounds(home))
    };
    let event = match causal::derive(tx, &delivery, &facts)? {
        Derived::Accepted(event) => event,
        Derived::Refused(refusal) => return Ok(Err(refusal)),
        Derived::Duplicate => {
            return Err(StoreError::Conflict { what: "a child that is both there and not" }.into());
        }
    };
    tx.insert_work(&work)?;
    tx.insert_parentage(&Parentage { child: work.id, parent: execution.work, execution: execution.id })?;
    let checkpoint = Checkpoint {
        sequence: event.sequence,
        event: event.id,
        outcome: CheckpointOutcome::Routed,
        route: None,
        policy: None,
        work: Some(work.id),
        generation: active.number,
        code: None,
        reason: None,
        at: now,
    };
    for key in &keys {
        tx.attach_key(key, work.id)?;
        join_backlog_of(tx, key, &checkpoint, (&work.scope, &binding))?;
    }
    let (sequence, id) = (event.sequence, event.id);
    tx.insert_input(&Input { work: work.id, sequence, event: id, binding, consumed_by: None })?;
    tx.insert_checkpoint(&checkpoint)?;
    Ok(Ok(json(&serde_json::json!({ "work": work.id, "event": id, "sequence": sequence }))))
}

/// The Event that tells of a child. What the child is to work on is copied as it was written.
fn delivery(execution: &Execution, work: &Work, birth: &Birth, id: EventId) -> Result<Delivery, CallError> {
    let head = ChildCreated {
        work: work.id,
        parent: execution.work,
        execution: execution.id,
        kind: birth.kind.as_str(),
    };
    let mut body = serde_json::to_vec(&head).expect("a struct of plain values is JSON");
    assert_eq!(body.pop(), Some(b'}'), "a struct with fields becomes an object");
    body.extend_from_slice(br#","input":"#);
    body.extend_from_slice(birth.input.as_bytes());
    body.push(b'}');
    if body.len() > PAYLOAD_BYTES_MAX {
        return Err(CallRefusal::TooLarge(PayloadError::TooLarge).into());
    }
    Ok(Delivery {
        id,
        source: SourceName::known(CORE_SOURCE),
        delivery_id: DeliveryId::known(&format!("created/{}", work.id)),
        event_type: EventType::known(WORK_CREATED),
        scope: work.scope.clone(),
        key: None,
        work: Some(work.id),
        occurred_at: None,
        payload: Payload::stored(body),
        origin: Origin::Derived { parent: execution.turn.cause, emitted_by: Some(execution.id) },
    })
}
