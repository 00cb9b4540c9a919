//! Routing: asking handlers in order, and what the first match does.

use std::collections::BTreeSet;

use domain::event::Key;
use domain::id::{EventId, Generation, WorkId};
use domain::route::CheckpointOutcome;
use domain::text::{BindingName, DeliveryId, EventType, SourceName};

use super::config::{Policy, Route};
use super::{Fault, Reference, Refusal, Work};
use crate::driver::{
    CheckpointRecord, Delivery, EligibilityRecord, EventRecord, IntentKind, IntentRecord, IntentState, Wish,
    WorkRecord, WorkWord, delivery,
};

/// What the handlers say of an Event.
enum Asked {
    /// One has not answered yet, or failed.
    Nothing,
    /// One fails, and always will.
    Poison,
    /// None takes it.
    Unmatched,
    /// This route takes it first.
    Matched(Route, Wish),
}

/// What a match leads to.
enum Target {
    /// Nothing.
    Dropped,
    /// A Work that exists, with keys it gets.
    Existing(WorkId, Vec<Key>),
    /// A new Work with its keys, and the Work it succeeds.
    New(Vec<Key>, Option<WorkId>),
}

impl Reference {
    /// Routes until nothing moves, then settles what waited for it.
    pub(super) fn route(&mut self) {
        loop {
            self.route_all();
            if !self.settle_waiting() {
                return;
            }
        }
    }

    fn route_all(&mut self) {
        let mut moved = true;
        while moved {
            moved = false;
            let unrouted: Vec<EventId> =
                self.events.iter().filter(|event| event.checkpoint.is_none()).map(|event| event.id).collect();
            for id in unrouted {
                if self.event(id).checkpoint.is_some() || !self.comes_to_route(id) {
                    continue;
                }
                let routed = self.route_one(id).is_ok_and(|routed| routed);
                moved |= routed;
                if !routed && self.breaks(Fault::OrderIsGlobal) {
                    return;
                }
            }
        }
    }

    /// Asks the routes of an Event's scope in order.
    fn ask(&mut self, event: &EventRecord) -> Asked {
        let said = self.said[&event.id].clone();
        let Some(scope) = self.scopes.get(&event.scope) else { return Asked::Nothing };
        for route in scope.routes.clone() {
            let takes = route.takes.contains(&event.event_type);
            if event.event_type.is_core() && !takes {
                continue;
            }
            self.asked.entry(event.id).or_default().insert(route.name.clone());
            if !takes && !route.takes.is_empty() {
                continue;
            }
            if said.gate.is_some_and(|gate| !self.open.contains(gate)) || said.wish == Wish::Fail {
                return Asked::Nothing;
            }
            if said.wish == Wish::Poison {
                return Asked::Poison;
            }
            if route.drops {
                return Asked::Matched(route, Wish::Drop);
            }
            let nothing = said.wish == Wish::Usual && event.key.is_none() && event.work.is_none();
            if !nothing {
                return Asked::Matched(route, said.wish);
            }
        }
        Asked::Unmatched
    }

    /// Routes one Event; false when it has to wait.
    fn route_one(&mut self, id: EventId) -> Result<bool, Refusal> {
        let routed = self.place(id)?;
        if routed && !self.breaks(Fault::DroppedHidesLater) {
            // What comes first for somebody who waits may have stood behind it.
            for work in self.works.iter().map(|work| work.record.id).collect::<Vec<_>>() {
                self.arbitrate(work);
            }
        }
        Ok(routed)
    }

    fn place(&mut self, id: EventId) -> Result<bool, Refusal> {
        let event = self.event(id).clone();
        if !self.behind_earlier(&event, None) && !self.asked_at.contains_key(&id) {
            let at = self.number();
            self.asked_at.insert(id, at);
        }
        let (route, wish) = match self.ask(&event) {
            Asked::Nothing => return Ok(false),
            Asked::Poison => {
                self.mark(id, CheckpointOutcome::Quarantined, None, Some("told_to_fail"));
                return Ok(true);
            }
            Asked::Unmatched => {
                let owner =
                    event.key.as_ref().and_then(|key| self.owner(key)).map(|owner| self.newest(owner));
                match owner.filter(|owner| self.is_waited_for(*owner, &event)) {
                    // What no route takes is news all the same to a Work that waits for it.
                    Some(owner) => {
                        if self.behind_earlier(&event, Some(owner)) {
                            return Ok(false);
                        }
                        self.mark(id, CheckpointOutcome::Routed, Some(owner), Some("waited_for"));
                        self.arbitrate(owner);
                    }
                    None => self.mark(id, CheckpointOutcome::Unmatched, None, None),
                }
                return Ok(true);
            }
            Asked::Matched(route, wish) => (route, wish),
        };
        let target = self.target(&event, &wish)?;
        let about = event.work.or_else(|| event.key.as_ref().and_then(|key| self.owner(key)));
        let existing = match &target {
            Target::Dropped => about,
            Target::Existing(work, _) => Some(*work),
            Target::New(_, predecessor) => *predecessor,
        };
        if self.behind_earlier(&event, existing) {
            return Ok(false);
        }
        match target {
            Target::Dropped => {
                self.checkpoint(&event, &route, CheckpointOutcome::Dropped, about, Some("told_to_drop"));
            }
            Target::Existing(work, attach) => self.reach(&event, &route, work, attach)?,
            Target::New(keys, predecessor) => self.create(&event, &route, keys, predecessor)?,
        }
        Ok(true)
    }

