//! Who may speak for an attempt, and what happens when nobody does.

use std::time::Duration;

use domain::id::Epoch;

use crate::driver::{
    Answer, AttemptState, Command, Driver, EligibilityRecord, Found, TurnEnd, TurnOutcome, WorkWord,
    delivery, scope,
};

const MOMENT: Duration = Duration::from_micros(1);
const LEASE: Duration = Duration::from_secs(30);

fn done() -> TurnEnd {
    TurnEnd::of(TurnOutcome::Completed)
}

/// A lease ends exclusively; what goes on is the same attempt at a higher epoch, and the old one has no say.
pub fn lease_loss_adoption_and_stale_result(driver: &mut dyn Driver) {
    driver.configure(scope("main"));
    let (work, run) = driver.running("a");
    driver.advance(LEASE.saturating_sub(MOMENT));
    assert_eq!(driver.recover(Found::Alive), [], "a live lease is not taken");
    assert_eq!(driver.attempts(Command::Renew), [run]);
    driver.advance(LEASE);
    driver.stale(run, Epoch::FIRST, done());
    assert_eq!(driver.attempts(Command::Renew), [], "at the moment it ends it is over");

    let answers = driver.together(vec![Command::Recover(Found::Alive), Command::Recover(Found::Alive)]);
    let recovered = answers.iter().filter(|answer| **answer == Answer::Attempts(vec![run])).count();
    assert_eq!(recovered, 1, "one of two recoverers has it: {answers:?}");
    let adopted = driver.attempt(run);
    assert_eq!((adopted.state, adopted.number), (AttemptState::Running, 1), "it is the same attempt");
    assert_eq!((adopted.epoch, adopted.recovering), (Epoch::from_number(2), false));
    driver.stale(run, Epoch::FIRST, done());

    driver.advance(LEASE);
    driver.recover(Found::NotAdoptable { stopped: false });
    let kept = driver.attempt(run);
    assert_eq!((kept.state, kept.epoch), (AttemptState::Running, Epoch::from_number(3)));
    driver.deliver(delivery("late").key("a"));
    assert!(driver.start().is_empty(), "nothing starts beside what may still run");
    driver.advance(LEASE);
    driver.recover(Found::NotAdoptable { stopped: true });
    let failed = driver.attempt(run);
    assert_eq!((failed.state, failed.epoch), (AttemptState::Failed, Epoch::from_number(4)));
    assert!(matches!(driver.work(work).eligibility, EligibilityRecord::Backoff(_)), "retry has its rules");
    driver.stale(run, Epoch::from_number(3), done());
    driver.must(Command::Cancel(work));

    finished_and_relaunched(driver);

    let (work, run) = driver.running("d");
    driver.advance(LEASE);
    driver.recover(Found::Alive);
    // Whoever lost it may not know, and what it says comes while the lease of another is live.
    driver.stale(run, Epoch::FIRST, done());
    driver.must(Command::Cancel(work));
    driver.stale(run, Epoch::from_number(2), done());
    driver.advance(LEASE);
    assert_eq!(driver.recover(Found::Alive), [], "nothing is recovered of what was cancelled");
    assert_eq!(driver.attempt(run).state, AttemptState::Cancelled);
}

/// A result that was reached meanwhile, and a launch that had started nothing.
fn finished_and_relaunched(driver: &mut dyn Driver) {
    let (work, run) = driver.running("b");
    driver.advance(LEASE);
    driver.recover(Found::Finished(done()));
    let seen = driver.snapshot();
    assert_eq!(seen.attempt(run).state, AttemptState::Completed);
    assert_eq!(seen.work(work).state, WorkWord::Completed);
    let announced = seen.events_of("core.turn.ended").into_iter().filter(|event| event.work == Some(work));
    assert_eq!(announced.count(), 1, "it is committed once");
    driver.stale(run, Epoch::FIRST, done());

    driver.deliver(delivery("of c").key("c"));
    let claimed = driver.attempts(Command::Claim);
    driver.advance(LEASE);
    assert_eq!(driver.recover(Found::NothingStarted), claimed);
    driver.must(Command::Launch);
    let again = driver.attempt(claimed[0]);
    assert_eq!((again.state, again.number), (AttemptState::Running, 1), "it is the same attempt");
    assert_eq!(again.epoch, Epoch::from_number(2));
    assert_eq!(driver.work(again.work).failures, 0, "and no failure is spent");
    driver.end(claimed[0], done());
    assert_eq!(driver.work(again.work).state, WorkWord::Completed);
}
