//! Ingress: from an authenticated request on the webhook listener to deliveries.

use std::fmt;

use serde_json::Value;
use thiserror::Error;

use crate::{
    BoxFuture, ConfigProblem, DeliveryId, EntryName, EventType, Key, Payload, ScopeName, Secrets, SourceName,
    Timestamp,
};

/// A kind of extension entry that takes webhooks.
pub trait Ingress: fmt::Debug + Send + Sync {
    /// The `type` of its entries.
    fn entry_type(&self) -> &str;

    /// Checks an entry's configuration and prepares it, once for each generation.
    ///
    /// # Errors
    /// Every [`ConfigProblem`] found.
    fn prepare(&self, entry: &IngressEntry) -> Result<Box<dyn PreparedIngress>, Vec<ConfigProblem>>;
}

/// An extension entry, as an ingress sees it.
#[derive(Debug, Clone)]
pub struct IngressEntry {
    /// Its name.
    pub name: EntryName,
    /// The scope whose entry it is: the one target of everything it accepts.
    pub scope: ScopeName,
    /// The names of the secrets it may read.
    pub secret_names: Vec<String>,
    /// Its own configuration.
    pub config: Value,
}

/// An entry that can receive.
pub trait PreparedIngress: fmt::Debug + Send + Sync {
    /// The namespace of everything it delivers. No other entry, and no client, may deliver in it.
    fn namespace(&self) -> &SourceName;

    /// The first segment of its path on the listener: `hooks` serves `/hooks/<scope>/<entry>/...`.
    fn path_prefix(&self) -> &str;

    /// What it takes, in one phrase for people.
    fn describe(&self) -> String;

    /// The most bytes of a body it reads; a longer one is refused whole.
    fn body_bytes_max(&self) -> usize;

    /// Authenticates a request over its raw bytes, then reads it. No deliveries means the request was right
    /// and there is nothing to accept, such as a sender's ping.
    fn receive<'a>(
        &'a self,
        request: &'a HttpDelivery,
        secrets: &'a dyn Secrets,
    ) -> BoxFuture<'a, Result<Vec<IngressDelivery>, IngressRefusal>>;
}

/// A request to the webhook listener, its body unread by anyone.
#[derive(Clone)]
pub struct HttpDelivery {
    /// What follows `/<prefix>/<scope>/<entry>` in the path, without the slash between.
    pub path_tail: String,
    /// The headers, names in lower case, in the order they came.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The raw body.
    pub body: Vec<u8>,
    /// When it arrived.
    pub received_at: Timestamp,
    /// An id that no other request has had, for a sender that names none.
    pub fresh_id: String,
}

impl HttpDelivery {
    /// The first header of that lower-case name, when it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        let (_name, value) = self.headers.iter().find(|(known, _value)| known == name)?;
        std::str::from_utf8(value).ok()
    }
}

impl fmt::Debug for HttpDelivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HttpDelivery({} headers, {} bytes)", self.headers.len(), self.body.len())
    }
}

/// One delivery that a request carried.
#[derive(Debug, Clone)]
pub struct IngressDelivery {
    /// The sender's id for it.
    pub delivery_id: DeliveryId,
    /// What happened.
    pub event_type: EventType,
    /// The key it correlates by.
    pub key: Option<Key>,
    /// When the sender says it happened.
    pub occurred_at: Option<Timestamp>,
    /// Its body.
    pub payload: Payload,
    /// Accept it, but drop it with this code and reason: it is recorded and starts nothing.
    pub drop: Option<(crate::Code, String)>,
}

/// Why a request was refused. Nothing is stored.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum IngressRefusal {
    /// There is nothing at that path, or its secret is wrong: both look the same.
    #[error("not found")]
    NotFound,
    /// The signature is missing or wrong.
    #[error("the signature is missing or does not match the body")]
    Unauthorized,
    /// The request is authentic but cannot be read.
    #[error("{0}")]
    Malformed(String),
    /// The entry cannot check anything now, for want of its secret.
    #[error("the entry cannot receive now: {0}")]
    Unavailable(String),
}
