//! What one Work learns of another's.

use domain::event::Key;
use domain::id::{Sequence, WorkId};
use domain::text::ScopeName;

use crate::driver::{
    Command, Driver, EventRecord, Registration, ScopeText, Subscription, TurnEnd, TurnOutcome, WorkWord,
    delivery, key, kind, scope,
};

fn subscription(id: &str, work: WorkId, watched: &str, own: &str, after: Sequence) -> Subscription {
    Subscription {
        id: id.to_owned(),
        work,
        watched: key(watched),
        types: Vec::new(),
        own: key(own),
        becomes: kind("test.alias"),
        after,
    }
}

fn aliases(driver: &mut dyn Driver, own: &Key) -> Vec<EventRecord> {
    let seen = driver.snapshot();
    let of = |event: &&EventRecord| event.key.as_ref() == Some(own);
    seen.events_of("test.alias").into_iter().filter(of).cloned().collect()
}

/// Parks a new Work on its own key, until an alias.
#[track_caller]
fn dependent(driver: &mut dyn Driver, own: &str) -> WorkId {
    let (work, run) = driver.running(own);
    let after = driver.last();
    let types = vec![kind("test.alias")];
    driver.wait(run, Registration { keys: vec![key(own)], types, after, timeout: None });
    work
}

/// A foreign key cannot be waited on or taken; an alias, caused by the original and made once, wakes the Work.
pub fn dependency_subscription_alias(driver: &mut dyn Driver) {
    let other = ScopeText { reads: vec![ScopeName::known("main")], ..scope("other") };
    driver.must(Command::Configure(vec![scope("main"), other, scope("stranger")]));
    driver.deliver(delivery("of the owner").key("o").standing());
    let run = driver.start_one();
    let owner = driver.owner("o");
    let (work, waits) = driver.running("d");
    let after = driver.last();
    let foreign = Registration { keys: vec![key("o")], types: Vec::new(), after, timeout: None };
    let (tries, attempt) = driver.running("t");
    driver.wait(attempt, foreign);
    assert_eq!(driver.work(tries).state, WorkWord::Ready, "nobody waits on another's key");
    let types = vec![kind("test.alias")];
    driver.wait(waits, Registration { keys: vec![key("d")], types, after, timeout: None });
    driver.refused(Command::Subscribe(subscription("s-0", work, "d", "o", after)));
    driver.must(Command::Subscribe(subscription("s-1", work, "o", "d", after)));

    let source = driver.deliver(delivery("news").key("o"));
    assert_eq!(driver.work(owner).pending, [source], "it is the owner's");
    assert_eq!(driver.work(work).state, WorkWord::Waiting);
    driver.must(Command::Translate);
    driver.must(Command::Translate);
    driver.route();
    let made = aliases(driver, &key("d"));
    assert_eq!(made.len(), 1, "one alias for one Event");
    let original = driver.snapshot().event(source).clone();
    assert_eq!((made[0].work, made[0].parent), (Some(work), Some(source)));
    assert_eq!((made[0].root, made[0].depth), (original.root, original.depth + 1), "it is on its chain");
    let woken = driver.work(work);
    assert_eq!((woken.state, woken.pending.as_slice()), (WorkWord::Ready, &[made[0].id][..]));
    assert_eq!(driver.owner("o"), owner, "the key stays the owner's");
    assert!(!woken.keys.contains(&key("o")));

    // Installed again from where it began, it finds the same and makes nothing of it.
    driver.must(Command::Subscribe(subscription("s-1", work, "o", "d", after)));
    driver.route();
    assert_eq!(aliases(driver, &key("d")).len(), 1);
    assert_eq!(driver.work(work).pending.len(), 1);
    driver.start_one();
    // Another dependent has an alias of its own, also of what was there before it came.
    let second = dependent(driver, "e");
    driver.must(Command::Subscribe(subscription("s-2", second, "o", "e", after)));
    driver.route();
    assert_eq!(aliases(driver, &key("e")).len(), 1);
    assert_eq!(driver.work(second).state, WorkWord::Ready);
    driver.start();

    // Across scopes only with a right to read, and after a cancellation not at all.
    driver.deliver(delivery("of a stranger").key("x").scope("stranger"));
    driver.deliver(delivery("of a reader").key("y").scope("other"));
    let (stranger, reader) = (driver.owner("x"), driver.owner("y"));
    driver.refused(Command::Subscribe(subscription("s-3", stranger, "o", "x", after)));
    driver.must(Command::Subscribe(subscription("s-4", reader, "o", "y", after)));
    assert_eq!(aliases(driver, &key("y")).len(), 1);
    driver.must(Command::Cancel(work));
    driver.deliver(delivery("more news").key("o"));
    driver.must(Command::Translate);
    assert_eq!(aliases(driver, &key("d")).len(), 1, "what was cancelled learns nothing");
    assert_eq!(aliases(driver, &key("y")).len(), 2);
    driver.end(run, TurnEnd::of(TurnOutcome::Handoff));
}
