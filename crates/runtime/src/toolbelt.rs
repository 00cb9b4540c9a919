//! The toolbelt: what the process of a running attempt asks for while it runs.
//!
//! *Reads* the attempt that a token is for, and the call that its caller made under the same id before. *Decides* in
//! `domain::toolbelt` and where the effect belongs. *Writes* the effect and the answer in one transaction, so that a
//! call whose answer was lost is made again without a second effect. *Afterwards* hints whoever goes on from there.
//!
//! A refusal is an answer, and nothing of it is kept, but for what the bounds of a chain refuse, which is recorded.

use std::borrow::Cow;

use domain::alias::{SCAN_MAX, SubscribeRefusal};
use domain::budget::meter as metering;
use domain::delivery::AcceptRefusal;
use domain::execution::Execution;
use domain::id::{EventId, ExecutionId, TimerId, WaitId, WorkId};
use domain::outcome::{TurnResult, Usage};
use domain::store::{Priority, StoreError, Tx};
use domain::text::CallId;
use domain::toolbelt::{CALLS_MAX, Call, CallRefusal, Fingerprint, Operation, Presented, Progress, settled};
use domain::wait::WaitRefusal;
use thiserror::Error;

use crate::budget::Proposed as Crossings;
use crate::generation::ActiveGeneration;
use crate::meter::{self, Counted, LEDGERS_OF_A_REPORT, MeterError};
use crate::node::Runtime;

mod token;
mod context;
mod emit;
mod wait;
mod child;
mod input;
mod gate;

pub use child::Birth;
pub use context::Context;
pub use emit::Emission;
pub use input::Offered;
pub use token::{NoTokens, TokenSource};
pub use wait::{Awaited, Watch};

pub(crate) use token::new_token;

/// What a call asks for.
#[derive(Debug, Clone)]
pub enum Request {
    /// To accept an Event on the attempt's chain.
    Emit(Emission),
    /// To have the turn end in a Wait, if it ends well.
    Wait(Awaited),
    /// To create a Work below the attempt's own.
    Child(Birth),
    /// To show how far the attempt has come.
    Progress(Progress),
    /// To add to what the turn used.
    Usage(Vec<Usage>),
    /// To take note that an injected Event was taken in.
    Acknowledge(EventId),
}

impl Request {
    const fn operation(&self) -> Operation {
        match self {
            Self::Emit(_) => Operation::Emit,
            Self::Wait(_) => Operation::Wait,
            Self::Child(_) => Operation::Child,
            Self::Progress(_) => Operation::Progress,
            Self::Usage(_) => Operation::Usage,
            Self::Acknowledge(_) => Operation::Acknowledge,
        }
    }

    fn fingerprint(&self) -> Fingerprint {
        let of = |parts: &[&[u8]]| Fingerprint::of(self.operation(), parts);
        match self {
            Self::Emit(emission) => emission.fingerprint(of),
            Self::Wait(awaited) => of(&[format!("{awaited:?}").as_bytes()]),
            Self::Child(birth) => birth.fingerprint(of),
            Self::Progress(progress) => of(&[format!("{progress:?}").as_bytes()]),
            Self::Usage(usage) => of(&[format!("{usage:?}").as_bytes()]),
            Self::Acknowledge(event) => of(&[&event.number().to_be_bytes()]),
        }
    }
}

/// What a call was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// The answer, as JSON.
    pub answer: Vec<u8>,
    /// Whether the call had been made before; then nothing new happened.
    pub again: bool,
    /// Whether a gate has it wait: it did not run, and the turn waits for what the answer says.
    pub held: bool,
}

