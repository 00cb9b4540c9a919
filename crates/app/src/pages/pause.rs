//! Pausing and resuming a scope: what it does, said before it is done.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::Visit;
use super::confirm::{self, Crumbs, Question};
use super::form::Form;
use super::frame::Place;
use super::html;
use crate::api::server::Answer;
use crate::api::{pause, scopes};
use crate::view::effect;
use crate::view::payload::quoted;

/// Says what pausing the scope of the path would do.
pub(super) async fn confirm_pause(visit: &Visit) -> Answer {
    let scope = scopes::show(&visit.daemon, visit.asked.id()).await?.name;
    let question = Question {
        effects: effect::of_pausing(&scope),
        title: format!("Pause scope {scope}?"),
        button: "Pause",
        keep: "Let it start runs",
        ..question(&scope, "pause", "Pause")
    };
    confirm::ask(visit, question).await
}

/// Says what resuming the scope of the path would do.
pub(super) async fn confirm_resume(visit: &Visit) -> Answer {
    // One that has left the configuration can be resumed, too.
    let scope = visit.asked.id().to_owned();
    let question = Question {
        effects: effect::of_resuming(&scope),
        title: format!("Resume scope {scope}?"),
        button: "Resume",
        keep: "Keep it paused",
        ..question(&scope, "resume", "Resume")
    };
    confirm::ask(visit, question).await
}

fn question(scope: &str, verb: &'static str, here: &'static str) -> Question {
    let word = quoted(scope).unwrap_or_else(|| "SCOPE".to_owned());
    Question {
        place: Place::Config,
        crumbs: Crumbs { list: ("/config", "Config"), subject: (path(scope), scope.to_owned()), here },
        title: String::new(),
        effects: Vec::new(),
        command: format!("open-conduit scope {verb} {word}"),
        action: action(scope, verb),
        delivery_id: None,
        button: "",
        is_danger: false,
        keep: "",
    }
}

/// Lets the scope of the path start nothing more.
pub(super) async fn pause(visit: &Visit) -> Answer {
    Form::read(visit, &[])?;
    let paused = pause::stop_starts(&visit.daemon, visit.asked.id()).await?;
    Ok(html::see(&path(&paused.scope)))
}

/// Lets the scope of the path start again.
pub(super) async fn resume(visit: &Visit) -> Answer {
    Form::read(visit, &[])?;
    let resumed = pause::let_start(&visit.daemon, visit.asked.id()).await?;
    Ok(html::see(&path(&resumed.scope)))
}

/// The page of a scope.
pub(super) fn path(name: &str) -> String {
    format!("/config?scope={}", encoded(name))
}

/// Where a scope is paused, or resumed.
pub(super) fn action(name: &str, verb: &str) -> String {
    format!("/scopes/{}/{verb}", encoded(name))
}

fn encoded(name: &str) -> String {
    utf8_percent_encode(name, NON_ALPHANUMERIC).to_string()
}
