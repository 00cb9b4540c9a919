//! Starts of a daemon: since when nobody was there, and what became of the runs that the ones before had left.

use crate::id::Incarnation;
use crate::store::StoreError;
use crate::time::Timestamp;

/// When the daemon before was last known to be alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastSeen {
    /// The moment; it may have lived a few seconds longer.
    pub at: Timestamp,
    /// Whether it stopped in order then. Otherwise it was killed, or the machine was.
    pub stopped: bool,
}

/// What recovery found out about a run that an earlier life had left live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovered {
    /// It had gone on, and its attempt goes on.
    Adopted,
    /// Nothing of it had started, so the same attempt was launched again.
    Relaunched,
    /// It had ended meanwhile, and its result was there.
    Finished,
    /// Neither it nor its result was there: the attempt failed as `interrupted`.
    Interrupted,
}

/// How many runs recovery found in which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecoveryTally {
    /// [`Recovered::Adopted`].
    pub adopted: i64,
    /// [`Recovered::Relaunched`].
    pub relaunched: i64,
    /// [`Recovered::Finished`].
    pub finished: i64,
    /// [`Recovered::Interrupted`].
    pub interrupted: i64,
}

/// One start of a daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartRow {
    /// The life that began.
    pub incarnation: Incarnation,
    /// The host it began on, as people call it; none where one process has the database alone.
    pub host: Option<String>,
    /// Whether that is this process's host.
    pub here: bool,
    /// When.
    pub started_at: Timestamp,
    /// The one before on the same host; none when this was the first, or nothing is known of it.
    pub before: Option<LastSeen>,
    /// What became of the runs that earlier lives had left live.
    pub recovered: RecoveryTally,
}

/// Which starts a list shows.
#[derive(Debug, Clone, Copy, Default)]
pub struct StartFilter {
    /// Only those of this process's host.
    pub here: bool,
    /// Of lives before this one.
    pub before: Option<Incarnation>,
}

/// Reading starts.
pub trait StartReads {
    /// Starts, newest first, at most `limit`.
    fn starts(&mut self, filter: &StartFilter, limit: u32) -> Result<Vec<StartRow>, StoreError>;
}

/// Writing starts.
pub trait StartWrites {
    /// Notes that a life began on this host, at the time of the transaction.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when it has been noted before.
    fn insert_start(&mut self, incarnation: Incarnation, before: Option<LastSeen>) -> Result<(), StoreError>;

    /// Counts a run for a life. False when its start was never noted.
    fn count_recovered(&mut self, incarnation: Incarnation, found: Recovered) -> Result<bool, StoreError>;
}
