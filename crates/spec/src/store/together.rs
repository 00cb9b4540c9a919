//! Requests that are submitted at once, so that an engine which commits in groups takes them as one.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::Poll;
use std::thread::{self, ThreadId};
use std::time::Duration;

use domain::store::{Store, StoreError};

/// How long the writer is held before the case fails.
const HELD_MAX: Duration = Duration::from_secs(10);

/// A request of a case, not submitted yet.
pub(super) type Request<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Holds back the thread that runs the bodies until everything is submitted.
#[derive(Debug)]
struct Gate {
    submitter: ThreadId,
    open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn closed() -> Arc<Self> {
        Arc::new(Self { submitter: thread::current().id(), open: Mutex::new(false), opened: Condvar::new() })
    }

    fn open(&self) {
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.opened.notify_all();
    }

    /// Waits for [`Self::open`]. An engine that runs bodies on the submitting thread has no group to form,
    /// and would wait for itself.
    fn pass(&self) {
        if thread::current().id() == self.submitter {
            return;
        }
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let (_open, waited) = self
            .opened
            .wait_timeout_while(open, HELD_MAX, |open| !*open)
            .unwrap_or_else(PoisonError::into_inner);
        assert!(!waited.timed_out(), "submitting a request waits for the requests before it");
    }
}

/// Submits every request in this order while the writer is held by another one, then lets all of them run.
pub(super) async fn in_one_batch<T>(store: &Store, requests: Vec<Request<T>>) -> Vec<T> {
    let gate = Gate::closed();
    let held = Arc::clone(&gate);
    let mut holder = Some(Box::pin(store.transact("hold the writer", move |_tx| {
        held.pass();
        Ok::<(), StoreError>(())
    })));
    let mut rest = pin!(all(requests));
    let mut answers = None;
    poll_fn(|context| {
        if let Some(request) = &mut holder
            && let Poll::Ready(answer) = request.as_mut().poll(context)
        {
            answer.expect("holding the writer writes nothing");
            holder = None;
        }
        if answers.is_none()
            && let Poll::Ready(all) = rest.as_mut().poll(context)
        {
            answers = Some(all);
        }
        gate.open();
        match answers.take_if(|_all| holder.is_none()) {
            Some(all) => Poll::Ready(all),
            None => Poll::Pending,
        }
    })
    .await
}

/// Runs every request at once and answers in their order.
pub(super) async fn all<T>(requests: Vec<Request<T>>) -> Vec<T> {
    let mut requests: Vec<Option<Request<T>>> = requests.into_iter().map(Some).collect();
    let mut answers: Vec<Option<T>> = requests.iter().map(|_request| None).collect();
    poll_fn(|context| {
        for (request, answer) in requests.iter_mut().zip(&mut answers) {
            if let Some(pending) = request
                && let Poll::Ready(value) = pending.as_mut().poll(context)
            {
                *answer = Some(value);
                *request = None;
            }
        }
        if requests.iter().all(Option::is_none) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    answers.into_iter().map(|answer| answer.expect("every request was answered")).collect()
}
