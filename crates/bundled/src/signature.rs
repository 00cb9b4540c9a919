//! Comparing what a sender proves with what it should be, in a time that tells nothing about the difference.

use extension::{IngressRefusal, Secret, Secrets};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// Whether `mac` is the HMAC-SHA-256 of `body` under `secret`.
pub(crate) fn is_hmac_of(mac: &[u8], body: &[u8], secret: &Secret) -> bool {
    let mut expected =
        Hmac::<Sha256>::new_from_slice(secret.expose().as_bytes()).expect("HMAC takes a key of any length");
    expected.update(body);
    expected.verify_slice(mac).is_ok()
}

/// Whether `shown` is the secret. Both are hashed first, so that not even the length shows.
pub(crate) fn is_secret(shown: &str, secret: &Secret) -> bool {
    Sha256::digest(shown.as_bytes()).ct_eq(&Sha256::digest(secret.expose().as_bytes())).into()
}

/// Reads hexadecimal digits of either case.
pub(crate) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    pairs.iter().map(|[high, low]| Some((digit(*high)? << 4) | digit(*low)?)).collect()
}

/// Resolves the secret that everything depends on. An empty one would let anybody sign.
///
/// # Errors
/// [`IngressRefusal::Unavailable`] when it can't be read or is empty.
pub(crate) async fn secret(secrets: &dyn Secrets, name: &str) -> Result<Secret, IngressRefusal> {
    let secret = secrets.resolve(name).await;
    let secret = secret.map_err(|error| IngressRefusal::Unavailable(error.to_string()))?;
    if secret.expose().is_empty() {
        return Err(IngressRefusal::Unavailable(format!("the secret `{name}` is empty")));
    }
    Ok(secret)
}

#[cfg(test)]
mod tests {
    use extension::Secret;

    use super::{from_hex, is_hmac_of, is_secret};

    #[test]
    fn the_vector_that_github_documents_holds() {
        let secret = Secret::new("It's a Secret to Everybody".to_owned());
        let mac = from_hex("757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17").unwrap();
        assert!(is_hmac_of(&mac, b"Hello, World!", &secret));
        assert!(!is_hmac_of(&mac, b"Hello, World?", &secret));
        assert!(!is_hmac_of(&mac[..31], b"Hello, World!", &secret));
        assert!(!is_hmac_of(b"", b"Hello, World!", &secret));
        assert!(!is_hmac_of(&mac, b"Hello, World!", &Secret::new("other".to_owned())));
    }

    #[test]
    fn hex_is_whole_bytes_of_digits() {
        assert_eq!(from_hex("00fFa1"), Some(vec![0, 255, 161]));
        assert_eq!(from_hex(""), Some(Vec::new()));
        for bad in ["0", "0g", "é0", "+1"] {
            assert_eq!(from_hex(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_secret_equals_only_itself() {
        let secret = Secret::new("abc".to_owned());
        assert!(is_secret("abc", &secret));
        assert!(!is_secret("abd", &secret));
        assert!(!is_secret("", &secret));
    }
}
