//! Recurring timers, and what their firings came to.

use domain::event::Key;
use domain::id::{EventId, TimerId};
use domain::recurrence::{Firing, Recurrence};
use domain::store::{RecurrenceReads, RecurrenceWrites, StoreError};
use domain::time::Timestamp;

use crate::db::{self, Columns, Sql, blob, int, limit, maybe_int, text, time};
use crate::tx::Transaction;

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, scope, entry, source, external_id, state, rests, armed_at, due_at, firings
             FROM recurrence",
            $rest
        )
    };
}

static DUE: Sql = Sql::new(
    "find recurring timers that are due",
    "recurrence",
    select!(" WHERE rests = 0 AND due_at <= $1 ORDER BY due_at, id LIMIT $2"),
);
static NEXT: Sql = Sql::new(
    "find when the next recurring timer is due",
    "recurrence",
    "SELECT due_at FROM recurrence WHERE rests = 0 ORDER BY due_at LIMIT 1",
);
static BY_ID: Sql = Sql::new("read a recurring timer", "recurrence", select!(" WHERE id = $1"));
static LIST: Sql =
    Sql::new("list recurring timers", "recurrence", select!(" WHERE id > $1 ORDER BY id LIMIT $2"));
static COUNT: Sql = Sql::new("count recurring timers", "recurrence", "SELECT COUNT(*) FROM recurrence");
static INSERT: Sql = Sql::new(
    "arm a recurring timer",
    "recurrence",
    "INSERT INTO recurrence (id, scope, entry, source, external_id, state, rests, armed_at, due_at, firings)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (scope, source, external_id) DO NOTHING",
);
static UPDATE: Sql = Sql::new(
    "write a recurring timer",
    "recurrence",
    "UPDATE recurrence SET entry = $4, state = $5, rests = $6, armed_at = $7, due_at = $8, firings = $9
     WHERE id = $1 AND firings = $2 AND armed_at = $3",
);
static DELETE: Sql = Sql::new(
    "remove a recurring timer",
    "recurrence",
    "DELETE FROM recurrence WHERE id = $1 AND firings = $2 AND armed_at = $3",
);
static FIRINGS: Sql = Sql::new(
    "read the firings of a timer",
    "firing",
    "SELECT recurrence, number, due_at, fired_at, event, told FROM firing WHERE recurrence = $1
     ORDER BY number DESC LIMIT $2",
);
static INSERT_FIRING: Sql = Sql::new(
    "note a firing",
    "firing",
    "INSERT INTO firing (recurrence, number, due_at, fired_at, event, told) VALUES ($1, $2, $3, $4, $5, $6)",
);

fn decode(columns: &mut Columns<'_>) -> Result<Recurrence, StoreError> {
    Ok(Recurrence {
        id: TimerId::from_number(columns.int()?),
        scope: columns.text()?,
        entry: columns.text()?,
        key: Key { source: columns.text()?, external_id: columns.text()? },
        state: columns.blob()?.to_vec(),
        rests: columns.flag()?,
        armed_at: columns.time()?,
        due_at: columns.time()?,
        firings: columns.int()?,
    })
}

fn number(columns: &mut Columns<'_>) -> Result<i64, StoreError> {
    columns.int()
}

fn decode_firing(columns: &mut Columns<'_>) -> Result<Firing, StoreError> {
    Ok(Firing {
        recurrence: TimerId::from_number(columns.int()?),
        number: columns.int()?,
        due_at: columns.time()?,
        fired_at: columns.time()?,
        event: columns.maybe_int()?.map(EventId::from_number),
        told: columns.blob()?.to_vec(),
    })
}

impl RecurrenceReads for Transaction<'_> {
    fn due_recurrences(&mut self, now: Timestamp, rows: u32) -> Result<Vec<Recurrence>, StoreError> {
        self.db.many(&DUE, &[time(now), limit(rows)], decode)
    }

    fn next_recurrence_due(&mut self) -> Result<Option<Timestamp>, StoreError> {
        self.db.one(&NEXT, &[], db::moment)
    }

    fn recurrence(&mut self, id: TimerId) -> Result<Option<Recurrence>, StoreError> {
        self.db.one(&BY_ID, &[int(id.number())], decode)
    }

    fn recurrences(&mut self, after: Option<TimerId>, rows: u32) -> Result<Vec<Recurrence>, StoreError> {
        let after = after.map_or(i64::MIN, TimerId::number);
        self.db.many(&LIST, &[int(after), limit(rows)], decode)
    }

    fn count_recurrences(&mut self) -> Result<u64, StoreError> {
        let count = self.db.one(&COUNT, &[], number)?;
        Ok(count.and_then(|count| u64::try_from(count).ok()).unwrap_or_default())
    }

    fn firings(&mut self, id: TimerId, rows: u32) -> Result<Vec<Firing>, StoreError> {
        self.db.many(&FIRINGS, &[int(id.number()), limit(rows)], decode_firing)
    }
}

impl RecurrenceWrites for Transaction<'_> {
    fn insert_recurrence(&mut self, recurrence: &Recurrence) -> Result<bool, StoreError> {
        let values = [
            int(recurrence.id.number()),
            text(recurrence.scope.as_str()),
            text(recurrence.entry.as_str()),
            text(recurrence.key.source.as_str()),
            text(recurrence.key.external_id.as_str()),
            blob(&recurrence.state),
            int(i64::from(recurrence.rests)),
            time(recurrence.armed_at),
            time(recurrence.due_at),
            int(recurrence.firings),
        ];
        Ok(self.db.count(&INSERT, &values)? > 0)
    }

    fn update_recurrence(&mut self, next: &Recurrence, read: &Recurrence) -> Result<bool, StoreError> {
        let values = [
            int(read.id.number()),
            int(read.firings),
            time(read.armed_at),
            text(next.entry.as_str()),
            blob(&next.state),
            int(i64::from(next.rests)),
            time(next.armed_at),
            time(next.due_at),
            int(next.firings),
        ];
        Ok(self.db.count(&UPDATE, &values)? > 0)
    }

    fn delete_recurrence(&mut self, read: &Recurrence) -> Result<bool, StoreError> {
        let values = [int(read.id.number()), int(read.firings), time(read.armed_at)];
        Ok(self.db.count(&DELETE, &values)? > 0)
    }

    fn insert_firing(&mut self, firing: &Firing) -> Result<(), StoreError> {
        let values = [
            int(firing.recurrence.number()),
            int(firing.number),
            time(firing.due_at),
            time(firing.fired_at),
            maybe_int(firing.event.map(EventId::number)),
            blob(&firing.told),
        ];
        self.db.write(&INSERT_FIRING, &values, 1)
    }
}

#[cfg(test)]
mod tests {
    use super::{DUE, FIRINGS, NEXT};
    use crate::tables::plan::assert_uses;

    #[test]
    fn what_is_not_due_and_what_rests_costs_nothing() {
        assert_uses(&DUE, "recurrence_due");
        assert_uses(&NEXT, "recurrence_due");
        assert_uses(&FIRINGS, "firing");
    }
}
