//! Recurring: from a recurring timer that is due to the Event it publishes, and from what is configured to the timers
//! that there are.
//!
//! *Reads* what is due, and at times what there is. *Asks*, outside every transaction, the recurrence of its entry.
//! *Decides* in `domain::recurrence` whether the answer still holds. *Writes* the Event, the firing's record and the
//! rearmed timer together, so that a crash leaves all of it or nothing, and a firing that is repeated changes nothing.
//! *Afterwards* hints routing.
//!
//! What is configured is compared with what is armed at a start, after each apply, and every minute when the number of
//! timers is not what was left. The store's clock doesn't go back within a process, so a clock that was set back is
//! found at a start.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use domain::causal::Origin;
use domain::delivery::{Acceptance, Delivery};
use domain::event::{Key, Payload};
use domain::id::{EventId, Generation, IdMaker, TimerId};
use domain::ownership::Tenure;
use domain::recurrence::{Arming, Firing, Recurrence};
use domain::store::{Snapshot, StoreError, Tx};
use domain::text::{EntryName, ScopeName};
use domain::time::Timestamp;
use extension::{Armed, Ensured, Passed};
use serde::Serialize;

use crate::accept::{self, AcceptError};
use crate::generation::{ActiveGeneration, ActiveRecurrences, Generations};
use crate::node::Runtime;
use crate::stage::{self, Chain, Progress, Stage, StageError};

/// How often the timers that there are are counted again.
const REPAIR_AFTER: Duration = Duration::from_mins(1);

/// How long a timer rests that is due and could not fire.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// The recurring stage.
#[derive(Debug)]
pub struct Recur {
    runtime: Runtime,
    ensured: Option<Repaired>,
}

/// What the last look at all timers left.
#[derive(Debug, Clone, Copy)]
struct Repaired {
    generation: Generation,
    count: u64,
    again_at: Timestamp,
}

/// What a firing ran and passed over, as history has it.
#[derive(Debug, Serialize)]
struct Told<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    ran: Option<&'a str>,
    late_seconds: u64,
    #[serde(skip_serializing_if = "<[Passed]>::is_empty")]
    missed: &'a [Passed],
}

/// A timer that is due, and the answer to it.
#[derive(Debug, Clone)]
struct Asked {
    read: Recurrence,
    answer: extension::Firing,
    proposed: EventId,
}

/// A change to the timers that there are.
#[derive(Debug, Clone)]
enum Change {
    Insert(Recurrence),
    Update { next: Recurrence, read: Recurrence },
    Delete(Recurrence),
}

type Wanted = BTreeMap<(ScopeName, Key), WantedPart>;

/// A part as it is configured.
#[derive(Debug)]
struct WantedPart {
    entry: EntryName,
    rests: bool,
    recurrences: Arc<ActiveRecurrences>,
    part: usize,
}

impl Recur {
    pub(crate) const fn new(runtime: Runtime) -> Self {
        Self { runtime, ensured: None }
    }
}

impl Stage for Recur {
    fn name(&self) -> &'static str {
        "recur"
    }

    async fn step(&mut self) -> Result<Progress, StageError> {
        let Some(tenure) = self.runtime.tenure() else {
            // Whoever owns the loops next looks at everything again.
            self.ensured = None;
            return Ok(Progress::Idle { due_at: None });
        };
        if !self.runtime.registry().recurs() {
            return Ok(Progress::Idle { due_at: None });
        }
        let active = self.runtime.generations().active();
        if self.is_to_be_ensured(&active).await? && self.ensure(tenure, &active).await? {
            return Ok(Progress::Advanced);
        }
        let batch = self.runtime.batch();
        let read = move |tx: &mut dyn Snapshot| {
            let now = tx.now();
            Ok::<_, StoreError>((now, tx.due_recurrences(now, batch)?, tx.next_recurrence_due()?))
        };
        let (now, due, next) = self.runtime.store().read("recur.read", read).await?;
        let again_at = self.ensured.map(|ensured| ensured.again_at);
        // What is due and yet could not fire is asked for again after a while.
        let next = next.map(|next| if next <= now { now.after(ASK_AGAIN_AFTER) } else { next });
        let idle = Progress::Idle { due_at: [next, again_at].into_iter().flatten().min() };
        let asked: Vec<Asked> =
            due.into_iter().filter_map(|timer| ask(&self.runtime, &active, timer, now)).collect();
        if asked.is_empty() {
            return Ok(idle);
        }
        let fired = match self.fire(tenure, &active, asked.clone()).await {
            Err(error) if stage::is_of_an_item(&error) => self.fire_each(tenure, &active, asked).await?,
            fired => fired?,
        };
        if fired == 0 {
            return Ok(idle);
        }
        self.runtime.metrics().timers_fired.inc_by(fired);
        self.runtime.hints().accepted();
        self.runtime.hints().committed();
        Ok(Progress::Advanced)
    }
}

