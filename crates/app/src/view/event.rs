//! An Event: where it came from, and what became of it.

use domain::time::Timestamp;

use super::look::{self, Look};
use super::payload::brief;
use super::{Field, Tone, Word, time, word};
use crate::api::wire::{AcceptedBody, EventBody, LedToBody};

/// A line of a list of Events.
#[derive(Debug, Clone)]
pub(crate) struct EventRow {
    pub(crate) id: String,
    pub(crate) event_type: String,
    pub(crate) source: String,
    /// What became of it, and how often its delivery came again.
    pub(crate) result: Word,
    pub(crate) look: Look,
    /// The same in a phrase that goes on where the look ends.
    pub(crate) became: String,
    /// How often its delivery came, when more than once.
    pub(crate) came: Option<String>,
    pub(crate) scope: String,
    /// `replay of ev_1`, when it is one.
    pub(crate) replay: Option<String>,
    pub(crate) accepted: String,
}

impl EventRow {
    pub(crate) fn new(event: &EventBody, now: Timestamp) -> Self {
        Self {
            id: event.id.clone(),
            event_type: event.event_type.clone(),
            source: event.source.clone(),
            result: result(event),
            look: look(event),
            became: became(event),
            came: came(event),
            scope: event.scope.clone(),
            replay: event.replays.as_ref().map(|original| format!("replay of {original}")),
            accepted: time::ago(&event.accepted_at, now),
        }
    }
}

fn result(event: &EventBody) -> Word {
    let mut result = match &event.checkpoint {
        Some(_) if is_only_announced(event) => look::announced().word(),
        Some(checkpoint) => word::state(&checkpoint.outcome),
        None => Word::new("waits", Tone::Active),
    };
    if let Some(redelivered) = &event.redelivered {
        result.text = format!("{}, +{}", result.text, redelivered.count);
    }
    result
}

/// What became of it, as it is shown.
pub(crate) fn look(event: &EventBody) -> Look {
    if is_only_announced(event) {
        return look::announced();
    }
    event.checkpoint.as_ref().map_or_else(look::unrouted, |checkpoint| look::state(&checkpoint.outcome))
}

/// Whether the runtime says it about a run and no route asks for it. Nobody misses a route for it.
fn is_only_announced(event: &EventBody) -> bool {
    let unmatched = event.checkpoint.as_ref().is_some_and(|checkpoint| checkpoint.outcome == "unmatched");
    let is_said = event.emitted_by.is_some()
        || event.event_type.starts_with("core.budget.")
        || event.event_type == "core.work.created";
    unmatched && is_said && event.event_type.starts_with("core.")
}

/// What became of it, in a phrase for a list.
fn became(event: &EventBody) -> String {
    let Some(checkpoint) = &event.checkpoint else { return "Not routed yet".to_owned() };
    let because = checkpoint.reason.as_deref().map(brief);
    let route = checkpoint.route.as_deref().map(|route| format!("route {route}"));
    match (checkpoint.outcome.as_str(), because) {
        ("routed", Some(reason)) if checkpoint.code.as_deref() == Some("operator_interrupt") => reason,
        ("routed", _) => {
            let work = checkpoint.work.as_deref().unwrap_or("a Work");
            let by = route.map(|route| format!(" by {route}")).unwrap_or_default();
            format!("Input of {work}{by}")
        }
        ("unmatched", _) if is_only_announced(event) => "No route asks for it".to_owned(),
        ("unmatched", _) => "No route takes it".to_owned(),
        (_other, Some(reason)) => reason,
        (_other, None) => route.map(|route| format!("By {route}")).unwrap_or_default(),
    }
}

/// How often its delivery came, when more than once.
pub(crate) fn came(event: &EventBody) -> Option<String> {
    let redelivered = event.redelivered.as_ref()?;
    Some(format!("came {} times", redelivered.count.saturating_add(1)))
}

/// What it led to so far, in a few words for each.
pub(crate) fn led_to(led: &LedToBody) -> Vec<String> {
    let run = led
        .run
        .as_ref()
        .map(|run| format!("{}, attempt {}, {}", run.run, run.attempt, look::state(&run.state).word));
    let pending = led.pending.then(|| "a run to come: its Work keeps it".to_owned());
    let events = led.events.iter().map(|event| format!("{} {}", event.event, event.event_type));
    run.into_iter().chain(pending).chain(events).collect()
}

