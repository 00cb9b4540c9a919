//! Sessions of browsers: giving out the code that opens one, listing and revoking them.

use std::sync::Arc;

use domain::id::SessionId;
use domain::store::StoreError;

use super::failure::{Chain, Failure};
use super::resolve;
use super::server::{Answer, Asked, json, read};
use super::wire::{LoginCodeBody, Page, RevokedBody, SessionBody};
use crate::auth::session::{READ_MAX, Revoked};
use crate::auth::{Authority, TokenError};
use crate::daemon::Daemon;
use crate::error_code::ErrorCode;

/// Gives out a code. A session may not: whoever got into a browser would stay in with it.
pub(crate) fn code(daemon: &Arc<Daemon>, asked: &Asked) -> Answer {
    match asked.authority {
        Authority::Operator => {}
        Authority::Session(_) | Authority::Nobody => {
            let detail = "a new browser is let in from the command line: run `open-conduit open`";
            return Err(Failure::new(ErrorCode::OperatorOnly, detail));
        }
    }
    let Some(origin) = daemon.page_origin() else {
        return Err(Failure::new(ErrorCode::StoreClosed, "the daemon does not serve pages yet; try again"));
    };
    let code = daemon.codes().issue(daemon.store().now()).map_err(|error| failure(&error))?;
    tracing::info!("a one-time code for the page was given out");
    let url = format!("{origin}/login?code={}", code.text);
    Ok(json(&LoginCodeBody { code: code.text, url, expires_at: code.expires_at.to_string() }))
}

/// Why a code or a session could not be made.
pub(crate) fn failure(error: &TokenError) -> Failure {
    match error {
        TokenError::Random => {
            Failure::new(ErrorCode::NoRandomness, "the system gives no random bytes; try again")
        }
        TokenError::Home(error) => {
            tracing::warn!(error = %Chain(error), "the home failed a request");
            Failure::new(ErrorCode::HomeUnreadable, "the home cannot be read; the daemon's log says more")
        }
        TokenError::Store(error) => Failure::from(error.clone()),
    }
}

/// Lists the sessions, oldest first.
pub(crate) async fn list(daemon: &Arc<Daemon>, asked: &Asked) -> Answer {
    Ok(json(&live(daemon, asked.authority).await?))
}

/// The sessions, oldest first, with the one that asks marked.
///
/// # Errors
/// What reading the store answers.
pub(crate) async fn live(daemon: &Daemon, authority: Authority) -> Result<Page<SessionBody>, Failure> {
    let now = daemon.store().now();
    read(daemon, "sessions", move |tx| {
        let sessions = tx.sessions(READ_MAX)?;
        let live = sessions.iter().filter(|session| session.is_live(now));
        let items =
            live.map(|session| SessionBody::new(session, authority == Authority::Session(session.id)));
        Ok(Page { items: items.collect(), next: None })
    })
    .await
}

/// Revokes one session.
pub(crate) async fn revoke(daemon: &Arc<Daemon>, asked: &Asked) -> Answer {
    Ok(json(&revoke_one(daemon, asked.id()).await?))
}

/// Revokes the session of an id or the beginning of one.
///
/// # Errors
/// `not_found` and `ambiguous_id`, and what writing the store answers.
pub(crate) async fn revoke_one(daemon: &Daemon, id: &str) -> Result<RevokedBody, Failure> {
    let text = id.to_owned();
    let id = read(daemon, "session", move |tx| resolve::session(tx, &text)).await?;
    end(daemon, Revoked::One(id)).await
}

/// Revokes every session.
pub(crate) async fn revoke_all(daemon: &Arc<Daemon>) -> Answer {
    Ok(json(&end(daemon, Revoked::All).await?))
}

async fn end(daemon: &Daemon, which: Revoked) -> Result<RevokedBody, Failure> {
    let gone = daemon.sessions().revoke(daemon.store(), which).await?;
    tracing::info!(count = gone.len(), "sessions were revoked");
    Ok(RevokedBody { sessions: gone.iter().map(ToString::to_string).collect() })
}

/// Writes down that a session was seen, beside the request that it was seen by.
pub(crate) fn note_seen(daemon: &Arc<Daemon>, id: SessionId) {
    let noted = Arc::clone(daemon);
    daemon.spawn(async move {
        match noted.sessions().see(noted.store(), id).await {
            Ok(()) | Err(StoreError::Closed) => {}
            Err(error) => {
                tracing::warn!(error = %Chain(&error), "that a session was seen could not be written");
            }
        }
    });
}
