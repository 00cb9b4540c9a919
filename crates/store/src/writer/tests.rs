//! Tests of the writer: what a group does when one of its requests, or its commit, goes wrong.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use domain::event::Payload;
use domain::feed::Change;
use domain::store::{EventFilter, Flow, Observer, StoreError, Tx};
use domain::time::Timestamp;
use tokio::sync::oneshot;
use tracker::IssueTx;

use super::{Answer, Request, Writer};
use crate::counters::Counters;
use crate::engine::sqlite::Sqlite;
use crate::fault::{CommitFault, Faults};
use crate::options::Options;
use crate::reads::ReadRequest;
use crate::samples::{accept, delivery_ids, event};
use crate::tests::Still;

/// A writer on a database in memory, and what a test needs to look at it.
struct Bench {
    writer: Writer<Sqlite>,
    counters: Arc<Counters>,
    faults: Arc<Faults>,
}

fn bench() -> Bench {
    bench_with(Options { rehearse: false, ..Options::default() })
}

fn bench_with(options: Options) -> Bench {
    let counters = Arc::new(Counters::default());
    let faults = Arc::new(Faults::default());
    // A clock that stands still: a group is never cut for the time it takes, however busy the machine is.
    let clock = Arc::new(Still(Timestamp::from_micros(1)));
    let options = Options { faults: Some(Arc::clone(&faults)), clock, ..options };
    let (writer, _opened) = crate::start_sqlite(None, options, Arc::clone(&counters)).unwrap();
    Bench { writer, counters, faults }
}

type TestBody = Box<dyn FnMut(&mut dyn Tx) -> Flow + Send>;

impl Bench {
    /// Runs bodies that wait together, in one group unless one breaks it. Returns the answer of each.
    fn group(&mut self, bodies: Vec<TestBody>) -> Vec<Answer> {
        let (requests, answers): (Vec<_>, Vec<_>) = bodies
            .into_iter()
            .map(|body| {
                let (answer, answered) = oneshot::channel();
                (Request { label: "test", body, answer }, answered)
            })
            .unzip();
        let mut requests = requests.into_iter();
        while let Some(first) = requests.next() {
            self.writer.batch(first, &mut || requests.next());
        }
        answers.into_iter().map(|mut answered| answered.try_recv().expect("it is answered")).collect()
    }

    fn fact(&self, name: &str) -> u64 {
        let facts = self.counters.facts();
        facts.iter().find(|(known, _)| *known == name).unwrap().1.parse().unwrap()
    }

    /// The deliveries that are stored, oldest first.
    fn stored(&mut self) -> Vec<String> {
        let found = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&found);
        let (answer, mut answered) = oneshot::channel();
        let body = Box::new(move |snapshot: &mut dyn domain::store::Snapshot| {
            *kept.lock().unwrap() = snapshot.events(&EventFilter::default(), 1000).unwrap();
        });
        let now = self.writer.ways.clock.now();
        ReadRequest { label: "test", body, answer }.run_on(self.writer.snapshot(), 0, now);
        answered.try_recv().unwrap().unwrap();
        let found = found.lock().unwrap();
        delivery_ids(&found)
    }
}

/// A body that accepts an Event and ends as told.
fn accepts(name: &'static str, end: impl Fn() -> Flow + Send + 'static) -> TestBody {
    Box::new(move |tx| {
        accept(tx, name).unwrap();
        end()
    })
}

fn keeps(name: &'static str) -> TestBody {
    accepts(name, || Flow::Commit)
}

#[test]
fn a_refusal_before_a_write_costs_no_undo() {
    let mut bench = bench();
    let refuses: TestBody = Box::new(|tx| {
        tx.next_sequence();
        assert_eq!(tx.events(&EventFilter::default(), 9).unwrap().len(), 1);
        Flow::Undo
    });
    let answers = bench.group(vec![keeps("a"), refuses, keeps("b")]);
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(bench.stored(), ["a", "b"]);
    assert_eq!((bench.fact("commits"), bench.fact("undone"), bench.fact("batch_max")), (1, 0, 3));
}

