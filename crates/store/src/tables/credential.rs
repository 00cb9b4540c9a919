//! What holds credentials: a handful of rows.

use domain::credential::{CredentialHold, CredentialWait};
use domain::id::{ExecutionId, WorkId};
use domain::store::{CredentialReads, CredentialWrites, StoreError};
use domain::text::CredentialName;
use domain::time::Timestamp;
use domain::work::Work;

use crate::db::{self, Columns, Sql, int, limit, maybe_time, text, time};
use crate::tx::Transaction;

macro_rules! select {
    ($rest:literal) => {
        concat!("SELECT credential, until, since, reported_by FROM credential_hold", $rest)
    };
}

static BY_NAME: Sql =
    Sql::new("read what holds a credential", "credential_hold", select!(" WHERE credential = $1"));
static LIST: Sql = Sql::new(
    "list what holds credentials",
    "credential_hold",
    select!(" WHERE credential > $1 ORDER BY credential LIMIT $2"),
);
static DUE: Sql = Sql::new(
    "find credentials that are free again",
    "credential_hold",
    select!(" WHERE until <= $1 ORDER BY until, credential LIMIT $2"),
);
static NEXT: Sql = Sql::new(
    "find when the next credential is free",
    "credential_hold",
    "SELECT until FROM credential_hold ORDER BY until LIMIT 1",
);
static PUT: Sql = Sql::new(
    "hold a credential",
    "credential_hold",
    "INSERT INTO credential_hold (credential, until, since, reported_by) VALUES ($1, $2, $3, $4)
     ON CONFLICT (credential) DO UPDATE
     SET until = excluded.until, since = excluded.since, reported_by = excluded.reported_by",
);
static DELETE: Sql =
    Sql::new("let a credential go", "credential_hold", "DELETE FROM credential_hold WHERE credential = $1");
static WAITS: Sql = Sql::new(
    "read what an attempt waited for",
    "credential_wait",
    "SELECT work, attempt, turn, credential, since, until FROM credential_wait
     WHERE work = $1 AND attempt = $2 ORDER BY turn, credential LIMIT $3",
);
static PUT_WAIT: Sql = Sql::new(
    "note that a start waits",
    "credential_wait",
    "INSERT INTO credential_wait (work, attempt, turn, credential, since, until) VALUES ($1, $2, $3, $4, $5, $6)
     ON CONFLICT (work, attempt, turn, credential) DO UPDATE SET until = excluded.until",
);
static END_WAIT: Sql = Sql::new(
    "note that a start waits no longer",
    "credential_wait",
    "UPDATE credential_wait SET until = $4
     WHERE work = $1 AND attempt >= $2 AND credential = $3 AND until IS NULL",
);

fn waited(columns: &mut Columns<'_>) -> Result<CredentialWait, StoreError> {
    Ok(CredentialWait {
        work: WorkId::from_number(columns.int()?),
        attempt: columns.int()?,
        turn: columns.int()?,
        credential: columns.text()?,
        since: columns.time()?,
        until: columns.maybe_time()?,
    })
}

fn decode(columns: &mut Columns<'_>) -> Result<CredentialHold, StoreError> {
    Ok(CredentialHold {
        credential: columns.text()?,
        until: columns.time()?,
        since: columns.time()?,
        reported_by: ExecutionId::from_number(columns.int()?),
    })
}

impl CredentialReads for Transaction<'_> {
    fn credential_hold(&mut self, credential: &CredentialName) -> Result<Option<CredentialHold>, StoreError> {
        self.db.one(&BY_NAME, &[text(credential.as_str())], decode)
    }

    fn credential_holds(
        &mut self,
        after: Option<&CredentialName>,
        rows: u32,
    ) -> Result<Vec<CredentialHold>, StoreError> {
        let after = after.map_or("", CredentialName::as_str);
        self.db.many(&LIST, &[text(after), limit(rows)], decode)
    }

    fn due_credential_holds(&mut self, now: Timestamp, rows: u32) -> Result<Vec<CredentialHold>, StoreError> {
        self.db.many(&DUE, &[time(now), limit(rows)], decode)
    }

    fn next_credential_due(&mut self) -> Result<Option<Timestamp>, StoreError> {
        self.db.one(&NEXT, &[], db::moment)
    }

    fn credential_waits(
        &mut self,
        work: WorkId,
        attempt: i64,
        rows: u32,
    ) -> Result<Vec<CredentialWait>, StoreError> {
        self.db.many(&WAITS, &[int(work.number()), int(attempt), limit(rows)], waited)
    }
}

impl CredentialWrites for Transaction<'_> {
    fn put_credential_hold(&mut self, hold: &CredentialHold) -> Result<(), StoreError> {
        let values = [
            text(hold.credential.as_str()),
            time(hold.until),
            time(hold.since),
            int(hold.reported_by.number()),
        ];
        self.db.write(&PUT, &values, 1)
    }

    fn put_credential_wait(&mut self, wait: &CredentialWait) -> Result<(), StoreError> {
        let values = [
            int(wait.work.number()),
            int(wait.attempt),
            int(wait.turn),
            text(wait.credential.as_str()),
            time(wait.since),
            maybe_time(wait.until),
        ];
        self.db.write(&PUT_WAIT, &values, 1)
    }

    fn end_credential_wait(
        &mut self,
        work: &Work,
        credential: &CredentialName,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let values = [int(work.id.number()), int(work.attempts), text(credential.as_str()), time(at)];
        self.db.count(&END_WAIT, &values).map(|_ended| ())
    }

    fn delete_credential_hold(&mut self, credential: &CredentialName) -> Result<bool, StoreError> {
        Ok(self.db.count(&DELETE, &[text(credential.as_str())])? > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::{DUE, NEXT};
    use crate::tables::plan::assert_uses;

    #[test]
    fn credentials_that_are_held_cost_nothing() {
        assert_uses(&DUE, "credential_hold_until");
        assert_uses(&NEXT, "credential_hold_until");
    }
}
