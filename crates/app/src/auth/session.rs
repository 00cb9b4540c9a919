//! The sessions that are valid, by their digests, and what opens and ends them.
//!
//! Like tokens they are kept in memory, so that a request costs a hash and no read. Whatever changes them takes
//! its turn, so that what was read before a change is never put in force after it.

use std::fmt;
use std::sync::{PoisonError, RwLock};

use domain::id::{IdMaker, SessionId};
use domain::session;
use domain::store::{Session, Store, StoreError};
use domain::time::Timestamp;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use tokio_util::sync::CancellationToken;

use super::{TokenError, digest, from_hex, random_text};

/// The most sessions that are read. There are never more than [`session::SESSIONS_MAX`].
pub(crate) const READ_MAX: u32 = 256;

/// The sessions that are valid.
#[derive(Default)]
pub(crate) struct Sessions {
    known: RwLock<Vec<Known>>,
    changing: tokio::sync::Mutex<()>,
}

struct Known {
    digest: [u8; 32],
    session: Session,
    /// Cancelled when it ends before its time, for what goes on longer than a request.
    ended: CancellationToken,
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sessions({})", self.known.read().unwrap_or_else(PoisonError::into_inner).len())
    }
}

/// A session that a cookie shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Admitted {
    /// Its id.
    pub(crate) id: SessionId,
    /// Whether that it was seen is to be written down.
    pub(crate) is_due: bool,
}

impl Sessions {
    /// Takes the store's sessions for the valid ones.
    ///
    /// # Errors
    /// [`StoreError`]; then those that were valid stay so.
    pub(crate) async fn load(&self, store: &Store) -> Result<(), StoreError> {
        let _one_at_a_time = self.changing.lock().await;
        self.read(store).await
    }

    async fn read(&self, store: &Store) -> Result<(), StoreError> {
        let sessions = store.read("sessions", |tx| tx.sessions(READ_MAX)).await?;
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let mut before = std::mem::take(&mut *known);
        for session in sessions {
            let Some(digest) = from_hex(&session.digest) else { continue };
            let index = before.iter().position(|known| known.session.id == session.id);
            let ended = index.map(|index| before.swap_remove(index).ended).unwrap_or_default();
            known.push(Known { digest, session, ended });
        }
        for gone in before {
            gone.ended.cancel();
        }
        Ok(())
    }

    /// Opens a session for a browser, and gives the cookie that shows it. Others end when there are too many.
    ///
    /// # Errors
    /// [`TokenError`]; then there is no new one.
    pub(crate) async fn open(&self, store: &Store, label: String) -> Result<String, TokenError> {
        let cookie = random_text()?;
        let digest = digest(&cookie);
        let id = store.ids(IdMaker::session);
        let _one_at_a_time = self.changing.lock().await;
        store
            .transact("session.open", move |tx| {
                let now = tx.now();
                for gone in session::make_room(&tx.sessions(READ_MAX)?, now) {
                    tx.delete_session(gone)?;
                }
                tx.insert_session(&Session::begin(id, digest.clone(), label.clone(), now))
            })
            .await?;
        self.read(store).await?;
        Ok(cookie)
    }

    /// The session that a cookie shows, when it is valid.
    pub(crate) fn admit(&self, cookie: &[u8], now: Timestamp) -> Option<Admitted> {
        let shown: [u8; 32] = Sha256::digest(cookie).into();
        let admitted = {
            let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
            let mut found = None;
            for known in known.iter().filter(|known| bool::from(known.digest.ct_eq(&shown))) {
                found = known
                    .session
                    .is_live(now)
                    .then(|| Admitted { id: known.session.id, is_due: known.session.seen(now).is_some() });
            }
            found?
        };
        if admitted.is_due {
            // The requests that come meanwhile need not write it too.
            let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
            if let Some(known) = known.iter_mut().find(|known| known.session.id == admitted.id)
                && let Some(seen) = known.session.seen(now)
            {
                known.session = seen;
            }
        }
        Some(admitted)
    }

    /// Writes down that a session was seen.
    ///
    /// # Errors
    /// [`StoreError`]; then it is written with a later use.
    pub(crate) async fn see(&self, store: &Store, id: SessionId) -> Result<(), StoreError> {
        let _one_at_a_time = self.changing.lock().await;
        store
            .transact("session.seen", move |tx| {
                let now = tx.now();
                let found = tx.sessions(READ_MAX)?.into_iter().find(|session| session.id == id);
                if let Some(seen) = found.and_then(|session| session.seen(now)) {
                    tx.update_session(&seen)?;
                }
                Ok::<_, StoreError>(())
            })
            .await
    }

    /// Ends sessions, durably. Those that were there are told.
    ///
    /// # Errors
    /// [`StoreError`]. Then they may be there again after a restart, and until then they are not valid here.
    pub(crate) async fn revoke(&self, store: &Store, which: Revoked) -> Result<Vec<SessionId>, StoreError> {
        let _one_at_a_time = self.changing.lock().await;
        self.forget(which);
        store
            .transact("session.revoke", move |tx| {
                let mut gone = Vec::new();
                for session in tx.sessions(READ_MAX)?.iter().filter(|session| which.names(session.id)) {
                    if tx.delete_session(session.id)? {
                        gone.push(session.id);
                    }
                }
                Ok::<_, StoreError>(gone)
            })
            .await
    }

    fn forget(&self, which: Revoked) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.retain(|known| {
            let goes = which.names(known.session.id);
            if goes {
                known.ended.cancel();
            }
            !goes
        });
    }

    /// What is cancelled when a session ends before its time; none when it has ended.
    pub(crate) fn ended(&self, id: SessionId) -> Option<CancellationToken> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.iter().find(|known| known.session.id == id).map(|known| known.ended.clone())
    }

    /// Whether a session is valid.
    pub(crate) fn is_live(&self, id: SessionId, now: Timestamp) -> bool {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.iter().any(|known| known.session.id == id && known.session.is_live(now))
    }
}

/// Which sessions end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Revoked {
    /// This one.
    One(SessionId),
    /// Every one.
    All,
}

impl Revoked {
    fn names(self, id: SessionId) -> bool {
        match self {
            Self::One(one) => one == id,
            Self::All => true,
        }
    }
}
