//! What an action of an operator does, said before it is done: a sentence for each effect, in the order in which they
//! matter.

use super::event::because;
use super::time;
use crate::api::wire::{EventBody, WorkBody};

/// One thing that happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Effect {
    /// The name of its shape in the sprite.
    pub(crate) icon: &'static str,
    /// What happens.
    pub(crate) sentence: String,
    /// Whether it cannot be taken back.
    pub(crate) is_final: bool,
}

impl Effect {
    fn new(icon: &'static str, sentence: impl Into<String>) -> Self {
        Self { icon, sentence: sentence.into(), is_final: false }
    }

    /// What a route would say.
    pub(crate) fn of_route(sentence: String) -> Self {
        Self::new("i-route", sentence)
    }

    /// The same as what cannot be taken back.
    fn for_good(self) -> Self {
        Self { is_final: true, ..self }
    }
}

/// What cancelling a Work does.
pub(crate) fn of_cancelling(work: &WorkBody) -> Vec<Effect> {
    let mut effects = Vec::new();
    if let Some(run) = &work.run {
        effects.push(Effect::new("i-stop", format!("{run} is stopped. Its output and its files stay.")));
    }
    let ends = match work.lifecycle.as_str() {
        "standing" => "It stands for every input to come; this ends it for good.",
        _other => "This ends it for good.",
    };
    if work.wait.is_some() {
        effects.push(Effect::new("i-wait", "What it waits for starts nothing any more."));
    }
    effects.push(Effect::new("i-cancel", ends).for_good());
    let pending = work.pending.as_ref().map_or(0, Vec::len);
    if let Ok(pending @ 1..) = i64::try_from(pending) {
        let inputs = super::count(pending, "pending input is", "pending inputs are");
        effects.push(Effect::new("i-drop", format!("{inputs} never taken in.")));
    }
    let later = match work.keys.as_slice() {
        [] => "Later Events that name it are recorded and start nothing.".to_owned(),
        keys => format!(
            "Its key `{}` stays its own: later Events with it are recorded and start nothing.",
            super::keys(keys)
        ),
    };
    effects.push(Effect::new("i-skip", later));
    effects
}

/// What interrupting the run of a Work does.
pub(crate) fn of_interrupting(work: &WorkBody) -> Vec<Effect> {
    let run = work.run.as_deref().unwrap_or("Its run");
    let stops = format!("{run} loses its authority and is stopped. Its output and its files stay.");
    let mut effects = vec![Effect::new("i-stop", stops).for_good()];
    let pending = i64::try_from(work.pending.as_ref().map_or(0, Vec::len)).unwrap_or(i64::MAX);
    effects.push(match pending {
        0 => Effect::new("i-wait", "The Work stays. No input is pending, so it rests until its next one."),
        pending => {
            let inputs = super::count(pending, "pending input", "pending inputs");
            Effect::new(
                "i-retry",
                format!("The Work stays. Its next run takes in its {inputs}, once this one has stopped."),
            )
        }
    });
    effects
        .push(Effect::new("i-skip", "It counts as no failure, and what the run took in is not given again."));
    effects
}

/// What giving the run of a Work something to take in does.
pub(crate) fn of_injecting(work: &WorkBody) -> Vec<Effect> {
    let run = work.run.as_deref().unwrap_or("Its run");
    vec![
        Effect::new("i-events", "An Event is sent, from you, and kept."),
        Effect::new(
            "i-play",
            format!(
                "{run} is given it while it goes on. Until it proves that it took it in, it is input of the next run."
            ),
        ),
        Effect::new("i-skip", "If the run ends first, the Event waits for the next one."),
    ]
}

/// What asking for the next run of a Work that failed does.
pub(crate) fn of_retrying(work: &WorkBody) -> Vec<Effect> {
    let mut effects = vec![Effect::new(
        "i-retry",
        "An Event, `core.retry.requested`, is sent, from you, and kept. The next run starts for it.",
    )];
    if let Some(at) = work.retry.as_ref().and_then(|retry| retry.due_at.as_deref()) {
        effects
            .push(Effect::new("i-play", format!("It does not wait until {} any more.", time::absolute(at))));
    }
    let pending = i64::try_from(work.pending.as_ref().map_or(0, Vec::len)).unwrap_or(i64::MAX);
    if pending > 0 {
        let inputs = super::count(pending, "pending input", "pending inputs");
        effects.push(Effect::new("i-events", format!("That run takes in its {inputs}, in order.")));
    }
    effects.push(Effect::new("i-skip", "Its failures in a row are counted anew from there."));
    effects
}

