//! Ids and counters, each its own type, so that no two can be taken for one another.
//!
//! An id is a 63-bit number. Its high bits are the second it was made in, so new rows land beside each
//! other in an index; below come the low bits of the maker's incarnation, so that two processes on one
//! database never make the same one; the rest counts. People see it as a prefix and thirteen letters.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::time::Timestamp;

/// Letters of an id's text: digits and lower-case letters without `i`, `l`, `o`, `u`. They sort as numbers.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// Letters in an id's text, after the prefix.
const LETTERS: usize = 13;

/// The text is not an id of the expected kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("not an id of this kind: expected `{prefix}_` and up to thirteen letters or digits")]
pub struct IdError {
    /// The prefix that was expected.
    pub prefix: &'static str,
}

fn encode(number: i64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut text = [b'0'; LETTERS];
    let mut rest = number.cast_unsigned();
    for letter in text.iter_mut().rev() {
        *letter = ALPHABET[(rest & 31) as usize];
        rest >>= 5;
    }
    f.write_str(std::str::from_utf8(&text).expect("the alphabet is ASCII"))
}

/// The lowest and highest number whose text begins with `letters`.
fn decode_range(letters: &str) -> Option<(i64, i64)> {
    if letters.is_empty() || letters.len() > LETTERS {
        return None;
    }
    let mut number: u64 = 0;
    for letter in letters.bytes() {
        let value = ALPHABET.iter().position(|known| *known == letter.to_ascii_lowercase())?;
        number = number.checked_mul(32)?.checked_add(value as u64)?;
    }
    let shift = 5 * (LETTERS - letters.len());
    let low = number.checked_shl(u32::try_from(shift).ok()?)?;
    // A first letter beyond 7 does not fit 63 bits.
    if (low >> shift) != number || i64::try_from(low).is_err() {
        return None;
    }
    let high = low | ((1_u64 << shift) - 1);
    Some((i64::try_from(low).ok()?, i64::try_from(high).unwrap_or(i64::MAX)))
}

macro_rules! id_type {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(i64);

        impl $name {
            /// What the text of such an id begins with.
            pub const PREFIX: &'static str = $prefix;

            /// The id behind a stored number.
            pub const fn from_number(number: i64) -> Self {
                Self(number)
            }

            /// The number a store keeps.
            pub const fn number(self) -> i64 {
                self.0
            }

            /// The lowest and highest id whose text begins with `text`; the prefix may be left out.
            ///
            /// # Errors
            /// [`IdError`] when no id begins like that.
            pub fn range(text: &str) -> Result<(Self, Self), IdError> {
                let error = IdError { prefix: $prefix };
                let letters = text.strip_prefix(concat!($prefix, "_")).unwrap_or(text);
                let (low, high) = decode_range(letters).ok_or(error)?;
                Ok((Self(low), Self(high)))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(concat!($prefix, "_"))?;
                encode(self.0, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                let error = IdError { prefix: $prefix };
                let letters = text.strip_prefix(concat!($prefix, "_")).ok_or(error)?;
                if letters.len() != LETTERS {
                    return Err(error);
                }
                decode_range(letters).map(|(low, _high)| Self(low)).ok_or(error)
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;

            fn try_from(text: String) -> Result<Self, IdError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.to_string()
            }
        }
    };
}

id_type!(
    /// An accepted Event.
    EventId, "ev"
);
id_type!(
    /// A Work.
    WorkId, "work"
);
id_type!(
    /// An Execution: one attempt at a Work.
    ExecutionId, "run"
);
id_type!(
    /// A timer.
    TimerId, "timer"
);
id_type!(
    /// A Wait of a parked Work.
    WaitId, "wait"
);
id_type!(
    /// A session of a browser.
    SessionId, "session"
);

