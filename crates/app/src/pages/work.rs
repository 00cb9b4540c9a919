//! One Work: what it is about, what moves it next, its runs, and what waits for the next of them.

use askama::Template;

use super::Visit;
use super::events::query;
use super::frame::{Frame, Place};
use super::html;
use crate::api::query::Query;
use crate::api::server::Answer;
use crate::api::wire::{PendingInputBody, RunBody, WorkBody};
use crate::api::{runs, work};
use crate::view;
use crate::view::clock::{Clock, Moment};
use crate::view::look::Look;
use crate::view::payload::spelled;
use crate::view::said::{self, Part};
use crate::view::{run, time};
/// How many of its runs are shown.
const RUNS_SHOWN: &str = "50";
/// How many of its pending inputs are shown.
const INPUTS_SHOWN: usize = 50;

#[derive(Debug, Template)]
#[template(path = "work.html")]
struct Shown {
    frame: Frame,
    id: String,
    /// Its first key; its id when it has none.
    name: String,
    look: Look,
    is_live: bool,
    run: Controls,
    /// What was ordered of its run, and what came of it.
    orders: Vec<Vec<Part>>,
    /// Whether its next run may be asked for.
    can_retry: bool,
    /// Whether it may be released.
    is_held: bool,
    /// What moves it next, or how it ended.
    mover: Vec<Part>,
    kind: String,
    lifecycle: String,
    scope: String,
    keys: Vec<Key>,
    /// The budgets that it is under, each with how it stands.
    budgets: Vec<(String, Vec<Part>)>,
    created: Moment,
    ended: Option<Moment>,
    attempts: i64,
    runs: Vec<Attempt>,
    inputs: Vec<Input>,
    /// How many wait for its next run.
    pending: usize,
    /// How many of its runs are not shown.
    more: i64,
    command: String,
}

/// What can be ordered of the run that goes on.
#[derive(Debug)]
struct Controls {
    can_interrupt: bool,
    can_inject: bool,
}

#[derive(Debug)]
struct Key {
    text: String,
    /// The query of the Events with it.
    query: String,
}

/// A run of it.
#[derive(Debug)]
struct Attempt {
    run: String,
    number: i64,
    look: Look,
    trigger: String,
    trigger_type: String,
    at: Moment,
    took: Option<String>,
    outcome: Vec<Part>,
}

/// What waits for its next run.
#[derive(Debug)]
struct Input {
    event: String,
    event_type: String,
    source: String,
    binding: String,
    at: Moment,
}

/// Shows a Work.
pub(super) async fn show(visit: &Visit) -> Answer {
    let body = work::one(&visit.daemon, visit.asked.id()).await?;
    let asked = Query::of(&[("work", &body.id), ("limit", RUNS_SHOWN)]);
    let runs = runs::find(&visit.daemon, &asked).await?;
    let clock = &visit.reader.clock;
    let inputs = body.pending_inputs.as_deref().unwrap_or_default();
    let name = body.keys.first().map_or_else(|| body.id.clone(), |key| spelled(&view::key(key)));
    html::page(&Shown {
        frame: Frame::read(visit, Place::Work).await?,
        name,
        look: view::work::look(&body),
        is_live: body.ended_at.is_none(),
        run: Controls {
            can_interrupt: view::order::can_interrupt(&body.controls),
            can_inject: view::order::can_inject(&body.controls),
        },
        orders: body
            .orders
            .iter()
            .map(|order| said::parts(&spelled(&view::order::sentence(order)), clock))
            .collect(),
        can_retry: view::work::can_retry(&body),
        is_held: view::work::can_release(&body),
        mover: said::parts(&view::work::end(&body).unwrap_or_else(|| view::work::mover(&body)), clock),
        lifecycle: view::work::lifecycle(&body.lifecycle).to_owned(),
        keys: keys(&body),
        budgets: budgets(&body, clock),
        created: clock.moment(&body.created_at),
        ended: body.ended_at.as_deref().map(|at| clock.moment(at)),
        attempts: body.attempts,
        runs: runs.items.iter().map(|run| Attempt::new(run, visit)).collect(),
        inputs: inputs.iter().take(INPUTS_SHOWN).map(|input| Input::new(input, visit)).collect(),
        pending: inputs.len(),
        more: body.attempts.saturating_sub(i64::try_from(runs.items.len()).unwrap_or(i64::MAX)),
        command: format!("open-conduit work show {}", body.id),
        id: body.id,
        kind: body.kind,
        scope: body.scope,
    })
}

fn budgets(body: &WorkBody, clock: &Clock) -> Vec<(String, Vec<Part>)> {
    let budgets = view::budget::all(body.budgets.as_deref().unwrap_or_default());
    budgets
        .into_iter()
        .map(|(name, standing)| (spelled(&name), said::parts(&spelled(&standing), clock)))
        .collect()
}

fn keys(body: &WorkBody) -> Vec<Key> {
    let key = |key: &crate::api::wire::KeyBody| {
        let pairs = [("key_source", key.source.as_str()), ("key_external_id", key.external_id.as_str())];
        Key { text: spelled(&view::key(key)), query: query(&pairs) }
    };
    body.keys.iter().map(key).collect()
}

impl Attempt {
    fn new(body: &RunBody, visit: &Visit) -> Self {
        let clock = &visit.reader.clock;
        Self {
            run: body.id.clone(),
            number: body.attempt,
            look: run::look(body),
            trigger: body.trigger.event.clone(),
            trigger_type: body.trigger.event_type.clone(),
            at: clock.moment(body.started_at.as_ref().unwrap_or(&body.claimed_at)),
            took: run::took(body, clock.now()).map(time::span),
            outcome: said::parts(&spelled(&run::ending(body)), clock),
        }
    }
}

impl Input {
    fn new(body: &PendingInputBody, visit: &Visit) -> Self {
        Self {
            event: body.event.clone(),
            event_type: body.event_type.clone(),
            source: spelled(&body.source),
            binding: body.binding.clone(),
            at: visit.reader.clock.moment(&body.accepted_at),
        }
    }
}