#[test]
fn a_group_that_wrote_nothing_commits_nothing() {
    let mut bench = bench();
    let answers = bench.group(vec![Box::new(|_tx| Flow::Commit), Box::new(|_tx| Flow::Undo)]);
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(bench.fact("commits"), 0);
}

#[test]
fn a_failure_after_a_write_runs_the_others_again_and_itself_alone() {
    let mut bench = bench();
    let runs = Arc::new(AtomicUsize::new(0));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (counted, noted) = (Arc::clone(&runs), Arc::clone(&seen));
    let refuses: TestBody = Box::new(move |tx| {
        accept(tx, "refused").unwrap();
        noted.lock().unwrap().push(delivery_ids(&tx.events(&EventFilter::default(), 9).unwrap()));
        Flow::Undo
    });
    let counts = accepts("a", move || {
        counted.fetch_add(1, Ordering::SeqCst);
        Flow::Commit
    });
    let answers = bench.group(vec![counts, refuses, keeps("later")]);
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(runs.load(Ordering::SeqCst), 2);
    // Alone, it sees what the others committed.
    assert_eq!(*seen.lock().unwrap(), [vec!["a", "refused"], vec!["a", "refused"]]);
    // A broken group takes nobody in; who waits comes in the next.
    assert_eq!(bench.stored(), ["a", "later"]);
    assert_eq!((bench.fact("undone"), bench.fact("commits")), (2, 2));
}

#[test]
fn a_panic_is_undone_and_answered() {
    let mut bench = bench();
    let answers = bench.group(vec![keeps("a"), accepts("b", || panic!("on purpose"))]);
    assert!(answers[0].is_ok());
    let Err(StoreError::Panicked { label, message }) = &answers[1] else { panic!("{answers:?}") };
    assert_eq!((*label, message.as_str()), ("test", "on purpose"));
    assert_eq!(bench.stored(), ["a"]);
}

#[test]
fn an_error_that_a_body_swallows_is_its_answer() {
    let mut bench = bench();
    bench.faults.fail_statement(2);
    let swallows: TestBody = Box::new(|tx| {
        let _failed = accept(tx, "a");
        let _fails_too = accept(tx, "b");
        Flow::Commit
    });
    let answers = bench.group(vec![swallows]);
    assert!(matches!(answers[0], Err(StoreError::Database { .. })), "{answers:?}");
    assert!(bench.stored().is_empty());
}

#[test]
fn a_lost_commit_that_happened_is_answered_well() {
    let mut bench = bench();
    bench.faults.fail_commit(CommitFault::After);
    let answers = bench.group(vec![keeps("a"), keeps("b")]);
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(bench.stored(), ["a", "b"]);
}

#[test]
fn a_lost_commit_that_did_not_happen_is_done_again() {
    let mut bench = bench();
    bench.faults.fail_commit(CommitFault::Before);
    let answers = bench.group(vec![keeps("a"), keeps("b")]);
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(bench.stored(), ["a", "b"]);
}

#[test]
fn a_full_disk_fails_what_does_not_fit_and_nothing_else() {
    let mut bench = bench();
    bench.group(vec![keeps("first")]);
    let connection = bench.writer.engine.connection();
    let pages: i64 = connection.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
    let full = format!("PRAGMA max_page_count = {}", pages + 4);
    connection.query_row(&full, [], |_row| Ok(())).unwrap();
    let large: TestBody = Box::new(|tx| {
        let payload = Payload::stored(vec![b'1'; 1 << 20]);
        let sequence = tx.next_sequence();
        let event = event(sequence, tx.now(), "large");
        tx.insert_event(&event, &payload).map_or(Flow::Undo, |_new| Flow::Commit)
    });
    let answers = bench.group(vec![keeps("a"), large]);
    assert!(answers[0].is_ok(), "{answers:?}");
    assert!(matches!(answers[1], Err(StoreError::Full)), "{answers:?}");
    assert_eq!(bench.stored(), ["first", "a"]);
}

