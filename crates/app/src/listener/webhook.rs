//! The webhook listener: the one door to the outside, where only signatures and secret addresses count.
//!
//! It says as little as it can. What is not there and what is not allowed look the same, and no answer repeats
//! what was sent. A sender is told that all is well only once every delivery is durable.

use std::sync::Arc;
use std::time::Duration;

use domain::causal::Origin;
use domain::delivery::{Acceptance, Authority, Delivery};
use domain::id::IdMaker;
use domain::text::Code;
use extension::{HttpDelivery, IngressDelivery, IngressRefusal};
use hyper::body::Incoming;
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use percent_encoding::percent_decode_str;
use runtime::AcceptError;
use runtime::accept::Fate;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::ingress::Receiver;
use crate::api::body::{self, Body};
use crate::api::failure::{Chain, Failure};
use crate::api::posture::{self, Hosts, Peer};
use crate::api::server::json;
use crate::api::wire::ReceivedBody;
use crate::auth;
use crate::daemon::Daemon;
use crate::error_code::ErrorCode;

/// The webhook listener of a daemon.
#[derive(Debug)]
pub(crate) struct Webhooks {
    daemon: Arc<Daemon>,
    hosts: Hosts,
    /// Room for bodies in memory, in units of [`UNIT_BYTES`].
    room: Semaphore,
}

/// What bodies are counted in.
const UNIT_BYTES: u64 = 64 << 10;
/// Bodies that are in memory at once, all senders together: 256 MiB.
const ROOM_UNITS: usize = 4096;
/// How long a sender waits for room.
const ROOM_TIMEOUT: Duration = Duration::from_secs(5);

impl Webhooks {
    pub(crate) fn new(daemon: Arc<Daemon>, hosts: Hosts) -> Self {
        Self { daemon, hosts, room: Semaphore::new(ROOM_UNITS) }
    }

