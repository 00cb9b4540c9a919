//! Who may talk to the daemon: the operator's token, a browser's session, and the user behind a socket.
//!
//! The token's text lies in the home, for the command line of the same user; the database knows only its
//! digest. Digests are also kept in memory, so that a request costs a hash and no read.

use std::fmt;
use std::fmt::Write as _;
use std::sync::{PoisonError, RwLock};

use domain::id::SessionId;
use domain::store::{Store, StoreError, Token};
use domain::time::Timestamp;
use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConstantTimeEq as _};
use thiserror::Error;

use crate::daemon::host;
use crate::home::{Home, HomeError};

pub(crate) mod code;
pub(crate) mod cookie;
pub(crate) mod label;
pub(crate) mod page_name;
pub(crate) mod session;

/// Random bytes of a token.
const TOKEN_BYTES: usize = 32;
/// The most tokens that are known at once.
const TOKENS_MAX: u32 = 256;
/// What the token in the home is called.
const OPERATOR: &str = "operator";
/// What `Authorization` begins with, in lower case.
const SCHEME: &str = "bearer ";

/// Letters of what people may have to type, five bits each.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// Under whose authority a request is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Authority {
    /// Nobody's: what is asked for is open to all, such as the login page.
    Nobody,
    /// The operator's, by a token.
    Operator,
    /// The operator's in a browser, by a session.
    Session(SessionId),
}

/// Why there is no operator's token.
#[derive(Debug, Error)]
pub(crate) enum TokenError {
    /// The system has no randomness to give.
    #[error("the system gives no random bytes")]
    Random,
    /// Its file cannot be read or written.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Makes a secret text of [`TOKEN_BYTES`] random bytes, in hex.
///
/// # Errors
/// [`TokenError::Random`].
pub(crate) fn random_text() -> Result<String, TokenError> {
    let mut bytes = [0; TOKEN_BYTES];
    getrandom::fill(&mut bytes).map_err(|_source| TokenError::Random)?;
    Ok(hex(&bytes))
}

/// The digest under which a token is stored.
pub(crate) fn digest(token: &str) -> String {
    hex(&Sha256::digest(token.as_bytes()))
}

/// Makes a text of `N` random bytes, in letters that can be read out, typed, and stand in a host name.
///
/// # Errors
/// [`TokenError::Random`].
fn letters<const N: usize>() -> Result<String, TokenError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|_source| TokenError::Random)?;
    let (mut text, mut bits, mut count) = (String::new(), 0_u32, 0_u32);
    for byte in bytes {
        (bits, count) = ((bits << 8) | u32::from(byte), count + 8);
        while count >= 5 {
            count -= 5;
            text.push(char::from(ALPHABET[(bits >> count) as usize & 31]));
        }
        bits &= (1 << count) - 1;
    }
    if count > 0 {
        text.push(char::from(ALPHABET[(bits << (5 - count)) as usize & 31]));
    }
    Ok(text)
}

/// Bytes in hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes whatever is written");
        text
    })
}

/// Makes the operator's token valid: the one in the home, or a new one where there is none. A token whose file
/// was removed or changed is revoked by that.
///
/// # Errors
/// [`TokenError`].
pub(crate) async fn prepare(home: &Home, store: &Store) -> Result<(), TokenError> {
    let path = home.token();
    let written = home.read_private(&path)?.map(|text| text.trim().to_owned());
    let token = match written {
        Some(token) if token.len() >= TOKEN_BYTES => token,
        Some(_) | None => {
            let token = random_text()?;
            home.write_private(&path, token.as_bytes())?;
            token
        }
    };
    let digest = digest(&token);
    // Where several homes share the database, each has a token of its own there.
    let operator = if store.exclusive() {
        OPERATOR.to_owned()
    } else {
        format!("{OPERATOR} {}", host::of_home(home)?.identity)
    };
    store
        .transact("token", move |tx| {
            for known in tx.tokens(TOKENS_MAX)? {
                if known.label == operator && known.digest != digest {
                    tx.delete_token(&known.digest)?;
                }
            }
            if tx.token(&digest)?.is_none() {
                let (label, created_at) = (operator.clone(), tx.now());
                tx.insert_token(&Token { digest: digest.clone(), label, created_at, expires_at: None })?;
            }
            Ok::<_, StoreError>(())
        })
        .await?;
    Ok(())
}

