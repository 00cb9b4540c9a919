//! The change feed as server-sent events.
//!
//! Every event carries a cursor as its id, and a client that comes back with one misses nothing. A client is
//! owed no memory: rows are read a page at a time, and the next page only when the last one is on its way.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use domain::feed::{Change, FeedRow};
use domain::id::Sequence;
use domain::store::{Snapshot, StoreError};
use domain::text::ScopeName;
use hyper::Response;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio_util::sync::CancellationToken;

use super::body::Body;
use super::failure::{Chain, Failure};
use super::query::{self, Cursor};
use super::server::{Answer, Asked};
use super::wire::ChangeBody;
use crate::auth::Authority;
use crate::daemon::Daemon;
use crate::error_code::ErrorCode;

/// Rows read at a time.
const PAGE: u32 = 128;
/// How long a stream says nothing before it says that it is still there.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How long a reader that takes nothing is kept.
const STALLED: Duration = Duration::from_mins(1);
/// The words of a change's kind.
const KINDS: [&str; 4] = ["event", "checkpoint", "work", "run"];

/// What a client wants to see.
#[derive(Debug)]
struct Wanted {
    kinds: Vec<&'static str>,
    scope: Option<ScopeName>,
}

/// Opens a stream: from the cursor of `Last-Event-ID` or `cursor`, else from now on.
pub(crate) async fn open(daemon: &Arc<Daemon>, asked: &Asked) -> Answer {
    let wanted = Wanted { kinds: kinds(asked.query.text("kinds"))?, scope: asked.query.parsed("scope")? };
    let header = asked.parts.headers.get("last-event-id");
    let header = header.map(|value| value.to_str().unwrap_or_default().to_owned());
    let cursor = header.or_else(|| asked.query.text("cursor").map(str::to_owned));
    let Some(permit) = daemon.take_stream() else {
        let detail = "as many streams are open as the daemon keeps; close one, or try again later";
        return Err(Failure::new(ErrorCode::TooManyStreams, detail));
    };
    let bounds = daemon.store().read("stream", |tx| tx.feed_bounds()).await.map_err(Failure::from)?;
    let start = start(cursor.as_deref(), bounds);
    let (pieces, body) = mpsc::channel(1);
    let ended = match asked.authority {
        // A token that was revoked meanwhile is found out with the next request.
        Authority::Operator | Authority::Nobody => CancellationToken::new(),
        Authority::Session(id) => daemon.sessions().ended(id).unwrap_or_else(cancelled),
    };
    let authority = asked.authority;
    let follow = Follow { daemon: Arc::clone(daemon), wanted, pieces, authority, ended, _permit: permit };
    daemon.spawn(follow.run(start));
    let mut response = Response::new(Body::Pieces(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    Ok(response)
}

/// The cursor of a stream that goes on from now; none when the store does not answer.
pub(crate) async fn from_now(daemon: &Daemon) -> Option<String> {
    let bounds = daemon.store().read("stream", |tx| tx.feed_bounds()).await.ok()?;
    Some(query::cursor(Cursor::Feed, start(None, bounds).after.number()))
}

fn cancelled() -> CancellationToken {
    let token = CancellationToken::new();
    token.cancel();
    token
}

fn kinds(text: Option<&str>) -> Result<Vec<&'static str>, Failure> {
    let Some(text) = text else { return Ok(KINDS.to_vec()) };
    let known = |word: &str| KINDS.into_iter().find(|kind| *kind == word);
    let kinds: Option<Vec<_>> = text.split(',').map(known).collect();
    kinds.ok_or_else(|| Failure::bad(format!("`kinds` is a list of {}", KINDS.join(", "))))
}

/// Where a stream begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Start {
    after: Sequence,
    /// The client has missed something, or its cursor is none of ours: it has to read everything again.
    reset: bool,
}

fn start(cursor: Option<&str>, bounds: Option<(Sequence, Sequence)>) -> Start {
    let last = bounds.map_or(Sequence::ZERO, |(_first, last)| last);
    let Some(cursor) = cursor else { return Start { after: last, reset: false } };
    let known = query::read_cursor(Cursor::Feed, cursor).map(Sequence::from_number).filter(|after| {
        match bounds {
            // A cursor is a row that was sent. Once that row is gone, others may have gone after it.
            Some((first, last)) => *after >= first && *after <= last,
            None => *after == Sequence::ZERO,
        }
    });
    match known {
        Some(after) => Start { after, reset: false },
        None => Start { after: last, reset: true },
    }
}

struct Follow {
    daemon: Arc<Daemon>,
    wanted: Wanted,
    pieces: mpsc::Sender<Bytes>,
    authority: Authority,
    /// Cancelled when the session ends before its time.
    ended: CancellationToken,
    _permit: OwnedSemaphorePermit,
}

impl Follow {
    async fn run(self, start: Start) {
        let mut after = start.after;
        let cursor = query::cursor(Cursor::Feed, after.number());
        let hello = if start.reset {
            format!("event: reset\nid: {cursor}\ndata: {{}}\n\n")
        } else {
            format!(": open\nid: {cursor}\n\n")
        };
        let mut changed = self.daemon.runtime().hints().feed.subscribe();
        let mut sent = self.send(hello).await;
        while sent && self.is_allowed() {
            changed.mark_unchanged();
            let (text, last) = match self.page(after).await {
                Ok(page) => page,
                Err(error) => {
                    tracing::warn!(error = %Chain(&error), "a stream ended, as the store failed");
                    return;
                }
            };
            if last > after {
                after = last;
                sent = text.is_empty() || self.send(text).await;
                continue;
            }
            sent = self.wait(&mut changed).await;
        }
    }

