//! Aliases: from an accepted Event of a watched key to an Event of each Work that subscribed to it.
//!
//! *Reads* what was accepted since it looked last, in order, and who watches its keys; where nobody subscribes to
//! anything, nothing is read. *Decides* in `domain::alias`. *Writes* each alias with the checkpoint of its
//! subscription, so that a crash neither loses one nor makes it twice. *Afterwards* hints routing.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use domain::alias::{SCAN_MAX, Subscribe, SubscribeFacts, SubscribeRefusal, Subscription};
use domain::delivery::AcceptFacts;
use domain::event::Event;
use domain::id::{EventId, IdMaker, Sequence, WorkId};
use domain::lane::LaneId;
use domain::ownership::Tenure;
use domain::store::kv::ALIASES;
use domain::store::{EventFilter, KvRow, Snapshot, StoreError, Tx, Unrouted};
use domain::text::{ScopeName, SubscriptionId};
use domain::work::Work;
use thiserror::Error;

use crate::causal::{self, Derived};
use crate::generation::ActiveGeneration;
use crate::node::Runtime;
use crate::stage::{self, Chain, Progress, Stage, StageError};

/// How many Events are looked at in one step.
const PAGE: u32 = 256;
/// How many sequences may pass that nobody watches before the place is written down. A restart looks at no more
/// than these again.
const UNWRITTEN_MAX: i64 = 512;
/// The key of that place.
const OBSERVED: &str = "observed";

/// Why a subscription was not installed.
#[derive(Debug, Error)]
pub enum SubscribeError {
    /// It may not be.
    #[error(transparent)]
    Refused(#[from] SubscribeRefusal),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The stage that makes aliases.
#[derive(Debug)]
pub struct Alias {
    runtime: Runtime,
    /// Up to where nobody watches what has no alias yet. What is written down may be less.
    observed: Sequence,
}

/// What is to be translated.
struct Found {
    /// Up to where everything was looked at.
    until: Sequence,
    /// The place that is written down.
    written: Sequence,
    /// Events that somebody watches, in order.
    watched: Vec<Sequence>,
    /// There may be more behind these.
    full: bool,
}

/// What a transaction made.
#[derive(Debug, Default)]
pub(crate) struct Translated {
    pub(crate) made: u64,
    refused: u64,
    /// Something is left, for the next step.
    left: bool,
}

impl Alias {
    pub(crate) const fn new(runtime: Runtime) -> Self {
        Self { runtime, observed: Sequence::ZERO }
    }
}

impl Stage for Alias {
    fn name(&self) -> &'static str {
        "alias"
    }

    async fn step(&mut self) -> Result<Progress, StageError> {
        let runtime = self.runtime.clone();
        let Some(tenure) = runtime.tenure() else { return Ok(Progress::Idle { due_at: None }) };
        let subscribed = &runtime.hints().subscribed;
        // Before it is looked up: whoever installs one says so after its commit, and has the last word.
        subscribed.store(false, Ordering::SeqCst);
        let observed = self.observed;
        let found = runtime.store().read("alias.read", move |tx| find(tx, observed)).await;
        subscribed.fetch_or(!matches!(found, Ok(None)), Ordering::SeqCst);
        let Some(found) = found? else { return Ok(Progress::Idle { due_at: None }) };
        if found.watched.is_empty() {
            if found.until.number() - found.written.number() > UNWRITTEN_MAX {
                let until = found.until;
                runtime.transact_owned("alias.observed", tenure, move |tx| observe(tx, until)).await?;
            }
            self.observed = found.until;
            return Ok(if found.full { Progress::Advanced } else { Progress::Idle { due_at: None } });
        }
        // A right to read that was taken away elsewhere holds from now on.
        runtime.follow_generation().await?;
        let watched: Arc<[Sequence]> = found.watched.into();
        let done = match self.translate(tenure, Arc::clone(&watched), found.until).await {
            Err(error) if stage::is_of_an_item(&error) => self.translate_each(tenure, &watched).await?,
            done => done?,
        };
        if !done.left {
            self.observed = found.until;
        }
        runtime.metrics().causal_refusals.inc_by(done.refused);
        runtime.hints().committed();
        if done.made > 0 {
            runtime.hints().route.notify_one();
        }
        Ok(Progress::Advanced)
    }
}

impl Alias {
    async fn translate(
        &self,
        tenure: Tenure,
        watched: Arc<[Sequence]>,
        until: Sequence,
    ) -> Result<Translated, StoreError> {
        let proposed = self.runtime.proposed(self.runtime.batch());
        let active = self.runtime.generations().active();
        let body = move |tx: &mut dyn Tx| translate(tx, &active, &watched, until, &proposed);
        self.runtime.transact_owned("alias", tenure, body).await
    }

