//! What goes over the wire, in both directions. Fields never disappear within v1; times are RFC 3339 in UTC.

use domain::event::{Event, Key};
use domain::execution::Execution;
use domain::outcome::{Artifact, TurnResult, Usage};
use domain::replay::is_replay;
use domain::route::Checkpoint;
use domain::time::Timestamp;
use domain::work::{Queue, Work};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

mod control;
mod order;
mod overview;
mod pause;
mod sequel;
mod session;
mod toolbelt;
mod wait;
mod budget;
mod scope;

pub(crate) use budget::*;
pub(crate) use control::*;
pub(crate) use order::*;
pub(crate) use overview::*;
pub(crate) use pause::*;
pub(crate) use scope::*;
pub(crate) use sequel::*;
pub(crate) use session::*;
pub(crate) use toolbelt::*;
pub(crate) use wait::*;

/// Reads a value that is there, also when it is `null`: a payload may be.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// A page of a list.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Page<T> {
    /// The rows, newest first.
    pub(crate) items: Vec<T>,
    /// Pass it as `cursor` for the next page; none when this is the last.
    pub(crate) next: Option<String>,
}

/// A correlation key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct KeyBody {
    pub(crate) source: String,
    pub(crate) external_id: String,
}

impl From<&Key> for KeyBody {
    fn from(key: &Key) -> Self {
        Self { source: key.source.to_string(), external_id: key.external_id.to_string() }
    }
}

/// What became of an Event.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct CheckpointBody {
    /// `routed`, `unmatched`, `dropped`, `terminal` or `quarantined`.
    pub(crate) outcome: String,
    pub(crate) route: Option<String>,
    pub(crate) policy: Option<String>,
    pub(crate) work: Option<String>,
    pub(crate) generation: i64,
    /// Why it had no effect, as a stable word.
    pub(crate) code: Option<String>,
    /// The same in words.
    pub(crate) reason: Option<String>,
    pub(crate) at: String,
}

impl From<&Checkpoint> for CheckpointBody {
    fn from(checkpoint: &Checkpoint) -> Self {
        Self {
            outcome: checkpoint.outcome.as_str().to_owned(),
            route: checkpoint.route.as_ref().map(ToString::to_string),
            policy: checkpoint.policy.map(|policy| policy.as_str().to_owned()),
            work: checkpoint.work.map(|work| work.to_string()),
            generation: checkpoint.generation.number(),
            code: checkpoint.code.as_ref().map(ToString::to_string),
            reason: checkpoint.reason.clone(),
            at: checkpoint.at.to_string(),
        }
    }
}

/// How often a delivery came again.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct RedeliveryBody {
    pub(crate) count: i64,
    pub(crate) last_at: String,
}

/// An Event.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct EventBody {
    pub(crate) id: String,
    pub(crate) sequence: i64,
    pub(crate) source: String,
    pub(crate) delivery_id: String,
    #[serde(rename = "type")]
    pub(crate) event_type: String,
    pub(crate) scope: String,
    pub(crate) key: Option<KeyBody>,
    /// The Work it was addressed to.
    pub(crate) work: Option<String>,
    pub(crate) parent: Option<String>,
    pub(crate) root: String,
    pub(crate) depth: i64,
    pub(crate) emitted_by: Option<String>,
    /// The Event that an operator had looked at again by this one, which says what that one said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) replays: Option<String>,
    pub(crate) occurred_at: Option<String>,
    pub(crate) accepted_at: String,
    /// None while it waits to be routed.
    pub(crate) checkpoint: Option<CheckpointBody>,
    pub(crate) redelivered: Option<RedeliveryBody>,
    /// What it led to so far. Present on a single Event, absent in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) led_to: Option<LedToBody>,
    /// Present on a single Event, absent in lists.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub(crate) payload: Option<Value>,
}

