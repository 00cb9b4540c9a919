//! Trying a Work again that failed: what the request does, said before it is made.

use domain::text::DeliveryId;

use super::Visit;
use super::confirm::{self, Crumbs, DELIVERY, Question};
use super::form::Form;
use super::frame::Place;
use super::html;
use crate::api::failure::Failure;
use crate::api::runs::Again;
use crate::api::server::Answer;
use crate::api::work;
use crate::error_code::ErrorCode;
use crate::view;
use crate::view::effect;

/// Says what asking for the next run would do.
pub(super) async fn confirm(visit: &Visit) -> Answer {
    let work = work::one(&visit.daemon, visit.asked.id()).await?;
    if !view::work::can_retry(&work) {
        let detail = format!("{} did not fail last, or its next run starts anyway", work.id);
        return Err(Failure::new(ErrorCode::WorkConflict, detail));
    }
    let question = Question {
        place: Place::Work,
        crumbs: Crumbs::of_work(&work, "Retry"),
        title: format!("Retry Work {}?", confirm::name(&work)),
        effects: effect::of_retrying(&work),
        command: format!("open-conduit work retry {}", work.id),
        action: format!("/work/{}/retry", work.id),
        delivery_id: Some(Again::fresh_delivery_id(&visit.daemon).to_string()),
        button: "Retry",
        is_danger: false,
        keep: "Leave it",
    };
    confirm::ask(visit, question).await
}

/// Asks for the next run.
pub(super) async fn retry(visit: &Visit) -> Answer {
    let form = Form::read(visit, &[DELIVERY])?;
    let delivery_id = DeliveryId::new(form.need(DELIVERY)?)?;
    let id = visit.asked.id();
    work::try_again(&visit.daemon, id, Some(delivery_id)).await?;
    Ok(html::see(&format!("/work/{id}")))
}
