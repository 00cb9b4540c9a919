//! One run: why it started, what it wrote, how it ended, and what it left behind.

use std::time::Duration;

use askama::Template;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::Visit;
use super::frame::{Frame, Place};
use super::html;
use super::log::{self, Shown};
use crate::api::runs::{self, Again};
use crate::api::server::Answer;
use crate::api::wire::{EventBody, PendingInputBody, RunBody, WhyBody};
use crate::api::work;
use crate::view::clock::{Clock, Moment};
use crate::view::look::Look;
use crate::view::payload::spelled;
use crate::view::said::{self, Part};
use crate::view::why::{Kind, Step, Stub, WhyParts, story};
use crate::view::{self, run, time};

/// Inputs of each kind that are shown, and stubs beside a step. The Events' own page has all of them.
const LISTED_MAX: usize = 20;

/// What need not be escaped in a path.
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~');

#[derive(Debug, Template)]
#[template(path = "run.html")]
struct Shows {
    frame: Frame,
    title: String,
    run: RunBody,
    look: Look,
    since: Moment,
    took: Option<String>,
    is_live: bool,
    /// The Work whose run it is, when it can be interrupted.
    interrupt: Option<String>,
    /// The same, when something can be given to it.
    inject: Option<String>,
    can_run_again: bool,
    steps: Vec<Told>,
    depth: i64,
    keys: Vec<String>,
    times: Vec<(&'static str, Moment)>,
    progress: Option<String>,
    usage: Vec<(String, String)>,
    deadline: Option<Meter>,
    consumed: Inputs,
    pending: Inputs,
    artifacts: Vec<File>,
    log: Option<Shown>,
    /// Why there is no log.
    silence: String,
    /// The log stands on this page with the rest of the run.
    is_alone: bool,
}

/// A step of the story as the page shows it.
#[derive(Debug)]
struct Told {
    kind: Kind,
    icon: &'static str,
    title: String,
    path: Option<String>,
    depth: Option<i64>,
    at: Option<Moment>,
    says: Vec<Vec<Part>>,
    stubs: Vec<(Look, Vec<Part>)>,
    /// How many stubs are not shown.
    stubs_more: usize,
}

/// How much of something bounded is used.
#[derive(Debug)]
struct Meter {
    said: String,
    percent: u64,
    is_near: bool,
}

/// Inputs, the first of them shown.
#[derive(Debug)]
struct Inputs {
    shown: Vec<Input>,
    count: usize,
}

#[derive(Debug)]
struct Input {
    event: String,
    event_type: String,
    source: String,
    at: Moment,
    is_trigger: bool,
}

#[derive(Debug)]
struct File {
    name: String,
    path: String,
    size: String,
}

/// Shows a run.
pub(super) async fn show(visit: &Visit) -> Answer {
    let why = runs::reasons(&visit.daemon, visit.asked.id()).await?;
    let clock = &visit.reader.clock;
    let steps = told(&why, clock);
    let WhyBody { run, chain, inputs, .. } = why;
    let is_live = run.ended_at.is_none();
    let pending = if is_live {
        work::one(&visit.daemon, &run.work).await?.pending_inputs.unwrap_or_default()
    } else {
        Vec::new()
    };
    // What a run wrote may be gone, or with an executor that is; everything else is still worth showing.
    let (log, silence) = match log::last(visit, &run.id).await {
        Ok(log) => (Some(log), String::new()),
        Err(failure) => (None, failure.detail().to_owned()),
    };
    html::page(&Shows {
        frame: Frame::read(visit, Place::Runs).await?,
        title: spelled(&run::title(&run)),
        look: run::look(&run),
        since: clock.moment(run.started_at.as_deref().unwrap_or(&run.claimed_at)),
        took: run::took(&run, clock.now()).map(time::span),
        is_live,
        inject: view::order::can_inject(&run.controls).then(|| run.work.clone()),
        interrupt: view::order::can_interrupt(&run.controls).then(|| run.work.clone()),
        can_run_again: Again::admit(&run).is_ok(),
        steps,
        depth: chain.last().map_or(0, |trigger| trigger.depth),
        keys: run.keys.iter().map(|key| spelled(&view::key(key))).collect(),
        times: times(&run, clock),
        progress: run::progress(&run).map(|line| spelled(&line)),
        usage: usage(&run),
        deadline: deadline(&run, clock),
        consumed: Inputs::of(&inputs, |input| Input::consumed(input, &run, clock)),
        pending: Inputs::of(&pending, |input| Input::pending(input, clock)),
        artifacts: files(&run),
        log,
        silence,
        is_alone: false,
        run,
    })
}

fn told(why: &WhyBody, clock: &Clock) -> Vec<Told> {
    let story = story(&WhyParts::from(why));
    let mut steps: Vec<Told> = story.steps.into_iter().map(|step| Told::new(step, why, clock)).collect();
    // What else arrived for the Work ends beside the route that led to it.
    let beside = steps.iter().position(|step| step.kind == Kind::Route);
    let beside = beside.unwrap_or_else(|| steps.len().saturating_sub(1));
    if let Some(step) = steps.get_mut(beside) {
        step.stubs.extend(story.beside.into_iter().map(|other| stub(other, clock)));
    }
    for step in &mut steps {
        step.stubs_more = step.stubs.len().saturating_sub(LISTED_MAX);
        step.stubs.truncate(LISTED_MAX);
    }
    steps
}

fn stub(stub: Stub, clock: &Clock) -> (Look, Vec<Part>) {
    let parts = said::parts(&spelled(&stub.sentence), clock);
    (stub.look, parts)
}

impl Told {
    fn new(step: Step, why: &WhyBody, clock: &Clock) -> Self {
        let says = std::iter::once(&step.came).chain(&step.then);
        let icon = match step.kind {
            Kind::Root => "i-hook",
            Kind::Event => "i-events",
            Kind::Route => "i-route",
            Kind::Wait => "i-wait",
            Kind::Run => "i-play",
        };
        Self {
            kind: step.kind,
            icon: if step.kind == Kind::Root && why.chain[0].source == "core.manual" {
                "i-user"
            } else {
                icon
            },
            says: says.map(|sentence| said::parts(&spelled(sentence), clock)).collect(),
            title: step.title,
            path: step.event.map(|event| format!("/events/{event}")),
            depth: step.depth,
            at: step.at.map(|at| clock.moment(&at)),
            stubs: step.stubs.into_iter().map(|other| stub(other, clock)).collect(),
            stubs_more: 0,
        }
    }

