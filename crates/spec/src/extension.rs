//! Cases for handlers and ingresses: what an extension must answer, wherever it runs.
//!
//! One suite judges what is compiled in and what stands in for another process. A driver holds one extension with a
//! few questions to it and the answers that are right; a [`ProcessDriver`] has the process behind it in hand besides.

use std::fmt::Debug;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use extension::{
    ConfigProblem, EXTENSION_UNAVAILABLE, EventType, Handler, HandlerError, HttpDelivery, Ingress,
    IngressDelivery, IngressEntry, IngressRefusal, Match, PreparedIngress, PreparedRoute, Revision,
    RouteInput, Secrets, WorkId, WorkKind, WorkView,
};

use crate::inject::Violation;

/// Whether a configuration is one that the extension takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sample {
    /// It takes it.
    Right,
    /// It refuses it.
    Wrong,
}

/// A handler with questions whose answers are known.
pub trait HandlerDriver {
    /// The handler.
    fn handler(&self) -> Arc<dyn Handler>;

    /// The name it goes by.
    fn name(&self) -> &str;

    /// What it says about a configuration, as an apply asks it.
    fn check(&self, sample: Sample) -> impl Future<Output = Result<(), Vec<ConfigProblem>>>;

    /// A route with the configuration that is right.
    fn route(&self) -> Box<dyn PreparedRoute>;

    /// The questions to it, each with what is right.
    fn questions(&self) -> Vec<(RouteInput, Option<Match>)>;
}

/// An ingress with a request that is right.
pub trait IngressDriver {
    /// The ingress.
    fn ingress(&self) -> Arc<dyn Ingress>;

    /// What it says about an entry, as an apply asks it.
    fn check(&self, sample: Sample) -> impl Future<Output = Result<(), Vec<ConfigProblem>>>;

    /// The entry with the configuration that is right.
    fn entry(&self) -> IngressEntry;

    /// A request that is right, with a body of at least one byte.
    fn request(&self) -> HttpDelivery;

    /// The secrets, by which it is right.
    fn secrets(&self) -> &dyn Secrets;

    /// Secrets of which none can be read.
    fn no_secrets(&self) -> &dyn Secrets;

    /// What the request carries: the delivery's id, its type and its body.
    fn carries(&self) -> Vec<(String, String, Vec<u8>)>;
}

/// The process behind an extension.
pub trait ProcessDriver {
    /// Waits until a process answers that is not the one of `before`; its pid.
    fn answers(&self, before: Option<u32>) -> impl Future<Output = u32>;

    /// Stops that process without ending it, so that it answers nothing.
    fn freeze(&self, pid: u32);

    /// Ends that process as nothing can prevent.
    fn kill(&self, pid: u32);
}

fn holds(rule: &'static str, holds: bool, seen: impl Debug) -> Result<(), Violation> {
    if holds { Ok(()) } else { Err(Violation { rule, seen: format!("{seen:?}") }) }
}

/// Puts a handler to every rule.
///
/// # Errors
/// The first [`Violation`].
pub async fn check_handler(driver: &impl HandlerDriver) -> Result<(), Violation> {
    holds("goes_by_its_name", driver.handler().name().as_str() == driver.name(), driver.handler())?;
    let right = driver.check(Sample::Right).await;
    holds("takes_what_is_right", right.is_ok(), right)?;
    let wrong = driver.check(Sample::Wrong).await;
    holds("says_what_is_wrong", wrong.as_ref().is_err_and(|problems| !problems.is_empty()), wrong)?;
    let route = driver.route();
    // Twice, as every call may be repeated after a crash.
    for _time in ["first", "again"] {
        for (input, expected) in driver.questions() {
            let answer = route.decide(&input).await;
            holds("decides_as_is_right", answer.as_ref() == Ok(&expected), (&input.event, answer))?;
        }
    }
    if route.ignores_work() {
        for (mut input, expected) in driver.questions() {
            input.work = Some(another_work(&input));
            let answer = route.decide(&input).await;
            holds("ignores_work_as_it_says", answer.as_ref() == Ok(&expected), (&input.work, answer))?;
        }
    }
    holds("describes_itself", !route.describe().is_empty() && !route.leads_to().is_empty(), &route)?;
    let announcement = EventType::known("core.turn.ended");
    holds("asks_for_announcements_by_name", !route.takes_announcement(&announcement), &route)
}

fn another_work(input: &RouteInput) -> WorkView {
    WorkView {
        id: WorkId::from_number(77),
        kind: WorkKind::known("another.kind"),
        scope: input.scope.name.clone(),
        state: "running",
        revision: Revision::from_number(3),
    }
}