    /// Whether an Event that was accepted before, and goes the same way, is not routed yet.
    fn behind_earlier(&self, event: &EventRecord, work: Option<WorkId>) -> bool {
        let mut lanes = work.map(|work| self.lanes_of(work)).unwrap_or_default();
        lanes.extend(Self::lane(event));
        self.events.iter().any(|earlier| {
            earlier.checkpoint.is_none()
                && earlier.sequence < event.sequence
                && Self::lane(earlier).is_some_and(|lane| lanes.contains(&lane))
        })
    }

    /// What the handler's answer leads to.
    fn target(&self, event: &EventRecord, wish: &Wish) -> Result<Target, Refusal> {
        let keys = match wish {
            Wish::Drop => return Ok(Target::Dropped),
            Wish::Fail | Wish::Poison => return Err("told_to_fail"),
            Wish::Reopen => {
                let key = event.key.as_ref().ok_or("no_key")?;
                return Ok(match self.owner(key).map(|owner| self.newest(owner)) {
                    None => Target::New(vec![key.clone()], None),
                    Some(newest) if self.work(newest).record.state.is_terminal() => {
                        let keys = self.keys_after(newest, key).into_iter().collect();
                        Target::New(keys, Some(newest))
                    }
                    Some(newest) => Target::Existing(newest, Vec::new()),
                });
            }
            Wish::Usual => match (&event.key, event.work) {
                (Some(key), _) => vec![key.clone()],
                (None, Some(work)) => return Ok(Target::Existing(work, Vec::new())),
                (None, None) => return Err("not_addressed"),
            },
            Wish::Keys(keys) => keys.clone(),
            Wish::Fresh(keys) | Wish::Successor { keys, .. } => {
                if keys.iter().any(|key| self.owner(key).is_some()) {
                    return Err("key_owned");
                }
                if event.work.is_some() {
                    return Err("contradiction");
                }
                let predecessor = match wish {
                    Wish::Successor { of, .. } => Some(*of),
                    Wish::Usual
                    | Wish::Keys(_)
                    | Wish::Fresh(_)
                    | Wish::Reopen
                    | Wish::Drop
                    | Wish::Fail
                    | Wish::Poison => None,
                };
                return Ok(Target::New(keys.clone(), predecessor));
            }
        };
        let owners: BTreeSet<WorkId> = keys.iter().filter_map(|key| self.owner(key)).collect();
        if owners.len() > 1 && !self.breaks(Fault::KeysAreStolen) {
            return Err("key_conflict");
        }
        match (event.work, owners.first().copied()) {
            (Some(addressed), Some(owner)) if addressed != owner => Err("contradiction"),
            (Some(work), _) | (None, Some(work)) => {
                let lacks = |key: &Key| !self.work(work).record.keys.contains(key);
                Ok(Target::Existing(work, keys.into_iter().filter(lacks).collect()))
            }
            (None, None) => Ok(Target::New(keys, None)),
        }
    }

    /// What an Event does to a Work that exists.
    fn reach(
        &mut self,
        event: &EventRecord,
        route: &Route,
        id: WorkId,
        attach: Vec<Key>,
    ) -> Result<(), Refusal> {
        let work = self.work(id).record.clone();
        if work.scope != event.scope {
            return Err("cross_scope");
        }
        if work.state.is_terminal() && !self.breaks(Fault::EndsAreRevived) {
            self.checkpoint(event, route, CheckpointOutcome::Terminal, Some(id), Some("terminal_work"));
            return Ok(());
        }
        if event.event_type.is_core() && event.emitted_by.is_some() && event.work == Some(id) {
            self.checkpoint(event, route, CheckpointOutcome::Dropped, Some(id), Some("own_news"));
            return Ok(());
        }
        let running = work.state == WorkWord::Running;
        if running && route.policy == Policy::Drop {
            self.checkpoint(event, route, CheckpointOutcome::Dropped, Some(id), Some("active_drop"));
            return Ok(());
        }
        self.checkpoint(event, route, CheckpointOutcome::Routed, Some(id), None);
        if running {
            match route.policy {
                Policy::Inject => self.intend(IntentKind::Inject, event.id, id),
                Policy::Interrupt => self.intend(IntentKind::Interrupt, event.id, id),
                Policy::Queue | Policy::Drop => {}
            }
        }
        if work.state.is_terminal() {
            self.work_mut(id).record.state = WorkWord::Ready;
        }
        self.attach(event, route, id, attach);
        self.queue(id, event.id, &route.binding);
        self.arbitrate(id);
        Ok(())
    }

