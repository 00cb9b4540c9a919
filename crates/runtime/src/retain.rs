//! Retention: from runs that ended to content that is released. History stays.
//!
//! *Reads* what ended since it looked last, each run once, and Works whose time is up; history is not searched, unless
//! a configuration keeps less than the one before. *Decides* in `domain::retention`. *Writes* which content goes, with
//! the place it has come to, in one transaction. *Afterwards*, outside, the executor of this host removes what it has
//! of a run, and the bodies of its input are dropped. A crash in between removes the same content again.
//!
//! Nothing waits for it, so it looks at most once a minute, and starts with what is a minute old.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use domain::execution::Execution;
use domain::id::{ExecutionId, WorkId};
use domain::ownership::Tenure;
use domain::retention::{self, Keeping};
use domain::store::kv::RETENTION;
use domain::store::retention::{Ended, Retained};
use domain::store::{KvRow, Snapshot, StoreError, Tx};
use domain::text::ScopeName;
use domain::time::Timestamp;
use domain::work::Work;
use serde::{Deserialize, Serialize};

use crate::caught::{Panicked, caught};
use crate::generation::ActiveGeneration;
use crate::node::Runtime;
use crate::stage::{self, BATCH, Chain, Progress, Stage, StageError};

/// How long after its end a run is looked at, and how soon the stage looks again. Of runs that end at one moment some
/// may be committed later; none is by then.
const EVERY: Duration = Duration::from_mins(1);
/// How soon what could not be released is tried again.
const AGAIN_AFTER: Duration = Duration::from_hours(1);
/// Runs that one step follows.
const PAGE: u32 = 256;
/// Bodies that one transaction drops of a run.
const BODIES: u32 = 256;
/// The same of calls that it made.
const CALLS: u32 = 256;
/// The key of the place that the stage has come to.
const PLACE: &str = "place";

/// The stage that releases content.
#[derive(Debug)]
pub struct Retain {
    runtime: Runtime,
    /// When it looks next. A bell before that only brings it near.
    next: Timestamp,
    /// Whether content of this host may be on its way.
    releasing: bool,
    /// When what could not be removed is tried again.
    again_at: Option<Timestamp>,
    /// Behind which run of them the next step goes on.
    after: Option<ExecutionId>,
}

impl Retain {
    pub(crate) const fn new(runtime: Runtime) -> Self {
        Self { runtime, next: Timestamp::EPOCH, releasing: true, again_at: None, after: None }
    }
}

/// The place that the stage has come to, and what was kept then.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Place {
    ended_at: i64,
    run: i64,
    kept: BTreeMap<ScopeName, Keeping>,
}

impl Place {
    const fn after(&self) -> (Timestamp, ExecutionId) {
        (Timestamp::from_micros(self.ended_at), ExecutionId::from_number(self.run))
    }
}

/// What there is to look at.
struct Found {
    place: Place,
    next: Place,
    works: Arc<[WorkId]>,
    full: bool,
    /// When there is something next.
    due_at: Option<Timestamp>,
}

impl Stage for Retain {
    fn name(&self) -> &'static str {
        "retain"
    }

    async fn step(&mut self) -> Result<Progress, StageError> {
        let now = self.runtime.store().now();
        if self.releasing || self.again_at.is_some_and(|at| at <= now) {
            self.again_at = None;
            self.release(now).await?;
            return Ok(Progress::Advanced);
        }
        if now < self.next {
            self.next = self.next.min(now.after(EVERY));
            return Ok(Progress::Idle { due_at: self.again_at.into_iter().chain([self.next]).min() });
        }
        let Some(tenure) = self.runtime.tenure() else {
            // Whoever has the loops says what goes; what of it is here is looked for.
            self.next = now.after(EVERY);
            self.releasing = true;
            return Ok(Progress::Idle { due_at: Some(self.next) });
        };
        let active = self.runtime.generations().active();
        let kept = active.kept();
        let read = move |tx: &mut dyn Snapshot| found(tx, kept.clone());
        let found = self.runtime.store().read("retain.read", read).await?;
        let (full, due_at, moved) = (found.full, found.due_at, !found.works.is_empty());
        if found.next != found.place || moved {
            let all = self.look(tenure, &active, found).await?;
            self.releasing |= moved;
            if !all {
                // What cannot be decided is due still, and must not be asked for in a tight loop.
                self.next = now.after(AGAIN_AFTER);
                return Ok(Progress::Advanced);
            }
        }
        if full || moved {
            return Ok(Progress::Advanced);
        }
        self.next = due_at.map_or(Timestamp::MAX, |at| at.max(now.after(EVERY)));
        Ok(Progress::Idle { due_at: self.again_at.into_iter().chain(due_at).min() })
    }
}

