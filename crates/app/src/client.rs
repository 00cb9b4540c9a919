//! The command line's way to the daemon: the API over the socket in the home, with the operator's token.
//!
//! It knows requests, answers and streams, and no command. Each request has a connection of its own: a command
//! makes few, and a connection that nobody shares needs no care.

use std::io;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;
use tokio::task::JoinSet;

use crate::api::wire::Problem;
use crate::error_code::ErrorCode;
use crate::home::{Home, HomeError};

pub(crate) mod sse;

/// The longest an answer that is not a stream may take.
const ANSWER_TIME_MAX: Duration = Duration::from_mins(1);
/// What a path segment or a query may hold as it is.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Why the daemon gave no answer that can be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    /// No daemon listens in the home.
    #[error("no daemon answers in {home}")]
    Unreachable {
        /// The home.
        home: String,
        /// What the socket said.
        #[source]
        source: io::Error,
    },
    /// It listened, and the connection broke.
    #[error("the daemon ended the connection")]
    Broken(#[source] hyper::Error),
    /// It took longer than a minute.
    #[error("the daemon did not answer within a minute")]
    TimedOut,
    /// The token cannot be read.
    #[error("cannot read the token")]
    Token(#[source] HomeError),
    /// It refused, and said why.
    #[error("{}", .0.detail)]
    Refused(Box<Problem>),
    /// Its answer is not what this version of the command understands.
    #[error("the daemon's answer is not understood; it may be of another version than this command")]
    Unknown(#[source] serde_json::Error),
}

/// A way to one daemon.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    home: Home,
}

/// A path below `/v1`, with its query.
#[derive(Debug, Clone)]
pub(crate) struct Route(String);

impl Route {
    /// The path of these segments, each encoded.
    pub(crate) fn new(segments: &[&str]) -> Self {
        let mut path = "/v1".to_owned();
        for segment in segments {
            path.push('/');
            path.extend(utf8_percent_encode(segment, UNRESERVED));
        }
        Self(path)
    }

    /// Adds a query parameter.
    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: impl AsRef<str>) -> Self {
        self.0.push(if self.0.contains('?') { '&' } else { '?' });
        self.0.push_str(name);
        self.0.push('=');
        self.0.extend(utf8_percent_encode(value.as_ref(), UNRESERVED));
        self
    }

    /// Adds a query parameter when there is a value for it.
    #[must_use]
    pub(crate) fn with_some(self, name: &str, value: Option<impl AsRef<str>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }
}

/// An answer whose body arrives bit by bit.
#[derive(Debug)]
pub(crate) struct Streamed {
    body: Incoming,
    headers: hyper::HeaderMap,
    /// Drives the connection; it ends with the answer.
    _connection: JoinSet<()>,
}

impl Streamed {
    /// The next bytes; none at the end.
    ///
    /// # Errors
    /// [`ClientError::Broken`].
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, ClientError> {
        while let Some(frame) = self.body.frame().await {
            if let Ok(bytes) = frame.map_err(ClientError::Broken)?.into_data() {
                return Ok(Some(bytes));
            }
        }
        Ok(None)
    }

    /// A header of the answer, when it is there and text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    async fn rest(mut self) -> Result<Vec<u8>, ClientError> {
        let mut whole = Vec::new();
        while let Some(bytes) = self.next().await? {
            whole.extend_from_slice(&bytes);
        }
        Ok(whole)
    }
}

impl Client {
    pub(crate) fn new(home: Home) -> Self {
        Self { home }
    }

    /// Reads.
    ///
    /// # Errors
    /// [`ClientError`].
    pub(crate) async fn get<T: DeserializeOwned>(&self, route: &Route) -> Result<T, ClientError> {
        self.answer(Method::GET, route, Bytes::new()).await
    }

