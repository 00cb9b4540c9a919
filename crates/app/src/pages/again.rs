//! Running again: what the new Event would do, said before it is sent.

use askama::Template;
use domain::text::DeliveryId;

use super::Visit;
use super::form::Form;
use super::frame::{Frame, Place};
use super::html;
use crate::api::runs::Again;
use crate::api::server::Answer;
use crate::view;
use crate::view::payload::spelled;
use crate::view::said::{self, Part};

/// The field that makes a second press of the button the first one's.
const DELIVERY: &str = "delivery_id";

#[derive(Debug, Template)]
#[template(path = "again.html")]
struct Confirm {
    frame: Frame,
    run: String,
    title: String,
    trigger: String,
    event_type: String,
    scope: String,
    key: Option<String>,
    work: Option<String>,
    would: Vec<Vec<Part>>,
    delivery_id: String,
}

/// Says what running again would do.
pub(super) async fn confirm(visit: &Visit) -> Answer {
    let again = Again::of(&visit.daemon, visit.asked.id()).await?;
    let explanation = again.explanation(&visit.daemon).await?;
    let said = |sentence: &String| said::parts(&spelled(sentence), &visit.reader.clock);
    html::page(&Confirm {
        frame: Frame::read(visit, Place::Runs).await?,
        title: view::run::title(&again.run),
        run: again.run.id,
        would: explanation.sentences.iter().map(said).collect(),
        key: again.trigger.key.as_ref().map(|key| spelled(&view::key(key))),
        work: again.trigger.work,
        trigger: again.trigger.id,
        event_type: again.trigger.event_type,
        scope: again.trigger.scope,
        delivery_id: Again::fresh_delivery_id(&visit.daemon).to_string(),
    })
}

/// Sends the Event, and shows it.
pub(super) async fn send(visit: &Visit) -> Answer {
    let form = Form::read(visit, &[DELIVERY])?;
    let delivery_id = DeliveryId::new(form.need(DELIVERY)?)?;
    let again = Again::of(&visit.daemon, visit.asked.id()).await?;
    let accepted = again.send(&visit.daemon, delivery_id).await?;
    Ok(html::see(&format!("/events/{}", accepted.event)))
}
