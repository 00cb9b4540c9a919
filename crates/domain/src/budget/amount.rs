//! Amounts: whole thousandths of a unit, never below zero, written as decimals.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// How much of a unit, in thousandths. Arithmetic saturates at zero and at the top.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Amount(i64);

/// The text is not an amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("not an amount: a number from 0 with at most three decimals, such as 2.5")]
pub struct AmountError;

impl Amount {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// One whole unit.
    pub const ONE: Self = Self(1000);
    /// The largest that can be configured: a million million units.
    pub const CONFIGURED_MAX: Self = Self(1_000_000_000_000_000);

    /// More than anything that can be configured.
    pub const MAX: Self = Self(i64::MAX);

    /// An amount of thousandths; what is below zero is nothing.
    pub fn of_thousandths(thousandths: i64) -> Self {
        Self(thousandths.max(0))
    }

    /// Its thousandths.
    pub const fn thousandths(self) -> i64 {
        self.0
    }

    /// Both together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// This without `other`; nothing where that is more.
    #[must_use]
    pub fn less(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0).max(0))
    }

    /// A share of it, in percent, rounded up, so that a threshold is never reached before its share is.
    #[must_use]
    pub fn percent(self, percent: u32) -> Self {
        let share = (i128::from(self.0) * i128::from(percent) + 99) / 100;
        Self(i64::try_from(share).unwrap_or(i64::MAX))
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / 1000, self.0 % 1000);
        if rest == 0 {
            return write!(f, "{whole}");
        }
        let decimals = format!("{rest:03}");
        write!(f, "{whole}.{}", decimals.trim_end_matches('0'))
    }
}

impl FromStr for Amount {
    type Err = AmountError;

    fn from_str(text: &str) -> Result<Self, AmountError> {
        let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(whole) || !is_number(decimals) || decimals.len() > 3 {
            return Err(AmountError);
        }
        let whole: i64 = whole.parse().map_err(|_large| AmountError)?;
        let rest: i64 = format!("{decimals:0<3}").parse().map_err(|_impossible| AmountError)?;
        whole.checked_mul(1000).and_then(|whole| whole.checked_add(rest)).map(Self).ok_or(AmountError)
    }
}
