//! The list of Works.

use askama::Template;

use super::Visit;
use super::events::{Choice, asked, choices};
use super::frame::{Frame, Place};
use super::html;
use crate::api::server::Answer;
use crate::api::wire::WorkBody;
use crate::api::work;
use crate::view::clip;
use crate::view::clock::Moment;
use crate::view::look::{self, Look};
use crate::view::payload::{brief, spelled};
use crate::view::said::{self, Part};
use crate::view::work::WorkRow;

/// What narrows the list, and where its page begins.
pub(super) const QUERY: [&str; 7] =
    ["cursor", "key", "key_source", "key_external_id", "scope", "kind", "state"];
/// Letters of what moves a Work next that a row has room for; its own page has the whole.
const MOVER_LETTERS: usize = 240;
/// Where a Work may be.
const STATES: [&str; 6] = ["ready", "running", "waiting", "completed", "failed", "cancelled"];

#[derive(Debug, Template)]
#[template(path = "works.html")]
struct Works {
    frame: Frame,
    rows: Vec<Row>,
    filter: Filter,
    /// The query of the next page.
    older: Option<String>,
}

/// A line of the list.
#[derive(Debug)]
struct Row {
    work: WorkRow,
    /// Its keys; its id when it has none.
    name: String,
    /// What moves it next.
    mover: Vec<Part>,
    created: Moment,
    last: Option<Last>,
}

/// Its newest run.
#[derive(Debug)]
struct Last {
    run: String,
    look: Look,
    at: Moment,
}

/// What the list is narrowed to.
#[derive(Debug)]
struct Filter {
    key: String,
    scope: String,
    kind: String,
    states: Vec<Choice>,
    is_narrow: bool,
    is_older: bool,
    /// The query from the newest one on.
    newest: String,
}

/// Lists Works, newest first.
pub(super) async fn list(visit: &Visit) -> Answer {
    let page = work::find(&visit.daemon, &visit.asked.query).await?;
    let older = page.next.as_deref().map(|cursor| asked(visit, &QUERY, Some(cursor)));
    html::page(&Works {
        frame: Frame::read(visit, Place::Work).await?,
        rows: page.items.iter().map(|work| Row::new(work, visit)).collect(),
        filter: Filter::of(visit),
        older,
    })
}

impl Row {
    fn new(work: &WorkBody, visit: &Visit) -> Self {
        let clock = &visit.reader.clock;
        let row = WorkRow::new(work, clock.now());
        let last = work.last_run.as_ref().map(|last| Last {
            run: last.run.clone(),
            look: look::state(&last.state),
            at: clock.moment(last.ended_at.as_ref().unwrap_or(&last.claimed_at)),
        });
        let name = if row.keys.is_empty() { row.id.clone() } else { brief(&row.keys) };
        let mover = said::parts(&clip::end(&spelled(&row.mover), MOVER_LETTERS), clock);
        Self { work: row, name, mover, created: clock.moment(&work.created_at), last }
    }
}

impl Filter {
    fn of(visit: &Visit) -> Self {
        let query = &visit.asked.query;
        let text = |name: &str| query.text(name).unwrap_or_default().to_owned();
        Self {
            key: query.key_text(),
            scope: text("scope"),
            kind: text("kind"),
            states: choices(&STATES, query.text("state")),
            is_narrow: QUERY.iter().any(|name| *name != "cursor" && query.text(name).is_some()),
            is_older: query.text("cursor").is_some(),
            newest: asked(visit, &QUERY, None),
        }
    }
}
