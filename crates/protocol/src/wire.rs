//! What travels: every message of version 1, each on a line of its own.
//!
//! A field may be added within a version, so a reader skips what it does not know. Nothing is taken away or gets
//! another meaning without a new version. Moments are RFC 3339, ids and names are text, and a body of an Event is the
//! JSON text itself, as a string, so that it arrives to the byte as it was accepted.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

mod handler;
mod ingress;

pub use handler::{
    DecideParams, DecideResult, EventBody, KeyBody, MatchBody, PrepareRouteParams, PrepareRouteResult,
    ReleaseRouteParams, ScopeBody, WorkBody,
};
pub use ingress::{
    DeliveryBody, DropBody, HeaderBody, PrepareEntryParams, PrepareEntryResult, ReceiveParams, ReceiveResult,
    ReleaseEntryParams, SecretBody,
};

/// The oldest version that this program speaks.
pub const VERSION_MIN: u32 = 1;
/// The newest version that this program speaks.
pub const VERSION_MAX: u32 = 1;
/// The most bytes of a line to an extension: a webhook of 25 MiB in base64, and room.
pub const REQUEST_BYTES_MAX: usize = 40 << 20;
/// The most bytes of a line from an extension.
pub const ANSWER_BYTES_MAX: usize = 8 << 20;
/// The most requests that wait for their answers at a time.
pub const IN_FLIGHT_MAX: usize = 32;
/// How long a request may take to be answered, in seconds.
pub const CALL_SECONDS_MAX: u64 = 10;

/// The methods, in the order they come in.
pub mod method {
    /// The first request of a process.
    pub const INITIALIZE: &str = "initialize";
    /// Checks a route's configuration and keeps it ready.
    pub const PREPARE_ROUTE: &str = "handler.prepare";
    /// Decides about an Event.
    pub const DECIDE: &str = "handler.decide";
    /// Forgets a route. A notification.
    pub const RELEASE_ROUTE: &str = "handler.release";
    /// Checks an entry's configuration and keeps it ready.
    pub const PREPARE_ENTRY: &str = "ingress.prepare";
    /// Reads a request of the webhook listener.
    pub const RECEIVE: &str = "ingress.receive";
    /// Forgets an entry. A notification.
    pub const RELEASE_ENTRY: &str = "ingress.release";
}

/// A request, or a notification when it has no id.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Request<P> {
    /// Always `2.0`.
    pub jsonrpc: String,
    /// What the answer repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// What is asked.
    pub method: String,
    /// The method's own parameters.
    pub params: P,
}

/// An answer: a result or an error, never both.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Answer {
    /// Always `2.0`.
    pub jsonrpc: String,
    /// The id of the request; `null` when that could not be read.
    pub id: Option<u64>,
    /// The method's own result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorBody>,
}

/// Why a request has no result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorBody {
    /// One of the numbers of [`ErrorCode`].
    pub code: i64,
    /// In words, without a payload or a secret.
    pub message: String,
    /// What the code brings along.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<ErrorData>,
}

/// What an error brings along, each where its code says so.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorData {
    /// Of `invalid_config`: everything that is wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<ProblemBody>,
    /// Of `not_decided`: a stable word. `extension_unavailable` holds the Event until the extension answers again;
    /// any other counts as a try, and after five tries the Event is set aside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Of `not_decided`: whether the Event and the configuration alone make it fail, so that another try would fail the
    /// same way. Then the Event is set aside at once.
    #[serde(default, rename = "final", skip_serializing_if = "is_false")]
    pub is_final: bool,
    /// Of `refused`: `not_found`, `unauthorized`, `malformed` or `unavailable`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes the field by reference")]
const fn is_false(value: &bool) -> bool {
    !*value
}

/// What is wrong with a configuration. It never repeats a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProblemBody {
    /// Where, as a path below `config`: `jobs[2].cron`. Empty for the whole.
    pub path: String,
    /// What is wrong, and what would be right.
    pub message: String,
}

/// The codes of errors. They are stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorCode {
    /// The line is not JSON.
    Parse,
    /// The line is JSON and no request.
    InvalidRequest,
    /// There is no such method.
    MethodNotFound,
    /// The parameters are not those of the method.
    InvalidParams,
    /// The extension failed by a bug of its own.
    Internal,
    /// No version that is offered is spoken.
    UnsupportedVersion,
    /// Something else than `initialize` came first, or `initialize` came again.
    NotInitialized,
    /// No handler or type of entry has that name.
    UnknownName,
    /// No route or entry was prepared under that handle.
    UnknownHandle,
    /// The configuration is refused.
    InvalidConfig,
    /// The handler could not decide.
    NotDecided,
    /// The request on the webhook listener is refused.
    Refused,
}

impl ErrorCode {
    /// Every code.
    pub const ALL: [Self; 12] = [
        Self::Parse,
        Self::InvalidRequest,
        Self::MethodNotFound,
        Self::InvalidParams,
        Self::Internal,
        Self::UnsupportedVersion,
        Self::NotInitialized,
        Self::UnknownName,
        Self::UnknownHandle,
        Self::InvalidConfig,
        Self::NotDecided,
        Self::Refused,
    ];

    /// The number on the wire.
    pub const fn number(self) -> i64 {
        match self {
            Self::Parse => -32700,
            Self::InvalidRequest => -32600,
            Self::MethodNotFound => -32601,
            Self::InvalidParams => -32602,
            Self::Internal => -32603,
            Self::UnsupportedVersion => -32001,
            Self::NotInitialized => -32002,
            Self::UnknownName => -32003,
            Self::UnknownHandle => -32004,
            Self::InvalidConfig => -32005,
            Self::NotDecided => -32006,
            Self::Refused => -32007,
        }
    }

