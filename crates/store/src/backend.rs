//! The store's front: it hands bodies to the threads that own connections, or runs them where it is.

use std::any::Any;
use std::fmt;
use std::future::{Future, ready};
use std::sync::{Arc, Mutex, PoisonError};

use domain::id::Incarnation;
use domain::store::{Backend, Body, Priority, ReadBody, StoreError, Submitted};
use domain::time::Timestamp;
use tokio::sync::oneshot;

use crate::clock::StoreClock;
use crate::counters::Counters;
use crate::engine::sqlite::Sqlite;
use crate::queue::{Place, Queue};
use crate::reads::ReadRequest;
use crate::threads::{Task, Threads};
use crate::writer::{Request, Writer};

/// Who runs bodies.
pub(crate) enum Runs {
    /// Threads that own connections.
    Threads {
        threads: Threads,
        /// Whether the caller's thread waits for each answer.
        blocking: bool,
    },
    /// The calling thread.
    Inline(Box<Mutex<Option<Writer<Sqlite>>>>),
}

/// An implementation of the storage contract over either engine.
pub(crate) struct Database {
    pub(crate) runs: Runs,
    pub(crate) clock: Arc<StoreClock>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) incarnation: Incarnation,
    pub(crate) exclusive: bool,
    pub(crate) facts: Vec<(&'static str, String)>,
    pub(crate) log_bytes: Option<Box<dyn Fn() -> u64 + Send + Sync>>,
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database")
            .field("incarnation", &self.incarnation)
            .field("facts", &self.facts)
            .finish_non_exhaustive()
    }
}

/// Puts a task in a queue at once when there is room, and else as soon as there is.
fn send<T: Send + 'static>(
    queue: &Arc<Queue<T>>,
    priority: Priority,
    make: impl FnOnce(oneshot::Sender<Result<(), StoreError>>) -> T,
) -> Submitted {
    let (answer, answered) = oneshot::channel();
    let task = make(answer);
    let put = move |queue: &Queue<T>, place: Option<Place>, task| {
        let place = place.ok_or(StoreError::Closed)?;
        queue.push(priority, task, place).map_err(|_task| StoreError::Closed)
    };
    let waiting = match queue.place_now(priority) {
        Some(place) => match put(queue, Some(place), task) {
            Ok(()) => None,
            Err(error) => return Box::pin(ready(Err(error))),
        },
        None => Some((Arc::clone(queue), task)),
    };
    Box::pin(async move {
        if let Some((queue, task)) = waiting {
            put(&queue, queue.place(priority).await, task)?;
        }
        // The thread answers everything it takes; it is gone only when the store is.
        answered.await.unwrap_or(Err(StoreError::Closed))
    })
}

/// Waits for a future on this thread.
fn wait<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut context = std::task::Context::from_waker(&waker);
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            std::task::Poll::Ready(value) => return value,
            std::task::Poll::Pending => std::thread::park(),
        }
    }
}

impl Database {
    fn waited(&self, submitted: Submitted) -> Submitted {
        match &self.runs {
            Runs::Threads { blocking: true, .. } => Box::pin(ready(wait(submitted))),
            Runs::Threads { blocking: false, .. } | Runs::Inline(_) => submitted,
        }
    }

    /// Runs `with` on this thread, with the writer.
    fn inline(
        writer: &Mutex<Option<Writer<Sqlite>>>,
        with: impl FnOnce(&mut Writer<Sqlite>, oneshot::Sender<Result<(), StoreError>>),
    ) -> Submitted {
        let (answer, answered) = oneshot::channel();
        let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(writer) = writer.as_mut() else {
            return Box::pin(ready(Err(StoreError::Closed)));
        };
        with(writer, answer);
        Box::pin(async move { answered.await.unwrap_or(Err(StoreError::Closed)) })
    }
}

impl Backend for Database {
    fn submit(&self, label: &'static str, priority: Priority, body: Body) -> Submitted {
        match &self.runs {
            Runs::Threads { threads, .. } => {
                let make = |answer| Task::Write(Request { label, body, answer });
                self.waited(send(threads.writes(), priority, make))
            }
            Runs::Inline(writer) => Self::inline(writer, |writer, answer| {
                writer.batch(Request { label, body, answer }, &mut || None);
                writer.maintain(false);
            }),
        }
    }

    fn read(&self, label: &'static str, body: ReadBody) -> Submitted {
        self.counters.read();
        match &self.runs {
            Runs::Threads { threads, .. } => {
                let read = |answer| ReadRequest { label, body, answer };
                self.waited(if let Some(reads) = threads.reads() {
                    send(reads, Priority::Normal, read)
                } else {
                    send(threads.writes(), Priority::Normal, |answer| Task::Read(read(answer)))
                })
            }
            Runs::Inline(writer) => Self::inline(writer, |writer, answer| {
                let host = writer.host();
                ReadRequest { label, body, answer }.run_on(writer.snapshot(), host, self.clock.now());
            }),
        }
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    fn exclusive(&self) -> bool {
        self.exclusive
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let mut facts = self.facts.clone();
        facts.extend(self.counters.facts());
        if let Some(log_bytes) = &self.log_bytes {
            facts.push(("wal_bytes", log_bytes().to_string()));
        }
        if let Some(back) = self.clock.stepped_back() {
            facts.push(("clock_stepped_back_seconds", back.as_secs().to_string()));
        }
        facts
    }

    fn close(&self) -> Submitted {
        match &self.runs {
            Runs::Threads { threads, .. } => self.waited(threads.close()),
            Runs::Inline(writer) => {
                let writer = writer.lock().unwrap_or_else(PoisonError::into_inner).take();
                Box::pin(ready(writer.map_or(Ok(()), |mut writer| writer.finish())))
            }
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
