//! Signatures of deliveries, as their senders make them.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// `sha256=` and the HMAC-SHA-256 of a body in hexadecimal digits.
pub(super) fn sign(secret: &str, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes a key of any length");
    mac.update(body);
    mac.finalize().into_bytes().iter().fold("sha256=".to_owned(), |mut text, byte| {
        for digit in [byte >> 4, byte & 15] {
            text.push(char::from_digit(u32::from(digit), 16).expect("four bits are one digit"));
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::sign;

    #[test]
    fn sign_is_what_github_documents() {
        // The example of GitHub's page "Validating webhook deliveries".
        assert_eq!(
            sign("It's a Secret to Everybody", b"Hello, World!"),
            "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
        );
    }
}