/// What releasing a held Work does.
pub(crate) fn of_releasing(work: &WorkBody) -> Vec<Effect> {
    let mut effects = Vec::new();
    if let Some(hold) = &work.hold {
        effects.push(Effect::new("i-held", format!("It is held{}.", because(Some(&hold.reason), None))));
        effects.push(match hold.because.as_str() {
            "budget" => Effect::new(
                "i-play",
                "One more turn goes through, whatever it uses. Then the budget counts again, and may hold it again.",
            ),
            "gate" => Effect::new("i-play", "Its first run starts without a word of its gate."),
            "wake_refused" => Effect::new(
                "i-play",
                "It goes on with what ended its Wait, on your word, although its chain of Events is used up.",
            ),
            // A later daemon may know more reasons.
            _other => Effect::new("i-play", "It goes on."),
        });
    }
    let pending = i64::try_from(work.pending.as_ref().map_or(0, Vec::len)).unwrap_or(i64::MAX);
    if pending > 0 {
        let inputs = super::count(pending, "pending input", "pending inputs");
        effects.push(Effect::new("i-events", format!("Its next run takes in its {inputs}, in order.")));
    }
    effects.push(Effect::new("i-skip", "Limits, routes and other Works stay as they are."));
    effects
}

/// What replaying an Event does, but for what the routes say to it.
pub(crate) fn of_replaying(event: &EventBody) -> Vec<Effect> {
    let id = &event.id;
    vec![
        Effect::new(
            "i-events",
            format!(
                "A new Event, `core.replay.requested`, says what {id} said, with the same payload. It follows from that one, within the bounds of its chain."
            ),
        ),
        Effect::new("i-skip", "What became of the first one stays as it is."),
    ]
}

/// What pausing a scope does.
pub(crate) fn of_pausing(scope: &str) -> Vec<Effect> {
    vec![
        Effect::new(
            "i-held",
            format!(
                "Nothing of scope `{scope}` starts any more, nor of what descends from it. That lasts over restarts."
            ),
        ),
        Effect::new("i-run", "What runs now goes on to its end."),
        Effect::new(
            "i-events",
            "Events are accepted and routed. They wait in order, as input of their Works.",
        ),
        Effect::new("i-retry", "Resuming it lets everything start again."),
    ]
}

/// What resuming a scope does.
pub(crate) fn of_resuming(scope: &str) -> Vec<Effect> {
    vec![
        Effect::new(
            "i-play",
            format!(
                "Works of scope `{scope}`, and of what descends from it, start again. Who has waited for longest goes first."
            ),
        ),
        Effect::new("i-work", "No more of them run at once than `concurrency` allows."),
    ]
}

#[cfg(test)]
mod tests {
    use super::{Effect, of_cancelling, of_injecting, of_interrupting, of_releasing};
    use crate::api::wire::{HoldBody, WorkBody};

    fn work() -> WorkBody {
        serde_json::from_value(serde_json::json!({
            "id": "work_1", "scope": "main", "kind": "match.keyed", "lifecycle": "standing", "state": "ready",
            "queue": "blocked", "blocked_by": "held:main", "keys": [{ "source": "ci", "external_id": "a" }],
            "attempts": 1, "failures": 0, "pending": ["ev_1", "ev_2"], "run": "run_1",
            "created_at": "2026-03-10T10:00:00Z", "revision": 1, "controls": [], "orders": [],
        }))
        .unwrap()
    }

    #[test]
    fn every_action_says_what_it_does() {
        let said = |effects: Vec<Effect>| {
            let lines = effects.iter().map(|effect| {
                format!(
                    "{} {}{}",
                    effect.icon,
                    effect.sentence,
                    if effect.is_final { " (final)" } else { "" }
                )
            });
            lines.collect::<Vec<_>>().join("\n")
        };
        let held = |because: &str| WorkBody {
            hold: Some(HoldBody {
                because: because.to_owned(),
                reason: "the budget is used up".to_owned(),
                since: "2026-03-10T11:00:00Z".to_owned(),
            }),
            ..work()
        };
        let told = [
            of_cancelling(&work()),
            of_interrupting(&work()),
            of_injecting(&work()),
            of_releasing(&held("budget")),
            of_releasing(&held("gate")),
            of_releasing(&held("wake_refused")),
        ];
        insta::assert_snapshot!(told.map(said).join("\n\n"));
    }
}