/// Why a call had no effect.
#[derive(Debug, Error)]
pub enum CallError {
    /// It may not be made, or not like that.
    #[error(transparent)]
    Refused(#[from] CallRefusal),
    /// The Event it would emit is not accepted. A refusal of its chain is on record.
    #[error(transparent)]
    Unaccepted(#[from] AcceptRefusal),
    /// The turn may not wait for that.
    #[error(transparent)]
    Wait(#[from] WaitRefusal),
    /// It may not learn of that.
    #[error(transparent)]
    Subscribe(#[from] SubscribeRefusal),
    /// The store failed. The same call may be made again.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl CallError {
    /// The stable word for this error.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Refused(refusal) => refusal.code(),
            Self::Unaccepted(refusal) => refusal.code(),
            Self::Wait(_) => crate::park::INVALID_WAIT,
            Self::Subscribe(refusal) => refusal.code(),
            Self::Store(error) => error.code(),
        }
    }
}

/// Ids that a call may need.
#[derive(Debug, Clone)]
struct Proposed {
    event: EventId,
    work: WorkId,
    wait: WaitId,
    timer: TimerId,
    aliases: Vec<EventId>,
}

/// What an effect leaves to do, once it is committed.
#[derive(Debug, Default)]
struct Effect {
    /// What counting use came to, and whose it was.
    counted: Option<(ExecutionId, Counted)>,
    accepted: bool,
    subscribed: bool,
    created: bool,
}

/// What a call's transaction came to. A refusal by a chain leaves its record, so it commits.
type Outcome = Result<(Answered, Effect), AcceptRefusal>;

impl Runtime {
    /// Makes a call of an attempt's process. Made again under its id it answers the same and does nothing more.
    /// (TOO-1, TOO-4, TOO-5)
    ///
    /// # Errors
    /// [`CallError`]; then nothing has changed but what is kept of a causal refusal.
    pub async fn call(&self, by: Presented, id: CallId, request: Request) -> Result<Answered, CallError> {
        let plan = self.planned(by, &id, &request).await?;
        let proposed = match &plan {
            Some(plan) => self.propose_call(&plan.request()),
            None => self.propose_call(&request),
        };
        let ledgers = match &request {
            Request::Usage(_) => LEDGERS_OF_A_REPORT,
            Request::Emit(_)
            | Request::Wait(_)
            | Request::Child(_)
            | Request::Progress(_)
            | Request::Acknowledge(_) => 0,
        };
        let body =
            move |tx: &mut dyn Tx, active: &ActiveGeneration, crossings: &mut Crossings<'_>| match &plan {
                Some(plan) => gate::hold(tx, active, (by, &id, &request), (plan, &proposed)),
                None => make(tx, active, by, &id, (&request, &proposed, crossings)),
            };
        let outcome = self.under_newest((Priority::Normal, "call"), ledgers, body).await?;
        self.hints().committed();
        let (answered, effect) = outcome?;
        if let Some((run, counted)) = effect.counted {
            self.reported(run, counted);
        }
        if effect.accepted {
            self.metrics().accepted.inc();
            self.hints().accepted();
        }
        if effect.subscribed {
            self.subscribed();
        }
        if effect.created {
            self.hints().schedule.notify_one();
        }
        Ok(answered)
    }

    /// Checks that a token speaks for an attempt now.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn admit(&self, by: Presented) -> Result<(), CallError> {
        self.store().read("call.read", move |tx| caller(tx, by).map(|_execution| ())).await
    }

    fn propose_call(&self, request: &Request) -> Proposed {
        let watched = match request {
            Request::Wait(awaited) => awaited.watch.len(),
            Request::Emit(_)
            | Request::Child(_)
            | Request::Progress(_)
            | Request::Usage(_)
            | Request::Acknowledge(_) => 0,
        };
        self.store().ids(|maker, now| Proposed {
            event: maker.event(now),
            work: maker.work(now),
            wait: maker.wait(now),
            timer: maker.timer(now),
            aliases: (0..watched * SCAN_MAX as usize).map(|_| maker.event(now)).collect(),
        })
    }
}

/// The attempt that a token speaks for.
fn caller(tx: &mut dyn domain::store::Snapshot, by: Presented) -> Result<Execution, CallError> {
    let execution = tx.execution(by.execution)?.ok_or(CallRefusal::UnknownToken)?;
    execution.admit(by, tx.now())?;
    Ok(execution)
}

/// What a call was answered that its attempt made before under this id.
fn known(
    tx: &mut dyn Tx,
    execution: &Execution,
    id: &CallId,
    request: &Request,
) -> Result<Option<Answered>, CallError> {
    let Some(known) = tx.call(execution.id, id)? else { return Ok(None) };
    if known.request != request.fingerprint() {
        return Err(CallRefusal::Reused.into());
    }
    Ok(Some(Answered { answer: known.answer, again: true, held: false }))
}

