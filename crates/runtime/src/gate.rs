//! Start gates: asked outside every transaction, and believed inside one only while the Work is as it was shown.
//!
//! A Work that a gate guards leaves the queue while it is asked about, so that a gate which takes its time keeps no
//! other from starting. The answer stays in memory: it brings the Work back, and whoever loses it asks again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::capacity::Blocker;
use domain::decision::{Basis, Decision, Looked, Present};
use domain::id::{Generation, WorkId};
use domain::ownership::Tenure;
use domain::store::{Snapshot, StoreError, Tx};
use domain::text::plain;
use domain::work::{Hold, HoldReason, Queue, Work, WorkRefusal};
use extension::{StartDecision, StartGate, StartSettlement, StartView, WorkView};

use crate::caught::caught;
use crate::control::ControlError;
use crate::node::Runtime;
use crate::schedule;
use crate::stage::{self, BATCH, Chain};

/// The longest a gate may take over one start.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// How long after a failure of the store it is asked about again.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
/// The most bytes of a reason that are kept.
const REASON_BYTES_MAX: usize = 500;

/// What gates have answered, until the next start has used it up.
#[derive(Debug, Clone, Default)]
pub(crate) struct Answers(Arc<Mutex<BTreeMap<WorkId, Decision<StartDecision>>>>);

/// What is to become of a start.
#[derive(Debug)]
pub(crate) enum Passage {
    /// No gate is against it.
    Open,
    /// It has yet to be asked.
    Ask,
    /// A gate holds it.
    Held(Hold),
}

impl Answers {
    fn put(&self, work: WorkId, decision: Decision<StartDecision>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(work, decision);
    }

    fn of(&self, work: WorkId) -> Option<Decision<StartDecision>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&work).cloned()
    }

    /// Forgets what was answered about some Works: the next start asks anew.
    pub(crate) fn forget(&self, works: &[WorkId]) {
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for work in works {
            answers.remove(work);
        }
    }

    /// Decides about a start inside its transaction.
    pub(crate) fn passage(
        &self,
        gates: &[Arc<dyn StartGate>],
        work: &Work,
        generation: Generation,
        tx: &dyn Tx,
    ) -> Passage {
        let is_guarded = gates.iter().any(|gate| gate.guards(&work.kind));
        if work.attempts > 0 || work.let_through || !is_guarded {
            return Passage::Open;
        }
        let (now, seen) = (tx.now(), Some((work.id, work.revision)));
        let present = Present { now, generation, work: seen, input_high: None };
        match self.of(work.id).map(|decision| decision.revalidate(&present)) {
            Some(Ok(StartDecision::Start)) => Passage::Open,
            Some(Ok(StartDecision::Hold { reason })) => {
                Passage::Held(Hold { because: HoldReason::Gate, reason, since: now })
            }
            Some(Err(_)) | None => Passage::Ask,
        }
    }
}

/// Asks about Works that have left the queue for it, each in a task of its own.
pub(crate) fn ask(runtime: &Runtime, answers: &Answers, works: Vec<WorkId>) {
    for work in works {
        let (runtime, answers) = (runtime.clone(), answers.clone());
        let asks = runtime.clone();
        runtime.spawn(async move {
            while let Err(error) = ask_about(&asks, &answers, work).await {
                tracing::warn!(%work, error = %Chain(&error), "a start could not be asked about");
                tokio::select! {
                    () = asks.ending().cancelled() => return,
                    () = stage::pause(AGAIN_AFTER) => {}
                }
            }
        });
    }
}

