//! The way to the daemon's door for calls: the socket and the token that the run was given.
//!
//! The token is read for each try, because whoever takes the run over puts another one into the same file.

use std::fs;
use std::path::Path;
use std::time::Duration;

use hyper::Method;
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::cli::exit::Exit;
use crate::cli::failure::{Failure, Stop, chain};
use crate::client::{self, ClientError};
use crate::env::ToolbeltPlace;
use crate::error_code::ErrorCode;

/// The pause after the first try; it doubles with each.
const PAUSE: Duration = Duration::from_millis(50);
/// The longest pause between two tries.
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// For how long a token may be unknown: a daemon that takes a run over writes the token before it counts.
const UNKNOWN_MAX: Duration = Duration::from_secs(2);

/// The way to the daemon.
#[derive(Debug)]
pub(super) struct Door {
    place: ToolbeltPlace,
    patience: Duration,
}

impl Door {
    pub(super) fn new(place: ToolbeltPlace, patience_seconds: u64) -> Self {
        Self { place, patience: Duration::from_secs(patience_seconds) }
    }

    /// Asks, and asks again for as long as somebody may yet answer.
    pub(super) async fn ask(&self, method: Method, path: &str, body: Vec<u8>) -> Result<Box<RawValue>, Stop> {
        let began = Instant::now();
        let mut pause = PAUSE;
        loop {
            let error = match self.once(method.clone(), path, &body).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let patience = match &error {
                Tried::Answered(error) => self.patience_with(error),
                Tried::NoToken(_) => Duration::ZERO,
            };
            if began.elapsed() + pause > patience {
                return Err(error.into());
            }
            wait(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    async fn once(&self, method: Method, path: &str, body: &[u8]) -> Result<Box<RawValue>, Tried> {
        let token = fs::read_to_string(&self.place.token_file).map_err(Tried::NoToken)?;
        let answer = client::call(&self.place.socket, token.trim(), method, path, body).await;
        answer
            .and_then(|bytes| serde_json::from_slice(&bytes).map_err(ClientError::Unknown))
            .map_err(Tried::Answered)
    }

    /// For how long a call that ended like this is repeated. It is named, so that is safe.
    fn patience_with(&self, error: &ClientError) -> Duration {
        match error {
            ClientError::Unreachable { .. } | ClientError::Broken(_) | ClientError::TimedOut => self.patience,
            ClientError::Refused(problem) => match problem.code.as_str() {
                "stale_epoch" | "lease_lost" => self.patience,
                "unauthorized" => self.patience.min(UNKNOWN_MAX),
                _other if problem.status == 503 => self.patience,
                _other => Duration::ZERO,
            },
            ClientError::Token(_) | ClientError::Unknown(_) => Duration::ZERO,
        }
    }

    /// Puts the file of an acknowledged Event where a job that reads its inbox puts it. What cannot be moved stays;
    /// the acknowledgement is the call's.
    pub(super) fn clear_inbox(&self, event: &str) {
        let Some(inbox) = &self.place.inbox else { return };
        let ending = format!("-{event}.json");
        let Ok(entries) = fs::read_dir(inbox) else { return };
        for name in entries.flatten().map(|entry| entry.file_name()) {
            if name.to_str().is_some_and(|name| name.ends_with(&ending)) {
                let _stays = fs::rename(inbox.join(&name), Path::new(inbox).join("acknowledged").join(&name));
            }
        }
    }
}

/// Why a try came to nothing.
enum Tried {
    NoToken(std::io::Error),
    Answered(ClientError),
}

#[expect(
    clippy::disallowed_methods,
    reason = "a daemon that starts again rings no bell that a job could hear"
)]
async fn wait(pause: Duration) {
    tokio::time::sleep(pause).await;
}

impl From<Tried> for Stop {
    fn from(error: Tried) -> Self {
        let failure = match error {
            Tried::NoToken(error) => Failure::new(
                Exit::NOT_ALLOWED,
                ErrorCode::TokenUnreadable,
                format!("the token in OS_TOKEN_FILE cannot be read: {error}"),
            ),
            Tried::Answered(ClientError::Refused(problem)) => {
                Failure { exit: Exit::of_status(problem.status), problem: *problem, hint: None }
            }
            Tried::Answered(error @ ClientError::Unknown(_)) => {
                Failure::new(Exit::FAILED, ErrorCode::UnexpectedAnswer, chain(&error))
            }
            Tried::Answered(
                error @ (ClientError::Unreachable { .. }
                | ClientError::Broken(_)
                | ClientError::TimedOut
                | ClientError::Token(_)),
            ) => Failure::new(Exit::UNREACHABLE, ErrorCode::DaemonUnreachable, chain(&error)),
        };
        failure.into()
    }
}
