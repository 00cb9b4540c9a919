//! Interrupting a run: what it does, said before it is done.

use askama::Template;
use domain::text::DeliveryId;

use super::Visit;
use super::form::Form;
use super::frame::{Frame, Place};
use super::html;
use crate::api::failure::Failure;
use crate::api::runs::Again;
use crate::api::server::Answer;
use crate::api::{order, work};
use crate::error_code::ErrorCode;
use crate::view;
use crate::view::payload::spelled;
use crate::view::said::{self, Part};
use crate::view::work::{CancelEffect, interrupt_effects};

/// The field that makes a second press of the button the first one's.
const DELIVERY: &str = "delivery_id";

#[derive(Debug, Template)]
#[template(path = "interrupt.html")]
struct Confirm {
    frame: Frame,
    id: String,
    name: String,
    effects: Vec<(CancelEffect, Vec<Part>)>,
    delivery_id: String,
}

/// Says what interrupting would do.
pub(super) async fn confirm(visit: &Visit) -> Answer {
    let work = work::one(&visit.daemon, visit.asked.id()).await?;
    if work.run.is_none() {
        let detail = format!("no run of {} is going on, so there is none to interrupt", work.id);
        return Err(Failure::new(ErrorCode::NoLiveRun, detail));
    }
    let said = |effect: CancelEffect| {
        let parts = said::parts(&spelled(&effect.sentence), &visit.reader.clock);
        (effect, parts)
    };
    html::page(&Confirm {
        frame: Frame::read(visit, Place::Work).await?,
        name: work.keys.first().map_or_else(|| work.id.clone(), |key| spelled(&view::key(key))),
        effects: interrupt_effects(&work).into_iter().map(said).collect(),
        delivery_id: Again::fresh_delivery_id(&visit.daemon).to_string(),
        id: work.id,
    })
}

/// Interrupts it.
pub(super) async fn interrupt(visit: &Visit) -> Answer {
    let form = Form::read(visit, &[DELIVERY])?;
    let delivery_id = DeliveryId::new(form.need(DELIVERY)?)?;
    let ordered = order::end(&visit.daemon, visit.asked.id(), Some(delivery_id)).await?;
    Ok(html::see(&format!("/work/{}", ordered.work)))
}