impl From<&Event> for EventBody {
    fn from(event: &Event) -> Self {
        Self {
            id: event.id.to_string(),
            sequence: event.sequence.number(),
            source: event.source.to_string(),
            delivery_id: event.delivery_id.to_string(),
            event_type: event.event_type.to_string(),
            scope: event.scope.to_string(),
            key: event.key.as_ref().map(KeyBody::from),
            work: event.work.map(|work| work.to_string()),
            parent: event.causation.parent.map(|parent| parent.to_string()),
            root: event.causation.root.to_string(),
            depth: event.causation.depth,
            emitted_by: event.emitted_by.map(|execution| execution.to_string()),
            replays: event
                .causation
                .parent
                .filter(|_parent| is_replay(event))
                .map(|parent| parent.to_string()),
            occurred_at: event.occurred_at.map(|at| at.to_string()),
            accepted_at: event.accepted_at.to_string(),
            checkpoint: None,
            redelivered: None,
            led_to: None,
            payload: None,
        }
    }
}

impl From<&runtime::why::Link> for EventBody {
    fn from(link: &runtime::why::Link) -> Self {
        Self {
            checkpoint: link.checkpoint.as_ref().map(CheckpointBody::from),
            redelivered: link.redelivery.map(|redelivery| RedeliveryBody {
                count: redelivery.count,
                last_at: redelivery.last_at.to_string(),
            }),
            ..Self::from(&link.event)
        }
    }
}

/// An Event to accept.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EmitBody {
    pub(crate) scope: String,
    #[serde(rename = "type")]
    pub(crate) event_type: String,
    /// The idempotency key; the `Idempotency-Key` header when absent, else a fresh one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) delivery_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<KeyBody>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) work: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) occurred_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) payload: Option<Value>,
}

/// What became of an Event that was posted.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct AcceptedBody {
    pub(crate) event: String,
    pub(crate) sequence: i64,
    /// True when the same delivery was accepted before; then nothing new happened.
    pub(crate) duplicate: bool,
}

/// A Work.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct WorkBody {
    pub(crate) id: String,
    pub(crate) scope: String,
    pub(crate) kind: String,
    /// `once`, `run_once` or `standing`.
    pub(crate) lifecycle: String,
    /// `ready`, `running`, `waiting`, `completed`, `failed` or `cancelled`.
    pub(crate) state: String,
    /// What starts the next attempt of a ready Work: `idle`, `runnable` or `blocked`.
    pub(crate) queue: String,
    /// What no other Work of its scope may run under while it does.
    #[serde(default)]
    pub(crate) concurrency: Option<String>,
    /// The Work that it goes on from, which has ended.
    #[serde(default)]
    pub(crate) predecessor: Option<String>,
    /// The Work that goes on with its keys, when it has ended and one does.
    #[serde(default)]
    pub(crate) successor: Option<String>,
    /// The Work whose run created it. Present on a single Work, absent in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) parent: Option<String>,
    /// The newest Works that its runs created. Present on a single Work, absent in lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) children: Vec<String>,
    /// What a blocked Work waits for, such as `scope_full:main`.
    pub(crate) blocked_by: Option<String>,
    /// The live attempt.
    pub(crate) run: Option<String>,
    pub(crate) attempts: i64,
    /// How many attempts have failed in a row.
    #[serde(default)]
    pub(crate) failures: u32,
    /// What those failures mean for the next attempt; none when they mean nothing.
    #[serde(default)]
    pub(crate) retry: Option<RetryBody>,
    /// What it waits for, while it does.
    #[serde(default)]
    pub(crate) wait: Option<WaitBody>,
    /// Why it does not start, until an operator releases it.
    #[serde(default)]
    pub(crate) hold: Option<HoldBody>,
    /// What moves it next, in one sentence. Present on a single Work, absent in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
    pub(crate) created_at: String,
    pub(crate) ended_at: Option<String>,
    pub(crate) keys: Vec<KeyBody>,
    /// The newest attempt.
    #[serde(default)]
    pub(crate) last_run: Option<LastRunBody>,
    /// What an operator may order of the live run: `inject`, `interrupt`.
    #[serde(default)]
    pub(crate) controls: Vec<String>,
    /// Orders to the live run. Absent in lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) orders: Vec<OrderBody>,
    /// The budgets that it is under. Present on a single Work, absent in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) budgets: Option<Vec<BudgetBody>>,
    /// Pending input, oldest first: Event ids. Present on a single Work, absent in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pending: Option<Vec<String>>,
    /// The same input with what it is. Present on a single Work, absent in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pending_inputs: Option<Vec<PendingInputBody>>,
}