/// The tokens that are valid, by their digests.
#[derive(Default)]
pub(crate) struct Tokens(RwLock<Vec<Known>>);

#[derive(Clone, Copy)]
struct Known {
    digest: [u8; 32],
    expires_at: Option<Timestamp>,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        write!(f, "Tokens({})", known.len())
    }
}

impl Tokens {
    /// Takes the store's tokens for the valid ones.
    ///
    /// # Errors
    /// [`StoreError`]; then those that were valid stay so.
    pub(crate) async fn load(&self, store: &Store) -> Result<(), StoreError> {
        let tokens = store.read("tokens", |tx| tx.tokens(TOKENS_MAX)).await?;
        let known = tokens.iter().filter_map(|token| {
            Some(Known { digest: from_hex(&token.digest)?, expires_at: token.expires_at })
        });
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = known.collect();
        Ok(())
    }

    /// Whether the value of an `Authorization` header shows a valid token at `now`. How long that takes does
    /// not depend on which token comes close.
    pub(crate) fn admit(&self, authorization: &[u8], now: Timestamp) -> bool {
        let Some(token) = bearer(authorization) else { return false };
        let shown: [u8; 32] = Sha256::digest(token).into();
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut admitted = Choice::from(0);
        for token in known.iter() {
            let live = token.expires_at.is_none_or(|until| now < until);
            admitted |= token.digest.ct_eq(&shown) & Choice::from(u8::from(live));
        }
        admitted.into()
    }
}

/// What the value of an `Authorization` header shows.
pub(crate) fn bearer(authorization: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = authorization.split_at_checked(SCHEME.len())?;
    (scheme.eq_ignore_ascii_case(SCHEME.as_bytes()) && !token.is_empty()).then_some(token)
}

fn from_hex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != bytes.len() || !rest.is_empty() {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(pairs) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

/// Whether the process at the other end of a Unix socket may speak at all. The file's mode keeps others out
/// already; this holds where the mode was changed or the socket handed on.
pub(crate) const fn is_same_user(peer: Option<u32>, own: u32) -> bool {
    match peer {
        Some(peer) => peer == own,
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use domain::time::Timestamp;

    use super::{Known, Tokens, bearer, digest, from_hex, is_same_user, random_text};

    fn tokens(token: &str, expires_at: Option<i64>) -> Tokens {
        let expires_at = expires_at.map(Timestamp::from_micros);
        let known = Known { digest: from_hex(&digest(token)).unwrap(), expires_at };
        let tokens = Tokens::default();
        tokens.0.write().unwrap().push(known);
        tokens
    }

    #[test]
    fn admit_takes_the_token_and_nothing_like_it() {
        let tokens = tokens("s3cret", None);
        let now = Timestamp::EPOCH;
        assert!(tokens.admit(b"Bearer s3cret", now));
        assert!(tokens.admit(b"bearer s3cret", now));
        for wrong in ["", "Bearer", "Bearer ", "Bearer s3cre", "Bearer s3crets", "Basic s3cret", "s3cret"] {
            assert!(!tokens.admit(wrong.as_bytes(), now), "{wrong}");
        }
        assert!(!Tokens::default().admit(b"Bearer s3cret", now));
    }

    #[test]
    fn admit_refuses_a_token_from_the_moment_it_expires() {
        let tokens = tokens("s3cret", Some(10));
        assert!(tokens.admit(b"Bearer s3cret", Timestamp::from_micros(9)));
        assert!(!tokens.admit(b"Bearer s3cret", Timestamp::from_micros(10)));
    }

    #[test]
    fn only_the_daemons_own_user_may_speak() {
        assert!(is_same_user(Some(1000), 1000));
        assert!(!is_same_user(Some(0), 1000), "root is another user");
        assert!(!is_same_user(Some(1001), 1000));
        assert!(!is_same_user(None, 1000), "a peer that cannot be told is nobody");
    }

    #[test]
    fn tokens_are_long_and_differ() {
        let (one, other) = (random_text().unwrap(), random_text().unwrap());
        assert_eq!(one.len(), 64);
        assert_ne!(one, other);
        assert_eq!(bearer(b"Bearer x"), Some(&b"x"[..]));
    }
}
