//! Which route decides, and in which order things happen to a Work.

use std::collections::BTreeSet;

use domain::route::CheckpointOutcome;
use domain::text::RouteName;

use crate::driver::{
    Answer, AttemptState, Command, Driver, TurnEnd, TurnOutcome, Wish, WorkWord, binding, delivery, key,
    route, scope,
};

fn names(routes: &[&str]) -> BTreeSet<RouteName> {
    routes.iter().map(|name| RouteName::known(name)).collect()
}

/// Routes and starts that begin at the same time lead to one Work and one attempt.
pub fn concurrent_correlations_and_attempts(driver: &mut dyn Driver) {
    driver.configure(scope("main"));
    let of = |id: &str| Command::Accept(delivery(id).key("k"));
    let answers = driver.together(vec![of("d-1"), of("d-2"), of("d-1"), of("d-3")]);
    let mut accepted = Vec::new();
    let mut originals = Vec::new();
    for answer in answers {
        match answer {
            Answer::Accepted(event) => accepted.push(event),
            Answer::Original(event) => originals.push(event),
            answer @ (Answer::Done | Answer::Attempts(_) | Answer::Refused(_) | Answer::Lacking(_)) => {
                panic!("neither new nor known: {answer:?}")
            }
        }
    }
    assert_eq!((accepted.len(), originals.len()), (3, 1), "one delivery is one Event");
    assert!(accepted.contains(&originals[0]));

    driver.together(vec![Command::Route, Command::Route]);
    let routed = driver.snapshot();
    assert_eq!(routed.works.len(), 1, "one key is one Work");
    let work = routed.works[0].id;
    let accepted: Vec<_> = routed.events.iter().map(|event| event.id).collect();
    assert_eq!(routed.works[0].pending, accepted, "each is input once, in order of acceptance");

    driver.together(vec![Command::Claim, Command::Claim]);
    driver.must(Command::Launch);
    let claimed = driver.snapshot();
    assert_eq!(claimed.attempts.len(), 1, "one attempt is live");
    assert_eq!(claimed.attempts[0].state, AttemptState::Running);
    assert_eq!(claimed.attempts[0].consumed, accepted);
    assert_eq!(claimed.attempts[0].trigger, accepted[0]);

    let late = driver.deliver(delivery("d-4").key("k"));
    assert!(driver.start().is_empty(), "no second attempt while one is live");
    assert_eq!(driver.work(work).pending, [late]);
    driver.end(claimed.attempts[0].id, TurnEnd::of(TurnOutcome::Handoff));
    driver.together(vec![Command::Claim, Command::Claim]);
    let again = driver.snapshot();
    assert_eq!(again.attempts_of(work).len(), 2);
    assert_eq!((again.attempts[1].number, again.attempts[1].trigger), (2, late));
}

/// A handler that stands still holds up its own lane and nothing beside it.
pub fn independent_work_progress(driver: &mut dyn Driver) {
    driver.configure(scope("main"));
    let slow = driver.accept(delivery("a-1").key("a").gate("slow"));
    let behind = driver.accept(delivery("a-2").key("a"));
    let beside = driver.accept(delivery("b-1").key("b"));
    driver.route();
    assert_eq!(driver.outcome(slow), None);
    assert_eq!(driver.outcome(behind), None, "order holds within a key");
    assert_eq!(driver.outcome(beside), Some(CheckpointOutcome::Routed), "another lane goes on");
    let started = driver.start_one();
    let owner = driver.owner("b");
    assert_eq!(driver.attempt(started).work, owner);
    driver.end(started, TurnEnd::of(TurnOutcome::Completed));
    assert_eq!(driver.work(owner).state, WorkWord::Completed, "it goes all the way");
    assert_eq!(driver.outcome(slow), None);

    driver.must(Command::Open("slow"));
    driver.route();
    let waited = driver.owner("a");
    assert_eq!(driver.work(waited).pending, [slow, behind]);
    driver.start_one();
    // A Work that runs, or waits out a failure, is in nobody's way either.
    let (_work, other) = driver.running("c");
    driver.end(other, TurnEnd::failed());
    driver.running("d");
}

/// The first match decides, also when it drops; a delivery that comes again runs nothing.
pub fn first_match_replay_and_drop_audit(driver: &mut dyn Driver) {
    driver.configure(scope("main").routes(vec![
        route("first").takes("test.one"),
        route("dropper").takes("test.two").drops(),
        route("busy").takes("test.three").policy("drop"),
        route("last"),
    ]));
    let matched = driver.deliver(delivery("d-1").key("a").of("test.one"));
    let dropped = driver.deliver(delivery("d-2").key("a").of("test.two"));
    let seen = driver.snapshot();
    assert_eq!(seen.checkpoint(matched).route, Some(RouteName::known("first")));
    assert_eq!(seen.asked[&matched], names(&["first"]), "nobody is asked after a match");
    let audit = seen.checkpoint(dropped);
    assert_eq!(audit.outcome, CheckpointOutcome::Dropped);
    assert_eq!(audit.route, Some(RouteName::known("dropper")));
    assert!(audit.code.is_some() && audit.generation.number() == 1);
    assert_eq!(audit.work, seen.owner("a").map(|work| work.id), "what it was about is kept");
    assert_eq!(seen.asked[&dropped], names(&["first", "dropper"]), "dropping is a match, too");
    assert_eq!(seen.works[0].pending, [matched]);

    let run = driver.start_one();
    let busy = driver.deliver(delivery("d-3").key("a").of("test.three"));
    let audit = driver.snapshot().checkpoint(busy).clone();
    assert_eq!((audit.outcome, audit.policy.as_deref()), (CheckpointOutcome::Dropped, Some("drop")));
    assert_eq!(audit.work, Some(driver.owner("a")));

    let before = driver.snapshot();
    for (id, event_type, original) in
        [("d-1", "test.one", matched), ("d-2", "test.two", dropped), ("d-3", "test.three", busy)]
    {
        assert_eq!(driver.accept_again(delivery(id).key("a").of(event_type)), original);
    }
    driver.route();
    assert!(driver.start().is_empty());
    let after = driver.snapshot();
    assert_eq!((after.works, after.attempts), (before.works, before.attempts), "a replay has no effect");
    assert!(after.events.iter().all(|event| event.redelivered == 1), "and is counted");
    assert_eq!(after.asked, before.asked, "and asks nobody");

    driver.end(run, TurnEnd::of(TurnOutcome::Completed));
    let owner = driver.owner("a");
    assert_eq!(driver.work(owner).state, WorkWord::Completed, "what was dropped is not input");
    let failing = driver.deliver(delivery("d-4").key("b").of("test.one").wish(Wish::Fail));
    let seen = driver.snapshot();
    assert!(seen.event(failing).checkpoint.is_none(), "an error decides nothing");
    assert_eq!(seen.asked[&failing], names(&["first"]), "and asks nobody else");
}

