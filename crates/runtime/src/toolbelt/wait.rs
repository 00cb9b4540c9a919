//! Declaring what the turn waits for when it ends well. It is checked here, so that a process learns of a mistake
//! while it can still mend it, and registered with the turn's result, by the stage that completes.

use domain::alias::Subscribe;
use domain::event::Key;
use domain::execution::Execution;
use domain::id::Sequence;
use domain::outcome::TurnResult;
use domain::store::{StoreError, Tx};
use domain::text::{EventType, SubscriptionId};
use domain::toolbelt::{CallRefusal, Fingerprint, KEYS_MAX, Operation};
use domain::wait::Registration;

use super::{CallError, Effect, Proposed, declare as write};
use crate::alias::{self, SubscribeError};
use crate::generation::ActiveGeneration;
use crate::park;

/// What a turn is to wait for.
#[derive(Debug, Clone)]
pub struct Awaited {
    /// Its keys, types, boundary and timeout. None takes back what was declared before.
    pub registration: Option<Registration>,
    /// Keys of others, whose news reach the Work by a subscription.
    pub watch: Vec<Watch>,
}

/// A key of another Work, or of none, whose news the Work wants.
#[derive(Debug, Clone)]
pub struct Watch {
    /// The key.
    pub key: Key,
    /// The types that count; empty stands for any.
    pub types: Vec<EventType>,
    /// The type of the Event that tells the Work of it.
    pub becomes: EventType,
}

impl From<SubscribeError> for CallError {
    fn from(error: SubscribeError) -> Self {
        match error {
            SubscribeError::Refused(refusal) => Self::Subscribe(refusal),
            SubscribeError::Store(error) => Self::Store(error),
        }
    }
}

/// Checks and keeps what a turn is to wait for, and installs the subscriptions that it takes.
pub(super) fn declare(
    tx: &mut dyn Tx,
    active: &ActiveGeneration,
    execution: &Execution,
    (awaited, proposed): (&Awaited, &Proposed),
) -> Result<(serde_json::Value, Effect), CallError> {
    let Some(registration) = &awaited.registration else {
        write(tx, execution, |next| next.toolbelt.declared.wait = None)?;
        return Ok((serde_json::json!({ "waits": false }), Effect::default()));
    };
    if awaited.watch.len() > KEYS_MAX {
        return Err(CallRefusal::TooManyKeys.into());
    }
    let work = tx
        .work(execution.work)?
        .ok_or_else(|| StoreError::Corrupt { table: "execution", reason: "names no work".to_owned() })?;
    let asked = TurnResult::waiting(registration.clone());
    let checked = park::admit(tx, &work, execution, &asked, (proposed.wait, proposed.timer))?;
    let wait = checked?.expect("a result that waits has a Wait, or is refused");
    let mut installed = Vec::with_capacity(awaited.watch.len());
    for (watch, ids) in awaited.watch.iter().zip(proposed.aliases.chunks(domain::alias::SCAN_MAX as usize)) {
        // The Wait's first key, for whatever carries another would not end it.
        let own = wait.keys.first().ok_or(CallRefusal::NoKey)?;
        let subscribe = subscribe(execution, watch, own, wait.after);
        let (subscription, _made) = alias::install(tx, active, &subscribe, ids)?;
        installed.push(subscription.id.to_string());
    }
    write(tx, execution, |next| next.toolbelt.declared.wait = Some(Box::new(registration.clone())))?;
    let subscribed = !installed.is_empty();
    let answer = serde_json::json!({
        "waits": true,
        "keys": wait.keys,
        "types": wait.types,
        "after_sequence": wait.after,
        "timeout_seconds": registration.timeout_seconds,
        "subscriptions": installed,
    });
    Ok((answer, Effect { subscribed, ..Effect::default() }))
}

/// The subscription that a watch takes. Its name follows from its terms, so that a Work that watches the same key in
/// every turn has one.
fn subscribe(execution: &Execution, watch: &Watch, own: &Key, after: Sequence) -> Subscribe {
    let terms = format!("{watch:?} {own:?}");
    let terms = Fingerprint::of(Operation::Wait, &[terms.as_bytes()]).number().cast_unsigned();
    Subscribe {
        id: SubscriptionId::known(&format!("run/{}/{terms:016x}", execution.work)),
        work: execution.work,
        watched: watch.key.clone(),
        types: watch.types.clone(),
        own: own.clone(),
        becomes: watch.becomes.clone(),
        after,
    }
}
