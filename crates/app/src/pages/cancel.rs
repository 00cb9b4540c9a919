//! Cancelling a Work: what it does, said before it is done.

use super::Visit;
use super::confirm::{self, Crumbs, Question};
use super::form::Form;
use super::frame::Place;
use super::html;
use crate::api::failure::Failure;
use crate::api::server::Answer;
use crate::api::work;
use crate::error_code::ErrorCode;
use crate::view::effect;

/// Says what cancelling would do.
pub(super) async fn confirm(visit: &Visit) -> Answer {
    let work = work::one(&visit.daemon, visit.asked.id()).await?;
    if work.ended_at.is_some() {
        let detail = format!("{} has ended, so there is nothing to cancel", work.id);
        return Err(Failure::new(ErrorCode::TerminalWork, detail));
    }
    let question = Question {
        place: Place::Work,
        crumbs: Crumbs::of_work(&work, "Cancel"),
        title: format!("Cancel Work {}?", confirm::name(&work)),
        effects: effect::of_cancelling(&work),
        command: format!("open-conduit work cancel {}", work.id),
        action: format!("/work/{}/cancel", work.id),
        delivery_id: None,
        button: "Cancel Work",
        is_danger: true,
        keep: "Keep it",
    };
    confirm::ask(visit, question).await
}

/// Cancels it.
pub(super) async fn cancel(visit: &Visit) -> Answer {
    Form::read(visit, &[])?;
    let cancelled = work::end(&visit.daemon, visit.asked.id()).await?;
    Ok(html::see(&format!("/work/{}", cancelled.work)))
}
