//! Calls of attempts, and what they said beside their effects. Nothing here is read or written for a run that makes
//! no call.

use domain::id::{EventId, ExecutionId, Sequence, WorkId};
use domain::store::{StoreError, ToolbeltReads, ToolbeltWrites};
use domain::text::CallId;
use domain::time::Timestamp;
use domain::toolbelt::{Call, Fingerprint, Parentage, Progress};

use super::code;
use crate::db::{self, Columns, Sql, blob, int, limit, maybe_int, text, time};
use crate::tx::Transaction;

static CALL: Sql = Sql::new(
    "read a call",
    "tool_call",
    "SELECT execution, id, number, operation, request, answer, at FROM tool_call WHERE execution = $1 AND id = $2",
);
static MADE: Sql = Sql::new(
    "count an Execution's calls",
    "tool_call",
    "SELECT number FROM tool_call WHERE execution = $1 ORDER BY number DESC LIMIT 1",
);
static INSERT_CALL: Sql = Sql::new(
    "keep a call",
    "tool_call",
    "INSERT INTO tool_call (execution, id, number, operation, request, answer, at)
     VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING",
);
static PROGRESS: Sql = Sql::new(
    "read how far an Execution has come",
    "progress",
    "SELECT line, percent, at FROM progress WHERE execution = $1",
);
static PUT_PROGRESS: Sql = Sql::new(
    "keep how far an Execution has come",
    "progress",
    "INSERT INTO progress (execution, line, percent, at) VALUES ($1, $2, $3, $4)
     ON CONFLICT (execution) DO UPDATE SET line = excluded.line, percent = excluded.percent, at = excluded.at",
);
static ACKNOWLEDGED: Sql = Sql::new(
    "read what an Execution acknowledged",
    "acknowledgement",
    "SELECT event FROM acknowledgement WHERE execution = $1 ORDER BY sequence LIMIT $2",
);
static ACKNOWLEDGE: Sql = Sql::new(
    "keep an acknowledgement",
    "acknowledgement",
    "INSERT INTO acknowledgement (execution, sequence, event) VALUES ($1, $2, $3)
     ON CONFLICT (execution, sequence) DO NOTHING",
);
static PARENTAGE: Sql = Sql::new(
    "read where a Work belongs",
    "parentage",
    "SELECT child, parent, execution FROM parentage WHERE child = $1",
);
static CHILDREN: Sql = Sql::new(
    "read what belongs to a Work",
    "parentage",
    "SELECT child, parent, execution FROM parentage WHERE parent = $1 ORDER BY child DESC LIMIT $2",
);
static INSERT_PARENTAGE: Sql = Sql::new(
    "note where a Work belongs",
    "parentage",
    "INSERT INTO parentage (child, parent, execution) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
);

fn call(columns: &mut Columns<'_>) -> Result<Call, StoreError> {
    Ok(Call {
        execution: ExecutionId::from_number(columns.int()?),
        id: columns.text()?,
        number: columns.int()?,
        operation: columns.word(code::operation_of)?,
        request: Fingerprint::from_number(columns.int()?),
        answer: columns.blob()?.to_vec(),
        at: columns.time()?,
    })
}

fn progress(columns: &mut Columns<'_>) -> Result<(Progress, Timestamp), StoreError> {
    let text = columns.text()?;
    let percent = match columns.maybe_int()?.map(u8::try_from) {
        None => None,
        Some(Ok(percent)) => Some(percent),
        Some(Err(_large)) => return Err(columns.corrupt("a percentage that is none")),
    };
    Ok((Progress { text, percent }, columns.time()?))
}

fn parentage(columns: &mut Columns<'_>) -> Result<Parentage, StoreError> {
    Ok(Parentage {
        child: WorkId::from_number(columns.int()?),
        parent: WorkId::from_number(columns.int()?),
        execution: ExecutionId::from_number(columns.int()?),
    })
}

impl ToolbeltReads for Transaction<'_> {
    fn call(&mut self, execution: ExecutionId, id: &CallId) -> Result<Option<Call>, StoreError> {
        self.db.one(&CALL, &[int(execution.number()), text(id.as_str())], call)
    }

    fn calls_made(&mut self, execution: ExecutionId) -> Result<i64, StoreError> {
        Ok(self.db.one(&MADE, &[int(execution.number())], db::number)?.unwrap_or(0))
    }

    fn progress_of(&mut self, execution: ExecutionId) -> Result<Option<(Progress, Timestamp)>, StoreError> {
        self.db.one(&PROGRESS, &[int(execution.number())], progress)
    }

    fn acknowledged_by(&mut self, execution: ExecutionId, rows: u32) -> Result<Vec<EventId>, StoreError> {
        let event = |columns: &mut Columns<'_>| columns.int().map(EventId::from_number);
        self.db.many(&ACKNOWLEDGED, &[int(execution.number()), limit(rows)], event)
    }

    fn parentage_of(&mut self, child: WorkId) -> Result<Option<Parentage>, StoreError> {
        self.db.one(&PARENTAGE, &[int(child.number())], parentage)
    }

    fn children_of(&mut self, parent: WorkId, rows: u32) -> Result<Vec<Parentage>, StoreError> {
        self.db.many(&CHILDREN, &[int(parent.number()), limit(rows)], parentage)
    }
}

impl ToolbeltWrites for Transaction<'_> {
    fn insert_call(&mut self, call: &Call) -> Result<(), StoreError> {
        let values = [
            int(call.execution.number()),
            text(call.id.as_str()),
            int(call.number),
            int(code::operation(call.operation)),
            int(call.request.number()),
            blob(&call.answer),
            time(call.at),
        ];
        self.db.write(&INSERT_CALL, &values, 1)?;
        // Whoever looks at the run sees what it told.
        self.feed_run(call.execution)
    }

    fn put_progress(
        &mut self,
        execution: ExecutionId,
        progress: &Progress,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let percent = maybe_int(progress.percent.map(i64::from));
        let values = [int(execution.number()), text(&progress.text), percent, time(at)];
        self.db.write(&PUT_PROGRESS, &values, 1)
    }

    fn put_acknowledgement(
        &mut self,
        execution: ExecutionId,
        sequence: Sequence,
        event: EventId,
    ) -> Result<(), StoreError> {
        let values = [int(execution.number()), int(sequence.number()), int(event.number())];
        self.db.count(&ACKNOWLEDGE, &values).map(|_new| ())
    }

    fn insert_parentage(&mut self, parentage: &Parentage) -> Result<(), StoreError> {
        let Parentage { child, parent, execution } = *parentage;
        let values = [int(child.number()), int(parent.number()), int(execution.number())];
        self.db.write(&INSERT_PARENTAGE, &values, 1)
    }
}

#[cfg(test)]
mod tests {
    use super::{CHILDREN, MADE};
    use crate::tables::plan::assert_uses;

    #[test]
    fn calls_and_children_are_found_by_index() {
        assert_uses(&MADE, "tool_call_number");
        assert_uses(&CHILDREN, "parentage_parent");
    }
}