    /// Asks for something to be done.
    ///
    /// # Errors
    /// [`ClientError`].
    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        route: &Route,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        let body = serde_json::to_vec(body).expect("a body of the API is JSON");
        self.answer(Method::POST, route, Bytes::from(body)).await
    }

    /// Asks for something to be done that needs no further words.
    ///
    /// # Errors
    /// [`ClientError`].
    pub(crate) async fn order<T: DeserializeOwned>(&self, route: &Route) -> Result<T, ClientError> {
        self.answer(Method::POST, route, Bytes::new()).await
    }

    /// Takes something away.
    ///
    /// # Errors
    /// [`ClientError`].
    pub(crate) async fn delete<T: DeserializeOwned>(&self, route: &Route) -> Result<T, ClientError> {
        self.answer(Method::DELETE, route, Bytes::new()).await
    }

    /// Reads what arrives bit by bit, such as a log or a stream of Events.
    ///
    /// # Errors
    /// [`ClientError`].
    pub(crate) async fn stream(&self, route: &Route) -> Result<Streamed, ClientError> {
        let send = self.send(Method::GET, route, Bytes::new());
        tokio::time::timeout(ANSWER_TIME_MAX, send).await.map_err(|_elapsed| ClientError::TimedOut)?
    }

    async fn answer<T: DeserializeOwned>(
        &self,
        method: Method,
        route: &Route,
        body: Bytes,
    ) -> Result<T, ClientError> {
        let whole = async { self.send(method, route, body).await?.rest().await };
        let whole = tokio::time::timeout(ANSWER_TIME_MAX, whole)
            .await
            .map_err(|_elapsed| ClientError::TimedOut)??;
        serde_json::from_slice(&whole).map_err(ClientError::Unknown)
    }

    /// Sends a request and waits for the head of its answer. A refusal is read to its end.
    async fn send(&self, method: Method, route: &Route, body: Bytes) -> Result<Streamed, ClientError> {
        let unreachable =
            |source| ClientError::Unreachable { home: self.home.root().display().to_string(), source };
        let socket = UnixStream::connect(self.home.socket()).await.map_err(unreachable)?;
        let token =
            self.home.read_private(&self.home.token()).map_err(ClientError::Token)?.unwrap_or_default();
        send_on(socket, token.trim(), (method, &route.0), body).await
    }
}

/// Sends a request on a connection and waits for the head of its answer. A refusal is read to its end.
async fn send_on(
    socket: UnixStream,
    token: &str,
    (method, path): (Method, &str),
    body: Bytes,
) -> Result<Streamed, ClientError> {
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header(HOST, "localhost")
        .header(ACCEPT, "application/json, text/event-stream, text/plain")
        .header(AUTHORIZATION, format!("Bearer {token}"));
    if !body.is_empty() {
        request = request.header(CONTENT_TYPE, "application/json");
    }
    let request = request
        .body(Full::new(body))
        .expect("an encoded path and a token from a private file make a request");
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(socket)).await.map_err(ClientError::Broken)?;
    let mut driver = JoinSet::new();
    driver.spawn(async move {
        // Its error reaches whoever reads the answer.
        drop(connection.await);
    });
    let response = sender.send_request(request).await.map_err(ClientError::Broken)?;
    let (head, body) = response.into_parts();
    let streamed = Streamed { body, headers: head.headers, _connection: driver };
    if head.status.is_success() {
        return Ok(streamed);
    }
    let whole = streamed.rest().await?;
    Err(ClientError::Refused(Box::new(problem(head.status, &whole))))
}

/// Makes a request on a socket with a token, and reads the answer whole.
///
/// # Errors
/// [`ClientError`].
pub(crate) async fn call(
    socket: &Path,
    token: &str,
    method: Method,
    path: &str,
    body: &[u8],
) -> Result<Vec<u8>, ClientError> {
    let whole = async {
        let connected = UnixStream::connect(socket).await;
        let place = || socket.display().to_string();
        let connected = connected.map_err(|source| ClientError::Unreachable { home: place(), source })?;
        send_on(connected, token, (method, path), Bytes::copy_from_slice(body)).await?.rest().await
    };
    tokio::time::timeout(ANSWER_TIME_MAX, whole).await.map_err(|_elapsed| ClientError::TimedOut)?
}

/// The problem of a refusal; one that is not a problem document gets the words of its status.
fn problem(status: hyper::StatusCode, body: &[u8]) -> Problem {
    serde_json::from_slice(body).unwrap_or_else(|_other| Problem {
        about: "about:blank".to_owned(),
        title: status.canonical_reason().unwrap_or("refused").to_owned(),
        status: status.as_u16(),
        detail: format!("the daemon answered {status}; its log says more"),
        code: ErrorCode::UnexpectedAnswer.as_str().to_owned(),
        problems: Vec::new(),
        candidates: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::Route;

    #[test]
    fn a_route_encodes_what_is_not_plain() {
        let route =
            Route::new(&["runs", "run_1/../x"]).with("scope", "team/eng").with_some("state", None::<&str>);
        assert_eq!(route.with("key", "a b").0, "/v1/runs/run_1%2F..%2Fx?scope=team%2Feng&key=a%20b");
    }
}
