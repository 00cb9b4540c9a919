//! Listeners: from a socket to requests, with bounds on how many and how slow.
//!
//! What a request is asked and answered is not decided here; see [`crate::api`] and [`webhook`].

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::api::body::Body;
use crate::api::posture::Peer;
use crate::api::server::Server;
use crate::auth;
use crate::toolbelt::Door;

pub(crate) mod ingress;
pub(crate) mod webhook;

use webhook::Webhooks;

/// How long a request's head may take to arrive, counted from the end of the one before.
const HEAD_TIMEOUT: Duration = Duration::from_secs(15);
/// The most connections of one listener. Who comes later waits in the system's queue.
const CONNECTIONS_MAX: usize = 512;
/// The most bytes of a request's head.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// The pause after an accept that failed, for want of file descriptors for instance.
const PAUSE: Duration = Duration::from_millis(50);

/// What a listener shares with its daemon.
#[derive(Debug, Clone)]
pub(crate) struct Listening {
    /// Where its connections are counted.
    pub(crate) tasks: TaskTracker,
    /// Cancelled when no more are wanted.
    pub(crate) stopping: CancellationToken,
}

/// A socket that takes connections.
#[derive(Debug)]
pub(crate) enum Socket {
    /// In the home.
    Unix(UnixListener),
    /// On the network.
    Tcp(TcpListener),
}

/// Who answers.
#[derive(Debug, Clone)]
pub(crate) enum Service {
    /// The API.
    Api(Arc<Server>),
    /// Webhooks.
    Webhooks(Arc<Webhooks>),
    /// Calls of running attempts.
    Toolbelt(Arc<Door>),
}

impl Service {
    async fn answer(&self, request: Request<Incoming>, peer: Peer) -> Response<Body> {
        match self {
            Self::Api(server) => server.answer(request, peer).await,
            Self::Webhooks(webhooks) => webhooks.answer(request).await,
            Self::Toolbelt(door) => door.answer(request, peer).await,
        }
    }
}

/// Takes connections until the daemon stops.
pub(crate) async fn serve(listening: Listening, socket: Socket, service: Service) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let own = rustix::process::geteuid().as_raw();
    loop {
        let permit = Arc::clone(&room).acquire_owned();
        let permit = tokio::select! {
            () = listening.stopping.cancelled() => return,
            permit = permit => permit.expect("the semaphore is never closed"),
        };
        let accepted = tokio::select! {
            () = listening.stopping.cancelled() => return,
            accepted = accept(&socket, own) => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be taken");
                if tokio::time::timeout(PAUSE, listening.stopping.cancelled()).await.is_ok() {
                    return;
                }
                continue;
            }
        };
        let (service, stopping) = (service.clone(), listening.stopping.clone());
        listening.tasks.spawn(async move {
            match stream {
                Stream::Unix(stream) => connection(stream, service, peer, stopping).await,
                Stream::Tcp(stream) => connection(stream, service, peer, stopping).await,
            }
            drop(permit);
        });
    }
}

enum Stream {
    Unix(UnixStream),
    Tcp(tokio::net::TcpStream),
}

async fn accept(socket: &Socket, own: u32) -> io::Result<(Stream, Peer)> {
    match socket {
        Socket::Unix(listener) => {
            let (stream, _address) = listener.accept().await?;
            let peer = stream.peer_cred().ok().map(|credentials| credentials.uid());
            let same_user = auth::is_same_user(peer, own);
            Ok((Stream::Unix(stream), Peer::Unix { same_user }))
        }
        Socket::Tcp(listener) => {
            let (stream, _address) = listener.accept().await?;
            // Answers are small and whole; waiting for more to send with them only adds time.
            stream.set_nodelay(true)?;
            Ok((Stream::Tcp(stream), Peer::Tcp))
        }
    }
}

async fn connection(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    service: Service,
    peer: Peer,
    stopping: CancellationToken,
) {
    let answer = service_fn(|request| answered(service.answer(request, peer)));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), answer);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stopping.cancelled() => {
            // The request that is under way is answered, and the next one finds the connection closed.
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

async fn answered(answer: impl Future<Output = Response<Body>>) -> Result<Response<Body>, Infallible> {
    Ok(answer.await)
}
