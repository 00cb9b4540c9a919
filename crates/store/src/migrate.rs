//! Brings the schema up to date, in one transaction, when a database is opened.

use std::sync::Arc;

use domain::store::StoreError;
use thiserror::Error;

use crate::db::{Columns, Db, Sql, int};
use crate::tables::schema::{Dialect, MIGRATION_TABLE, MIGRATIONS, Migration};

static APPLIED: Sql = Sql::new(
    "read which migrations have run",
    "migration",
    "SELECT number, checksum FROM migration ORDER BY number",
);
static NOTE: Sql =
    Sql::new("note a migration", "migration", "INSERT INTO migration (number, checksum) VALUES ($1, $2)");

/// Why a schema cannot be brought up to date.
#[derive(Debug, Error)]
enum MigrationError {
    #[error(
        "the database was written by a newer version (migration {found}, and this one knows {known}); \
         start that version, or restore a backup"
    )]
    Newer { found: i64, known: i64 },
    #[error(
        "this database was made by another version (its migration {number} differs); use that version, or another home"
    )]
    Changed { number: i64 },
    #[error("migration {number} is missing from the database, though later ones have run")]
    Missing { number: i64 },
}

/// A connection on which the schema can be changed.
pub(crate) trait Schema: Db {
    /// Begins a transaction that keeps every other migration out.
    fn begin_migration(&mut self) -> Result<(), StoreError>;

    /// Runs a statement of the schema.
    fn define(&mut self, statement: &str) -> Result<(), StoreError>;

    /// Ends the transaction, well or not.
    fn end_migration(&mut self, keep: bool) -> Result<(), StoreError>;
}

/// Applies every migration that has not run yet.
pub(crate) fn run(db: &mut impl Schema, dialect: &Dialect) -> Result<(), StoreError> {
    db.begin_migration()?;
    let result = apply(db, dialect, MIGRATIONS);
    // The first error counts; a transaction that cannot even be ended is none the worse.
    let ended = db.end_migration(result.is_ok());
    result.and(ended)
}

fn apply(db: &mut impl Schema, dialect: &Dialect, migrations: &[Migration]) -> Result<(), StoreError> {
    db.define(&dialect.render(MIGRATION_TABLE))?;
    let mut applied = Vec::new();
    db.query(&APPLIED, &[], &mut |row| {
        let mut columns = Columns::new(APPLIED.table, row);
        applied.push((columns.int()?, columns.int()?));
        Ok(())
    })?;
    let pending = pending(&applied, migrations).map_err(|error| StoreError::Database {
        operation: "bring its schema up to date",
        source: Arc::new(error),
    })?;
    for migration in pending {
        for statement in migration.statements {
            db.define(&dialect.render(statement))?;
        }
        db.write(&NOTE, &[int(migration.number), int(migration.checksum())], 1)?;
    }
    db.flush()
}

/// The migrations that have not run, given those that have.
fn pending<'m>(
    applied: &[(i64, i64)],
    migrations: &'m [Migration],
) -> Result<&'m [Migration], MigrationError> {
    let known = migrations.last().map_or(0, |migration| migration.number);
    if let Some((found, _checksum)) = applied.last()
        && *found > known
    {
        return Err(MigrationError::Newer { found: *found, known });
    }
    for (migration, (number, checksum)) in migrations.iter().zip(applied) {
        if migration.number != *number {
            return Err(MigrationError::Missing { number: migration.number });
        }
        if migration.checksum() != *checksum {
            return Err(MigrationError::Changed { number: *number });
        }
    }
    Ok(&migrations[applied.len()..])
}

#[cfg(test)]
#[path = "migrate/tests.rs"]
mod tests;
