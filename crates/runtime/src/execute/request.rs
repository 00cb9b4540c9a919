//! What an attempt is given: its inputs, in order, with their bodies as far as they fit.

use domain::execution::Execution;
use domain::id::{ExecutionId, Sequence};
use domain::store::{Snapshot, StoreError};
use domain::text::WorkKind;
use extension::{EventView, InputView, RunRequest};

use crate::execute::Equipment;
use crate::node::Runtime;

/// Bytes of bodies handed over with one attempt. Later inputs of a larger batch come without theirs.
const BODIES_BYTES_MAX: usize = 32 << 20;
/// Inputs read at a time.
const PAGE: u32 = 256;

/// What attempts that are launched together are given, read in one go. None for one that is left to be read
/// alone: the batch is large, or something in it cannot be read.
pub(super) async fn inputs_together(runtime: &Runtime, ids: Vec<ExecutionId>) -> Vec<Option<Vec<InputView>>> {
    let count = ids.len();
    let read = runtime.store().read("execute.read", move |tx| {
        let mut all = Vec::with_capacity(ids.len());
        let mut bytes = 0;
        for id in ids {
            let read = if bytes < BODIES_BYTES_MAX { Some(inputs(tx, id, &mut bytes)?) } else { None };
            all.push(read);
        }
        Ok::<_, StoreError>(all)
    });
    // Whose fault it is comes out when each is read alone.
    read.await.unwrap_or_else(|_error| vec![None; count])
}

/// What one attempt is given.
pub(super) async fn inputs_alone(runtime: &Runtime, id: ExecutionId) -> Result<Vec<InputView>, StoreError> {
    runtime.store().read("execute.read", move |tx| inputs(tx, id, &mut 0)).await
}

pub(super) fn build(
    execution: &Execution,
    kind: WorkKind,
    inputs: Vec<InputView>,
    equipment: &Equipment,
) -> RunRequest {
    RunRequest {
        execution: execution.id,
        attempt: execution.attempt,
        epoch: execution.epoch,
        work: execution.work,
        kind,
        scope: execution.scope.clone(),
        trigger: execution.trigger,
        inputs,
        config: equipment.binding.config.clone(),
        resource: equipment.binding.resource.clone(),
        secrets: equipment.secrets.clone(),
        timeout: execution.timeout,
    }
}

/// Reads what an attempt consumed, and adds its bodies to `bytes`.
fn inputs(
    tx: &mut dyn Snapshot,
    execution: ExecutionId,
    bytes: &mut usize,
) -> Result<Vec<InputView>, StoreError> {
    let mut views = Vec::new();
    let mut after = Sequence::ZERO;
    loop {
        let page = tx.inputs_of(execution, after, PAGE)?;
        let Some(last) = page.last() else { return Ok(views) };
        after = last.sequence;
        let full = page.len() == PAGE as usize;
        for input in page {
            let Some(event) = tx.event_at(input.sequence)? else {
                return Err(StoreError::Corrupt { table: "input", reason: "names no event".to_owned() });
            };
            let mut payload = None;
            if *bytes < BODIES_BYTES_MAX {
                payload = tx.payload(input.sequence)?;
                *bytes += payload.as_ref().map_or(0, |payload| payload.as_bytes().len());
            }
            views.push(InputView { event: EventView::from(&event), payload });
        }
        if !full {
            return Ok(views);
        }
    }
}