fn found(tx: &mut dyn Snapshot, kept: BTreeMap<ScopeName, Keeping>) -> Result<Found, StoreError> {
    let now = tx.now();
    let place = match tx.kv(RETENTION, PLACE)? {
        None => Place::default(),
        Some(row) => serde_json::from_slice(&row.body).map_err(|_source| StoreError::Corrupt {
            table: "kv",
            reason: "no place of retention".to_owned(),
        })?,
    };
    // Where less is kept than when it looked, it begins at the beginning, once.
    let from = if retention::is_less(&place.kept, &kept) { Place::default() } else { place.clone() };
    let until = Timestamp::from_micros(now.as_micros().saturating_sub(micros(EVERY)));
    let ended = tx.ended_after(from.after(), until, PAGE)?;
    let full = ended.len() == PAGE as usize;
    let next = match ended.last() {
        Some(last) => Place { ended_at: last.ended_at.as_micros(), run: last.id.number(), kept },
        None => Place { kept, ..from },
    };
    let mut works: BTreeSet<WorkId> = ended.iter().map(|ended| ended.work).collect();
    works.extend(tx.retention_due(now, BATCH)?);
    let newer =
        tx.ended_after(next.after(), Timestamp::MAX, 1)?.first().map(|ended| ended.ended_at.after(EVERY));
    let due_at = newer.into_iter().chain(tx.next_retention_due()?).min();
    Ok(Found { place, next, works: works.into_iter().collect(), full, due_at })
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

impl Retain {
    /// Looks at some Works, and writes down how far it has come with the last of them. False when one of them has a
    /// damaged record.
    async fn look(
        &self,
        tenure: Tenure,
        active: &Arc<ActiveGeneration>,
        found: Found,
    ) -> Result<bool, StoreError> {
        let mut all = true;
        for works in found.works.chunks(BATCH as usize) {
            match self.look_at(tenure, active, works.into()).await {
                Err(error) if stage::is_of_an_item(&error) => {
                    for work in works {
                        match self.look_at(tenure, active, [*work].into()).await {
                            Err(error) if stage::is_of_an_item(&error) => {
                                all = false;
                                tracing::error!(%work, error = %Chain(&error), "what is kept of a Work cannot be decided");
                            }
                            done => done?,
                        }
                    }
                }
                done => done?,
            }
        }
        if found.next == found.place {
            return Ok(all);
        }
        let place = found.next;
        let write = move |tx: &mut dyn Tx| {
            let body = serde_json::to_vec(&place).expect("a place is plain data with text keys");
            let at = tx.now();
            tx.put_kv(RETENTION, &KvRow { key: PLACE.to_owned(), body, at })
        };
        self.runtime.transact_owned("retain", tenure, write).await.map(|()| all)
    }

    async fn look_at(
        &self,
        tenure: Tenure,
        active: &Arc<ActiveGeneration>,
        works: Arc<[WorkId]>,
    ) -> Result<(), StoreError> {
        let active = Arc::clone(active);
        let body = move |tx: &mut dyn Tx| {
            for id in &*works {
                if let Some(work) = tx.work(*id)? {
                    decide(tx, &active, &work)?;
                }
            }
            Ok(())
        };
        self.runtime.transact_owned("retain", tenure, body).await
    }

    /// Removes content of this host that is on its way out, a page of it.
    async fn release(&mut self, now: Timestamp) -> Result<(), StoreError> {
        let (runtime, after) = (&self.runtime, self.after);
        let page = runtime.store().read("retain.read", move |tx| tx.releasing(after, BATCH)).await?;
        let full = page.len() == BATCH as usize;
        self.after = page.last().map(|run| run.id).filter(|_last| full);
        self.releasing = full;
        let mut removed = Vec::with_capacity(page.len());
        for run in &page {
            if remove(runtime, run).await {
                removed.push(run.id);
            } else {
                self.again_at = Some(now.after(AGAIN_AFTER));
            }
        }
        if removed.is_empty() {
            return Ok(());
        }
        let count = removed.len() as u64;
        let note = move |tx: &mut dyn Tx| {
            let mut more = false;
            for id in &removed {
                let calls_go_on = tx.drop_calls(*id, CALLS)? == u64::from(CALLS);
                if tx.drop_bodies(*id, BODIES)? == u64::from(BODIES) || calls_go_on {
                    more = true;
                } else {
                    tx.content_released(*id)?;
                }
            }
            Ok::<_, StoreError>(more)
        };
        if runtime.store().transact("retain.release", note).await? {
            self.releasing = true;
            self.after = None;
        }
        runtime.metrics().content_released.inc_by(count);
        Ok(())
    }
}

/// Has a run's executor remove what it has of it. False when that has to be tried again.
async fn remove(runtime: &Runtime, run: &Execution) -> bool {
    let Some(executor) = runtime.registry().executor(&run.executor) else {
        tracing::warn!(execution = %run.id, executor = %run.executor, "the executor that has the files of a run is not here");
        return false;
    };
    match caught(executor.release(run.id)).await {
        Ok(Ok(())) => true,
        Ok(Err(reason)) => {
            tracing::warn!(execution = %run.id, reason, "the files of a run could not be removed");
            false
        }
        Err(Panicked) => {
            tracing::error!(execution = %run.id, "an executor failed by a bug at removing the files of a run");
            false
        }
    }
}

/// Releases what a Work does not keep any more, and notes when it is to be looked at again.
fn decide(tx: &mut dyn Tx, active: &ActiveGeneration, work: &Work) -> Result<(), StoreError> {
    // Of a scope that is gone everything is kept.
    let Some(scope) = active.scope(&work.scope) else { return unwatch(tx, work.id) };
    let (keeping, now) = (Keeping::from(&scope.scope.settings), tx.now());
    let until = retention::release_until(work, keeping, now);
    let finishes_at = retention::finishes_at(work, keeping);
    if until == 0 && finishes_at.is_none() {
        return unwatch(tx, work.id);
    }
    let before = tx.retained(work.id)?;
    let mut next = before.unwrap_or(Retained { work: work.id, released: 0, run: None, look_at: None });
    let due = tx.ended_of(work.id, next.run, until, BATCH)?;
    let more = due.len() == BATCH as usize;
    let mut held_up = false;
    for run in due {
        // What may still run may still write.
        held_up = run.unstopped;
        if held_up {
            break;
        }
        tx.release_content(run.id)?;
        let Ended { id, attempt, .. } = run;
        next = Retained { released: attempt, run: Some(id), ..next };
    }
    next.look_at = if held_up {
        Some(now.after(AGAIN_AFTER))
    } else if more {
        Some(now)
    } else {
        finishes_at.filter(|at| *at > now)
    };
    if before == Some(next) { Ok(()) } else { tx.put_retained(&next) }
}

/// Has a Work looked at no more before another of its runs ends.
fn unwatch(tx: &mut dyn Tx, work: WorkId) -> Result<(), StoreError> {
    match tx.retained(work)? {
        Some(watched) if watched.look_at.is_some() => tx.put_retained(&Retained { look_at: None, ..watched }),
        Some(_) | None => Ok(()),
    }
}

/// Has a Work that was cancelled looked at in its time: no run of it may be left to end.
///
/// # Errors
/// [`StoreError`] undoes the cancellation with it.
pub(crate) fn cancelled(tx: &mut dyn Tx, active: &ActiveGeneration, work: &Work) -> Result<(), StoreError> {
    let Some(scope) = active.scope(&work.scope).filter(|_scope| work.attempts > 0) else { return Ok(()) };
    let Some(at) = retention::finishes_at(work, Keeping::from(&scope.scope.settings)) else { return Ok(()) };
    let before = tx.retained(work.id)?;
    let before = before.unwrap_or(Retained { work: work.id, released: 0, run: None, look_at: None });
    tx.put_retained(&Retained { look_at: Some(at), ..before })
}
