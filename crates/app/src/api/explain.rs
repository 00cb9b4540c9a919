//! What an Event would do, said without doing it.

use std::str::FromStr;
use std::sync::Arc;

use domain::causal::Origin;
use domain::delivery::{Delivery, MANUAL_SOURCE};
use domain::event::Payload;
use domain::id::{EventId, Generation, IdMaker};
use domain::route::CheckpointOutcome;
use domain::text::{EventType, ScopeName, SourceName};
use runtime::ActiveGeneration;
use runtime::explain::{Answered, Explanation, Fate, Subject};

use super::config;
use super::events::{fresh_delivery_id, key};
use super::failure::Failure;
use super::pause;
use super::resolve;
use super::server::{Answer, Asked, json, read};
use super::story;
use super::wire::{AskedBody, ExplainBody, ExplanationBody, KeyBody};
use crate::daemon::Daemon;
use crate::error_code::ErrorCode;

/// Says what an Event would do.
pub(crate) async fn explain(daemon: &Arc<Daemon>, asked: Asked) -> Answer {
    let body: ExplainBody = asked.json().await?;
    Ok(json(&explanation(daemon, body).await?))
}

/// What an Event would do, against the generation in force or a proposed configuration. No effect.
///
/// # Errors
/// `invalid_config` with everything that is wrong with a proposed one; `bad_request`, `unknown_scope`, `not_found`
/// and their like for an Event that cannot be.
pub(crate) async fn explanation(daemon: &Arc<Daemon>, body: ExplainBody) -> Result<ExplanationBody, Failure> {
    let (active, generation) = match &body.config {
        None => {
            let active = daemon.runtime().generations().active();
            let number = active.number.number();
            (active, Some(number))
        }
        Some(text) => (Arc::new(proposed(daemon, text, body.format.as_deref())?), None),
    };
    let subject = subject(daemon, body).await?;
    let explanation = daemon.runtime().explain(&active, subject).await?;
    let explanation = explanation.ok_or_else(|| Failure::not_found("no such Event"))?;
    let mut body = explained(&explanation, generation);
    if let Fate::Decided { outcome: CheckpointOutcome::Routed, .. } = explanation.fate
        && let Some(scope) = active.scope(&explanation.event.scope)
    {
        let lineage = scope.scope.lineage.iter().map(ScopeName::as_str);
        body.paused = pause::standing(daemon).await?.of(lineage);
        body.sentences.extend(body.paused.as_ref().map(story::of_pause));
    }
    Ok(body)
}

fn proposed(daemon: &Daemon, text: &str, format: Option<&str>) -> Result<ActiveGeneration, Failure> {
    let format = config::format(format)?;
    let loaded = crate::config::load(text, format, daemon.extensions()).map_err(Failure::config)?;
    let number = Generation::from_number(0);
    Ok(ActiveGeneration::prepare(number, loaded.scopes, daemon.runtime().registry())?)
}

async fn subject(daemon: &Arc<Daemon>, body: ExplainBody) -> Result<Subject, Failure> {
    if let Some(event) = body.event {
        if body.scope.is_some() || body.event_type.is_some() || body.payload.is_some() || body.key.is_some() {
            return Err(Failure::bad("give either the id of an accepted Event or the fields of one"));
        }
        let id: EventId = read(daemon, "event", move |tx| resolve::event(tx, &event)).await?;
        return Ok(Subject::Accepted(id));
    }
    let (Some(scope), Some(event_type)) = (body.scope, body.event_type) else {
        return Err(Failure::bad("give `event`, or both `scope` and `type`"));
    };
    let work = match body.work {
        Some(text) => Some(read(daemon, "work", move |tx| resolve::work(tx, &text)).await?),
        None => None,
    };
    let payload = body.payload.as_ref().map_or_else(|| "null".to_owned(), ToString::to_string);
    let payload = Payload::new(payload.into_bytes())
        .map_err(|error| Failure::new(ErrorCode::PayloadTooLarge, error.to_string()))?;
    let id = daemon.store().ids(IdMaker::event);
    Ok(Subject::Described(Box::new(Delivery {
        id,
        source: SourceName::new(body.source.as_deref().unwrap_or(MANUAL_SOURCE))?,
        delivery_id: fresh_delivery_id(id),
        event_type: EventType::from_str(&event_type)?,
        scope: scope.parse()?,
        key: body.key.as_ref().map(key).transpose()?,
        work,
        occurred_at: None,
        payload,
        origin: Origin::Root,
    })))
}

fn explained(explanation: &Explanation, generation: Option<i64>) -> ExplanationBody {
    let mut body = ExplanationBody {
        generation,
        outcome: explanation.fate.as_str().to_owned(),
        route: explanation.route.as_ref().map(|route| route.route.to_string()),
        binding: explanation.route.as_ref().and_then(|route| route.binding.as_ref()).map(ToString::to_string),
        policy: explanation.route.as_ref().map(|route| route.policy.as_str().to_owned()),
        work: None,
        creates: false,
        keys: Vec::new(),
        code: None,
        reason: None,
        paused: None,
        asked: Vec::new(),
        sentences: story::of_explanation(explanation),
    };
    match &explanation.fate {
        Fate::Unmatched => {}
        Fate::Waits { earlier } => {
            body.reason = Some(format!("the Event with sequence {earlier} goes first"));
        }
        Fate::Held { code, reason }
        | Fate::Failed { code, reason, is_final: _ }
        | Fate::Refused { code, reason, is_final: _ } => {
            body.code = Some(code.to_string());
            body.reason = Some(reason.clone());
        }
        Fate::Decided { work, creates, keys, because, .. } => {
            body.work = work.filter(|_| !creates).map(|work| work.to_string());
            body.creates = *creates;
            body.keys = keys.iter().map(KeyBody::from).collect();
            if let Some((code, reason)) = because {
                body.code = Some(code.to_string());
                body.reason = Some(reason.clone());
            }
        }
    }
    body.asked = explanation.asked.iter().map(asked_body).collect();
    body
}

fn asked_body(asked: &runtime::explain::Asked) -> AskedBody {
    let answer = match asked.answer {
        Answered::NoMatch => "no_match",
        Answered::Matched => "matched",
        Answered::Failed => "failed",
        Answered::NotAsked => "not_asked",
    };
    AskedBody {
        route: asked.route.to_string(),
        handler: asked.handler.to_string(),
        takes: asked.takes.clone(),
        answer: answer.to_owned(),
    }
}
