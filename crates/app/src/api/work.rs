//! Works: listing, showing and cancelling them.

use std::sync::Arc;

use domain::delivery::Acceptance;
use domain::id::{IdMaker, WorkId};
use domain::store::{ExecutionFilter, Snapshot, StoreError, WorkFilter};
use domain::text::DeliveryId;
use domain::work::{Work, WorkState};
use hyper::StatusCode;

use super::budgets;
use super::events;
use super::failure::Failure;
use super::query::{self, Cursor, Query};
use super::resolve;
use super::runs;
use super::server::{Answer, Asked, json, read};
use super::wire::{
    AcceptedBody, AgainBody, CancelledBody, OrderBody, Page, PendingInputBody, WaitBody, WorkBody,
};
use crate::daemon::Daemon;
use crate::view;

/// The most pending inputs that are named.
const PENDING_MAX: u32 = 200;
/// The most Works that are told as created by the runs of one.
const CHILDREN_MAX: u32 = 200;
/// The words of a Work's state.
const STATES: [&str; 6] = ["ready", "running", "waiting", "completed", "failed", "cancelled"];

/// Lists Works, newest first.
pub(crate) async fn list(daemon: &Arc<Daemon>, asked: &Asked) -> Answer {
    Ok(json(&find(daemon, &asked.query).await?))
}

/// The Works that a query asks for, newest first.
///
/// # Errors
/// `bad_request` when the query cannot be read, and what reading the store answers.
pub(crate) async fn find(daemon: &Daemon, query: &Query) -> Result<Page<WorkBody>, Failure> {
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
    read(daemon, "works", move |tx| {
        let works = tx.works(&filter, limit)?;
        let next = works.last().filter(|_| works.len() == limit as usize);
        let next = next.map(|work| query::cursor(Cursor::Work, work.id.number()));
        let mut items = Vec::with_capacity(works.len());
        for work in works {
            items.push(body(tx, &work)?);
        }
        Ok(Page { items, next })
    })
    .await
}

fn body(tx: &mut dyn Snapshot, work: &Work) -> Result<WorkBody, StoreError> {
    let newest = ExecutionFilter { work: Some(work.id), ..ExecutionFilter::default() };
    let newest = if work.attempts > 0 { tx.executions(&newest, 1)? } else { Vec::new() };
    let mut body = WorkBody::new(work, &tx.keys_of(work.id)?, newest.first());
    body.predecessor = tx.succession_of(work.id)?.map(|place| place.predecessor.to_string());
    if work.state.is_terminal() {
        body.successor = tx.successor_of(work.id)?.map(|place| place.work.to_string());
    }
    if let Some(wait) = work.state.waits_for() {
        body.wait = tx.wait(wait)?.map(|wait| WaitBody::read(tx, &wait)).transpose()?;
    }
    Ok(body)
}

/// Shows a Work with its pending input.
pub(crate) async fn show(daemon: &Arc<Daemon>, asked: &Asked) -> Answer {
    Ok(json(&one(daemon, asked.id()).await?))
}

/// A Work with its pending input.
///
/// # Errors
/// `not_found`, `ambiguous_id`, and what reading the store answers.
pub(crate) async fn one(daemon: &Daemon, text: &str) -> Result<WorkBody, Failure> {
    let (text, active) = (text.to_owned(), daemon.runtime().generations().active());
    read(daemon, "work", move |tx| {
        let id = resolve::work(tx, &text)?;
        let work = tx.work(id)?.ok_or_else(|| Failure::not_found("no such Work"))?;
        let mut body = body(tx, &work)?;
        body.parent = tx.parentage_of(id)?.map(|parentage| parentage.parent.to_string());
        let children = tx.children_of(id, CHILDREN_MAX)?;
        body.children = children.iter().map(|parentage| parentage.child.to_string()).collect();
        if let WorkState::Running { execution } = work.state {
            let orders = tx.intents_of(execution, runs::ORDERS_MAX)?;
            body.orders = orders.iter().map(OrderBody::from).collect();
        }
        let limits = active.scope(&work.scope).map(|it| it.scope.budgets.as_slice()).unwrap_or_default();
        body.budgets = Some(budgets::of_work(tx, limits, (id, &work.scope))?);
        let pending = tx.pending_inputs(id, PENDING_MAX)?;
        body.pending = Some(pending.iter().map(|input| input.event.to_string()).collect());
        let mut inputs = Vec::with_capacity(pending.len());
        for input in &pending {
            let event = tx
                .event_at(input.sequence)?
                .ok_or_else(|| StoreError::Corrupt { table: "input", reason: "names no event".to_owned() })?;
            inputs.push(PendingInputBody::new(input, &event));
        }
        body.pending_inputs = Some(inputs);
        body.next = Some(view::work::mover(&body));
        Ok(body)
    })
    .await
}

