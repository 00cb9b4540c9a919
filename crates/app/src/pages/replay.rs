//! Replaying an Event: what it would do now, said before it is done.

use domain::text::DeliveryId;

use super::Visit;
use super::confirm::{self, Crumbs, DELIVERY, Question};
use super::form::Form;
use super::frame::Place;
use super::html;
use crate::api::failure::Failure;
use crate::api::runs::Again;
use crate::api::server::Answer;
use crate::api::wire::ExplainBody;
use crate::api::{events, explain, replay};
use crate::error_code::ErrorCode;
use crate::view::effect::{self, Effect};

/// Says what replaying would do.
pub(super) async fn confirm(visit: &Visit) -> Answer {
    let (event, payload) = events::one(&visit.daemon, visit.asked.id()).await?;
    if !replay::is_offered(&event, payload.is_some()) {
        let detail = format!(
            "{} cannot be replayed: it is not routed yet, it was an order, or its payload was released",
            event.id
        );
        return Err(Failure::new(ErrorCode::NotReplayable, detail));
    }
    let asked = ExplainBody { event: Some(event.id.clone()), ..ExplainBody::default() };
    let mut effects = effect::of_replaying(&event);
    effects.extend(match Box::pin(explain::explanation(&visit.daemon, asked)).await {
        Ok(found) => found.sentences.into_iter().map(Effect::of_route).collect::<Vec<_>>(),
        Err(failure) => {
            vec![Effect::of_route(format!("What the routes would say cannot be told: {}.", failure.detail()))]
        }
    });
    let path = format!("/events/{}", event.id);
    let question = Question {
        place: Place::Events,
        crumbs: Crumbs {
            list: ("/events", "Events"),
            subject: (path.clone(), event.event_type.clone()),
            here: "Replay",
        },
        title: format!("Replay {}?", event.event_type),
        effects,
        command: format!("open-conduit events replay {}", event.id),
        action: format!("{path}/replay"),
        delivery_id: Some(Again::fresh_delivery_id(&visit.daemon).to_string()),
        button: "Replay",
        is_danger: false,
        keep: "Leave it",
    };
    confirm::ask(visit, question).await
}

/// Has it looked at again, and shows the Event that repeats it.
pub(super) async fn replay(visit: &Visit) -> Answer {
    let form = Form::read(visit, &[DELIVERY])?;
    let delivery_id = DeliveryId::new(form.need(DELIVERY)?)?;
    let accepted = replay::look_again(&visit.daemon, visit.asked.id(), Some(delivery_id)).await?;
    Ok(html::see(&format!("/events/{}", accepted.event)))
}