/// Everything there is to say about an Event, but its payload.
pub(crate) fn fields(event: &EventBody, now: Timestamp) -> Vec<Field> {
    let mut fields = vec![
        Field::new("event", event.id.as_str()),
        Field::new("type", event.event_type.as_str()),
        Field::new("source", event.source.as_str()),
        Field::new("delivery", event.delivery_id.as_str()),
        Field::new("scope", event.scope.as_str()),
    ];
    if let Some(key) = &event.key {
        fields.push(Field::new("key", super::key(key)));
    }
    if let Some(work) = &event.work {
        fields.push(Field::new("addressed to", work.as_str()));
    }
    let accepted = format!("{} ({})", time::absolute(&event.accepted_at), time::ago(&event.accepted_at, now));
    fields.push(Field::new("accepted", accepted));
    if let Some(at) = &event.occurred_at {
        fields.push(Field::new("occurred", time::absolute(at)));
    }
    if let Some(original) = &event.replays {
        fields.push(Field::new("replays", original.as_str()));
    }
    if let Some(parent) = &event.parent {
        fields.push(Field::new("caused by", parent.as_str()));
        fields.push(Field::new("first cause", format!("{}, depth {}", event.root, event.depth)));
    }
    if let Some(run) = &event.emitted_by {
        fields.push(Field::new("published by", run.as_str()));
    }
    fields.push(Field::new("result", result(event)));
    let led = event.led_to.as_ref().map(led_to).unwrap_or_default();
    fields.extend(led.into_iter().map(|led| Field::new("led to", led)));
    fields
}

/// What accepting an Event came to.
pub(crate) fn acceptance(accepted: &AcceptedBody) -> String {
    let event = &accepted.event;
    if accepted.duplicate {
        format!("{event} was accepted before, with the same delivery id. Nothing new happened.")
    } else {
        format!("{event} accepted")
    }
}

/// What became of an Event, in one sentence.
pub(crate) fn fate(event: &EventBody) -> String {
    let Some(checkpoint) = &event.checkpoint else {
        return "It waits to be routed.".to_owned();
    };
    let generation = checkpoint.generation;
    let because = because(checkpoint.reason.as_deref(), checkpoint.code.as_deref());
    let route = checkpoint.route.as_deref().unwrap_or("?");
    match checkpoint.outcome.as_str() {
        "routed" if checkpoint.code.as_deref() == Some("operator_interrupt") => {
            format!("It is an order and no input{because}.")
        }
        "routed" => {
            let work = checkpoint.work.as_deref().unwrap_or("a Work");
            match &checkpoint.route {
                Some(route) if matches!(checkpoint.code.as_deref(), Some("fallback" | "run_over")) => {
                    format!("Route `{route}` (generation {generation}) made it input of {work}{because}.")
                }
                Some(route) => format!("Route `{route}` (generation {generation}) made it input of {work}."),
                // What asks for the next run of a Work needs no route.
                None => format!("It became input of {work}{because}."),
            }
        }
        "unmatched" if is_only_announced(event) => {
            "It only tells of a run: no route asks for it, and it changed nothing.".to_owned()
        }
        "unmatched" => {
            format!(
                "It changed nothing: no route of scope `{}` matched it (generation {generation}).",
                event.scope
            )
        }
        "dropped" => {
            format!("It changed nothing: route `{route}` (generation {generation}) dropped it{because}.")
        }
        "terminal" => format!("It changed nothing, because its Work could take no more input{because}."),
        "quarantined" => format!("It was set aside so that others could go on{because}."),
        // A later daemon may know more words.
        other => format!("It became `{other}`{because}."),
    }
}

/// `: reason (code)`, as far as they are known.
pub(super) fn because(reason: Option<&str>, code: Option<&str>) -> String {
    match (reason, code) {
        (Some(reason), Some(code)) => format!(": {} (`{code}`)", reason.trim_end_matches('.')),
        (Some(reason), None) => format!(": {}", reason.trim_end_matches('.')),
        (None, Some(code)) => format!(": `{code}`"),
        (None, None) => String::new(),
    }
}

/// How often a delivery came again, when it did.
pub(crate) fn repeats(event: &EventBody) -> Option<String> {
    let redelivered = event.redelivered.as_ref()?;
    let times = super::count(redelivered.count, "more time", "more times");
    let last = time::absolute(&redelivered.last_at);
    Some(format!("The same delivery came {times}, last at {last}, and changed nothing."))
}
