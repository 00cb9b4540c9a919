//! Every error that a program may tell apart, as one stable word.
//!
//! The words are part of the interface: HTTP answers and the command line both carry them, and each has a page
//! in `docs/errors`. A word is never given another meaning; an error that needs one gets a new word.

use std::fmt;

use hyper::StatusCode;

/// What went wrong, for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ErrorCode {
    BadRequest,
    UnsupportedSpecversion,
    Unauthorized,
    WrongCode,
    ForeignUser,
    ForeignHost,
    ForeignOrigin,
    OperatorOnly,
    ReservedType,
    ReservedSource,
    NotFound,
    UnknownScope,
    UnknownWork,
    UnknownParent,
    NoConfigFile,
    MethodNotAllowed,
    RequestTimeout,
    AmbiguousId,
    ScopeMismatch,
    KeyMismatch,
    TerminalWork,
    WorkConflict,
    NotReplayable,
    NoLiveRun,
    UnsupportedControl,
    CausalRejected,
    ConfigConflict,
    Conflict,
    PayloadTooLarge,
    UnsupportedMediaType,
    NotThePage,
    InvalidConfig,
    TooManyTries,
    HomeUnreadable,
    LogUnavailable,
    ContentReleased,
    EntryUnavailable,
    TooManyStreams,
    Database,
    CorruptRecord,
    Bug,
    DiskFull,
    CommitUnknown,
    DatabaseLocked,
    StoreClosed,
    NotOwner,
    AlreadyRunning,
    Home,
    NoRandomness,
    CannotListen,
    OpenWithoutProxy,
    Usage,
    DaemonUnreachable,
    TokenUnreadable,
    UnexpectedAnswer,
    NoRun,
    Held,
    WaitTimedOut,
    Output,
    System,
    StaleEpoch,
    LeaseLost,
    RunEnded,
    ForeignCause,
    ScopeNotReadable,
    ScopeNotWritable,
    GateRefused,
    GateSilent,
    UnknownBinding,
    CallReused,
    TooManyCalls,
    NotInjected,
    KeyConflict,
    InvalidWait,
}

