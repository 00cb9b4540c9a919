//! Made-up Events and requests for the tests of this crate.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::future::Future;

use extension::{
    BoxFuture, EventId, EventType, EventView, ExternalId, HttpDelivery, Key, Payload, RouteInput, ScopeName,
    ScopeView, Secret, SecretError, Secrets, Sequence, SourceName, Timestamp, WorkId,
};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;
use sha2::Sha256;

/// An Event in the making.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    pub(crate) event: EventView,
    pub(crate) payload: Value,
}

impl Sample {
    pub(crate) fn new(source: &str, event_type: &str) -> Self {
        let id = EventId::from_number(7);
        let event = EventView {
            id,
            sequence: Sequence::from_number(1),
            source: SourceName::known(source),
            delivery_id: "d-1".parse().unwrap(),
            event_type: EventType::known(event_type),
            scope: ScopeName::known("main"),
            key: None,
            work: None,
            parent: None,
            root: id,
            depth: 0,
            emitted_by: None,
            occurred_at: None,
            accepted_at: Timestamp::EPOCH,
        };
        Self { event, payload: Value::Null }
    }

    pub(crate) fn key(mut self, source: &str, external_id: &str) -> Self {
        self.event.key = Some(key(source, external_id));
        self
    }

    pub(crate) fn addressed(mut self) -> Self {
        self.event.work = Some(WorkId::from_number(9));
        self
    }

    pub(crate) fn payload(mut self, payload: Value) -> Self {
        self.payload = payload;
        self
    }

    pub(crate) fn input(&self) -> RouteInput {
        let payload = Payload::new(serde_json::to_vec(&self.payload).unwrap()).unwrap();
        let scope = ScopeName::known("main");
        let scope = ScopeView { name: scope.clone(), lineage: vec![scope] };
        RouteInput::new(self.event.clone(), payload, scope, None)
    }
}

/// A key of known texts.
pub(crate) fn key(source: &str, external_id: &str) -> Key {
    Key { source: SourceName::known(source), external_id: ExternalId::known(external_id) }
}

/// A request with these headers.
pub(crate) fn request(headers: &[(&str, &str)], body: &[u8]) -> HttpDelivery {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec()));
    HttpDelivery {
        path_tail: String::new(),
        headers: headers.collect(),
        body: body.to_vec(),
        received_at: Timestamp::EPOCH,
        fresh_id: "fresh-1".to_owned(),
    }
}

/// The HMAC-SHA-256 of a body.
pub(crate) fn mac(secret: &str, body: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(body);
    mac.finalize().into_bytes().to_vec()
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

/// Secrets that a test knows.
#[derive(Debug, Default)]
pub(crate) struct KnownSecrets(BTreeMap<String, Secret>);

impl KnownSecrets {
    pub(crate) fn of(name: &str, value: &str) -> Self {
        let mut secrets = Self::default();
        secrets.add(name, value);
        secrets
    }

    pub(crate) fn add(&mut self, name: &str, value: &str) {
        self.0.insert(name.to_owned(), Secret::new(value.to_owned()));
    }
}

impl Secrets for KnownSecrets {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Secret, SecretError>> {
        let missing = || SecretError { name: name.to_owned(), reason: "it is not set".to_owned() };
        Box::pin(std::future::ready(self.0.get(name).cloned().ok_or_else(missing)))
    }
}

/// Runs a future that never has to wait.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}
