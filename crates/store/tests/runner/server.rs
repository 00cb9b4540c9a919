//! The PostgreSQL server that the tests use, and a database in it for each test.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};

use store::{Location, Options, open};
use tokio_postgres::{Client, NoTls};

/// A server, by the connection string of somebody who may create databases.
pub(crate) struct Server {
    dsn: String,
}

/// A database of one test.
pub(crate) struct Database {
    pub(crate) dsn: String,
    name: String,
}

/// The server that the environment names; none when PostgreSQL is left out on purpose.
pub(crate) fn named() -> Option<Server> {
    let without = std::env::var("OPEN_CONDUIT_TEST_WITHOUT").unwrap_or_default();
    let dsn = std::env::var("OPEN_CONDUIT_TEST_POSTGRES").ok();
    let left_out = without.split([',', ' ']).any(|word| word == "postgres");
    assert!(
        dsn.is_some() || left_out,
        "OPEN_CONDUIT_TEST_POSTGRES names no server; set it, or OPEN_CONDUIT_TEST_WITHOUT=postgres to leave \
         these tests out"
    );
    dsn.map(|dsn| Server { dsn })
}

/// Connects, for as long as the runtime runs.
pub(crate) async fn connect(dsn: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(dsn, NoTls).await.unwrap();
    tokio::runtime::Handle::current().spawn(connection);
    client
}

impl Server {
    /// Makes an empty database that nobody else uses.
    pub(crate) async fn create(&self) -> Database {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("conduit_test_{}_{number}", std::process::id());
        let client = connect(&self.dsn).await;
        client.batch_execute(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await.unwrap();
        client.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
        Database { dsn: with_database(&self.dsn, &name), name }
    }

    /// Removes it, whoever is still connected.
    pub(crate) async fn remove(&self, database: &Database) {
        let client = connect(&self.dsn).await;
        client.batch_execute(&format!("DROP DATABASE {} WITH (FORCE)", database.name)).await.unwrap();
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

/// Both engines have the same tables with the same columns.
pub(crate) fn schema_is_the_one_of_sqlite() {
    let Some(server) = named() else { return };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (ours, theirs) = runtime.block_on(async {
        let path = folder.path().join("test.db");
        let sqlite = open(&Location::Sqlite(path.clone()), Options::default()).await.unwrap();
        sqlite.close().await.unwrap();
        let database = server.create().await;
        let postgres = open(&Location::Postgres(database.dsn.clone()), Options::default()).await.unwrap();
        let columns = connect(&database.dsn)
            .await
            .query(
                "SELECT table_name::text, column_name::text FROM information_schema.columns
                 WHERE table_schema = 'public'",
                &[],
            )
            .await
            .unwrap();
        postgres.close().await.unwrap();
        server.remove(&database).await;
        let theirs = columns.iter().map(|row| (row.get(0), row.get(1))).collect();
        (sqlite_columns(&path), theirs)
    });
    assert!(ours.len() > 80, "{ours:?}");
    assert_eq!(ours, theirs);
}

/// Each column of each table of a SQLite file.
fn sqlite_columns(path: &std::path::Path) -> BTreeSet<(String, String)> {
    let connection = rusqlite::Connection::open(path).unwrap();
    let text = "SELECT m.name, c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c
                WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'";
    let mut statement = connection.prepare(text).unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    rows.map(Result::unwrap).collect()
}
