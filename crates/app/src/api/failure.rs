//! What goes wrong while a request is answered, and how that is said: RFC 9457 problems with a stable code.
//!
//! A detail says what to do next. It never repeats a payload, a token or a configured value.

use std::fmt;

use domain::id::IdError;
use domain::store::StoreError;
use domain::text::TextError;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::{Response, StatusCode};
use runtime::control::ControlError;
use runtime::{AcceptError, ApplyError};

use super::body::Body;
use super::wire::{Problem, ProblemItem};
use crate::config;
use crate::error_code::ErrorCode;
use domain::delivery::AcceptRefusal;
use domain::work::WorkRefusal;

/// Where the pages about codes are.
const PAGES: &str = "https://github.com/open-conduit/open-conduit/blob/main/docs/errors";

/// An error on its way to whoever asked.
#[derive(Debug)]
pub(crate) struct Failure {
    code: ErrorCode,
    detail: String,
    problems: Vec<ProblemItem>,
    candidates: Vec<String>,
    allow: Option<&'static str>,
    close: bool,
}

impl Failure {
    /// An error with one sentence that says what to do next.
    pub(crate) fn new(code: ErrorCode, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        Self { code, detail, problems: Vec::new(), candidates: Vec::new(), allow: None, close: false }
    }

    /// The request cannot be read.
    pub(crate) fn bad(detail: impl Into<String>) -> Self {
        Self::new(ErrorCode::BadRequest, detail)
    }

