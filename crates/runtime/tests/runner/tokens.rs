//! Tokens of attempts, the same in every run of a test, and who was given which.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use domain::id::{Epoch, ExecutionId};
use domain::toolbelt::{Presented, TokenDigest};
use extension::Secret;
use runtime::TokenSource;

/// Tokens that differ.
#[derive(Debug, Default)]
pub(super) struct CountedTokens(AtomicU64);

impl TokenSource for CountedTokens {
    fn make(&self) -> Option<(String, TokenDigest)> {
        let secret = format!("secret {}", self.0.fetch_add(1, Ordering::SeqCst));
        let digest = digest_of(&secret);
        Some((secret, digest))
    }
}

/// What stands for the digest of a token's secret part.
fn digest_of(secret: &str) -> TokenDigest {
    let mut digest = [0; 32];
    digest[..secret.len()].copy_from_slice(secret.as_bytes());
    TokenDigest::new(digest)
}

/// The tokens that an executor was given, as their holders show them.
#[derive(Debug, Default)]
pub(super) struct Given(BTreeMap<ExecutionId, Vec<Presented>>);

impl Given {
    /// Those of an attempt, oldest first.
    pub(super) fn of(&self, execution: ExecutionId) -> Vec<Presented> {
        self.0.get(&execution).cloned().unwrap_or_default()
    }

    pub(super) fn note(&mut self, execution: ExecutionId, token: Option<&Secret>) {
        let Some(token) = token else { return };
        let mut parts = token.expose().splitn(3, '.');
        let mut next = || parts.next().expect("a token says whose it is");
        let presented = Presented {
            execution: next().parse().unwrap(),
            epoch: Epoch::from_number(next().parse().unwrap()),
            digest: digest_of(next()),
        };
        self.0.entry(execution).or_default().push(presented);
    }
}
