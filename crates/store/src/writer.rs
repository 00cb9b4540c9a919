//! The writer: requests in groups, one transaction and one durable commit for each group, then all answers.
//!
//! There are no savepoints: they would cost every request what few need. A request that refuses before it
//! wrote leaves nothing behind and stays in its group. One that fails after a write breaks the group: it is
//! rolled back, the others run again in a transaction of their own, and then the one runs alone, so that
//! its answer owes nothing to the others.

use std::sync::Arc;

use domain::store::{Body, StoreError};
use tokio::sync::oneshot;

use self::request::{Ended, Run};
use crate::clock::StoreClock;
use crate::counters::Counters;
use crate::db::Db;
use crate::engine::{CommitError, Engine};
use crate::fault::{CommitFault, Faults, Point};
use crate::options::IssueObserver;
use crate::tables::coordination::Coordination;
use crate::tape::Tape;

mod request;

pub(crate) use self::request::message;
#[cfg(test)]
mod tests;

/// The most requests in a group.
const REQUESTS_MAX: usize = 256;
/// The most bytes a group writes before it is committed.
const BYTES_MAX: usize = 8 << 20;
/// The longest a group runs before it is committed.
const MICROS_MAX: u128 = 2_000;
/// How often a group runs again for reasons that none of its requests is to blame for.
const RETRIES_MAX: u32 = 5;

/// What a request is answered.
type Answer = Result<(), StoreError>;

/// A body on its way through the writer.
pub(crate) struct Request {
    pub(crate) label: &'static str,
    pub(crate) body: Body,
    pub(crate) answer: oneshot::Sender<Answer>,
}

impl Request {
    fn answer(self, answer: Answer) {
        // Nobody listens when the caller went away. What was done is done.
        self.answer.send(answer).ok();
    }
}

/// An open transaction.
struct Open {
    /// Where the next request begins.
    next: Coordination,
    wrote: bool,
    bytes: usize,
}

/// Requests that share a transaction.
#[derive(Default)]
struct Group {
    /// Those that ran, in order, with the answer each gets if the transaction is committed.
    ran: Vec<(Request, Answer)>,
    /// Those that have to run alone.
    broken: Vec<Request>,
    retries: u32,
    /// Why it had to run again last.
    passing: Option<StoreError>,
}

impl Group {
    fn again(&mut self, why: StoreError) {
        self.retries += 1;
        self.passing = Some(why);
    }

    fn answer_all(&mut self, error: &StoreError) {
        for (request, _answer) in self.ran.drain(..) {
            request.answer(Err(error.clone()));
        }
    }
}

/// What decides how bodies are run.
#[derive(Debug, Clone)]
pub(crate) struct Ways {
    pub(crate) clock: Arc<StoreClock>,
    pub(crate) host: i64,
    pub(crate) counters: Arc<Counters>,
    pub(crate) observers: Vec<IssueObserver>,
    pub(crate) faults: Option<Arc<Faults>>,
    pub(crate) tape: Option<Arc<Tape>>,
    pub(crate) rehearse: bool,
}

/// The one writer of a database.
#[derive(Debug)]
pub(crate) struct Writer<E> {
    pub(crate) engine: E,
    ways: Ways,
    /// The number of the newest batch that was about to be committed.
    batch: i64,
    /// Whether the connection is to be given up before anything else.
    lost: bool,
}

impl<E: Engine> Writer<E> {
    pub(crate) const fn new(engine: E, ways: Ways) -> Self {
        Self { engine, ways, batch: 0, lost: false }
    }

    /// Runs `first`, and what `more` has, in one transaction; answers when it is durable.
    pub(crate) fn batch(&mut self, first: Request, more: &mut dyn FnMut() -> Option<Request>) {
        let mut group = Group::default();
        let mut open = match self.begin() {
            Ok(open) => Some(open),
            Err(error) => return first.answer(Err(error)),
        };
        self.gather(&mut open, first, more, &mut group);
        self.conclude(open, &mut group);
        for request in group.broken {
            self.batch(request, &mut || None);
        }
    }

    /// Ends well: everything is in the file, and the log is empty.
    pub(crate) fn finish(&mut self) -> Result<(), StoreError> {
        self.engine.finish()
    }

    /// Looks after the files, between transactions.
    pub(crate) fn maintain(&mut self, idle: bool) {
        self.engine.maintain(idle);
    }

    /// Runs requests until there are enough, or none, or one breaks the transaction.
    fn gather(
        &mut self,
        open: &mut Option<Open>,
        first: Request,
        more: &mut dyn FnMut() -> Option<Request>,
        group: &mut Group,
    ) {
        let started = self.ways.clock.elapsed();
        let mut next = Some(first);
        while let Some(request) = next {
            self.take(open, request, group);
            let Some(open) = open else { return };
            let elapsed = self.ways.clock.elapsed().saturating_sub(started);
            let full = group.ran.len() >= REQUESTS_MAX
                || open.bytes >= BYTES_MAX
                || elapsed.as_micros() >= MICROS_MAX;
            next = if full { None } else { more() };
        }
    }

