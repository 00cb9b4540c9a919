//! What an attempt is given: its inputs, in order, with their bodies as far as they fit.

use domain::execution::Execution;
use domain::id::Sequence;
use domain::store::{Snapshot, StoreError};
use domain::text::WorkKind;
use extension::{EventView, InputView, RunRequest};

use crate::execute::Equipment;
use crate::node::Runtime;

/// Bytes of bodies handed over with one attempt. Later inputs of a larger batch come without theirs.
const BODIES_BYTES_MAX: usize = 32 << 20;
/// Inputs read at a time.
const PAGE: u32 = 256;

pub(super) async fn build(
    runtime: &Runtime,
    execution: &Execution,
    kind: WorkKind,
    equipment: &Equipment,
) -> Result<RunRequest, StoreError> {
    let id = execution.id;
    let inputs = runtime.store().read("execute.read", move |tx| inputs(tx, id)).await?;
    Ok(RunRequest {
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
    })
}

fn inputs(tx: &mut dyn Snapshot, execution: domain::id::ExecutionId) -> Result<Vec<InputView>, StoreError> {
    let mut views = Vec::new();
    let mut bytes = 0;
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
            if bytes < BODIES_BYTES_MAX {
                payload = tx.payload(input.sequence)?;
                bytes += payload.as_ref().map_or(0, |payload| payload.as_bytes().len());
            }
            views.push(InputView { event: EventView::from(&event), payload });
        }
        if !full {
            return Ok(views);
        }
    }
}
