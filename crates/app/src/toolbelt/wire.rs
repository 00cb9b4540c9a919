//! What goes over the toolbelt's socket, in both directions. Fields never disappear within v1.

use std::collections::BTreeMap;

use domain::event::{Key, Payload};
use domain::id::EventId;
use domain::outcome::Usage;
use domain::text::{BindingName, EventType, ScopeName, WorkKind};
use domain::time::Timestamp;
use domain::toolbelt::Progress;
use domain::wait::Registration;
use domain::workspace::Workspace;
use runtime::toolbelt::{Awaited, Birth, Context, Emission, Offered, Request as Call, Watch};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::api::events::{checked, key};
use crate::api::failure::Failure;
use crate::api::wire::{EventBody, KeyBody};

/// The kind of a child that names none.
const CHILD_KIND: &str = "child.work";
/// The type of what tells a Work of a key that it watches, where nothing else is said.
const WATCHED: &str = "watch.changed";

/// A call's own name and what it asks for.
type Named = (String, Call);

/// An Event to emit.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EmitBody {
    /// The call's own name.
    pub(crate) call: String,
    #[serde(rename = "type")]
    pub(crate) event_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<KeyBody>,
    /// The Event that it follows from, when not what the run follows from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cause: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) occurred_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) payload: Option<Box<RawValue>>,
}

impl EmitBody {
    pub(super) fn call(self) -> Result<Named, Failure> {
        let moment = |text: &String| {
            Timestamp::parse(text).map_err(|error| Failure::bad(format!("`occurred_at`: {error}")))
        };
        let emission = Emission {
            event_type: EventType::new(&self.event_type)?,
            key: self.key.as_ref().map(key).transpose()?,
            payload: payload(self.payload.as_deref())?,
            cause: self.cause.map(|id| id.parse::<EventId>()).transpose()?,
            occurred_at: self.occurred_at.as_ref().map(moment).transpose()?,
        };
        Ok((self.call, Call::Emit(emission)))
    }
}

/// What the turn is to wait for.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WaitBody {
    pub(crate) call: String,
    /// Keys of the run's own Work; all of them when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) keys: Option<Vec<KeyBody>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) types: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) timeout_seconds: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) after_sequence: Option<i64>,
    /// Keys of other Works.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) watch: Vec<WatchBody>,
    /// Take back what was declared.
    #[serde(default)]
    pub(crate) withdraw: bool,
}

/// A key of another Work to learn of.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WatchBody {
    pub(crate) key: KeyBody,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) types: Vec<String>,
    /// The type of the Event that tells of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) becomes: Option<String>,
}

fn types(texts: &[String]) -> Result<Vec<EventType>, Failure> {
    texts.iter().map(|text| EventType::new(text).map_err(Failure::from)).collect()
}

impl WaitBody {
    pub(super) fn call(self) -> Result<Named, Failure> {
        if self.withdraw {
            return Ok((self.call, Call::Wait(Awaited { registration: None, watch: Vec::new() })));
        }
        let mut watch = Vec::with_capacity(self.watch.len());
        for one in &self.watch {
            let becomes = EventType::new(one.becomes.as_deref().unwrap_or(WATCHED))?;
            watch.push(Watch { key: key(&one.key)?, types: types(&one.types)?, becomes });
        }
        let mut awaited = types(&self.types)?;
        if !awaited.is_empty() {
            // What is watched is waited for, whatever else is.
            awaited.extend(watch.iter().map(|one| one.becomes.clone()));
        }
        let keys = self.keys.map(|keys| keys.iter().map(key).collect::<Result<_, _>>()).transpose()?;
        let registration = Registration {
            keys,
            types: awaited,
            after: self.after_sequence.map(domain::id::Sequence::from_number),
            timeout_seconds: self.timeout_seconds,
        };
        Ok((self.call, Call::Wait(Awaited { registration: Some(registration), watch })))
    }
}

/// A Work to create below the run's own.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChildBody {
    pub(crate) call: String,
    /// Its scope, when not the run's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) scope: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) binding: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) keys: Vec<KeyBody>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) input: Option<Box<RawValue>>,
}

impl ChildBody {
    pub(super) fn call(self) -> Result<Named, Failure> {
        let birth = Birth {
            scope: self.scope.map(ScopeName::new).transpose()?,
            kind: WorkKind::new(self.kind.as_deref().unwrap_or(CHILD_KIND))?,
            binding: self.binding.map(BindingName::new).transpose()?,
            keys: self.keys.iter().map(key).collect::<Result<Vec<Key>, _>>()?,
            input: payload(self.input.as_deref())?,
        };
        Ok((self.call, Call::Child(birth)))
    }
}

/// How far the run has come.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProgressBody {
    pub(crate) call: String,
    pub(crate) text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) percent: Option<u8>,
}

impl ProgressBody {
    pub(super) fn call(self) -> Result<Named, Failure> {
        let progress = Progress::new(&self.text, self.percent).map_err(runtime::CallError::from)?;
        Ok((self.call, Call::Progress(progress)))
    }
}