/// Keys are attached with what brings them, never moved, and order what happens to their Work.
pub fn multi_key_attachment_conflict_and_order(driver: &mut dyn Driver) {
    driver.configure(scope("main"));
    let first = driver.deliver(delivery("a-1").key("a"));
    let earlier = driver.accept(delivery("b-1").key("b").gate("joins"));
    let brings = driver.accept(delivery("a-2").key("a").wish(Wish::Keys(vec![key("a"), key("b")])));
    driver.route();
    let seen = driver.snapshot();
    let owner = seen.owner("a").expect("it was routed").clone();
    assert_eq!(seen.owner("b").map(|work| work.id), Some(owner.id));
    assert_eq!(owner.pending, [first, earlier, brings], "what was accepted earlier has its own place");
    assert_eq!(seen.checkpoint(earlier).work, Some(owner.id));

    driver.deliver(delivery("c-1").key("c"));
    let before = driver.snapshot();
    let conflict =
        driver.deliver(delivery("c-2").key("c").wish(Wish::Keys(vec![key("c"), key("d"), key("a")])));
    let after = driver.snapshot();
    assert!(after.event(conflict).checkpoint.is_none(), "it stays unrouted, to be looked at");
    assert_eq!(after.works, before.works, "no key of it is attached and none is moved");
    assert!(after.owner("d").is_none());

    driver.deliver(delivery("p-1").key("p").wish(Wish::Keys(vec![key("p"), key("q")])));
    let slow = driver.accept(delivery("p-2").key("p").gate("slow"));
    let quick = driver.accept(delivery("q-2").key("q"));
    driver.route();
    assert_eq!(driver.outcome(quick), None, "it waits for the earlier Event of its Work's other key");
    driver.must(Command::Open("slow"));
    driver.route();
    let shared = driver.owner("q");
    assert_eq!(driver.work(shared).pending[1..], [slow, quick], "whatever the pace of handlers");
}

/// A descendant's route takes its ancestor's slot, and inherited routes run by the nearest binding.
pub fn scope_route_inheritance(driver: &mut dyn Driver) {
    let root = scope("main")
        .routes(vec![route("alpha").takes("test.a"), route("beta").takes("test.b"), route("gamma")])
        .bindings(vec![binding("double").label("of the root")]);
    let leaf = scope("leaf")
        .below("main")
        .routes(vec![route("beta").takes("test.b").drops(), route("delta").takes("test.d")])
        .bindings(vec![binding("double").label("of the leaf")]);
    driver.must(Command::Configure(vec![leaf.clone(), root.clone()]));

    let above = driver.deliver(delivery("d-1").key("a").of("test.b"));
    let below = driver.deliver(delivery("d-2").key("b").of("test.b").scope("leaf"));
    let seen = driver.snapshot();
    assert_eq!(seen.checkpoint(above).outcome, CheckpointOutcome::Routed);
    assert_eq!(seen.checkpoint(below).outcome, CheckpointOutcome::Dropped, "the whole route is replaced");
    assert_eq!(seen.asked[&below], names(&["alpha", "beta"]), "in the slot it had");
    let appended = driver.deliver(delivery("d-3").key("c").of("test.d").scope("leaf"));
    assert_eq!(driver.snapshot().checkpoint(appended).route, Some(RouteName::known("gamma")));

    let inherited = driver.deliver(delivery("d-4").key("d").of("test.a").scope("leaf"));
    driver.start();
    let seen = driver.snapshot();
    let label = |event| {
        let attempt = seen.attempts.iter().find(|attempt| attempt.trigger == event);
        attempt.and_then(|attempt| attempt.label.as_deref())
    };
    assert_eq!(label(above), Some("of the root"));
    assert_eq!(label(inherited), Some("of the leaf"), "an inherited route runs by the nearest binding");

    let before = driver.snapshot();
    let across = driver.deliver(delivery("d-5").key("a").of("test.a").scope("leaf"));
    let after = driver.snapshot();
    assert!(after.event(across).checkpoint.is_none(), "a match is no authority in another scope");
    assert_eq!(after.works, before.works);

    driver.must(Command::Configure(vec![root, leaf]));
    let later = driver.deliver(delivery("d-6").key("e").of("test.a"));
    let seen = driver.snapshot();
    let generation = |event| seen.checkpoint(event).generation.number();
    assert_eq!((generation(above), generation(later)), (1, 2), "a decision names its configuration");
}
