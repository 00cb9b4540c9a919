//! Runs: listing and showing them, their output, what they left behind, and why they started.

mod again;
mod list;
mod output;

use std::sync::Arc;

use domain::execution::Execution;
use domain::store::{Snapshot, StoreError};
use runtime::why;

use super::failure::Failure;
use super::resolve;
use super::server::{Answer, Asked, Refused, json, read};
use super::wire::{
    EventBody, LaneBody, OrderBody, RunBody, RunProgressBody, SpentBody, WaitBody, WhyBody, WokenBody,
};
use crate::daemon::Daemon;
use crate::view;
use crate::view::why::WhyParts;

/// The most orders that are told with a run.
pub(crate) const ORDERS_MAX: u32 = 200;

pub(crate) use again::{Again, again};
#[cfg(test)]
pub(crate) use list::within;
pub(crate) use list::{find, list};
pub(crate) use output::{LOG_BYTES_MAX, Output, artifact, log};

fn body(tx: &mut dyn Snapshot, execution: &Execution) -> Result<RunBody, Refused> {
    let corrupt = |reason: &str| StoreError::Corrupt { table: "execution", reason: reason.to_owned() };
    let work = tx.work(execution.work)?.ok_or_else(|| corrupt("names no work"))?;
    let trigger = tx.event(execution.trigger)?.ok_or_else(|| corrupt("names no event"))?;
    let keys = tx.keys_of(work.id)?;
    let result = tx.turn_result(execution.id)?;
    let now = tx.now();
    let so_far = runtime::meter::so_far(tx, execution)?;
    Ok(RunBody::new(execution, &work, &keys, &trigger, result.as_ref(), now).with_more_used(so_far))
}

/// A run with the orders to it, and what it has said by calls.
fn whole(tx: &mut dyn Snapshot, execution: &Execution) -> Result<RunBody, Refused> {
    let mut body = body(tx, execution)?;
    body.orders = tx.intents_of(execution.id, ORDERS_MAX)?.iter().map(OrderBody::from).collect();
    body.progress = tx.progress_of(execution.id)?.map(RunProgressBody::from);
    Ok(body)
}

fn execution(tx: &mut dyn Snapshot, text: &str) -> Result<Execution, Refused> {
    let id = resolve::run(tx, text)?;
    Ok(tx.execution(id)?.ok_or_else(|| Failure::not_found("no such run"))?)
}

/// Shows a run.
pub(crate) async fn show(daemon: &Arc<Daemon>, asked: &Asked) -> Answer {
    Ok(json(&one(daemon, asked.id()).await?))
}

/// A run.
///
/// # Errors
/// `not_found`, `ambiguous_id`, and what reading the store answers.
pub(crate) async fn one(daemon: &Daemon, text: &str) -> Result<RunBody, Failure> {
    let text = text.to_owned();
    let (execution, body) = read(daemon, "run", move |tx| {
        let execution = execution(tx, &text)?;
        let body = whole(tx, &execution)?;
        Ok((execution, body))
    })
    .await?;
    Ok(RunBody { directory: directory(daemon, &execution).await?, ..body })
}

/// The directory that a run works in, or worked in.
///
/// # Errors
/// What reading the store answers.
async fn directory(daemon: &Daemon, run: &Execution) -> Result<Option<String>, Failure> {
    if let Some(workspace) = &run.workspace {
        return Ok(Some(workspace.dir.clone()));
    }
    let generations = daemon.runtime().generations();
    let binding = generations.binding(daemon.store(), run.generation, &run.scope, &run.binding).await?;
    let executor = daemon.runtime().registry().executor(&run.executor);
    Ok(match (binding, executor) {
        (Some(binding), Some(executor)) => {
            executor.directory(run.id, &binding.config).map(|path| path.display().to_string())
        }
        (Some(_), None) | (None, _) => None,
    })
}

/// Says why a run started.
pub(crate) async fn why(daemon: &Arc<Daemon>, asked: &Asked) -> Answer {
    Ok(json(&reasons(daemon, asked.id()).await?))
}

/// Why a run started.
///
/// # Errors
/// `not_found`, `ambiguous_id`, and what reading the store answers.
pub(crate) async fn reasons(daemon: &Daemon, text: &str) -> Result<WhyBody, Failure> {
    let id = text.to_owned();
    let (execution, mut body) = read(daemon, "why", move |tx| {
        let id = resolve::run(tx, &id)?;
        let why = why::why(tx, id)?.ok_or_else(|| Failure::not_found("no such run"))?;
        let run = whole(tx, &why.execution)?;
        let bodies = |links: &[why::Link]| links.iter().map(EventBody::from).collect::<Vec<_>>();
        let (chain, inputs, without_effect) =
            (bodies(&why.chain), bodies(&why.inputs), bodies(&why.without_effect));
        let blocked: Vec<LaneBody> = why.blocked.iter().map(LaneBody::from).collect();
        let woken = why.woken.as_ref().map(WokenBody::from);
        let waits = why.waits.as_ref().map(|wait| WaitBody::read(tx, wait)).transpose()?;
        let credentials: Vec<SpentBody> = why.credentials.iter().map(SpentBody::from).collect();
        let sentences = view::why::sentences(&WhyParts {
            run: &run,
            chain: &chain,
            inputs: &inputs,
            without_effect: &without_effect,
            blocked: &blocked,
            woken: woken.as_ref(),
            waits: waits.as_ref(),
            credentials: &credentials,
        });
        let body =
            WhyBody { run, chain, inputs, without_effect, blocked, woken, waits, credentials, sentences };
        Ok((why.execution, body))
    })
    .await?;
    body.run.directory = directory(daemon, &execution).await?;
    Ok(body)
}
