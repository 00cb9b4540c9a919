//! Parking, watermarks, timeouts, and exactly one wake.

use std::time::Duration;

use domain::id::{Epoch, EventId, ExecutionId, Sequence, WorkId};
use domain::route::CheckpointOutcome;

use crate::driver::{
    AttemptState, Capability, Command, Driver, Registration, ScopeText, TurnEnd, TurnOutcome, WaitRecord,
    WaitState, Wish, WorkWord, delivery, key, kind, route, scope,
};

const MOMENT: Duration = Duration::from_micros(1);
const TIMEOUT: Duration = Duration::from_mins(1);

fn on(id: &str, after: Sequence) -> Registration {
    Registration { keys: vec![key(id)], types: Vec::new(), after, timeout: None }
}

fn done() -> TurnEnd {
    TurnEnd::of(TurnOutcome::Completed)
}

#[track_caller]
fn wait_of(driver: &mut dyn Driver, work: WorkId) -> WaitRecord {
    let waits = driver.snapshot().waits;
    waits.into_iter().rfind(|wait| wait.work == work).expect("the Work has waited")
}

/// Parks a new Work of one key; its Work and its first attempt.
#[track_caller]
fn parked(driver: &mut dyn Driver, id: &str, timeout: Option<Duration>) -> (WorkId, ExecutionId) {
    let (work, run) = driver.running(id);
    let after = driver.last();
    driver.wait(run, Registration { timeout, ..on(id, after) });
    assert_eq!(driver.work(work).state, WorkWord::Waiting);
    assert_eq!(wait_of(driver, work).state, WaitState::Active);
    (work, run)
}

/// Starts what was woken and sees that it continues the way its binding can.
#[track_caller]
fn continues(driver: &mut dyn Driver, run: ExecutionId, winner: EventId, resumes: bool) -> ExecutionId {
    let before = driver.attempt(run);
    let next = driver.start_one();
    let seen = driver.attempt(next);
    if resumes {
        assert_eq!(next, run, "the same attempt goes on");
        assert_eq!(seen.epoch, before.epoch.next(), "at a higher epoch");
        assert_eq!((seen.trigger, seen.resumed_by), (before.trigger, Some(winner)));
    } else {
        assert_eq!(before.state, AttemptState::Waiting, "the attempt that waited has ended");
        assert_eq!((seen.number, seen.trigger), (before.number + 1, winner));
    }
    assert!(seen.consumed.contains(&winner), "what woke it is its input");
    next
}

/// Registered first or accepted first, the Event wakes once.
pub fn wait_event_registration_orders(driver: &mut dyn Driver) {
    for resumes in [false, true] {
        let can: &[Capability] = if resumes { &[Capability::Resume] } else { &[] };
        driver.configure(scope("main").can(can));
        let named = |name: &str| format!("{name} {resumes}");

        let id = named("registered first");
        let (work, run) = parked(driver, &id, None);
        driver.stale(run, Epoch::FIRST, done());
        assert!(driver.start().is_empty(), "nothing starts what waits");
        let winner = driver.deliver(delivery(&named("d-1")).key(&id));
        assert_eq!(wait_of(driver, work).state, WaitState::Woken(winner), "a match wakes it");
        let after = driver.deliver(delivery(&named("d-2")).key(&id));
        assert_eq!(driver.accept_again(delivery(&named("d-1")).key(&id)), winner);
        driver.route();
        assert_eq!(driver.work(work).pending, [winner, after], "it is input once");
        let seen = driver.snapshot();
        let bridges = seen.events_of("core.wait.woken");
        let bridge = bridges.iter().find(|event| event.parent == Some(winner)).expect("a wake is an Event");
        assert_eq!(bridge.root, seen.event(winner).root, "on its winner's chain");
        let next = continues(driver, run, winner, resumes);
        assert_eq!(wait_of(driver, work).state, WaitState::Woken(winner), "its history is kept");
        driver.end(next, done());

        let id = named("accepted first");
        let (work, run) = driver.running(&id);
        let watermark = driver.last();
        let winner = driver.deliver(delivery(&named("d-3")).key(&id));
        let second = driver.deliver(delivery(&named("d-4")).key(&id));
        driver.wait(run, on(&id, watermark));
        assert_eq!(wait_of(driver, work).state, WaitState::Woken(winner), "the first accepted wins, at once");
        driver.stale(run, Epoch::FIRST, done());
        let next = continues(driver, run, winner, resumes);
        assert!(driver.attempt(next).consumed.contains(&second));
        driver.end(next, done());

        let id = named("accepted and not routed");
        let (work, run) = driver.running(&id);
        let watermark = driver.last();
        let winner = driver.accept(delivery(&named("d-5")).key(&id));
        driver.wait(run, on(&id, watermark));
        driver.route();
        assert_eq!(wait_of(driver, work).state, WaitState::Woken(winner));
        assert_eq!(driver.work(work).pending, [winner]);
        let next = continues(driver, run, winner, resumes);
        driver.end(next, done());
        assert_eq!(driver.work(work).state, WorkWord::Completed);
    }
    what_does_not_match(driver);
    what_stood_behind_another(driver);
}

