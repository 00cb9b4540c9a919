//! The PostgreSQL server that `OPEN_CONDUIT_TEST_POSTGRES` names, and a database in it for each test.
//!
//! Without the variable these tests fail, unless `OPEN_CONDUIT_TEST_WITHOUT` names `postgres`: what is left
//! out has to be said.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU32, Ordering};

use tokio_postgres::NoTls;

/// The connection string of somebody who may create databases; none when PostgreSQL is left out on purpose.
fn named() -> Option<String> {
    let without = std::env::var("OPEN_CONDUIT_TEST_WITHOUT").unwrap_or_default();
    let dsn = std::env::var("OPEN_CONDUIT_TEST_POSTGRES").ok();
    let left_out = without.split([',', ' ']).any(|word| word == "postgres");
    assert!(
        dsn.is_some() || left_out,
        "OPEN_CONDUIT_TEST_POSTGRES names no server; set it, or OPEN_CONDUIT_TEST_WITHOUT=postgres to leave \
         these tests out"
    );
    dsn
}

async fn execute(dsn: &str, statement: &str) {
    let (client, connection) = tokio_postgres::connect(dsn, NoTls).await.unwrap();
    tokio::runtime::Handle::current().spawn(connection);
    client.batch_execute(statement).await.unwrap();
}

/// Runs a test on one thread, with the connection string of a database of its own.
pub(super) fn on_database(test: impl AsyncFnOnce(&str)) {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let Some(server) = named() else { return };
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("conduit_nodes_{}_{number}", std::process::id());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(execute(&server, &format!("CREATE DATABASE {name}")));
    let dsn = with_database(&server, &name);
    let result = catch_unwind(AssertUnwindSafe(|| runtime.block_on(test(&dsn))));
    runtime.block_on(execute(&server, &format!("DROP DATABASE {name} WITH (FORCE)")));
    if let Err(panic) = result {
        resume_unwind(panic);
    }
}

/// A connection string for another database of the same server.
fn with_database(dsn: &str, name: &str) -> String {
    let Some((scheme, rest)) = dsn.split_once("://") else {
        return format!("{dsn} dbname={name}");
    };
    let (place, query) = rest.split_once('?').map_or((rest, None), |(place, query)| (place, Some(query)));
    let host = place.split('/').next().unwrap_or_default();
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    format!("{scheme}://{host}/{name}{query}")
}
