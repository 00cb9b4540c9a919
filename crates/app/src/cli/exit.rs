//! What the exit code of a command means. The numbers are part of the interface: scripts branch on them.

use std::process::ExitCode;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exit(u8);

impl Exit {
    /// It did what it was asked to do.
    pub(crate) const DONE: Self = Self(0);
    /// The run it is about failed or was cancelled, no run came of what was sent, or the daemon failed.
    pub(crate) const FAILED: Self = Self(1);
    /// The command, or what was given to it, is not right as it is written.
    pub(crate) const USAGE: Self = Self(2);
    /// What it names does not exist.
    pub(crate) const NOT_FOUND: Self = Self(3);
    /// It is not allowed.
    pub(crate) const NOT_ALLOWED: Self = Self(4);
    /// It contradicts what is there, or what is there has changed meanwhile.
    pub(crate) const CONFLICT: Self = Self(5);
    /// With `--wait`: the Work is held until an operator does something. Of a call: a gate has it wait.
    pub(crate) const HELD: Self = Self(6);
    /// With `--wait`: the time was over first. What was sent goes on.
    pub(crate) const TIMED_OUT: Self = Self(7);
    /// With `--wait`: the run handed the Work back, which is not finished yet.
    pub(crate) const PENDING: Self = Self(8);
    /// No daemon answers.
    pub(crate) const UNREACHABLE: Self = Self(10);

    /// Every code with its meaning in a few words, for the reference.
    pub(crate) const MEANINGS: [(Self, &'static str); 10] = [
        (Self::DONE, "done"),
        (Self::FAILED, "the run failed, no run came of the Event, or the daemon failed"),
        (Self::USAGE, "the command line or the configuration file is not right"),
        (Self::NOT_FOUND, "not found"),
        (Self::NOT_ALLOWED, "not allowed"),
        (Self::CONFLICT, "it contradicts what is there, or that has changed meanwhile"),
        (Self::HELD, "held: somebody else has to do something first"),
        (Self::TIMED_OUT, "`--timeout` was over before the run; what was sent goes on"),
        (Self::PENDING, "the run handed its Work back, which is not finished yet"),
        (Self::UNREACHABLE, "no daemon answers"),
    ];

    /// The number.
    pub(crate) const fn number(self) -> u8 {
        self.0
    }

    /// The exit code for an answer's HTTP status.
    pub(crate) const fn of_status(status: u16) -> Self {
        match status {
            400 | 405 | 413 | 415 | 422 => Self::USAGE,
            404 | 410 => Self::NOT_FOUND,
            401 | 403 => Self::NOT_ALLOWED,
            409 | 412 => Self::CONFLICT,
            _the_daemon_failed => Self::FAILED,
        }
    }

    /// The exit code for how a run ended; none while it has not.
    pub(crate) fn of_run(state: &str) -> Option<Self> {
        match state {
            "completed" => Some(Self::DONE),
            "failed" | "cancelled" => Some(Self::FAILED),
            "handoff" | "waiting" | "parked" => Some(Self::PENDING),
            _live => None,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.0)
    }
}
