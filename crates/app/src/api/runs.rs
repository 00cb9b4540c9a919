//! Runs: listing and showing them, their output, what they left behind, and why they started.

use std::sync::Arc;

use bytes::Bytes;
use domain::execution::{Execution, ExecutionState};
use domain::id::ExecutionId;
use domain::store::{ExecutionFilter, Snapshot, StoreError};
use extension::{Executor, LogRequest, RunError};
use hyper::Response;
use hyper::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HeaderValue};
use runtime::why;
use tokio::io::AsyncReadExt as _;
use tokio::sync::mpsc;

use super::body::Body;
use super::failure::Failure;
use super::query::{self, Cursor, Query};
use super::resolve;
use super::server::{Answer, Asked, Refused, json, read};
use super::wire::{EventBody, LaneBody, Page, RunBody, WhyBody};
use crate::daemon::Daemon;
use crate::error_code::ErrorCode;
use crate::view;
use crate::view::why::WhyParts;

/// Bytes of output when nothing else is asked for.
const LOG_BYTES: usize = 64 << 10;
/// The most bytes of output in one answer.
const LOG_BYTES_MAX: usize = 1 << 20;
/// Bytes of an artifact that are in memory at a time, and twice that while a client reads slowly.
const PIECE_BYTES: usize = 64 << 10;

/// Lists runs, newest first.
pub(crate) async fn list(daemon: &Arc<Daemon>, asked: &Asked) -> Answer {
    Ok(json(&find(daemon, &asked.query).await?))
}

/// The runs that a query asks for, newest first.
///
/// # Errors
/// `bad_request` when the query cannot be read, and what reading the store answers.
pub(crate) async fn find(daemon: &Daemon, query: &Query) -> Result<Page<RunBody>, Failure> {
    let limit = query.limit()?;
    let mut filter = ExecutionFilter {
        scope: query.parsed("scope")?,
        work_kind: query.parsed("work_kind")?,
        work: None,
        state: query.text("state").map(state).transpose()?,
        before: query.cursor(Cursor::Runs)?.map(ExecutionId::from_number),
    };
    let (key, work) = (query.key()?, query.text("work").map(str::to_owned));
    read(daemon, "runs", move |tx| {
        if let Some(work) = work {
            filter.work = Some(resolve::work(tx, &work)?);
        }
        if let Some(key) = key {
            let owner = tx.key_owner(&key)?;
            if owner.is_none() || filter.work.is_some_and(|work| owner != Some(work)) {
                return Ok(Page { items: Vec::new(), next: None });
            }
            filter.work = owner;
        }
        let executions = tx.executions(&filter, limit)?;
        let next = executions.last().filter(|_| executions.len() == limit as usize);
        let next = next.map(|execution| query::cursor(Cursor::Runs, execution.id.number()));
        let mut items = Vec::with_capacity(executions.len());
        for execution in executions {
            items.push(body(tx, &execution)?);
        }
        Ok(Page { items, next })
    })
    .await
}

fn state(word: &str) -> Result<ExecutionState, Failure> {
    let found = ExecutionState::ALL.into_iter().find(|state| state.as_str() == word);
    found.ok_or_else(|| {
        let known: Vec<&str> = ExecutionState::ALL.iter().map(|state| state.as_str()).collect();
        Failure::bad(format!("`state` is one of {}", known.join(", ")))
    })
}

fn body(tx: &mut dyn Snapshot, execution: &Execution) -> Result<RunBody, Refused> {
    let corrupt = |reason: &str| StoreError::Corrupt { table: "execution", reason: reason.to_owned() };
    let work = tx.work(execution.work)?.ok_or_else(|| corrupt("names no work"))?;
    let trigger = tx.event(execution.trigger)?.ok_or_else(|| corrupt("names no event"))?;
    let keys = tx.keys_of(work.id)?;
    let result = tx.turn_result(execution.id)?;
    let now = tx.now();
    Ok(RunBody::new(execution, &work, &keys, &trigger, result.as_ref(), now))
}

fn execution(tx: &mut dyn Snapshot, text: &str) -> Result<Execution, Refused> {
    let id = resolve::run(tx, text)?;
    Ok(tx.execution(id)?.ok_or_else(|| Failure::not_found("no such run"))?)
}

/// Shows a run.
pub(crate) async fn show(daemon: &Arc<Daemon>, asked: &Asked) -> Answer {
    let id = asked.id().to_owned();
    let body = read(daemon, "run", move |tx| {
        let execution = execution(tx, &id)?;
        body(tx, &execution)
    })
    .await?;
    Ok(json(&body))
}

/// Says why a run started.
pub(crate) async fn why(daemon: &Arc<Daemon>, asked: &Asked) -> Answer {
    let id = asked.id().to_owned();
    let body = read(daemon, "why", move |tx| {
        let id = resolve::run(tx, &id)?;
        let why = why::why(tx, id)?.ok_or_else(|| Failure::not_found("no such run"))?;
        let run = body(tx, &why.execution)?;
        let bodies = |links: &[why::Link]| links.iter().map(EventBody::from).collect::<Vec<_>>();
        let (chain, inputs, without_effect) =
            (bodies(&why.chain), bodies(&why.inputs), bodies(&why.without_effect));
        let blocked: Vec<LaneBody> = why.blocked.iter().map(LaneBody::from).collect();
        let sentences = view::why::sentences(&WhyParts {
            run: &run,
            chain: &chain,
            inputs: &inputs,
            without_effect: &without_effect,
            blocked: &blocked,
        });
        Ok(WhyBody { run, chain, inputs, without_effect, blocked, sentences })
    })
    .await?;
    Ok(json(&body))
}