/// Starts the next run of a Work that failed: 202 for a new request, 200 for one that was accepted before.
pub(crate) async fn retry(daemon: &Arc<Daemon>, asked: Asked) -> Answer {
    let id = asked.id().to_owned();
    let header = events::idempotency_key(&asked.parts)?;
    let body: AgainBody = asked.json_or_empty().await?;
    let delivery_id = body.delivery_id.as_deref().map(DeliveryId::new).transpose()?.or(header);
    let accepted = try_again(daemon, &id, delivery_id).await?;
    let mut response = json(&accepted);
    *response.status_mut() = if accepted.duplicate { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok(response)
}

/// Asks for the next run of a Work that failed. The same delivery id asks once.
///
/// # Errors
/// `work_conflict` when it runs or its last run did not fail, `terminal_work` when it has ended, `not_found`,
/// `ambiguous_id`, and what writing to the store answers.
pub(crate) async fn try_again(
    daemon: &Daemon,
    text: &str,
    delivery_id: Option<DeliveryId>,
) -> Result<AcceptedBody, Failure> {
    let text = text.to_owned();
    let id = read(daemon, "work", move |tx| resolve::work(tx, &text)).await?;
    let delivery_id =
        delivery_id.unwrap_or_else(|| events::fresh_delivery_id(daemon.store().ids(IdMaker::event)));
    let acceptance = daemon.runtime().retry(id, delivery_id).await?;
    tracing::info!(work = %id, event = %acceptance.event(), "an operator asked for the next run of a Work");
    Ok(AcceptedBody {
        event: acceptance.event().to_string(),
        sequence: acceptance.sequence().number(),
        duplicate: matches!(acceptance, Acceptance::Duplicate { .. }),
    })
}

/// Lets a held Work go on.
pub(crate) async fn release(daemon: &Arc<Daemon>, asked: &Asked) -> Answer {
    Ok(json(&let_go(daemon, asked.id()).await?))
}

/// Lets a Work go on that is held, and shows it as it then is.
///
/// # Errors
/// `work_conflict` when it is not held, `terminal_work` when it has ended, `not_found`, `ambiguous_id`, and what
/// writing to the store answers.
pub(crate) async fn let_go(daemon: &Daemon, text: &str) -> Result<WorkBody, Failure> {
    let text = text.to_owned();
    let id = read(daemon, "work", move |tx| resolve::work(tx, &text)).await?;
    daemon.runtime().release(id).await?;
    tracing::info!(work = %id, "an operator released a Work");
    one(daemon, &id.to_string()).await
}

/// Cancels a Work and its live run.
pub(crate) async fn cancel(daemon: &Arc<Daemon>, asked: &Asked) -> Answer {
    Ok(json(&end(daemon, asked.id()).await?))
}

/// Ends a Work for good, with its live run.
///
/// # Errors
/// `terminal_work` when it has ended, `not_found`, `ambiguous_id`, and what writing to the store answers.
pub(crate) async fn end(daemon: &Daemon, text: &str) -> Result<CancelledBody, Failure> {
    let text = text.to_owned();
    let id = read(daemon, "work", move |tx| resolve::work(tx, &text)).await?;
    let cancelled = daemon.runtime().cancel(id).await?;
    tracing::info!(work = %id, "an operator cancelled a Work");
    let run = cancelled.execution.map(|execution| execution.id.to_string());
    Ok(CancelledBody { work: id.to_string(), run })
}
