//! What an attempt is given: its inputs, in order, with their bodies as far as they fit.
//!
//! One that repeats a failed attempt is given what that one was triggered by and took in, as context, before
//! its own new input. The Event that only said "try again" is not among them.

use std::sync::Arc;

use domain::execution::Execution;
use domain::id::{EventId, ExecutionId, Sequence};
use domain::input::Input;
use domain::store::{Snapshot, StoreError};
use domain::text::WorkKind;
use extension::{EventView, InputView, RunRequest};

use crate::execute::Equipment;
use crate::node::Runtime;
use crate::replay;
use crate::wake;

/// Bytes of bodies handed over with one attempt. Later inputs of a larger batch come without theirs.
const BODIES_BYTES_MAX: usize = 32 << 20;
/// Inputs read at a time.
const PAGE: u32 = 256;
/// How many attempts in a row are gone back over for what they took in.
const REPEATED_MAX: usize = 100;

/// What one attempt is given.
#[derive(Debug, Clone)]
pub(super) struct Given {
    /// What the first attempt of the row was triggered by.
    trigger: EventId,
    inputs: Vec<InputView>,
}

/// What attempts that are launched together are given, read in one go. None for one that is left to be read
/// alone: the batch is large, or something in it cannot be read.
pub(super) async fn given_together(runtime: &Runtime, executions: Vec<Arc<Execution>>) -> Vec<Option<Given>> {
    let count = executions.len();
    let read = runtime.store().read("execute.read", move |tx| {
        let mut all = Vec::with_capacity(executions.len());
        let mut bytes = 0;
        for execution in executions {
            let read = if bytes < BODIES_BYTES_MAX { Some(given(tx, &execution, &mut bytes)?) } else { None };
            all.push(read);
        }
        Ok::<_, StoreError>(all)
    });
    // Whose fault it is comes out when each is read alone.
    read.await.unwrap_or_else(|_error| vec![None; count])
}

/// What one attempt is given.
pub(super) async fn given_alone(runtime: &Runtime, execution: Arc<Execution>) -> Result<Given, StoreError> {
    runtime.store().read("execute.read", move |tx| given(tx, &execution, &mut 0)).await
}

pub(super) fn build(
    execution: &Execution,
    kind: WorkKind,
    given: Given,
    equipment: &Equipment,
) -> RunRequest {
    RunRequest {
        execution: execution.id,
        attempt: execution.attempt,
        retry_of: execution.retry_of,
        epoch: execution.epoch,
        work: execution.work,
        kind,
        scope: execution.scope.clone(),
        trigger: given.trigger,
        inputs: given.inputs,
        config: equipment.binding.config.clone(),
        workspace: None,
        secrets: equipment.secrets.clone(),
        token: None,
        timeout: execution.timeout.saturating_sub(execution.turn.used),
    }
}

/// Reads what an attempt is given, and adds its bodies to `bytes`.
fn given(tx: &mut dyn Snapshot, execution: &Execution, bytes: &mut usize) -> Result<Given, StoreError> {
    if execution.turn.resumed_by.is_some() {
        let mut inputs = Vec::new();
        batch(tx, execution, bytes, &mut inputs)?;
        return Ok(Given { trigger: execution.trigger, inputs });
    }
    // Newest first.
    let mut row = vec![(execution.id, execution.trigger)];
    let mut before = execution.retry_of;
    while let Some(id) = before.filter(|_earlier| row.len() <= REPEATED_MAX) {
        let Some(earlier) = tx.execution(id)? else {
            return Err(StoreError::Corrupt { table: "execution", reason: "repeats no run".to_owned() });
        };
        row.push((earlier.id, earlier.trigger));
        before = earlier.retry_of;
    }
    let trigger = row.last().map_or(execution.trigger, |(_first, trigger)| *trigger);
    let mut inputs = Vec::new();
    for (id, _trigger) in row.iter().rev() {
        consumed(tx, *id, *id != execution.id, bytes, &mut inputs)?;
    }
    Ok(Given { trigger, inputs })
}

/// Reads what one attempt consumed.
fn consumed(
    tx: &mut dyn Snapshot,
    execution: ExecutionId,
    is_context: bool,
    bytes: &mut usize,
    views: &mut Vec<InputView>,
) -> Result<(), StoreError> {
    let mut after = Sequence::ZERO;
    loop {
        let page = tx.inputs_of(execution, after, PAGE)?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.sequence;
        let full = page.len() == PAGE as usize;
        show(tx, page, is_context, bytes, views)?;
        if !full {
            return Ok(());
        }
    }
}

/// Reads what a later turn was begun with. However often it is asked, it is the same.
fn batch(
    tx: &mut dyn Snapshot,
    execution: &Execution,
    bytes: &mut usize,
    views: &mut Vec<InputView>,
) -> Result<(), StoreError> {
    let mut after = Sequence::ZERO;
    loop {
        let page = tx.batch_of(execution.id, execution.turn.number, after, PAGE)?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.sequence;
        let full = page.len() == PAGE as usize;
        show(tx, page, false, bytes, views)?;
        if !full {
            return Ok(());
        }
    }
}

/// Reads the Events and bodies of a page of inputs.
fn show(
    tx: &mut dyn Snapshot,
    page: Vec<Input>,
    is_context: bool,
    bytes: &mut usize,
    views: &mut Vec<InputView>,
) -> Result<(), StoreError> {
    for input in page {
        let Some(event) = tx.event_at(input.sequence)? else {
            return Err(StoreError::Corrupt { table: "input", reason: "names no event".to_owned() });
        };
        if wake::is_retry(&event.event_type) {
            continue;
        }
        let mut payload = None;
        if *bytes < BODIES_BYTES_MAX {
            payload = tx.payload(input.sequence)?;
            *bytes += payload.as_ref().map_or(0, |payload| payload.as_bytes().len());
        }
        let event = replay::seen(tx, event)?;
        views.push(InputView { event: EventView::from(&event), payload, is_context });
    }
    Ok(())
}
