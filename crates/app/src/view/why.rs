//! Why a run started, and what did not start one: the whole story in plain sentences.
//!
//! The server fills an answer's sentences with these, so that every reader gets the same ones. What had no
//! effect is told like what had one: a missing run is asked about as often as a surprising one.

use super::look::{self, Look};
use super::{event, run, time};
use crate::api::wire::{EventBody, LaneBody, RunBody, SpentBody, WaitBody, WhyBody, WokenBody};

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
    /// The Wait whose end let the run, or its present turn, begin.
    pub(crate) woken: Option<&'a WokenBody>,
    /// What it waits for.
    pub(crate) waits: Option<&'a WaitBody>,
    /// The credentials that a start of it had to wait for.
    pub(crate) credentials: &'a [SpentBody],
}

impl<'a> From<&'a WhyBody> for WhyParts<'a> {
    fn from(why: &'a WhyBody) -> Self {
        let WhyBody { run, chain, inputs, without_effect, blocked, woken, waits, credentials, sentences: _ } =
            why;
        let (woken, waits) = (woken.as_ref(), waits.as_ref());
        Self { run, chain, inputs, without_effect, blocked, woken, waits, credentials }
    }
}

/// What a step of the story is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The Event that the whole chain began with.
    Root,
    /// An Event on the way.
    Event,
    /// The route that made the trigger input of a Work. It belongs to the step before it.
    Route,
    /// The Wait whose end let the run begin.
    Wait,
    /// The run.
    Run,
}

/// A step from the first cause to the run.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) kind: Kind,
    /// What it is, in a few words: a type of Event, a route, the run.
    pub(crate) title: String,
    /// The Event it is about.
    pub(crate) event: Option<String>,
    /// How far it is from the first Event of the chain; none for what is no Event.
    pub(crate) depth: Option<i64>,
    /// When it happened.
    pub(crate) at: Option<String>,
    /// How it came about, for whoever shows title and moment beside it.
    pub(crate) came: String,
    /// The same with title and moment.
    told: String,
    /// What followed, a sentence each.
    pub(crate) then: Vec<String>,
    /// What did not happen at this step.
    pub(crate) stubs: Vec<Stub>,
}

/// Something that had no effect.
#[derive(Debug, Clone)]
pub(crate) struct Stub {
    /// What kind of nothing it is.
    pub(crate) look: Look,
    /// What happened and why it had no effect.
    pub(crate) sentence: String,
}

/// Why a run started: what led to it, and what did not.
#[derive(Debug, Clone)]
pub(crate) struct Story {
    /// From the first cause to the run.
    pub(crate) steps: Vec<Step>,
    /// What arrived about the same Work and had no effect, in the order of arrival, and what stands still.
    pub(crate) beside: Vec<Stub>,
}

/// The story, a sentence or two on a line, in the order in which things happened.
pub(crate) fn sentences(parts: &WhyParts<'_>) -> Vec<String> {
    story(parts).lines()
}

/// The story.
pub(crate) fn story(parts: &WhyParts<'_>) -> Story {
    let told = |event: &EventBody| parts.chain.iter().chain(parts.inputs).any(|other| other.id == event.id);
    let mut steps = chain(parts.chain);
    // The end of a Wait begins an attempt, or a later turn of the attempt that waited.
    if let Some(woken) = parts.woken.filter(|woken| woken.wait.run != parts.run.id) {
        steps.push(went_on(woken));
    }
    steps.push(start(parts));
    let others = parts.without_effect.iter().rev().filter(|event| !told(event)).map(without_effect);
    Story { steps, beside: others.chain(parts.blocked.iter().map(lane)).collect() }
}

impl Story {
    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut steps = self.steps.iter().peekable();
        while let Some(step) = steps.next() {
            let mut line = step.told.clone();
            match step.kind {
                Kind::Root | Kind::Event => {
                    let route = steps.next_if(|next| next.kind == Kind::Route);
                    for said in step.then.iter().chain(route.map(|route| &route.told)) {
                        line = format!("{line} {said}");
                    }
                    lines.push(line);
                }
                Kind::Route | Kind::Wait | Kind::Run => {
                    lines.push(line);
                    lines.extend(step.then.iter().cloned());
                }
            }
            lines.extend(step.stubs.iter().map(|stub| stub.sentence.clone()));
        }
        lines.extend(self.beside.iter().map(|stub| stub.sentence.clone()));
        lines
    }
}

fn chain(events: &[EventBody]) -> Vec<Step> {
    let mut steps = Vec::new();
    for (place, link) in events.iter().enumerate() {
        let is_trigger = place + 1 == events.len();
        let (step, route) = event_step(link, place == 0, is_trigger);
        steps.push(step);
        steps.extend(route);
    }
    steps
}