macro_rules! counter_type {
    ($(#[$doc:meta])* $name:ident, $first:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(i64);

        impl $name {
            /// The first value.
            pub const FIRST: Self = Self($first);

            /// The value behind a stored number.
            pub const fn from_number(number: i64) -> Self {
                Self(number)
            }

            /// The number a store keeps.
            pub const fn number(self) -> i64 {
                self.0
            }

            /// The value that follows.
            ///
            /// # Panics
            /// After 2^63 steps.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0.checked_add(1).expect("a counter does not reach 2^63"))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

counter_type!(
    /// The place of an Event or a transition in the order of commits. Gaps are allowed, repeats are not.
    Sequence, 1
);
counter_type!(
    /// How often a record was written; a decision names the revision it read.
    Revision, 1
);
counter_type!(
    /// The fencing number of the authority over one Execution; it rises with each claim of that Execution.
    Epoch, 1
);
counter_type!(
    /// Which attempt at its Work an Execution is. It never resets.
    Attempt, 1
);
counter_type!(
    /// The number of an applied configuration.
    Generation, 1
);
counter_type!(
    /// One life of one process on one database. Names and pids repeat, incarnations do not.
    Incarnation, 1
);

impl Sequence {
    /// Before every accepted Event.
    pub const ZERO: Self = Self(0);
}

/// Makes ids. Two makers with different incarnations never make the same one.
#[derive(Debug)]
pub struct IdMaker {
    incarnation: Incarnation,
    last: i64,
}

/// Bits that count within a second and an incarnation: four million ids a second.
const COUNT_BITS: u32 = 22;
/// Bits of the incarnation that go into an id.
const INCARNATION_BITS: u32 = 9;

impl IdMaker {
    /// A maker for one incarnation.
    pub const fn new(incarnation: Incarnation) -> Self {
        Self { incarnation, last: 0 }
    }

    /// The next number, for any kind of id. It is higher than every earlier one of this maker.
    pub fn next(&mut self, now: Timestamp) -> i64 {
        let low_bits = COUNT_BITS + INCARNATION_BITS;
        let seconds = now.as_seconds().clamp(0, (1 << (63 - low_bits)) - 1);
        let maker = self.incarnation.number() & ((1 << INCARNATION_BITS) - 1);
        let first = (seconds << low_bits) | (maker << COUNT_BITS);
        self.last = if first > self.last {
            first
        } else if (self.last + 1) & ((1 << COUNT_BITS) - 1) == 0 {
            // The count of this second is used up (or the clock went back): borrow the next second's.
            (((self.last >> low_bits) + 1) << low_bits) | (maker << COUNT_BITS)
        } else {
            self.last + 1
        };
        self.last
    }

    /// A fresh Event id.
    pub fn event(&mut self, now: Timestamp) -> EventId {
        EventId(self.next(now))
    }

    /// A fresh Work id.
    pub fn work(&mut self, now: Timestamp) -> WorkId {
        WorkId(self.next(now))
    }

    /// A fresh Execution id.
    pub fn execution(&mut self, now: Timestamp) -> ExecutionId {
        ExecutionId(self.next(now))
    }

    /// A fresh timer id.
    pub fn timer(&mut self, now: Timestamp) -> TimerId {
        TimerId(self.next(now))
    }

    /// A fresh Wait id.
    pub fn wait(&mut self, now: Timestamp) -> WaitId {
        WaitId(self.next(now))
    }

    /// A fresh session id.
    pub fn session(&mut self, now: Timestamp) -> SessionId {
        SessionId(self.next(now))
    }
}

impl WaitId {
    /// An id above every one that was made until `at`, in whatever process.
    pub fn above(at: Timestamp) -> Self {
        // One second more: a maker may have borrowed the next one's.
        let seconds = at.as_seconds().clamp(0, (1 << (63 - COUNT_BITS - INCARNATION_BITS)) - 3);
        Self((seconds + 2) << (COUNT_BITS + INCARNATION_BITS))
    }
}

#[cfg(test)]
mod tests {
    use super::{EventId, IdMaker, Incarnation, WaitId, WorkId};
    use crate::time::Timestamp;

    #[test]
    fn above_a_time_is_above_what_every_maker_made_until_then() {
        let at = Timestamp::from_micros(1_772_366_400_999_999);
        for incarnation in [1, 511] {
            let made = IdMaker::new(Incarnation::from_number(incarnation)).wait(at);
            assert!(made < WaitId::above(at));
            assert!(WaitId::above(Timestamp::from_micros(at.as_micros() - 3_000_000)) < made);
        }
        assert!(WaitId::above(Timestamp::from_micros(i64::MAX)).number() > 0);
    }

    #[test]
    fn text_round_trips_and_sorts_like_the_number() {
        let low = EventId::from_number(31);
        let high = EventId::from_number(i64::MAX);
        assert_eq!(low.to_string(), "ev_000000000000z");
        assert_eq!(high.to_string(), "ev_7zzzzzzzzzzzz");
        assert_eq!(high.to_string().parse::<EventId>().unwrap(), high);
        assert!("ev_8000000000000".parse::<EventId>().is_err());
        assert!("work_000000000000z".parse::<EventId>().is_err());
        assert!("ev_00000000000".parse::<EventId>().is_err());
    }

    #[test]
    fn range_spans_every_id_with_the_prefix() {
        let id = WorkId::from_number(0x0123_4567_89ab_cdef);
        let text = id.to_string();
        for length in 1..=13 {
            let (low, high) = WorkId::range(&text[..5 + length]).unwrap();
            assert!(low <= id && id <= high, "{length}");
        }
        assert_eq!(WorkId::range(&text).unwrap(), (id, id));
        assert!(WorkId::range("work_").is_err());
        assert!(WorkId::range("work_!").is_err());
    }

    #[test]
    fn makers_never_collide_nor_go_back() {
        let mut one = IdMaker::new(Incarnation::from_number(1));
        let mut two = IdMaker::new(Incarnation::from_number(2));
        let mut seen = std::collections::BTreeSet::new();
        let mut before = 0;
        for step in [10, 10, 9, 11, 3, 11] {
            let now = Timestamp::from_micros(step * 1_000_000);
            for _ in 0..1000 {
                let number = one.next(now);
                assert!(number > before);
                before = number;
                assert!(seen.insert(number));
                assert!(seen.insert(two.next(now)));
            }
        }
    }

    #[test]
    fn a_used_up_second_borrows_the_next_one() {
        let mut maker = IdMaker::new(Incarnation::from_number(3));
        maker.last = (5 << 31) | (3 << 22) | ((1 << 22) - 1);
        let next = maker.next(Timestamp::from_micros(5_000_000));
        assert_eq!(next, (6 << 31) | (3 << 22));
    }
}
