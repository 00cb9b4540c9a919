//! Running again: a new Event from the operator that says what the trigger of a run said.
//!
//! Nothing is replayed. The old Event stays what it was, with its delivery and its checkpoint; the new one is
//! accepted, asks the routes of today, and leads to whatever they say.

use std::sync::Arc;

use domain::causal::Origin;
use domain::delivery::{Delivery, MANUAL_SOURCE};
use domain::event::Payload;
use domain::id::{IdMaker, WorkId};
use domain::text::{DeliveryId, EventType, SourceName};
use hyper::StatusCode;

use crate::api::events;
use crate::api::explain;
use crate::api::failure::Failure;
use crate::api::server::{Answer, Asked, json};
use crate::api::wire::{AcceptedBody, AgainBody, EventBody, ExplainBody, ExplanationBody, RunBody};
use crate::daemon::Daemon;
use crate::error_code::ErrorCode;

/// A run that can be run again, with what its trigger said.
#[derive(Debug)]
pub(crate) struct Again {
    /// The run.
    pub(crate) run: RunBody,
    /// Its trigger.
    pub(crate) trigger: EventBody,
    payload: Payload,
}

impl Again {
    /// Whether a run can be run again at all, as far as the run itself tells.
    ///
    /// # Errors
    /// `work_conflict` while it goes on, `reserved_type` when an Event of the runtime's own started it.
    pub(crate) fn admit(run: &RunBody) -> Result<(), Failure> {
        if run.ended_at.is_none() {
            let detail = "the run has not ended; cancel its Work, or wait for its end, and run it again then";
            return Err(Failure::new(ErrorCode::WorkConflict, detail));
        }
        if run.trigger.event_type.starts_with("core.") {
            let detail = "an Event of the runtime's own started this run, and nobody else may send one; `runs why` \
                          names the Event that its chain began with";
            return Err(Failure::new(ErrorCode::ReservedType, detail));
        }
        Ok(())
    }

    /// Reads what running again would send.
    ///
    /// # Errors
    /// As [`Self::admit`]; `not_found` when there is no such run or its trigger's payload is no longer kept.
    pub(crate) async fn of(daemon: &Daemon, text: &str) -> Result<Self, Failure> {
        let run = super::one(daemon, text).await?;
        Self::admit(&run)?;
        let (trigger, payload) = events::one(daemon, &run.trigger.event).await?;
        let payload = payload.ok_or_else(|| {
            Failure::not_found(
                "the payload of the run's trigger is no longer kept; send a new Event with `events emit`",
            )
        })?;
        Ok(Self { run, trigger, payload })
    }

    /// What it would do now.
    ///
    /// # Errors
    /// As [`explain::explanation`].
    pub(crate) async fn explanation(&self, daemon: &Arc<Daemon>) -> Result<ExplanationBody, Failure> {
        let body = ExplainBody {
            scope: Some(self.trigger.scope.clone()),
            event_type: Some(self.trigger.event_type.clone()),
            key: self.trigger.key.clone(),
            work: self.trigger.work.clone(),
            payload: serde_json::from_slice(self.payload.as_bytes()).ok(),
            ..ExplainBody::default()
        };
        explain::explanation(daemon, body).await
    }

    /// A delivery id that nobody else has.
    pub(crate) fn fresh_delivery_id(daemon: &Daemon) -> DeliveryId {
        events::fresh_delivery_id(daemon.store().ids(IdMaker::event))
    }

    /// Sends it. The same delivery id sends it once.
    ///
    /// # Errors
    /// Why the Event was refused, and what writing to the store answers.
    pub(crate) async fn send(
        self,
        daemon: &Daemon,
        delivery_id: DeliveryId,
    ) -> Result<AcceptedBody, Failure> {
        let delivery = Delivery {
            id: daemon.store().ids(IdMaker::event),
            source: SourceName::known(MANUAL_SOURCE),
            delivery_id,
            event_type: EventType::new(&self.trigger.event_type)?,
            scope: self.trigger.scope.parse()?,
            key: self.trigger.key.as_ref().map(events::key).transpose()?,
            work: self.trigger.work.map(|work| work.parse::<WorkId>()).transpose()?,
            occurred_at: None,
            payload: self.payload,
            origin: Origin::Root,
        };
        let accepted = events::accept(daemon, delivery).await?;
        if !accepted.duplicate {
            tracing::info!(run = self.run.id, event = accepted.event, "an operator ran a run again");
        }
        Ok(accepted)
    }
}

/// Sends what the trigger of a run said, as a new Event from the operator: 202 for a new one, 200 for one that was
/// accepted before.
pub(crate) async fn again(daemon: &Arc<Daemon>, asked: Asked) -> Answer {
    let id = asked.id().to_owned();
    let header = events::idempotency_key(&asked.parts)?;
    let body: AgainBody = asked.json_or_empty().await?;
    let delivery_id = body.delivery_id.as_deref().map(DeliveryId::new).transpose()?.or(header);
    let delivery_id = delivery_id.unwrap_or_else(|| Again::fresh_delivery_id(daemon));
    let accepted = Again::of(daemon, &id).await?.send(daemon, delivery_id).await?;
    let mut response = json(&accepted);
    *response.status_mut() = if accepted.duplicate { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok(response)
}
