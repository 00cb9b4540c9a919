//! Logging in and out.
//!
//! The link that the command line prints shows a page with a button; only the button uses the code up, so that a
//! preview of the link does not. Nothing on these pages says how the daemon is: they are open to everyone who gets
//! to its address.

use askama::Template;
use hyper::Method;
use hyper::header::{HeaderValue, RETRY_AFTER, SET_COOKIE, USER_AGENT};
use hyper::http::request::Parts;

use super::Visit;
use super::asset::{self, Paths};
use super::form::Form;
use super::html;
use crate::api::failure::Failure;
use crate::api::posture::{Place, TurnedAway};
use crate::api::server::Answer;
use crate::api::sessions;
use crate::auth::Authority;
use crate::auth::code::CodeRefusal;
use crate::auth::cookie::{self, Shown, Transport};
use crate::auth::label::label;
use crate::auth::session::Revoked;
use crate::error_code::ErrorCode;
use domain::session::LIFETIME_MAX;

/// The most bytes of a path that is gone back to.
const NEXT_BYTES_MAX: usize = 1024;

#[derive(Template)]
#[template(path = "login.html")]
struct Login<'a> {
    assets: Paths,
    theme: Option<&'static str>,
    /// A code that came with the link.
    code: Option<&'a str>,
    next: Option<&'a str>,
    wrong: Option<Wrong>,
}

/// Why the last code opened nothing.
#[derive(Debug, Clone, Copy)]
struct Wrong {
    sentence: &'static str,
    code: ErrorCode,
}

#[derive(Template)]
#[template(path = "follow.html")]
struct Follow<'a> {
    assets: Paths,
    path: &'a str,
}

/// Shows the button for the code of a link, else a field for one.
pub(super) fn show(visit: &Visit) -> Answer {
    let query = &visit.asked.query;
    html::page(&Login {
        assets: asset::paths(),
        theme: visit.reader.theme,
        code: query.text("code"),
        next: query.text("next").and_then(inside),
        wrong: None,
    })
}

/// Opens a session for a code.
pub(super) async fn log_in(visit: &Visit) -> Answer {
    let form = Form::read(visit, &["code", "next"])?;
    let (daemon, next) = (&visit.daemon, form.text("next").and_then(inside));
    if let Err(refusal) = daemon.codes().redeem(form.text("code").unwrap_or_default(), daemon.store().now()) {
        return refused(visit, refusal, next);
    }
    let user_agent = visit.asked.parts.headers.get(USER_AGENT).and_then(|value| value.to_str().ok());
    let opened = daemon.sessions().open(daemon.store(), label(user_agent.unwrap_or_default())).await;
    let value = opened.map_err(|error| sessions::failure(&error))?;
    tracing::info!("a browser logged in");
    end_shown(visit).await?;
    let mut response = html::see(next.unwrap_or("/"));
    response.headers_mut().insert(SET_COOKIE, cookie::set(&value, transport(visit), LIFETIME_MAX));
    Ok(response)
}

/// The session that the browser had before is not left behind.
async fn end_shown(visit: &Visit) -> Result<(), Failure> {
    let daemon = &visit.daemon;
    let Shown::One(value) = cookie::shown(&visit.asked.parts.headers) else { return Ok(()) };
    if let Some(before) = daemon.sessions().admit(value, daemon.store().now()) {
        daemon.sessions().revoke(daemon.store(), Revoked::One(before.id)).await?;
    }
    Ok(())
}

fn refused(visit: &Visit, refusal: CodeRefusal, next: Option<&str>) -> Answer {
    let wrong = match refusal {
        CodeRefusal::Wrong => Wrong {
            sentence: "That code is wrong, was used or has expired. Run the command again for a new one.",
            code: ErrorCode::WrongCode,
        },
        CodeRefusal::TooMany => Wrong {
            sentence: "Too many codes were wrong. Wait a minute and try again; the code is still good.",
            code: ErrorCode::TooManyTries,
        },
    };
    tracing::info!(code = %wrong.code, "a login was refused");
    let page =
        Login { assets: asset::paths(), theme: visit.reader.theme, code: None, next, wrong: Some(wrong) };
    let mut response = html::with_status(wrong.code.status(), &page)?;
    if let Some(seconds) = wrong.code.retry_after() {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    Ok(response)
}

/// Ends the session of the browser that asks.
pub(super) async fn log_out(visit: &Visit) -> Answer {
    let daemon = &visit.daemon;
    match visit.asked.authority {
        Authority::Session(id) => {
            daemon.sessions().revoke(daemon.store(), Revoked::One(id)).await?;
            tracing::info!("a browser logged out");
        }
        Authority::Operator | Authority::Nobody => {}
    }
    let mut response = html::see("/login");
    response.headers_mut().insert(SET_COOKIE, cookie::clear(transport(visit)));
    Ok(response)
}

pub(super) fn transport(visit: &Visit) -> Transport {
    match visit.asked.place {
        Place::Page(transport) => transport,
        Place::Socket | Place::Machine => Transport::Plain,
    }
}

/// What is answered instead of a page that is not shown.
///
/// # Errors
/// The reason, when there is one to tell.
pub(crate) fn turn_away(parts: &Parts, why: TurnedAway) -> Answer {
    let asked = parts.uri.path_and_query().and_then(|path| inside(path.as_str())).unwrap_or("/");
    match why {
        TurnedAway::Refused(failure) => Err(failure),
        TurnedAway::LoggedOut if asked == "/" || !matches!(parts.method, Method::GET | Method::HEAD) => {
            Ok(html::see("/login"))
        }
        TurnedAway::LoggedOut => {
            let next = percent_encoding::utf8_percent_encode(asked, percent_encoding::NON_ALPHANUMERIC);
            Ok(html::see(&format!("/login?next={next}")))
        }
        TurnedAway::FromElsewhere => html::page(&Follow { assets: asset::paths(), path: asked }),
    }
}

/// A path of this daemon that a browser takes for nothing else: it reads `//` as another server, `\` as `/`, and
/// drops line ends and tabs before it looks.
fn inside(path: &str) -> Option<&str> {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'\\' | b'"' | b'<' | b'>' | b'#');
    let is_inside = path.len() <= NEXT_BYTES_MAX
        && path.starts_with('/')
        && !path.starts_with("//")
        && path.bytes().all(is_plain);
    is_inside.then_some(path)
}

#[cfg(test)]
mod tests {
    use super::inside;

    #[test]
    fn inside_takes_paths_and_nothing_that_leads_elsewhere() {
        for path in ["/", "/runs/run_1?state=failed&q=a%20b", "/a//b", "/login"] {
            assert_eq!(inside(path), Some(path));
        }
        for outside in [
            "",
            "runs",
            "//evil.test",
            "///evil.test",
            "/\\evil.test",
            "\\\\evil.test",
            "/\t/evil.test",
            "/\n/evil.test",
            "https://evil.test/",
            "https:evil.test",
            "javascript:alert(1)",
            " /runs",
            "/a b",
            "/a\r\nSet-Cookie: x=y",
            "/é",
            "/\"onload=",
        ] {
            assert_eq!(inside(outside), None, "{outside:?}");
        }
        assert_eq!(inside(&format!("/{}", "x".repeat(1024))), None);
    }
}
