//! The clock of every test here, which the simulator shares.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::time::{Clock, Timestamp};

/// A clock that stands still until it is moved.
#[derive(Debug)]
pub(super) struct HandClock(Mutex<(Timestamp, Duration)>);

impl Clock for HandClock {
    fn wall(&self) -> Timestamp {
        self.0.lock().unwrap().0
    }

    fn boot(&self) -> Duration {
        self.0.lock().unwrap().1
    }
}

impl HandClock {
    pub(super) fn new() -> Arc<Self> {
        let start = Timestamp::parse("2026-03-01T12:00:00Z").unwrap();
        Arc::new(Self(Mutex::new((start, Duration::from_secs(1000)))))
    }

    /// The clock, for a store.
    pub(super) fn shared(self: &Arc<Self>) -> Arc<dyn Clock> {
        Arc::<Self>::clone(self)
    }

    pub(super) fn advance(&self, by: Duration) {
        let mut now = self.0.lock().unwrap();
        *now = (now.0.after(by), now.1 + by);
    }
}
