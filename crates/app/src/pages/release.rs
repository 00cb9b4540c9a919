//! Releasing a held Work: why it is held and what releasing does, said before it is done.

use super::Visit;
use super::confirm::{self, Crumbs, Question};
use super::form::Form;
use super::frame::Place;
use super::html;
use crate::api::failure::Failure;
use crate::api::server::Answer;
use crate::api::work;
use crate::error_code::ErrorCode;
use crate::view;
use crate::view::effect;

/// Says what releasing would do.
pub(super) async fn confirm(visit: &Visit) -> Answer {
    let work = work::one(&visit.daemon, visit.asked.id()).await?;
    if !view::work::can_release(&work) {
        let detail = format!("{} is not held, so there is nothing to release", work.id);
        return Err(Failure::new(ErrorCode::WorkConflict, detail));
    }
    let question = Question {
        place: Place::Work,
        crumbs: Crumbs::of_work(&work, "Release"),
        title: format!("Release Work {}?", confirm::name(&work)),
        effects: effect::of_releasing(&work),
        command: format!("open-conduit work release {}", work.id),
        action: format!("/work/{}/release", work.id),
        delivery_id: None,
        button: "Release",
        is_danger: false,
        keep: "Keep it held",
    };
    confirm::ask(visit, question).await
}

/// Lets it go on.
pub(super) async fn release(visit: &Visit) -> Answer {
    Form::read(visit, &[])?;
    let released = work::let_go(&visit.daemon, visit.asked.id()).await?;
    Ok(html::see(&format!("/work/{}", released.id)))
}
