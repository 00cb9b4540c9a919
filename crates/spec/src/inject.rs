//! Cases for executors that take input in while they run: what their answers and their proofs must mean.
//!
//! One suite judges every executor that says it can inject. A driver says how a segment is begun, how what runs in
//! it takes an Event in, and how it ends; the suite asks the executor, and looks at its answers.

use std::fmt;
use std::future::Future;

use extension::{
    EventId, ExecutionId, Executor, Injected, Injection, InputView, Recovery, Segment, TurnResult,
};

/// An executor under test, with segments in the suite's hand. Each begins live, with nothing taken in.
pub trait InjectDriver {
    /// The executor that a daemon has now.
    fn executor(&self) -> &dyn Executor;

    /// Begins the segment of an attempt and answers once it runs.
    fn begin(&mut self, execution: ExecutionId) -> impl Future<Output = Segment>;

    /// Lets what runs take in an Event that it was given, and answers once it has.
    fn take(&mut self, segment: &Segment, event: EventId) -> impl Future<Output = ()>;

    /// Lets the segment come to its end, and answers its result.
    fn end(&mut self, segment: &Segment) -> impl Future<Output = TurnResult>;

    /// Another daemon takes the segment over, with an executor of its own.
    fn restart(&mut self, segment: &Segment) -> impl Future<Output = Segment>;

    /// The `number`-th Event.
    fn event(&self, number: i64) -> InputView;
}

/// What an executor does that it must not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The rule, as a stable word.
    pub rule: &'static str,
    /// What was seen.
    pub seen: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.seen)
    }
}

fn holds(rule: &'static str, holds: bool, seen: impl fmt::Debug) -> Result<(), Violation> {
    if holds { Ok(()) } else { Err(Violation { rule, seen: format!("{seen:?}") }) }
}

async fn offer(driver: &impl InjectDriver, segment: &Segment, number: i64) -> Injected {
    let input = driver.event(number);
    driver.executor().inject(Injection { segment: segment.clone(), input }).await
}

fn run(number: i64) -> ExecutionId {
    ExecutionId::from_number(number)
}

fn is_refused(answer: &Injected) -> bool {
    matches!(answer, Injected::NotAccepting { .. })
}

/// Puts an executor to every rule of injection.
///
/// # Errors
/// The first [`Violation`].
pub async fn check_inject_executor(driver: &mut impl InjectDriver) -> Result<(), Violation> {
    let can = driver.executor().capabilities();
    holds("advertises", can.controls.inject, can)?;
    proves_what_was_taken_and_nothing_else(driver).await?;
    takes_one_event_once(driver).await?;
    accepts_nothing_after_its_end(driver).await?;
    accepts_nothing_for_others(driver).await?;
    keeps_the_proof_over_a_restart(driver).await
}

/// What was taken in is proved; what was only accepted, or never offered, is not.
async fn proves_what_was_taken_and_nothing_else(driver: &mut impl InjectDriver) -> Result<(), Violation> {
    let segment = driver.begin(run(1)).await;
    for number in [11, 12] {
        let answer = offer(driver, &segment, number).await;
        holds("accepts_while_it_runs", answer == Injected::Accepted, answer)?;
    }
    let (taken, left) = (driver.event(11).event.id, driver.event(12).event.id);
    driver.take(&segment, taken).await;
    let proved = driver.end(&segment).await.consumed_inputs;
    holds("never_over_claims", !proved.contains(&left), &proved)?;
    holds("proves_what_it_took", proved == [taken], &proved)
}

/// Offered twice, an Event is accepted twice and taken in once.
async fn takes_one_event_once(driver: &mut impl InjectDriver) -> Result<(), Violation> {
    let segment = driver.begin(run(2)).await;
    let event = driver.event(21).event.id;
    let first = offer(driver, &segment, 21).await;
    holds("accepts_while_it_runs", first == Injected::Accepted, first)?;
    let again = offer(driver, &segment, 21).await;
    holds("accepts_it_again", again == Injected::Accepted, again)?;
    driver.take(&segment, event).await;
    let late = offer(driver, &segment, 21).await;
    holds("accepts_it_again", late == Injected::Accepted, late)?;
    let proved = driver.end(&segment).await.consumed_inputs;
    holds("reports_an_event_once", proved == [event], &proved)
}

/// After its end a segment takes nothing.
async fn accepts_nothing_after_its_end(driver: &mut impl InjectDriver) -> Result<(), Violation> {
    let segment = driver.begin(run(3)).await;
    let result = driver.end(&segment).await;
    let answer = offer(driver, &segment, 31).await;
    holds("refuses_after_its_result", is_refused(&answer), answer)?;
    holds("never_over_claims", result.consumed_inputs.is_empty(), result.consumed_inputs)
}

/// A segment that the executor does not hold takes nothing.
async fn accepts_nothing_for_others(driver: &mut impl InjectDriver) -> Result<(), Violation> {
    let held = driver.begin(run(4)).await;
    let unknown = Segment { execution: run(5), ..held.clone() };
    let answer = offer(driver, &unknown, 41).await;
    holds("refuses_what_it_does_not_hold", is_refused(&answer), answer)?;
    let never_begun = Segment { handle: None, ..unknown };
    let answer = offer(driver, &never_begun, 42).await;
    holds("refuses_what_it_does_not_hold", is_refused(&answer), answer)?;
    let proved = driver.end(&held).await.consumed_inputs;
    holds("never_over_claims", proved.is_empty(), proved)
}

/// What was taken in before a daemon died is proved to the next one.
async fn keeps_the_proof_over_a_restart(driver: &mut impl InjectDriver) -> Result<(), Violation> {
    let segment = driver.begin(run(6)).await;
    let event = driver.event(61).event.id;
    let answer = offer(driver, &segment, 61).await;
    holds("accepts_while_it_runs", answer == Injected::Accepted, answer)?;
    driver.take(&segment, event).await;
    let adopted = driver.restart(&segment).await;
    let found = driver.executor().recover(adopted.clone()).await;
    holds("is_adopted", found == Recovery::Alive, found)?;
    let proved = driver.end(&adopted).await.consumed_inputs;
    holds("keeps_the_proof_over_a_restart", proved == [event], proved)?;
    let finished = driver.executor().recover(adopted).await;
    let kept = matches!(&finished, Recovery::Finished(result) if result.consumed_inputs == [event]);
    holds("keeps_the_proof_over_a_restart", kept, finished)
}

#[cfg(test)]
mod tests;
