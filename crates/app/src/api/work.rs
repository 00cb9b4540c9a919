//! Works: listing, showing and cancelling them.

use std::sync::Arc;

use domain::id::WorkId;
use domain::store::WorkFilter;

use super::failure::Failure;
use super::query::{self, Cursor};
use super::resolve;
use super::server::{Answer, Asked, json, read};
use super::wire::{CancelledBody, Page, WorkBody};
use crate::daemon::Daemon;

/// The most pending inputs that are named.
const PENDING_MAX: u32 = 200;
/// The words of a Work's state.
const STATES: [&str; 6] = ["ready", "running", "waiting", "completed", "failed", "cancelled"];

/// Lists Works, newest first.
pub(crate) async fn list(daemon: &Arc<Daemon>, asked: &Asked) -> Answer {
    let query = &asked.query;
    let limit = query.limit()?;
    let state = query.text("state").map(str::to_owned);
    if state.as_ref().is_some_and(|state| !STATES.contains(&state.as_str())) {
        return Err(Failure::bad(format!("`state` is one of {}", STATES.join(", "))));
    }
    let filter = WorkFilter {
        scope: query.parsed("scope")?,
        kind: query.parsed("kind")?,
        state,
        key: query.key()?,
        before: query.cursor(Cursor::Work)?.map(WorkId::from_number),
    };
    let page = read(daemon, "works", move |tx| {
        let works = tx.works(&filter, limit)?;
        let next = works.last().filter(|_| works.len() == limit as usize);
        let next = next.map(|work| query::cursor(Cursor::Work, work.id.number()));
        let mut items = Vec::with_capacity(works.len());
        for work in works {
            items.push(WorkBody::new(&work, &tx.keys_of(work.id)?));
        }
        Ok(Page { items, next })
    })
    .await?;
    Ok(json(&page))
}

/// Shows a Work with its pending input.
pub(crate) async fn show(daemon: &Arc<Daemon>, asked: &Asked) -> Answer {
    let id = asked.id().to_owned();
    let body = read(daemon, "work", move |tx| {
        let id = resolve::work(tx, &id)?;
        let work = tx.work(id)?.ok_or_else(|| Failure::not_found("no such Work"))?;
        let mut body = WorkBody::new(&work, &tx.keys_of(id)?);
        let pending = tx.pending_inputs(id, PENDING_MAX)?;
        body.pending = Some(pending.iter().map(|input| input.event.to_string()).collect());
        Ok(body)
    })
    .await?;
    Ok(json(&body))
}

/// Cancels a Work and its live run.
pub(crate) async fn cancel(daemon: &Arc<Daemon>, asked: &Asked) -> Answer {
    let text = asked.id().to_owned();
    let id = read(daemon, "work", move |tx| resolve::work(tx, &text)).await?;
    let cancelled = daemon.runtime().cancel(id).await?;
    tracing::info!(work = %id, "an operator cancelled a Work");
    let run = cancelled.execution.map(|execution| execution.id.to_string());
    Ok(json(&CancelledBody { work: id.to_string(), run }))
}
