//! Subscriptions to what other Works own, and the aliases they are translated to.

use domain::id::EventId;
use domain::text::{DeliveryId, ScopeName, SourceName};

use super::{Fault, Reference, Refusal};
use crate::driver::{Answer, Delivery, Subscription, delivery};

impl Reference {
    /// Installs a subscription and translates what is accepted already.
    pub(super) fn subscribe(&mut self, subscription: Subscription) -> Result<Answer, Refusal> {
        let work = &self.find_work(subscription.work).ok_or("unknown_work")?.record;
        if work.state.is_terminal() {
            return Err("terminal_work");
        }
        if !work.keys.contains(&subscription.own) {
            return Err("foreign_key");
        }
        let scope = work.scope.clone();
        if let Some(owner) = self.owner(&subscription.watched)
            && !self.reads(&scope, &self.work(owner).record.scope)
        {
            return Err("not_authorized");
        }
        self.subscriptions.retain(|known| known.id != subscription.id);
        self.subscriptions.push(subscription);
        self.translate();
        Ok(Answer::Done)
    }

    fn reads(&self, reader: &ScopeName, scope: &ScopeName) -> bool {
        reader == scope || self.scopes.get(reader).is_some_and(|reader| reader.text.reads.contains(scope))
    }

    /// Makes an alias of every Event that a subscription has not observed yet and matches.
    pub(super) fn translate(&mut self) {
        for at in 0..self.subscriptions.len() {
            let subscription = self.subscriptions[at].clone();
            let scope = self.work(subscription.work).record.scope.clone();
            let observed: Vec<_> =
                self.events.iter().filter(|event| event.sequence > subscription.after).cloned().collect();
            for event in observed {
                if !self.breaks(Fault::AliasIsRenamed) {
                    self.subscriptions[at].after = event.sequence;
                }
                let is_of_type =
                    subscription.types.is_empty() || subscription.types.contains(&event.event_type);
                let matches = event.key.as_ref() == Some(&subscription.watched) && is_of_type;
                if matches && self.reads(&scope, &event.scope) {
                    // A refusal of its chain is recorded, and ends this branch.
                    let _recorded = self.alias(&subscription, event.id, &scope);
                }
            }
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
