//! What an Event would do: a question with its answer, which starts nothing.

use askama::Template;
use hyper::StatusCode;

use super::Visit;
use super::emit::{Described, Wrong};
use super::form::Form;
use super::frame::{Frame, Place};
use super::html;
use crate::api::failure::Failure;
use crate::api::server::Answer;
use crate::api::wire::{ExplainBody, ExplanationBody};
use crate::api::{config, events, explain};
use crate::config::Format;
use crate::view::look::{self, Look};
use crate::view::payload::{quoted, spelled};
use crate::view::said::{self, Part};

/// What a link asks.
pub(super) const QUERY: [&str; 8] =
    ["event", "config", "scope", "type", "source", "key_source", "key_external_id", "work"];
/// What the form sends, and the form for sending an Event, which asks here first.
const FIELDS: [&str; 11] = [
    "delivery_id",
    "scope",
    "type",
    "source",
    "key_source",
    "key_external_id",
    "work",
    "payload",
    "config",
    "format",
    "text",
];

#[derive(Debug, Template)]
#[template(path = "explain.html")]
struct Page {
    frame: Frame,
    asked: Asked,
    found: Option<Found>,
    wrong: Option<Wrong>,
    command: Option<String>,
    has_file: bool,
}

/// What is asked.
#[derive(Debug, Default)]
struct Asked {
    /// An accepted Event, which is asked about as it is.
    id: Option<String>,
    event: Described,
    source: String,
    under: Under,
    is_json: bool,
    text: String,
}

/// Which configuration is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Under {
    /// The one in force.
    #[default]
    InForce,
    /// The file in the home.
    File,
    /// One that the form holds.
    Text,
}

/// What would happen.
#[derive(Debug)]
struct Found {
    look: Look,
    steps: Vec<Step>,
    fate: Vec<Part>,
    /// The configuration that was asked.
    under: String,
    binding: Option<String>,
    policy: Option<String>,
    keys: Vec<String>,
    code: Option<String>,
}

/// A route that was asked.
#[derive(Debug)]
struct Step {
    look: Look,
    route: String,
    said: Vec<Part>,
}

/// Shows the form, with the answer about an accepted Event when a link names one.
pub(super) async fn form(visit: &Visit) -> Answer {
    let query = &visit.asked.query;
    let under = Under::read(query.text("config").unwrap_or_default())?;
    let Some(id) = query.text("event") else {
        let source = query.text("source").unwrap_or_default().to_owned();
        let asked = Asked { event: Described::asked(query), source, under, ..Asked::default() };
        return page(visit, asked, None).await;
    };
    let (event, payload) = events::one(&visit.daemon, id).await?;
    let asked = Asked {
        id: Some(event.id.clone()),
        event: Described::like(&event, payload.as_ref()),
        source: event.source,
        under,
        ..Asked::default()
    };
    let answer = Box::pin(answer(visit, &asked)).await;
    page(visit, asked, Some(answer)).await
}

/// Answers what the form asks.
pub(super) async fn answered(visit: &Visit) -> Answer {
    let form = Form::read(visit, &FIELDS)?;
    let text = |name: &str| form.text(name).unwrap_or_default().replace("\r\n", "\n");
    let asked = Asked {
        id: None,
        event: Described::sent(&form),
        source: text("source"),
        under: Under::read(&text("config"))?,
        is_json: text("format") == "json",
        text: text("text"),
    };
    let answer = Box::pin(answer(visit, &asked)).await;
    page(visit, asked, Some(answer)).await
}

async fn answer(visit: &Visit, asked: &Asked) -> Result<Found, Failure> {
    let (config, format) = match asked.under {
        Under::InForce => (None, None),
        Under::File => {
            let file = config::home_file(&visit.daemon)?;
            (Some(file.text), Some(if file.format == Format::Json { "json" } else { "toml" }))
        }
        Under::Text => (Some(asked.text.clone()), Some(if asked.is_json { "json" } else { "toml" })),
    };
    let about = ExplainBody { config, format: format.map(str::to_owned), ..ExplainBody::default() };
    let body = explain::explanation(&visit.daemon, asked.about(about)?).await?;
    Ok(Found::new(body, asked.under, visit))
}

