//! Why a command did not do what it was asked to do: one sentence that says what to do next, a hint where one
//! helps, and a stable code.

use std::error::Error;
use std::io;

use crate::api::wire::{Problem, ProblemItem};
use crate::client::ClientError;
use crate::error_code::ErrorCode;
use crate::home::HomeError;

use super::exit::Exit;

/// What ends a command early.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Something went wrong.
    Failure(Box<Failure>),
    /// Whoever read the output has read enough.
    PipeClosed,
}

/// What went wrong.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The exit code.
    pub(crate) exit: Exit,
    /// What it is in the API's terms.
    pub(crate) problem: Problem,
    /// One thing worth trying.
    pub(crate) hint: Option<String>,
}

impl Failure {
    /// A failure that the command itself found.
    pub(crate) fn new(exit: Exit, code: impl Into<&'static str>, detail: impl Into<String>) -> Self {
        let problem = Problem {
            about: "about:blank".to_owned(),
            title: title(exit).to_owned(),
            status: status(exit),
            detail: detail.into(),
            code: code.into().to_owned(),
            problems: Vec::new(),
            candidates: Vec::new(),
        };
        Self { exit, problem, hint: None }
    }

    /// What was typed cannot be meant.
    pub(crate) fn usage(detail: impl Into<String>) -> Self {
        Self::new(Exit::USAGE, ErrorCode::Usage, detail)
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    #[must_use]
    pub(crate) fn problems(mut self, problems: Vec<ProblemItem>) -> Self {
        self.problem.problems = problems;
        self
    }
}

const fn title(exit: Exit) -> &'static str {
    match exit {
        Exit::USAGE => "Not right as it is written",
        Exit::NOT_FOUND => "Not found",
        Exit::NOT_ALLOWED => "Not allowed",
        Exit::HELD => "Held",
        Exit::TIMED_OUT => "The time is over",
        Exit::UNREACHABLE => "No daemon answers",
        _other => "It failed",
    }
}

const fn status(exit: Exit) -> u16 {
    match exit {
        Exit::USAGE => 400,
        Exit::NOT_FOUND => 404,
        Exit::NOT_ALLOWED => 403,
        Exit::CONFLICT | Exit::HELD => 409,
        Exit::TIMED_OUT => 504,
        Exit::UNREACHABLE => 503,
        _other => 500,
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failure(Box::new(failure))
    }
}

impl From<ClientError> for Stop {
    fn from(error: ClientError) -> Self {
        let failure = match error {
            ClientError::Unreachable { ref source, .. } => {
                // Where simply nobody is there, the system's words for it add nothing.
                let nobody =
                    [io::ErrorKind::NotFound, io::ErrorKind::ConnectionRefused].contains(&source.kind());
                let detail = if nobody { error.to_string() } else { chain(&error) };
                Failure::new(Exit::UNREACHABLE, ErrorCode::DaemonUnreachable, detail)
                    .hint("start one with `open-conduit up`, or name another home with --home")
            }
            ClientError::Refused(problem) => refused(*problem),
            ClientError::Broken(_) => {
                Failure::new(Exit::UNREACHABLE, ErrorCode::DaemonUnreachable, chain(&error))
                    .hint("`open-conduit status` tells whether it is there again")
            }
            ClientError::TimedOut => {
                Failure::new(Exit::UNREACHABLE, ErrorCode::DaemonUnreachable, chain(&error))
                    .hint("the daemon's log says what keeps it busy")
            }
            ClientError::Token(_) => {
                Failure::new(Exit::NOT_ALLOWED, ErrorCode::TokenUnreadable, chain(&error))
                    .hint("the token is for the user who started the daemon")
            }
            ClientError::Unknown(_) => Failure::new(Exit::FAILED, ErrorCode::UnexpectedAnswer, chain(&error))
                .hint("`open-conduit status` shows the daemon's version, `open-conduit --version` this one"),
        };
        failure.into()
    }
}

fn refused(problem: Problem) -> Failure {
    let hint = match problem.code.as_str() {
        "unauthorized" => {
            Some("the token in the home is made by the daemon of that home; is it the right --home?")
        }
        "no_config_file" => Some("`open-conduit up` writes one to begin with"),
        "invalid_config" => Some("`open-conduit config check` shows every problem without a daemon"),
        _says_enough => None,
    };
    Failure { exit: Exit::of_status(problem.status), hint: hint.map(str::to_owned), problem }
}

impl From<HomeError> for Stop {
    fn from(error: HomeError) -> Self {
        let exit = match error {
            HomeError::Nowhere
            | HomeError::TooLong { .. }
            | HomeError::TwoConfigs
            | HomeError::ConfigTooLarge { .. } => Exit::USAGE,
            HomeError::OpenToOthers { .. } => Exit::NOT_ALLOWED,
            HomeError::Io { .. } => Exit::FAILED,
        };
        Failure::new(exit, ErrorCode::Home, chain(&error)).into()
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::PipeClosed;
        }
        Failure::new(Exit::FAILED, ErrorCode::Output, format!("cannot write the output: {error}")).into()
    }
}

/// An error and its causes: `cannot do this: because of that`.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        text.push_str(": ");
        text.push_str(&source.to_string());
        next = source.source();
    }
    text
}
