//! One-time codes: what the command line prints and a browser logs in with. They live in memory, for a few
//! minutes, and each opens one session.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use domain::time::Timestamp;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::{TOKEN_BYTES, TokenError, letters};

/// How long a code is valid.
const VALID: Duration = Duration::from_mins(10);
/// The most codes that wait to be used. One more takes the place of the oldest.
const OUTSTANDING_MAX: usize = 16;
/// How many wrong codes are looked at within [`WRONG_WITHIN`]. After that none is, right or wrong.
const WRONG_MAX: usize = 10;
/// See [`WRONG_MAX`].
const WRONG_WITHIN: Duration = Duration::from_mins(1);

/// Why a code opens nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CodeRefusal {
    /// It was never given out, was used, has expired, or had to make room.
    Wrong,
    /// Too many were wrong lately. Whether this one is right was not looked at, and it can still be used.
    TooMany,
}

/// A code that was given out.
pub(crate) struct Code {
    /// Its text.
    pub(crate) text: String,
    /// When it stops being valid, exclusive.
    pub(crate) expires_at: Timestamp,
}

struct Outstanding {
    digest: [u8; 32],
    expires_at: Timestamp,
}

/// The codes that wait to be used.
#[derive(Default)]
pub(crate) struct Codes(Mutex<Known>);

#[derive(Default)]
struct Known {
    outstanding: VecDeque<Outstanding>,
    /// When the last wrong ones were shown.
    wrong: VecDeque<Timestamp>,
}

impl fmt::Debug for Codes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Codes({})", self.0.lock().unwrap_or_else(PoisonError::into_inner).outstanding.len())
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Code").field("expires_at", &self.expires_at).finish_non_exhaustive()
    }
}

impl Codes {
    /// Gives out a code.
    ///
    /// # Errors
    /// [`TokenError::Random`].
    pub(crate) fn issue(&self, now: Timestamp) -> Result<Code, TokenError> {
        let text = letters::<TOKEN_BYTES>()?;
        let expires_at = now.after(VALID);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.outstanding.retain(|code| now < code.expires_at);
        while known.outstanding.len() >= OUTSTANDING_MAX {
            known.outstanding.pop_front();
        }
        known.outstanding.push_back(Outstanding { digest: digest(&text), expires_at });
        Ok(Code { text, expires_at })
    }

    /// Uses a code up. A person may have typed it: case, spaces and dashes don't count. How long a refusal takes
    /// does not depend on which code comes close.
    ///
    /// # Errors
    /// [`CodeRefusal`].
    pub(crate) fn redeem(&self, shown: &str, now: Timestamp) -> Result<(), CodeRefusal> {
        let shown = digest(&shown.to_ascii_lowercase().replace([' ', '-'], ""));
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while known.wrong.front().is_some_and(|at| now.since(*at) >= WRONG_WITHIN) {
            known.wrong.pop_front();
        }
        if known.wrong.len() >= WRONG_MAX {
            return Err(CodeRefusal::TooMany);
        }
        known.outstanding.retain(|code| now < code.expires_at);
        let before = known.outstanding.len();
        known.outstanding.retain(|code| !bool::from(code.digest.ct_eq(&shown)));
        if known.outstanding.len() < before {
            return Ok(());
        }
        known.wrong.push_back(now);
        Err(CodeRefusal::Wrong)
    }
}

fn digest(code: &str) -> [u8; 32] {
    Sha256::digest(code.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use domain::time::Timestamp;

    use super::{CodeRefusal, Codes, OUTSTANDING_MAX, VALID, WRONG_MAX, WRONG_WITHIN};

    const NOW: Timestamp = Timestamp::EPOCH;

    fn just_before(after: Duration) -> Timestamp {
        NOW.after(after.checked_sub(Duration::from_micros(1)).unwrap())
    }

    #[test]
    fn redeem_takes_a_code_once() {
        let codes = Codes::default();
        let (one, other) = (codes.issue(NOW).unwrap(), codes.issue(NOW).unwrap());
        assert_eq!(one.text.len(), 52);
        assert_eq!(codes.redeem(&one.text[..51], NOW), Err(CodeRefusal::Wrong));
        assert_eq!(codes.redeem("", NOW), Err(CodeRefusal::Wrong));
        assert_eq!(codes.redeem(&one.text, NOW), Ok(()));
        assert_eq!(codes.redeem(&one.text, NOW), Err(CodeRefusal::Wrong));
        let typed = format!(" {}-{}\u{20}", &other.text[..4].to_ascii_uppercase(), &other.text[4..]);
        assert_eq!(codes.redeem(&typed, NOW), Ok(()));
    }

    #[test]
    fn redeem_refuses_a_code_from_the_moment_it_expires() {
        let codes = Codes::default();
        let (one, other) = (codes.issue(NOW).unwrap(), codes.issue(NOW).unwrap());
        assert_eq!(one.expires_at, NOW.after(VALID));
        assert_eq!(codes.redeem(&one.text, just_before(VALID)), Ok(()));
        assert_eq!(codes.redeem(&other.text, NOW.after(VALID)), Err(CodeRefusal::Wrong));
    }

    #[test]
    fn issue_lets_the_oldest_make_room() {
        let codes = Codes::default();
        let all: Vec<_> = (0..=OUTSTANDING_MAX).map(|_| codes.issue(NOW).unwrap()).collect();
        assert_eq!(codes.redeem(&all[0].text, NOW), Err(CodeRefusal::Wrong));
        assert!(all[1..].iter().all(|code| codes.redeem(&code.text, NOW).is_ok()));
    }

    #[test]
    fn redeem_looks_at_ten_wrong_ones_a_minute_and_keeps_the_right_one() {
        let codes = Codes::default();
        let right = codes.issue(NOW).unwrap();
        for _ in 0..WRONG_MAX {
            assert_eq!(codes.redeem("wrong", NOW), Err(CodeRefusal::Wrong));
        }
        assert_eq!(codes.redeem("wrong", NOW), Err(CodeRefusal::TooMany));
        assert_eq!(codes.redeem(&right.text, just_before(WRONG_WITHIN)), Err(CodeRefusal::TooMany));
        assert_eq!(codes.redeem(&right.text, NOW.after(WRONG_WITHIN)), Ok(()));
    }

    #[test]
    fn debug_shows_no_code() {
        let codes = Codes::default();
        let code = codes.issue(NOW).unwrap();
        assert!(!format!("{code:?} {codes:?}").contains(&code.text));
    }
}