async fn page(visit: &Visit, asked: Asked, answer: Option<Result<Found, Failure>>) -> Answer {
    let (found, failure) = match answer {
        None => (None, None),
        Some(Ok(found)) => (Some(found), None),
        Some(Err(failure)) => (None, Some(failure)),
    };
    let status = failure.as_ref().map_or(StatusCode::OK, |failure| failure.code().status());
    // Without a file the answer says so; the command needs only its name.
    let file = config::home_file(&visit.daemon).ok().map(|file| file.path.display().to_string());
    let page = Page {
        has_file: file.is_some(),
        frame: Frame::read(visit, Place::Events).await?,
        command: asked.command(file.as_deref()),
        asked,
        found,
        wrong: failure.as_ref().map(Wrong::of),
    };
    html::with_status(status, &page)
}

impl Under {
    fn read(word: &str) -> Result<Self, Failure> {
        match word {
            "" | "active" => Ok(Self::InForce),
            "file" => Ok(Self::File),
            "text" => Ok(Self::Text),
            _other => Err(Failure::bad("`config` is `active`, `file` or `text`")),
        }
    }

    const fn is_file(self) -> bool {
        matches!(self, Self::File)
    }

    const fn is_text(self) -> bool {
        matches!(self, Self::Text)
    }
}

impl Asked {
    /// The question: about an accepted Event as it is, or about one that the form describes.
    fn about(&self, under: ExplainBody) -> Result<ExplainBody, Failure> {
        if self.id.is_some() {
            return Ok(ExplainBody { event: self.id.clone(), ..under });
        }
        let given = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        let payload = self.event.payload()?;
        let payload = payload.map(|payload| serde_json::from_str(payload.get()));
        Ok(ExplainBody {
            scope: given(&self.event.scope),
            event_type: given(&self.event.event_type),
            source: given(&self.source),
            key: self.event.key()?,
            work: self.event.work().map(str::to_owned),
            payload: payload.transpose().map_err(|_source| Failure::bad("the payload is not JSON"))?,
            ..under
        })
    }

    /// The command that asks the same, of the home's file or of a file with the text.
    fn command(&self, file: Option<&str>) -> Option<String> {
        let config = match self.under {
            Under::InForce => "",
            Under::File => file.unwrap_or("conduit.toml"),
            Under::Text if self.is_json => "proposed.json",
            Under::Text => "proposed.toml",
        };
        let Some(id) = &self.id else {
            return self.event.command("explain", &[("--source", self.source.trim()), ("--config", config)]);
        };
        let config = if config.is_empty() { String::new() } else { format!(" --config {}", quoted(config)?) };
        Some(format!("open-conduit events explain {id}{config}"))
    }
}

impl Found {
    fn new(body: ExplanationBody, under: Under, visit: &Visit) -> Self {
        let parts = |sentence: &str| said::parts(&spelled(sentence), &visit.reader.clock);
        // One sentence for each route that was asked, and one for what comes of it.
        let steps = body.asked.iter().zip(&body.sentences).map(|(asked, sentence)| Step {
            look: look::answer(&asked.answer),
            route: asked.route.clone(),
            said: parts(sentence),
        });
        let under = match (under, body.generation) {
            (Under::File, _) => "the edited file".to_owned(),
            (Under::Text, _) | (Under::InForce, None) => "the text below".to_owned(),
            (Under::InForce, Some(generation)) => format!("generation {generation}"),
        };
        Self {
            look: look::state(&body.outcome),
            steps: steps.collect(),
            fate: body.sentences.last().map(|sentence| parts(sentence)).unwrap_or_default(),
            under,
            binding: body.binding,
            policy: body.policy,
            keys: body.keys.iter().map(|key| spelled(&crate::view::key(key))).collect(),
            code: body.code,
        }
    }
}
