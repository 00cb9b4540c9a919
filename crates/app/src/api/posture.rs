//! Who is let in: decided from a request's head alone, before anything of its body is read.
//!
//! The daemon listens on the machine's own addresses, where every page of every browser tab can knock. A page
//! can send requests, but it can neither forge `Host`, `Origin` and `Sec-Fetch-Site` nor read the token.
//!
//! A request of the interface passes [`admit_address`], which says by which name the daemon was addressed, and
//! [`admit_authority`], which says who asks. A session counts only under the page's own name.
//!
//! A page passes [`admit_address`] and [`admit_page`], which is [`admit_authority`] and what a browser needs
//! besides: who is not logged in is sent to the login page, and a link from another site is followed once more
//! from here. What comes out is in `Asked::authority`; a page that changes something has nothing left to check.
//! A page that stays open (a stream) asks [`crate::auth::session::Sessions::ended`] when to end.

use std::net::SocketAddr;
use std::sync::Arc;

use domain::time::Timestamp;
use hyper::Method;
use hyper::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use hyper::http::request::Parts;

use super::failure::Failure;
use super::sessions;
use crate::auth::cookie::{self, Shown, Transport};
use crate::auth::{Authority, Tokens};
use crate::daemon::Daemon;
use crate::error_code::ErrorCode;

/// Where a browser says who sent a request: a page of ours, of a neighbor, of another site, or a person.
const FETCH_SITE: &str = "sec-fetch-site";

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

/// By which of its names the daemon was addressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// The socket in the home. No browser gets there.
    Socket,
    /// A name of the machine, such as `localhost`, which whatever else listens on the machine shares. Only a
    /// token counts.
    Machine,
    /// The page's own name. A session counts, too.
    Page(Transport),
}

/// Names under which a listener may be addressed.
#[derive(Debug, Clone)]
pub(crate) struct Hosts {
    /// In lower case, each with its port.
    authorities: Vec<String>,
    /// In lower case, reached through a proxy, so with any port or none.
    public: Vec<String>,
    /// The page's own name with its port, where pages are served.
    page: Option<String>,
}

impl Hosts {
    /// The local names of a listener at `address`, and names that a proxy is reached under.
    pub(crate) fn new(address: SocketAddr, public: Vec<String>) -> Self {
        let port = address.port();
        let mut authorities: Vec<String> =
            ["localhost", "127.0.0.1", "[::1]"].iter().map(|name| format!("{name}:{port}")).collect();
        authorities.push(address.to_string());
        Self { authorities, public, page: None }
    }

    /// As [`Self::new`], of a listener that serves pages under a name of their own; and where a browser finds
    /// them.
    pub(crate) fn with_page(address: SocketAddr, public: Vec<String>, name: &str) -> (Self, String) {
        let page = format!("{name}:{}", address.port());
        let origin = match public.first() {
            Some(public) => format!("https://{public}"),
            None => format!("http://{page}"),
        };
        (Self { page: Some(page), ..Self::new(address, public) }, origin)
    }

