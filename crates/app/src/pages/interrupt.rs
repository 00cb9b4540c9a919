//! Interrupting a run: what it does, said before it is done.

use domain::text::DeliveryId;

use super::Visit;
use super::confirm::{self, Crumbs, DELIVERY, Question};
use super::form::Form;
use super::frame::Place;
use super::html;
use crate::api::failure::Failure;
use crate::api::runs::Again;
use crate::api::server::Answer;
use crate::api::wire::WorkBody;
use crate::api::{order, work};
use crate::error_code::ErrorCode;
use crate::view::effect;

/// Says what interrupting would do.
pub(super) async fn confirm(visit: &Visit) -> Answer {
    let work = work::one(&visit.daemon, visit.asked.id()).await?;
    need_run(&work, "interrupt")?;
    let question = Question {
        place: Place::Work,
        crumbs: Crumbs::of_work(&work, "Interrupt"),
        title: format!("Interrupt the run of {}?", confirm::name(&work)),
        effects: effect::of_interrupting(&work),
        command: format!("open-conduit work interrupt {}", work.id),
        action: format!("/work/{}/interrupt", work.id),
        delivery_id: Some(Again::fresh_delivery_id(&visit.daemon).to_string()),
        button: "Interrupt run",
        is_danger: true,
        keep: "Let it run",
    };
    confirm::ask(visit, question).await
}

/// Interrupts it.
pub(super) async fn interrupt(visit: &Visit) -> Answer {
    let form = Form::read(visit, &[DELIVERY])?;
    let delivery_id = DeliveryId::new(form.need(DELIVERY)?)?;
    let ordered = order::end(&visit.daemon, visit.asked.id(), Some(delivery_id)).await?;
    Ok(html::see(&format!("/work/{}", ordered.work)))
}

/// A Work has a run to give an order to.
///
/// # Errors
/// `no_live_run`.
pub(super) fn need_run(work: &WorkBody, verb: &str) -> Result<(), Failure> {
    if work.run.is_some() {
        return Ok(());
    }
    let detail = format!("no run of {} is going on, so there is none to {verb}", work.id);
    Err(Failure::new(ErrorCode::NoLiveRun, detail))
}