    /// The same in a transaction for each, so that one with a damaged record keeps no other from it.
    async fn translate_each(&self, tenure: Tenure, watched: &[Sequence]) -> Result<Translated, StoreError> {
        let mut all = Translated::default();
        for sequence in watched {
            match self.translate(tenure, Arc::from([*sequence]), *sequence).await {
                Ok(one) => {
                    all.made += one.made;
                    all.refused += one.refused;
                    if one.left {
                        all.left = true;
                        return Ok(all);
                    }
                }
                Err(error) if stage::is_of_an_item(&error) => {
                    tracing::error!(%sequence, error = %Chain(&error), "an event cannot be translated");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(all)
    }
}

/// Looks at what was accepted since. None when nobody subscribes to anything.
fn find(tx: &mut dyn Snapshot, observed: Sequence) -> Result<Option<Found>, StoreError> {
    if !tx.is_subscribed()? {
        return Ok(None);
    }
    let written = written(tx)?;
    let page = tx.events_after(observed.max(written), PAGE)?;
    let until = page.last().map_or(observed.max(written), |event| event.sequence);
    let full = page.len() == PAGE as usize;
    let mut watched = Vec::new();
    for event in page {
        let Some(key) = &event.key else { continue };
        if !tx.subscriptions_on(key, event.sequence, 1)?.is_empty() {
            watched.push(event.sequence);
        }
    }
    Ok(Some(Found { until, written, watched, full }))
}

/// The place that is written down.
fn written(tx: &mut dyn Snapshot) -> Result<Sequence, StoreError> {
    let Some(row) = tx.kv(ALIASES, OBSERVED)? else { return Ok(Sequence::ZERO) };
    serde_json::from_slice(&row.body)
        .map(Sequence::from_number)
        .map_err(|_source| StoreError::Corrupt { table: "kv", reason: "a place that is none".to_owned() })
}

fn observe(tx: &mut dyn Tx, until: Sequence) -> Result<(), StoreError> {
    let body = until.number().to_string().into_bytes();
    let at = tx.now();
    tx.put_kv(ALIASES, &KvRow { key: OBSERVED.to_owned(), body, at })
}

fn translate(
    tx: &mut dyn Tx,
    active: &ActiveGeneration,
    watched: &[Sequence],
    until: Sequence,
    proposed: &[EventId],
) -> Result<Translated, StoreError> {
    let mut done = Translated::default();
    let mut left = proposed;
    for sequence in watched {
        let Some(event) = tx.event_at(*sequence)? else { continue };
        let Some(key) = &event.key else { continue };
        let rows = u32::try_from(left.len()).expect("bounded by a batch");
        let behind = tx.subscriptions_on(key, *sequence, rows)?;
        for subscription in &behind {
            let (next, rest) = left.split_first().expect("no more than there are ids for");
            left = rest;
            one(tx, active, subscription, &event, *next, &mut done)?;
        }
        if left.is_empty() {
            // Those that were not reached are behind still, and so is the place.
            done.left = true;
            return Ok(done);
        }
    }
    observe(tx, until)?;
    Ok(done)
}

/// Moves one subscription on over an Event, and makes its alias when it is for it.
fn one(
    tx: &mut dyn Tx,
    active: &ActiveGeneration,
    subscription: &Subscription,
    event: &Event,
    proposed: EventId,
    done: &mut Translated,
) -> Result<(), StoreError> {
    let now = tx.now();
    let work = tx
        .work(subscription.work)?
        .ok_or_else(|| StoreError::Corrupt { table: "subscription", reason: "names no Work".to_owned() })?;
    if work.state.is_terminal() {
        // Whatever ended it may have been an older version that knew of no subscriptions.
        return match subscription.end(now) {
            Some(ended) => tx.update_subscription(&ended),
            None => Ok(()),
        };
    }
    tx.update_subscription(&subscription.clone().observed(event.sequence))?;
    if !subscription.matches(event, reads(active, &subscription.scope)) {
        return Ok(());
    }
    if let Some(publisher) = event.emitted_by
        && tx.execution(publisher)?.is_some_and(|publisher| publisher.work == subscription.work)
    {
        // A Work is never news to itself.
        return Ok(());
    }
    let delivery = subscription.translate(event, proposed);
    let facts = AcceptFacts {
        target: Some(work),
        key_owner: tx.key_owner(&subscription.own)?,
        parent: Some(event.clone()),
        ..AcceptFacts::new(active.bounds(&subscription.scope))
    };
    match causal::derive(tx, &delivery, &facts)? {
        Derived::Accepted(alias) => {
            tx.insert_unrouted(Unrouted { sequence: alias.sequence, lane: LaneId::of_event(&alias) })?;
            done.made += 1;
        }
        // The record of it is written, and this branch ends here.
        Derived::Refused(_recorded) => done.refused += 1,
        Derived::Duplicate => {}
    }
    Ok(())
}

/// The scopes that a scope was given to read.
fn reads<'a>(active: &'a ActiveGeneration, scope: &ScopeName) -> &'a [ScopeName] {
    active.scope(scope).map_or(&[], |it| &it.scope.read_scopes)
}

impl Runtime {
    /// Installs a subscription to a key that another Work owns or may come to own. Whatever that key sees from
    /// `asked.after` on becomes an alias of the dependent Work; what was accepted already is translated in the same
    /// transaction. Installed again, it goes on from where it is. It ends with its Work. (WAI-9)
    ///
    /// # Errors
    /// [`SubscribeError`]; then nothing has changed.
    pub async fn subscribe(&self, asked: Subscribe) -> Result<Subscription, SubscribeError> {
        self.follow_generation().await?;
        let active = self.generations().active();
        let proposed = self.proposed(SCAN_MAX);
        let (subscription, made) =
            self.store().transact("subscribe", move |tx| install(tx, &active, &asked, &proposed)).await?;
        self.subscribed();
        self.metrics().causal_refusals.inc_by(made.refused);
        self.hints().committed();
        Ok(subscription)
    }