impl Recur {
    async fn fire(
        &self,
        tenure: Tenure,
        active: &Arc<ActiveGeneration>,
        asked: Vec<Asked>,
    ) -> Result<u64, StoreError> {
        let active = Arc::clone(active);
        self.runtime
            .transact_owned("recur", tenure, move |tx| {
                if Generations::is_behind(tx, &active)? {
                    return Ok(0);
                }
                let mut fired = 0;
                for asked in &asked {
                    fired += u64::from(fire(tx, &active, asked)?);
                }
                Ok(fired)
            })
            .await
    }

    /// The same in a transaction for each, so that one that cannot be fired keeps no other from firing.
    async fn fire_each(
        &self,
        tenure: Tenure,
        active: &Arc<ActiveGeneration>,
        asked: Vec<Asked>,
    ) -> Result<u64, StoreError> {
        let mut fired = 0;
        for one in asked {
            let timer = one.read.id;
            match self.fire(tenure, active, vec![one]).await {
                Ok(one) => fired += one,
                Err(error) if stage::is_of_an_item(&error) => {
                    tracing::error!(%timer, error = %Chain(&error), "a recurring timer cannot be fired");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(fired)
    }

    /// Whether what is configured has to be compared with what is armed.
    async fn is_to_be_ensured(&mut self, active: &ActiveGeneration) -> Result<bool, StoreError> {
        let Some(ensured) = self.ensured.filter(|ensured| ensured.generation == active.number) else {
            return Ok(true);
        };
        let now = self.runtime.store().now();
        if now < ensured.again_at {
            return Ok(false);
        }
        let count = self.runtime.store().read("recur.count", |tx| tx.count_recurrences()).await?;
        if count != ensured.count {
            return Ok(true);
        }
        self.ensured = Some(Repaired { again_at: now.after(REPAIR_AFTER), ..ensured });
        Ok(false)
    }

    /// Arms, rearms and disarms. True when something changed, so that there may be more.
    async fn ensure(&mut self, tenure: Tenure, active: &Arc<ActiveGeneration>) -> Result<bool, StoreError> {
        let wanted = wanted(active);
        let (changes, count, now) = self.changes(wanted).await?;
        if changes.is_empty() {
            let again_at = now.after(REPAIR_AFTER);
            self.ensured = Some(Repaired { generation: active.number, count, again_at });
            return Ok(false);
        }
        let mut written = 0;
        for batch in changes.chunks(self.runtime.batch() as usize) {
            let (active, batch) = (Arc::clone(active), batch.to_vec());
            let apply = move |tx: &mut dyn Tx| {
                if Generations::is_behind(tx, &active)? {
                    return Ok(0);
                }
                // What fired or was armed meanwhile is looked at again in the next step.
                let mut written = 0_u64;
                for change in &batch {
                    written += u64::from(match change {
                        Change::Insert(timer) => tx.insert_recurrence(timer)?,
                        Change::Update { next, read } => tx.update_recurrence(next, read)?,
                        Change::Delete(read) => tx.delete_recurrence(read)?,
                    });
                }
                Ok(written)
            };
            written += self.runtime.transact_owned("recur.ensure", tenure, apply).await?;
        }
        self.runtime.hints().committed();
        Ok(written > 0)
    }

    /// What has to change, and how many timers there are.
    async fn changes(&self, mut wanted: Wanted) -> Result<(Vec<Change>, u64, Timestamp), StoreError> {
        let store = self.runtime.store();
        let (mut changes, mut count, mut after) = (Vec::new(), 0, None::<TimerId>);
        let now = store.now();
        loop {
            let page = store.read("recur.list", move |tx| tx.recurrences(after, stage::BATCH)).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.id);
            for read in page {
                count += 1;
                let part = wanted.remove(&(read.scope.clone(), read.key.clone()));
                changes.extend(change(read, part.as_ref(), now));
            }
        }
        for ((scope, key), part) in wanted {
            let Some(Arming { state, due_at }) = new(&part, now) else { continue };
            let (id, entry) = (store.ids(IdMaker::timer), part.entry);
            let timer =
                Recurrence { id, scope, entry, key, state, rests: false, armed_at: now, due_at, firings: 0 };
            changes.push(Change::Insert(timer));
        }
        Ok((changes, count, now))
    }
}

/// Every part that has a timer, of every scope.
fn wanted(active: &ActiveGeneration) -> Wanted {
    let mut wanted = Wanted::new();
    for (name, scope) in &active.scopes {
        for recurrences in &scope.recurrences {
            for (part, recurring) in recurrences.declared.parts.iter().enumerate() {
                if recurring.wanted.is_none() {
                    continue;
                }
                let (entry, rests) = (recurrences.entry.clone(), scope.scope.disabled);
                let recurrences = Arc::clone(recurrences);
                let part = WantedPart { entry, rests, recurrences, part };
                wanted.insert((name.clone(), recurring.key.clone()), part);
            }
        }
    }
    wanted
}

/// What a part that has no timer is armed with.
fn new(part: &WantedPart, now: Timestamp) -> Option<Arming> {
    if part.rests {
        return None;
    }
    match asked_of(part, None, now)? {
        Ensured::Arm(armed) => Some(arming(&armed)),
        Ensured::Keep | Ensured::Disarm => None,
    }
}

/// What becomes of a timer that there is.
fn change(read: Recurrence, part: Option<&WantedPart>, now: Timestamp) -> Option<Change> {
    let Some(part) = part else { return Some(Change::Delete(read)) };
    if part.rests {
        let next = Recurrence { rests: true, ..read.clone() };
        return (!read.rests).then_some(Change::Update { next, read });
    }
    let armed = stored(&read)?;
    let mut next = match asked_of(part, Some(&armed), now)? {
        Ensured::Keep => read.clone(),
        Ensured::Arm(armed) => read.armed(arming(&armed), now),
        Ensured::Disarm => return Some(Change::Delete(read)),
    };
    next.rests = false;
    next.entry = part.entry.clone();
    (next != read).then_some(Change::Update { next, read })
}

/// What a recurrence says of a timer. One that cannot say it leaves the timer as it is, and the log tells.
fn asked_of(part: &WantedPart, armed: Option<&Armed>, now: Timestamp) -> Option<Ensured> {
    let recurring = &part.recurrences.declared.parts[part.part];
    match part.recurrences.kind.ensure(armed, recurring.wanted.as_ref(), now) {
        Ok(ensured) => Some(ensured),
        Err(error) => {
            tracing::error!(entry = %part.entry, part = recurring.name, %error, "a recurring timer stays as it is");
            None
        }
    }
}

fn stored(read: &Recurrence) -> Option<Armed> {
    match serde_json::from_slice(&read.state) {
        Ok(state) => Some(Armed { state, due_at: read.due_at }),
        Err(_not_json) => {
            tracing::error!(timer = %read.id, "what is stored with a recurring timer cannot be read");
            None
        }
    }
}

fn arming(armed: &Armed) -> Arming {
    let state = serde_json::to_vec(&armed.state).expect("a JSON value is written as JSON");
    Arming { state, due_at: armed.due_at }
}

/// Asks what a timer does that is due. None when nobody can say; it stays due.
fn ask(runtime: &Runtime, active: &ActiveGeneration, read: Recurrence, now: Timestamp) -> Option<Asked> {
    let scope = active.scope(&read.scope)?;
    let of_entry = scope.recurrences.iter().find(|known| known.entry == read.entry)?;
    let armed = stored(&read)?;
    match of_entry.kind.fire(&read.key, &armed, now) {
        Ok(answer) => {
            let proposed = runtime.store().ids(IdMaker::event);
            Some(Asked { read, answer, proposed })
        }
        Err(error) => {
            tracing::error!(timer = %read.id, %error, "a recurring timer cannot be fired");
            None
        }
    }
}

/// Applies the answer to a timer that is due, if it still holds. True when it fired.
fn fire(tx: &mut dyn Tx, active: &ActiveGeneration, asked: &Asked) -> Result<bool, StoreError> {
    let Asked { read, answer, proposed } = asked;
    let now = tx.now();
    let Some(stored) = tx.recurrence(read.id)? else { return Ok(false) };
    if stored.revalidate(read, answer.valid_until, now).is_err()
        || active.scope(&read.scope).is_none_or(|scope| scope.scope.disabled)
    {
        return Ok(false);
    }
    let event = match &answer.publishes {
        Some(publication) => {
            let delivery = delivery(read, publication, *proposed);
            match accept::accept(tx, &delivery, active.bounds(&read.scope)) {
                // Published before under that identity: this firing gives what that one gave.
                Ok(Acceptance::New { event, .. } | Acceptance::Duplicate { event, .. }) => Some(event),
                Err(AcceptError::Store(error)) => return Err(error),
                Err(AcceptError::Refused(_) | AcceptError::UnknownScope(_)) => {
                    let reason = "publishes what cannot be accepted".to_owned();
                    return Err(StoreError::Corrupt { table: "recurrence", reason });
                }
            }
        }
        None => None,
    };
    let due_at = answer.publishes.as_ref().map_or(read.due_at, |publication| publication.occurred_at);
    let told = Told {
        ran: answer.publishes.as_ref().map(|publication| publication.label.as_str()),
        late_seconds: now.since(due_at).as_secs(),
        missed: &answer.missed,
    };
    tx.insert_firing(&Firing {
        recurrence: read.id,
        number: read.firings,
        due_at: read.due_at,
        fired_at: now,
        event,
        told: serde_json::to_vec(&told).expect("a struct of plain values is JSON"),
    })?;
    let written = match &answer.rearmed {
        Some(armed) => tx.update_recurrence(&read.fired(arming(armed), now), read)?,
        None => tx.delete_recurrence(read)?,
    };
    if written { Ok(true) } else { Err(StoreError::Conflict { what: "a timer that was read a moment ago" }) }
}

fn delivery(read: &Recurrence, publication: &extension::Publication, id: EventId) -> Delivery {
    Delivery {
        id,
        source: read.key.source.clone(),
        delivery_id: publication.delivery_id.clone(),
        event_type: publication.event_type.clone(),
        scope: read.scope.clone(),
        key: Some(read.key.clone()),
        work: None,
        occurred_at: Some(publication.occurred_at),
        payload: Payload::stored(
            serde_json::to_vec(&publication.payload).expect("a JSON value is written as JSON"),
        ),
        origin: Origin::Root,
    }
}
