//! Sessions: who stays logged in to the page in a browser, for how long, and who makes room for whom.

use std::time::Duration;

use crate::id::SessionId;
use crate::store::Session;
use crate::time::Timestamp;

/// How long a session stays valid without being used.
pub const UNUSED_MAX: Duration = Duration::from_hours(30 * 24);
/// How long a session stays valid at the most.
pub const LIFETIME_MAX: Duration = Duration::from_hours(90 * 24);
/// How long ago a session was seen before that is worth a write.
pub const SEEN_EVERY: Duration = Duration::from_hours(1);
/// The most sessions at once.
pub const SESSIONS_MAX: usize = 64;

impl Session {
    /// A session that begins now.
    pub fn begin(id: SessionId, digest: String, label: String, now: Timestamp) -> Self {
        Self { id, digest, label, created_at: now, last_seen_at: now, expires_at: now.after(UNUSED_MAX) }
    }

    /// Whether it is valid.
    pub fn is_live(&self, now: Timestamp) -> bool {
        now < self.expires_at
    }

    /// The session after a use, when that is worth a write. An expired one is not revived.
    #[must_use]
    pub fn seen(&self, now: Timestamp) -> Option<Self> {
        if !self.is_live(now) || now.since(self.last_seen_at) < SEEN_EVERY {
            return None;
        }
        let expires_at = now.after(UNUSED_MAX).min(self.created_at.after(LIFETIME_MAX));
        Some(Self { last_seen_at: now, expires_at, ..self.clone() })
    }
}

/// The sessions that end so that one more finds room: those that have expired and, where that is not enough,
/// the ones that were unused for longest.
pub fn make_room(sessions: &[Session], now: Timestamp) -> Vec<SessionId> {
    let (live, expired): (Vec<&Session>, Vec<&Session>) =
        sessions.iter().partition(|session| session.is_live(now));
    let mut by_use = live;
    by_use.sort_by_key(|session| (session.last_seen_at, session.id));
    let over = (by_use.len() + 1).saturating_sub(SESSIONS_MAX);
    expired.into_iter().chain(by_use.into_iter().take(over)).map(|session| session.id).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{LIFETIME_MAX, SEEN_EVERY, SESSIONS_MAX, UNUSED_MAX, make_room};
    use crate::id::SessionId;
    use crate::store::Session;
    use crate::time::Timestamp;

    const MOMENT: Duration = Duration::from_micros(1);
    const START: Timestamp = Timestamp::EPOCH;

    fn just_before(after: Duration) -> Timestamp {
        START.after(after.checked_sub(MOMENT).unwrap())
    }

    fn session(number: i64, now: Timestamp) -> Session {
        Session::begin(SessionId::from_number(number), format!("{number:064x}"), "Firefox".to_owned(), now)
    }

    #[test]
    fn is_live_until_it_was_unused_for_thirty_days() {
        let session = session(1, START);
        assert!(session.is_live(just_before(UNUSED_MAX)));
        assert!(!session.is_live(START.after(UNUSED_MAX)));
    }

    #[test]
    fn seen_is_worth_a_write_once_an_hour() {
        let session = session(1, START);
        assert_eq!(session.seen(just_before(SEEN_EVERY)), None);
        let now = START.after(SEEN_EVERY);
        let seen = session.seen(now).unwrap();
        assert_eq!((seen.last_seen_at, seen.expires_at), (now, now.after(UNUSED_MAX)));
        assert_eq!((seen.id, seen.created_at), (session.id, session.created_at));
        assert_eq!(seen.seen(now), None);
    }

    #[test]
    fn seen_does_not_outlive_ninety_days_nor_revive() {
        let mut session = session(1, START);
        let mut now = START;
        while let Some(next) = session.seen(now.after(SEEN_EVERY * 24)) {
            now = next.last_seen_at;
            session = next;
        }
        assert_eq!(session.expires_at, START.after(LIFETIME_MAX));
        assert!(now < session.expires_at && !session.is_live(session.expires_at));
        assert_eq!(session.seen(session.expires_at), None);
    }

    #[test]
    fn make_room_ends_the_expired_and_then_the_longest_unused() {
        let now = START.after(UNUSED_MAX);
        let live = |number: usize| {
            let number = i64::try_from(number).unwrap();
            session(number, START.after(MOMENT * u32::try_from(100 - number).unwrap()))
        };
        let mut sessions: Vec<Session> = (1..SESSIONS_MAX).map(live).collect();
        assert_eq!(make_room(&sessions, now), [], "there is room for one more");
        sessions.push(live(SESSIONS_MAX));
        assert_eq!(
            make_room(&sessions, now),
            [SessionId::from_number(64)],
            "the one that was unused for longest"
        );
        sessions.push(session(0, START));
        assert_eq!(make_room(&sessions, now), [SessionId::from_number(0), SessionId::from_number(64)]);
    }
}
