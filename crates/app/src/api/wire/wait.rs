//! What goes over the wire about waiting: Waits, timers, and why a Work is held.

use domain::alias::Subscription;
use domain::store::{Snapshot, StoreError};
use domain::timer::{Timer, TimerKind};
use domain::wait::{WAIT_TIMEOUT, Wait, WaitState};
use domain::work::Hold;
use runtime::why::Woken;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::KeyBody;

/// What a Work waits for, or waited for.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct WaitBody {
    pub(crate) id: String,
    pub(crate) work: String,
    pub(crate) scope: String,
    /// The attempt whose turn ended in it.
    pub(crate) run: String,
    /// The keys whose Events it is for; without any it is for its timeout alone.
    pub(crate) keys: Vec<KeyBody>,
    /// The types it is for; without any it is for every type.
    pub(crate) types: Vec<String>,
    /// What its run had seen: only what was accepted after this sequence ends it.
    pub(crate) after_sequence: i64,
    /// When it ends by itself.
    pub(crate) timeout_at: Option<String>,
    pub(crate) registered_at: String,
    /// `active`, `woken` or `cancelled`.
    pub(crate) state: String,
    /// The Event that ended it.
    pub(crate) winner: Option<String>,
    pub(crate) ended_at: Option<String>,
    /// The subscriptions by which it hears of keys of other Works, while it goes on.
    #[serde(default)]
    pub(crate) through: Vec<SubscriptionBody>,
}

/// What turns Events of a key that is another Work's into Events of this one.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct SubscriptionBody {
    pub(crate) id: String,
    /// The key that is watched.
    pub(crate) watches: KeyBody,
    /// The types that are translated; without any, every type.
    pub(crate) types: Vec<String>,
    /// The Work's own key, which each alias carries.
    pub(crate) key: KeyBody,
    /// The type of each alias.
    pub(crate) becomes: String,
    /// What was accepted up to this sequence has been observed.
    pub(crate) after_sequence: i64,
}

impl From<&Subscription> for SubscriptionBody {
    fn from(subscription: &Subscription) -> Self {
        Self {
            id: subscription.id.to_string(),
            watches: KeyBody::from(&subscription.watched),
            types: subscription.types.iter().map(ToString::to_string).collect(),
            key: KeyBody::from(&subscription.own),
            becomes: subscription.becomes.to_string(),
            after_sequence: subscription.after.number(),
        }
    }
}

/// The most subscriptions that are told with a Wait.
const THROUGH_MAX: u32 = 16;

impl WaitBody {
    /// A Wait with the subscriptions that may end it.
    ///
    /// # Errors
    /// What reading the store answers.
    pub(crate) fn read(tx: &mut dyn Snapshot, wait: &Wait) -> Result<Self, StoreError> {
        let mut body = Self::from(wait);
        if wait.state.is_active() {
            let subscriptions = tx.subscriptions_of(wait.work, THROUGH_MAX)?;
            let feeding = subscriptions.iter().filter(|subscription| subscription.feeds(wait));
            body.through = feeding.map(SubscriptionBody::from).collect();
        }
        Ok(body)
    }
}

impl From<&Wait> for WaitBody {
    fn from(wait: &Wait) -> Self {
        let (winner, ended_at) = match wait.state {
            WaitState::Active => (None, None),
            WaitState::Woken { winner, at, .. } => (Some(winner.to_string()), Some(at.to_string())),
            WaitState::Cancelled { at } => (None, Some(at.to_string())),
        };
        Self {
            id: wait.id.to_string(),
            work: wait.work.to_string(),
            scope: wait.scope.to_string(),
            run: wait.execution.to_string(),
            keys: wait.keys.iter().map(KeyBody::from).collect(),
            types: wait.types.iter().map(ToString::to_string).collect(),
            after_sequence: wait.after.number(),
            timeout_at: wait.timeout.map(|timeout| timeout.due_at.to_string()),
            registered_at: wait.registered_at.to_string(),
            state: wait.state.as_str().to_owned(),
            winner,
            ended_at,
            through: Vec::new(),
        }
    }
}

/// A Wait that has ended, with what ended it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct WokenBody {
    pub(crate) wait: WaitBody,
    /// `fact` when what it was for arrived, `timeout` when its time was up first.
    pub(crate) by: String,
    /// The type of the Event that ended it.
    #[serde(rename = "type")]
    pub(crate) event_type: String,
}

impl From<&Woken> for WokenBody {
    fn from(woken: &Woken) -> Self {
        let is_timeout = woken.winner.event_type.as_str() == WAIT_TIMEOUT;
        Self {
            wait: WaitBody::from(&woken.wait),
            by: if is_timeout { "timeout" } else { "fact" }.to_owned(),
            event_type: woken.winner.event_type.to_string(),
        }
    }
}

/// Why a Work does not start.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct HoldBody {
    /// `wake_refused` when the bounds of its chain refused the Event that it goes on from, `budget` when a budget is
    /// used up, `gate` when a start gate holds its first attempt.
    pub(crate) because: String,
    /// The same in words.
    pub(crate) reason: String,
    pub(crate) since: String,
}

impl From<&Hold> for HoldBody {
    fn from(hold: &Hold) -> Self {
        Self {
            because: hold.because.as_str().to_owned(),
            reason: hold.reason.clone(),
            since: hold.since.to_string(),
        }
    }
}

/// An Event to come.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct TimerBody {
    pub(crate) id: String,
    /// `retry` for the end of the wait after a failure, `wait_timeout` for the end of a Wait, `budget_window` for that
    /// of the day or week whose budget holds its Work.
    pub(crate) kind: String,
    pub(crate) scope: String,
    pub(crate) work: String,
    /// The attempt that failed, of a retry.
    pub(crate) run: Option<String>,
    /// The Wait that it ends.
    pub(crate) wait: Option<String>,
    pub(crate) armed_at: String,
    pub(crate) due_at: String,
}

impl From<&Timer> for TimerBody {
    fn from(timer: &Timer) -> Self {
        let (run, wait) = match timer.kind {
            TimerKind::Retry { failed } => (Some(failed.to_string()), None),
            TimerKind::Wait { wait } => (None, Some(wait.to_string())),
            TimerKind::BudgetWindow => (None, None),
        };
        Self {
            id: timer.id.to_string(),
            kind: timer.kind.as_str().to_owned(),
            scope: timer.scope.to_string(),
            work: timer.work.to_string(),
            run,
            wait,
            armed_at: timer.armed_at.to_string(),
            due_at: timer.due_at.to_string(),
        }
    }
}