/// Puts an ingress to every rule.
///
/// # Errors
/// The first [`Violation`].
pub async fn check_ingress(driver: &impl IngressDriver) -> Result<(), Violation> {
    let right = driver.check(Sample::Right).await;
    holds("takes_what_is_right", right.is_ok(), right)?;
    let wrong = driver.check(Sample::Wrong).await;
    holds("says_what_is_wrong", wrong.as_ref().is_err_and(|problems| !problems.is_empty()), wrong)?;
    let entry = prepared(driver)?;
    // Twice: what is sent again carries the same ids, and is a duplicate then.
    for _time in ["first", "again"] {
        let read = entry.receive(&driver.request(), driver.secrets()).await;
        let carried = read.as_ref().map(|deliveries| deliveries.iter().map(facts).collect::<Vec<_>>());
        holds("reads_what_is_right", carried.as_ref() == Ok(&driver.carries()), &read)?;
    }
    let mut tampered = driver.request();
    tampered.body[0] ^= 1;
    let read = entry.receive(&tampered, driver.secrets()).await;
    holds(
        "refuses_a_changed_body",
        read.as_ref().is_err_and(|it| *it == IngressRefusal::Unauthorized),
        &read,
    )?;
    let read = entry.receive(&driver.request(), driver.no_secrets()).await;
    let is_unavailable = matches!(read, Err(IngressRefusal::Unavailable(_)));
    holds("checks_nothing_without_its_secret", is_unavailable, &read)?;
    holds("describes_itself", !entry.describe().is_empty() && entry.body_bytes_max() > 0, &entry)?;
    holds("has_an_address", !entry.path_prefix().is_empty(), &entry)
}

fn prepared(driver: &impl IngressDriver) -> Result<Box<dyn PreparedIngress>, Violation> {
    let prepared = driver.ingress().prepare(&driver.entry());
    prepared.map_err(|problems| Violation { rule: "takes_what_is_right", seen: format!("{problems:?}") })
}

fn facts(delivery: &IngressDelivery) -> (String, String, Vec<u8>) {
    let body = delivery.payload.as_bytes().to_vec();
    (delivery.delivery_id.to_string(), delivery.event_type.to_string(), body)
}

/// Puts a handler of another process to what its end must not do.
///
/// # Errors
/// The first [`Violation`].
pub async fn check_handler_process(driver: &(impl HandlerDriver + ProcessDriver)) -> Result<(), Violation> {
    let pid = driver.answers(None).await;
    holds("runs_in_a_process_of_its_own", pid != std::process::id(), pid)?;
    check_handler(driver).await?;
    let route = driver.route();
    let Some((input, expected)) = driver.questions().into_iter().next() else {
        return holds("has_questions", false, "none");
    };
    let answered = route.decide(&input).await;
    holds("decides_as_is_right", answered.as_ref() == Ok(&expected), answered)?;
    driver.freeze(pid);
    let cut = cut_short(route.decide(&input), || driver.kill(pid)).await?;
    holds("a_crash_holds_what_was_asked", is_unavailable(&cut), &cut)?;
    let next = driver.answers(Some(pid)).await;
    holds("is_started_again", next != pid && next != std::process::id(), next)?;
    let answered = route.decide(&input).await;
    holds("answers_again_as_before", answered.as_ref() == Ok(&expected), answered)?;
    check_handler(driver).await
}

fn is_unavailable(answer: &Result<Option<Match>, HandlerError>) -> bool {
    answer.as_ref().is_err_and(|error| error.code.as_str() == EXTENSION_UNAVAILABLE)
}

/// Puts an ingress of another process to what its end must not do.
///
/// # Errors
/// The first [`Violation`].
pub async fn check_ingress_process(driver: &(impl IngressDriver + ProcessDriver)) -> Result<(), Violation> {
    let pid = driver.answers(None).await;
    holds("runs_in_a_process_of_its_own", pid != std::process::id(), pid)?;
    check_ingress(driver).await?;
    let entry = prepared(driver)?;
    let request = driver.request();
    let answered = entry.receive(&request, driver.secrets()).await;
    holds("reads_what_is_right", answered.is_ok(), answered)?;
    driver.freeze(pid);
    let cut = cut_short(entry.receive(&request, driver.secrets()), || driver.kill(pid)).await?;
    holds("a_crash_accepts_nothing", matches!(cut, Err(IngressRefusal::Unavailable(_))), &cut)?;
    let next = driver.answers(Some(pid)).await;
    holds("is_started_again", next != pid && next != std::process::id(), next)?;
    check_ingress(driver).await
}

/// Asks, ends whoever is to answer in the middle of it, and says what came of it.
async fn cut_short<T: Debug>(asking: impl Future<Output = T>, kill: impl FnOnce()) -> Result<T, Violation> {
    let mut asking = pin!(asking);
    let at_once = std::future::poll_fn(|context| Poll::Ready(asking.as_mut().poll(context))).await;
    if let Poll::Ready(answer) = at_once {
        holds("does_not_answer_while_it_stands_still", false, answer)?;
        unreachable!("a rule that does not hold is a violation");
    }
    kill();
    Ok(asking.await)
}

#[cfg(test)]
mod tests;
