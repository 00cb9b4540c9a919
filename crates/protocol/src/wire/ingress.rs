//! Messages about entries that take webhooks.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::KeyBody;

/// The parameters of `ingress.prepare`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct PrepareEntryParams {
    /// A handle that the runtime chose; later requests name the entry by it.
    pub entry: String,
    /// The type of the entry.
    #[serde(rename = "type")]
    pub entry_type: String,
    /// The entry's name.
    pub name: String,
    /// The scope that its deliveries are for.
    pub scope: String,
    /// The names of the secrets it may read.
    pub secret_names: Vec<String>,
    /// The entry's own configuration. Its `namespace` is the source of everything it delivers.
    pub config: Value,
}

/// The result of `ingress.prepare`. An `invalid_config` error says what is wrong.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PrepareEntryResult {
    /// What it takes, in one phrase for people.
    pub describe: String,
    /// The most bytes of a body it reads, at most 25 MiB; a longer one is refused whole.
    pub body_bytes_max: usize,
}

/// The parameters of `ingress.release`, a notification.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ReleaseEntryParams {
    /// The handle.
    pub entry: String,
}

/// The parameters of `ingress.receive`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ReceiveParams {
    /// The handle.
    pub entry: String,
    /// What follows the entry's own path, without the slash between.
    pub path_tail: String,
    /// The headers, in the order they came.
    pub headers: Vec<HeaderBody>,
    /// The raw body, in base64.
    pub body: String,
    /// When it arrived.
    pub received_at: String,
    /// An id that no other request has had, for a sender that names none.
    pub fresh_id: String,
    /// The secrets that the entry names, as they are now.
    pub secrets: Vec<SecretBody>,
}

/// A header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HeaderBody {
    /// Its name, in lower case.
    pub name: String,
    /// Its value, in base64.
    pub value: String,
}

/// A secret: its value, or why it could not be read.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecretBody {
    /// Its configured name.
    pub name: String,
    /// Its value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl fmt::Debug for SecretBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretBody").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The result of `ingress.receive`. A `refused` error stores nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReceiveResult {
    /// What the request carried; none when it was right and there is nothing to accept.
    pub deliveries: Vec<DeliveryBody>,
}

/// One delivery that a request carried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeliveryBody {
    /// The sender's id for it.
    pub delivery_id: String,
    /// What happened.
    #[serde(rename = "type")]
    pub event_type: String,
    /// The key it correlates by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<KeyBody>,
    /// When the sender says it happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub occurred_at: Option<String>,
    /// Its body: JSON text, at most 1 MiB of it.
    pub payload: String,
    /// Accept it, but drop it: it is recorded and starts nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drop: Option<DropBody>,
}

/// Why a delivery is dropped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DropBody {
    /// A stable word.
    pub code: String,
    /// In words.
    pub reason: String,
}
