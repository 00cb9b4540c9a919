//! Which index a statement uses, for tests: what is not due must not cost.

use crate::db::{Sql, numbered};
use crate::engine::sqlite::Sqlite;

/// Asserts that SQLite runs a statement over an index.
#[track_caller]
pub(crate) fn assert_uses(sql: &Sql, index: &str) {
    assert_text_uses(sql.text, index);
}

/// Asserts that SQLite runs a query over an index.
#[track_caller]
pub(crate) fn assert_text_uses(query: &str, index: &str) {
    let engine = Sqlite::open(None).expect("a database in memory opens");
    let explain = format!("EXPLAIN QUERY PLAN {}", numbered(query));
    let mut statement = engine.connection().prepare(&explain).expect("the statement is well formed");
    let mut rows = statement.raw_query();
    let mut plan = Vec::new();
    while let Some(row) = rows.next().expect("a plan can be read") {
        plan.push(row.get::<_, String>(3).expect("its fourth column is a text"));
    }
    let used = plan.iter().any(|step| step.split_whitespace().any(|word| word == index));
    assert!(used, "{query}: {plan:?}");
}
