//! The change feed, as commands that wait or watch follow it.

use crate::api::wire::ChangeBody;
use crate::client::sse::Messages;
use crate::client::{Client, ClientError, Route};
use crate::error_code::ErrorCode;

use super::exit::Exit;
use super::failure::{Failure, Stop};

/// What happens from now on.
#[derive(Debug)]
pub(super) struct Changes(Messages);

impl Changes {
    /// Begins to listen to these kinds of changes. What is asked afterwards and what comes from here leave no gap
    /// between them.
    pub(super) async fn follow(client: &Client, kinds: &str) -> Result<Self, Stop> {
        let streamed = client.stream(&Route::new(&["stream"]).with("kinds", kinds)).await?;
        Ok(Self(Messages::new(streamed)))
    }

    /// The next change.
    ///
    /// # Errors
    /// [`Stop`] when the daemon went away, which ends the stream.
    pub(super) async fn next(&mut self) -> Result<ChangeBody, Stop> {
        while let Some(message) = self.0.next().await? {
            if message.data.is_empty() || message.name == "reset" {
                continue;
            }
            return Ok(serde_json::from_str(&message.data).map_err(ClientError::Unknown)?);
        }
        let failure = Failure::new(Exit::UNREACHABLE, ErrorCode::DaemonUnreachable, "the daemon stopped");
        Err(failure.hint("what was accepted goes on when it starts again, with `open-conduit up`").into())
    }
}