/// Events that a Wait is not for accumulate, and wake nothing.
fn what_does_not_match(driver: &mut dyn Driver) {
    let (work, run) = driver.running("filtered");
    let trigger = driver.attempt(run).trigger;
    let after = driver.last();
    driver.wait(run, Registration { types: vec![kind("test.wanted")], ..on("filtered", after) });
    let context = driver.deliver(delivery("d-6").key("filtered"));
    assert_eq!(driver.work(work).pending, [context]);
    let mut own = delivery("d-7").key("filtered").of("test.wanted").to(work).because(trigger);
    own.emitted_by = Some(run);
    driver.deliver(own);
    driver.deliver(delivery("d-8").key("another").of("test.wanted"));
    assert_eq!(driver.work(work).state, WorkWord::Waiting, "a Work is never news to itself");
    let winner = driver.deliver(delivery("d-9").key("filtered").of("test.wanted"));
    assert_eq!(wait_of(driver, work).state, WaitState::Woken(winner));
    let woken = driver.work(work);
    assert_eq!(woken.state, WorkWord::Ready);
    assert_eq!(woken.pending.first(), Some(&context), "what accumulated is taken along");

    driver.configure(scope("main").routes(vec![route("told").takes("test.happened")]));
    driver.start();
    let (work, _run) = parked(driver, "strange", None);
    let news = driver.deliver(delivery("d-10").key("strange").of("test.strange"));
    assert_eq!(wait_of(driver, work).state, WaitState::Woken(news), "what no route takes is news, too");
}

/// A match that is not routed as a Wait begins holds up a later one only until it turns out to be none.
fn what_stood_behind_another(driver: &mut dyn Driver) {
    let takes = vec![route("told").takes("test.happened")];
    driver.configure(scope("main").routes(takes));
    driver.start();
    let elsewhere = Wish::Fresh(vec![key("elsewhere")]);
    for (id, wish) in [("dropped", Wish::Drop), ("taken by another", elsewhere)] {
        let (gated, strange) = (format!("{id}, gated"), format!("{id}, strange"));
        let both = Wish::Keys(vec![key(&gated), key(&strange)]);
        driver.deliver(delivery(&format!("first, {id}")).key(&gated).wish(both));
        let run = driver.start_one();
        let (work, after) = (driver.owner(&gated), driver.last());
        let first = delivery(&format!("first match, {id}")).key(&gated).wish(wish);
        driver.accept(first.gate(if id == "dropped" { "to drop" } else { "to take" }));
        let second = delivery(&format!("second match, {id}")).key(&strange).of("test.strange");
        let second = driver.deliver(second);
        assert_eq!(driver.outcome(second), Some(CheckpointOutcome::Unmatched), "nobody waits yet");
        driver.wait(run, Registration { keys: vec![key(&gated), key(&strange)], ..on(&gated, after) });
        assert_eq!(wait_of(driver, work).state, WaitState::Active, "the first may be news, and comes first");
        driver.must(Command::Open(if id == "dropped" { "to drop" } else { "to take" }));
        driver.route();
        let state = wait_of(driver, work).state;
        assert_eq!(state, WaitState::Woken(second), "what stood behind it is news still");
        driver.must(Command::Cancel(work));
    }
}

