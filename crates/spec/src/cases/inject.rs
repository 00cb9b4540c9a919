//! Events that arrive while an attempt runs: what may be done with them, and what proves that they were taken in.

use domain::id::{EventId, ExecutionId, WorkId};
use domain::route::CheckpointOutcome;

use crate::driver::{
    AttemptState, Capability, Command, Driver, InjectAnswer, IntentState, TurnEnd, TurnOutcome, WorkWord,
    delivery, route, scope,
};

fn done() -> TurnEnd {
    TurnEnd::of(TurnOutcome::Completed)
}

/// A policy that the executor cannot do is refused, unless a fallback is named; and then that is told.
pub fn unsupported_policy_explicit_fallback(driver: &mut dyn Driver) {
    driver.configure(scope("main"));
    for policy in ["inject", "interrupt", "coalesce", "whatever"] {
        driver.refused(Command::Configure(vec![scope("main").policy(policy)]));
    }
    for fallback in ["interrupt", "inject", "coalesce"] {
        let routes = vec![route("told").policy("inject").fallback(fallback)];
        driver.refused(Command::Configure(vec![scope("main").routes(routes)]));
    }
    let (work, run) = driver.running("k");
    let event = driver.deliver(delivery("d-1").key("k"));
    let seen = driver.snapshot();
    assert_eq!(seen.checkpoint(event).generation.number(), 1, "what is refused is not in force");
    assert_eq!(seen.checkpoint(event).code, None);

    for (fallback, outcome) in [("queue", CheckpointOutcome::Routed), ("drop", CheckpointOutcome::Dropped)] {
        let routes = vec![route("told").policy("inject").fallback(fallback)];
        driver.configure(scope("main").routes(routes));
        let event = driver.deliver(delivery(&format!("by {fallback}")).key("k"));
        let seen = driver.snapshot();
        let checkpoint = seen.checkpoint(event);
        assert_eq!((checkpoint.outcome, checkpoint.work), (outcome, Some(work)));
        assert_eq!(checkpoint.policy.as_deref(), Some(fallback), "the policy in effect is told");
        assert!(checkpoint.code.is_some(), "and why");
        assert_eq!(seen.work(work).pending.contains(&event), fallback == "queue");
        assert!(seen.intents.is_empty(), "nothing is injected");
    }
    driver.end(run, done());
    let able = scope("main").policy("inject").can(&[Capability::Inject]);
    driver.configure(able);
    let run = driver.start_one();
    let event = driver.deliver(delivery("d-2").key("k"));
    let seen = driver.snapshot();
    assert_eq!(seen.checkpoint(event).policy.as_deref(), Some("inject"));
    assert_eq!(seen.intents.len(), 1, "what the executor can do is done");
    assert_eq!((seen.intents[0].event, seen.intents[0].execution), (event, run));
}

/// A running Work with one injected Event.
#[track_caller]
fn injected(driver: &mut dyn Driver, id: &str) -> (WorkId, ExecutionId, EventId) {
    let (work, run) = driver.running(id);
    let event = driver.deliver(delivery(&format!("into {id}")).key(id));
    assert_eq!(intent(driver, event), (run, IntentState::Pending), "the order is durable first");
    (work, run, event)
}

#[track_caller]
fn intent(driver: &mut dyn Driver, event: EventId) -> (ExecutionId, IntentState) {
    let seen = driver.snapshot();
    let intent = seen.intents.iter().find(|intent| intent.event == event).expect("there is an intent");
    (intent.execution, intent.state)
}

/// Sees that an Event was not consumed: the Work goes on to an attempt that has it.
#[track_caller]
fn is_left(driver: &mut dyn Driver, work: WorkId, event: EventId) {
    let left = driver.work(work);
    let state = (left.state, left.pending.as_slice());
    assert_eq!(state, (WorkWord::Ready, &[event][..]), "only proof consumes");
    let next = driver.start_one();
    let seen = driver.snapshot();
    assert_eq!(seen.attempt(next).number, 2);
    assert_eq!(seen.attempt(next).consumed, [event], "it is presented again");
    let aimed = seen.intents.iter().filter(|intent| intent.execution == next).count();
    driver.dispatch(InjectAnswer::Accepted);
    assert_eq!(aimed, 0, "the old order is not aimed at the next attempt");
    driver.end(next, done());
    assert_eq!(driver.work(work).state, WorkWord::Completed);
}

