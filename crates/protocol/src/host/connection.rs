//! Requests to one process and their answers.
//!
//! A process that sends what is no answer, or answers too late, is broken: every request that waits fails, and it is
//! for whoever looks after the process to end it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::{Semaphore, mpsc, oneshot, watch};

use crate::line::{self, Line};
use crate::wire::{
    ANSWER_BYTES_MAX, Answer, ErrorBody, ErrorCode, IN_FLIGHT_MAX, REQUEST_BYTES_MAX, Request,
};

/// Why a request has no result.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(super) enum CallError {
    /// The process is gone or broken, or too busy. It is not the request's fault.
    #[error("{0}")]
    Unavailable(String),
    /// It answered with an error.
    #[error("{}", .0.message)]
    Refused(ErrorBody),
    /// Its result is not what the method answers.
    #[error("its answer to `{method}` is not one")]
    Unreadable {
        /// The method.
        method: &'static str,
    },
    /// The request is longer than a line may be.
    #[error("the request is longer than {REQUEST_BYTES_MAX} bytes")]
    TooLong,
}

/// The reason when its standard output has ended.
pub(super) const CLOSED: &str = "it closed its standard output";

type Waiting = Mutex<HashMap<u64, oneshot::Sender<Result<Value, ErrorBody>>>>;

/// The way to one process.
#[derive(Debug)]
pub(super) struct Connection {
    /// Which start of the process this is.
    pub(super) start: u64,
    lines: mpsc::Sender<Vec<u8>>,
    waiting: Arc<Waiting>,
    next: Arc<AtomicU64>,
    room: Semaphore,
    broken: watch::Sender<Option<String>>,
}

/// Takes a request off the list when its caller goes away.
struct Listed<'a> {
    waiting: &'a Waiting,
    id: u64,
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

impl Connection {
    /// A connection, and what must be polled for it to work: it ends when the connection is broken.
    pub(super) fn open(
        start: u64,
        input: impl AsyncWrite + Unpin + Send + 'static,
        output: impl AsyncRead + Unpin + Send + 'static,
    ) -> (Arc<Self>, impl Future<Output = ()> + Send + 'static) {
        let (lines, queued) = mpsc::channel(IN_FLIGHT_MAX);
        let connection = Arc::new(Self {
            start,
            lines,
            waiting: Arc::default(),
            next: Arc::new(AtomicU64::new(1)),
            room: Semaphore::new(IN_FLIGHT_MAX),
            broken: watch::Sender::new(None),
        });
        let (waiting, next) = (Arc::clone(&connection.waiting), Arc::clone(&connection.next));
        let broken = connection.broken.clone();
        let work = async move {
            let mut standing = broken.subscribe();
            let why = tokio::select! {
                why = read(output, &waiting, &next) => why,
                why = write(input, queued) => why,
                said = standing.wait_for(Option::is_some) => {
                    said.ok().and_then(|said| said.clone()).unwrap_or_default()
                }
            };
            broken.send_if_modified(|said| {
                let is_first = said.is_none();
                said.get_or_insert(why);
                is_first
            });
            // Their senders go, and each caller learns of it.
            waiting.lock().unwrap_or_else(PoisonError::into_inner).clear();
        };
        (connection, work)
    }

    /// Says that the process is not to be trusted any more, and why. The first reason stands.
    pub(super) fn give_up(&self, why: &str) {
        self.broken.send_if_modified(|said| {
            let is_first = said.is_none();
            said.get_or_insert_with(|| why.to_owned());
            is_first
        });
    }

    /// Why it is broken, once it is.
    pub(super) async fn broken(&self) -> String {
        let mut standing = self.broken.subscribe();
        let said = standing.wait_for(Option::is_some).await;
        said.ok().and_then(|said| said.clone()).unwrap_or_default()
    }

    /// Why it is broken, when it is.
    pub(super) fn said(&self) -> Option<String> {
        self.broken.borrow().clone()
    }