/// What the run used, by unit.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UsageBody {
    pub(crate) call: String,
    pub(crate) usage: BTreeMap<String, f64>,
}

impl UsageBody {
    pub(super) fn call(self) -> Result<Named, Failure> {
        let usage = self.usage.into_iter().map(|(unit, amount)| {
            let thousandths = thousandths(amount).ok_or(domain::toolbelt::CallRefusal::Amount);
            thousandths.map(|thousandths| Usage { unit, thousandths })
        });
        let usage = usage.collect::<Result<Vec<_>, _>>().map_err(runtime::CallError::from)?;
        Ok((self.call, Call::Usage(usage)))
    }
}

/// An amount, rounded to thousandths of its unit; none when it is no amount.
fn thousandths(amount: f64) -> Option<i64> {
    /// Beyond this, a double no longer holds every whole number.
    const THOUSANDTHS_MAX: f64 = 9e15;
    let rounded = (amount * 1000.0).round();
    #[expect(clippy::cast_possible_truncation, reason = "rounded and in range")]
    (0.0..=THOUSANDTHS_MAX).contains(&rounded).then_some(rounded as i64)
}

/// An injected Event that the run took in.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AckBody {
    pub(crate) call: String,
    pub(crate) event: String,
}

impl AckBody {
    pub(super) fn call(self) -> Result<Named, Failure> {
        let event = self.event.parse::<EventId>()?;
        Ok((self.call, Call::Acknowledge(event)))
    }
}

fn payload(raw: Option<&RawValue>) -> Result<Payload, Failure> {
    raw.map_or_else(|| Ok(Payload::null()), |raw| checked(raw.get().as_bytes()))
}

/// What a run may know of itself.
#[derive(Debug, Serialize)]
pub(crate) struct ContextBody {
    run: String,
    attempt: i64,
    turn: i64,
    work: ContextWorkBody,
    /// What triggered the run.
    trigger: EventBody,
    /// What the run follows from in this turn, which is the cause of what it emits.
    cause: EventBody,
    /// What it took in; the first 256.
    inputs: Vec<EventBody>,
    /// The highest sequence of what it took in.
    seen_sequence: i64,
    /// The newest accepted sequence.
    last_sequence: i64,
    retry_of: Option<String>,
    deadline_at: Option<String>,
    now: String,
    /// The directory that was made ready for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    workspace: Option<Workspace>,
    /// Whether the turn waits when it ends well.
    waits: bool,
    progress: Option<Progress>,
    usage: BTreeMap<String, f64>,
}

#[derive(Debug, Serialize)]
struct ContextWorkBody {
    id: String,
    kind: String,
    scope: String,
    keys: Vec<KeyBody>,
    parent: Option<String>,
}

impl From<Context> for ContextBody {
    fn from(context: Context) -> Self {
        let run = &context.execution;
        Self {
            run: run.id.to_string(),
            attempt: run.attempt.number(),
            turn: run.turn.number,
            work: ContextWorkBody {
                id: context.work.id.to_string(),
                kind: context.work.kind.to_string(),
                scope: context.work.scope.to_string(),
                keys: context.keys.iter().map(KeyBody::from).collect(),
                parent: context.parent.map(|parent| parent.to_string()),
            },
            trigger: EventBody::from(&context.trigger),
            cause: EventBody::from(&context.cause),
            inputs: context.inputs.iter().map(EventBody::from).collect(),
            seen_sequence: context.seen.number(),
            last_sequence: context.last.number(),
            retry_of: run.retry_of.map(|failed| failed.to_string()),
            deadline_at: run.deadline_at.map(|at| at.to_string()),
            now: context.now.to_string(),
            workspace: run.workspace.as_deref().cloned(),
            waits: run.toolbelt.declared.wait.is_some(),
            progress: context.progress,
            usage: context.usage.iter().map(amount).collect(),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "an amount of more than 2^53 thousandths is shown rounded")]
fn amount(usage: &Usage) -> (String, f64) {
    (usage.unit.clone(), usage.thousandths as f64 / 1000.0)
}

/// An Event that was injected into the run.
#[derive(Debug, Serialize)]
pub(crate) struct OfferedBody {
    event: EventBody,
    /// As it was sent; none when it is no longer kept, or would make the answer too large.
    payload: Option<Box<RawValue>>,
    /// `dispatched`, `ambiguous`, `accepted` or `fell_back`: how far it has come to the run.
    state: &'static str,
    acknowledged: bool,
}

impl From<&Offered> for OfferedBody {
    fn from(offered: &Offered) -> Self {
        let text = offered.payload.as_ref().and_then(|payload| std::str::from_utf8(payload.as_bytes()).ok());
        Self {
            event: EventBody::from(&offered.event),
            payload: text.and_then(|text| RawValue::from_string(text.to_owned()).ok()),
            state: offered.state.as_str(),
            acknowledged: offered.acknowledged,
        }
    }
}
