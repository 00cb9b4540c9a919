//! The bounded queue between those who submit and the thread that writes.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::store::Priority;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many requests of each priority may wait; who comes later waits to wait.
pub(crate) const WAITING_MAX: usize = 4096;

/// What a thread gets when it asks for more.
#[derive(Debug)]
pub(crate) enum Popped<T> {
    /// The next request.
    Item(T),
    /// Nobody has come for a while.
    Idle,
    /// Nobody will come.
    Closed,
}

/// A place in the queue.
#[derive(Debug)]
pub(crate) struct Place {
    /// Gives the place back when it is dropped.
    _permit: OwnedSemaphorePermit,
}

struct Waiting<T> {
    high: VecDeque<(T, Place)>,
    normal: VecDeque<(T, Place)>,
    closed: bool,
}

/// Requests in order of arrival, those of high priority first.
pub(crate) struct Queue<T> {
    waiting: Mutex<Waiting<T>>,
    came: Condvar,
    high: Arc<Semaphore>,
    normal: Arc<Semaphore>,
}

impl<T> fmt::Debug for Queue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("free", &self.normal.available_permits()).finish_non_exhaustive()
    }
}

impl<T> Queue<T> {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            waiting: Mutex::new(Waiting { high: VecDeque::new(), normal: VecDeque::new(), closed: false }),
            came: Condvar::new(),
            high: Arc::new(Semaphore::new(WAITING_MAX)),
            normal: Arc::new(Semaphore::new(WAITING_MAX)),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Waiting<T>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    const fn places(&self, priority: Priority) -> &Arc<Semaphore> {
        match priority {
            Priority::High => &self.high,
            Priority::Normal => &self.normal,
        }
    }

    /// A place, when one is free at once.
    pub(crate) fn place_now(&self, priority: Priority) -> Option<Place> {
        Arc::clone(self.places(priority)).try_acquire_owned().ok().map(|permit| Place { _permit: permit })
    }

    /// A place, as soon as one is free; none once the queue is closed.
    pub(crate) async fn place(&self, priority: Priority) -> Option<Place> {
        Arc::clone(self.places(priority)).acquire_owned().await.ok().map(|permit| Place { _permit: permit })
    }

    /// Adds a request, or gives it back when the queue is closed.
    pub(crate) fn push(&self, priority: Priority, item: T, place: Place) -> Result<(), T> {
        let mut waiting = self.lock();
        if waiting.closed {
            return Err(item);
        }
        match priority {
            Priority::High => waiting.high.push_back((item, place)),
            Priority::Normal => waiting.normal.push_back((item, place)),
        }
        drop(waiting);
        self.came.notify_one();
        Ok(())
    }

    /// The next request, if one waits.
    pub(crate) fn pop_now(&self) -> Option<T> {
        Self::next(&mut self.lock())
    }

    fn next(waiting: &mut Waiting<T>) -> Option<T> {
        // The place is free again as soon as its request is out of the queue.
        let next = waiting.high.pop_front().or_else(|| waiting.normal.pop_front());
        next.map(|(item, _place)| item)
    }

    /// The next request, waited for; at most for `idle`, when that is given.
    pub(crate) fn pop(&self, idle: Option<Duration>) -> Popped<T> {
        let mut waiting = self.lock();
        loop {
            if let Some(item) = Self::next(&mut waiting) {
                return Popped::Item(item);
            }
            if waiting.closed {
                return Popped::Closed;
            }
            waiting = match idle {
                None => self.came.wait(waiting).unwrap_or_else(PoisonError::into_inner),
                Some(idle) => {
                    let (waiting, timeout) =
                        self.came.wait_timeout(waiting, idle).unwrap_or_else(PoisonError::into_inner);
                    if timeout.timed_out() && waiting.high.is_empty() && waiting.normal.is_empty() {
                        return if waiting.closed { Popped::Closed } else { Popped::Idle };
                    }
                    waiting
                }
            };
        }
    }

    /// Takes no more requests. Those that wait are still given out.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.high.close();
        self.normal.close();
        self.came.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::{Popped, Queue, WAITING_MAX};
    use domain::store::Priority;
    use std::time::Duration;

    fn push(queue: &Queue<u32>, priority: Priority, item: u32) {
        let place = queue.place_now(priority).expect("there is room");
        queue.push(priority, item, place).expect("it is open");
    }

    #[test]
    fn high_priority_goes_first_and_order_is_kept() {
        let queue = Queue::new();
        push(&queue, Priority::Normal, 1);
        push(&queue, Priority::Normal, 2);
        push(&queue, Priority::High, 3);
        push(&queue, Priority::High, 4);
        let taken: Vec<u32> = std::iter::from_fn(|| queue.pop_now()).collect();
        assert_eq!(taken, [3, 4, 1, 2]);
    }

    #[test]
    fn a_full_queue_keeps_room_for_high_priority() {
        let queue = Queue::new();
        for item in 0..u32::try_from(WAITING_MAX).unwrap() {
            push(&queue, Priority::Normal, item);
        }
        assert!(queue.place_now(Priority::Normal).is_none());
        assert!(queue.place_now(Priority::High).is_some());
        queue.pop_now();
        assert!(queue.place_now(Priority::Normal).is_some());
    }

    #[test]
    fn a_closed_queue_gives_out_what_it_has() {
        let queue = Queue::new();
        push(&queue, Priority::Normal, 1);
        let place = queue.place_now(Priority::Normal).unwrap();
        queue.close();
        assert_eq!(queue.push(Priority::Normal, 2, place), Err(2));
        assert!(queue.place_now(Priority::Normal).is_none());
        assert!(matches!(queue.pop(None), Popped::Item(1)));
        assert!(matches!(queue.pop(Some(Duration::ZERO)), Popped::Closed));
    }

    #[test]
    fn an_empty_queue_says_that_it_is_idle() {
        let queue: std::sync::Arc<Queue<u32>> = Queue::new();
        assert!(matches!(queue.pop(Some(Duration::ZERO)), Popped::Idle));
    }
}