#[test]
fn a_disk_that_has_room_again_takes_the_same_request() {
    let mut bench = bench();
    bench.faults.fill_disk(3);
    let tries = || -> TestBody { Box::new(|tx| accept(tx, "a").map_or(Flow::Undo, |_new| Flow::Commit)) };
    let answers = bench.group(vec![tries()]);
    assert!(matches!(answers[0], Err(StoreError::Full)), "{answers:?}");
    assert!(bench.stored().is_empty());
    assert!(bench.group(vec![tries()])[0].is_ok());
    assert_eq!(bench.stored(), ["a"]);
}

#[test]
fn sequences_are_restored_when_a_request_is_undone() {
    let mut bench = bench();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let note = |undone: bool| -> TestBody {
        let seen = Arc::clone(&seen);
        Box::new(move |tx| {
            let sequence = tx.next_sequence();
            assert_eq!(tx.last_sequence(), sequence);
            seen.lock().unwrap().push(sequence.number());
            if undone { Flow::Undo } else { Flow::Commit }
        })
    };
    bench.group(vec![note(true), note(false), note(true), note(false)]);
    assert_eq!(*seen.lock().unwrap(), [1, 1, 2, 2]);
    bench.group(vec![keeps("a")]);
    seen.lock().unwrap().clear();
    // A group that wrote nothing gives its sequences back; an Event took the next, and its feed row none.
    bench.group(vec![note(false)]);
    assert_eq!(*seen.lock().unwrap(), [2]);
}

#[test]
fn a_rehearsal_finds_a_body_that_differs() {
    let mut bench = bench_with(Options { rehearse: true, ..Options::default() });
    let mut run = 0;
    let differs: TestBody = Box::new(move |tx| {
        run += 1;
        accept(tx, if run % 2 == 1 { "odd" } else { "even" }).unwrap();
        Flow::Commit
    });
    let answers = bench.group(vec![keeps("a"), differs]);
    assert!(answers[0].is_ok());
    let Err(StoreError::Panicked { message, .. }) = &answers[1] else { panic!("{answers:?}") };
    assert!(message.contains("accept an Event"), "{message}");
    assert_eq!(bench.stored(), ["a"]);
}

#[derive(Debug)]
struct Echo {
    fails: bool,
}

impl Observer<dyn IssueTx + '_> for Echo {
    fn observe(&self, tx: &mut (dyn IssueTx + '_), changes: &[Change]) -> Result<(), StoreError> {
        if self.fails {
            return Err(StoreError::Conflict { what: "observe" });
        }
        for change in changes {
            if let Change::Event { .. } = change {
                accept(tx, "echo")?;
            }
        }
        Ok(())
    }
}

#[test]
fn an_observer_writes_beside_what_it_sees() {
    let observers: Vec<crate::IssueObserver> = vec![Arc::new(Echo { fails: false })];
    let mut bench = bench_with(Options { observers, ..Options::default() });
    assert!(bench.group(vec![keeps("a")])[0].is_ok());
    assert_eq!(bench.stored(), ["a", "echo"]);
}

#[test]
fn an_observer_that_fails_undoes_the_request() {
    let observers: Vec<crate::IssueObserver> = vec![Arc::new(Echo { fails: true })];
    let mut bench = bench_with(Options { observers, ..Options::default() });
    assert!(matches!(bench.group(vec![keeps("a")])[0], Err(StoreError::Conflict { what: "observe" })));
    assert!(bench.stored().is_empty());
}

#[test]
fn a_row_that_is_not_ours_is_corrupt() {
    let mut bench = bench();
    bench.group(vec![keeps("a")]);
    bench.writer.engine.connection().execute("UPDATE event SET scope = 'Not A Scope'", []).unwrap();
    let reads: TestBody = Box::new(|tx| {
        let _corrupt = tx.events(&EventFilter::default(), 9);
        Flow::Commit
    });
    let answers = bench.group(vec![reads]);
    let Err(StoreError::Corrupt { table: "event", reason }) = &answers[0] else { panic!("{answers:?}") };
    assert!(!reason.contains("Not A Scope"), "{reason}");
}