    /// Commits the transaction, or runs the group again until it can be committed or never will be.
    fn conclude(&mut self, mut open: Option<Open>, group: &mut Group) {
        while !group.ran.is_empty() {
            if group.retries > RETRIES_MAX {
                let error = group.passing.take().unwrap_or(StoreError::Lost);
                group.answer_all(&error);
                break;
            }
            let Some(current) = open.take() else {
                open = self.replay(group);
                continue;
            };
            match self.commit(&current) {
                Ok(()) => {
                    self.ways.counters.committed(group.ran.len(), current.wrote);
                    group.ran.drain(..).for_each(|(request, answer)| request.answer(answer));
                }
                Err(CommitError::Refused(error)) => {
                    self.undo();
                    if self.engine.take_passing() {
                        group.again(error);
                    } else {
                        group.answer_all(&error);
                    }
                }
                Err(CommitError::Unknown) => match self.engine.reopen() {
                    Ok(batch) if batch == self.batch => {
                        self.ways.counters.committed(group.ran.len(), current.wrote);
                        group.ran.drain(..).for_each(|(request, answer)| request.answer(answer));
                    }
                    Ok(_earlier) => group.again(StoreError::Lost),
                    Err(error) => {
                        tracing::error!(%error, "the database cannot be reopened after a lost commit");
                        self.lost = true;
                        group.answer_all(&StoreError::Lost);
                    }
                },
            }
        }
        if open.is_some() {
            self.undo();
        }
    }

    /// Runs the requests of a group again, in a new transaction.
    fn replay(&mut self, group: &mut Group) -> Option<Open> {
        let mut open = match self.begin() {
            Ok(open) => Some(open),
            Err(error) => {
                group.answer_all(&error);
                return None;
            }
        };
        let mut again = std::mem::take(&mut group.ran).into_iter();
        for (request, _answer) in again.by_ref() {
            self.take(&mut open, request, group);
            if open.is_none() {
                break;
            }
        }
        group.ran.extend(again);
        open
    }

    /// Opens a transaction; on a new connection, when the old one turns out to be lost.
    fn begin(&mut self) -> Result<Open, StoreError> {
        let mut tries = 0;
        loop {
            if self.lost {
                self.engine.reopen()?;
                self.lost = false;
            }
            match self.engine.begin() {
                Ok(next) => {
                    self.point(Point::Begin);
                    return Ok(Open { next, wrote: false, bytes: 0 });
                }
                Err(error) => {
                    self.undo();
                    tries += 1;
                    if !self.engine.take_passing() || tries > 1 {
                        return Err(error);
                    }
                    self.lost = true;
                }
            }
        }
    }

    /// Runs one request in the open transaction, which may not survive it.
    fn take(&mut self, open: &mut Option<Open>, mut request: Request, group: &mut Group) {
        let Some(current) = open else { return group.ran.push((request, Ok(()))) };
        let run = self.run(&mut request, current.next);
        let alone = group.ran.is_empty();
        match self.judge(run, current) {
            Ended::Kept(answer) => group.ran.push((request, answer)),
            Ended::Passing(error) => {
                *open = None;
                self.undo();
                group.again(error);
                group.ran.push((request, Ok(())));
            }
            Ended::Broken(answer) => {
                *open = None;
                self.undo();
                self.ways.counters.broke();
                if alone {
                    request.answer(answer);
                } else {
                    group.broken.push(request);
                }
            }
        }
    }

    /// What a run means for the transaction it ran in.
    fn judge(&mut self, run: Run, open: &mut Open) -> Ended {
        self.ways.counters.ran(run.statements);
        let standing = self.engine.is_open();
        let passing = self.engine.take_passing();
        match run.answer {
            Ok(true) if standing => {
                open.next = run.next;
                open.wrote |= run.wrote;
                open.bytes += run.bytes;
                Ended::Kept(Ok(()))
            }
            Err(error) if passing => Ended::Passing(error),
            Ok(_) if standing && !run.wrote => Ended::Kept(Ok(())),
            Err(error) if standing && !run.wrote => Ended::Kept(Err(error)),
            Ok(_) => Ended::Broken(Ok(())),
            Err(error) => Ended::Broken(Err(error)),
        }
    }

    fn commit(&mut self, open: &Open) -> Result<(), CommitError> {
        if !open.wrote {
            return self.engine.rollback().map_err(CommitError::Refused);
        }
        self.point(Point::BeforeCommit);
        self.batch += 1;
        self.engine.close(open.next, self.batch).map_err(CommitError::Refused)?;
        let fault = self.ways.faults.as_ref().and_then(|faults| faults.take_commit());
        match fault {
            Some(CommitFault::Before) => return Err(CommitError::Unknown),
            Some(CommitFault::After) => {
                self.engine.commit(open.next)?;
                return Err(CommitError::Unknown);
            }
            None => self.engine.commit(open.next)?,
        }
        self.point(Point::AfterCommit);
        Ok(())
    }

    /// Rolls back. A connection that cannot even do that is given up.
    fn undo(&mut self) {
        if let Err(error) = self.engine.rollback() {
            tracing::error!(%error, "a transaction cannot be rolled back; the connection is given up");
            self.lost = true;
        }
    }

    fn point(&self, point: Point) {
        if let Some(faults) = &self.ways.faults {
            faults.point(point);
        }
    }

    /// The number of this process's host.
    pub(crate) const fn host(&self) -> i64 {
        self.ways.host
    }

    /// The engine, to read from between transactions.
    pub(crate) fn snapshot(&mut self) -> &mut dyn Db {
        &mut self.engine
    }
}
