//! An Event: where it came from, and what became of it.

use domain::time::Timestamp;

use super::{Field, Tone, Word, time, word};
use crate::api::wire::EventBody;

/// A line of a list of Events.
#[derive(Debug, Clone)]
pub(crate) struct EventRow {
    pub(crate) id: String,
    pub(crate) event_type: String,
    pub(crate) source: String,
    /// What became of it, and how often its delivery came again.
    pub(crate) result: Word,
    pub(crate) accepted: String,
}

impl EventRow {
    pub(crate) fn new(event: &EventBody, now: Timestamp) -> Self {
        Self {
            id: event.id.clone(),
            event_type: event.event_type.clone(),
            source: event.source.clone(),
            result: result(event),
            accepted: time::ago(&event.accepted_at, now),
        }
    }
}

fn result(event: &EventBody) -> Word {
    let mut result = match &event.checkpoint {
        Some(checkpoint) => word::state(&checkpoint.outcome),
        None => Word::new("waits", Tone::Active),
    };
    if let Some(redelivered) = &event.redelivered {
        result.text = format!("{}, +{}", result.text, redelivered.count);
    }
    result
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
    if let Some(parent) = &event.parent {
        fields.push(Field::new("caused by", parent.as_str()));
        fields.push(Field::new("first cause", format!("{}, depth {}", event.root, event.depth)));
    }
    if let Some(run) = &event.emitted_by {
        fields.push(Field::new("published by", run.as_str()));
    }
    fields.push(Field::new("result", result(event)));
    fields
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
        "routed" => {
            let work = checkpoint.work.as_deref().unwrap_or("a Work");
            format!("Route `{route}` (generation {generation}) made it input of {work}.")
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