    /// Whether who asked may still be told. A session that runs out is noticed no later than a heartbeat after.
    fn is_allowed(&self) -> bool {
        match self.authority {
            Authority::Operator | Authority::Nobody => true,
            Authority::Session(id) => self.daemon.sessions().is_live(id, self.daemon.store().now()),
        }
    }

    /// Waits for something to be committed. False when the stream is over.
    async fn wait(&self, changed: &mut tokio::sync::watch::Receiver<()>) -> bool {
        tokio::select! {
            () = self.daemon.stopping().cancelled() => false,
            () = self.ended.cancelled() => false,
            () = self.pieces.closed() => false,
            waited = tokio::time::timeout(HEARTBEAT, changed.changed()) => match waited {
                Ok(rung) => rung.is_ok(),
                Err(_elapsed) => self.send(": still here\n\n".to_owned()).await,
            },
        }
    }

    async fn send(&self, text: String) -> bool {
        tokio::select! {
            () = self.daemon.stopping().cancelled() => false,
            () = self.ended.cancelled() => false,
            sent = tokio::time::timeout(STALLED, self.pieces.send(text.into())) => matches!(sent, Ok(Ok(()))),
        }
    }

    /// The next rows as text, and the last of them.
    async fn page(&self, after: Sequence) -> Result<(String, Sequence), StoreError> {
        let (kinds, scope) = (self.wanted.kinds.clone(), self.wanted.scope.clone());
        self.daemon
            .store()
            .read("stream", move |tx| {
                let (mut text, mut last) = (String::new(), after);
                for row in tx.feed_after(after, PAGE)? {
                    last = row.sequence;
                    let body = change(&row);
                    if kinds.contains(&body.kind.as_str()) && in_scope(tx, &row, scope.as_ref())? {
                        write_event(&mut text, &row, &body);
                    }
                }
                Ok::<_, StoreError>((text, last))
            })
            .await
    }
}

fn write_event(text: &mut String, row: &FeedRow, body: &ChangeBody) {
    let data = serde_json::to_string(body).expect("texts are JSON");
    let cursor = query::cursor(Cursor::Feed, row.sequence.number());
    write!(text, "id: {cursor}\nevent: change\ndata: {data}\n\n")
        .expect("a string takes whatever is written");
}

fn in_scope(tx: &mut dyn Snapshot, row: &FeedRow, scope: Option<&ScopeName>) -> Result<bool, StoreError> {
    let Some(scope) = scope else { return Ok(true) };
    let of = match row.change {
        Change::Event { id } | Change::Checkpoint { event: id, .. } => tx.event(id)?.map(|event| event.scope),
        Change::Work { id, .. } => tx.work(id)?.map(|work| work.scope),
        Change::Execution { id, .. } => tx.execution(id)?.map(|execution| execution.scope),
    };
    Ok(of.as_ref() == Some(scope))
}

fn change(row: &FeedRow) -> ChangeBody {
    let of = |kind: &str, id: String| ChangeBody {
        at: row.at.to_string(),
        kind: kind.to_owned(),
        id,
        state: None,
        from: None,
        work: None,
    };
    match row.change {
        Change::Event { id } => of("event", id.to_string()),
        Change::Checkpoint { event, outcome } => {
            ChangeBody { state: Some(outcome.as_str().to_owned()), ..of("checkpoint", event.to_string()) }
        }
        Change::Work { id, state } => {
            ChangeBody { state: Some(state.as_str().to_owned()), ..of("work", id.to_string()) }
        }
        Change::Execution { id, work, from, to } => ChangeBody {
            state: Some(to.as_str().to_owned()),
            from: from.map(|from| from.as_str().to_owned()),
            work: Some(work.to_string()),
            ..of("run", id.to_string())
        },
    }
}

#[cfg(test)]
mod tests {
    use domain::id::Sequence;

    use super::{Start, kinds, start};

    #[test]
    fn start_resumes_from_a_row_that_is_kept_and_resets_otherwise() {
        let at = |number| Sequence::from_number(number);
        let bounds = Some((at(10), at(20)));
        let resumed = |number| Start { after: at(number), reset: false };
        let reset = |number| Start { after: at(number), reset: true };
        assert_eq!(start(None, bounds), resumed(20));
        assert_eq!(start(None, None), resumed(0));
        assert_eq!(start(Some("fa"), bounds), resumed(10));
        assert_eq!(start(Some("f14"), bounds), resumed(20));
        assert_eq!(start(Some("f0"), None), resumed(0));
        for lost in ["f9", "f15", "f0", "e10", "nonsense", ""] {
            assert_eq!(start(Some(lost), bounds), reset(20), "{lost}");
        }
        assert_eq!(start(Some("f5"), None), reset(0));
    }

    #[test]
    fn kinds_are_known_words() {
        assert_eq!(kinds(None).unwrap().len(), 4);
        assert_eq!(kinds(Some("run,work")).unwrap(), ["run", "work"]);
        assert!(kinds(Some("run,moon")).is_err() && kinds(Some("run,")).is_err());
    }
}