    fn gone(&self) -> CallError {
        let said = self.said();
        CallError::Unavailable(said.unwrap_or_else(|| "its process is gone".to_owned()))
    }

    /// Asks, and waits for the answer for at most `within`. A process that takes longer is given up.
    pub(super) async fn call<R: DeserializeOwned>(
        &self,
        method: &'static str,
        params: &(impl Serialize + Sync),
        within: Duration,
    ) -> Result<R, CallError> {
        let busy = || CallError::Unavailable("it has too many requests to answer already".to_owned());
        let room = tokio::time::timeout(within, self.room.acquire()).await.map_err(|_elapsed| busy())?;
        let _room = room.map_err(|_closed| self.gone())?;
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let line =
            line::of(&Request { jsonrpc: "2.0".to_owned(), id: Some(id), method: method.to_owned(), params });
        if line.len() > REQUEST_BYTES_MAX {
            return Err(CallError::TooLong);
        }
        let (answer, answered) = oneshot::channel();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(id, answer);
        let _listed = Listed { waiting: &self.waiting, id };
        let asked = async {
            // After it is on the list: what breaks now clears the list, and what broke before shows here.
            if self.broken.borrow().is_some() || self.lines.send(line).await.is_err() {
                return Err(self.gone());
            }
            answered.await.map_err(|_gone| self.gone())
        };
        let Ok(answer) = tokio::time::timeout(within, asked).await else {
            self.give_up(&format!("it did not answer `{method}` within {} s", within.as_secs()));
            return Err(self.gone());
        };
        let result = answer?.map_err(CallError::Refused)?;
        serde_json::from_value(result).map_err(|_source| CallError::Unreadable { method })
    }

    /// Tells, when there is room; nobody waits for it.
    pub(super) fn notify(&self, method: &str, params: impl Serialize) {
        let line =
            line::of(&Request { jsonrpc: "2.0".to_owned(), id: None, method: method.to_owned(), params });
        drop(self.lines.try_send(line));
    }
}

/// Writes requests until that fails.
async fn write(mut input: impl AsyncWrite + Unpin, mut lines: mpsc::Receiver<Vec<u8>>) -> String {
    while let Some(line) = lines.recv().await {
        if input.write_all(&line).await.is_err() || input.flush().await.is_err() {
            // How it ended says more.
            return std::future::pending().await;
        }
    }
    "nobody asks it any more".to_owned()
}

/// Reads answers until one is not one.
async fn read(output: impl AsyncRead + Unpin, waiting: &Waiting, next: &AtomicU64) -> String {
    let mut output = BufReader::new(output);
    loop {
        let line = match line::read(&mut output, ANSWER_BYTES_MAX).await {
            Ok(Line::Whole(line)) => line,
            Ok(Line::TooLong) => return format!("it sent a line of more than {ANSWER_BYTES_MAX} bytes"),
            Ok(Line::End) => return CLOSED.to_owned(),
            Err(_unread) => return "its standard output cannot be read".to_owned(),
        };
        let Ok(answer) = serde_json::from_slice::<Answer>(&line) else {
            return "it wrote something to standard output that is not an answer".to_owned();
        };
        let Some(id) = answer.id.filter(|id| (1..next.load(Ordering::Relaxed)).contains(id)) else {
            let why = "it answered something that was not asked";
            // One that could not read a request says so without an id.
            return answer
                .error
                .map_or_else(|| why.to_owned(), |error| format!("{why}: error {}", error.code));
        };
        let answer = match (answer.result, answer.error) {
            (_, Some(error)) => Err(error),
            (result, None) => Ok(result.unwrap_or(Value::Null)),
        };
        let caller = waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        if let Some(caller) = caller {
            // A caller that has gone away needs no answer.
            drop(caller.send(answer));
        }
    }
}

/// Whether an error says that the process does not know what was prepared.
pub(super) fn is_forgotten(error: &CallError) -> bool {
    matches!(error, CallError::Refused(body) if body.code == ErrorCode::UnknownHandle.number())
}
