//! What belongs to the one who looks: the browsers that are logged in, the theme, the time zone, and where things
//! are.

use askama::Template;
use hyper::header::{HeaderValue, SET_COOKIE};

use super::Visit;
use super::form::Form;
use super::frame::{Frame, Place};
use super::html;
use super::login::transport;
use super::reader::{self, THEME};
use crate::api::failure::Failure;
use crate::api::server::Answer;
use crate::api::wire::SessionBody;
use crate::api::{doctor, sessions};
use crate::auth::Authority;
use crate::auth::cookie::Transport;
use crate::view::clock::{Clock, Moment};

/// How long a theme is kept: one year, in seconds.
const THEME_SECONDS: u32 = 365 * 24 * 3600;

#[derive(Debug, Template)]
#[template(path = "settings.html")]
struct Settings {
    frame: Frame,
    sessions: Vec<Session>,
    /// Whether the one who looks is a session, and so can log out.
    is_session: bool,
    /// Whether there is another session than the one who looks.
    has_others: bool,
    themes: [Theme; 3],
    /// The same moment as the reader and the daemon say it.
    now: Moment,
    version: String,
    home: String,
    api: String,
}

/// A browser that is logged in.
#[derive(Debug)]
struct Session {
    id: String,
    label: String,
    is_current: bool,
    created: Moment,
    seen: Moment,
    ends: Moment,
}

/// A theme that can be chosen.
#[derive(Debug)]
struct Theme {
    value: &'static str,
    title: &'static str,
    is_chosen: bool,
}

/// Shows the settings.
pub(super) async fn show(visit: &Visit) -> Answer {
    let clock = &visit.reader.clock;
    let page = sessions::live(&visit.daemon, visit.asked.authority).await?;
    let status = doctor::glance(&visit.daemon).await?;
    let theme = |value: &'static str, title| Theme {
        value,
        title,
        is_chosen: visit.reader.theme.unwrap_or("system") == value,
    };
    html::page(&Settings {
        frame: Frame::read(visit, Place::Settings).await?,
        is_session: matches!(visit.asked.authority, Authority::Session(_)),
        has_others: page.items.iter().any(|session| !session.current),
        sessions: page.items.iter().map(|session| Session::new(session, clock)).collect(),
        themes: [theme("system", "As the system"), theme("light", "Light"), theme("dark", "Dark")],
        now: clock.moment(&status.now),
        version: status.version,
        home: status.home,
        api: status.api_address,
    })
}

impl Session {
    fn new(session: &SessionBody, clock: &Clock) -> Self {
        Self {
            id: session.id.clone(),
            label: session.label.clone(),
            is_current: session.current,
            created: clock.moment(&session.created_at),
            seen: clock.moment(&session.last_seen_at),
            ends: clock.moment(&session.expires_at),
        }
    }
}

/// Keeps the theme that was chosen, in a cookie; the system's own needs none.
pub(super) fn choose_theme(visit: &Visit) -> Answer {
    let form = Form::read(visit, &["theme"])?;
    let (value, seconds) = match form.need("theme")? {
        "system" => ("", 0),
        other => match reader::theme(other) {
            Some(theme) => (theme, THEME_SECONDS),
            None => return Err(Failure::bad("`theme` is one of system, light and dark")),
        },
    };
    let secure = match transport(visit) {
        Transport::Plain => "",
        Transport::Tls => "; Secure",
    };
    let text = format!("{THEME}={value}; SameSite=Strict; Path=/; Max-Age={seconds}{secure}");
    let mut response = html::see("/settings");
    let cookie = HeaderValue::try_from(text).expect("letters, digits and what stands between them");
    response.headers_mut().insert(SET_COOKIE, cookie);
    Ok(response)
}

/// Ends the session of another browser.
pub(super) async fn revoke(visit: &Visit) -> Answer {
    Form::read(visit, &[])?;
    sessions::revoke_one(&visit.daemon, visit.asked.id()).await?;
    Ok(html::see("/settings"))
}

/// Ends every session but the one that asks.
pub(super) async fn revoke_others(visit: &Visit) -> Answer {
    Form::read(visit, &[])?;
    let page = sessions::live(&visit.daemon, visit.asked.authority).await?;
    for other in page.items.iter().filter(|session| !session.current) {
        match sessions::revoke_one(&visit.daemon, &other.id).await {
            Ok(_revoked) => {}
            // It ended by itself meanwhile.
            Err(failure) if failure.code() == crate::error_code::ErrorCode::NotFound => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(html::see("/settings"))
}
