//! Answering a request: whether it is let in, what it asks for, and who answers.

use std::sync::Arc;

use domain::store::{Snapshot, StoreError};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response};
use percent_encoding::percent_decode_str;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::body::{self, Body};
use super::failure::Failure;
use super::posture::{self, Hosts, Peer, Place};
use super::query::Query;
use super::route::{self, Found, Operation, Route};
use super::{
    config, doctor, events, explain, metrics, needs, openapi, order, pause, replay, runs, scopes, sessions,
    starts, stream, timeline, waits, work,
};
use crate::auth::Authority;
use crate::daemon::Daemon;
use crate::error_code::ErrorCode;
use crate::pages;
use crate::pages::route::Page;

/// What is answered, or why not.
pub(crate) type Answer = Result<Response<Body>, Failure>;

/// The most bytes of a request's body where nothing else is said.
const BODY_BYTES_MAX: usize = 2 << 20;

/// What a request that was let in wants.
#[derive(Debug)]
enum Wanted {
    /// Something of the interface.
    Operation(Operation, Asked),
    /// A page.
    Page(Page, Asked),
    /// A page that there is not, or not like that.
    NoPage(Failure, Asked),
    /// A page that needs a login first, by this answer.
    LogIn(Response<Body>),
}

/// A request that was let in.
#[derive(Debug)]
pub(crate) struct Asked {
    /// Its head.
    pub(crate) parts: Parts,
    /// Its body, unread.
    pub(crate) body: Incoming,
    /// Its query parameters.
    pub(crate) query: Query,
    /// What stood for the `{...}`s of its path, decoded.
    pub(crate) captures: [String; 2],
    /// Who asks.
    pub(crate) authority: Authority,
    /// By which name of the daemon.
    pub(crate) place: Place,
}

impl Asked {
    /// What stood for the first `{...}` of the path.
    pub(crate) fn id(&self) -> &str {
        &self.captures[0]
    }

    /// The body as JSON of a type.
    ///
    /// # Errors
    /// `unsupported_media_type`, `payload_too_large`, and `bad_request` when it is not that.
    pub(crate) async fn json<T: DeserializeOwned>(self) -> Result<T, Failure> {
        require_json(&self.parts)?;
        let body = body::read(self.body, BODY_BYTES_MAX).await?;
        serde_json::from_slice(&body).map_err(|error| not_that(&error))
    }

    /// As [`Self::json`], and nothing is as good as an object without fields.
    ///
    /// # Errors
    /// As [`Self::json`].
    pub(crate) async fn json_or_empty<T: DeserializeOwned + Default>(self) -> Result<T, Failure> {
        require_json(&self.parts)?;
        let body = body::read(self.body, BODY_BYTES_MAX).await?;
        if body.is_empty() {
            Ok(T::default())
        } else {
            serde_json::from_slice(&body).map_err(|error| not_that(&error))
        }
    }
}

/// A body that is not the JSON it should be. The parser's own words may quote the body, so only the place is
/// taken from them.
pub(crate) fn not_that(error: &serde_json::Error) -> Failure {
    let (line, column) = (error.line(), error.column());
    Failure::bad(match error.classify() {
        serde_json::error::Category::Data => format!(
            "the body has a field that is missing, not known, or of another type, near line {line}, column {column}; \
             /v1/openapi.json has its form"
        ),
        serde_json::error::Category::Io
        | serde_json::error::Category::Syntax
        | serde_json::error::Category::Eof => {
            format!("the body is not JSON, at line {line}, column {column}")
        }
    })
}

/// Refuses a body that a form on another site could have sent.
pub(crate) fn require_json(parts: &Parts) -> Result<(), Failure> {
    let written = parts.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    let kind = written.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    if kind.eq_ignore_ascii_case(b"application/json") {
        return Ok(());
    }
    let detail = "send the body as `Content-Type: application/json`";
    Err(Failure::new(ErrorCode::UnsupportedMediaType, detail).closing())
}

