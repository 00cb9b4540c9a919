//! What the benchmark writes into tables by hand: a few rows of each kind, read back by the store.

use domain::execution::ExecutionState;
use domain::id::{ExecutionId, WorkId};
use domain::store::{ExecutionFilter, Snapshot, StoreError, WaitFilter, WorkFilter};
use domain::work::WorkState;
use store::{Location, Options};

#[path = "../../benches/conduit/past.rs"]
mod rows;

use rows::{By, FIRST};

const ALL: u32 = 200;

/// Everything that the rows say, decoded.
fn read(tx: &mut dyn Snapshot) -> Result<(), StoreError> {
    let works = tx.works(&WorkFilter::default(), ALL)?;
    let executions = tx.executions(&ExecutionFilter::default(), ALL)?;
    let pending = works.iter().filter(|work| work.attempts == 0).count();
    assert_eq!((works.len(), executions.len(), pending), (9 + 4, 9, 4));
    for work in &works {
        assert_eq!(tx.keys_of(work.id)?.len(), usize::from(work.attempts > 0));
        let inputs = tx.pending_inputs(work.id, ALL)?;
        assert_eq!(inputs.len(), usize::from(work.attempts == 0));
        for input in inputs {
            let event = tx.event_at(input.sequence)?.expect("an input is an Event");
            assert_eq!(event.id, input.event);
            assert_eq!(tx.checkpoint(event.sequence)?.and_then(|it| it.work), Some(work.id));
            assert!(tx.payload(event.sequence)?.is_some());
        }
        if let WorkState::Waiting { wait } = work.state {
            let wait = tx.wait(wait)?.expect("a Work waits for something");
            let timeout = wait.timeout.expect("it has a time");
            assert_eq!((wait.work, wait.keys), (work.id, tx.keys_of(work.id)?));
            assert_eq!(tx.timers_of(work.id, ALL)?[0].id, timeout.timer);
            assert_eq!(tx.execution(wait.execution)?.map(|it| it.state), Some(ExecutionState::Parked));
        }
    }
    for execution in &executions {
        assert!(tx.turn_result(execution.id)?.is_some(), "{execution:?}");
        assert!(tx.event(execution.trigger)?.is_some());
    }
    assert_eq!(tx.runnable(ALL)?.len(), 4);
    assert_eq!(tx.waits(&WaitFilter { active: true, ..WaitFilter::default() }, ALL)?.len(), 9);
    Ok(())
}

/// The same of what has ended.
fn read_ended(tx: &mut dyn Snapshot) -> Result<(), StoreError> {
    let executions = tx.executions(&ExecutionFilter::default(), ALL)?;
    assert_eq!((tx.works(&WorkFilter::default(), ALL)?.len(), executions.len()), (25, 100));
    for execution in &executions {
        assert!(execution.state.is_terminal());
        assert!(tx.turn_result(execution.id)?.is_some() && tx.event(execution.trigger)?.is_some());
    }
    assert_eq!(tx.keys_of(WorkId::from_number(FIRST + 1))?.len(), 1);
    let failed = tx.execution(ExecutionId::from_number(FIRST + 97))?.map(|it| it.state);
    assert_eq!(failed, Some(ExecutionState::Failed));
    Ok(())
}

/// Makes a database, writes into it while it is closed, and reads it.
async fn check(fill: impl Fn(&std::path::Path), read: fn(&mut dyn Snapshot) -> Result<(), StoreError>) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("conduit.db");
    let open = || async { store::open(&Location::Sqlite(path.clone()), Options::default()).await.unwrap() };
    open().await.close().await.unwrap();
    fill(&path);
    let store = open().await;
    store.read("test", read).await.unwrap();
    store.close().await.unwrap();
}

#[tokio::test]
async fn the_past_of_the_benchmark_is_as_the_store_would_have_written_it() {
    check(|path| rows::runs(path, 100, 4), read_ended).await;
    let fill = |path: &std::path::Path| {
        rows::parked(path, 12, 9, By { binding: "work", executor: "nothing" });
        rows::pending(path, 4, "work");
    };
    check(fill, read).await;
}
