//! Messages about routes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The parameters of `handler.prepare`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct PrepareRouteParams {
    /// A handle that the runtime chose; later requests name the route by it.
    pub route: String,
    /// The handler.
    pub handler: String,
    /// The route's own configuration.
    pub config: Value,
    /// The types of Events by which the runtime itself speaks, such as `core.turn.ended`.
    pub announcements: Vec<String>,
}

/// The result of `handler.prepare`. An `invalid_config` error says what is wrong.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PrepareRouteResult {
    /// What the route takes, in one phrase for people: `push to main`.
    pub describe: String,
    /// What Work it leads to, in one phrase for people: `a new Work for each`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leads_to: Option<String>,
    /// Whether the answer depends on the Event alone, and never on its Work.
    #[serde(default)]
    pub ignores_work: bool,
    /// Those of the announcements that the route asks for. Others never reach it.
    #[serde(default)]
    pub announcements: Vec<String>,
}

/// The parameters of `handler.release`, a notification.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ReleaseRouteParams {
    /// The handle.
    pub route: String,
}

/// The parameters of `handler.decide`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct DecideParams {
    /// The handle.
    pub route: String,
    /// The Event.
    pub event: EventBody,
    /// Its body: JSON text, at most 1 MiB of it.
    pub payload: String,
    /// Its scope.
    pub scope: ScopeBody,
    /// The Work it is addressed to or whose key it carries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<WorkBody>,
}

/// The result of `handler.decide`. A `not_decided` error leaves the Event unrouted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DecideResult {
    /// What the handler wants; none when the route does not match and the next one is asked.
    pub matched: Option<MatchBody>,
}

/// What a handler that matched wants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "match", rename_all = "snake_case")]
pub enum MatchBody {
    /// The Work that owns these keys, made when none does; keys it lacks are attached to it.
    Attach {
        /// At least one key.
        keys: Vec<KeyBody>,
        /// The kind of a Work that is made.
        kind: String,
        /// The lifecycle of a Work that is made: `once`, `run_once` or `standing`.
        lifecycle: String,
        /// What a Work that is made shares with others that must not run at the same time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        concurrency: Option<String>,
        /// After which ends of the owner a new Work takes over: `completed`, `failed`, `cancelled`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        reopens: Vec<String>,
    },
    /// The Work that the Event is addressed to.
    Addressed,
    /// A new Work for this Event alone.
    Fresh {
        /// Its kind.
        kind: String,
        /// Its lifecycle: `once`, `run_once` or `standing`.
        lifecycle: String,
        /// Keys it owns, none of which may be owned yet.
        #[serde(default)]
        keys: Vec<KeyBody>,
        /// What it shares with others that must not run at the same time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        concurrency: Option<String>,
    },
    /// Nothing: the Event is recorded as dropped.
    Drop {
        /// Why, as a stable word.
        code: String,
        /// Why, in words.
        reason: String,
    },
}

/// A correlation key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeyBody {
    /// The namespace the identifier is unique in.
    pub source: String,
    /// The identifier.
    pub external_id: String,
}

/// An Event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EventBody {
    /// Its id.
    pub id: String,
    /// Its place in the order of acceptance.
    pub sequence: i64,
    /// The namespace that delivered it.
    pub source: String,
    /// The source's name for the delivery.
    pub delivery_id: String,
    /// What happened.
    #[serde(rename = "type")]
    pub event_type: String,
    /// The scope it targets.
    pub scope: String,
    /// The key it correlates by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<KeyBody>,
    /// The Work it was addressed to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<String>,
    /// The Event that caused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The first Event of its chain.
    pub root: String,
    /// Its distance from the root.
    pub depth: i64,
    /// The attempt that published it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emitted_by: Option<String>,
    /// When the source says it happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub occurred_at: Option<String>,
    /// When it was accepted.
    pub accepted_at: String,
}

/// A scope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScopeBody {
    /// Its name.
    pub name: String,
    /// Its ancestors, root first, itself last.
    pub lineage: Vec<String>,
}

/// A Work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkBody {
    /// Its id.
    pub id: String,
    /// Its kind.
    pub kind: String,
    /// Its scope.
    pub scope: String,
    /// Its state: `ready`, `running`, `waiting`, `completed`, `failed` or `cancelled`.
    pub state: String,
    /// How often it has changed.
    pub revision: i64,
}
