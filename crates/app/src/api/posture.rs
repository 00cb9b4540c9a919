//! Who is let in: decided from a request's head alone, before anything of its body is read.
//!
//! The daemon listens on the machine's own addresses, where every page of every browser tab can knock. A page
//! can send requests, but it can neither forge `Host`, `Origin` and `Sec-Fetch-Site` nor read the token.

use std::net::SocketAddr;

use domain::time::Timestamp;
use hyper::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use hyper::http::request::Parts;

use super::failure::Failure;
use crate::auth::Tokens;
use crate::error_code::ErrorCode;

/// Where a request came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peer {
    /// The socket in the home.
    Unix {
        /// Whether a process of the daemon's own user is at the other end.
        same_user: bool,
    },
    /// A TCP listener.
    Tcp,
}

/// Names under which a listener may be addressed.
#[derive(Debug, Clone)]
pub(crate) struct Hosts {
    /// In lower case, each with its port.
    authorities: Vec<String>,
    /// In lower case, reached through a proxy, so with any port or none.
    public: Vec<String>,
}

impl Hosts {
    /// The local names of a listener at `address`, and names that a proxy is reached under.
    pub(crate) fn new(address: SocketAddr, public: Vec<String>) -> Self {
        let port = address.port();
        let mut authorities: Vec<String> =
            ["localhost", "127.0.0.1", "[::1]"].iter().map(|name| format!("{name}:{port}")).collect();
        authorities.push(address.to_string());
        Self { authorities, public }
    }

    /// Whether a `Host` names the listener.
    pub(crate) fn admit(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        if self.authorities.contains(&host) {
            return true;
        }
        let (name, port) = host.rsplit_once(':').unwrap_or((&host, "0"));
        port.bytes().all(|digit| digit.is_ascii_digit()) && self.public.iter().any(|public| public == name)
    }
}

/// The one `Host` of a request.
pub(crate) fn host(parts: &Parts) -> Option<&str> {
    let mut hosts = parts.headers.get_all(HOST).iter();
    let header = hosts.next().and_then(|host| host.to_str().ok());
    if hosts.next().is_some() {
        return None;
    }
    match (parts.uri.authority(), header) {
        (Some(authority), Some(header)) => (authority.as_str() == header).then_some(header),
        (Some(authority), None) => Some(authority.as_str()),
        (None, header) => header,
    }
}

/// Whether a request is addressed to this daemon, by its own user.
///
/// # Errors
/// `foreign_user` and `foreign_host`.
pub(crate) fn admit_address(parts: &Parts, peer: Peer, hosts: Option<&Hosts>) -> Result<(), Failure> {
    let host = host(parts);
    let admitted = match peer {
        Peer::Unix { same_user: false } => {
            let detail = "the socket is for the daemon's own user; run the command as that user";
            return Err(Failure::new(ErrorCode::ForeignUser, detail).closing());
        }
        // A browser cannot reach it; the name is only a matter of form.
        Peer::Unix { same_user: true } => host == Some("localhost"),
        Peer::Tcp => host.is_some_and(|host| hosts.is_some_and(|hosts| hosts.admit(host))),
    };
    if admitted {
        return Ok(());
    }
    let detail = "the request's Host is not a name of this daemon; use the address that `status` shows";
    Err(Failure::new(ErrorCode::ForeignHost, detail).closing())
}

/// Whether a request may be one of a page of another site. A program sends neither header; a browser always
/// sends one where it matters, so whatever is there must be right, token or not.
///
/// # Errors
/// `foreign_origin`.
pub(crate) fn admit_origin(parts: &Parts) -> Result<(), Failure> {
    let site_is_ours = parts
        .headers
        .get_all("sec-fetch-site")
        .iter()
        .all(|site| matches!(site.as_bytes(), b"same-origin" | b"none"));
    let own = host(parts);
    let origin_is_ours = parts.headers.get_all(ORIGIN).iter().all(|origin| {
        let origin = origin.to_str().ok();
        let authority =
            origin.and_then(|origin| origin.strip_prefix("http://").or(origin.strip_prefix("https://")));
        authority.is_some() && authority == own
    });
    if site_is_ours && origin_is_ours {
        return Ok(());
    }
    let detail = "a page of another site may not use this interface, whatever token it has";
    Err(Failure::new(ErrorCode::ForeignOrigin, detail).closing())
}

