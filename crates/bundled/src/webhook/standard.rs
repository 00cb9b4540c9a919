//! Standard Webhooks (<https://www.standardwebhooks.com>): an id, the time of the attempt and the body under one
//! signature.
//!
//! Only `v1`, the HMAC-SHA-256 under a shared secret, is checked. Entries of other kinds, such as the public-key
//! `v1a`, are skipped: they neither help nor hurt.

#[cfg(test)]
mod tests;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::STANDARD as BASE64;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use extension::{ConfigProblem, HttpDelivery, IngressRefusal, Secret, Secrets, Timestamp};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::{Choice, ConstantTimeEq};

use crate::signature;
use crate::table::Table;

/// The header that holds the sender's id of the delivery, which every attempt at it has.
pub(super) const ID: &str = "webhook-id";
/// The header that holds the time of the attempt, in seconds since 1970.
const TIMESTAMP: &str = "webhook-timestamp";
/// The header that holds the signatures, separated by spaces.
const SIGNATURE: &str = "webhook-signature";
/// What a signature by a shared secret begins with.
const SCHEME: &str = "v1,";
/// What a shared secret begins with.
const SECRET_PREFIX: &str = "whsec_";
/// How many bytes a shared secret has.
const KEY_BYTES: std::ops::RangeInclusive<usize> = 24..=64;
/// The most secrets of an entry: one in use, one on its way in or out, and room for a mistake.
const SECRETS_MAX: usize = 8;
/// How far the time of an attempt may be from the time it arrives, when nothing else is set.
const TOLERANCE_SECONDS: i64 = 300;
/// How far it may be set to be. Whoever has a recorded request can send it again for this long.
const TOLERANCE_SECONDS_MAX: i64 = 3600;
/// The most digits of a time in seconds, enough for some thirty thousand years.
const TIME_DIGITS_MAX: usize = 12;

/// Secrets are handed out with and without `=` at their end.
const SECRET_BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// What a request must show.
#[derive(Debug)]
pub(super) struct Standard {
    /// The names of the secrets, any of which may sign: two while one replaces the other.
    secrets: Vec<String>,
    tolerance_seconds: i64,
}

impl Standard {
    pub(super) fn read(
        table: &Table<'_>,
        secret_names: &[String],
        problems: &mut Vec<ConfigProblem>,
    ) -> Option<Self> {
        let before = problems.len();
        if table.get("secrets").is_none() {
            let message = "is required: a list of names, of which any may sign";
            problems.push(ConfigProblem::at(table.path("secrets"), message));
        }
        let mut secrets = Vec::new();
        for (path, name) in table.texts("secrets", problems) {
            if secret_names.iter().any(|known| known == name) {
                secrets.push(name.to_owned());
            } else {
                let message = "must name one of the entry's `secret_names`";
                problems.push(ConfigProblem::at(path, message));
            }
        }
        if secrets.len() > SECRETS_MAX {
            let message = format!("must name at most {SECRETS_MAX}; leave out those that no longer sign");
            problems.push(ConfigProblem::at(table.path("secrets"), message));
        }
        let tolerance_seconds = match table.get("tolerance_seconds") {
            None => TOLERANCE_SECONDS,
            Some(value) => value.as_i64().unwrap_or_default(),
        };
        if !(1..=TOLERANCE_SECONDS_MAX).contains(&tolerance_seconds) {
            let message = format!("must be a whole number from 1 to {TOLERANCE_SECONDS_MAX}");
            problems.push(ConfigProblem::at(table.path("tolerance_seconds"), message));
        }
        (problems.len() == before).then_some(Self { secrets, tolerance_seconds })
    }

    /// Checks a request over its raw bytes. What is wrong with it is not said: it all looks the same.
    ///
    /// # Errors
    /// [`IngressRefusal::Unauthorized`], or [`IngressRefusal::Unavailable`] when nothing matches and a secret
    /// that might have matched cannot be used.
    pub(super) async fn check(
        &self,
        request: &HttpDelivery,
        secrets: &dyn Secrets,
    ) -> Result<(), IngressRefusal> {
        let signed = Signed::read(request).ok_or(IngressRefusal::Unauthorized)?;
        if !signed.is_timely(request.received_at, self.tolerance_seconds) {
            return Err(IngressRefusal::Unauthorized);
        }
        let mut refusal = IngressRefusal::Unauthorized;
        for name in &self.secrets {
            match signature::secret(secrets, name).await.and_then(|secret| key(name, &secret)) {
                Ok(key) if signed.is_by(&key, &request.body) => return Ok(()),
                Ok(_other) => {}
                Err(unavailable) => refusal = unavailable,
            }
        }
        Err(refusal)
    }
}

/// The bytes of a secret.
fn key(name: &str, secret: &Secret) -> Result<Vec<u8>, IngressRefusal> {
    let written = secret.expose().strip_prefix(SECRET_PREFIX);
    let key = written.and_then(|written| SECRET_BASE64.decode(written).ok());
    key.filter(|key| KEY_BYTES.contains(&key.len())).ok_or_else(|| {
        let (low, high) = (KEY_BYTES.start(), KEY_BYTES.end());
        let reason =
            format!("the secret `{name}` is not `{SECRET_PREFIX}` and {low} to {high} bytes in base64");
        IngressRefusal::Unavailable(reason)
    })
}

/// What the headers of a request say.
struct Signed<'a> {
    id: &'a str,
    /// The time of the attempt as it is written, which is how it is signed.
    timestamp: &'a str,
    /// Those of kind `v1` that can be read.
    signatures: Vec<Vec<u8>>,
}

impl<'a> Signed<'a> {
    fn read(request: &'a HttpDelivery) -> Option<Self> {
        // A full stop separates what is signed, so one inside an id would let its end be read as a time.
        let id = only(request, ID).filter(|id| !id.is_empty() && !id.contains('.'))?;
        let timestamp = only(request, TIMESTAMP)?;
        let signatures = only(request, SIGNATURE)?.split(' ');
        let signatures = signatures.filter_map(|written| BASE64.decode(written.strip_prefix(SCHEME)?).ok());
        Some(Self { id, timestamp, signatures: signatures.collect() })
    }

    fn is_timely(&self, now: Timestamp, tolerance_seconds: i64) -> bool {
        let digits = self.timestamp.bytes().all(|byte| byte.is_ascii_digit());
        if !digits || self.timestamp.len() > TIME_DIGITS_MAX {
            return false;
        }
        let Ok(seconds) = self.timestamp.parse::<i64>() else { return false };
        let apart = now.as_micros().abs_diff(seconds.saturating_mul(1_000_000));
        apart <= tolerance_seconds.unsigned_abs() * 1_000_000
    }

    /// Whether one of the signatures is by this key. All are compared, each in constant time.
    fn is_by(&self, key: &[u8], body: &[u8]) -> bool {
        let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
        for part in [self.id.as_bytes(), b".", self.timestamp.as_bytes(), b".", body] {
            mac.update(part);
        }
        let expected = mac.finalize().into_bytes();
        let compared = self.signatures.iter().map(|shown| expected.as_slice().ct_eq(shown));
        compared.fold(Choice::from(0), |any, one| any | one).into()
    }
}

/// The value of a header that is there once. Of two, one might be checked and the other used.
fn only<'a>(request: &'a HttpDelivery, name: &str) -> Option<&'a str> {
    let mut values = request.headers.iter().filter(|(known, _value)| known == name);
    let (_name, value) = values.next()?;
    if values.next().is_some() {
        return None;
    }
    std::str::from_utf8(value).ok()
}
