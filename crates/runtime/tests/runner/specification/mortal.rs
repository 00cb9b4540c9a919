//! A process that can die: from a chosen transaction on, its store never answers it again.
//!
//! What the store holds stays, and the next process is put together over it. So a power cut between any two commits
//! costs a few microseconds, and can be had a million times.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use domain::id::Incarnation;
use domain::store::{Backend, Body, Priority, ReadBody, Store, Submitted};
use domain::time::Timestamp;
use tokio::sync::Notify;

/// When a process dies.
#[derive(Debug, Default)]
pub(super) struct Fate {
    /// Moments until it does; zero when none was ordered. Each transaction has two, before it and after it.
    left: AtomicU32,
    dead: AtomicBool,
    died: Notify,
}

impl Fate {
    /// Lets the process die at the `at`th moment from now, the first being number zero.
    pub(super) fn order(&self, at: u32) {
        self.left.store(at + 1, Ordering::SeqCst);
    }

    /// Resolves when the process is dead.
    pub(super) async fn died(&self) {
        if !self.dead.load(Ordering::SeqCst) {
            self.died.notified().await;
        }
    }

    /// Whether this is the moment, or it has passed.
    fn strikes(&self) -> bool {
        let counted = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if counted == Ok(1) {
            self.dead.store(true, Ordering::SeqCst);
            self.died.notify_one();
        }
        self.dead.load(Ordering::SeqCst)
    }
}

/// A store as a process that can die sees it.
#[derive(Debug)]
struct Mortal {
    inner: Store,
    fate: Arc<Fate>,
    /// How many processes there were before it on this store.
    lives: i64,
}

/// A view of a store for one process.
pub(super) fn mortal(inner: Store, fate: Arc<Fate>, lives: i64) -> Store {
    Store::new(Arc::new(Mortal { inner, fate, lives }))
}

fn never() -> Submitted {
    Box::pin(std::future::pending())
}

impl Backend for Mortal {
    fn submit(&self, label: &'static str, priority: Priority, body: Body) -> Submitted {
        if self.fate.strikes() {
            return never();
        }
        let submitted = self.inner.backend().submit(label, priority, body);
        if self.fate.strikes() { never() } else { submitted }
    }

    fn read(&self, label: &'static str, body: ReadBody) -> Submitted {
        if self.fate.dead.load(Ordering::SeqCst) {
            return never();
        }
        self.inner.backend().read(label, body)
    }

    fn now(&self) -> Timestamp {
        self.inner.now()
    }

    fn incarnation(&self) -> Incarnation {
        Incarnation::from_number(self.inner.incarnation().number() + self.lives)
    }

    fn exclusive(&self) -> bool {
        self.inner.exclusive()
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        self.inner.backend().facts()
    }

    fn close(&self) -> Submitted {
        self.inner.backend().close()
    }

    fn as_any(&self) -> &dyn Any {
        self.inner.backend().as_any()
    }
}