    /// Makes room for a body: as much as it says it needs, or as much as it may have when it does not say.
    async fn room(&self, body: &Incoming, bytes_max: usize) -> Result<SemaphorePermit<'_>, Failure> {
        let bytes =
            hyper::body::Body::size_hint(body).exact().unwrap_or(bytes_max as u64).min(bytes_max as u64);
        let units = u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX);
        match tokio::time::timeout(ROOM_TIMEOUT, self.room.acquire_many(units)).await {
            Ok(permit) => Ok(permit.expect("the semaphore is never closed")),
            Err(_elapsed) => {
                let detail = "too much is being received at once; send it again later";
                Err(Failure::new(ErrorCode::EntryUnavailable, detail).closing())
            }
        }
    }

    /// Answers a request. It always has an answer.
    pub(crate) async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let mut response = Box::pin(self.receive(request)).await.unwrap_or_else(Failure::into_response);
        posture::harden(response.headers_mut());
        response
    }

    async fn receive(&self, request: Request<Incoming>) -> Result<Response<Body>, Failure> {
        let (parts, incoming) = request.into_parts();
        posture::admit_address(&parts, Peer::Tcp, Some(&self.hosts))?;
        if parts.method != Method::POST {
            return Err(Failure::method("POST").closing());
        }
        let path =
            percent_decode_str(parts.uri.path()).decode_utf8().map_err(|_source| not_found().closing())?;
        let table = self.daemon.ingress();
        let Some((receiver, tail)) = table.find(&path) else { return Err(not_found().closing()) };
        let bytes_max = receiver.prepared.body_bytes_max();
        let _room = self.room(&incoming, bytes_max).await?;
        let bytes = body::read(incoming, bytes_max).await?;
        let request = self.request(&parts, tail, bytes.into())?;
        let read = receiver.prepared.receive(&request, &*receiver.secrets).await;
        let deliveries = read.map_err(|refusal| refused(receiver, refusal))?;
        drop(request);
        self.accept(receiver, deliveries).await
    }

    fn request(&self, parts: &Parts, tail: &str, body: Vec<u8>) -> Result<HttpDelivery, Failure> {
        let fresh_id = auth::random_text().map_err(|_source| {
            Failure::new(ErrorCode::EntryUnavailable, "the delivery cannot be taken now")
        })?;
        let headers = parts.headers.iter();
        Ok(HttpDelivery {
            path_tail: tail.to_owned(),
            headers: headers
                .map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec()))
                .collect(),
            body,
            received_at: self.daemon.store().now(),
            fresh_id,
        })
    }

    /// Accepts every delivery, and answers once they are durable. When one fails the sender tries again, and
    /// those that were accepted are duplicates then.
    async fn accept(
        &self,
        receiver: &Receiver,
        deliveries: Vec<IngressDelivery>,
    ) -> Result<Response<Body>, Failure> {
        let mut answer = ReceivedBody { events: Vec::with_capacity(deliveries.len()), duplicates: 0 };
        for delivery in deliveries {
            let (delivery, fate) = self.delivery(receiver, delivery);
            let accepted = self.daemon.runtime().accept_with(delivery, Authority::Ingress, fate).await;
            match accepted.map_err(|error| not_accepted(receiver, error))? {
                Acceptance::New { event, .. } => answer.events.push(event.to_string()),
                Acceptance::Duplicate { event, .. } => {
                    answer.events.push(event.to_string());
                    answer.duplicates += 1;
                }
            }
        }
        let mut response = json(&answer);
        *response.status_mut() = StatusCode::ACCEPTED;
        Ok(response)
    }

    fn delivery(&self, receiver: &Receiver, delivery: IngressDelivery) -> (Delivery, Fate) {
        let fate = match delivery.drop {
            Some((code, reason)) => Fate::Drop(code, reason),
            None => Fate::Route,
        };
        let delivery = Delivery {
            id: self.daemon.store().ids(IdMaker::event),
            source: receiver.prepared.namespace().clone(),
            delivery_id: delivery.delivery_id,
            event_type: delivery.event_type,
            scope: receiver.scope.clone(),
            key: delivery.key,
            work: None,
            occurred_at: delivery.occurred_at,
            payload: delivery.payload,
            origin: Origin::Root,
        };
        (delivery, fate)
    }
}

/// The answer for a path that is not there and for one whose secret is wrong.
fn not_found() -> Failure {
    Failure::not_found("there is nothing at this address")
}

fn refused(receiver: &Receiver, refusal: IngressRefusal) -> Failure {
    let (scope, entry) = (&receiver.scope, &receiver.entry);
    match refusal {
        IngressRefusal::NotFound => {
            tracing::info!(%scope, %entry, "a webhook had a wrong address");
            not_found().closing()
        }
        IngressRefusal::Unauthorized => {
            tracing::info!(%scope, %entry, "a webhook had a missing or wrong signature");
            let detail = "the signature is missing, too old or does not match; compare the secret and the clock at both ends";
            Failure::new(ErrorCode::Unauthorized, detail)
        }
        IngressRefusal::Malformed(reason) => {
            tracing::info!(%scope, %entry, reason, "an authentic webhook could not be read");
            Failure::bad(reason)
        }
        IngressRefusal::Unavailable(reason) => {
            tracing::error!(%scope, %entry, reason, "an entry cannot check webhooks");
            Failure::new(
                ErrorCode::EntryUnavailable,
                "the delivery cannot be checked now; send it again later",
            )
        }
    }
}

fn not_accepted(receiver: &Receiver, error: AcceptError) -> Failure {
    let code = Code::known(error.code());
    tracing::warn!(scope = %receiver.scope, entry = %receiver.entry, %code, error = %Chain(&error), "a webhook was not accepted");
    match error {
        // The configuration changed while the request was under way.
        AcceptError::UnknownScope(_) => not_found(),
        AcceptError::Refused(_) => Failure::bad("the delivery contradicts what is known"),
        AcceptError::Store(error) => error.into(),
    }
}
