//! What goes over the wire to look after the daemon: explanations, controls, configuration and checks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{KeyBody, PauseBody, ScopeLineBody};

/// What an Event would do. Either the id of an accepted Event, or one described as it would be posted.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExplainBody {
    /// An accepted Event, by its id or the beginning of it. Then nothing else of the Event is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) event: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) scope: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "type")]
    pub(crate) event_type: Option<String>,
    /// The source it would have; `core.manual`, an operator's, when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) source: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<KeyBody>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) work: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) payload: Option<Value>,
    /// The text of a proposed configuration; the generation in force when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) config: Option<String>,
    /// How `config` is written: `toml`, the default, or `json`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) format: Option<String>,
}

/// What an Event would do, and which routes were asked.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ExplanationBody {
    /// The generation that was asked; none for a proposed configuration.
    pub(crate) generation: Option<i64>,
    /// `routed`, `unmatched`, `dropped` or `terminal` as a checkpoint would say it; `held` when its scope does not
    /// route now; `waits` behind an earlier Event; `failed` or `refused` when it would be tried again.
    pub(crate) outcome: String,
    pub(crate) route: Option<String>,
    pub(crate) binding: Option<String>,
    pub(crate) policy: Option<String>,
    /// The Work it would reach; none when it would reach none or make one.
    pub(crate) work: Option<String>,
    /// Whether it would make a Work.
    pub(crate) creates: bool,
    /// Keys that the Work would get.
    pub(crate) keys: Vec<KeyBody>,
    pub(crate) code: Option<String>,
    pub(crate) reason: Option<String>,
    /// What pauses the scope, so that the Event would be input and start nothing.
    #[serde(default)]
    pub(crate) paused: Option<PauseBody>,
    /// The routes of the scope, in order, up to the one that decided.
    pub(crate) asked: Vec<AskedBody>,
    /// The whole story, a sentence a line.
    pub(crate) sentences: Vec<String>,
}

/// A route that was asked.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct AskedBody {
    pub(crate) route: String,
    pub(crate) handler: String,
    /// What it takes, in one phrase.
    pub(crate) takes: String,
    /// `no_match`, `matched`, `failed`, or `not_asked` for an announcement it does not name.
    pub(crate) answer: String,
}

/// How a run is run again.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgainBody {
    /// The idempotency key of the new Event; the `Idempotency-Key` header when absent, else a fresh one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) delivery_id: Option<String>,
}

/// What a cancellation did.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct CancelledBody {
    pub(crate) work: String,
    /// The run that was live, and is cancelled with it.
    pub(crate) run: Option<String>,
}

/// The configuration in force.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ConfigBody {
    /// Zero, and no configuration, before the first apply.
    pub(crate) generation: i64,
    pub(crate) digest: Option<String>,
    pub(crate) applied_at: Option<String>,
    /// The configuration as it is stored: keys sorted, secrets as references.
    pub(crate) config: Option<Value>,
    /// Its scopes, each below the one that it inherits from. `/v1/scopes` says what holds in them.
    pub(crate) tree: Vec<ScopeLineBody>,
    /// The file in the home, when there is one.
    pub(crate) file: Option<String>,
    /// Whether the file says something else.
    pub(crate) edited: bool,
}

/// What an apply of the home's file would change.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct PlanBody {
    /// The generation it was compared with.
    pub(crate) generation: i64,
    /// What the file says, as a digest: an apply that names it puts this in force and nothing else.
    pub(crate) digest: String,
    pub(crate) changes: Vec<PlanChangeBody>,
    /// What takes effect only when the daemon starts again, in sentences.
    pub(crate) restart_required: Vec<String>,
}

/// One change of a plan.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct PlanChangeBody {
    /// Where, by names: `scopes.eng.routes.ci`.
    pub(crate) path: String,
    /// `added`, `removed` or `changed`.
    pub(crate) what: String,
    pub(crate) sentence: String,
}

/// A configuration to apply.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApplyBody {
    /// Its text; the file in the home when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) config: Option<String>,
    /// How `config` is written: `toml`, the default, or `json`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) format: Option<String>,
    /// The digest of what is to be applied, as a plan said it. Refused when the text says something else by now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) digest: Option<String>,
    /// The generation that the plan was compared with. Refused when another is in force by now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) generation: Option<i64>,
}

/// What an apply did.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct AppliedBody {
    /// The generation in force now.
    pub(crate) generation: i64,
    /// False when it said the same as the generation in force; then there is no new one.
    pub(crate) changed: bool,
    pub(crate) changes: Vec<PlanChangeBody>,
    /// What takes effect only when the daemon starts again, in sentences.
    pub(crate) restart_required: Vec<String>,
}

/// What the daemon found out about itself.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct DoctorBody {
    /// Whether no check found an error.
    pub(crate) ok: bool,
    pub(crate) checks: Vec<CheckBody>,
    /// Webhooks to create at their senders.
    pub(crate) webhooks: Vec<WebhookBody>,
    /// What was measured.
    pub(crate) figures: FiguresBody,
}

/// What the daemon measured of itself. What could not be found out is `null`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct FiguresBody {
    /// The memory that is resident.
    pub(crate) memory_bytes: Option<u64>,
    /// The database's file.
    pub(crate) database_bytes: Option<u64>,
    /// Its write-ahead log.
    pub(crate) wal_bytes: Option<u64>,
    /// What is left of the disk of the home and the database.
    pub(crate) disk_free_bytes: Option<u64>,
    pub(crate) disk_size_bytes: Option<u64>,
    /// Clients that follow the change feed.
    pub(crate) streams_open: i64,
    /// The oldest Event that may be routed and is not.
    pub(crate) oldest_unrouted: Option<WaitingBody>,
    /// The oldest Work that may start and has not.
    pub(crate) oldest_runnable: Option<WaitingBody>,
    /// The oldest Work that something keeps from starting.
    pub(crate) oldest_blocked: Option<WaitingBody>,
}

/// What has waited for longest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct WaitingBody {
    /// The Event or the Work.
    pub(crate) id: String,
    pub(crate) since: String,
    /// What it waits for, such as `scope_full:main`, when that is known.
    pub(crate) reason: Option<String>,
}

/// One check.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct CheckBody {
    /// A stable word for the check.
    pub(crate) name: String,
    /// `ok`, `note`, `warning` or `error`.
    pub(crate) level: String,
    /// What was found, and what to do about it.
    pub(crate) sentence: String,
}

/// A webhook to create at its sender.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct WebhookBody {
    pub(crate) scope: String,
    pub(crate) entry: String,
    /// What the entry takes.
    pub(crate) takes: String,
    /// Where to send it. A secret address ends in the secret, which is not shown here.
    pub(crate) url: String,
}

/// What a webhook's sender is told once its deliveries are durable.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ReceivedBody {
    /// The Events, new or of the time the same delivery came first.
    pub(crate) events: Vec<String>,
    /// How many of them were accepted before.
    pub(crate) duplicates: usize,
}

/// That the daemon answers.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct HealthBody {
    pub(crate) ok: bool,
}
