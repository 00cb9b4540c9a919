//! Cancelling a Work: what it does, said before it is done.

use askama::Template;

use super::Visit;
use super::form::Form;
use super::frame::{Frame, Place};
use super::html;
use crate::api::failure::Failure;
use crate::api::server::Answer;
use crate::api::work;
use crate::error_code::ErrorCode;
use crate::view;
use crate::view::payload::spelled;
use crate::view::said::{self, Part};
use crate::view::work::{CancelEffect, cancel_effects};

#[derive(Debug, Template)]
#[template(path = "cancel.html")]
struct Confirm {
    frame: Frame,
    id: String,
    name: String,
    effects: Vec<(CancelEffect, Vec<Part>)>,
}

/// Says what cancelling would do.
pub(super) async fn confirm(visit: &Visit) -> Answer {
    let work = work::one(&visit.daemon, visit.asked.id()).await?;
    if work.ended_at.is_some() {
        let detail = format!("{} has ended, so there is nothing to cancel", work.id);
        return Err(Failure::new(ErrorCode::TerminalWork, detail));
    }
    let said = |effect: CancelEffect| {
        let parts = said::parts(&spelled(&effect.sentence), &visit.reader.clock);
        (effect, parts)
    };
    html::page(&Confirm {
        frame: Frame::read(visit, Place::Work).await?,
        name: work.keys.first().map_or_else(|| work.id.clone(), |key| spelled(&view::key(key))),
        effects: cancel_effects(&work).into_iter().map(said).collect(),
        id: work.id,
    })
}

/// Cancels it.
pub(super) async fn cancel(visit: &Visit) -> Answer {
    Form::read(visit, &[])?;
    let cancelled = work::end(&visit.daemon, visit.asked.id()).await?;
    Ok(html::see(&format!("/work/{}", cancelled.work)))
}