/// The run that a request names and its executor.
async fn executor(daemon: &Arc<Daemon>, asked: &Asked) -> Result<(Execution, Arc<dyn Executor>), Failure> {
    let id = asked.id().to_owned();
    let execution = read(daemon, "run", move |tx| execution(tx, &id)).await?;
    let executor = daemon.runtime().registry().executor(&execution.executor).cloned();
    let executor = executor.ok_or_else(|| {
        let detail =
            format!("executor `{}` is no longer here, and it has the run's files", execution.executor);
        Failure::new(ErrorCode::LogUnavailable, detail)
    })?;
    Ok((execution, executor))
}

/// Reads a piece of a run's output. `from` counts bytes, from the end when negative; whoever follows asks again
/// from where the piece ended.
pub(crate) async fn log(daemon: &Arc<Daemon>, asked: &Asked) -> Answer {
    let from: i64 = asked.query.parsed("from")?.unwrap_or(0);
    let bytes_max: usize = asked.query.parsed("bytes")?.unwrap_or(LOG_BYTES);
    if bytes_max == 0 || bytes_max > LOG_BYTES_MAX {
        return Err(Failure::bad(format!("`bytes` goes from 1 to {LOG_BYTES_MAX}")));
    }
    let (execution, executor) = executor(daemon, asked).await?;
    let request = LogRequest { execution: execution.id, from, bytes_max };
    let log = executor.log(request).await.map_err(|error| {
        let reason = match error {
            RunError::Fenced => "the run has no output that can be read".to_owned(),
            RunError::NotStarted { reason } | RunError::Failed { reason, .. } => reason,
        };
        Failure::new(ErrorCode::LogUnavailable, reason)
    })?;
    let mut response = Response::new(Body::full(log.bytes));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert("x-log-from", HeaderValue::from(log.from));
    headers.insert("x-log-size", HeaderValue::from(log.size));
    let state = if execution.state.is_terminal() { "ended" } else { "live" };
    headers.insert("x-run-state", HeaderValue::from_static(state));
    Ok(response)
}

/// Serves a file that a run left behind, as an attachment, whatever it says it is.
pub(crate) async fn artifact(daemon: &Arc<Daemon>, asked: &Asked) -> Answer {
    let path = asked.captures[1].clone();
    let nothing = || Failure::not_found("the run left no such file");
    if !is_below(&path) {
        return Err(nothing());
    }
    let (execution, executor) = executor(daemon, asked).await?;
    let id = execution.id;
    let name = path.clone();
    let file = tokio::task::spawn_blocking(move || {
        // The executor vouches for the path; what it leads to must still be a plain file.
        let found = executor.artifact(id, &path)?;
        let file = std::fs::File::open(found).ok()?;
        let metadata = file.metadata().ok()?;
        metadata.is_file().then_some((file, metadata.len()))
    })
    .await
    .map_err(|_panicked| Failure::new(ErrorCode::Bug, "the file could not be looked at"))?;
    let (file, length) = file.ok_or_else(nothing)?;
    let (pieces, body) = mpsc::channel(1);
    daemon.spawn(send(tokio::fs::File::from_std(file), pieces));
    let mut response = Response::new(Body::Pieces(body));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(CONTENT_DISPOSITION, disposition(&name));
    headers.insert("x-artifact-size", HeaderValue::from(length));
    Ok(response)
}

async fn send(mut file: tokio::fs::File, pieces: mpsc::Sender<Bytes>) {
    loop {
        let mut piece = Vec::with_capacity(PIECE_BYTES);
        match (&mut file).take(PIECE_BYTES as u64).read_to_end(&mut piece).await {
            Ok(0) => return,
            Ok(_bytes) => {
                if pieces.send(piece.into()).await.is_err() {
                    return;
                }
            }
            Err(error) => {
                tracing::warn!(%error, "a file of a run could not be read to its end");
                return;
            }
        }
    }
}

/// Whether a path has only names, so that it leads nowhere but down.
fn is_below(path: &str) -> bool {
    !path.contains(['\0', '\\']) && path.split('/').all(|name| !matches!(name, "" | "." | ".."))
}

/// The last name of a path, reduced to letters that need no quoting.
fn disposition(path: &str) -> HeaderValue {
    let name = path.rsplit('/').next().unwrap_or_default();
    let plain = |letter: char| {
        if letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '_') { letter } else { '_' }
    };
    let name: String = name.chars().map(plain).collect();
    HeaderValue::from_str(&format!("attachment; filename=\"{name}\""))
        .unwrap_or_else(|_invalid| HeaderValue::from_static("attachment"))
}

#[cfg(test)]
mod tests {
    use super::{disposition, is_below};

    #[test]
    fn paths_lead_down_or_nowhere() {
        for good in ["a", "a/b.txt", "..a", "a..b"] {
            assert!(is_below(good), "{good}");
        }
        for bad in ["", "/", "/etc/passwd", "..", "a/../b", "./a", "a//b", "a/", "a\\..\\b", "a\0"] {
            assert!(!is_below(bad), "{bad:?}");
        }
    }

    #[test]
    fn a_name_cannot_leave_its_quotes() {
        assert_eq!(
            disposition("out/a b\".html\r\nX: y").to_str().unwrap(),
            "attachment; filename=\"a_b_.html__X__y\""
        );
    }
}
