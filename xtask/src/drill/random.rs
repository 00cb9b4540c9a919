//! Chance that can be repeated: everything random in a drill follows from its seed.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use crate::error::Error;
use crate::machine::file_error;

/// A seed that nobody chose.
pub(super) fn fresh_seed() -> Result<u64, Error> {
    let source = Path::new("/dev/urandom");
    let mut bytes = [0_u8; 8];
    File::open(source)
        .and_then(|mut random| random.read_exact(&mut bytes))
        .map_err(file_error("read", source))?;
    Ok(u64::from_le_bytes(bytes))
}

/// `SplitMix64`: small, and good enough to choose moments.
#[derive(Debug)]
pub(super) struct Random {
    state: u64,
}

impl Random {
    /// The chance of one drill. Drills with one seed differ, so that each can be repeated alone.
    pub(super) fn new(seed: u64, name: &str) -> Self {
        let state = name.bytes().fold(seed, |state, byte| state.rotate_left(8) ^ u64::from(byte));
        Self { state }
    }

    /// Any number.
    pub(super) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is not zero. The bias does not matter here.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// A number from `-spread` to `spread`, which is not negative.
    pub(super) fn around(&mut self, spread: i64) -> i64 {
        let width = u64::try_from(spread).unwrap_or(0) * 2 + 1;
        i64::try_from(self.below(width)).unwrap_or(spread) - spread
    }

    /// A time of at most `longest`, to the microsecond.
    pub(super) fn up_to(&mut self, longest: Duration) -> Duration {
        let micros = u64::try_from(longest.as_micros()).unwrap_or(u64::MAX);
        Duration::from_micros(self.below(micros.saturating_add(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_repeats_with_its_seed_and_differs_by_name() {
        let first = |seed, name| Random::new(seed, name).next();
        assert_eq!(first(1, "a"), first(1, "a"));
        assert_ne!(first(1, "a"), first(2, "a"));
        assert_ne!(first(1, "a"), first(1, "b"));
    }

    #[test]
    fn random_keeps_to_its_bounds() {
        let mut random = Random::new(7, "bounds");
        for _ in 0..1000 {
            assert!(random.below(3) < 3);
            assert!((-2..=2).contains(&random.around(2)));
            assert!(random.up_to(Duration::from_millis(2)) <= Duration::from_millis(2));
        }
    }
}
