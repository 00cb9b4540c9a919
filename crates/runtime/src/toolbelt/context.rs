//! What an attempt may know of itself: its Work, what it took in, where it stands in its chain, and how long it has.

use domain::event::{Event, Key};
use domain::execution::Execution;
use domain::id::{Sequence, WorkId};
use domain::outcome::Usage;
use domain::store::{EventFilter, StoreError};
use domain::time::Timestamp;
use domain::toolbelt::{Presented, Progress};
use domain::work::Work;

use super::{CallError, caller};
use crate::meter;
use crate::node::Runtime;
use crate::replay;

/// Inputs that are named.
const INPUTS_MAX: u32 = 256;

/// An attempt and what belongs to it, at one moment.
#[derive(Debug, Clone)]
pub struct Context {
    /// The attempt.
    pub execution: Execution,
    /// Its Work.
    pub work: Work,
    /// The Work's keys.
    pub keys: Vec<Key>,
    /// The Work whose attempt created this one.
    pub parent: Option<WorkId>,
    /// What triggered the attempt.
    pub trigger: Event,
    /// What it follows from in this turn; what it emits is caused by that.
    pub cause: Event,
    /// What it took in, in order of acceptance; the first 256.
    pub inputs: Vec<Event>,
    /// The highest sequence of what it took in.
    pub seen: Sequence,
    /// The newest accepted sequence.
    pub last: Sequence,
    /// How far it last said it had come.
    pub progress: Option<Progress>,
    /// What it reported in this turn.
    pub usage: Vec<Usage>,
    /// The moment.
    pub now: Timestamp,
}

impl Runtime {
    /// What an attempt may know of itself.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn context(&self, by: Presented) -> Result<Context, CallError> {
        self.store()
            .read("call.read", move |tx| {
                let execution = caller(tx, by)?;
                let gone = |what: &str| StoreError::Corrupt {
                    table: "execution",
                    reason: format!("names no {what}"),
                };
                let work = tx.work(execution.work)?.ok_or_else(|| gone("work"))?;
                let trigger = tx.event(execution.trigger)?.ok_or_else(|| gone("trigger"))?;
                let cause = tx.event(execution.turn.cause)?.ok_or_else(|| gone("cause"))?;
                let mut inputs = Vec::new();
                for input in tx.inputs_of(execution.id, Sequence::ZERO, INPUTS_MAX)? {
                    if let Some(event) = tx.event_at(input.sequence)? {
                        inputs.push(replay::seen(tx, event)?);
                    }
                }
                // Sequences are given out for more than Events, so the newest Event is looked up.
                let newest = tx.events(&EventFilter::default(), 1)?;
                Ok(Context {
                    keys: tx.keys_of(work.id)?,
                    parent: tx.parentage_of(work.id)?.map(|parentage| parentage.parent),
                    trigger: replay::seen(tx, trigger)?,
                    cause,
                    inputs,
                    seen: tx.last_input_of(execution.id)?.unwrap_or(Sequence::ZERO),
                    last: newest.first().map_or(Sequence::ZERO, |event| event.sequence),
                    progress: tx.progress_of(execution.id)?.map(|(progress, _at)| progress),
                    usage: meter::so_far(tx, &execution)?,
                    now: tx.now(),
                    execution,
                    work,
                })
            })
            .await
    }
}
