//! Outlines of Executions: what a search looks at, a page of them in one statement.

use domain::event::Key;
use domain::id::ExecutionId;
use domain::outcome::TurnResult;
use domain::store::{ExecutionFilter, Outline, StoreError};

use super::code;
use super::execution::narrowed;
use crate::db::{Columns, Sql};
use crate::tx::Transaction;

/// What is inside: the Executions themselves, before anything is looked up beside them.
static FOUND: Sql =
    Sql::new("outline Executions", "execution", "SELECT id, state, work, trigger_sequence FROM execution");

fn outer(found: &str) -> String {
    format!(
        "SELECT found.id, found.state, work.kind, event.event_type, event.source, turn_result.body,
            work_key.source, work_key.external_id
         FROM ({found}) AS found
         JOIN event ON event.sequence = found.trigger_sequence
         JOIN work ON work.id = found.work
         LEFT JOIN turn_result ON turn_result.execution = found.id
         LEFT JOIN work_key ON work_key.work = found.work
         ORDER BY found.id DESC, work_key.source, work_key.external_id"
    )
}

/// A row: an Execution with one of its Work's keys, or with none.
fn decode(columns: &mut Columns<'_>) -> Result<Outline, StoreError> {
    Ok(Outline {
        execution: ExecutionId::from_number(columns.int()?),
        state: columns.word(code::execution_state_of)?,
        work_kind: columns.text()?,
        event_type: columns.text()?,
        source: columns.text()?,
        summary: match columns.maybe_blob()? {
            None => None,
            // The error of the decoder would repeat what it read.
            Some(body) => {
                serde_json::from_slice::<TurnResult>(body)
                    .map_err(|_source| columns.corrupt("a result that is not one of ours"))?
                    .summary
            }
        },
        keys: match (columns.maybe_text()?, columns.maybe_text()?) {
            (Some(source), Some(external_id)) => vec![Key { source, external_id }],
            (None, None) => Vec::new(),
            (Some(_), None) | (None, Some(_)) => return Err(columns.corrupt("half a key")),
        },
    })
}

/// Outlines, newest first.
pub(super) fn read(
    tx: &mut Transaction<'_>,
    filter: &ExecutionFilter,
    limit: u32,
) -> Result<Vec<Outline>, StoreError> {
    let unnamed = ExecutionFilter { work_kind: None, state: None, ..filter.clone() };
    let (found, values) = narrowed(FOUND.text, &unnamed, limit);
    let rows = tx.db.listed(&FOUND, &outer(&found), &values, decode)?;
    let mut outlines: Vec<Outline> = Vec::with_capacity(limit as usize);
    for row in rows {
        match outlines.last_mut().filter(|last| last.execution == row.execution) {
            Some(last) => last.keys.extend(row.keys),
            None => outlines.push(row),
        }
    }
    Ok(outlines)
}