async fn ask_about(runtime: &Runtime, answers: &Answers, id: WorkId) -> Result<(), StoreError> {
    loop {
        let generation = runtime.generations().active().number;
        let Some(start) = runtime.store().read("gate.read", move |tx| view(tx, id)).await? else {
            return Ok(());
        };
        let asked = start.work.revision;
        let Some(answer) = decide(runtime, &start).await else { return Ok(()) };
        let back = move |tx: &mut dyn Tx| {
            let Some(work) = tx.work(id)? else { return Ok(None) };
            if !is_asked(&work) {
                return Ok(None);
            }
            if work.revision != asked {
                return Ok(Some(None));
            }
            let next = work.clone().unblock();
            tx.update_work(&next, &work)?;
            Ok::<_, StoreError>(Some(Some(next.revision)))
        };
        match runtime.store().transact("gate", back).await? {
            // It was cancelled, or somebody else has brought it back.
            None => return Ok(()),
            // More has come for it; what was shown is not what is there.
            Some(None) => {}
            Some(Some(revision)) => {
                let basis = Basis { work: Looked::At(id, revision), ..Basis::of(generation) };
                answers.put(id, Decision { answer, basis });
                runtime.hints().schedule.notify_one();
                runtime.hints().committed();
                return Ok(());
            }
        }
    }
}

fn is_asked(work: &Work) -> bool {
    matches!(work.queue, Queue::Blocked(Blocker::Asked(_)))
}

fn view(tx: &mut dyn Snapshot, id: WorkId) -> Result<Option<StartView>, StoreError> {
    let Some(work) = tx.work(id)?.filter(is_asked) else { return Ok(None) };
    Ok(Some(StartView { work: WorkView::from(&work), keys: tx.keys_of(id)? }))
}

/// Asks each gate in turn; the first that holds decides. None when the process ends.
async fn decide(runtime: &Runtime, start: &StartView) -> Option<StartDecision> {
    for gate in runtime.registry().gates().iter().filter(|gate| gate.guards(&start.work.kind)) {
        let name = gate.name();
        let answer = tokio::select! {
            biased;
            () = runtime.ending().cancelled() => return None,
            answer = caught(gate.decide(start)) => answer.ok(),
            () = stage::pause(ANSWER_WITHIN) => None,
        };
        let reason = match answer {
            Some(StartDecision::Start) => continue,
            Some(StartDecision::Hold { reason }) => plain(&reason, REASON_BYTES_MAX),
            None => "it did not answer".to_owned(),
        };
        return Some(StartDecision::Hold { reason: format!("gate `{name}`: {reason}") });
    }
    Some(StartDecision::Start)
}

/// Brings back what an earlier life, or another owner of the loops, had begun to ask about.
pub(crate) async fn ask_again(runtime: &Runtime, tenure: Tenure) -> Result<(), StoreError> {
    let blockers = runtime.store().read("gate.read", |tx| tx.blockers(1)).await?;
    for (blocker, _works) in blockers {
        if !matches!(blocker, Blocker::Asked(_)) {
            continue;
        }
        loop {
            let list = blocker.clone();
            let bring = move |tx: &mut dyn Tx| schedule::bring_back(tx, &list, BATCH);
            if !runtime.transact_owned("gate", tenure, bring).await? {
                break;
            }
        }
    }
    Ok(())
}

impl Runtime {
    /// Settles the hold of a start gate, for the extension whose gate it is.
    ///
    /// # Errors
    /// [`ControlError`], and nothing has changed: [`WorkRefusal::NotHeld`] when no gate holds it.
    pub async fn settle_start(&self, id: WorkId, settlement: StartSettlement) -> Result<(), ControlError> {
        let work = self.store().read("gate.read", move |tx| tx.work(id)).await?;
        let work = work.ok_or(ControlError::UnknownWork(id))?;
        if work.hold.is_none_or(|hold| hold.because != HoldReason::Gate) {
            return Err(ControlError::Refused(WorkRefusal::NotHeld));
        }
        match settlement {
            // Two that settle it at once let one start through: a hold is released once.
            StartSettlement::Start => self.release(id).await.map(|_released| ()),
            StartSettlement::Cancel => self.cancel(id).await.map(|_cancelled| ()),
        }
    }
}