    /// Makes a new Work of an Event.
    fn create(
        &mut self,
        event: &EventRecord,
        route: &Route,
        keys: Vec<Key>,
        predecessor: Option<WorkId>,
    ) -> Result<(), Refusal> {
        if let Some(before) = predecessor
            && !self.find_work(before).is_some_and(|work| work.record.state.is_terminal())
        {
            return Err("not_ended");
        }
        let id = WorkId::from_number(self.number());
        let place = predecessor.map(|before| self.place_after(before));
        self.works.push(Work {
            record: WorkRecord {
                id,
                scope: event.scope.clone(),
                state: WorkWord::Ready,
                keys: BTreeSet::new(),
                pending: Vec::new(),
                eligibility: EligibilityRecord::Clear,
                failures: 0,
                held: None,
            },
            lifecycle: self.said[&event.id].lifecycle,
            concurrency: self.said[&event.id].concurrency,
            made: self.asked_at[&event.id],
            queued_at: self.now,
            woken_by: None,
            bridge: None,
            failed: None,
            place,
        });
        if predecessor.is_some() {
            let created = Delivery {
                source: SourceName::known("core"),
                id: DeliveryId::known(&format!("created/{id}")),
                event_type: EventType::known("core.work.created"),
                scope: event.scope.clone(),
                ..delivery("replaced").to(id).because(event.id)
            };
            // Without room for it in the chain there is no successor either.
            let announced = self.announce(created);
            if announced.is_err() {
                self.works.retain(|work| work.record.id != id);
                let code = Some("successor_refused");
                self.checkpoint(event, route, CheckpointOutcome::Terminal, predecessor, code);
                return Ok(());
            }
        }
        self.checkpoint(event, route, CheckpointOutcome::Routed, Some(id), None);
        self.attach(event, route, id, keys);
        self.queue(id, event.id, &route.binding);
        Ok(())
    }

    /// Gives keys to a Work. Earlier Events of them that are not routed yet join its backlog.
    fn attach(&mut self, event: &EventRecord, route: &Route, id: WorkId, keys: Vec<Key>) {
        for key in keys {
            if let Some(owner) = self.owner(&key) {
                self.work_mut(owner).record.keys.remove(&key);
            }
            self.work_mut(id).record.keys.insert(key.clone());
            let joins: Vec<EventRecord> = self
                .events
                .iter()
                .filter(|earlier| {
                    earlier.checkpoint.is_none()
                        && earlier.sequence < event.sequence
                        && earlier.key.as_ref() == Some(&key)
                        && earlier.scope == event.scope
                })
                .cloned()
                .collect();
            for earlier in joins {
                // They wait for the next attempt, whatever the Event that brought the key does to this one.
                let route = &Route { policy: Policy::Queue, ..route.clone() };
                self.checkpoint(&earlier, route, CheckpointOutcome::Routed, Some(id), Some("joined_backlog"));
                self.queue(id, earlier.id, &route.binding);
            }
        }
    }

    /// Makes an Event input of a Work, once for ever.
    pub(super) fn queue(&mut self, id: WorkId, event: EventId, binding: &BindingName) {
        if self.inputs.contains_key(&(id, event)) {
            return;
        }
        self.inputs.insert((id, event), binding.clone());
        let sequence = self.event(event).sequence;
        let mut pending = std::mem::take(&mut self.work_mut(id).record.pending);
        let place = pending.iter().position(|other| self.event(*other).sequence > sequence);
        pending.insert(place.unwrap_or(pending.len()), event);
        let first = pending.len() == 1;
        let (now, ends_backoff) = (self.now, self.breaks(Fault::InputEndsBackoff));
        let work = self.work_mut(id);
        work.record.pending = pending;
        if first
            && work.record.state == WorkWord::Ready
            && work.record.eligibility == EligibilityRecord::Clear
        {
            work.queued_at = now;
        }
        if ends_backoff {
            work.record.eligibility = EligibilityRecord::Clear;
        }
    }

    /// Writes an order to the live attempt of a Work.
    pub(super) fn intend(&mut self, kind: IntentKind, event: EventId, work: WorkId) {
        let live = self.attempts.iter().find(|attempt| {
            attempt.record.work == work && !attempt.record.state.is_terminal() && attempt.settling.is_none()
        });
        let Some(live) = live else { return };
        let (execution, epoch) = (live.record.id, live.record.epoch);
        let (attempted, state) = (false, IntentState::Pending);
        self.intents.push(IntentRecord { event, execution, epoch, kind, attempted, state });
    }

    fn checkpoint(
        &mut self,
        event: &EventRecord,
        route: &Route,
        outcome: CheckpointOutcome,
        work: Option<WorkId>,
        code: Option<&str>,
    ) {
        let generation = Generation::from_number(self.generation);
        let code = code.or(route.fell_back.then_some("policy_fallback")).map(str::to_owned);
        self.event_mut(event.id).checkpoint = Some(CheckpointRecord {
            outcome,
            route: Some(route.name.clone()),
            policy: Some(route.policy.word().to_owned()),
            work,
            generation,
            code,
        });
    }
}
