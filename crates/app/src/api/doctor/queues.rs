//! What has waited for longest in each queue, and whether what should move it does.
//!
//! Every nonterminal state names its mover. What stands at the head of a queue and could go on is moved within
//! moments, so one that stood there for a minute is looked at twice: it may just have come to the head.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::store::{Snapshot, StoreError};
use domain::text::ScopeName;
use domain::time::Timestamp;

use super::Checks;
use crate::api::failure::Chain;
use crate::api::wire::{FiguresBody, WaitingBody};
use crate::daemon::Daemon;
use crate::view::time;

/// What could go on and waited for longer than this stands still.
const STILL_AFTER: Duration = Duration::from_mins(1);
/// How long after the first look the second is.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// Reasons whose oldest Work is looked for.
const REASONS_MAX: u32 = 64;

/// The heads of the queues.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Heads {
    now: Timestamp,
    unrouted: Option<Head>,
    runnable: Option<Head>,
    blocked: Option<Head>,
    /// Whether the scope of the runnable one has room for it.
    has_room: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Head {
    id: String,
    since: Timestamp,
    reason: Option<String>,
}

impl Head {
    fn body(&self) -> WaitingBody {
        WaitingBody { id: self.id.clone(), since: self.since.to_string(), reason: self.reason.clone() }
    }
}

/// Looks at the heads, and again at those that seem to stand still.
pub(super) async fn check(daemon: &Daemon, figures: &mut FiguresBody, checks: &mut Checks) {
    let heads = match look(daemon).await {
        Ok(heads) => heads,
        Err(error) => {
            // The check of the store says so.
            tracing::warn!(error = %Chain(&error), "the queues could not be read");
            return;
        }
    };
    let body = |head: &Option<Head>| head.as_ref().map(Head::body);
    figures.oldest_unrouted = body(&heads.unrouted);
    figures.oldest_runnable = body(&heads.runnable);
    figures.oldest_blocked = body(&heads.blocked);
    // Another daemon moves them, or this one has only begun to.
    if !daemon.runtime().owns_loops() || heads.now.since(daemon.started_at()) < STILL_AFTER {
        return;
    }
    let first = still(&heads);
    if first == Still::default() {
        return report(&first, checks);
    }
    if tokio::time::timeout(LOOK_AGAIN, daemon.stopping().cancelled()).await.is_ok() {
        return;
    }
    match look(daemon).await {
        Ok(heads) => report(&first.and(still(&heads)), checks),
        Err(error) => tracing::warn!(error = %Chain(&error), "the queues could not be read again"),
    }
}

async fn look(daemon: &Daemon) -> Result<Heads, StoreError> {
    let active = daemon.runtime().generations().active();
    // A disabled scope has no room.
    let open = active.scopes.values().map(|active| &active.scope).filter(|scope| !scope.disabled);
    let concurrency: BTreeMap<ScopeName, u32> =
        open.map(|scope| (scope.name.clone(), scope.settings.concurrency)).collect();
    daemon.store().read("doctor.queues", move |tx| heads(tx, &concurrency)).await
}

fn heads(tx: &mut dyn Snapshot, concurrency: &BTreeMap<ScopeName, u32>) -> Result<Heads, StoreError> {
    let mut heads = Heads { now: tx.now(), unrouted: None, runnable: None, blocked: None, has_room: false };
    if let Some(first) = tx.route_candidates(1)?.first()
        && let Some(event) = tx.event_at(first.sequence)?
    {
        heads.unrouted = Some(Head { id: event.id.to_string(), since: event.accepted_at, reason: None });
    }
    if let Some(first) = tx.runnable(1)?.first()
        && let Some(work) = tx.work(*first)?
    {
        if let Some(room) = concurrency.get(&work.scope) {
            heads.has_room = tx.count_live(&work.scope, *room)? < *room;
        }
        heads.runnable = Some(Head { id: work.id.to_string(), since: work.queued_at, reason: None });
    }
    for (blocker, _works) in tx.blockers(1)?.into_iter().take(REASONS_MAX as usize) {
        let Some(first) = tx.blocked(&blocker, 1)?.first().copied() else { continue };
        let Some(work) = tx.work(first)? else { continue };
        if heads.blocked.as_ref().is_none_or(|oldest| work.queued_at < oldest.since) {
            let reason = Some(blocker.to_string());
            heads.blocked = Some(Head { id: work.id.to_string(), since: work.queued_at, reason });
        }
    }
    Ok(heads)
}

/// What could go on and does not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Still {
    unrouted: Option<(String, Duration)>,
    runnable: Option<(String, Duration)>,
}

impl Still {
    /// What stood still at both looks.
    fn and(self, later: Self) -> Self {
        let both = |first: Option<(String, Duration)>, later: Option<(String, Duration)>| {
            later.filter(|(id, _waited)| first.is_some_and(|(before, _waited)| before == *id))
        };
        Self { unrouted: both(self.unrouted, later.unrouted), runnable: both(self.runnable, later.runnable) }
    }
}

fn still(heads: &Heads) -> Still {
    let long = |head: &Option<Head>| {
        let head = head.as_ref()?;
        let waited = heads.now.since(head.since);
        (waited > STILL_AFTER).then(|| (head.id.clone(), waited))
    };
    Still { unrouted: long(&heads.unrouted), runnable: long(&heads.runnable).filter(|_still| heads.has_room) }
}

