//! The threads that own connections: one that writes, and a few that read.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use domain::store::{StoreError, Submitted};
use tokio::sync::{oneshot, watch};

use crate::clock::StoreClock;
use crate::engine::{Engine, Reader};
use crate::queue::{Popped, Queue};
use crate::reads::ReadRequest;
use crate::writer::{Request, Writer};

/// After how long without a request the writer looks after its files.
const IDLE_AFTER: Duration = Duration::from_millis(100);

/// What the writer's thread is asked to do.
pub(crate) enum Task {
    Write(Request),
    /// Only where the writer's connection is the only one.
    Read(ReadRequest),
}

/// How a thread ended; none while it runs.
type End = Option<Result<(), StoreError>>;

/// A thread, and how it ends.
#[derive(Debug)]
struct Worker {
    ended: watch::Receiver<End>,
    handle: Mutex<Option<JoinHandle<()>>>,
}

impl Worker {
    fn start(
        name: &str,
        body: impl FnOnce() -> Result<(), StoreError> + Send + 'static,
    ) -> Result<Self, StoreError> {
        let (ends, ended) = watch::channel(None);
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || {
            let result = body();
            ends.send_replace(Some(result));
        });
        let handle = thread
            .map_err(|error| StoreError::Database { operation: "start a thread", source: Arc::new(error) })?;
        Ok(Self { ended, handle: Mutex::new(Some(handle)) })
    }

    /// When the thread has ended, how it did.
    fn ended(&self) -> Submitted {
        let mut ended = self.ended.clone();
        Box::pin(async move {
            match ended.wait_for(Option::is_some).await {
                Ok(end) => end.clone().unwrap_or(Ok(())),
                // It ended by a panic, and told nobody.
                Err(_gone) => Err(StoreError::Closed),
            }
        })
    }

    fn join(&self) {
        let handle = self.handle.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(handle) = handle {
            // A panic in a thread of ours has been reported where it happened.
            handle.join().ok();
        }
    }
}

/// A queue that its thread empties when it ends, however it ends: nobody may wait for an answer that will
/// not come.
struct Emptied<T>(Arc<Queue<T>>);

impl<T> Drop for Emptied<T> {
    fn drop(&mut self) {
        self.0.close();
        while self.0.pop_now().is_some() {}
    }
}

/// The threads of a store.
pub(crate) struct Threads {
    requests: Arc<Queue<Task>>,
    writer: Worker,
    reads: Option<Arc<Queue<ReadRequest>>>,
    readers: Vec<Worker>,
}

impl fmt::Debug for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Threads").field("readers", &self.readers.len()).finish_non_exhaustive()
    }
}

impl Threads {
    /// Starts the writer's thread. `open` runs on it; what it gives besides the writer comes back.
    pub(crate) async fn start<E, T>(
        clock: impl Fn(&T) -> Arc<StoreClock> + Send + 'static,
        open: impl FnOnce() -> Result<(Writer<E>, T), StoreError> + Send + 'static,
    ) -> Result<(Self, T), StoreError>
    where
        E: Engine + 'static,
        T: Send + 'static,
    {
        let requests = Queue::new();
        let (opens, opened) = oneshot::channel();
        let queue = Emptied(Arc::clone(&requests));
        let writer = Worker::start("store-writer", move || {
            let (mut writer, beside) = match open() {
                Ok(opened) => opened,
                Err(error) => {
                    opens.send(Err(error)).ok();
                    return Ok(());
                }
            };
            let clock = clock(&beside);
            opens.send(Ok(beside)).ok();
            serve(&mut writer, &queue.0, &clock);
            writer.finish()
        })?;
        let beside = opened.await.unwrap_or(Err(StoreError::Closed))?;
        Ok((Self { requests, writer, reads: None, readers: Vec::new() }, beside))
    }

    /// Adds threads that read.
    pub(crate) async fn add_readers<R: Reader + 'static>(
        &mut self,
        number: usize,
        clock: &Arc<StoreClock>,
        host: i64,
        open: impl Fn() -> Result<R, StoreError> + Clone + Send + 'static,
    ) -> Result<(), StoreError> {
        let reads: Arc<Queue<ReadRequest>> = Queue::new();
        for _ in 0..number {
            let (opens, opened) = oneshot::channel();
            let (queue, clock, open) = (Emptied(Arc::clone(&reads)), Arc::clone(clock), open.clone());
            self.readers.push(Worker::start("store-reader", move || {
                match open() {
                    Ok(mut reader) => {
                        opens.send(Ok(())).ok();
                        while let Popped::Item(read) = queue.0.pop(None) {
                            read.run_in(&mut reader, host, || clock.now());
                        }
                    }
                    Err(error) => {
                        opens.send(Err(error)).ok();
                    }
                }
                Ok(())
            })?);
            self.reads = Some(Arc::clone(&reads));
            opened.await.unwrap_or(Err(StoreError::Closed))?;
        }
        Ok(())
    }

    /// Where writes go.
    pub(crate) const fn writes(&self) -> &Arc<Queue<Task>> {
        &self.requests
    }

    /// Where reads go; none when the writer reads.
    pub(crate) const fn reads(&self) -> Option<&Arc<Queue<ReadRequest>>> {
        self.reads.as_ref()
    }

    /// Lets the threads finish what waits, then end: the readers first, so that the writer is alone when it
    /// empties the log.
    pub(crate) fn close(&self) -> Submitted {
        let readers: Vec<Submitted> = self.readers.iter().map(Worker::ended).collect();
        let (reads, requests) = (self.reads.clone(), Arc::clone(&self.requests));
        let writer = self.writer.ended();
        Box::pin(async move {
            if let Some(reads) = reads {
                reads.close();
            }
            for reader in readers {
                reader.await?;
            }
            requests.close();
            writer.await
        })
    }
}

impl Drop for Threads {
    /// Waits for the threads, so that whoever opens the database next finds it free.
    fn drop(&mut self) {
        if let Some(reads) = &self.reads {
            reads.close();
        }
        self.readers.iter().for_each(Worker::join);
        self.requests.close();
        self.writer.join();
    }
}

/// Runs what the queue has until it is closed and empty.
fn serve<E: Engine>(writer: &mut Writer<E>, queue: &Queue<Task>, clock: &StoreClock) {
    let host = writer.host();
    let mut idle = Some(IDLE_AFTER);
    loop {
        match queue.pop(idle) {
            Popped::Item(Task::Read(read)) => read.run_on(writer.snapshot(), host, clock.now()),
            Popped::Item(Task::Write(first)) => {
                // A read must not see what is not committed, so it ends the group.
                let mut read = None;
                writer.batch(first, &mut || match queue.pop_now()? {
                    Task::Write(request) => Some(request),
                    Task::Read(request) => {
                        read = Some(request);
                        None
                    }
                });
                if let Some(read) = read {
                    read.run_on(writer.snapshot(), host, clock.now());
                }
                writer.maintain(false);
                idle = Some(IDLE_AFTER);
            }
            Popped::Idle => {
                writer.maintain(true);
                idle = None;
            }
            Popped::Closed => return,
        }
    }
}
