//! What goes over the wire about how things are as a whole: pages of runs, the timeline, what waits for a
//! person, and the starts of the daemon.

use domain::execution::Execution;
use domain::lane::LaneBlock;
use domain::store::StartRow;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{EventBody, KeyBody, RunBody, WaitBody, WokenBody};

/// A page of runs.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct RunPage {
    /// The rows, newest first, or with `order=active` those first that have not ended.
    pub(crate) items: Vec<RunBody>,
    /// Pass it as `cursor` for the next page; none when this is the last.
    pub(crate) next: Option<String>,
    /// How many runs were looked at, when that was as many as one search may; `next` goes on with older ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) searched: Option<u32>,
}

/// One start of a daemon, and what it found.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct StartBody {
    pub(crate) started_at: String,
    /// The host it started on, where several daemons share a database.
    pub(crate) host: Option<String>,
    /// Whether that is the host of the daemon that answers.
    pub(crate) here: bool,
    /// When the daemon before was last known to be alive; none when there was none, or nothing is known of it.
    pub(crate) down_since: Option<String>,
    /// How long no daemon was there.
    pub(crate) down_seconds: Option<u64>,
    /// Whether the daemon before had stopped in order. Else it was killed, or the machine was.
    pub(crate) stopped: bool,
    /// Runs that had gone on meanwhile and were taken over.
    pub(crate) adopted: i64,
    /// Runs of which nothing had started, and whose same attempt was launched again.
    pub(crate) relaunched: i64,
    /// Runs that had ended meanwhile and whose result was there.
    pub(crate) finished: i64,
    /// Runs of which neither a process nor a result was found; their attempts failed as `interrupted`.
    pub(crate) interrupted: i64,
}

impl From<&StartRow> for StartBody {
    fn from(row: &StartRow) -> Self {
        Self {
            started_at: row.started_at.to_string(),
            host: row.host.clone(),
            here: row.here,
            down_since: row.before.map(|seen| seen.at.to_string()),
            down_seconds: row.before.map(|seen| row.started_at.since(seen.at).as_secs()),
            stopped: row.before.is_some_and(|seen| seen.stopped),
            adopted: row.recovered.adopted,
            relaunched: row.recovered.relaunched,
            finished: row.recovered.finished,
            interrupted: row.recovered.interrupted,
        }
    }
}

/// What ran within a stretch of time that ends now.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct TimelineBody {
    pub(crate) from: String,
    pub(crate) until: String,
    /// A row for each Work, the one that something happened to last first.
    pub(crate) rows: Vec<TimelineRowBody>,
    /// Works with runs within the time that have no row.
    pub(crate) more: usize,
    /// True when there were more runs than are looked at, and only the last to end were.
    pub(crate) cut: bool,
    /// Starts of this daemon within the time that ended a time without one, newest first.
    pub(crate) downtimes: Vec<StartBody>,
}

/// The runs of one Work within the time.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct TimelineRowBody {
    pub(crate) work: String,
    pub(crate) scope: String,
    pub(crate) keys: Vec<KeyBody>,
    /// The type of the Event that triggered the newest of them.
    pub(crate) trigger_type: String,
    /// Newest first.
    pub(crate) runs: Vec<TimelineRunBody>,
    /// What it waits for at present; none when it does not wait.
    #[serde(default)]
    pub(crate) wait: Option<WaitBody>,
}

/// A run of the timeline.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct TimelineRunBody {
    pub(crate) id: String,
    pub(crate) attempt: i64,
    pub(crate) state: String,
    /// When it started, or was claimed when it never did.
    pub(crate) started_at: String,
    pub(crate) ended_at: Option<String>,
    /// When it was parked, and until when: nothing ran meanwhile. One that is parked now says since when in `wait`.
    #[serde(default)]
    pub(crate) parked: Vec<StretchBody>,
}

/// A stretch of time.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct StretchBody {
    pub(crate) from: String,
    pub(crate) until: String,
}

impl From<&Execution> for TimelineRunBody {
    fn from(execution: &Execution) -> Self {
        Self {
            id: execution.id.to_string(),
            attempt: execution.attempt.number(),
            state: execution.state.as_str().to_owned(),
            started_at: execution.started_at.unwrap_or(execution.claimed_at).to_string(),
            ended_at: execution.ended_at.map(|at| at.to_string()),
            parked: Vec::new(),
        }
    }
}

/// What waits for a person. Each list has the first few; its count says how many there are.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct NeedsBody {
    /// Works that nothing but a person can let go on.
    pub(crate) held: Vec<HeldBody>,
    /// Works that failed too often in a row, longest first.
    #[serde(default)]
    pub(crate) exhausted: Vec<ExhaustedBody>,
    /// Counted up to 100.
    #[serde(default)]
    pub(crate) exhausted_count: usize,
    /// Events that cannot be routed, and keep what follows them waiting.
    pub(crate) lanes: Vec<StuckBody>,
    /// Counted up to 100.
    pub(crate) lanes_count: usize,
    /// Events that were set aside within the last seven days, newest first.
    pub(crate) quarantined: Vec<QuarantinedBody>,
    /// Counted up to 100.
    pub(crate) quarantined_count: usize,
    /// Runs that ended while what they had started may still run.
    pub(crate) unstopped: Vec<LeftBody>,
    /// Counted up to 100.
    pub(crate) unstopped_count: usize,
    /// Runs that only a silent host can look after.
    pub(crate) stranded: Vec<LeftBody>,
    /// Counted up to 100.
    pub(crate) stranded_count: usize,
}

