//! How a sender shows who it is.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use extension::{ConfigProblem, HttpDelivery, IngressRefusal, Secrets};

use super::standard::Standard;
use crate::signature;
use crate::table::Table;

/// The ways there are, for messages.
const WAYS: &str = "`hmac`, `standard_webhooks` or `token`";

/// What a request must show.
#[derive(Debug)]
pub(super) enum Verify {
    /// An HMAC of the raw body.
    Hmac {
        /// The header it is in, in lower case.
        header: String,
        /// What stands before it in the header.
        prefix: String,
        /// How it is written.
        encoding: Encoding,
        /// The name of the secret.
        secret: String,
    },
    /// The secret itself, at the end of the path.
    Token {
        /// The name of the secret.
        secret: String,
    },
    /// The headers of Standard Webhooks.
    Standard(Standard),
}

/// How bytes are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    /// Two digits for each byte.
    Hex,
    /// Base64 with padding.
    Base64,
}

impl Verify {
    pub(super) fn read(
        table: &Table<'_>,
        secret_names: &[String],
        problems: &mut Vec<ConfigProblem>,
    ) -> Option<Self> {
        let known = ["hmac", "standard_webhooks", "token"];
        let Some(verify) = table.table("verify", &known, problems) else {
            problems.push(ConfigProblem::at(table.path("verify"), format!("is required: {WAYS}")));
            return None;
        };
        let standard = verify.table("standard_webhooks", &["secrets", "tolerance_seconds"], problems);
        let hmac = verify.table("hmac", &["header", "secret", "prefix", "encoding"], problems);
        let token = verify.table("token", &["secret"], problems);
        match (hmac, standard, token) {
            (Some(hmac), None, None) => {
                const ENCODINGS: &[(&str, Encoding)] =
                    &[("hex", Encoding::Hex), ("base64", Encoding::Base64)];
                let header = hmac.need_text("header", problems).map(str::to_ascii_lowercase);
                let prefix = hmac.text("prefix", problems).unwrap_or_default().to_owned();
                let encoding = hmac.word("encoding", ENCODINGS, Encoding::Hex, problems);
                let secret = hmac.secret("secret", secret_names, problems);
                Some(Self::Hmac { header: header?, prefix, encoding, secret: secret? })
            }
            (None, Some(standard), None) => {
                Standard::read(&standard, secret_names, problems).map(Self::Standard)
            }
            (None, None, Some(token)) => {
                Some(Self::Token { secret: token.secret("secret", secret_names, problems)? })
            }
            (_hmac, _standard, _token) => {
                problems.push(ConfigProblem::at(verify.own_path(), format!("must be one of {WAYS}")));
                None
            }
        }
    }

    pub(super) fn describe(&self) -> &'static str {
        match self {
            Self::Hmac { .. } => "a signature of the body",
            Self::Token { .. } => "a secret address",
            Self::Standard(_) => "signatures as of Standard Webhooks",
        }
    }

    /// Checks a request before anything of its body is read.
    ///
    /// # Errors
    /// The refusal of a request that does not show what it must.
    pub(super) async fn check(
        &self,
        request: &HttpDelivery,
        secrets: &dyn Secrets,
    ) -> Result<(), IngressRefusal> {
        match self {
            Self::Token { secret } => {
                let secret = signature::secret(secrets, secret).await?;
                if signature::is_secret(&request.path_tail, &secret) {
                    Ok(())
                } else {
                    Err(IngressRefusal::NotFound)
                }
            }
            Self::Standard(standard) => {
                if !request.path_tail.is_empty() {
                    return Err(IngressRefusal::NotFound);
                }
                standard.check(request, secrets).await
            }
            Self::Hmac { header, prefix, encoding, secret } => {
                if !request.path_tail.is_empty() {
                    return Err(IngressRefusal::NotFound);
                }
                let written = request.header(header).and_then(|value| value.strip_prefix(prefix.as_str()));
                let shown = written.and_then(|written| encoding.read(written));
                let shown = shown.ok_or(IngressRefusal::Unauthorized)?;
                let secret = signature::secret(secrets, secret).await?;
                if signature::is_hmac_of(&shown, &request.body, &secret) {
                    Ok(())
                } else {
                    Err(IngressRefusal::Unauthorized)
                }
            }
        }
    }
}

impl Encoding {
    fn read(self, text: &str) -> Option<Vec<u8>> {
        match self {
            Self::Hex => signature::from_hex(text),
            Self::Base64 => BASE64.decode(text).ok(),
        }
    }
}
