//! The toolbelt's door: a Unix socket of its own, on which the processes of running attempts make calls.
//!
//! It is apart from the interface of [`crate::api`] and knows none of its routes, so that a token of an attempt opens
//! nothing there and the operator's opens nothing here. Who asks is the attempt whose token is shown, and what may be
//! asked is decided by the runtime, in the transaction that does it.

use std::io;
use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::path::Path;
use std::sync::Arc;

use domain::toolbelt::Presented;
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use runtime::CallError;
use runtime::toolbelt::Request as Call;
use serde::de::DeserializeOwned;

use crate::api::body::{self, Body};
use crate::api::failure::Failure;
use crate::api::posture::{self, Peer};
use crate::api::server::{json, not_that, require_json};
use crate::daemon::Daemon;
use crate::error_code::ErrorCode;
use crate::home::Home;

pub(crate) mod token;
pub(crate) mod wire;

use wire::{AckBody, ChildBody, ContextBody, EmitBody, OfferedBody, ProgressBody, UsageBody, WaitBody};

/// The most bytes of a call: a payload, and names, keys and ids beside it.
const BODY_BYTES_MAX: usize = domain::event::PAYLOAD_BYTES_MAX + (64 << 10);
/// The command, as jobs type it.
pub(crate) const COMMAND: &str = "os";

/// Puts the `os` command where jobs find it: a link to this program, which is one binary and does what it is called
/// by. So there is nothing to install, and jobs and daemon are always of one version; a daemon that was replaced puts
/// its own there when it starts.
///
/// # Errors
/// When the link cannot be made.
pub(crate) fn install(home: &Home, program: &Path) -> io::Result<()> {
    let bin = home.bin();
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&bin)?;
    let draft = bin.join(".os");
    match std::fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    symlink(program, &draft)?;
    // In one step, for jobs that look for it while a daemon starts.
    std::fs::rename(draft, bin.join(COMMAND))
}

/// What answers on the toolbelt's socket.
#[derive(Debug)]
pub(crate) struct Door(Arc<Daemon>);

impl Door {
    pub(crate) const fn new(daemon: Arc<Daemon>) -> Self {
        Self(daemon)
    }

    /// Answers a request. It always has an answer.
    pub(crate) async fn answer(&self, request: Request<Incoming>, peer: Peer) -> Response<Body> {
        let tried = (request.method().clone(), request.uri().path().to_owned());
        let mut response = match self.answered(request, peer).await {
            Ok(response) => response,
            Err(failure) => {
                let (method, path) = tried;
                tracing::info!(code = %failure.code(), %method, path, "a call was refused");
                failure.into_response()
            }
        };
        posture::harden(response.headers_mut());
        response
    }

    async fn answered(&self, request: Request<Incoming>, peer: Peer) -> Result<Response<Body>, Failure> {
        let (parts, body) = request.into_parts();
        posture::admit_address(&parts, peer, None)?;
        let shown = parts.headers.get(AUTHORIZATION).map(HeaderValue::as_bytes);
        let by = shown.and_then(token::presented).ok_or_else(unknown)?;
        let runtime = self.0.runtime();
        match (&parts.method, parts.uri.path()) {
            (&Method::GET, "/v1/context") => Ok(json(&ContextBody::from(runtime.context(by).await?))),
            (&Method::GET, "/v1/input") => {
                let offered = runtime.offered(by).await?;
                Ok(json(&offered.iter().map(OfferedBody::from).collect::<Vec<_>>()))
            }
            (&Method::POST, path) => {
                // Before its body is read: what is not let in learns nothing of what there is.
                runtime.admit(by).await?;
                self.call(by, path.to_owned(), parts, body).await
            }
            _ => {
                runtime.admit(by).await?;
                Err(nothing())
            }
        }
    }