    fn is_root(&self) -> bool {
        self.kind == Kind::Root
    }

    fn is_run(&self) -> bool {
        self.kind == Kind::Run
    }
}

fn times(run: &RunBody, clock: &Clock) -> Vec<(&'static str, Moment)> {
    let times = [
        ("Claimed", Some(&run.claimed_at)),
        ("Started", run.started_at.as_ref()),
        ("Ended", run.ended_at.as_ref()),
    ];
    times.into_iter().filter_map(|(name, at)| Some((name, clock.moment(at?)))).collect()
}

fn usage(run: &RunBody) -> Vec<(String, String)> {
    let amount = |usage: &domain::outcome::Usage| (spelled(&usage.unit), run::thousandths(usage.thousandths));
    run.usage.iter().map(amount).collect()
}

/// How much of its time a run has used.
fn deadline(body: &RunBody, clock: &Clock) -> Option<Meter> {
    /// From how much on it is near its end.
    const NEAR_PERCENT: u64 = 75;
    let took = run::took(body, clock.now())?;
    let limit = Duration::from_secs(body.timeout_seconds);
    let percent = (took.as_secs() * 100).checked_div(limit.as_secs()).unwrap_or(100).min(100);
    let left = body.remaining_seconds.map(|left| format!(", {} left", time::span(Duration::from_secs(left))));
    let said = format!("{} of {}{}", time::span(took), time::span(limit), left.unwrap_or_default());
    Some(Meter { said, percent, is_near: percent >= NEAR_PERCENT })
}

fn files(run: &RunBody) -> Vec<File> {
    let file = |artifact: &domain::outcome::Artifact| File {
        name: spelled(&artifact.path),
        path: format!("/v1/runs/{}/artifacts/{}", run.id, utf8_percent_encode(&artifact.path, PATH)),
        size: run::bytes(artifact.bytes),
    };
    run.artifacts.iter().map(file).collect()
}

impl Inputs {
    fn of<T>(all: &[T], shown: impl Fn(&T) -> Input) -> Self {
        Self { shown: all.iter().take(LISTED_MAX).map(shown).collect(), count: all.len() }
    }

    fn more(&self) -> usize {
        self.count - self.shown.len()
    }
}

impl Input {
    fn consumed(event: &EventBody, run: &RunBody, clock: &Clock) -> Self {
        Self {
            event: event.id.clone(),
            event_type: event.event_type.clone(),
            source: spelled(&event.source),
            at: clock.moment(&event.accepted_at),
            is_trigger: event.id == run.trigger.event,
        }
    }

    fn pending(input: &PendingInputBody, clock: &Clock) -> Self {
        Self {
            event: input.event.clone(),
            event_type: input.event_type.clone(),
            source: spelled(&input.source),
            at: clock.moment(&input.accepted_at),
            is_trigger: false,
        }
    }
}
