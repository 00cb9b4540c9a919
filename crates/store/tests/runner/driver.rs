//! A store under test, and the clock that it runs by.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::store::Store;
use domain::time::{Clock, Timestamp};
use spec::store::{DurableDriver, StoreDriver};
use store::{Host, Location, Options, open};
use tokio::runtime::Runtime;

use crate::server;

/// A clock that moves when a case moves it.
#[derive(Debug)]
struct MovedClock(Mutex<Duration>);

/// Where the clock starts. The cases' own records lie before it, in 1970.
const START: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);

impl Clock for MovedClock {
    fn wall(&self) -> Timestamp {
        START.after(self.boot())
    }

    fn boot(&self) -> Duration {
        *self.0.lock().unwrap()
    }
}

/// A store of one test.
pub(crate) struct Driver {
    store: Store,
    location: Location,
    clock: Arc<MovedClock>,
}

impl Driver {
    async fn open(location: Location) -> Self {
        let clock = Arc::new(MovedClock(Mutex::new(Duration::ZERO)));
        let store = open(&location, options(&clock)).await.unwrap();
        Self { store, location, clock }
    }
}

fn options(clock: &Arc<MovedClock>) -> Options {
    let clock: Arc<dyn Clock> = Arc::<MovedClock>::clone(clock);
    // The same place in every life of the process.
    let host = Host { identity: "driver".to_owned(), label: "the driver".to_owned() };
    Options { clock, own_time: true, host: Some(host), ..Options::default() }
}

impl StoreDriver for Driver {
    fn store(&self) -> &Store {
        &self.store
    }

    fn advance(&self, by: Duration) {
        *self.clock.0.lock().unwrap() += by;
    }
}

impl DurableDriver for Driver {
    async fn reopen(&mut self) {
        self.store.close().await.unwrap();
        self.store = open(&self.location, options(&self.clock)).await.unwrap();
    }
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

async fn run(location: Location, case: impl AsyncFnOnce(&mut Driver)) {
    let mut driver = Driver::open(location).await;
    case(&mut driver).await;
    driver.store.close().await.unwrap();
}

/// Runs a case on SQLite in memory.
pub(crate) fn memory(case: impl AsyncFnOnce(&mut Driver)) {
    runtime().block_on(run(Location::Memory, case));
}

/// Runs a case on a SQLite file of its own.
pub(crate) fn sqlite(case: impl AsyncFnOnce(&mut Driver)) {
    let folder = tempfile::tempdir().unwrap();
    runtime().block_on(run(Location::Sqlite(folder.path().join("test.db")), case));
}

/// Runs a case on a PostgreSQL database of its own.
pub(crate) fn postgres(case: impl AsyncFnOnce(&mut Driver)) {
    let Some(server) = server::named() else { return };
    let runtime = runtime();
    let database = runtime.block_on(server.create());
    let location = Location::Postgres(database.dsn.clone());
    let result = catch_unwind(AssertUnwindSafe(|| runtime.block_on(run(location, case))));
    runtime.block_on(server.remove(&database));
    if let Err(panic) = result {
        resume_unwind(panic);
    }
}
