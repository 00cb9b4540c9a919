//! Whose Work an Event is about, and what happens when nobody's.

use domain::route::CheckpointOutcome;

use crate::driver::{Command, Driver, TurnEnd, TurnOutcome, Wish, WorkWord, delivery, key, route, scope};

/// Without a key nothing is guessed; what has ended stays as it is, and a successor is a Work of its own.
pub fn uncorrelated_and_terminal_successor(driver: &mut dyn Driver) {
    driver.configure(scope("main"));
    let (first, run) = driver.running("k");
    let alone = driver.deliver(delivery("d-1"));
    assert_eq!(driver.outcome(alone), Some(CheckpointOutcome::Unmatched), "nothing is guessed");
    let addressed = driver.deliver(delivery("d-2").to(first));
    assert_eq!(driver.work(first).pending, [addressed]);
    driver.deliver(delivery("d-3").wish(Wish::Fresh(Vec::new())));
    driver.deliver(delivery("d-4").wish(Wish::Fresh(vec![key("f")])));
    let seen = driver.snapshot();
    assert_eq!(seen.works.len(), 3, "fresh Work is new each time");
    assert!(seen.works[1].keys.is_empty() && seen.works[2].keys.contains(&key("f")));

    driver.end(run, TurnEnd::of(TurnOutcome::Completed));
    assert_eq!(driver.work(first).state, WorkWord::Ready, "input is pending");
    for started in driver.start() {
        driver.end(started, TurnEnd::of(TurnOutcome::Completed));
    }
    let ended = driver.work(first);
    assert_eq!(ended.state, WorkWord::Completed);
    let late = driver.deliver(delivery("d-5").key("k"));
    let seen = driver.snapshot();
    assert_eq!(seen.checkpoint(late).outcome, CheckpointOutcome::Terminal, "what has ended takes nothing");
    assert_eq!(seen.checkpoint(late).work, Some(first), "what it was about is kept");
    assert_eq!(*seen.work(first), ended, "an end is not changed");

    let wish = Wish::Successor { of: first, keys: vec![key("k/generation/2")] };
    let reopens = driver.deliver(delivery("d-6").wish(wish));
    let seen = driver.snapshot();
    let next = seen.owner("k/generation/2").expect("the successor has a key of its own").clone();
    assert_ne!(next.id, first);
    assert_eq!(next.pending, [reopens]);
    assert_eq!(*seen.work(first), ended, "the old key stays where it was");
    let created = seen.events_of("core.work.created");
    assert_eq!(created.len(), 1, "a successor is announced");
    assert_eq!((created[0].work, created[0].parent), (Some(next.id), Some(reopens)));
    let again = driver.deliver(delivery("d-7").key("k/generation/2"));
    assert_eq!(driver.work(next.id).pending, [reopens, again]);
    let old = driver.deliver(delivery("d-8").key("k"));
    assert_eq!(driver.outcome(old), Some(CheckpointOutcome::Terminal));
    driver.refused(Command::Cancel(first));
}

/// What nothing matches is kept and never revived; a contradiction is refused and never resolved.
pub fn unmatched_and_contradictory_target(driver: &mut dyn Driver) {
    let main = scope("main").routes(vec![route("told").takes("test.happened")]);
    driver.must(Command::Configure(vec![main, scope("other")]));
    let unmatched = driver.deliver(delivery("d-1").key("z").of("test.strange"));
    assert_eq!(driver.outcome(unmatched), Some(CheckpointOutcome::Unmatched));
    let later = driver.deliver(delivery("d-2").key("z"));
    let seen = driver.snapshot();
    assert_eq!(seen.checkpoint(unmatched).outcome, CheckpointOutcome::Unmatched, "a key revives nothing");
    assert_eq!(seen.owner("z").expect("it was routed").pending, [later]);

    driver.deliver(delivery("d-3").key("a"));
    driver.deliver(delivery("d-4").key("b"));
    let (a, b) = (driver.owner("a"), driver.owner("b"));
    let before = driver.snapshot();
    assert_eq!(driver.refused(Command::Accept(delivery("d-5").to(a).key("b"))), "key_mismatch");
    assert_eq!(driver.refused(Command::Accept(delivery("d-6").to(a).key("nobody's"))), "key_mismatch");
    assert_eq!(driver.refused(Command::Accept(delivery("d-7").to(a).scope("other"))), "scope_mismatch");
    assert_eq!(driver.refused(Command::Accept(delivery("d-8").key("a").scope("nowhere"))), "unknown_scope");
    driver.route();
    assert_eq!(driver.snapshot(), before, "a refusal leaves nothing");
    // What was refused is not known, so it may come again and be right.
    let right = driver.deliver(delivery("d-5").to(a).key("a"));
    assert_eq!(driver.snapshot().checkpoint(right).work, Some(a));

    let elsewhere = driver.deliver(delivery("d-9").to(b).wish(Wish::Keys(vec![key("a")])));
    let seen = driver.snapshot();
    assert!(seen.event(elsewhere).checkpoint.is_none(), "a handler does not redirect what is addressed");
    assert_eq!(seen.work(b).pending.len(), 1);
}
