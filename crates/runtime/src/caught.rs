//! Panics of code that others wrote, caught where they would end a task that everybody needs.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;

/// A future panicked. What it said went where panics go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Panicked;

/// Polls a future to its end, or to its panic. After one it is not polled again.
pub(crate) async fn caught<F: Future>(future: F) -> Result<F::Output, Panicked> {
    let mut future = std::pin::pin!(future);
    poll_fn(|context| {
        // What a panic left half done is dropped with the future, and nobody looks at it before.
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
            Ok(poll) => poll.map(Ok),
            Err(_said) => Poll::Ready(Err(Panicked)),
        }
    })
    .await
}