/// Whether a request shows a valid token.
///
/// # Errors
/// `unauthorized`, the same whatever is wrong with it.
pub(crate) fn admit_token(headers: &HeaderMap, tokens: &Tokens, now: Timestamp) -> Result<(), Failure> {
    let mut shown = headers.get_all(AUTHORIZATION).iter();
    let (first, second) = (shown.next(), shown.next());
    match (first, second) {
        (Some(value), None) if tokens.admit(value.as_bytes(), now) => Ok(()),
        (Some(_) | None, _) => {
            let detail =
                "send `Authorization: Bearer` with the token that is in the file `token` of the home";
            Err(Failure::new(ErrorCode::Unauthorized, detail).closing())
        }
    }
}

/// Headers of every answer: a browser must neither guess what it is, nor frame it, nor keep it.
pub(crate) fn harden(headers: &mut HeaderMap) {
    const HARDENED: [(HeaderName, &str); 5] = [
        (CONTENT_SECURITY_POLICY, "default-src 'self'; frame-ancestors 'none'; base-uri 'none'"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
    ];
    for (name, value) in HARDENED {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

#[cfg(test)]
mod tests {
    use hyper::Request;
    use hyper::http::request::Parts;

    use super::{Hosts, Peer, admit_address, admit_origin};

    fn hosts() -> Hosts {
        Hosts::new("127.0.0.1:7717".parse().unwrap(), vec!["hooks.example.com".to_owned()])
    }

    fn parts(uri: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn hosts_admits_its_own_names_and_no_others() {
        for own in ["localhost:7717", "LocalHost:7717", "127.0.0.1:7717", "[::1]:7717"] {
            assert!(hosts().admit(own), "{own}");
        }
        for public in ["hooks.example.com", "hooks.example.com:443", "HOOKS.example.com"] {
            assert!(hosts().admit(public), "{public}");
        }
        for foreign in [
            "",
            "localhost",
            "localhost:80",
            "127.0.0.1",
            "127.0.0.2:7717",
            "evil.test:7717",
            "localhost.evil.test:7717",
            "hooks.example.com.evil.test",
            "x.hooks.example.com",
            "hooks.example.com:x",
        ] {
            assert!(!hosts().admit(foreign), "{foreign}");
        }
    }

    #[test]
    fn an_address_needs_one_host_that_is_ours() {
        let admit = |parts: &Parts, peer| admit_address(parts, peer, Some(&hosts())).is_ok();
        let own = parts("/", &[("host", "127.0.0.1:7717")]);
        assert!(admit(&own, Peer::Tcp));
        assert!(!admit(&parts("/", &[]), Peer::Tcp));
        assert!(!admit(&parts("/", &[("host", "127.0.0.1:7717"), ("host", "evil.test")]), Peer::Tcp));
        assert!(!admit(&parts("http://evil.test/", &[("host", "127.0.0.1:7717")]), Peer::Tcp));
        assert!(!admit(&parts("http://evil.test:7717/", &[]), Peer::Tcp));
        let local = parts("/", &[("host", "localhost")]);
        assert!(admit(&local, Peer::Unix { same_user: true }));
        assert!(!admit(&local, Peer::Unix { same_user: false }));
        assert!(!admit(&parts("/", &[("host", "evil.test")]), Peer::Unix { same_user: true }));
    }

    #[test]
    fn an_origin_is_ours_or_absent() {
        let admit = |headers: &[(&str, &str)]| {
            let mut all = vec![("host", "localhost:7717")];
            all.extend_from_slice(headers);
            admit_origin(&parts("/", &all)).is_ok()
        };
        assert!(admit(&[]));
        assert!(admit(&[("origin", "http://localhost:7717"), ("sec-fetch-site", "same-origin")]));
        assert!(admit(&[("sec-fetch-site", "none")]));
        for foreign in ["null", "", "http://evil.test", "http://localhost:3000", "http://127.0.0.1:7717"] {
            assert!(!admit(&[("origin", foreign)]), "{foreign}");
        }
        for foreign in ["cross-site", "same-site", ""] {
            assert!(!admit(&[("sec-fetch-site", foreign)]), "{foreign}");
        }
        let twice = [("origin", "http://localhost:7717"), ("origin", "http://evil.test")];
        assert!(!admit(&twice));
    }
}