impl WorkBody {
    pub(crate) fn new(work: &Work, keys: &[Key], last: Option<&Execution>) -> Self {
        let (queue, blocked_by) = match &work.queue {
            Queue::Idle => ("idle", None),
            Queue::Runnable => ("runnable", None),
            Queue::Blocked(blocker) => ("blocked", Some(blocker.to_string())),
        };
        let run = match work.state {
            domain::work::WorkState::Running { execution } => Some(execution.to_string()),
            domain::work::WorkState::Ready
            | domain::work::WorkState::Waiting { .. }
            | domain::work::WorkState::Completed
            | domain::work::WorkState::Failed
            | domain::work::WorkState::Cancelled => None,
        };
        Self {
            id: work.id.to_string(),
            scope: work.scope.to_string(),
            kind: work.kind.to_string(),
            lifecycle: work.lifecycle.as_str().to_owned(),
            state: work.state.as_str().to_owned(),
            queue: queue.to_owned(),
            concurrency: work.concurrency.as_ref().map(ToString::to_string),
            predecessor: None,
            successor: None,
            parent: None,
            children: Vec::new(),
            blocked_by,
            run,
            attempts: work.attempts,
            failures: work.failures,
            retry: RetryBody::of(work.eligibility),
            wait: None,
            hold: work.hold.as_ref().map(HoldBody::from),
            next: None,
            created_at: work.created_at.to_string(),
            ended_at: work.ended_at.map(|at| at.to_string()),
            keys: keys.iter().map(KeyBody::from).collect(),
            last_run: last.map(LastRunBody::from),
            controls: last
                .filter(|last| !last.state.is_terminal())
                .map_or(Vec::new(), |last| controls(last.controls)),
            orders: Vec::new(),
            budgets: None,
            pending: None,
            pending_inputs: None,
        }
    }
}

/// The Event that triggered a run, in short.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct TriggerBody {
    pub(crate) event: String,
    #[serde(rename = "type")]
    pub(crate) event_type: String,
    pub(crate) source: String,
    /// How many Events of its chain came before it.
    #[serde(default)]
    pub(crate) depth: i64,
}

