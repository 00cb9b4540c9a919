//! Acceptance, and the bounds of chains.

use domain::event::Key;
use domain::id::{EventId, Sequence, WorkId};
use domain::route::CheckpointOutcome;
use domain::text::{DeliveryId, EventType, SourceName};

use super::{Bounds, Fault, Lane, Reference, Refusal};
use crate::driver::{Answer, CheckpointRecord, Delivery, EventRecord, RejectionRecord, delivery};

impl Reference {
    pub(super) fn accept(&mut self, delivery: Delivery) -> Result<Answer, Refusal> {
        if !self.breaks(Fault::DedupForgotten) {
            let (source, id) = (&delivery.source, &delivery.id);
            let known = self.events.iter_mut().find(|event| event.source == *source && event.delivery == *id);
            if let Some(known) = known {
                known.redelivered += 1;
                return Ok(Answer::Original(known.id));
            }
        }
        let scope = self.scopes.get(&delivery.scope).ok_or("unknown_scope")?;
        let mut bounds = Bounds {
            depth: i64::from(scope.text.causal_max_depth),
            per_minute: i64::from(scope.text.causal_per_minute),
        };
        self.check_target(&delivery)?;
        let number = self.number();
        let id = EventId::from_number(number);
        let (root, depth) = match delivery.parent {
            None => (id, 0),
            Some(parent) => {
                let parent = self.events.iter().find(|event| event.id == parent).ok_or("unknown_parent")?;
                let (root, depth) = (parent.root, parent.depth + 1);
                bounds = self.bounds[&root];
                self.charge(&delivery, root, depth, bounds)?;
                (root, depth)
            }
        };
        self.bounds.insert(root, bounds);
        self.events.push(EventRecord {
            id,
            sequence: Sequence::from_number(number),
            source: delivery.source.clone(),
            delivery: delivery.id.clone(),
            event_type: delivery.event_type.clone(),
            scope: delivery.scope.clone(),
            key: delivery.key.clone(),
            work: delivery.work,
            parent: delivery.parent,
            root,
            depth,
            emitted_by: delivery.emitted_by,
            redelivered: 0,
            checkpoint: None,
        });
        self.said.insert(id, delivery);
        Ok(Answer::Accepted(id))
    }

    /// A delivery that names a Work is of its scope, and a key beside it leads there already.
    fn check_target(&self, delivery: &Delivery) -> Result<(), Refusal> {
        let Some(id) = delivery.work else { return Ok(()) };
        let work = self.find_work(id).ok_or("unknown_work")?;
        if work.record.scope != delivery.scope {
            return Err("scope_mismatch");
        }
        let leads_there = |key: &Key| self.owner(key) == Some(id);
        if delivery.key.as_ref().is_some_and(|key| !leads_there(key))
            && !self.breaks(Fault::ContradictionIsResolved)
        {
            return Err("key_mismatch");
        }
        Ok(())
    }

    /// Charges a derived Event to its root, or keeps a record of why not.
    fn charge(
        &mut self,
        delivery: &Delivery,
        root: EventId,
        depth: i64,
        bounds: Bounds,
    ) -> Result<(), Refusal> {
        let minute = self.now.as_seconds().div_euclid(60);
        let charged = self.charged.get(&(root, minute)).copied().unwrap_or(0);
        let refusal = if depth > bounds.depth {
            Some("depth_limit")
        } else if charged >= bounds.per_minute {
            Some("rate_limit")
        } else {
            None
        };
        if let Some(code) = refusal
            && !self.breaks(Fault::BoundsAreBypassed)
        {
            let again =
                |record: &RejectionRecord| record.source == delivery.source && record.delivery == delivery.id;
            // A refusal that is repeated is one record.
            self.rejections.retain(|record| !again(record));
            self.rejections.push(RejectionRecord {
                source: delivery.source.clone(),
                delivery: delivery.id.clone(),
                parent: delivery.parent.expect("only what is derived is charged"),
                root,
                depth,
                code: code.to_owned(),
            });
            return Err(code);
        }
        self.charged.insert((root, minute), charged + 1);
        Ok(())
    }

    /// Accepts what the runtime itself says about a Work, with its checkpoint.
    pub(super) fn say(
        &mut self,
        id: &str,
        event_type: &str,
        work: WorkId,
        parent: Option<EventId>,
    ) -> Result<EventId, Refusal> {
        let said = Delivery {
            parent,
            source: SourceName::known("core"),
            id: DeliveryId::known(id),
            event_type: EventType::known(event_type),
            scope: self.work(work).record.scope.clone(),
            ..delivery("replaced").to(work)
        };
        match self.accept(said)? {
            Answer::Accepted(event) => {
                self.mark(event, CheckpointOutcome::Routed, Some(work), Some("core"));
                Ok(event)
            }
            Answer::Original(_)
            | Answer::Done
            | Answer::Attempts(_)
            | Answer::Refused(_)
            | Answer::Lacking(_) => Err("said_before"),
        }
    }

    /// Publishes what the runtime has to say about an attempt: it is nobody's input unasked, and whether it is
    /// accepted holds nothing up.
    pub(super) fn announce(&mut self, said: Delivery) -> Result<EventId, Refusal> {
        let wanted = self
            .scopes
            .get(&said.scope)
            .is_some_and(|scope| scope.routes.iter().any(|route| route.takes.contains(&said.event_type)));
        let Answer::Accepted(event) = self.accept(said)? else { return Err("said_before") };
        if !wanted {
            self.mark(event, CheckpointOutcome::Unmatched, None, None);
        }
        Ok(event)
    }

    /// Writes a checkpoint without a route.
    pub(super) fn mark(
        &mut self,
        event: EventId,
        outcome: CheckpointOutcome,
        work: Option<WorkId>,
        code: Option<&str>,
    ) {
        let generation = domain::id::Generation::from_number(self.generation);
        self.event_mut(event).checkpoint = Some(CheckpointRecord {
            outcome,
            route: None,
            policy: None,
            work,
            generation,
            code: code.map(str::to_owned),
        });
    }

    /// What orders an Event with others; announcements are ordered with nothing.
    pub(super) fn lane(event: &EventRecord) -> Option<Lane> {
        let announcement = event.event_type.is_core() && event.emitted_by.is_some();
        match (&event.key, event.work) {
            (_, _) if announcement => None,
            (Some(key), _) => Some(Lane::Key(key.clone())),
            (None, Some(work)) => Some(Lane::Work(work)),
            (None, None) => None,
        }
    }

    /// What orders Events that lead to a Work.
    pub(super) fn lanes_of(&self, work: WorkId) -> Vec<Lane> {
        self.keys_to(work).into_iter().map(Lane::Key).chain([Lane::Work(work)]).collect()
    }
}
