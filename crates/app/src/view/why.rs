//! Why a run started, and what did not start one: the whole story in plain sentences.
//!
//! The server fills an answer's sentences with these, so that every reader gets the same ones. What had no
//! effect is told like what had one: a missing run is asked about as often as a surprising one.

use super::{event, run, time};
use crate::api::wire::{EventBody, LaneBody, RunBody};

/// What the story is made of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WhyParts<'a> {
    /// The run.
    pub(crate) run: &'a RunBody,
    /// From the first Event of the chain to the trigger.
    pub(crate) chain: &'a [EventBody],
    /// Everything the run took in.
    pub(crate) inputs: &'a [EventBody],
    /// Events about the same Work that had no effect, newest first.
    pub(crate) without_effect: &'a [EventBody],
    /// Lanes of the Work that stand still.
    pub(crate) blocked: &'a [LaneBody],
}

/// The story, a sentence or two on a line, in the order in which things happened.
pub(crate) fn sentences(parts: &WhyParts<'_>) -> Vec<String> {
    let mut lines = chain(parts.chain);
    lines.extend(start(parts));
    lines.extend(parts.inputs.iter().filter(|input| input.id != parts.run.trigger.event).map(further_input));
    lines.push(run::ending(parts.run));
    if parts.run.unstopped {
        lines.push(
            "What it had started may still run; the daemon goes on stopping it until nothing of it is left."
                .to_owned(),
        );
    }
    let told = |event: &EventBody| parts.chain.iter().chain(parts.inputs).any(|other| other.id == event.id);
    lines.extend(parts.without_effect.iter().rev().filter(|event| !told(event)).map(without_effect));
    lines.extend(parts.blocked.iter().map(lane));
    lines
}

fn chain(events: &[EventBody]) -> Vec<String> {
    let mut lines = Vec::new();
    for (place, link) in events.iter().enumerate() {
        let at = time::absolute(&link.accepted_at);
        let arrival = if place == 0 && link.parent.is_none() {
            format!("{} `{}` arrived from `{}` at {at}.", link.id, link.event_type, link.source)
        } else if place == 0 {
            format!(
                "{} `{}` followed at {at} from a chain that began with {}.",
                link.id, link.event_type, link.root
            )
        } else {
            let by = link.emitted_by.as_ref().map(|run| format!(", published by {run}")).unwrap_or_default();
            format!("That led to {} `{}` at {at}{by}.", link.id, link.event_type)
        };
        lines.push(format!("{arrival} {}", event::fate(link)));
        lines.extend(event::repeats(link));
    }
    lines
}

fn start(parts: &WhyParts<'_>) -> Vec<String> {
    let run = parts.run;
    let by = format!("binding `{}` on executor `{}`", run.binding, run.executor);
    let mut lines = vec![format!(
        "{} is attempt {} at {}: claimed at {} for {}, by {by} (generation {}).",
        run.id,
        run.attempt,
        run.work,
        time::absolute(&run.claimed_at),
        run.trigger.event,
        run.generation,
    )];
    if run.epoch > 1 {
        let claims = super::count(run.epoch - 1, "time", "times");
        lines.push(format!(
            "A daemon took it over {claims} after its first claim; it is still the same attempt."
        ));
    }
    lines
}

fn further_input(input: &EventBody) -> String {
    let repeats = event::repeats(input).map(|sentence| format!(" {sentence}")).unwrap_or_default();
    let at = time::absolute(&input.accepted_at);
    format!(
        "It also took in {} `{}` from `{}`, accepted at {at}.{repeats}",
        input.id, input.event_type, input.source
    )
}

fn without_effect(other: &EventBody) -> String {
    let at = time::absolute(&other.accepted_at);
    let arrival = format!("{} `{}` arrived from `{}` at {at}.", other.id, other.event_type, other.source);
    let repeats = event::repeats(other).map(|sentence| format!(" {sentence}")).unwrap_or_default();
    format!("{arrival} {}{repeats}", event::fate(other))
}

fn lane(lane: &LaneBody) -> String {
    let tries = super::count(lane.tries, "try", "tries");
    let because = event::because(Some(&lane.reason), Some(&lane.code));
    let next = time::absolute(&lane.next_try_at);
    format!(
        "Later Events of this Work wait behind {}, which could not be routed after {tries}{because}; the next try \
         is at {next}.",
        lane.event
    )
}

#[cfg(test)]
mod tests {
    use super::{WhyParts, sentences};
    use crate::view::sample;

    #[test]
    fn a_whole_story_names_every_negative_fact() {
        let run = sample::run();
        let chain = [sample::event("ev_1").routed(), sample::event("ev_2").derived("ev_1", "run_0").routed()];
        let inputs =
            [sample::event("ev_2").derived("ev_1", "run_0").routed(), sample::event("ev_3").repeated(2)];
        let without_effect = [
            sample::event("ev_8"),
            sample::event("ev_7")
                .checkpoint("quarantined", Some(("handler_failed", "the handler answered no"))),
            sample::event("ev_6")
                .checkpoint("terminal", Some(("terminal_work", "work_1 had ended (completed)"))),
            sample::event("ev_5").checkpoint("dropped", Some(("active_drop", "work_1 was running"))),
            sample::event("ev_4").checkpoint("unmatched", None).repeated(1),
        ];
        let blocked = [sample::lane("ev_8")];
        let [chain, inputs] = [chain, inputs].map(|events| events.map(sample::Sample::body));
        let without_effect = without_effect.map(sample::Sample::body);
        let parts = WhyParts {
            run: &run,
            chain: &chain,
            inputs: &inputs,
            without_effect: &without_effect,
            blocked: &blocked,
        };
        insta::assert_snapshot!(sentences(&parts).join("\n"));
    }
}
