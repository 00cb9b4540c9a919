//! What a crash in the middle of a command leaves: some of its parts whole, and none of them half.

use std::collections::{BTreeMap, BTreeSet};

use domain::id::{EventId, ExecutionId};

use super::Reference;
use crate::differential::told::attempts_in_order;
use crate::driver::{AttemptState, Command, Driver, IntentState, Model, Snapshot};

/// More parts than a command of a case has.
const PARTS_MAX: u32 = 64;

/// What a process that is about to die still does.
#[derive(Debug, Clone)]
pub(super) struct Rest {
    /// How many parts it comes to, of those that are done in order.
    parts: u32,
    /// Whether there was a part that it did not come to.
    short: bool,
    /// The Events that it routes, by their places.
    routed: BTreeSet<usize>,
    /// The attempts that it launches.
    launched: BTreeSet<ExecutionId>,
    /// The attempts of which it does what their executors found.
    found: BTreeSet<ExecutionId>,
    /// The orders that it sends, by their attempts and Events.
    sent: BTreeSet<(ExecutionId, EventId)>,
    /// The orders of which it records what came of them.
    answered: BTreeMap<(ExecutionId, EventId), IntentState>,
}

impl Reference {
    /// Whether a command is one part.
    pub(super) const fn is_whole(command: &Command) -> bool {
        match command {
            Command::Configure(_)
            | Command::Accept(_)
            | Command::Report { .. }
            | Command::Cancel(_)
            | Command::Retry { .. }
            | Command::Interrupt { .. }
            | Command::Subscribe(_)
            | Command::Pause(_)
            | Command::Resume(_)
            | Command::Release(_) => true,
            Command::Route
            | Command::Open(_)
            | Command::Claim
            | Command::Launch
            | Command::Renew
            | Command::Recover(_)
            | Command::Advance(_)
            | Command::Fire
            | Command::Dispatch(_)
            | Command::Present
            | Command::Acknowledge(_)
            | Command::Translate
            | Command::Reopen => false,
        }
    }

    /// Whether the next part of a command is done. The next one is asked about only then.
    pub(super) const fn comes_to(&mut self) -> bool {
        let Some(rest) = &mut self.rest else { return true };
        if rest.parts == 0 {
            rest.short = true;
            return false;
        }
        rest.parts -= 1;
        true
    }

    /// Whether an Event is routed before the process dies.
    pub(super) fn comes_to_route(&self, event: EventId) -> bool {
        let Some(rest) = &self.rest else { return true };
        self.events.iter().position(|known| known.id == event).is_some_and(|at| rest.routed.contains(&at))
    }

    /// Whether an attempt is launched before the process dies.
    pub(super) fn comes_to_launch(&self, execution: ExecutionId) -> bool {
        self.rest.as_ref().is_none_or(|rest| rest.launched.contains(&execution))
    }

    /// Whether an order is sent before the process dies.
    pub(super) fn comes_to_send(&self, order: (ExecutionId, EventId)) -> bool {
        self.rest.as_ref().is_none_or(|rest| rest.sent.contains(&order))
    }

    /// Whether what came of an order is recorded before the process dies.
    pub(super) fn comes_to_hear(&self, order: (ExecutionId, EventId), came: IntentState) -> bool {
        self.rest.as_ref().is_none_or(|rest| rest.answered.get(&order) == Some(&came))
    }

    /// Whether what was found of an attempt is done before the process dies.
    pub(super) fn comes_to_find(&self, execution: ExecutionId) -> bool {
        self.rest.as_ref().is_none_or(|rest| rest.found.contains(&execution))
    }
}

impl Model for Reference {
    fn crashed(&self, command: &Command, seen: &Snapshot) -> Vec<Self> {
        let routed = seen.events.iter().enumerate().filter(|(_at, event)| event.checkpoint.is_some());
        let routed: BTreeSet<usize> = routed.map(|(at, _event)| at).collect();
        // Attempts that were there before are in the same places on both sides.
        let own = self.clone().snapshot();
        let pairs: Vec<_> = attempts_in_order(&own)
            .into_iter()
            .map(|attempt| attempt.id)
            .zip(attempts_in_order(seen))
            .collect();
        let launched = pairs.iter().filter(|(_id, it)| it.state == AttemptState::Running);
        let launched: BTreeSet<ExecutionId> = launched.map(|(id, _it)| *id).collect();
        let found = pairs.iter().filter(|(_id, it)| !it.recovering);
        let found: BTreeSet<ExecutionId> = found.map(|(id, _it)| *id).collect();
        let orders = seen.intents.iter().filter_map(|intent| {
            let (own_id, _it) = pairs.iter().find(|(_id, it)| it.id == intent.execution)?;
            let at = seen.events.iter().position(|event| event.id == intent.event)?;
            Some(((*own_id, self.events.get(at)?.id), intent))
        });
        let orders: Vec<_> = orders.collect();
        let sent = orders.iter().filter(|(_order, intent)| intent.attempted);
        let sent: BTreeSet<_> = sent.map(|(order, _intent)| *order).collect();
        let answered: BTreeMap<_, _> = orders.iter().map(|(order, intent)| (*order, intent.state)).collect();
        let mut left = Vec::new();
        for parts in 0..PARTS_MAX {
            let (routed, launched, found) = (routed.clone(), launched.clone(), found.clone());
            let (sent, answered) = (sent.clone(), answered.clone());
            let mut one = self.clone();
            one.rest = Some(Rest { parts, short: false, routed, launched, found, sent, answered });
            let _unheard = one.act(command.clone());
            let short = one.rest.take().is_some_and(|rest| rest.short);
            let _reopened = one.act(Command::Reopen);
            left.push(one);
            if !short {
                break;
            }
        }
        left
    }
}