/// Completion and input, in every order: what is accepted is not passed over, and only proof consumes.
pub fn completion_inject_orders(driver: &mut dyn Driver) {
    driver.configure(scope("main").policy("inject").can(&[Capability::Inject]));
    // Input that is accepted and not routed.
    let (work, run) = driver.running("unrouted");
    let event = driver.accept(delivery("d-1").key("unrouted"));
    driver.end(run, done());
    assert!(!driver.work(work).state.is_terminal(), "it waits for what is accepted");
    driver.route();
    assert_eq!(driver.attempt(run).state, AttemptState::Completed);
    let ready = driver.work(work);
    assert_eq!((ready.state, ready.pending.as_slice()), (WorkWord::Ready, &[event][..]));
    let next = driver.start_one();
    driver.end(next, done());
    let late = driver.deliver(delivery("d-2").key("unrouted"));
    assert_eq!(driver.outcome(late), Some(CheckpointOutcome::Terminal), "what comes later is only recorded");

    // Completed before anything was presented.
    let (work, run, event) = injected(driver, "undelivered");
    driver.end(run, done().proving(&[event]));
    assert_eq!(intent(driver, event), (run, IntentState::Stale));
    is_left(driver, work, event);

    // Delivered, and not proved.
    let (work, run, event) = injected(driver, "unproved");
    driver.dispatch(InjectAnswer::Accepted);
    assert_eq!(intent(driver, event), (run, IntentState::Accepted));
    assert_eq!(driver.work(work).pending, [event], "delivered is not consumed");
    driver.end(run, done());
    is_left(driver, work, event);

    // Certainly not delivered: no proof of it counts.
    let (work, run, event) = injected(driver, "not accepting");
    driver.dispatch(InjectAnswer::NotAccepting);
    driver.dispatch(InjectAnswer::Accepted);
    assert_eq!(intent(driver, event), (run, IntentState::NotAccepting), "it is not tried again");
    driver.end(run, done().proving(&[event]));
    is_left(driver, work, event);

    // Proved, on success and on failure.
    let (work, run, event) = injected(driver, "proved");
    driver.dispatch(InjectAnswer::Ambiguous);
    assert_eq!(intent(driver, event), (run, IntentState::Pending), "nobody knows, so it is sent again");
    driver.dispatch(InjectAnswer::Accepted);
    driver.end(run, done().proving(&[event]));
    assert_eq!(intent(driver, event), (run, IntentState::Consumed));
    assert_eq!(driver.work(work).state, WorkWord::Completed);
    assert!(driver.attempt(run).consumed.contains(&event));
    let (work, run, event) = injected(driver, "proved by a failure");
    driver.dispatch(InjectAnswer::Accepted);
    driver.end(run, TurnEnd::failed().proving(&[event]));
    assert!(driver.work(work).pending.is_empty(), "a retry does not see it again");

    // The proof overtakes the acknowledgement, which comes late and changes nothing.
    let (work, run, event) = injected(driver, "under way");
    driver.must(Command::Present);
    driver.end(run, done().proving(&[event]));
    driver.must(Command::Acknowledge(InjectAnswer::NotAccepting));
    assert_eq!(intent(driver, event), (run, IntentState::Consumed));
    assert_eq!(driver.work(work).state, WorkWord::Completed);

    // The answer comes after the end, without a proof: it was delivered, and is not consumed.
    let (work, run, event) = injected(driver, "answered too late");
    driver.must(Command::Present);
    driver.end(run, done());
    driver.must(Command::Acknowledge(InjectAnswer::Accepted));
    let (_run, state) = intent(driver, event);
    assert_ne!(
        state,
        IntentState::Consumed,
        "whether it is heard or lost with its process, it proves nothing"
    );
    is_left(driver, work, event);
}