    async fn call(
        &self,
        by: Presented,
        path: String,
        parts: Parts,
        body: Incoming,
    ) -> Result<Response<Body>, Failure> {
        let (id, call): (String, Call) = match path.as_str() {
            "/v1/emit" => read::<EmitBody>(&parts, body).await?.call()?,
            "/v1/wait" => read::<WaitBody>(&parts, body).await?.call()?,
            "/v1/child" => read::<ChildBody>(&parts, body).await?.call()?,
            "/v1/progress" => read::<ProgressBody>(&parts, body).await?.call()?,
            "/v1/usage" => read::<UsageBody>(&parts, body).await?.call()?,
            "/v1/input/ack" => read::<AckBody>(&parts, body).await?.call()?,
            _ => return Err(nothing()),
        };
        let answered = Box::pin(self.0.runtime().call(by, id.parse()?, call)).await?;
        let mut response = Response::new(Body::full(answered.answer));
        *response.status_mut() = match (answered.held, answered.again) {
            (true, _) => StatusCode::ACCEPTED,
            (false, true) => StatusCode::OK,
            (false, false) => StatusCode::CREATED,
        };
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(response)
    }
}

async fn read<T: DeserializeOwned>(parts: &Parts, body: Incoming) -> Result<T, Failure> {
    require_json(parts)?;
    let bytes = body::read(body, BODY_BYTES_MAX).await?;
    serde_json::from_slice(&bytes).map_err(|error| not_that(&error))
}

fn unknown() -> Failure {
    Failure::new(ErrorCode::Unauthorized, "show the token in OS_TOKEN_FILE as `Authorization: Bearer ...`")
        .closing()
}

fn nothing() -> Failure {
    Failure::not_found("there is no such call; docs/guide/toolbelt.md lists them")
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        use domain::alias::SubscribeRefusal;
        use domain::budget::meter::ReportRefusal;
        use domain::lease::Fenced;
        use domain::toolbelt::CallRefusal;

        let code = match &error {
            CallError::Store(store) => return Self::from(store.clone()),
            CallError::Unaccepted(refusal) => {
                return Self::from(runtime::AcceptError::Refused(refusal.clone()));
            }
            CallError::Wait(_) => ErrorCode::InvalidWait,
            CallError::Subscribe(refusal) => match refusal {
                SubscribeRefusal::NotAuthorized { .. } => ErrorCode::ScopeNotReadable,
                SubscribeRefusal::ReservedType => ErrorCode::ReservedType,
                SubscribeRefusal::UnknownWork(_)
                | SubscribeRefusal::TerminalWork(_)
                | SubscribeRefusal::ForeignKey(_)
                | SubscribeRefusal::OwnKey
                | SubscribeRefusal::TooMany
                | SubscribeRefusal::Ahead { .. }
                | SubscribeRefusal::Behind { .. }
                | SubscribeRefusal::Taken
                | SubscribeRefusal::Over => ErrorCode::InvalidWait,
            },
            CallError::Refused(refusal) => match refusal {
                CallRefusal::UnknownToken => return unknown(),
                CallRefusal::Fenced(Fenced::Epoch { .. } | Fenced::Owner) => ErrorCode::StaleEpoch,
                CallRefusal::Fenced(Fenced::Expired) => ErrorCode::LeaseLost,
                CallRefusal::Fenced(Fenced::Ended) => ErrorCode::RunEnded,
                CallRefusal::Reused => ErrorCode::CallReused,
                CallRefusal::TooMany | CallRefusal::Report(ReportRefusal::Exhausted) => {
                    ErrorCode::TooManyCalls
                }
                CallRefusal::UnknownEvent(_) => ErrorCode::NotFound,
                CallRefusal::ForeignCause(_) => ErrorCode::ForeignCause,
                CallRefusal::ReservedType => ErrorCode::ReservedType,
                CallRefusal::ReservedSource => ErrorCode::ReservedSource,
                CallRefusal::KeyTaken => ErrorCode::KeyConflict,
                CallRefusal::TooLarge(_) => ErrorCode::PayloadTooLarge,
                CallRefusal::TooManyKeys
                | CallRefusal::Amount
                | CallRefusal::Report(_)
                | CallRefusal::Progress => ErrorCode::BadRequest,
                CallRefusal::Gate { .. } => ErrorCode::GateRefused,
                CallRefusal::GateSilent(_) => ErrorCode::GateSilent,
                CallRefusal::ScopeNotWritable { .. } => ErrorCode::ScopeNotWritable,
                CallRefusal::NoKey => ErrorCode::InvalidWait,
                CallRefusal::UnknownBinding(_) => ErrorCode::UnknownBinding,
                CallRefusal::NotInjected(_) => ErrorCode::NotInjected,
            },
        };
        Self::new(code, error.to_string())
    }
}