fn report(still: &Still, checks: &mut Checks) {
    const THEN: &str = "the daemon's log may say why; a restart looks at every queue again";
    match &still.unrouted {
        None => checks.add("routing", "ok", "no Event that could be routed has waited for a minute"),
        Some((event, waited)) => {
            let sentence = format!("{event} has waited {} and could be routed; {THEN}", time::span(*waited));
            checks.add("routing", "warning", sentence);
        }
    }
    match &still.runnable {
        None => checks.add("starts", "ok", "no Work that could start has waited for a minute"),
        Some((work, waited)) => {
            let sentence =
                format!("{work} has waited {} and its scope has room for it; {THEN}", time::span(*waited));
            checks.add("starts", "warning", sentence);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use domain::capacity::Blocker;
    use domain::event::{Causation, Event, Payload};
    use domain::id::{EventId, WorkId};
    use domain::lane::LaneId;
    use domain::store::{StoreError, Tx, Unrouted};
    use domain::text::{DeliveryId, EventType, ScopeName, SourceName, WorkKind};
    use domain::time::Timestamp;
    use domain::work::{Lifecycle, Queue, Work};
    use store::Location;

    use super::{Checks, Head, Heads, STILL_AFTER, Still, report, still};

    const START: Timestamp = Timestamp::EPOCH;

    fn heads(waited: Duration, has_room: bool) -> Heads {
        let head = |id: &str| Some(Head { id: id.to_owned(), since: START, reason: None });
        Heads {
            now: START.after(waited),
            unrouted: head("ev"),
            runnable: head("wk"),
            blocked: None,
            has_room,
        }
    }

    #[test]
    fn what_could_go_on_stands_still_after_a_minute() {
        assert_eq!(still(&heads(STILL_AFTER, true)), Still::default());
        let long = STILL_AFTER + Duration::from_micros(1);
        let found = still(&heads(long, true));
        assert_eq!(found.unrouted, Some(("ev".to_owned(), long)));
        assert_eq!(found.runnable, Some(("wk".to_owned(), long)));
        assert_eq!(still(&heads(long, false)).runnable, None, "a full scope starts nothing");
    }

    #[test]
    fn only_what_stood_still_twice_is_told() {
        let (first, later) = (still(&heads(STILL_AFTER * 2, true)), still(&heads(STILL_AFTER * 3, true)));
        let mut moved = later.clone();
        moved.runnable = Some(("another".to_owned(), STILL_AFTER * 3));
        let mut checks = Checks(Vec::new());
        report(&first.clone().and(later), &mut checks);
        report(&first.clone().and(moved), &mut checks);
        report(&Still::default().and(first), &mut checks);
        let levels: Vec<&str> = checks.0.iter().map(|check| check.level.as_str()).collect();
        assert_eq!(levels, ["warning", "warning", "warning", "ok", "ok", "ok"]);
        assert!(checks.0[0].sentence.starts_with("ev has waited 3 min and"), "{}", checks.0[0].sentence);
    }
    /// Leaves an Event that can be routed and is not.
    fn leave_event(tx: &mut dyn Tx) -> Result<(), StoreError> {
        let id = EventId::from_number(7);
        let event = Event {
            id,
            sequence: tx.next_sequence(),
            source: SourceName::known("test"),
            delivery_id: DeliveryId::known("d"),
            event_type: EventType::known("build.finished"),
            scope: ScopeName::known("main"),
            key: None,
            work: None,
            causation: Causation::root(id, domain::causal::Bounds { max_depth: 32, per_minute: 128 }),
            emitted_by: None,
            occurred_at: None,
            accepted_at: START,
        };
        tx.insert_event(&event, &Payload::null())?;
        tx.insert_unrouted(Unrouted { sequence: event.sequence, lane: LaneId::of_event(&event) })
    }

    fn leave_work(tx: &mut dyn Tx, number: i64, queue: Queue, at: Timestamp) -> Result<(), StoreError> {
        let (scope, kind) = (ScopeName::known("main"), WorkKind::known("test"));
        let work = Work::create(WorkId::from_number(number), scope, kind, Lifecycle::Once, at);
        tx.insert_work(&Work { queue, ..work })
    }

    #[tokio::test]
    async fn the_heads_are_the_oldest_of_each_queue() {
        let store = store::open(&Location::Memory, store::Options::default()).await.unwrap();
        let written = store.transact("test", |tx| {
            leave_event(tx)?;
            let full = || Queue::Blocked(Blocker::ScopeFull(ScopeName::known("main")));
            leave_work(tx, 1, Queue::Runnable, START.after(STILL_AFTER))?;
            leave_work(tx, 2, Queue::Runnable, START)?;
            leave_work(tx, 3, full(), START.after(STILL_AFTER))?;
            leave_work(tx, 4, full(), START.after(STILL_AFTER / 2))?;
            let disabled = Queue::Blocked(Blocker::ScopeDisabled(ScopeName::known("main")));
            leave_work(tx, 5, disabled, START)
        });
        written.await.unwrap();
        let look = async |room: &[(ScopeName, u32)]| {
            let concurrency: BTreeMap<ScopeName, u32> = room.iter().cloned().collect();
            store.read("test", move |tx| super::heads(tx, &concurrency)).await.unwrap()
        };
        let main = ScopeName::known("main");
        let found = look(&[(main.clone(), 1)]).await;
        let named = |head: &Option<Head>| head.as_ref().map(|head| (head.id.clone(), head.since));
        assert_eq!(named(&found.unrouted), Some((EventId::from_number(7).to_string(), START)));
        assert_eq!(named(&found.runnable), Some((WorkId::from_number(2).to_string(), START)));
        assert_eq!(named(&found.blocked), Some((WorkId::from_number(5).to_string(), START)));
        assert_eq!(found.blocked.unwrap().reason.as_deref(), Some("scope_disabled:main"));
        assert!(found.has_room);
        assert!(!look(&[(main, 0)]).await.has_room && !look(&[]).await.has_room);
        store.close().await.unwrap();
    }
}