    /// The word in the reference.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Parse => "parse",
            Self::InvalidRequest => "invalid_request",
            Self::MethodNotFound => "method_not_found",
            Self::InvalidParams => "invalid_params",
            Self::Internal => "internal",
            Self::UnsupportedVersion => "unsupported_version",
            Self::NotInitialized => "not_initialized",
            Self::UnknownName => "unknown_name",
            Self::UnknownHandle => "unknown_handle",
            Self::InvalidConfig => "invalid_config",
            Self::NotDecided => "not_decided",
            Self::Refused => "refused",
        }
    }

    /// When it is answered, in a sentence.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Parse => "The line is not JSON.",
            Self::InvalidRequest => "The line is JSON and no request.",
            Self::MethodNotFound => "There is no such method.",
            Self::InvalidParams => "The parameters are not those of the method.",
            Self::Internal => "The extension failed by a bug of its own.",
            Self::UnsupportedVersion => "No version that is offered is spoken.",
            Self::NotInitialized => {
                "Something else than `initialize` came first, or `initialize` came again."
            }
            Self::UnknownName => "No handler or type of entry has that name.",
            Self::UnknownHandle => "No route or entry was prepared under that handle.",
            Self::InvalidConfig => "The configuration is refused; `data.problems` says why.",
            Self::NotDecided => "The handler could not decide; `data.reason` is a stable word.",
            Self::Refused => "The request on the webhook listener is refused; `data.refusal` says how.",
        }
    }

    /// An error of this code.
    pub fn because(self, message: impl Into<String>) -> ErrorBody {
        ErrorBody { code: self.number(), message: message.into(), data: None }
    }
}

/// The parameters of `initialize`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct InitializeParams {
    /// The oldest version that the runtime speaks.
    pub protocol_min: u32,
    /// The newest version that the runtime speaks.
    pub protocol_max: u32,
    /// The runtime.
    pub runtime: Software,
    /// What the runtime allows.
    pub limits: Limits,
}

/// The result of `initialize`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct InitializeResult {
    /// The version that is spoken from here on: the newest that both speak.
    pub protocol: u32,
    /// The extension.
    pub extension: Software,
    /// What it offers.
    #[serde(default)]
    pub capabilities: Capabilities,
}

/// A program and its version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Software {
    /// Its name.
    pub name: String,
    /// Its version, in its own form.
    pub version: String,
}

/// What the runtime allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    /// The most bytes of a line to the extension.
    pub request_bytes_max: usize,
    /// The most bytes of a line from the extension. A longer one ends its process.
    pub answer_bytes_max: usize,
    /// The most requests that wait for their answers at a time.
    pub in_flight_max: usize,
    /// How long a request may take to be answered, in seconds. A longer one ends the process.
    pub call_seconds_max: u64,
}

impl Limits {
    /// Those of this program.
    pub const OURS: Self = Self {
        request_bytes_max: REQUEST_BYTES_MAX,
        answer_bytes_max: ANSWER_BYTES_MAX,
        in_flight_max: IN_FLIGHT_MAX,
        call_seconds_max: CALL_SECONDS_MAX,
    };
}

/// What an extension offers. Each name is the extension's own, or begins with that and a full stop.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Capabilities {
    /// Handlers, by the name that routes refer to.
    #[serde(default)]
    pub handlers: Vec<String>,
    /// Types of entries that take webhooks.
    #[serde(default)]
    pub ingresses: Vec<String>,
}

/// Everything of the wire, for the reference.
#[derive(Debug, JsonSchema)]
#[expect(dead_code, reason = "only its schema is of use")]
struct Everything {
    initialize: (InitializeParams, InitializeResult),
    prepare_route: (PrepareRouteParams, PrepareRouteResult),
    decide: (DecideParams, DecideResult),
    release_route: ReleaseRouteParams,
    prepare_entry: (PrepareEntryParams, PrepareEntryResult),
    receive: (ReceiveParams, ReceiveResult),
    release_entry: ReleaseEntryParams,
    answer: Answer,
}

/// Methods, error codes and the JSON Schema of every type, for the reference page.
pub fn reference() -> Value {
    let methods = [
        (method::INITIALIZE, "InitializeParams", Some("InitializeResult")),
        (method::PREPARE_ROUTE, "PrepareRouteParams", Some("PrepareRouteResult")),
        (method::DECIDE, "DecideParams", Some("DecideResult")),
        (method::RELEASE_ROUTE, "ReleaseRouteParams", None),
        (method::PREPARE_ENTRY, "PrepareEntryParams", Some("PrepareEntryResult")),
        (method::RECEIVE, "ReceiveParams", Some("ReceiveResult")),
        (method::RELEASE_ENTRY, "ReleaseEntryParams", None),
    ];
    let methods: Vec<Value> = methods
        .iter()
        .map(|(name, params, result)| serde_json::json!({ "name": name, "params": params, "result": result }))
        .collect();
    let codes: Vec<Value> = ErrorCode::ALL
        .iter()
        .map(|code| {
            serde_json::json!({ "number": code.number(), "word": code.as_str(), "meaning": code.meaning() })
        })
        .collect();
    serde_json::json!({
        "version": VERSION_MAX,
        "limits": Limits::OURS,
        "methods": methods,
        "codes": codes,
        "schema": schemars::schema_for!(Everything),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_codes_are_distinct() {
        let mut numbers = ErrorCode::ALL.map(ErrorCode::number).to_vec();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), ErrorCode::ALL.len());
    }

    #[test]
    fn every_method_has_its_types_in_the_reference() {
        let reference = reference();
        for method in reference["methods"].as_array().unwrap() {
            for part in ["params", "result"] {
                let Some(name) = method[part].as_str() else { continue };
                assert!(reference["schema"]["$defs"][name].is_object(), "{name}");
            }
        }
    }
}