/// A run: one attempt at a Work.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct RunBody {
    pub(crate) id: String,
    pub(crate) work: String,
    pub(crate) work_kind: String,
    pub(crate) scope: String,
    pub(crate) keys: Vec<KeyBody>,
    pub(crate) attempt: i64,
    /// The failed run that it repeats.
    #[serde(default)]
    pub(crate) retry_of: Option<String>,
    /// Which of its turns this is: it goes on with the next one when what it waited for comes.
    #[serde(default)]
    pub(crate) turn: i64,
    /// The Event that began this turn, of any but the first.
    #[serde(default)]
    pub(crate) woken_by: Option<String>,
    pub(crate) epoch: i64,
    /// `launching`, `running`, `completed`, `handoff`, `failed` or `cancelled`.
    pub(crate) state: String,
    pub(crate) trigger: TriggerBody,
    pub(crate) binding: String,
    pub(crate) executor: String,
    /// The directory that it works in, when it is asked for alone and its executor gives it one.
    #[serde(default)]
    pub(crate) directory: Option<String>,
    pub(crate) generation: i64,
    pub(crate) timeout_seconds: u64,
    pub(crate) deadline_at: Option<String>,
    pub(crate) remaining_seconds: Option<u64>,
    pub(crate) claimed_at: String,
    pub(crate) started_at: Option<String>,
    pub(crate) ended_at: Option<String>,
    pub(crate) outcome: Option<String>,
    pub(crate) code: Option<String>,
    pub(crate) summary: Option<String>,
    pub(crate) exit_status: Option<i32>,
    #[schemars(with = "Vec<UsageSchema>")]
    pub(crate) usage: Vec<Usage>,
    #[schemars(with = "Vec<ArtifactSchema>")]
    pub(crate) artifacts: Vec<Artifact>,
    /// `kept`, or `released` when its log, its artifacts and the bodies of its input are gone. What happened stays.
    #[serde(default)]
    pub(crate) retention: String,
    /// What its binding calls the account that it uses.
    #[serde(default)]
    pub(crate) credential: Option<String>,
    /// Its outcome is known and waits for input that is on its way.
    pub(crate) settling: bool,
    /// What became of it is being found out after its authority was lost.
    pub(crate) recovering: bool,
    /// It ended, and what it had started may still run.
    pub(crate) unstopped: bool,
    /// The Event whose interruption ended it.
    #[serde(default)]
    pub(crate) interrupt_event_id: Option<String>,
    /// What an operator may order of it: `inject`, `interrupt`.
    #[serde(default)]
    pub(crate) controls: Vec<String>,
    /// Orders to it. Absent in lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) orders: Vec<OrderBody>,
    /// How far it last said that it had come. Present on a single run, absent in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) progress: Option<RunProgressBody>,
}

impl RunBody {
    pub(crate) fn new(
        execution: &Execution,
        work: &Work,
        keys: &[Key],
        trigger: &Event,
        result: Option<&TurnResult>,
        now: Timestamp,
    ) -> Self {
        let live = !execution.state.is_terminal();
        // While a later turn goes on, what is kept is that of the turn before.
        let result = result.filter(|_| !execution.state.is_going_on() || execution.outcome.is_some());
        Self {
            id: execution.id.to_string(),
            work: execution.work.to_string(),
            work_kind: work.kind.to_string(),
            scope: execution.scope.to_string(),
            keys: keys.iter().map(KeyBody::from).collect(),
            attempt: execution.attempt.number(),
            retry_of: execution.retry_of.map(|failed| failed.to_string()),
            turn: execution.turn.number,
            woken_by: execution.turn.resumed_by.map(|event| event.to_string()),
            epoch: execution.epoch.number(),
            state: execution.state.as_str().to_owned(),
            trigger: TriggerBody {
                event: trigger.id.to_string(),
                event_type: trigger.event_type.to_string(),
                source: trigger.source.to_string(),
                depth: trigger.causation.depth,
            },
            binding: execution.binding.to_string(),
            executor: execution.executor.to_string(),
            directory: None,
            generation: execution.generation.number(),
            timeout_seconds: execution.timeout.as_secs(),
            deadline_at: execution.deadline_at.map(|at| at.to_string()),
            remaining_seconds: execution.deadline_at.filter(|_| live).map(|at| at.since(now).as_secs()),
            claimed_at: execution.claimed_at.to_string(),
            started_at: execution.started_at.map(|at| at.to_string()),
            ended_at: execution.ended_at.map(|at| at.to_string()),
            outcome: execution.outcome.map(|outcome| outcome.as_str().to_owned()),
            code: result.and_then(|result| result.code.clone()),
            summary: result.and_then(|result| result.summary.clone()),
            exit_status: result.and_then(|result| result.exit_status),
            usage: result.map(|result| result.usage.clone()).unwrap_or_default(),
            artifacts: result.map(|result| result.artifacts.clone()).unwrap_or_default(),
            retention: execution.content.as_str().to_owned(),
            credential: execution.credential.as_ref().map(ToString::to_string),
            settling: live && execution.outcome.is_some(),
            recovering: execution.recovering,
            unstopped: execution.unstopped,
            interrupt_event_id: execution.interrupted_by.map(|event| event.to_string()),
            controls: if live { controls(execution.controls) } else { Vec::new() },
            orders: Vec::new(),
            progress: None,
        }
    }

