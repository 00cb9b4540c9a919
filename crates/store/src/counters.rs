//! What the store has done, counted for people and tests.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of one life of a store. They are written by one thread and read by any.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    requests: AtomicU64,
    statements: AtomicU64,
    commits: AtomicU64,
    batch_max: AtomicU64,
    broken: AtomicU64,
    reads: AtomicU64,
}

impl Counters {
    /// One run of one request.
    pub(crate) fn ran(&self, statements: u64) {
        self.statements.fetch_add(statements, Ordering::Relaxed);
    }

    /// A transaction of so many requests has ended well.
    pub(crate) fn committed(&self, requests: usize, wrote: bool) {
        self.requests.fetch_add(requests as u64, Ordering::Relaxed);
        self.batch_max.fetch_max(requests as u64, Ordering::Relaxed);
        self.commits.fetch_add(u64::from(wrote), Ordering::Relaxed);
    }

    /// A transaction was undone because of one of its requests.
    pub(crate) fn broke(&self) {
        self.broken.fetch_add(1, Ordering::Relaxed);
    }

    /// A read.
    pub(crate) fn read(&self) {
        self.reads.fetch_add(1, Ordering::Relaxed);
    }

    /// The counters by name.
    pub(crate) fn facts(&self) -> [(&'static str, String); 6] {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed).to_string();
        [
            ("requests", of(&self.requests)),
            ("statements", of(&self.statements)),
            ("commits", of(&self.commits)),
            ("batch_max", of(&self.batch_max)),
            ("undone", of(&self.broken)),
            ("reads", of(&self.reads)),
        ]
    }
}