/// At the deadline the order of acceptance decides, and a clock alone wakes nothing.
pub fn wait_timeout_acceptance_tie(driver: &mut dyn Driver) {
    driver.configure(scope("main"));
    // An Event that is accepted already wins at the very deadline.
    let (work, run) = parked(driver, "event first", Some(TIMEOUT));
    driver.advance(TIMEOUT.saturating_sub(MOMENT));
    driver.fire();
    assert_eq!(driver.work(work).state, WorkWord::Waiting, "it is not due a moment before");
    driver.advance(MOMENT);
    assert_eq!(driver.work(work).state, WorkWord::Waiting, "a clock alone wakes nothing");
    let winner = driver.accept(delivery("d-1").key("event first"));
    driver.fire();
    driver.route();
    assert_eq!(wait_of(driver, work).state, WaitState::Woken(winner), "what is accepted already wins");
    let seen = driver.snapshot();
    assert!(seen.events_of("core.wait.timeout").is_empty() && seen.timers.is_empty());
    assert_eq!(driver.work(work).pending, [winner], "it is input once");
    let next = continues(driver, run, winner, false);
    driver.end(next, done());

    // A timeout that is accepted first wins over what comes later.
    let (work, run) = parked(driver, "timeout first", Some(TIMEOUT));
    driver.advance(TIMEOUT);
    driver.fire();
    let late = driver.deliver(delivery("d-2").key("timeout first"));
    let seen = driver.snapshot();
    let timeouts = seen.events_of("core.wait.timeout");
    assert_eq!(timeouts.len(), 1);
    let timeout = timeouts[0].id;
    assert_eq!(timeouts[0].root, seen.event(seen.attempt(run).trigger).root, "on its registration's chain");
    assert_eq!(wait_of(driver, work).state, WaitState::Woken(timeout));
    assert_eq!(driver.work(work).pending, [timeout, late]);
    let before = driver.snapshot();
    driver.fire();
    driver.route();
    assert_eq!(driver.snapshot(), before, "what has fired does not fire again");
    continues(driver, run, timeout, false);
    refused_timeout(driver);
}

/// A timeout that its chain refuses wakes nothing, and is left to an operator.
fn refused_timeout(driver: &mut dyn Driver) {
    driver.configure(ScopeText { causal_max_depth: 1, ..scope("main") });
    let root = driver.accept(delivery("root"));
    driver.deliver(delivery("deep").key("deep").because(root));
    let (run, work) = (driver.start_one(), driver.owner("deep"));
    let after = driver.last();
    driver.wait(run, Registration { timeout: Some(TIMEOUT), ..on("deep", after) });
    driver.advance(TIMEOUT);
    driver.fire();
    driver.fire();
    let seen = driver.snapshot();
    let held = seen.work(work);
    assert!(held.held.is_some() && held.state == WorkWord::Waiting, "no wake without an Event");
    assert!(seen.timers.is_empty() && driver.start().is_empty(), "and no tight loop");
    driver.must(Command::Release(work));
    let seen = driver.snapshot();
    let timeout = seen.events_of("core.wait.timeout").last().copied().expect("it is accepted now").clone();
    assert_eq!(timeout.depth, 0, "an operator's word needs no room in a chain");
    assert_eq!(wait_of(driver, work).state, WaitState::Woken(timeout.id));
    continues(driver, run, timeout.id, false);
    fact_after_a_refused_timeout(driver);
}

/// Where a timeout was refused a fact still ends the Wait, and with it what held its Work.
fn fact_after_a_refused_timeout(driver: &mut dyn Driver) {
    let root = driver.accept(delivery("another root"));
    driver.deliver(delivery("deeper").key("deeper").because(root));
    let (run, work) = (driver.start_one(), driver.owner("deeper"));
    let after = driver.last();
    driver.wait(run, Registration { timeout: Some(TIMEOUT), ..on("deeper", after) });
    driver.advance(TIMEOUT);
    driver.fire();
    assert!(driver.work(work).held.is_some());
    let fact = driver.deliver(delivery("fact").key("deeper"));
    assert_eq!(wait_of(driver, work).state, WaitState::Woken(fact));
    assert!(driver.work(work).held.is_none(), "what held it is over");
    continues(driver, run, fact, false);

    driver.deliver(delivery("deepest").key("deepest").because(root));
    let (run, work) = (driver.start_one(), driver.owner("deepest"));
    let after = driver.last();
    driver.wait(run, Registration { timeout: Some(TIMEOUT), ..on("deepest", after) });
    driver.advance(TIMEOUT);
    driver.fire();
    driver.must(Command::Cancel(work));
    driver.refused(Command::Release(work));
}

