//! Putting the home's file in force: what that does, and the button.

use askama::Template;

use super::Visit;
use super::config::{Plan, Proposal};
use super::form::Form;
use super::frame::{Frame, Place};
use super::html;
use crate::api::config;
use crate::api::failure::Failure;
use crate::api::server::Answer;
use crate::api::wire::ApplyBody;

#[derive(Debug, Template)]
#[template(path = "apply.html")]
struct Apply {
    frame: Frame,
    plan: Plan,
}

/// Says what an apply does, and asks. Without anything to apply there is nothing to ask.
pub(super) async fn ask(visit: &Visit) -> Answer {
    match Proposal::read(visit)? {
        Proposal::Differs(plan) => {
            html::page(&Apply { frame: Frame::read(visit, Place::Config).await?, plan })
        }
        Proposal::Missing | Proposal::Same | Proposal::Wrong { .. } => Ok(html::see("/config#file")),
    }
}

/// Puts in force what the page showed, or nothing.
pub(super) async fn apply(visit: &Visit) -> Answer {
    let form = Form::read(visit, &["digest", "generation"])?;
    let generation = form.need("generation")?.parse();
    let body = ApplyBody {
        digest: Some(form.need("digest")?.to_owned()),
        generation: Some(generation.map_err(|_other| Failure::bad("`generation` is a number"))?),
        ..ApplyBody::default()
    };
    let done = Box::pin(config::put_in_force(&visit.daemon, body)).await?;
    tracing::info!(generation = done.generation, "a configuration was applied from the page");
    Ok(html::see("/config"))
}