    /// The same with what it has reported of its use that is in no result.
    pub(crate) fn with_more_used(mut self, more: Vec<Usage>) -> Self {
        for one in more {
            match self.usage.iter_mut().find(|used| used.unit == one.unit) {
                Some(used) => used.thousandths = used.thousandths.saturating_add(one.thousandths),
                None => self.usage.push(one),
            }
        }
        self
    }
}

/// An RFC 9457 problem.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Problem {
    /// A page that explains the code.
    #[serde(rename = "type")]
    pub(crate) about: String,
    pub(crate) title: String,
    pub(crate) status: u16,
    /// One sentence that says what to do next.
    pub(crate) detail: String,
    /// The stable word.
    pub(crate) code: String,
    /// More than one thing may be wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) problems: Vec<ProblemItem>,
    /// The ids that a shortened one may mean.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) candidates: Vec<String>,
}

/// One of several things that are wrong, with where it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ProblemItem {
    pub(crate) path: String,
    /// The line of the file, from one, when it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<usize>,
    /// A stable word for the kind of problem.
    #[serde(default)]
    pub(crate) code: String,
    pub(crate) message: String,
}

/// The state of the daemon.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct StatusBody {
    pub(crate) version: String,
    pub(crate) started_at: String,
    pub(crate) now: String,
    pub(crate) home: String,
    /// The generation in force; zero before the first apply.
    pub(crate) generation: i64,
    /// Whether the configuration file differs from the generation in force.
    pub(crate) config_edited: bool,
    pub(crate) api_address: String,
    pub(crate) webhook_address: Option<String>,
    /// Counted up to 1,000.
    pub(crate) unrouted: u32,
    /// Counted up to 1,000.
    pub(crate) runnable: u32,
    /// Attempts this process speaks for.
    pub(crate) running: usize,
    pub(crate) blocked: Vec<BlockedBody>,
    pub(crate) lanes: Vec<LaneBody>,
    /// Scopes that an operator has paused.
    #[serde(default)]
    pub(crate) paused: Vec<PauseBody>,
    /// This daemon's own start, when another had run before it: since when none was there, and what it found.
    #[serde(default)]
    pub(crate) last_downtime: Option<StartBody>,
    /// The release of the time zone data that schedules are read by, such as `2026b`. (SCH-7)
    #[serde(default)]
    pub(crate) zone_data: String,
    /// Figures of the store, by name.
    pub(crate) store: std::collections::BTreeMap<String, String>,
}

/// A reason that Works wait for.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct BlockedBody {
    pub(crate) reason: String,
    pub(crate) works: u32,
}

/// A row of the change feed.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ChangeBody {
    pub(crate) at: String,
    /// `event`, `checkpoint`, `work` or `run`. Where its state stayed, something else about it
    /// changed that is shown.
    pub(crate) kind: String,
    pub(crate) id: String,
    pub(crate) state: Option<String>,
    pub(crate) from: Option<String>,
    pub(crate) work: Option<String>,
}

/// The shape of a row of `usage`, for the document that describes the interface.
#[derive(JsonSchema)]
#[schemars(rename = "Usage")]
#[expect(dead_code, reason = "only its schema is used")]
struct UsageSchema {
    /// The unit: `usd`, `tokens`, `minutes`, or the executor's own.
    unit: String,
    /// The amount, in thousandths.
    thousandths: i64,
}

/// The shape of a row of `artifacts`, for the document that describes the interface.
#[derive(JsonSchema)]
#[schemars(rename = "Artifact")]
#[expect(dead_code, reason = "only its schema is used")]
struct ArtifactSchema {
    /// Its path below the attempt's output directory.
    path: String,
    /// Its size in bytes.
    bytes: u64,
}