    /// There is nothing there.
    pub(crate) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(ErrorCode::NotFound, detail)
    }

    /// A shortened id that may mean several.
    pub(crate) fn ambiguous(what: &str, candidates: Vec<String>) -> Self {
        let detail = format!("several {what} ids begin like that; write more of it");
        Self { candidates, ..Self::new(ErrorCode::AmbiguousId, detail) }
    }

    /// A configuration with everything that is wrong with it.
    pub(crate) fn config(problems: Vec<config::Problem>) -> Self {
        let detail = match problems.len() {
            1 => "the configuration has a problem; nothing was changed".to_owned(),
            count => format!("the configuration has {count} problems; nothing was changed"),
        };
        let problems = problems.into_iter().map(ProblemItem::from).collect();
        Self { problems, ..Self::new(ErrorCode::InvalidConfig, detail) }
    }

    /// The path exists, but not with this method.
    pub(crate) fn method(allow: &'static str) -> Self {
        let detail = format!("this path takes {allow}");
        Self { allow: Some(allow), ..Self::new(ErrorCode::MethodNotAllowed, detail) }
    }

    /// The rest of the request is not read, so the connection ends with the answer.
    pub(crate) fn closing(mut self) -> Self {
        self.close = true;
        self
    }

    /// The stable word.
    pub(crate) const fn code(&self) -> ErrorCode {
        self.code
    }

    /// What to do next, in one sentence.
    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    /// What is wrong, when that is several things.
    pub(crate) fn problems(&self) -> &[ProblemItem] {
        &self.problems
    }

    /// The answer.
    pub(crate) fn into_response(self) -> Response<Body> {
        let status = self.code.status();
        let problem = Problem {
            about: format!("{PAGES}/{}.md", self.code),
            title: self.code.title().to_owned(),
            status: status.as_u16(),
            detail: self.detail,
            code: self.code.as_str().to_owned(),
            problems: self.problems,
            candidates: self.candidates,
        };
        let body = serde_json::to_vec(&problem).expect("texts and numbers are JSON");
        let mut response = Response::new(Body::full(body));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = self.code.retry_after() {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(allow) = self.allow {
            headers.insert(ALLOW, HeaderValue::from_static(allow));
        }
        if self.close {
            headers.insert(hyper::header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

impl From<config::Problem> for ProblemItem {
    fn from(problem: config::Problem) -> Self {
        Self {
            path: problem.path,
            line: problem.line,
            code: problem.code.to_owned(),
            message: problem.message,
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let (code, detail) = match &error {
            StoreError::Conflict { .. } => (ErrorCode::Conflict, "a record changed meanwhile; try again"),
            StoreError::Database { .. } => (
                ErrorCode::Database,
                "the database failed; `open-conduit doctor` and the daemon's log say more",
            ),
            StoreError::Corrupt { .. } => {
                (ErrorCode::CorruptRecord, "a stored record cannot be read; the daemon's log says which")
            }
            StoreError::Panicked { .. } => (
                ErrorCode::Bug,
                "a transaction failed by a bug and left nothing behind; the daemon's log says more",
            ),
            StoreError::Full => (ErrorCode::DiskFull, "the disk of the database is full; free some space"),
            StoreError::Lost => (
                ErrorCode::CommitUnknown,
                "the database was lost during the commit; send it again under the same id",
            ),
            StoreError::NotOwner(_) => {
                (ErrorCode::NotOwner, "another node on the same database does this now; try again")
            }
            StoreError::Locked => (ErrorCode::DatabaseLocked, "another process uses the database"),
            StoreError::Closed => (ErrorCode::StoreClosed, "the daemon is stopping; try again when it runs"),
        };
        tracing::warn!(error = %Chain(&error), code = %code, "the store failed a request");
        Self::new(code, detail)
    }
}

impl From<AcceptError> for Failure {
    fn from(error: AcceptError) -> Self {
        let code = match &error {
            AcceptError::Store(store) => return Self::from(store.clone()),
            AcceptError::UnknownScope(_) => ErrorCode::UnknownScope,
            AcceptError::Refused(refusal) => match refusal {
                AcceptRefusal::ReservedType => ErrorCode::ReservedType,
                AcceptRefusal::ReservedSource => ErrorCode::ReservedSource,
                AcceptRefusal::UnknownWork(_) => ErrorCode::UnknownWork,
                AcceptRefusal::ScopeMismatch { .. } => ErrorCode::ScopeMismatch,
                AcceptRefusal::KeyMismatch(_) => ErrorCode::KeyMismatch,
                AcceptRefusal::UnknownParent(_) => ErrorCode::UnknownParent,
                AcceptRefusal::Causal(_) => ErrorCode::CausalRejected,
            },
        };
        Self::new(code, error.to_string())
    }
}

impl From<ControlError> for Failure {
    fn from(error: ControlError) -> Self {
        let code = match &error {
            ControlError::Store(store) => return Self::from(store.clone()),
            ControlError::UnknownWork(_) => ErrorCode::UnknownWork,
            ControlError::NoRun(..) => ErrorCode::NoLiveRun,
            ControlError::Unsupported { .. } => ErrorCode::UnsupportedControl,
            ControlError::Refused(WorkRefusal::Terminal { .. }) => ErrorCode::TerminalWork,
            ControlError::Refused(
                WorkRefusal::Running
                | WorkRefusal::NotLive
                | WorkRefusal::Idle
                | WorkRefusal::Ineligible
                | WorkRefusal::Stopping
                | WorkRefusal::StaleRetry
                | WorkRefusal::Waiting
                | WorkRefusal::NotWaiting
                | WorkRefusal::Parked
                | WorkRefusal::NotParked
                | WorkRefusal::Held
                | WorkRefusal::NotHeld
                | WorkRefusal::NothingToRetry,
            ) => ErrorCode::WorkConflict,
        };
        Self::new(code, error.to_string())
    }
}

impl From<ApplyError> for Failure {
    fn from(error: ApplyError) -> Self {
        let item = |path: String, message: String| {
            let code = ErrorCode::InvalidConfig.as_str().to_owned();
            ProblemItem { path, line: None, code, message }
        };
        let problem = match error {
            ApplyError::Store(store) => return Self::from(store),
            ApplyError::Conflict => return Self::new(ErrorCode::ConfigConflict, error.to_string()),
            ApplyError::Route { scope, route, reason } => {
                item(format!("scopes.{scope}.routes.{route}"), reason)
            }
            ApplyError::Entry { scope, entry, reason } => {
                item(format!("scopes.{scope}.extensions.{entry}"), reason)
            }
            ApplyError::Text(reason) => item(String::new(), reason),
        };
        let failure =
            Self::new(ErrorCode::InvalidConfig, "the configuration has a problem; nothing was changed");
        Self { problems: vec![problem], ..failure }
    }
}

impl From<TextError> for Failure {
    fn from(error: TextError) -> Self {
        Self::bad(error.to_string())
    }
}

impl From<IdError> for Failure {
    fn from(error: IdError) -> Self {
        Self::bad(error.to_string())
    }
}

/// An error with its causes, for a log line.
pub(crate) struct Chain<'a>(pub(crate) &'a dyn std::error::Error);

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}
