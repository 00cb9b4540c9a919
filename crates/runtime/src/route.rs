//! Routing: from an accepted Event to its checkpoint.
//!
//! *Reads* Events that may be routed, outside a transaction, and asks the handlers. *Decides* in
//! `domain::route` and `domain::lane`, inside one, after revalidating what the answers rest on. *Writes*
//! Works, keys, input and checkpoints together, or the block of a lane that could not go on. *Afterwards*
//! hints scheduling.

use std::collections::BTreeSet;
use std::sync::Arc;

use domain::event::{Event, Payload};
use domain::id::{IdMaker, Sequence, WorkId};
use domain::lane::LaneId;
use domain::store::{Snapshot, StoreError};
use domain::time::Timestamp;
use domain::work::Work;
use tokio::sync::mpsc;

use crate::node::Runtime;
use crate::stage::{BATCH, Progress, Stage, StageError};

pub(crate) mod apply;
pub(crate) mod evaluate;

use apply::{Applied, Item};
use evaluate::Asked;

/// The routing stage.
#[derive(Debug)]
pub struct Route {
    runtime: Runtime,
    /// Events whose handlers have yet to answer.
    asked: BTreeSet<Sequence>,
    answers: mpsc::UnboundedReceiver<Item>,
    answer: mpsc::UnboundedSender<Item>,
}

/// An Event to route, as it was read.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    pub(crate) event: Event,
    pub(crate) payload: Payload,
    pub(crate) lane: LaneId,
    /// The Work it is addressed to or whose key it carries.
    pub(crate) work: Option<Work>,
    /// An id for a Work it may create.
    pub(crate) proposed: WorkId,
}

impl Route {
    pub(crate) fn new(runtime: Runtime) -> Self {
        let (answer, answers) = mpsc::unbounded_channel();
        Self { runtime, asked: BTreeSet::new(), answers, answer }
    }

    /// Asks the handlers about what was read, and takes the answers that have come in.
    async fn items(&mut self, found: Vec<Read>) -> Vec<Item> {
        let active = self.runtime.generations().active();
        let mut items = Vec::with_capacity(found.len());
        while items.len() < BATCH as usize
            && let Ok(item) = self.answers.try_recv()
        {
            self.asked.remove(&item.candidate.event.sequence);
            items.push(item);
        }
        let answered: BTreeSet<_> = items.iter().map(|item| item.candidate.event.sequence).collect();
        for (event, payload, lane, work) in found {
            if self.asked.contains(&event.sequence) || answered.contains(&event.sequence) {
                continue;
            }
            let proposed = self.runtime.store().ids(IdMaker::work);
            let sequence = event.sequence;
            let candidate = Candidate { event, payload, lane, work, proposed };
            match evaluate::evaluate(&self.runtime, &active, candidate).await {
                Asked::Now(item) => items.push(*item),
                Asked::Later(answer) => {
                    self.asked.insert(sequence);
                    let (send, runtime) = (self.answer.clone(), self.runtime.clone());
                    self.runtime.spawn(async move {
                        // Without a receiver the stage has ended, and the Event is asked about again.
                        drop(send.send(answer.await));
                        runtime.hints().route.notify_one();
                    });
                }
            }
        }
        items.sort_by_key(|item| item.candidate.event.sequence);
        items
    }
}

impl Stage for Route {
    fn name(&self) -> &'static str {
        "route"
    }

    async fn step(&mut self) -> Result<Progress, StageError> {
        let found = self.runtime.store().read("route.read", read).await?;
        let items: Arc<[Item]> = self.items(found.events).await.into();
        if items.is_empty() {
            return Ok(Progress::Idle { due_at: found.next_due });
        }
        let runtime = &self.runtime;
        let applied = runtime.store().transact("route", move |tx| apply::apply(tx, &items)).await?;
        self.afterwards(&applied);
        if applied.stale > 0
            && let Err(error) = runtime.generations().load(runtime.store()).await
        {
            tracing::warn!(error = %crate::stage::Chain(&error), "the newest generation cannot be used");
        }
        Ok(if applied.moved() { Progress::Advanced } else { Progress::Idle { due_at: found.next_due } })
    }
}

impl Route {
    fn afterwards(&self, applied: &Applied) {
        let runtime = &self.runtime;
        for outcome in &applied.outcomes {
            crate::metrics::count(&runtime.metrics().routed, outcome.as_str());
        }
        runtime.metrics().route_failures.inc_by(applied.blocked);
        if applied.queued {
            runtime.hints().schedule.notify_one();
        }
        // A completion may have waited for one of these lanes.
        runtime.hints().complete.notify_one();
        runtime.hints().committed();
    }
}

/// An Event with what asking about it needs.
type Read = (Event, Payload, LaneId, Option<Work>);

struct Found {
    events: Vec<Read>,
    next_due: Option<Timestamp>,
}

fn read(tx: &mut dyn Snapshot) -> Result<Found, StoreError> {
    let now = tx.now();
    let mut sequences: Vec<Sequence> = Vec::new();
    for block in tx.due_blocks(now, BATCH)? {
        sequences.push(block.head);
    }
    for candidate in tx.route_candidates(BATCH)? {
        sequences.push(candidate.sequence);
    }
    sequences.sort_unstable();
    sequences.dedup();
    let mut events = Vec::with_capacity(sequences.len());
    for sequence in sequences {
        let Some(unrouted) = tx.unrouted(sequence)? else { continue };
        let Some(event) = tx.event_at(sequence)? else {
            return Err(StoreError::Corrupt { table: "unrouted", reason: "names no event".to_owned() });
        };
        let payload = tx.payload(sequence)?.unwrap_or_else(Payload::null);
        let work = match (event.work, &event.key) {
            (Some(work), _) => Some(work),
            (None, Some(key)) => tx.key_owner(key)?,
            (None, None) => None,
        };
        let work = match work {
            Some(work) => tx.work(work)?,
            None => None,
        };
        events.push((event, payload, unrouted.lane, work));
    }
    Ok(Found { events, next_due: tx.next_block_due()? })
}
