//! The timeline: what ran within the last hours, a row for each Work.

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use domain::execution::{Execution, ExecutionState};
use domain::id::WorkId;
use domain::store::{ExecutionFilter, Snapshot, StartFilter, StoreError, WaitFilter};
use domain::time::Timestamp;
use domain::wait::{Wait, WaitState};

use super::failure::Failure;
use super::query::Query;
use super::server::{Answer, Asked, json, read};
use super::wire::{
    KeyBody, StartBody, StretchBody, TimelineBody, TimelineRowBody, TimelineRunBody, WaitBody,
};
use crate::daemon::Daemon;

/// The most ended runs that are looked at, and the most live ones.
const RUNS_MAX: u32 = 2000;
/// The most rows.
const ROWS_MAX: usize = 50;
/// The most Waits of a Work that are looked at, its newest.
const WAITS_MAX: u32 = 100;
/// The most starts that are looked at.
const STARTS_MAX: u32 = 50;

/// How far back it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Span {
    /// An hour.
    Hour,
    /// Six hours.
    Hours,
    /// A day.
    #[default]
    Day,
    /// Seven days.
    Week,
}

impl Span {
    /// Every one, from short to long.
    pub(crate) const ALL: [Self; 4] = [Self::Hour, Self::Hours, Self::Day, Self::Week];

    /// The word in the interface.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Hour => "1h",
            Self::Hours => "6h",
            Self::Day => "24h",
            Self::Week => "7d",
        }
    }

    const fn length(self) -> Duration {
        match self {
            Self::Hour => Duration::from_hours(1),
            Self::Hours => Duration::from_hours(6),
            Self::Day => Duration::from_hours(24),
            Self::Week => Duration::from_hours(7 * 24),
        }
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|span| span.as_str() == text);
        found.ok_or_else(|| format!("it is one of {}", Self::ALL.map(Self::as_str).join(", ")))
    }
}

/// The span that a query names.
///
/// # Errors
/// `bad_request` when it is not one.
pub(crate) fn span(query: &Query) -> Result<Span, Failure> {
    Ok(query.parsed("span")?.unwrap_or_default())
}

/// Shows the timeline.
pub(crate) async fn show(daemon: &Arc<Daemon>, asked: &Asked) -> Answer {
    Ok(json(&find(daemon, span(&asked.query)?, ROWS_MAX).await?))
}

/// What ran within a span that ends now, with at most so many rows.
///
/// # Errors
/// What reading the store answers.
pub(crate) async fn find(daemon: &Daemon, span: Span, rows_max: usize) -> Result<TimelineBody, Failure> {
    read(daemon, "timeline", move |tx| Ok(drawn(tx, span, rows_max)?)).await
}

fn drawn(tx: &mut dyn Snapshot, span: Span, rows_max: usize) -> Result<TimelineBody, StoreError> {
    let until = tx.now();
    let length = i64::try_from(span.length().as_micros()).unwrap_or(i64::MAX);
    let from = Timestamp::from_micros(until.as_micros().saturating_sub(length));
    let live = ExecutionFilter { live: Some(true), ..ExecutionFilter::default() };
    let mut runs = tx.executions(&live, RUNS_MAX)?;
    let ended = tx.ended_since(from, RUNS_MAX)?;
    let cut = [&runs, &ended].iter().any(|found| found.len() == RUNS_MAX as usize);
    // What is parked has not ended; its turn has.
    let mut rested: Vec<(Timestamp, Execution)> = parked(tx, from, rows_max)?;
    rested.extend(ended.into_iter().filter_map(|run| Some((run.ended_at?, run))));
    rested.sort_by_key(|(at, _run)| std::cmp::Reverse(*at));
    runs.extend(rested.into_iter().map(|(_at, run)| run));
    let works = by_work(runs);
    let more = works.len().saturating_sub(rows_max);
    let mut rows = Vec::new();
    for (work, runs) in works.into_iter().take(rows_max) {
        rows.push(row(tx, work, &runs)?);
    }
    let starts = tx.starts(&StartFilter { here: true, before: None }, STARTS_MAX)?;
    let within = starts.iter().filter(|start| start.before.is_some() && start.started_at >= from);
    let downtimes = within.map(StartBody::from).collect();
    Ok(TimelineBody { from: from.to_string(), until: until.to_string(), rows, more, cut, downtimes })
}

/// Runs that were parked within the time and still are, with when that was. The oldest give way.
fn parked(
    tx: &mut dyn Snapshot,
    from: Timestamp,
    rows_max: usize,
) -> Result<Vec<(Timestamp, Execution)>, StoreError> {
    let active = WaitFilter { active: true, ..WaitFilter::default() };
    let mut parked = Vec::new();
    for wait in tx.waits(&active, u32::try_from(rows_max).unwrap_or(u32::MAX))? {
        if wait.registered_at < from {
            continue;
        }
        let run = tx.execution(wait.execution)?.filter(|run| run.state == ExecutionState::Parked);
        parked.extend(run.map(|run| (wait.registered_at, run)));
    }
    Ok(parked)
}

/// The runs of each Work. They come with the live ones first, then the last to end, and so do the Works.
fn by_work(runs: Vec<Execution>) -> Vec<(WorkId, Vec<Execution>)> {
    let mut works: Vec<(WorkId, Vec<Execution>)> = Vec::new();
    let mut places = HashMap::new();
    for run in runs {
        let place = *places.entry(run.work).or_insert_with(|| {
            works.push((run.work, Vec::new()));
            works.len() - 1
        });
        works[place].1.push(run);
    }
    works
}

fn row(tx: &mut dyn Snapshot, work: WorkId, runs: &[Execution]) -> Result<TimelineRowBody, StoreError> {
    let newest = runs.first().expect("a Work has a row for its runs");
    let trigger = tx.event(newest.trigger)?;
    let wait = tx.active_wait(work)?;
    let ended = if runs.iter().any(|run| run.turn.number > 1) {
        tx.waits(&WaitFilter { work: Some(work), ..WaitFilter::default() }, WAITS_MAX)?
    } else {
        Vec::new()
    };
    Ok(TimelineRowBody {
        work: work.to_string(),
        scope: newest.scope.to_string(),
        keys: tx.keys_of(work)?.iter().map(KeyBody::from).collect(),
        trigger_type: trigger.map(|event| event.event_type.to_string()).unwrap_or_default(),
        runs: runs.iter().map(|run| body(run, &ended)).collect(),
        wait: wait.as_ref().map(WaitBody::from),
    })
}

/// A run with the times at which it was parked. (Its Work's Waits come newest first.)
fn body(run: &Execution, waits: &[Wait]) -> TimelineRunBody {
    let parked = waits.iter().rev().filter(|wait| wait.execution == run.id);
    let parked = parked.filter_map(|wait| {
        let (WaitState::Woken { at, .. } | WaitState::Cancelled { at }) = wait.state else { return None };
        Some(StretchBody { from: wait.registered_at.to_string(), until: at.to_string() })
    });
    TimelineRunBody { parked: parked.collect(), ..TimelineRunBody::from(run) }
}
