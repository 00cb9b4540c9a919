//! Applied configurations.

use domain::id::Generation;
use domain::store::{ConfigReads, ConfigWrites, GenerationRow, StoreError};

use crate::db::{Columns, Sql, int, text, time};
use crate::tx::Transaction;

static NEWEST: Sql = Sql::new(
    "read the configuration in force",
    "generation",
    "SELECT number, body, digest, applied_at FROM generation ORDER BY number DESC LIMIT 1",
);
static NEWEST_NUMBER: Sql = Sql::new(
    "read which configuration is in force",
    "generation",
    "SELECT number FROM generation ORDER BY number DESC LIMIT 1",
);
static BY_NUMBER: Sql = Sql::new(
    "read a configuration",
    "generation",
    "SELECT number, body, digest, applied_at FROM generation WHERE number = $1",
);
static INSERT: Sql = Sql::new(
    "apply a configuration",
    "generation",
    "INSERT INTO generation (number, body, digest, applied_at) VALUES ($1, $2, $3, $4)
     ON CONFLICT (number) DO NOTHING",
);

fn decode(columns: &mut Columns<'_>) -> Result<GenerationRow, StoreError> {
    Ok(GenerationRow {
        number: Generation::from_number(columns.int()?),
        body: columns.text()?,
        digest: columns.text()?,
        applied_at: columns.time()?,
    })
}

impl ConfigReads for Transaction<'_> {
    fn current_generation(&mut self) -> Result<Option<GenerationRow>, StoreError> {
        self.db.one(&NEWEST, &[], decode)
    }

    fn current_generation_number(&mut self) -> Result<Option<Generation>, StoreError> {
        self.db.one(&NEWEST_NUMBER, &[], |columns| columns.int().map(Generation::from_number))
    }

    fn generation(&mut self, number: Generation) -> Result<Option<GenerationRow>, StoreError> {
        self.db.one(&BY_NUMBER, &[int(number.number())], decode)
    }
}

impl ConfigWrites for Transaction<'_> {
    fn insert_generation(&mut self, row: &GenerationRow) -> Result<(), StoreError> {
        let values = [int(row.number.number()), text(&row.body), text(&row.digest), time(row.applied_at)];
        self.db.write(&INSERT, &values, 1)
    }
}
