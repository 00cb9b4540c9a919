//! The raw limit: the statements that the store really runs, run bare.
//!
//! Two consecutive batches are recorded from the store. What differs between them is what a batch counts on
//! (ids, sequences, names), so a third, fourth and thousandth batch can be made from the two. They run on
//! plain `rusqlite`, prepared, one transaction a batch, on a copy of the store's own file: the same tables
//! and the same indexes, and nothing of ours in between.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{CachedStatement, Connection, types::Value};
use store::{Said, Spoken};

/// How one parameter goes on from batch to batch.
enum Parameter {
    Same(Value),
    Steps { from: i64, by: i64 },
    Counts { before: String, width: usize, after: String },
}

/// One statement of a batch.
struct Statement {
    text: String,
    parameters: Vec<Parameter>,
}

/// One transaction of a batch.
pub(crate) struct Transaction(Vec<Statement>);

impl Transaction {
    /// Learns from two recordings of the same transaction how it goes on.
    pub(crate) fn learn(first: &[Spoken], second: &[Spoken]) -> Self {
        assert_eq!(first.len(), second.len(), "two batches of one kind run the same statements");
        let statements = first.iter().zip(second).map(|(first, second)| {
            assert_eq!(first.text, second.text, "two batches of one kind run the same statements");
            let parameters = first.values.iter().zip(&second.values).map(|(a, b)| parameter(a, b)).collect();
            Statement { text: first.text.replace('$', "?"), parameters }
        });
        Self(statements.collect())
    }

    /// How many statements it has.
    pub(crate) const fn len(&self) -> usize {
        self.0.len()
    }
}

fn parameter(first: &Said, second: &Said) -> Parameter {
    match (first, second) {
        (Said::Int(from), Said::Int(to)) if from != to => Parameter::Steps { from: *from, by: to - from },
        (Said::Text(one), Said::Text(two)) if one != two => {
            let before: usize =
                one.chars().zip(two.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum();
            let tail = one[before..].chars().rev().zip(two[before..].chars().rev());
            let after: usize = tail.take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum();
            let end = one.len() - after;
            Parameter::Counts {
                before: one[..before].to_owned(),
                width: end - before,
                after: one[end..].to_owned(),
            }
        }
        (said, _) => Parameter::Same(match said {
            Said::Null => Value::Null,
            Said::Int(number) => Value::Integer(*number),
            Said::Text(text) => Value::Text(text.clone()),
            Said::Blob(blob) => Value::Blob(blob.clone()),
        }),
    }
}

/// A file with the store's tables, opened bare.
pub(crate) struct Database(Connection);

impl Database {
    /// Opens a file as the store does.
    pub(crate) fn open(path: &Path) -> Self {
        let connection = Connection::open(path).expect("the raw database opens");
        connection
            .execute_batch(
                "PRAGMA page_size = 4096; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
                 PRAGMA wal_autocheckpoint = 0; PRAGMA cache_size = -32768; PRAGMA temp_store = MEMORY;",
            )
            .expect("the pragmas are taken");
        let set = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true);
        set.expect("the planner is told what the store tells it");
        connection.set_prepared_statement_cache_capacity(256);
        Self(connection)
    }

    /// What a pragma reads back as.
    pub(crate) fn pragma(&self, name: &str) -> String {
        let value: Value =
            self.0.pragma_query_value(None, name, |row| row.get(0)).expect("the pragma is known");
        match value {
            Value::Integer(number) => number.to_string(),
            Value::Text(text) => text,
            Value::Null | Value::Real(_) | Value::Blob(_) => "?".to_owned(),
        }
    }

    /// The median time of a commit of one small row, in milliseconds.
    pub(crate) fn one_row_commit_ms(&self, time: Duration) -> f64 {
        self.0.execute_batch("CREATE TABLE IF NOT EXISTS one_row (n INTEGER PRIMARY KEY)").expect("a table");
        let mut times = crate::figure::Times::default();
        let start = Instant::now();
        while start.elapsed() < time {
            let before = Instant::now();
            self.0.execute("INSERT INTO one_row DEFAULT VALUES", []).expect("a row");
            times.push(before.elapsed());
        }
        self.checkpoint();
        times.at(0.5)
    }

    /// Runs batch `n`, each of its transactions committed by itself.
    pub(crate) fn run(&self, batch: &[Transaction], n: i64) {
        for transaction in batch {
            self.0.execute_batch("BEGIN IMMEDIATE").expect("a transaction begins");
            for statement in &transaction.0 {
                let mut prepared =
                    self.0.prepare_cached(&statement.text).expect("the statement is the store's");
                bind(&mut prepared, &statement.parameters, n);
                let mut rows = prepared.raw_query();
                while rows.next().expect("the statement runs").is_some() {}
            }
            self.0.execute_batch("COMMIT").expect("a transaction commits");
        }
    }

    /// Moves the log into the file, as the store does when it is idle.
    pub(crate) fn checkpoint(&self) {
        let moved = self.0.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_row| Ok(()));
        moved.expect("a checkpoint");
    }

    /// Batches from `n` on, for a time. Returns how many there were in a second.
    pub(crate) fn rate(&self, batch: &[Transaction], n: &mut i64, time: Duration) -> f64 {
        let start = Instant::now();
        let first = *n;
        while start.elapsed() < time {
            self.run(batch, *n);
            *n += 1;
            if (*n - first) % 64 == 0 {
                self.checkpoint();
            }
        }
        (*n - first) as f64 / start.elapsed().as_secs_f64()
    }
}

fn bind(prepared: &mut CachedStatement<'_>, parameters: &[Parameter], n: i64) {
    for (index, parameter) in parameters.iter().enumerate() {
        let bound = match parameter {
            Parameter::Same(value) => prepared.raw_bind_parameter(index + 1, value),
            Parameter::Steps { from, by } => prepared.raw_bind_parameter(index + 1, from + by * n),
            Parameter::Counts { before, width, after } => {
                prepared.raw_bind_parameter(index + 1, format!("{before}{n:0>width$}{after}"))
            }
        };
        bound.expect("a parameter is bound");
    }
}
