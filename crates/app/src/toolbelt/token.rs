//! Tokens of attempts: made of random bytes, shown in a header, and known by the digest of their secret part.

use domain::id::{Epoch, ExecutionId};
use domain::toolbelt::{Presented, TokenDigest};
use runtime::TokenSource;
use sha2::{Digest as _, Sha256};

use crate::auth;

/// Makes tokens from the system's randomness.
#[derive(Debug)]
pub(crate) struct RandomTokens;

impl TokenSource for RandomTokens {
    fn make(&self) -> Option<(String, TokenDigest)> {
        match auth::random_text() {
            Ok(secret) => {
                let digest = digest(secret.as_bytes());
                Some((secret, digest))
            }
            Err(error) => {
                tracing::error!(%error, "a run gets no token and can make no calls");
                None
            }
        }
    }
}

fn digest(secret: &[u8]) -> TokenDigest {
    TokenDigest::new(Sha256::digest(secret).into())
}

/// What the value of an `Authorization` header shows; none when that has not the form of an attempt's token.
pub(super) fn presented(authorization: &[u8]) -> Option<Presented> {
    let token = std::str::from_utf8(auth::bearer(authorization)?).ok()?;
    let mut parts = token.splitn(3, '.');
    let execution: ExecutionId = parts.next()?.parse().ok()?;
    let epoch = Epoch::from_number(parts.next()?.parse().ok()?);
    let secret = parts.next().filter(|secret| !secret.is_empty())?;
    Some(Presented { execution, epoch, digest: digest(secret.as_bytes()) })
}

#[cfg(test)]
mod tests {
    use domain::id::{Epoch, ExecutionId};
    use runtime::TokenSource as _;

    use super::{RandomTokens, presented};

    #[test]
    fn a_token_that_was_made_is_known_by_its_digest() {
        let (secret, digest) = RandomTokens.make().unwrap();
        let run = ExecutionId::from_number(45);
        let shown = presented(format!("Bearer {run}.3.{secret}").as_bytes()).unwrap();
        assert_eq!((shown.execution, shown.epoch, shown.digest), (run, Epoch::from_number(3), digest));
        assert_ne!(RandomTokens.make().unwrap().0, secret);
    }

    #[test]
    fn what_is_no_token_shows_nothing() {
        let run = ExecutionId::from_number(45);
        for other in
            ["", "Bearer ", "Bearer x", "Basic x", &format!("Bearer {run}.1."), &format!("Bearer {run}.x.y")]
        {
            assert_eq!(presented(other.as_bytes()), None, "{other}");
        }
    }
}