/// A Work that is not tried again by itself.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ExhaustedBody {
    pub(crate) work: String,
    pub(crate) keys: Vec<KeyBody>,
    /// How many of its attempts failed in a row.
    pub(crate) failures: u32,
    /// The attempt that failed last.
    pub(crate) run: Option<String>,
    /// `failure_budget` or `causal_bounds`.
    pub(crate) because: String,
    pub(crate) since: String,
}

/// Works that are held for one reason.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct HeldBody {
    /// Such as `scope_disabled:main`.
    pub(crate) reason: String,
    /// Where an operator is to release it, why it is held: `budget`, `gate` or `wake_refused`.
    #[serde(default)]
    pub(crate) because: Option<String>,
    /// That in words, of the Work that has waited longest.
    #[serde(default)]
    pub(crate) detail: Option<String>,
    /// Counted up to 1,000.
    pub(crate) works: u32,
    /// The Work that has waited longest.
    pub(crate) work: String,
    pub(crate) keys: Vec<KeyBody>,
    /// Since when that one waits.
    pub(crate) since: String,
}

/// An Event that cannot be routed.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct StuckBody {
    pub(crate) event: String,
    #[serde(rename = "type")]
    pub(crate) event_type: String,
    pub(crate) scope: String,
    pub(crate) code: String,
    pub(crate) reason: String,
    /// How often it was tried; zero when its scope takes nothing at all.
    pub(crate) tries: i64,
    pub(crate) next_try_at: String,
    /// When it was accepted.
    pub(crate) since: String,
}

impl StuckBody {
    pub(crate) fn new(block: &LaneBlock, event: &domain::event::Event) -> Self {
        Self {
            event: block.event.to_string(),
            event_type: event.event_type.to_string(),
            scope: event.scope.to_string(),
            code: block.code.to_string(),
            reason: block.reason.clone(),
            tries: block.tries,
            next_try_at: block.blocked_until.to_string(),
            since: event.accepted_at.to_string(),
        }
    }
}

/// An Event that was set aside.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct QuarantinedBody {
    pub(crate) event: String,
    #[serde(rename = "type")]
    pub(crate) event_type: String,
    pub(crate) route: Option<String>,
    pub(crate) code: Option<String>,
    pub(crate) reason: Option<String>,
    pub(crate) since: String,
}

/// A run that was left in a state nobody here can end.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct LeftBody {
    pub(crate) run: String,
    pub(crate) work: String,
    pub(crate) keys: Vec<KeyBody>,
    /// The host that has what it started, where several daemons share a database.
    pub(crate) host: Option<String>,
    pub(crate) since: String,
}

/// A lane that stands still.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct LaneBody {
    pub(crate) event: String,
    pub(crate) code: String,
    pub(crate) reason: String,
    pub(crate) tries: i64,
    pub(crate) next_try_at: String,
}

impl From<&LaneBlock> for LaneBody {
    fn from(block: &LaneBlock) -> Self {
        Self {
            event: block.event.to_string(),
            code: block.code.to_string(),
            reason: block.reason.clone(),
            tries: block.tries,
            next_try_at: block.blocked_until.to_string(),
        }
    }
}

/// A start that had to wait, because a credential had met its usage limit.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct SpentBody {
    pub(crate) credential: String,
    /// The turn that could not start.
    pub(crate) turn: i64,
    pub(crate) since: String,
    /// When it waited no longer, or until when the credential is held.
    pub(crate) until: Option<String>,
    /// Whether it waits no longer.
    pub(crate) over: bool,
}

impl From<&runtime::why::Spent> for SpentBody {
    fn from(spent: &runtime::why::Spent) -> Self {
        Self {
            credential: spent.wait.credential.to_string(),
            turn: spent.wait.turn,
            since: spent.wait.since.to_string(),
            until: spent.until.map(|at| at.to_string()),
            over: spent.over,
        }
    }
}

/// Why a run started.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct WhyBody {
    pub(crate) run: RunBody,
    /// From the first Event of the chain to the trigger.
    pub(crate) chain: Vec<EventBody>,
    /// Everything the run took in.
    pub(crate) inputs: Vec<EventBody>,
    /// Events about the same Work that had no effect, newest first.
    pub(crate) without_effect: Vec<EventBody>,
    /// Lanes of the Work that stand still.
    pub(crate) blocked: Vec<LaneBody>,
    /// The Wait whose end let the run, or its present turn, begin.
    #[serde(default)]
    pub(crate) woken: Option<WokenBody>,
    /// What the run waits for, or what its end made its Work wait for, while that goes on.
    #[serde(default)]
    pub(crate) waits: Option<WaitBody>,
    /// The credentials that a start of the run had to wait for.
    #[serde(default)]
    pub(crate) credentials: Vec<SpentBody>,
    /// The whole story, a sentence a line.
    pub(crate) sentences: Vec<String>,
}
