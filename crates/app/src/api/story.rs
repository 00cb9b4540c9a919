//! What an Event would do in sentences, one line for each route that is asked.

use domain::route::CheckpointOutcome;
use runtime::explain::{Answered, Explanation, Fate};

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
        Fate::Failed { reason, .. } | Fate::Refused { reason, .. } => {
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