    /// Rings for a subscription that was installed.
    pub(crate) fn subscribed(&self) {
        self.hints().subscribed.store(true, Ordering::SeqCst);
        self.hints().route.notify_one();
        self.hints().alias.notify_one();
    }

    /// Ends a subscription. False when there is none that goes on.
    ///
    /// # Errors
    /// [`StoreError`] when the store fails.
    pub async fn unsubscribe(&self, id: SubscriptionId) -> Result<bool, StoreError> {
        let ended = self
            .store()
            .transact("unsubscribe", move |tx| {
                let now = tx.now();
                let Some(ended) = tx.subscription(&id)?.and_then(|known| known.end(now)) else {
                    return Ok(false);
                };
                tx.update_subscription(&ended)?;
                Ok::<_, StoreError>(true)
            })
            .await?;
        self.hints().committed();
        Ok(ended)
    }

    fn proposed(&self, count: u32) -> Vec<EventId> {
        self.store().ids(|maker: &mut IdMaker, now| (0..count).map(|_| maker.event(now)).collect())
    }
}

/// Installs a subscription and translates what is behind its checkpoint.
///
/// # Errors
/// [`SubscribeError`]; then nothing was written.
pub(crate) fn install(
    tx: &mut dyn Tx,
    active: &ActiveGeneration,
    asked: &Subscribe,
    proposed: &[EventId],
) -> Result<(Subscription, Translated), SubscribeError> {
    let facts = facts(tx, asked)?;
    let (is_known, last) = (facts.known.is_some(), facts.last);
    let scope = facts.work.as_ref().map(|work| work.scope.clone());
    let reads = scope.as_ref().map_or(&[][..], |scope| reads(active, scope));
    let subscription = asked.admit(facts, reads, tx.now())?;
    let behind = tx.events_of_key(&subscription.watched, subscription.after, SCAN_MAX + 1)?;
    if behind.len() > SCAN_MAX as usize {
        return Err(SubscribeRefusal::Behind { after: subscription.after }.into());
    }
    if is_known {
        tx.update_subscription(&subscription)?;
    } else {
        if !tx.is_subscribed()? {
            // Nobody has looked since the last one ended, and nobody need look at what came meanwhile.
            observe(tx, last)?;
        }
        tx.insert_subscription(&subscription)?;
    }
    let mut done = Translated::default();
    for (event, id) in behind.iter().zip(proposed) {
        one(tx, active, &subscription, event, *id, &mut done)?;
    }
    let newest = behind.last().map_or(subscription.after, |event| event.sequence);
    Ok((subscription.observed(newest), done))
}

fn facts(tx: &mut dyn Tx, asked: &Subscribe) -> Result<SubscribeFacts, StoreError> {
    let watched = match tx.key_owner(&asked.watched)? {
        Some(owner) => tx.work(owner)?.map(|work| (work.id, work.scope)),
        None => None,
    };
    // Sequences are given out for more than Events, so the newest Event is looked up.
    let newest = tx.events(&EventFilter::default(), 1)?;
    Ok(SubscribeFacts {
        work: tx.work(asked.work)?,
        wait: tx.active_wait(asked.work)?.map(|wait| wait.id),
        own: tx.key_owner(&asked.own)?,
        watched,
        known: tx.subscription(&asked.id)?,
        last: newest.first().map_or(Sequence::ZERO, |event| event.sequence),
    })
}

/// Ends what Works subscribed to, as they end. One transaction asks at most once whether anybody subscribes.
#[derive(Debug, Default)]
pub(crate) struct Endings {
    subscribed: Option<bool>,
}

impl Endings {
    /// Ends the subscriptions of a Work that has just been written, if it has ended.
    ///
    /// # Errors
    /// [`StoreError`].
    pub(crate) fn of(&mut self, tx: &mut dyn Tx, work: &Work) -> Result<(), StoreError> {
        if !work.state.is_terminal() {
            return Ok(());
        }
        let subscribed = match self.subscribed {
            Some(known) => known,
            None => *self.subscribed.insert(tx.is_subscribed()?),
        };
        if subscribed { end_of(tx, work.id) } else { Ok(()) }
    }
}

/// Ends every subscription of a Work.
///
/// # Errors
/// [`StoreError`].
pub(crate) fn end_of(tx: &mut dyn Tx, work: WorkId) -> Result<(), StoreError> {
    let now = tx.now();
    tx.end_subscriptions_of(work, now).map(|_ended| ())
}