/// An Event of the chain, and for the last of them the route that took it.
fn event_step(link: &EventBody, is_first: bool, is_trigger: bool) -> (Step, Option<Step>) {
    let at = time::absolute(&link.accepted_at);
    let (id, event_type, source) = (&link.id, &link.event_type, &link.source);
    let by = link.emitted_by.as_ref().map(|run| format!(", published by {run}")).unwrap_or_default();
    let is_root = is_first && link.parent.is_none();
    let (told, came) = if is_root {
        (
            format!("{id} `{event_type}` arrived from `{source}` at {at}."),
            format!("{id} arrived from `{source}`."),
        )
    } else if is_first {
        (
            format!("{id} `{event_type}` followed at {at} from a chain that began with {}.", link.root),
            format!("{id} followed from a chain that began with {}.", link.root),
        )
    } else if link.replays.is_some() {
        (
            format!("An operator had it replayed: {id} `{event_type}` said the same again at {at}."),
            format!("An operator had it replayed: {id} said the same again."),
        )
    } else {
        (format!("That led to {id} `{event_type}` at {at}{by}."), format!("That led to {id}{by}."))
    };
    let fate = event::fate(link);
    let route = link.checkpoint.as_ref().filter(|checkpoint| is_trigger && checkpoint.outcome == "routed");
    let route = route.map(|checkpoint| Step {
        kind: Kind::Route,
        title: format!("Route {}", checkpoint.route.as_deref().unwrap_or("?")),
        event: None,
        depth: None,
        at: Some(checkpoint.at.clone()),
        came: fate.clone(),
        told: fate.clone(),
        then: Vec::new(),
        stubs: Vec::new(),
    });
    let step = Step {
        kind: if is_root { Kind::Root } else { Kind::Event },
        title: event_type.clone(),
        event: Some(id.clone()),
        depth: Some(link.depth),
        at: Some(link.accepted_at.clone()),
        came,
        told,
        then: if route.is_some() { Vec::new() } else { vec![fate] },
        stubs: event::repeats(link)
            .map(|sentence| Stub { look: look::duplicate(), sentence })
            .into_iter()
            .collect(),
    };
    (step, route)
}

/// The Wait that another run of the Work ended in, and whose end this one began with.
fn went_on(woken: &WokenBody) -> Step {
    let sentence = super::wait::ended(woken);
    Step {
        kind: Kind::Wait,
        title: "The end of a Wait".to_owned(),
        event: None,
        depth: None,
        at: woken.wait.ended_at.clone(),
        came: sentence.clone(),
        told: sentence,
        then: Vec::new(),
        stubs: Vec::new(),
    }
}

fn start(parts: &WhyParts<'_>) -> Step {
    let run = parts.run;
    let by = format!("binding `{}` on executor `{}`", run.binding, run.executor);
    let (attempt, work, generation) = (run.attempt, &run.work, run.generation);
    let (id, trigger) = (&run.id, &run.trigger.event);
    let at = time::absolute(&run.claimed_at);
    let mut then: Vec<String> = parts.credentials.iter().map(spent).collect();
    // Each later turn of it has an epoch of its own.
    if run.epoch > run.turn {
        let times = match run.epoch - run.turn {
            1 => "once".to_owned(),
            more => super::count(more, "time", "times"),
        };
        then.push(format!(
            "A daemon took it over {times} after its first claim; it is still the same attempt."
        ));
    }
    if let Some(woken) = parts.woken.filter(|woken| woken.wait.run == run.id) {
        then.push(format!("{} Turn {} began with it.", super::wait::ended(woken), run.turn));
    }
    let injected = |input: &EventBody| {
        run.orders.iter().any(|order| order.event == input.id && order.state == "consumed")
    };
    let further = parts.inputs.iter().filter(|input| input.id != run.trigger.event);
    then.extend(further.map(|input| further_input(input, injected(input))));
    then.extend(run.orders.iter().filter(|order| order.state != "consumed").map(super::order::sentence));
    then.push(run::ending(run));
    then.extend(parts.waits.map(|wait| super::wait::sentence(wait, &[])));
    if run.unstopped {
        then.push(
            "What it had started may still run; the daemon goes on stopping it until nothing of it is left."
                .to_owned(),
        );
    }
    Step {
        kind: Kind::Run,
        title: "This run".to_owned(),
        event: None,
        depth: None,
        at: Some(run.claimed_at.clone()),
        came: format!(
            "Attempt {attempt} at {work}, claimed for {trigger}, by {by} (generation {generation})."
        ),
        told: format!(
            "{id} is attempt {attempt} at {work}: claimed at {at} for {trigger}, by {by} (generation {generation})."
        ),
        then,
        stubs: Vec::new(),
    }
}

/// What a start waited for that could not go by its credential.
fn spent(spent: &SpentBody) -> String {
    let who =
        if spent.turn == 1 { "Its start".to_owned() } else { format!("The start of turn {}", spent.turn) };
    let waited = if spent.over { "waited" } else { "waits" };
    let until = spent.until.as_ref().map(|at| format!(" until {}", time::absolute(at))).unwrap_or_default();
    format!(
        "{who} {waited} for credential `{}`, whose usage limit was met, from {}{until}.",
        spent.credential,
        time::absolute(&spent.since)
    )
}

