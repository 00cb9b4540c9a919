//! Tests of the migrations: what the schema is, and what a database of another version is told.

use std::fmt::Write as _;

use domain::store::StoreError;

use super::{MigrationError, pending};
use crate::engine::sqlite::Sqlite;
use crate::tables::schema::{MIGRATIONS, Migration};

const KNOWN: &[Migration] =
    &[Migration { number: 1, statements: &["one"] }, Migration { number: 2, statements: &["two"] }];

#[test]
fn schema_is_what_it_was() {
    let engine = Sqlite::open(None).unwrap();
    let text = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY tbl_name, type DESC, name";
    let mut statement = engine.connection().prepare(text).unwrap();
    let rows = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
    let mut schema = String::new();
    for row in rows {
        writeln!(schema, "{};", row.unwrap()).unwrap();
    }
    insta::assert_snapshot!("schema", schema);
}

#[test]
fn released_migrations_never_change() {
    let checksums: Vec<(i64, i64)> =
        MIGRATIONS.iter().map(|migration| (migration.number, migration.checksum())).collect();
    insta::assert_debug_snapshot!("checksums", checksums);
}

#[test]
fn pending_finds_what_has_not_run() {
    let applied = [(1, KNOWN[0].checksum())];
    let numbers = |applied: &[(i64, i64)]| {
        pending(applied, KNOWN).unwrap().iter().map(|migration| migration.number).collect::<Vec<_>>()
    };
    assert_eq!(numbers(&[]), [1, 2]);
    assert_eq!(numbers(&applied), [2]);
    assert!(numbers(&[(1, KNOWN[0].checksum()), (2, KNOWN[1].checksum())]).is_empty());
}

#[test]
fn pending_refuses_a_history_that_is_not_ours() {
    let (one, two) = ((1, KNOWN[0].checksum()), (2, KNOWN[1].checksum()));
    let refused = |applied: &[(i64, i64)]| pending(applied, KNOWN).unwrap_err();
    assert!(matches!(refused(&[one, two, (3, 0)]), MigrationError::Newer { found: 3, known: 2 }));
    assert!(matches!(refused(&[(1, 7)]), MigrationError::Changed { number: 1 }));
    assert!(matches!(refused(&[two]), MigrationError::Missing { number: 1 }));
}

#[test]
fn a_newer_database_is_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("test.db");
    let engine = Sqlite::open(Some(path.clone())).unwrap();
    engine.connection().execute("INSERT INTO migration (number, checksum) VALUES (99, 0)", []).unwrap();
    drop(engine);
    let error = Sqlite::open(Some(path)).unwrap_err();
    let StoreError::Database { source, .. } = error else { panic!("{error}") };
    assert!(source.to_string().contains("newer version (migration 99"), "{source}");
}