/// An answer in JSON.
pub(crate) fn json<T: Serialize>(value: &T) -> Response<Body> {
    let body = serde_json::to_vec(value).expect("what goes over the wire is JSON");
    let mut response = Response::new(Body::full(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// The interface of a daemon, on one of its listeners.
#[derive(Debug)]
pub(crate) struct Server {
    daemon: Arc<Daemon>,
    /// Names of the listener; none on the socket.
    hosts: Option<Hosts>,
}

impl Server {
    pub(crate) const fn new(daemon: Arc<Daemon>, hosts: Option<Hosts>) -> Self {
        Self { daemon, hosts }
    }

    /// Answers a request. It always has an answer.
    pub(crate) async fn answer(&self, request: Request<Incoming>, peer: Peer) -> Response<Body> {
        let is_head = request.method() == Method::HEAD;
        // The path names what was tried; a query may hold anything and is left out.
        let tried = (request.method().clone(), request.uri().path().to_owned());
        let mut response = match self.let_in(request, peer) {
            Ok(Wanted::Operation(operation, asked)) => {
                let answered = self.dispatch(operation, asked).await;
                answered.unwrap_or_else(Failure::into_response)
            }
            Ok(Wanted::Page(page, asked)) => pages::answer(&self.daemon, page, asked).await,
            Ok(Wanted::NoPage(failure, asked)) => pages::refuse(&self.daemon, failure, asked).await,
            Ok(Wanted::LogIn(response)) => response,
            Err(failure) => {
                let (method, path) = tried;
                tracing::info!(code = %failure.code(), %method, path, "a request was refused");
                failure.into_response()
            }
        };
        posture::harden(response.headers_mut());
        if is_head {
            *response.body_mut() = Body::empty();
        }
        response
    }

    /// Decides from the head alone. What is not let in learns nothing about which paths there are.
    fn let_in(&self, request: Request<Incoming>, peer: Peer) -> Result<Wanted, Failure> {
        let (parts, body) = request.into_parts();
        let place = posture::admit_address(&parts, peer, self.hosts.as_ref())?;
        if !route::is_interface(parts.uri.path()) {
            return self.let_in_page(parts, body, place);
        }
        let found = route::find(&parts.method, parts.uri.path());
        let authority = match found {
            Found::Route(Route { operation: Operation::Health, .. }, _) => Authority::Nobody,
            Found::Route(..) | Found::OtherMethod(_) | Found::Nothing => {
                posture::admit_authority(&parts, place, &self.daemon, self.daemon.store().now())?
            }
        };
        let (route, captures) = match found {
            Found::Route(route, captures) => (route, captures),
            Found::OtherMethod(allow) => return Err(Failure::method(allow)),
            Found::Nothing => {
                return Err(Failure::not_found(
                    "there is nothing at this path; /v1/openapi.json lists what there is",
                ));
            }
        };
        let query = Query::read(parts.uri.query(), route.query)?;
        let captures = [decode(captures[0])?, decode(captures[1])?];
        Ok(Wanted::Operation(route.operation, Asked { parts, body, query, captures, authority, place }))
    }

    /// As [`Self::let_in`], for a page.
    fn let_in_page(&self, parts: Parts, body: Incoming, place: Place) -> Result<Wanted, Failure> {
        let found = pages::route::find(&parts.method, parts.uri.path());
        let audience = match found {
            Found::Route(Route { operation, .. }, _) => operation.audience(),
            Found::OtherMethod(_) | Found::Nothing => posture::Audience::LoggedIn,
        };
        let authority = match posture::admit_page(&parts, place, audience, &self.daemon) {
            Ok(authority) => authority,
            Err(why) => return pages::login::turn_away(&parts, why).map(Wanted::LogIn),
        };
        let (page, query, captures) = match read_page(&found, parts.uri.query()) {
            Ok((page, query, captures)) => (Ok(page), query, captures),
            // Whoever was let in is told by a page.
            Err(failure) => (Err(failure), Query::default(), Default::default()),
        };
        let asked = Asked { parts, body, query, captures, authority, place };
        Ok(match page {
            Ok(page) => Wanted::Page(page, asked),
            Err(failure) => Wanted::NoPage(failure, asked),
        })
    }

    async fn dispatch(&self, operation: Operation, asked: Asked) -> Answer {
        let daemon = &self.daemon;
        match operation {
            Operation::EmitEvent => events::emit(daemon, asked).await,
            Operation::ListEvents => events::list(daemon, &asked).await,
            Operation::ShowEvent => events::show(daemon, &asked).await,
            Operation::ReplayEvent => Box::pin(replay::replay(daemon, asked)).await,
            Operation::ExplainEvent => Box::pin(explain::explain(daemon, asked)).await,
            Operation::Stream => stream::open(daemon, &asked).await,
            Operation::ListWork => work::list(daemon, &asked).await,
            Operation::ShowWork => work::show(daemon, &asked).await,
            Operation::CancelWork => work::cancel(daemon, &asked).await,
            Operation::RetryWork => Box::pin(work::retry(daemon, asked)).await,
            Operation::InterruptWork => Box::pin(order::interrupt(daemon, asked)).await,
            Operation::InjectWork => Box::pin(order::inject(daemon, asked)).await,
            Operation::ReleaseWork => work::release(daemon, &asked).await,
            Operation::ListWaits => waits::list(daemon, &asked).await,
            Operation::ListTimers => waits::timers(daemon, &asked).await,
            Operation::ListRuns => runs::list(daemon, &asked).await,
            Operation::Timeline => timeline::show(daemon, &asked).await,
            Operation::Needs => needs::show(daemon).await,
            Operation::ListStarts => starts::list(daemon, &asked).await,
            Operation::ShowRun => runs::show(daemon, &asked).await,
            Operation::RunLog => runs::log(daemon, &asked).await,
            Operation::RunWhy => runs::why(daemon, &asked).await,
            Operation::RunAgain => Box::pin(runs::again(daemon, asked)).await,
            Operation::RunArtifact => runs::artifact(daemon, &asked).await,
            Operation::ShowConfig => config::show(daemon).await,
            Operation::ListScopes => scopes::list(daemon, &asked).await,
            Operation::PauseScope => pause::pause(daemon, &asked).await,
            Operation::ResumeScope => pause::resume(daemon, &asked).await,
            Operation::PlanConfig => config::plan(daemon),
            Operation::ApplyConfig => Box::pin(config::apply(daemon, asked)).await,
            Operation::LoginCode => sessions::code(daemon, &asked),
            Operation::ListSessions => sessions::list(daemon, &asked).await,
            Operation::RevokeSession => sessions::revoke(daemon, &asked).await,
            Operation::RevokeSessions => sessions::revoke_all(daemon).await,
            Operation::Doctor => Box::pin(doctor::doctor(daemon, &asked)).await,
            Operation::Status => doctor::status(daemon).await,
            Operation::OpenApi => Ok(json(openapi::document())),
            Operation::Metrics => metrics::metrics(daemon).await,
            Operation::Health => Ok(json(&super::wire::HealthBody { ok: true })),
        }
    }
}

/// Which page a path leads to, with what the request says about it.
fn read_page(found: &Found<'_, Page>, query: Option<&str>) -> Result<(Page, Query, [String; 2]), Failure> {
    let (route, captures) = match found {
        Found::Route(route, captures) => (*route, *captures),
        Found::OtherMethod(allow) => return Err(Failure::method(allow)),
        Found::Nothing => return Err(Failure::not_found("there is no such page")),
    };
    let query = Query::read(query, route.query)?;
    Ok((route.operation, query, [decode(captures[0])?, decode(captures[1])?]))
}

fn decode(text: &str) -> Result<String, Failure> {
    let decoded = percent_decode_str(text).decode_utf8();
    Ok(decoded.map_err(|_source| Failure::bad("the path is not UTF-8"))?.into_owned())
}

/// Reads from a snapshot, with an error that is an answer.
pub(crate) async fn read<T: Send + 'static>(
    daemon: &Daemon,
    label: &'static str,
    body: impl FnOnce(&mut dyn Snapshot) -> Result<T, Refused> + Send + 'static,
) -> Result<T, Failure> {
    daemon.store().read(label, body).await.map_err(|refused| match refused {
        Refused::Store(error) => Failure::from(error),
        Refused::Failure(failure) => *failure,
    })
}

/// Why a read has no answer.
#[derive(Debug)]
pub(crate) enum Refused {
    Store(StoreError),
    Failure(Box<Failure>),
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        Self::Failure(Box::new(failure))
    }
}
