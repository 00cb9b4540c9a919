//! Why a Work may not do what was asked, in words that say what to do next.

use thiserror::Error;

/// Why a Work may not do what was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum WorkRefusal {
    /// It has ended, and stays as it is.
    #[error("the Work has ended ({state}) and cannot change")]
    Terminal {
        /// Its final state.
        state: &'static str,
    },
    /// An attempt is live.
    #[error("an attempt of the Work is running")]
    Running,
    /// The attempt that was named is not its live one.
    #[error("the run is not the live attempt of the Work")]
    NotLive,
    /// No input is pending.
    #[error("the Work has no pending input")]
    Idle,
    /// It waits out a failure, or failed too often.
    #[error("the Work failed and waits; `open-conduit work retry` starts its next run")]
    Ineligible,
    /// What its interrupted attempt had started may still run.
    #[error("the Work's last run was interrupted and is still being stopped; ask again once it has stopped")]
    Stopping,
    /// The failure that was named is not the one it waits out.
    #[error("the Work does not wait to be tried again after that run")]
    StaleRetry,
    /// It waits for a fact or a time.
    #[error("the Work waits; `open-conduit waits list` shows for what")]
    Waiting,
    /// It does not wait for what was named.
    #[error("the Work does not wait for that any more")]
    NotWaiting,
    /// A parked attempt goes on, and no other is started beside it.
    #[error("a parked run of the Work goes on next")]
    Parked,
    /// No parked attempt goes on.
    #[error("no parked run of the Work is to go on")]
    NotParked,
    /// It is held.
    #[error("the Work is held; `open-conduit work release` lets it go on")]
    Held,
    /// It is not held.
    #[error("the Work is not held, so there is nothing to release")]
    NotHeld,
    /// Its newest attempt did not fail.
    #[error("the Work's last run did not fail, so there is nothing to try again")]
    NothingToRetry,
}
