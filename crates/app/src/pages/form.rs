//! What a form sends.
//!
//! A field that is not known is an error, as is one that comes twice: an action that ignores what it was told
//! does something else than its page says.

use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use percent_encoding::percent_decode_str;

use super::Visit;
use crate::api::body;
use crate::api::failure::Failure;
use crate::api::server::Asked;
use crate::error_code::ErrorCode;

/// The most bytes that a form may send.
const FORM_BYTES_MAX: usize = 64 * 1024;

/// The fields of a form.
#[derive(Debug)]
pub(super) struct Form(Vec<(String, String)>);

impl Form {
    /// Reads the form of a request.
    ///
    /// # Errors
    /// `unsupported_media_type` for anything but a form; `bad_request` when it is no text, or names a field twice
    /// or one that is not in `known`.
    pub(super) fn read(visit: &Visit, known: &[&str]) -> Result<Self, Failure> {
        let written = visit.asked.parts.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
        let kind = written.unwrap_or_default().split(|byte| *byte == b';').next().unwrap_or_default();
        if !kind.trim_ascii().eq_ignore_ascii_case(b"application/x-www-form-urlencoded") {
            let detail = "send the form as `Content-Type: application/x-www-form-urlencoded`";
            return Err(Failure::new(ErrorCode::UnsupportedMediaType, detail));
        }
        Self::parse(&visit.sent, known)
    }

    fn parse(sent: &[u8], known: &[&str]) -> Result<Self, Failure> {
        let text = std::str::from_utf8(sent).map_err(|_source| not_text())?;
        let mut fields: Vec<(String, String)> = Vec::new();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decode(name)?, decode(value)?);
            if !known.contains(&name.as_str()) {
                return Err(Failure::bad("the form has a field that is not known here; load its page again"));
            }
            if fields.iter().any(|(seen, _value)| *seen == name) {
                return Err(Failure::bad(format!("the form has `{name}` twice; load its page again")));
            }
            fields.push((name, value));
        }
        Ok(Self(fields))
    }

    /// The text of a field; none when it is absent or empty.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        let (_name, value) = self.0.iter().find(|(known, _value)| known == name)?;
        (!value.is_empty()).then_some(value)
    }

    /// The text of a field that must be there.
    ///
    /// # Errors
    /// `bad_request` when it is absent or empty.
    pub(super) fn need(&self, name: &str) -> Result<&str, Failure> {
        self.text(name).ok_or_else(|| Failure::bad(format!("the form has no `{name}`; load its page again")))
    }
}

/// Reads what a request sends, whole and within bounds.
///
/// # Errors
/// As [`body::read`].
pub(super) async fn receive(asked: &mut Asked) -> Result<Bytes, Failure> {
    body::read(&mut asked.body, FORM_BYTES_MAX).await
}

fn decode(text: &str) -> Result<String, Failure> {
    let spaced = text.replace('+', " ");
    let decoded = percent_decode_str(&spaced).decode_utf8();
    Ok(decoded.map_err(|_source| not_text())?.into_owned())
}

fn not_text() -> Failure {
    Failure::bad("the form is not UTF-8")
}

#[cfg(test)]
mod tests {
    use super::Form;

    #[test]
    fn parse_decodes_and_refuses_what_it_does_not_know() {
        let form = Form::parse(b"a=x%20y+z%26&b=&", &["a", "b"]).unwrap();
        assert_eq!((form.text("a"), form.text("b")), (Some("x y z&"), None));
        assert!(form.need("a").is_ok() && form.need("b").is_err() && form.need("c").is_err());
        for wrong in [&b"a=1&a=2"[..], b"c=1", b"a=%ff", b"a=\xff"] {
            assert!(Form::parse(wrong, &["a", "b"]).is_err(), "{wrong:?}");
        }
    }
}
