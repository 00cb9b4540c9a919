//! What runs write and leave behind: their output, in pieces or whole, and their files.

use std::sync::Arc;

use bytes::Bytes;
use domain::execution::{Execution, ExecutionState};
use domain::id::ExecutionId;
use domain::retention::Content;
use extension::{Executor, Log, LogRequest, RunError};
use hyper::Response;
use hyper::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HeaderValue};
use tokio::io::AsyncReadExt as _;
use tokio::sync::mpsc;

use crate::api::body::Body;
use crate::api::failure::Failure;
use crate::api::server::{Answer, Asked, read};
use crate::daemon::Daemon;
use crate::error_code::ErrorCode;

/// Bytes of output when nothing else is asked for.
const LOG_BYTES: usize = 64 << 10;
/// The most bytes of output in one answer.
pub(crate) const LOG_BYTES_MAX: usize = 1 << 20;
/// Bytes of a file that are in memory at a time, and twice that while a client reads slowly.
const PIECE_BYTES: usize = 64 << 10;

/// What a run wrote and left behind, with who keeps it.
#[derive(Debug)]
pub(crate) struct Output {
    execution: Execution,
    executor: Arc<dyn Executor>,
}

impl Output {
    /// The output of the run that a text means.
    ///
    /// # Errors
    /// `not_found`, `ambiguous_id`, `content_released`, `log_unavailable` when its executor is gone, and what reading the store answers.
    pub(crate) async fn of(daemon: &Daemon, text: &str) -> Result<Self, Failure> {
        let id = text.to_owned();
        let execution = read(daemon, "run", move |tx| super::execution(tx, &id)).await?;
        if execution.content != Content::Kept {
            let detail =
                format!("the log and the artifacts of {} were released; its history stays", execution.id);
            return Err(Failure::new(ErrorCode::ContentReleased, detail));
        }
        let executor = daemon.runtime().registry().executor(&execution.executor).cloned();
        let executor = executor.ok_or_else(|| {
            let detail =
                format!("executor `{}` is no longer here, and it has the run's files", execution.executor);
            Failure::new(ErrorCode::LogUnavailable, detail)
        })?;
        Ok(Self { execution, executor })
    }

    /// Whether the run had ended. It was asked before anything is read, so what is read of a run that had ended is
    /// whole.
    pub(crate) const fn is_whole(&self) -> bool {
        self.execution.state.is_terminal()
    }

    /// Whether the run failed.
    pub(crate) fn is_of_failure(&self) -> bool {
        self.execution.state == ExecutionState::Failed
    }

    /// The run.
    pub(crate) const fn run(&self) -> ExecutionId {
        self.execution.id
    }

    /// A piece of it, at most `bytes_max` bytes from `from`, which counts from the end when negative.
    ///
    /// # Errors
    /// `log_unavailable`.
    pub(crate) async fn piece(&self, from: i64, bytes_max: usize) -> Result<Log, Failure> {
        let request = LogRequest { execution: self.execution.id, from, bytes_max };
        self.executor.log(request).await.map_err(|error| {
            let reason = match error {
                RunError::Fenced => "the run has no output that can be read".to_owned(),
                RunError::NotStarted { reason } | RunError::Failed { reason, .. } => reason,
            };
            Failure::new(ErrorCode::LogUnavailable, reason)
        })
    }

    /// All of it that is there now, as a file to keep.
    ///
    /// # Errors
    /// `log_unavailable`.
    pub(crate) async fn download(self, daemon: &Daemon) -> Answer {
        let size = self.piece(0, 1).await?.size;
        let name = format!("{}.log", self.execution.id);
        let (pieces, body) = mpsc::channel(1);
        daemon.spawn(self.send_until(size, pieces));
        let mut response = Response::new(Body::Pieces(body));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
        headers.insert(CONTENT_DISPOSITION, disposition(&name));
        headers.insert("x-log-size", HeaderValue::from(size));
        Ok(response)
    }

    async fn send_until(self, size: u64, pieces: mpsc::Sender<Bytes>) {
        let mut from = 0;
        while from < size {
            let length = usize::try_from(size - from).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
            match self.piece(i64::try_from(from).unwrap_or(i64::MAX), length).await {
                Ok(log) if log.bytes.is_empty() => return,
                Ok(log) => {
                    from += log.bytes.len() as u64;
                    if pieces.send(log.bytes.into()).await.is_err() {
                        return;
                    }
                }
                Err(failure) => {
                    tracing::warn!(code = %failure.code(), "the output of a run could not be read to its end");
                    return;
                }
            }
        }
    }
}

/// Reads a piece of a run's output. `from` counts bytes, from the end when negative; whoever follows asks again
/// from where the piece ended.
pub(crate) async fn log(daemon: &Arc<Daemon>, asked: &Asked) -> Answer {
    let from: i64 = asked.query.parsed("from")?.unwrap_or(0);
    let bytes_max: usize = asked.query.parsed("bytes")?.unwrap_or(LOG_BYTES);
    if bytes_max == 0 || bytes_max > LOG_BYTES_MAX {
        return Err(Failure::bad(format!("`bytes` goes from 1 to {LOG_BYTES_MAX}")));
    }
    let output = Output::of(daemon, asked.id()).await?;
    let log = output.piece(from, bytes_max).await?;
    let mut response = Response::new(Body::full(log.bytes));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert("x-log-from", HeaderValue::from(log.from));
    headers.insert("x-log-size", HeaderValue::from(log.size));
    let state = if output.is_whole() { "ended" } else { "live" };
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
    let Output { execution: Execution { id, .. }, executor } = Output::of(daemon, asked.id()).await?;
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
