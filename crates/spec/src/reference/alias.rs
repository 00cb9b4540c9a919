//! Subscriptions to what other Works own, and the aliases they are translated to.

use domain::id::EventId;
use domain::text::{DeliveryId, ScopeName, SourceName};

use super::{Fault, Reference, Refusal};
use crate::driver::{Answer, Delivery, EventRecord, Subscription, delivery};

impl Reference {
    /// Installs a subscription and translates what is accepted already. Installed again, it goes on.
    pub(super) fn subscribe(&mut self, subscription: Subscription) -> Result<Answer, Refusal> {
        let work = &self.find_work(subscription.work).ok_or("unknown_work")?.record;
        if work.state.is_terminal() {
            return Err("terminal_work");
        }
        if !work.keys.contains(&subscription.own) {
            return Err("foreign_key");
        }
        let (id, scope) = (work.id, work.scope.clone());
        if let Some(owner) = self.owner(&subscription.watched) {
            if owner == id {
                return Err("own_key");
            }
            if !self.reads(&scope, &self.work(owner).record.scope) {
                return Err("not_authorized");
            }
        }
        if subscription.after > self.last_sequence() {
            return Err("ahead");
        }
        let at = match self.subscriptions.iter().position(|known| known.id == subscription.id) {
            None => {
                self.subscriptions.push(subscription);
                self.subscriptions.len() - 1
            }
            Some(at) => {
                let known = &mut self.subscriptions[at];
                if !known.has_terms_of(&subscription) {
                    return Err("taken");
                }
                known.after = known.after.max(subscription.after);
                at
            }
        };
        for event in self.events.clone() {
            self.observe(at, &event);
        }
        Ok(Answer::Done)
    }

    fn reads(&self, reader: &ScopeName, scope: &ScopeName) -> bool {
        reader == scope || self.scopes.get(reader).is_some_and(|reader| reader.text.reads.contains(scope))
    }

    /// Makes an alias of every Event that a subscription has not observed yet and matches, in order.
    pub(super) fn translate(&mut self) {
        let mut next = 0;
        while let Some(event) = self.events.get(next).cloned() {
            let after = |known: &Subscription| known.watched_after(&event);
            if self.subscriptions.iter().any(after) && !self.comes_to() {
                return;
            }
            // Of one Event, whoever has observed least comes first.
            let mut order: Vec<usize> = (0..self.subscriptions.len()).collect();
            order.sort_by(|one, other| {
                let [one, other] = [one, other].map(|at| &self.subscriptions[*at]);
                (one.after, &one.id).cmp(&(other.after, &other.id))
            });
            for at in order {
                self.observe(at, &event);
            }
            next += 1;
        }
    }

    fn observe(&mut self, at: usize, event: &EventRecord) {
        let subscription = self.subscriptions[at].clone();
        if !subscription.watched_after(event) {
            return;
        }
        if !self.breaks(Fault::AliasIsRenamed) {
            self.subscriptions[at].after = event.sequence;
        }
        let scope = self.work(subscription.work).record.scope.clone();
        let is_of_type = subscription.types.is_empty() || subscription.types.contains(&event.event_type);
        let is_own = event.work == Some(subscription.work) && event.emitted_by.is_some();
        if is_of_type && !is_own && !event.event_type.is_core() && self.reads(&scope, &event.scope) {
            // A refusal of its chain is recorded, and ends this branch.
            let _recorded = self.alias(&subscription, event.id, &scope);
        }
    }

    fn alias(
        &mut self,
        subscription: &Subscription,
        original: EventId,
        scope: &ScopeName,
    ) -> Result<Answer, Refusal> {
        let renamed = if self.breaks(Fault::AliasIsRenamed) { self.number() } else { 0 };
        let id = format!("{}/{original}/{renamed}", subscription.id);
        self.accept(Delivery {
            source: SourceName::known("alias"),
            id: DeliveryId::known(&id),
            event_type: subscription.becomes.clone(),
            scope: scope.clone(),
            key: Some(subscription.own.clone()),
            ..delivery("replaced").to(subscription.work).because(original)
        })
    }
}