/// Wake and cancellation, in both orders: neither rewrites the other.
pub fn wait_cancel_orders(driver: &mut dyn Driver) {
    for resumes in [false, true] {
        let can: &[Capability] = if resumes { &[Capability::Resume] } else { &[] };
        driver.configure(scope("main").can(can));
        let named = |name: &str| format!("{name} {resumes}");

        let id = named("cancelled first");
        let (work, run) = parked(driver, &id, Some(TIMEOUT));
        driver.must(Command::Cancel(work));
        assert_eq!(wait_of(driver, work).state, WaitState::Cancelled, "a Wait ends with its Work");
        let seen = driver.snapshot();
        assert!(seen.timers.is_empty() && seen.attempt(run).state.is_terminal());
        let late = driver.deliver(delivery(&named("d-1")).key(&id));
        driver.advance(TIMEOUT);
        driver.fire();
        assert_eq!(driver.outcome(late), Some(CheckpointOutcome::Terminal), "a later match is only recorded");
        assert_eq!(wait_of(driver, work).state, WaitState::Cancelled);
        assert!(driver.start().is_empty());

        let id = named("woken first");
        let (work, run) = parked(driver, &id, Some(TIMEOUT));
        let winner = driver.deliver(delivery(&named("d-2")).key(&id));
        driver.must(Command::Cancel(work));
        assert_eq!(wait_of(driver, work).state, WaitState::Woken(winner), "what was woken stays so");
        assert!(driver.start().is_empty(), "and is not started");
        assert!(driver.attempt(run).state.is_terminal());

        let id = named("resumed first");
        let (work, run) = parked(driver, &id, None);
        let winner = driver.deliver(delivery(&named("d-3")).key(&id));
        let next = continues(driver, run, winner, resumes);
        let epoch = driver.attempt(next).epoch;
        driver.must(Command::Cancel(work));
        assert_eq!(driver.attempt(next).state, AttemptState::Cancelled);
        driver.stale(next, epoch, done());
        assert_eq!(wait_of(driver, work).state, WaitState::Woken(winner));
    }
}

/// A watermark is exclusive, and never past what is accepted; a Wait may be for a time alone.
pub fn wait_watermark_and_timeout_only(driver: &mut dyn Driver) {
    driver.configure(scope("main"));
    let last = driver.last();
    let beyond = Registration { timeout: Some(TIMEOUT), ..on("beyond", Sequence::from_number(i64::MAX)) };
    let endless = Registration { keys: Vec::new(), ..on("endless", last) };
    for (id, registration) in [("beyond", beyond), ("foreign", on("another's", last)), ("endless", endless)] {
        let (work, run) = driver.running(id);
        driver.wait(run, registration);
        let seen = driver.snapshot();
        assert_eq!(seen.attempt(run).state, AttemptState::Failed, "what may not be waited for is a failure");
        assert!(seen.waits.is_empty() && seen.work(work).state == WorkWord::Ready);
        driver.must(Command::Cancel(work));
    }

    let (work, run) = driver.running("k");
    let seen_already = driver.deliver(delivery("d-1").key("k"));
    let watermark = driver.last();
    driver.wait(run, on("k", watermark));
    assert_eq!(driver.work(work).state, WorkWord::Waiting, "what was observed is not used again");
    let winner = driver.deliver(delivery("d-2").key("k"));
    assert_eq!(wait_of(driver, work).state, WaitState::Woken(winner));
    let next = continues(driver, run, winner, false);
    assert_eq!(driver.attempt(next).consumed, [seen_already, winner]);

    // It has consumed them, so neither wakes it again, whatever the watermark.
    driver.wait(next, Registration { keys: Vec::new(), timeout: Some(TIMEOUT), ..on("k", Sequence::ZERO) });
    assert_eq!(driver.work(work).state, WorkWord::Waiting);
    let context = driver.deliver(delivery("d-3").key("k"));
    assert_eq!(driver.work(work).state, WorkWord::Waiting, "it waits for the time alone");
    driver.advance(TIMEOUT);
    driver.fire();
    let seen = driver.snapshot();
    let timeout = seen.events_of("core.wait.timeout").first().expect("its time is an Event").id;
    assert!(seen.timers.is_empty(), "the timer is gone, and still known");
    assert_eq!(wait_of(driver, work).state, WaitState::Woken(timeout));
    let last = continues(driver, next, timeout, false);
    assert_eq!(driver.attempt(last).consumed, [context, timeout]);
    what_was_seen_before_it_was_routed(driver);
}

/// At the watermark an Event is no news, also where it is routed only afterwards.
fn what_was_seen_before_it_was_routed(driver: &mut dyn Driver) {
    let (work, run) = driver.running("seen");
    let seen_already = driver.accept(delivery("d-4").key("seen"));
    let watermark = driver.last();
    driver.wait(run, on("seen", watermark));
    driver.route();
    assert_eq!(driver.work(work).state, WorkWord::Waiting, "it was observed");
    assert_eq!(driver.work(work).pending, [seen_already]);
    let winner = driver.deliver(delivery("d-5").key("seen"));
    assert_eq!(wait_of(driver, work).state, WaitState::Woken(winner));
    assert_eq!(driver.work(work).pending, [seen_already, winner]);
}