impl ErrorCode {
    /// Every code, in the order of their statuses.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 74] = [
        Self::BadRequest,
        Self::UnsupportedSpecversion,
        Self::Unauthorized,
        Self::WrongCode,
        Self::ForeignUser,
        Self::ForeignHost,
        Self::ForeignOrigin,
        Self::OperatorOnly,
        Self::ReservedType,
        Self::ReservedSource,
        Self::NotFound,
        Self::UnknownScope,
        Self::UnknownWork,
        Self::UnknownParent,
        Self::NoConfigFile,
        Self::MethodNotAllowed,
        Self::RequestTimeout,
        Self::AmbiguousId,
        Self::ScopeMismatch,
        Self::KeyMismatch,
        Self::TerminalWork,
        Self::WorkConflict,
        Self::NotReplayable,
        Self::NoLiveRun,
        Self::UnsupportedControl,
        Self::CausalRejected,
        Self::ConfigConflict,
        Self::Conflict,
        Self::PayloadTooLarge,
        Self::UnsupportedMediaType,
        Self::NotThePage,
        Self::InvalidConfig,
        Self::TooManyTries,
        Self::HomeUnreadable,
        Self::LogUnavailable,
        Self::ContentReleased,
        Self::EntryUnavailable,
        Self::TooManyStreams,
        Self::Database,
        Self::CorruptRecord,
        Self::Bug,
        Self::DiskFull,
        Self::CommitUnknown,
        Self::DatabaseLocked,
        Self::StoreClosed,
        Self::NotOwner,
        Self::AlreadyRunning,
        Self::Home,
        Self::NoRandomness,
        Self::CannotListen,
        Self::OpenWithoutProxy,
        Self::Usage,
        Self::DaemonUnreachable,
        Self::TokenUnreadable,
        Self::UnexpectedAnswer,
        Self::NoRun,
        Self::Held,
        Self::WaitTimedOut,
        Self::Output,
        Self::System,
        Self::StaleEpoch,
        Self::LeaseLost,
        Self::RunEnded,
        Self::ForeignCause,
        Self::ScopeNotReadable,
        Self::ScopeNotWritable,
        Self::GateRefused,
        Self::GateSilent,
        Self::UnknownBinding,
        Self::CallReused,
        Self::TooManyCalls,
        Self::NotInjected,
        Self::KeyConflict,
        Self::InvalidWait,
    ];

    /// The stable word.
    #[expect(clippy::too_many_lines, reason = "one line for each code")]
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::BadRequest => "bad_request",
            Self::UnsupportedSpecversion => "unsupported_specversion",
            Self::Unauthorized => "unauthorized",
            Self::WrongCode => "wrong_code",
            Self::ForeignUser => "foreign_user",
            Self::ForeignHost => "foreign_host",
            Self::ForeignOrigin => "foreign_origin",
            Self::OperatorOnly => "operator_only",
            Self::ReservedType => "reserved_type",
            Self::ReservedSource => "reserved_source",
            Self::NotFound => "not_found",
            Self::UnknownScope => "unknown_scope",
            Self::UnknownWork => "unknown_work",
            Self::UnknownParent => "unknown_parent",
            Self::NoConfigFile => "no_config_file",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::RequestTimeout => "request_timeout",
            Self::AmbiguousId => "ambiguous_id",
            Self::ScopeMismatch => "scope_mismatch",
            Self::KeyMismatch => "key_mismatch",
            Self::TerminalWork => "terminal_work",
            Self::WorkConflict => "work_conflict",
            Self::NotReplayable => "not_replayable",
            Self::NoLiveRun => "no_live_run",
            Self::UnsupportedControl => "unsupported_control",
            Self::CausalRejected => "causal_rejected",
            Self::ConfigConflict => "config_conflict",
            Self::Conflict => "conflict",
            Self::PayloadTooLarge => "payload_too_large",
            Self::UnsupportedMediaType => "unsupported_media_type",
            Self::NotThePage => "not_the_page",
            Self::InvalidConfig => "invalid_config",
            Self::TooManyTries => "too_many_tries",
            Self::HomeUnreadable => "home_unreadable",
            Self::LogUnavailable => "log_unavailable",
            Self::ContentReleased => "content_released",
            Self::EntryUnavailable => "entry_unavailable",
            Self::TooManyStreams => "too_many_streams",
            Self::Database => "database",
            Self::CorruptRecord => "corrupt_record",
            Self::Bug => "bug",
            Self::DiskFull => "disk_full",
            Self::CommitUnknown => "commit_unknown",
            Self::DatabaseLocked => "database_locked",
            Self::StoreClosed => "store_closed",
            Self::NotOwner => "not_owner",
            Self::AlreadyRunning => "already_running",
            Self::Home => "home",
            Self::NoRandomness => "no_randomness",
            Self::CannotListen => "cannot_listen",
            Self::OpenWithoutProxy => "open_without_proxy",
            Self::Usage => "usage",
            Self::DaemonUnreachable => "daemon_unreachable",
            Self::TokenUnreadable => "token_unreadable",
            Self::UnexpectedAnswer => "unexpected_answer",
            Self::NoRun => "no_run",
            Self::Held => "held",
            Self::WaitTimedOut => "wait_timed_out",
            Self::Output => "output",
            Self::System => "system",
            Self::StaleEpoch => "stale_epoch",
            Self::LeaseLost => "lease_lost",
            Self::RunEnded => "run_ended",
            Self::ForeignCause => "foreign_cause",
            Self::ScopeNotReadable => "scope_not_readable",
            Self::ScopeNotWritable => "scope_not_writable",
            Self::GateRefused => "gate_refused",
            Self::GateSilent => "gate_silent",
            Self::UnknownBinding => "unknown_binding",
            Self::CallReused => "call_reused",
            Self::TooManyCalls => "too_many_calls",
            Self::NotInjected => "not_injected",
            Self::KeyConflict => "key_conflict",
            Self::InvalidWait => "invalid_wait",
        }
    }

    /// The HTTP status that goes with it. What keeps a daemon from starting, and what only the
    /// command line says, have one for completeness.
    #[expect(clippy::too_many_lines, reason = "one line for each code")]
    pub(crate) const fn status(self) -> StatusCode {
        match self {
            Self::BadRequest | Self::UnsupportedSpecversion | Self::Usage => StatusCode::BAD_REQUEST,
            Self::Unauthorized | Self::WrongCode => StatusCode::UNAUTHORIZED,
            Self::ForeignUser
            | Self::ForeignHost
            | Self::ForeignOrigin
            | Self::OperatorOnly
            | Self::ReservedType
            | Self::ReservedSource
            | Self::TokenUnreadable
            | Self::StaleEpoch
            | Self::LeaseLost
            | Self::RunEnded
            | Self::ForeignCause
            | Self::ScopeNotReadable
            | Self::ScopeNotWritable
            | Self::GateRefused => StatusCode::FORBIDDEN,
            Self::NotFound
            | Self::UnknownScope
            | Self::UnknownWork
            | Self::UnknownParent
            | Self::NoConfigFile
            | Self::NoRun
            | Self::UnknownBinding => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::RequestTimeout | Self::WaitTimedOut => StatusCode::REQUEST_TIMEOUT,
            Self::AmbiguousId
            | Self::ScopeMismatch
            | Self::KeyMismatch
            | Self::TerminalWork
            | Self::WorkConflict
            | Self::NotReplayable
            | Self::NoLiveRun
            | Self::UnsupportedControl
            | Self::CausalRejected
            | Self::ConfigConflict
            | Self::Conflict
            | Self::AlreadyRunning
            | Self::Held
            | Self::CallReused
            | Self::TooManyCalls
            | Self::NotInjected
            | Self::KeyConflict => StatusCode::CONFLICT,
            Self::ContentReleased => StatusCode::GONE,
            Self::PayloadTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::NotThePage => StatusCode::MISDIRECTED_REQUEST,
            Self::InvalidConfig | Self::InvalidWait => StatusCode::UNPROCESSABLE_ENTITY,
            Self::TooManyTries => StatusCode::TOO_MANY_REQUESTS,
            Self::CorruptRecord
            | Self::Bug
            | Self::HomeUnreadable
            | Self::Home
            | Self::NoRandomness
            | Self::CannotListen
            | Self::OpenWithoutProxy
            | Self::UnexpectedAnswer
            | Self::Output
            | Self::System => StatusCode::INTERNAL_SERVER_ERROR,
            Self::LogUnavailable
            | Self::EntryUnavailable
            | Self::TooManyStreams
            | Self::Database
            | Self::DiskFull
            | Self::CommitUnknown
            | Self::DatabaseLocked
            | Self::StoreClosed
            | Self::NotOwner
            | Self::GateSilent
            | Self::DaemonUnreachable => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// The kind of error in a few words, the same for every occurrence.
    #[expect(clippy::too_many_lines, reason = "one line for each code")]
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::BadRequest => "The request cannot be read",
            Self::UnsupportedSpecversion => "Not this version of CloudEvents",
            Self::Unauthorized => "Who sent this could not be verified",
            Self::WrongCode => "The code opens nothing",
            Self::ForeignUser => "Another user's process",
            Self::ForeignHost => "Not addressed to this daemon",
            Self::ForeignOrigin => "Sent by another site's page",
            Self::OperatorOnly => "Only with the operator's token",
            Self::ReservedType => "The type belongs to the runtime",
            Self::ReservedSource => "The source belongs to the runtime",
            Self::NotFound => "Not found",
            Self::UnknownScope => "No such scope",
            Self::UnknownWork => "No such Work",
            Self::UnknownParent => "No such cause",
            Self::NoConfigFile => "No configuration file",
            Self::MethodNotAllowed => "Not this method",
            Self::RequestTimeout => "The request took too long to arrive",
            Self::AmbiguousId => "The id is too short",
            Self::ScopeMismatch => "The Work is in another scope",
            Self::KeyMismatch => "The key is not the Work's",
            Self::TerminalWork => "The Work has ended",
            Self::WorkConflict => "The Work does not allow it now",
            Self::NotReplayable => "The Event cannot be looked at again",
            Self::NoLiveRun => "No run is going on",
            Self::UnsupportedControl => "The executor cannot do that",
            Self::CausalRejected => "The chain may not go further",
            Self::ConfigConflict => "Another configuration was applied",
            Self::Conflict => "Changed meanwhile",
            Self::PayloadTooLarge => "The body is too large",
            Self::UnsupportedMediaType => "Not this media type",
            Self::NotThePage => "The page has another address",
            Self::InvalidConfig => "The configuration is not valid",
            Self::TooManyTries => "Too many wrong codes",
            Self::HomeUnreadable => "The home cannot be read",
            Self::LogUnavailable => "The output cannot be read",
            Self::ContentReleased => "The content of the run was released",
            Self::EntryUnavailable => "The entry cannot receive now",
            Self::TooManyStreams => "Too many streams are open",
            Self::Database => "The database failed",
            Self::CorruptRecord => "A stored record cannot be read",
            Self::Bug => "A bug of Open Conduit",
            Self::DiskFull => "The disk is full",
            Self::CommitUnknown => "Whether it was stored is not known",
            Self::DatabaseLocked => "The database is in use",
            Self::StoreClosed => "The daemon is stopping",
            Self::NotOwner => "Another node runs the loops",
            Self::AlreadyRunning => "A daemon runs in this home",
            Self::Home => "The home cannot be used",
            Self::NoRandomness => "No random bytes",
            Self::CannotListen => "The address cannot be listened on",
            Self::OpenWithoutProxy => "Open to other machines",
            Self::Usage => "The command cannot be meant",
            Self::DaemonUnreachable => "No daemon answers",
            Self::TokenUnreadable => "The token cannot be read",
            Self::UnexpectedAnswer => "The answer cannot be read",
            Self::NoRun => "No run came of it",
            Self::Held => "It cannot start now",
            Self::WaitTimedOut => "The wait is over",
            Self::Output => "The output cannot be written",
            Self::System => "The system refused",
            Self::StaleEpoch => "The token was replaced",
            Self::LeaseLost => "Nobody speaks for the run now",
            Self::RunEnded => "The run has ended",
            Self::ForeignCause => "The Event may not be cited",
            Self::ScopeNotReadable => "The scope may not be read",
            Self::ScopeNotWritable => "The scope may not be written",
            Self::GateRefused => "A gate refuses the call",
            Self::GateSilent => "A gate did not answer",
            Self::UnknownBinding => "No such binding",
            Self::CallReused => "The call id is taken",
            Self::TooManyCalls => "The run has made too many calls",
            Self::NotInjected => "Nothing to acknowledge",
            Self::KeyConflict => "The key belongs to another Work",
            Self::InvalidWait => "The run may not wait for that",
        }
    }

    /// Seconds after which the same request is worth another try, when it is.
    pub(crate) const fn retry_after(self) -> Option<u32> {
        match self.status() {
            StatusCode::SERVICE_UNAVAILABLE => Some(2),
            StatusCode::TOO_MANY_REQUESTS => Some(60),
            _other => None,
        }
    }
}

impl From<ErrorCode> for &'static str {
    fn from(code: ErrorCode) -> Self {
        code.as_str()
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::ErrorCode;

    #[test]
    fn words_are_unique_and_each_has_a_page() {
        let words: BTreeSet<&str> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(words.len(), ErrorCode::ALL.len());
        let pages = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/errors");
        for word in words {
            assert!(std::path::Path::new(pages).join(format!("{word}.md")).is_file(), "{word}");
        }
    }
}
