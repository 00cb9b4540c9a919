//! What holds credentials: a handful of rows.

use domain::credential::CredentialHold;
use domain::id::ExecutionId;
use domain::store::{CredentialReads, CredentialWrites, StoreError};
use domain::text::CredentialName;
use domain::time::Timestamp;

use crate::db::{self, Columns, Sql, int, limit, text, time};
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