    /// Which name of the listener a `Host` is.
    fn place(&self, host: &str) -> Option<Place> {
        let host = host.to_ascii_lowercase();
        if self.authorities.contains(&host) {
            return Some(Place::Machine);
        }
        if self.page.as_ref() == Some(&host) {
            return Some(Place::Page(Transport::Plain));
        }
        let (name, port) = host.rsplit_once(':').unwrap_or((&host, "0"));
        let is_public = port.bytes().all(|digit| digit.is_ascii_digit())
            && self.public.iter().any(|public| public == name);
        is_public.then_some(Place::Page(Transport::Tls))
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

/// Whether a request is addressed to this daemon, by its own user, and by which name.
///
/// # Errors
/// `foreign_user` and `foreign_host`.
pub(crate) fn admit_address(parts: &Parts, peer: Peer, hosts: Option<&Hosts>) -> Result<Place, Failure> {
    let host = host(parts);
    let place = match peer {
        Peer::Unix { same_user: false } => {
            let detail = "the socket is for the daemon's own user; run the command as that user";
            return Err(Failure::new(ErrorCode::ForeignUser, detail).closing());
        }
        // A browser cannot reach it; the name is only a matter of form.
        Peer::Unix { same_user: true } => host.filter(|host| *host == "localhost").map(|_host| Place::Socket),
        Peer::Tcp => host.and_then(|host| hosts.and_then(|hosts| hosts.place(host))),
    };
    place.ok_or_else(|| {
        let detail = "the request's Host is not a name of this daemon; use the address that `status` shows, or declare \
                      the proxy with `public_hosts` and `behind_proxy`";
        Failure::new(ErrorCode::ForeignHost, detail).closing()
    })
}

/// Who asks: whoever shows a token, else the browser that shows a session's cookie under the page's own name.
/// Where there is a token it decides, and a cookie does not save one that is not valid.
///
/// # Errors
/// `foreign_origin`, and `unauthorized`, the same whatever is wrong.
pub(crate) fn admit_authority(
    parts: &Parts,
    place: Place,
    daemon: &Arc<Daemon>,
    now: Timestamp,
) -> Result<Authority, Failure> {
    admit_origin(parts)?;
    if parts.headers.contains_key(AUTHORIZATION) {
        admit_token(&parts.headers, daemon.tokens(), now)?;
        return Ok(Authority::Operator);
    }
    let (transport, cookie) = match (place, cookie::shown(&parts.headers)) {
        (Place::Page(transport), Shown::One(cookie)) => (transport, cookie),
        (Place::Page(_), Shown::Nothing | Shown::Several) | (Place::Socket | Place::Machine, _) => {
            return Err(unauthorized());
        }
    };
    admit_own_page(parts, transport)?;
    let admitted = daemon.sessions().admit(cookie, now).ok_or_else(unauthorized)?;
    if admitted.is_due {
        sessions::note_seen(daemon, admitted.id);
    }
    Ok(Authority::Session(admitted.id))
}

/// Whether an unsafe request comes from a page of ours. A browser sends its cookies with whatever any page asks
/// for, and always says so, so what does not is refused as well.
///
/// # Errors
/// `foreign_origin`.
pub(crate) fn admit_own_page(parts: &Parts, transport: Transport) -> Result<(), Failure> {
    if parts.method.is_safe() {
        return Ok(());
    }
    let scheme = match transport {
        Transport::Plain => "http",
        Transport::Tls => "https",
    };
    let own = host(parts).map(|host| format!("{scheme}://{}", host.to_ascii_lowercase()));
    let mut origins = parts.headers.get_all(ORIGIN).iter();
    let (origin, second) = (origins.next(), origins.next());
    let origin_is_ours =
        second.is_none() && origin.zip(own).is_some_and(|(origin, own)| origin.as_bytes() == own.as_bytes());
    let site_is_ours = parts.headers.get_all(FETCH_SITE).iter().all(|site| site.as_bytes() == b"same-origin");
    if origin_is_ours && site_is_ours {
        return Ok(());
    }
    let detail = "only the daemon's own page may ask for this with its session; programs send a token";
    Err(Failure::new(ErrorCode::ForeignOrigin, detail).closing())
}

/// Who may see a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    /// Everyone: it holds no data.
    Everyone,
    /// Who is logged in.
    LoggedIn,
}

/// Why a page is not shown.
#[derive(Debug)]
pub(crate) enum TurnedAway {
    /// A reason that can be said.
    Refused(Failure),
    /// Nobody is logged in in this browser.
    LoggedOut,
    /// A link on another site was followed. The browser keeps the cookie back until the page is asked for from
    /// here.
    FromElsewhere,
}

impl From<Failure> for TurnedAway {
    fn from(failure: Failure) -> Self {
        Self::Refused(failure)
    }
}

/// Who asks for a page. Pages are served only under their own name, since only there the cookie is safe.
///
/// # Errors
/// [`TurnedAway`].
pub(crate) fn admit_page(
    parts: &Parts,
    place: Place,
    audience: Audience,
    daemon: &Arc<Daemon>,
) -> Result<Authority, TurnedAway> {
    let transport = match place {
        Place::Page(transport) => transport,
        Place::Socket | Place::Machine => {
            let detail = "pages have an address of their own; `open-conduit open` shows it";
            return Err(Failure::new(ErrorCode::NotThePage, detail).closing().into());
        }
    };
    if is_followed_link(parts) {
        return Err(TurnedAway::FromElsewhere);
    }
    match audience {
        Audience::Everyone => {
            admit_origin(parts)?;
            admit_own_page(parts, transport)?;
            Ok(Authority::Nobody)
        }
        Audience::LoggedIn => match admit_authority(parts, place, daemon, daemon.store().now()) {
            Ok(authority) => Ok(authority),
            Err(failure) if failure.code() == ErrorCode::Unauthorized && parts.method.is_safe() => {
                Err(TurnedAway::LoggedOut)
            }
            Err(failure) => Err(failure.into()),
        },
    }
}

/// Whether a browser was sent here by a page of another site, to show the answer in a tab. Whatever else another
/// site asks for is refused.
fn is_followed_link(parts: &Parts) -> bool {
    let says = |name: &str, words: &[&[u8]]| {
        parts.headers.get(name).is_some_and(|value| words.contains(&value.as_bytes()))
    };
    matches!(parts.method, Method::GET | Method::HEAD)
        && says(FETCH_SITE, &[b"cross-site", b"same-site"])
        && says("sec-fetch-mode", &[b"navigate"])
        && says("sec-fetch-dest", &[b"document"])
}

/// Whether a request may be one of a page of another site. A program sends neither header; a browser always
/// sends one where it matters, so whatever is there must be right, token or not.
///
/// # Errors
/// `foreign_origin`.
pub(crate) fn admit_origin(parts: &Parts) -> Result<(), Failure> {
    let site_is_ours = parts
        .headers
        .get_all(FETCH_SITE)
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
        (Some(_) | None, _) => Err(unauthorized()),
    }
}

fn unauthorized() -> Failure {
    let detail = "send `Authorization: Bearer` with the token that is in the file `token` of the home; a browser \
                  logs in with the link of `open-conduit open`";
    Failure::new(ErrorCode::Unauthorized, detail).closing()
}

/// Headers of every answer: a browser must neither guess what it is, nor frame it, nor load it into another
/// site's page, nor keep it unless it may.
pub(crate) fn harden(headers: &mut HeaderMap) {
    const HARDENED: [(HeaderName, &str); 6] = [
        (
            CONTENT_SECURITY_POLICY,
            "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'; object-src 'none'",
        ),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        // With `no-referrer` a browser sends `Origin: null` with a form of our own page.
        (REFERRER_POLICY, "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ];
    for (name, value) in HARDENED {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
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
            assert!(hosts().place(own).is_some(), "{own}");
        }
        for public in ["hooks.example.com", "hooks.example.com:443", "HOOKS.example.com"] {
            assert!(hosts().place(public).is_some(), "{public}");
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
            assert!(hosts().place(foreign).is_none(), "{foreign}");
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