fn further_input(input: &EventBody, injected: bool) -> String {
    let when = if injected { "While it ran it took in" } else { "It also took in" };
    let repeats = event::repeats(input).map(|sentence| format!(" {sentence}")).unwrap_or_default();
    let at = time::absolute(&input.accepted_at);
    format!("{when} {} `{}` from `{}`, accepted at {at}.{repeats}", input.id, input.event_type, input.source)
}

fn without_effect(other: &EventBody) -> Stub {
    let at = time::absolute(&other.accepted_at);
    let arrival = format!("{} `{}` arrived from `{}` at {at}.", other.id, other.event_type, other.source);
    let repeats = event::repeats(other).map(|sentence| format!(" {sentence}")).unwrap_or_default();
    let look = match &other.checkpoint {
        Some(checkpoint) if checkpoint.outcome == "routed" => look::duplicate(),
        Some(checkpoint) => look::state(&checkpoint.outcome),
        None => look::unrouted(),
    };
    Stub { look, sentence: format!("{arrival} {}{repeats}", event::fate(other)) }
}

fn lane(lane: &LaneBody) -> Stub {
    let tries = super::count(lane.tries, "try", "tries");
    let because = event::because(Some(&lane.reason), Some(&lane.code));
    let next = time::absolute(&lane.next_try_at);
    let sentence = format!(
        "Later Events of this Work wait behind {}, which could not be routed after {tries}{because}; the next try \
         is at {next}.",
        lane.event
    );
    Stub { look: look::blocked(), sentence }
}

#[cfg(test)]
mod tests {
    use super::{SpentBody, WaitBody, WhyParts, WokenBody, sentences};
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
            woken: None,
            waits: None,
            credentials: &[],
        };
        insta::assert_snapshot!(sentences(&parts).join("\n"));
    }

    #[test]
    fn a_run_that_the_end_of_a_wait_began_names_it() {
        let run = sample::run();
        let chain = [sample::event("ev_2").routed().body()];
        let woken = |run: &str, by: &str, event_type: &str| WokenBody {
            wait: WaitBody {
                run: run.to_owned(),
                state: "woken".to_owned(),
                winner: Some("ev_2".to_owned()),
                ended_at: Some("2026-03-10T11:59:00Z".to_owned()),
                ..sample::wait()
            },
            by: by.to_owned(),
            event_type: event_type.to_owned(),
        };
        let told = |woken: &WokenBody, waits: Option<&WaitBody>| {
            let parts = WhyParts {
                run: &run,
                chain: &chain,
                inputs: &chain,
                without_effect: &[],
                blocked: &[],
                woken: Some(woken),
                waits,
                credentials: &[],
            };
            sentences(&parts).join("\n")
        };
        let by_fact = told(&woken("run_0", "fact", "build.finished"), None);
        let by_timeout = told(&woken("run_0", "timeout", "core.wait.timeout"), None);
        let resumed = told(&woken("run_1", "fact", "build.finished"), Some(&sample::wait()));
        insta::assert_snapshot!([by_fact, by_timeout, resumed].join("\n\n"));
    }

    #[test]
    fn a_start_that_waited_for_a_credential_says_so() {
        let run = sample::run();
        let chain = [sample::event("ev_2").routed().body()];
        let spent = |turn, over, until: Option<&str>| SpentBody {
            credential: "claude/team".to_owned(),
            turn,
            since: "2026-03-10T11:00:00Z".to_owned(),
            until: until.map(str::to_owned),
            over,
        };
        let (first, later) = (Some("2026-03-10T11:12:00Z"), Some("2026-03-10T13:12:00Z"));
        let credentials = [spent(1, true, first), spent(2, false, later), spent(2, false, None)];
        let parts = WhyParts {
            run: &run,
            chain: &chain,
            inputs: &chain,
            without_effect: &[],
            blocked: &[],
            woken: None,
            waits: None,
            credentials: &credentials,
        };
        let said = sentences(&parts);
        let said: Vec<&str> =
            said.iter().filter(|line| line.contains("credential")).map(String::as_str).collect();
        assert_eq!(
            said,
            [
                "Its start waited for credential `claude/team`, whose usage limit was met, from \
                 2026-03-10 11:00:00 UTC until 2026-03-10 11:12:00 UTC.",
                "The start of turn 2 waits for credential `claude/team`, whose usage limit was met, from \
                 2026-03-10 11:00:00 UTC until 2026-03-10 13:12:00 UTC.",
                "The start of turn 2 waits for credential `claude/team`, whose usage limit was met, from \
                 2026-03-10 11:00:00 UTC.",
            ]
        );
    }
}
