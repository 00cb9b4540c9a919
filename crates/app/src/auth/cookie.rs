//! The session's cookie: how it is shown, and how it is set.
//!
//! Cookies ignore ports and anything may set one for the names above it, so a second cookie of our name is not
//! ours for certain, and neither is the first.

use std::time::Duration;

use hyper::header::{COOKIE, HeaderMap, HeaderValue};

/// Its name.
const NAME: &str = "conduit-session";

/// What a request shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown<'h> {
    /// No cookie of our name.
    Nothing,
    /// One.
    One(&'h [u8]),
    /// Several. Which one is ours cannot be told.
    Several,
}

/// Looks for the cookie.
pub(crate) fn shown(headers: &HeaderMap) -> Shown<'_> {
    let pairs = headers.get_all(COOKIE).iter().flat_map(|value| value.as_bytes().split(|byte| *byte == b';'));
    let mut ours = pairs.filter_map(|pair| {
        let end = pair.iter().position(|byte| *byte == b'=')?;
        (pair[..end].trim_ascii() == NAME.as_bytes()).then(|| pair[end + 1..].trim_ascii())
    });
    match (ours.next(), ours.next()) {
        (None, _) => Shown::Nothing,
        (Some(value), None) => Shown::One(value),
        (Some(_), Some(_)) => Shown::Several,
    }
}

/// Whether a cookie is only for connections with TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    /// Plain, to this machine.
    Plain,
    /// TLS, to the proxy that was declared.
    Tls,
}

/// The value of `Set-Cookie` that gives a browser its session. `value` is of letters and digits.
pub(crate) fn set(value: &str, transport: Transport, kept: Duration) -> HeaderValue {
    let secure = match transport {
        Transport::Plain => "",
        Transport::Tls => "; Secure",
    };
    let seconds = kept.as_secs();
    let text = format!("{NAME}={value}; HttpOnly; SameSite=Strict; Path=/; Max-Age={seconds}{secure}");
    let mut header = HeaderValue::try_from(text).expect("letters, digits and what stands between them");
    header.set_sensitive(true);
    header
}

/// The value of `Set-Cookie` that takes it away.
pub(crate) fn clear(transport: Transport) -> HeaderValue {
    set("", transport, Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hyper::header::{COOKIE, HeaderMap, HeaderValue};

    use super::{Shown, Transport, clear, set, shown};

    #[track_caller]
    fn check(cookies: &[&'static [u8]], expected: Shown<'_>) {
        let mut headers = HeaderMap::new();
        for cookie in cookies {
            headers.append(COOKIE, HeaderValue::from_bytes(cookie).unwrap());
        }
        assert_eq!(shown(&headers), expected, "{cookies:?}");
    }

    #[test]
    fn shown_finds_one_cookie_and_trusts_none_of_several() {
        check(&[], Shown::Nothing);
        check(&[b"a=b; Conduit-Session=x; conduit-sessions=y; conduit-session"], Shown::Nothing);
        check(&[b"a=b; conduit-session=x; c=d"], Shown::One(b"x"));
        check(&[b"a=b", b"conduit-session=x"], Shown::One(b"x"));
        check(&[b"conduit-session="], Shown::One(b""));
        check(&[b"conduit-session=x; conduit-session=x"], Shown::Several);
        check(&[b"conduit-session=x", b"conduit-session =y"], Shown::Several);
        check(&[b"conduit-session=x; a=\xff", b"b=\xff; conduit-session=y"], Shown::Several);
    }

    #[test]
    fn set_keeps_it_from_scripts_and_other_sites() {
        let text = |value: HeaderValue| value.to_str().unwrap().to_owned();
        assert_eq!(
            text(set("ab12", Transport::Plain, Duration::from_mins(1))),
            "conduit-session=ab12; HttpOnly; SameSite=Strict; Path=/; Max-Age=60"
        );
        assert_eq!(
            text(clear(Transport::Tls)),
            "conduit-session=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0; Secure"
        );
    }
}
