//! The same on PostgreSQL, which is there for several hosts and not for speed.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Instant;

use store::{Location, Options};

use crate::Setting;
use crate::accepts;
use crate::cycles::in_flight;
use crate::figure::{Goal, Report};
use crate::node::{self, Nothing};

const CLIENTS: u64 = 64;

pub(crate) async fn run(setting: &Setting, location: &str, report: &mut Report) {
    let database = Database::create(location).await;
    let (runtime, _stages) = database.runtime().await;
    let (rate, mut times) = accepts::load(&runtime, CLIENTS, setting.seconds).await;
    runtime.store().close().await.expect("the store closes");
    report.add("postgres: accepts, 64 clients", rate, "/s", None, Goal::AtLeast(1500.0));
    report.note("postgres: accepts, p50", times.at(0.5), "ms");
    database.drop().await;

    let database = Database::create(location).await;
    let (runtime, stages) = database.runtime().await;
    runtime.start(stages);
    let statements = node::fact(runtime.store(), "statements");
    let start = Instant::now();
    let other = database.runtime().await.0;
    let second = {
        let (other, time) = (other.clone(), setting.seconds);
        tokio::spawn(async move {
            let mut times = crate::figure::Times::default();
            let mut number = 900_000_000;
            while start.elapsed() < time {
                let before = Instant::now();
                node::accept(&other, number).await;
                times.push(before.elapsed());
                number += 1;
            }
            times
        })
    };
    in_flight(&runtime, CLIENTS, start, setting.seconds).await;
    let (count, time) = (node::ended(&runtime) as f64, start.elapsed().as_secs_f64());
    let mut second = second.await.expect("the second node");
    let statements = node::fact(runtime.store(), "statements") - statements;
    runtime.shutdown().await.expect("the runtime ends");
    report.add("postgres: cycles, 64 Works in flight", count / time, "/s", None, Goal::AtLeast(400.0));
    report.note("postgres: statements of a cycle", statements / count, "");
    let p99 = second.at(0.99);
    report.add("postgres: accept by a second node, p99", p99, "ms", None, Goal::AtMost(50.0));
    runtime.store().close().await.expect("the store closes");
    other.store().close().await.expect("the second store closes");
    database.drop().await;
}

/// A database of our own on the server.
struct Database {
    server: String,
    name: String,
    location: String,
}

impl Database {
    async fn create(server: &str) -> Self {
        let name = format!("conduit_bench_{}", std::process::id());
        let this = Self { server: server.to_owned(), location: with_database(server, &name), name };
        this.execute(&format!("DROP DATABASE IF EXISTS {}", this.name)).await;
        this.execute(&format!("CREATE DATABASE {}", this.name)).await;
        this
    }

    async fn execute(&self, statement: &str) {
        let connected = tokio_postgres::connect(&self.server, tokio_postgres::NoTls).await;
        let (client, connection) = connected.expect("the server answers");
        let driver = tokio::spawn(connection);
        client.batch_execute(statement).await.expect("the statement runs");
        drop(client);
        drop(driver.await);
    }

    async fn runtime(&self) -> (runtime::Runtime, runtime::Stages) {
        let options = Options { rehearse: false, ..Options::default() };
        let location = Location::from_str(&self.location).expect("a location");
        let store = store::open(&location, options).await.expect("a store");
        let scope = node::scope("nothing", serde_json::Value::Null, 64);
        node::runtime(store, vec![Arc::new(Nothing::default())], scope).await
    }

    async fn drop(self) {
        self.execute(&format!("DROP DATABASE {} WITH (FORCE)", self.name)).await;
    }
}

/// The connection string of another database of the same server.
fn with_database(server: &str, name: &str) -> String {
    if server.starts_with("postgres") {
        let (base, query) =
            server.split_once('?').map_or((server, None), |(base, query)| (base, Some(query)));
        let base = base.rsplit_once('/').map_or(base, |(base, _database)| base);
        query.map_or_else(|| format!("{base}/{name}"), |query| format!("{base}/{name}?{query}"))
    } else {
        format!("{server} dbname={name}")
    }
}
