//! One run of one request: its body, its observers, and in tests a rehearsal of both.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use domain::store::{Flow, StoreError};
use domain::time::Timestamp;

use super::{Answer, Request, Writer};
use crate::engine::Engine;
use crate::tables::coordination::Coordination;
use crate::tx::{Handle, Place, Trace, Transaction};

/// How a request left the transaction.
pub(super) enum Ended {
    /// It stands, and so does the transaction: committed, or refused before it wrote.
    Kept(Answer),
    /// The transaction is useless, by no fault of the request.
    Passing(StoreError),
    /// It wrote and must be undone, or took the transaction down.
    Broken(Answer),
}

/// What came of running a request.
pub(super) struct Run {
    /// Whether its body wants its writes kept, or what went wrong.
    pub(super) answer: Result<bool, StoreError>,
    /// Where the next request begins, if this one is kept.
    pub(super) next: Coordination,
    pub(super) wrote: bool,
    pub(super) bytes: usize,
    pub(super) statements: u64,
    trace: Trace,
}

/// What a panic said.
pub(crate) fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}

impl<E: Engine> Writer<E> {
    /// Runs a request, after a rehearsal when the store rehearses.
    pub(super) fn run(&mut self, request: &mut Request, from: Coordination) -> Run {
        let now = self.ways.clock.now();
        if !self.ways.rehearse {
            return self.run_once(request, from, now);
        }
        let marked = self.engine.mark();
        let rehearsal = self.run_once(request, from, now);
        if !self.engine.is_open() && rehearsal.answer.is_err() {
            // It took the transaction along; there is nothing to go back to, and nothing to compare.
            return rehearsal;
        }
        if let Err(error) = marked.and_then(|()| self.engine.undo_to_mark()) {
            return Run { answer: Err(error), ..rehearsal };
        }
        let run = self.run_once(request, from, now);
        if run.answer.is_err() || rehearsal.answer.is_err() {
            return run;
        }
        match rehearsal.trace.difference(&run.trace) {
            None => run,
            Some(what) => {
                let message = format!("its body is not the same when it runs again: it was to {what}");
                Run { answer: Err(StoreError::Panicked { label: request.label, message }), ..run }
            }
        }
    }

    fn run_once(&mut self, request: &mut Request, from: Coordination, now: Timestamp) -> Run {
        let mut handle = Handle::new(&mut self.engine, self.ways.faults.clone());
        if let Some(tape) = &self.ways.tape {
            handle = handle.taped(Arc::clone(tape));
        }
        if self.ways.rehearse {
            handle = handle.traced();
        }
        let place =
            Place { now, host: self.ways.host, next_sequence: from.next_sequence, ownership: from.ownership };
        let mut tx = Transaction::new(handle, place);
        let observers = &self.ways.observers;
        let body = &mut request.body;
        // What a body leaves half done is undone with its transaction, so it is safe to look at afterwards.
        let flow = catch_unwind(AssertUnwindSafe(|| {
            let flow = body(&mut tx);
            if flow == Flow::Commit && tx.db.error().is_none() && !observers.is_empty() {
                let changes = domain::store::Tx::changes(&tx).to_vec();
                if let Err(error) =
                    observers.iter().try_for_each(|observer| observer.observe(&mut tx, &changes))
                {
                    tx.db.fail(error);
                }
            }
            if flow == Flow::Commit && tx.db.error().is_none() {
                // What fails here is latched, as any statement's error is.
                tx.tell().ok();
            }
            flow
        }));
        tx.db.flush();
        let answer = match (flow, tx.db.error()) {
            (Err(panic), _) => Err(StoreError::Panicked { label: request.label, message: message(&*panic) }),
            (Ok(_flow), Some(error)) => Err(error.clone()),
            (Ok(flow), None) => Ok(flow == Flow::Commit),
        };
        let ownership = tx.place.ownership;
        Run {
            answer,
            next: Coordination { next_sequence: tx.next_free(), clock: now, ownership },
            // The ownership is written with the last statements, and by no statement of the request.
            wrote: tx.db.writes > 0 || ownership != from.ownership,
            bytes: tx.db.bytes,
            statements: tx.db.statements,
            trace: tx.db.take_trace(),
        }
    }
}
