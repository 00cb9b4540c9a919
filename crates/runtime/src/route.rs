//! Routing: from an accepted Event to its checkpoint.
//!
//! *Reads* Events that may be routed, outside a transaction, and asks the handlers. *Decides* in
//! `domain::route` and `domain::lane`, inside one, after revalidating what the answers rest on. *Writes*
//! Works, keys, input and checkpoints together, or the block of a lane that could not go on. *Afterwards*
//! hints scheduling.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use domain::event::{Event, Payload};
use domain::id::{EventId, Sequence, WorkId};
use domain::lane::LaneId;
use domain::ownership::Tenure;
use domain::store::{Snapshot, StoreError, Tx, Unrouted};
use domain::time::Timestamp;
use domain::work::Work;
use tokio::sync::mpsc;

use crate::node::Runtime;
use crate::replay;
use crate::stage::{self, Chain, Progress, Stage, StageError};

pub(crate) mod apply;
pub(crate) mod evaluate;
pub(crate) mod reopen;
mod waited;

use apply::{Applied, Item};
use evaluate::Asked;

/// How soon a step looks again for what was due and could not be done.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// The most Events whose handlers are asked at a time; the next ones wait for an answer to come in.
const ASKED_MAX: usize = 1024;

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
    /// An id for what bridges from it to a turn that it may wake.
    pub(crate) woken: EventId,
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
        while items.len() < self.runtime.batch() as usize
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
            if self.asked.len() >= ASKED_MAX {
                break;
            }
            let (proposed, woken) =
                self.runtime.store().ids(|maker, now| (maker.work(now), maker.event(now)));
            let sequence = event.sequence;
            let candidate = Candidate { event, payload, lane, work, proposed, woken };
            match evaluate::evaluate(&self.runtime, &active, candidate).await {
                Asked::Now(item) => items.push(*item),
                Asked::Later(answer) => {
                    self.asked.insert(sequence);
                    let (send, runtime) = (self.answer.clone(), self.runtime.clone());
                    self.runtime.spawn(async move {
                        // Without a receiver the stage has ended, and the Event is asked about again.
                        tokio::select! {
                            biased;
                            () = runtime.ending().cancelled() => {}
                            item = answer => drop(send.send(item)),
                        }
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
        let Some(tenure) = self.runtime.tenure() else { return Ok(Progress::Idle { due_at: None }) };
        let asked = self.asked.clone();
        let active = self.runtime.generations().active();
        let way = Way { batch: self.runtime.batch(), shows_work: active.shows_work() };
        let found = self.runtime.store().read("route.read", move |tx| read(tx, &asked, way)).await?;
        let (next_due, crowded) = (found.next_due, found.crowded);
        let items: Arc<[Item]> = self.items(found.events).await.into();
        if items.is_empty() {
            return Ok(Progress::Idle { due_at: next_due });
        }
        let applied = match self.apply(tenure, Arc::clone(&items), crowded).await {
            Err(error) if stage::is_of_an_item(&error) => self.apply_each(tenure, &items, crowded).await?,
            applied => applied?,
        };
        self.afterwards(&applied);
        let runtime = &self.runtime;
        if applied.stale > 0
            && let Err(error) = runtime.generations().load(runtime.store()).await
        {
            tracing::warn!(error = %Chain(&error), "the newest generation cannot be used");
        }
        if applied.moved() {
            return Ok(Progress::Advanced);
        }
        if applied.stale == 0 {
            return Ok(Progress::Idle { due_at: next_due });
        }
        // What went stale is asked again: now, or when the configuration in force may be usable.
        Ok(if applied.generation == Some(runtime.generations().active().number) {
            Progress::Advanced
        } else {
            Progress::Idle { due_at: Some(runtime.store().now().after(LOOK_AGAIN)) }
        })
    }
}

impl Route {
    async fn apply(&self, tenure: Tenure, items: Arc<[Item]>, crowded: bool) -> Result<Applied, StoreError> {
        let active = self.runtime.generations().active();
        let body = move |tx: &mut dyn Tx| apply::apply(tx, &active, &items, crowded);
        self.runtime.transact_owned("route", tenure, body).await
    }

    /// The same in a transaction for each, so that one that fails by a bug of ours is set aside by itself.
    async fn apply_each(&self, tenure: Tenure, items: &[Item], crowded: bool) -> Result<Applied, StoreError> {
        let mut all = Applied::default();
        for item in items {
            let one: Arc<[Item]> = Arc::from([item.clone()]);
            let applied = match self.apply(tenure, Arc::clone(&one), crowded).await {
                Err(error) if stage::is_of_an_item(&error) => {
                    let event = item.candidate.event.id;
                    tracing::error!(%event, error = %Chain(&error), "an event cannot be routed");
                    let active = self.runtime.generations().active();
                    let broke = move |tx: &mut dyn Tx| apply::broke(tx, &active, &one[0], &error);
                    self.runtime.transact_owned("route", tenure, broke).await?
                }
                applied => applied?,
            };
            all.add(applied);
        }
        Ok(all)
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
        if applied.ordered > 0 {
            runtime.hints().dispatch.notify_one();
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
    /// There may be more candidates than were read.
    crowded: bool,
}

/// How much is read, and whether any handler wants to see an Event's Work.
#[derive(Clone, Copy)]
struct Way {
    batch: u32,
    shows_work: bool,
}

/// Reads what may be routed, but for those whose handlers are being asked: however many they are, they must not
/// hide the others.
fn read(tx: &mut dyn Snapshot, asked: &BTreeSet<Sequence>, way: Way) -> Result<Found, StoreError> {
    let now = tx.now();
    let batch = way.batch as usize;
    let rows = way.batch + u32::try_from(asked.len()).expect("bounded by what is asked at once");
    let free = |sequence: &Sequence| !asked.contains(sequence);
    let due = tx.due_blocks(now, rows)?.into_iter().map(|block| block.head);
    let due: Vec<Sequence> = due.filter(free).take(batch).collect();
    let candidates = tx.route_candidates(rows)?.into_iter();
    let candidates: Vec<Unrouted> =
        candidates.filter(|candidate| free(&candidate.sequence)).take(batch).collect();
    let crowded = candidates.len() == batch;
    let mut lanes: BTreeMap<Sequence, LaneId> =
        candidates.iter().map(|candidate| (candidate.sequence, candidate.lane)).collect();
    for head in due {
        if let Some(unrouted) = tx.unrouted(head)? {
            lanes.insert(head, unrouted.lane);
        }
    }
    let mut events = Vec::with_capacity(lanes.len());
    for (sequence, lane) in lanes {
        let Some(event) = tx.event_at(sequence)? else {
            return Err(StoreError::Corrupt { table: "unrouted", reason: "names no event".to_owned() });
        };
        let event = replay::seen(tx, event)?;
        let payload = tx.payload(sequence)?.unwrap_or_else(Payload::null);
        let work = if way.shows_work { apply::work_of(tx, &event)? } else { None };
        events.push((event, payload, lane, work));
    }
    // What is due and cannot be done is being asked about, and rings when it is answered.
    let next_due = tx.next_block_due()?.map(|due| if due > now { due } else { now.after(LOOK_AGAIN) });
    Ok(Found { events, next_due, crowded })
}
