//! The question before an action: what it does, and the same as a command.
//!
//! Every action that an operator takes is asked for on a page of its own, which works without scripts.

use askama::Template;

use super::Visit;
use super::frame::{Frame, Place};
use super::html;
use crate::api::server::Answer;
use crate::api::wire::WorkBody;
use crate::view;
use crate::view::effect::Effect;
use crate::view::payload::spelled;
use crate::view::said::{self, Part};

/// The field that makes a second press of a button the first one's.
pub(super) const DELIVERY: &str = "delivery_id";

/// An effect, with the parts of its sentence.
pub(super) type Told = (Effect, Vec<Part>);

/// What is asked.
#[derive(Debug)]
pub(super) struct Question {
    /// Where in the navigation.
    pub(super) place: Place,
    /// The list that its subject stands in, the subject, and the action.
    pub(super) crumbs: Crumbs,
    /// The question.
    pub(super) title: String,
    /// What the action does.
    pub(super) effects: Vec<Effect>,
    /// The command that does the same.
    pub(super) command: String,
    /// Where the button sends its form.
    pub(super) action: String,
    /// The name of the request, where it is one that may be doubled.
    pub(super) delivery_id: Option<String>,
    /// What the button says.
    pub(super) button: &'static str,
    /// Whether it ends something.
    pub(super) is_danger: bool,
    /// What the other one says, which leaves things as they are.
    pub(super) keep: &'static str,
}

/// The way back.
#[derive(Debug)]
pub(super) struct Crumbs {
    pub(super) list: (&'static str, &'static str),
    /// The path of the subject, and what it is called.
    pub(super) subject: (String, String),
    pub(super) here: &'static str,
}

#[derive(Debug, Template)]
#[template(path = "confirm.html")]
struct Confirm {
    frame: Frame,
    crumbs: Crumbs,
    title: String,
    effects: Vec<Told>,
    command: String,
    action: String,
    delivery_id: Option<String>,
    button: &'static str,
    is_danger: bool,
    keep: &'static str,
}

/// Asks it.
pub(super) async fn ask(visit: &Visit, question: Question) -> Answer {
    let Question { place, crumbs, title, effects, command, action, delivery_id, button, is_danger, keep } =
        question;
    html::page(&Confirm {
        frame: Frame::read(visit, place).await?,
        effects: told(visit, effects),
        crumbs,
        title,
        command,
        action,
        delivery_id,
        button,
        is_danger,
        keep,
    })
}

/// Effects in the reader's time.
pub(super) fn told(visit: &Visit, effects: Vec<Effect>) -> Vec<Told> {
    let told = |effect: Effect| {
        let parts = said::parts(&spelled(&effect.sentence), &visit.reader.clock);
        (effect, parts)
    };
    effects.into_iter().map(told).collect()
}

/// What a Work is called: its first key, else its id.
pub(super) fn name(work: &WorkBody) -> String {
    work.keys.first().map_or_else(|| work.id.clone(), |key| spelled(&view::key(key)))
}

impl Crumbs {
    /// The way back to a Work.
    pub(super) fn of_work(work: &WorkBody, here: &'static str) -> Self {
        Self { list: ("/work", "Work"), subject: (format!("/work/{}", work.id), name(work)), here }
    }
}
