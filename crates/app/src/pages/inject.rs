//! Giving a run something to take in: a form that says what that does.

use askama::Template;
use domain::text::DeliveryId;
use hyper::StatusCode;
use serde_json::json;

use super::Visit;
use super::confirm::{self, Crumbs, DELIVERY, Told};
use super::emit::Wrong;
use super::form::Form;
use super::frame::{Frame, Place};
use super::html;
use super::interrupt::need_run;
use crate::api::failure::Failure;
use crate::api::runs::Again;
use crate::api::server::Answer;
use crate::api::wire::InjectBody;
use crate::api::{order, work};
use crate::view::effect;
use crate::view::payload::quoted;

/// What the form sends.
const FIELDS: [&str; 3] = [DELIVERY, "text", "type"];

#[derive(Debug, Template)]
#[template(path = "inject.html")]
struct Shown {
    frame: Frame,
    crumbs: Crumbs,
    title: String,
    wrong: Option<Wrong>,
    effects: Vec<Told>,
    id: String,
    text: String,
    event_type: String,
    delivery_id: String,
    command: String,
}

/// Shows the form.
pub(super) async fn form(visit: &Visit) -> Answer {
    let delivery_id = Again::fresh_delivery_id(&visit.daemon).to_string();
    let id = work::one(&visit.daemon, visit.asked.id()).await?.id;
    page(visit, Typed { id, text: String::new(), event_type: String::new(), delivery_id }, None).await
}

/// Gives the run what was typed. Sending it twice gives it once.
pub(super) async fn inject(visit: &Visit) -> Answer {
    let form = Form::read(visit, &FIELDS)?;
    let text = |name: &str| form.text(name).unwrap_or_default().replace("\r\n", "\n");
    let typed = Typed {
        id: visit.asked.id().to_owned(),
        text: text("text"),
        event_type: text("type").trim().to_owned(),
        delivery_id: form.need(DELIVERY)?.to_owned(),
    };
    match give(visit, &typed).await {
        Ok(work) => Ok(html::see(&format!("/work/{work}"))),
        Err(failure) => page(visit, typed, Some(failure)).await,
    }
}

/// What was typed.
#[derive(Debug)]
struct Typed {
    id: String,
    text: String,
    event_type: String,
    delivery_id: String,
}

async fn give(visit: &Visit, typed: &Typed) -> Result<String, Failure> {
    if typed.text.trim().is_empty() {
        return Err(Failure::bad("say what the run is to take in"));
    }
    let body = InjectBody {
        event_type: Some(typed.event_type.clone()).filter(|name| !name.is_empty()),
        payload: Some(json!({ "text": typed.text })),
        delivery_id: None,
    };
    let delivery_id = DeliveryId::new(&typed.delivery_id)?;
    Ok(order::give(&visit.daemon, &typed.id, &body, Some(delivery_id)).await?.work)
}

async fn page(visit: &Visit, typed: Typed, failure: Option<Failure>) -> Answer {
    let status = failure.as_ref().map_or(StatusCode::OK, |failure| failure.code().status());
    let work = work::one(&visit.daemon, &typed.id).await?;
    if failure.is_none() {
        need_run(&work, "inject into")?;
    }
    let page = Shown {
        frame: Frame::read(visit, Place::Work).await?,
        crumbs: Crumbs::of_work(&work, "Inject"),
        title: format!("Inject into the run of {}?", confirm::name(&work)),
        wrong: failure.as_ref().map(Wrong::of),
        effects: confirm::told(visit, effect::of_injecting(&work)),
        command: command(&typed),
        id: work.id,
        text: typed.text,
        event_type: typed.event_type,
        delivery_id: typed.delivery_id,
    };
    html::with_status(status, &page)
}

/// The command that does the same; a part that cannot be typed as it is stands as its name.
fn command(typed: &Typed) -> String {
    let or = |text: &str, name: &str| {
        let plain =
            Some(text).filter(|text| !text.is_empty() && !text.contains('\n') && !text.starts_with('-'));
        plain.and_then(quoted).unwrap_or_else(|| name.to_owned())
    };
    let named = match typed.event_type.as_str() {
        "" => String::new(),
        name => format!(" --type {}", or(name, "TYPE")),
    };
    format!("open-conduit work inject {} {}{named}", typed.id, or(&typed.text, "TEXT"))
}
