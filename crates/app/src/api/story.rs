//! What an Event would do in sentences, one line for each route that is asked.

use domain::route::CheckpointOutcome;
use runtime::explain::{Answered, Explanation, Fate};

use super::wire::PauseBody;
use crate::view::time;

/// What an Event would do.
pub(crate) fn of_explanation(explanation: &Explanation) -> Vec<String> {
    let mut lines = Vec::new();
    for asked in &explanation.asked {
        let said = match asked.answer {
            Answered::NoMatch => "does not match",
            Answered::Matched => "matches, so later routes are not asked",
            Answered::Failed => "fails, so later routes are not asked",
            Answered::NotAsked => "is not asked, as it does not name this announcement",
        };
        lines.push(format!("Route `{}` ({}, {}) {said}.", asked.route, asked.handler, asked.takes));
    }
    let scope = &explanation.event.scope;
    let because = |because: &Option<(domain::text::Code, String)>| {
        because.as_ref().map_or_else(String::new, |(_code, reason)| format!(": {reason}"))
    };
    lines.push(match &explanation.fate {
        Fate::Unmatched => {
            format!("No route of scope `{scope}` takes it; it would be kept and start nothing.")
        }
        Fate::Held { reason, .. } => format!("It would wait: {reason}."),
        Fate::Waits { earlier } => {
            format!("It would wait behind the Event with sequence {earlier}, which is not routed yet.")
        }
        Fate::Failed { reason, is_final: true, .. } | Fate::Refused { reason, is_final: true, .. } => {
            format!("It would be set aside at once, since another try would fail the same way: {reason}.")
        }
        Fate::Failed { reason, is_final: false, .. } | Fate::Refused { reason, is_final: false, .. } => {
            format!("It would be tried again, and set aside in the end: {reason}.")
        }
        Fate::Decided { outcome, work, creates, because: why, .. } => match (outcome, work, creates) {
            (CheckpointOutcome::Routed, _, true) => {
                "It would make a new Work and be its first input.".to_owned()
            }
            (CheckpointOutcome::Routed, Some(work), false) => format!("It would be input of {work}."),
            (CheckpointOutcome::Routed, None, false) => "It would be input of a Work.".to_owned(),
            (CheckpointOutcome::Unmatched, ..) => "It would match no route.".to_owned(),
            (CheckpointOutcome::Dropped, ..) => format!("It would be dropped{}.", because(why)),
            (CheckpointOutcome::Terminal, ..) => format!("It would have no effect{}.", because(why)),
            (CheckpointOutcome::Quarantined, ..) => format!("It would be set aside{}.", because(why)),
        },
    });
    lines
}

/// What a pause of its scope means for an Event that would be input.
pub(crate) fn of_pause(pause: &PauseBody) -> String {
    format!(
        "Scope `{scope}` is paused since {since}: the Event would wait as input, and nothing would start before \
         `open-conduit scope resume {scope}`.",
        scope = pause.scope,
        since = time::absolute(&pause.since)
    )
}
