//! Where a store's time comes from: the system's clocks, and the one line of time made of them.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use domain::time::{Clock, Timestamp, clock_start};

/// The machine's clocks.
#[derive(Debug)]
struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the Clock that everybody else takes")]
    fn wall(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::EPOCH.after(since)
    }

    fn boot(&self) -> Duration {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
    }
}

/// The system's wall clock, and its boot clock, which counts suspended time and never steps.
pub fn system_clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock)
}

/// A store's time: a moment that was known once, and what the boot clock has counted since. It never goes
/// back within a process.
#[derive(Debug)]
pub(crate) struct StoreClock {
    clock: Arc<dyn Clock>,
    base: Mutex<Base>,
    /// The latest moment that was given out.
    last: AtomicI64,
}

#[derive(Debug, Clone, Copy)]
struct Base {
    at: Timestamp,
    boot: Duration,
    stepped_back: Option<Duration>,
}

impl StoreClock {
    /// Starts from the wall clock, given the highest moment the database has seen.
    pub(crate) fn start(clock: Arc<dyn Clock>, highest: Timestamp) -> Self {
        let start = clock_start(clock.wall(), highest);
        let base = Base { at: start.at, boot: clock.boot(), stepped_back: start.stepped_back };
        Self { clock, base: Mutex::new(base), last: AtomicI64::new(start.at.as_micros()) }
    }

    /// Starts from a moment that is known to be the present.
    pub(crate) fn at(clock: Arc<dyn Clock>, at: Timestamp) -> Self {
        let base = Base { at, boot: clock.boot(), stepped_back: None };
        Self { clock, base: Mutex::new(base), last: AtomicI64::new(at.as_micros()) }
    }

    /// Takes `at` for the present: the database's own clock says so.
    pub(crate) fn set(&self, at: Timestamp) {
        let base = Base { at, boot: self.clock.boot(), stepped_back: None };
        *self.base.lock().unwrap_or_else(PoisonError::into_inner) = base;
    }

    /// The present.
    pub(crate) fn now(&self) -> Timestamp {
        let base = *self.base.lock().unwrap_or_else(PoisonError::into_inner);
        let now = base.at.after(self.clock.boot().saturating_sub(base.boot)).as_micros();
        let before = self.last.fetch_max(now, Ordering::AcqRel);
        Timestamp::from_micros(now.max(before))
    }

    /// Time since the clock's own start, to measure with.
    pub(crate) fn elapsed(&self) -> Duration {
        self.clock.boot()
    }

    /// How far the wall clock stood behind the database at the start, when that was too far to clamp.
    pub(crate) fn stepped_back(&self) -> Option<Duration> {
        self.base.lock().unwrap_or_else(PoisonError::into_inner).stepped_back
    }
}