fn make(
    tx: &mut dyn Tx,
    active: &ActiveGeneration,
    by: Presented,
    id: &CallId,
    (request, proposed, crossings): (&Request, &Proposed, &mut Crossings<'_>),
) -> Result<Outcome, CallError> {
    let execution = caller(tx, by)?;
    if let Some(answered) = known(tx, &execution, id, request)? {
        return Ok(Ok((answered, Effect::default())));
    }
    let number = tx.calls_made(execution.id)? + 1;
    if number > CALLS_MAX {
        return Err(CallRefusal::TooMany.into());
    }
    let done = match request {
        Request::Emit(emission) => {
            match emit::emit(tx, active, &execution, id, (emission, proposed.event))? {
                Ok(answer) => (answer, Effect { accepted: true, ..Effect::default() }),
                Err(refusal) => return Ok(Err(refusal)),
            }
        }
        Request::Wait(awaited) => {
            let (said, effect) = wait::declare(tx, active, &execution, (awaited, proposed))?;
            (json(&said), effect)
        }
        Request::Child(birth) => match child::create(tx, active, &execution, (birth, proposed))? {
            Ok(answer) => (answer, Effect { created: true, ..Effect::default() }),
            Err(refusal) => return Ok(Err(refusal)),
        },
        Request::Progress(progress) => {
            let now = tx.now();
            tx.put_progress(execution.id, progress, now)?;
            (
                json(&serde_json::json!({ "text": progress.text, "percent": progress.percent })),
                Effect::default(),
            )
        }
        Request::Usage(usage) => used(tx, active, (&execution, number), usage, crossings)?,
        Request::Acknowledge(event) => (input::acknowledge(tx, &execution, *event)?, Effect::default()),
    };
    let (answer, effect) = done;
    tx.insert_call(&Call {
        execution: execution.id,
        id: id.clone(),
        number,
        operation: request.operation(),
        request: request.fingerprint(),
        answer: answer.clone(),
        at: tx.now(),
    })?;
    Ok(Ok((Answered { answer, again: false, held: false }, effect)))
}

/// Counts what a turn reports of its use at once, and answers what it has used so far and how its budgets stand. The
/// call's number names the report, so that it counts as often as the call has its effect: once. (TOO-10)
fn used(
    tx: &mut dyn Tx,
    active: &ActiveGeneration,
    (execution, number): (&Execution, i64),
    usage: &[Usage],
    crossings: &mut Crossings<'_>,
) -> Result<(Vec<u8>, Effect), CallError> {
    let amounts = metering::amounts(usage).map_err(CallRefusal::from)?;
    let (report, attempt) = (metering::report_of_call(number), (execution.id, execution.epoch));
    let counted = meter::count(tx, active, attempt, (&report, &amounts), crossings)?;
    let total = metering::of_whole_turn(&[], &tx.metered(execution.id)?);
    let answer = json(&serde_json::json!({
        "turn": execution.turn.number,
        "usage": total,
        "warnings": counted.answer.warnings,
        "exceeded": counted.answer.exceeded,
    }));
    Ok((answer, Effect { counted: Some((execution.id, counted)), ..Effect::default() }))
}

impl From<MeterError> for CallError {
    fn from(error: MeterError) -> Self {
        match error {
            MeterError::Unknown(_) => CallRefusal::UnknownToken.into(),
            MeterError::Fenced(fenced) => CallRefusal::Fenced(fenced).into(),
            MeterError::Refused(refusal) => CallRefusal::from(refusal).into(),
            MeterError::Store(error) => error.into(),
        }
    }
}

/// Writes what an attempt has declared, when that is new.
fn declare(
    tx: &mut dyn Tx,
    execution: &Execution,
    change: impl FnOnce(&mut Execution),
) -> Result<(), StoreError> {
    let mut next = execution.clone();
    change(&mut next);
    if next == *execution { Ok(()) } else { tx.update_execution(&next, execution) }
}

fn json(value: &serde_json::Value) -> Vec<u8> {
    serde_json::to_vec(value).expect("a value of plain data is JSON")
}

/// What a turn's result is, with what its calls said of it. A turn that made none costs no read.
///
/// # Errors
/// [`StoreError`].
pub(crate) fn told<'r>(
    tx: &mut dyn Tx,
    execution: &Execution,
    result: &'r TurnResult,
) -> Result<Cow<'r, TurnResult>, StoreError> {
    let declared = &execution.toolbelt.declared;
    if declared.is_empty() {
        return Ok(Cow::Borrowed(result));
    }
    let mut told = settled(result.clone(), declared);
    if declared.acknowledged {
        let most = u32::try_from(TurnResult::CONSUMED_MAX).unwrap_or(u32::MAX);
        for event in tx.acknowledged_by(execution.id, most)? {
            if !told.consumed_inputs.contains(&event) {
                told.consumed_inputs.push(event);
            }
        }
    }
    Ok(Cow::Owned(told))
}
