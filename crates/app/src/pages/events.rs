//! The list of Events, by itself and beside one of them.

use askama::Template;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::Visit;
use super::frame::{Frame, Place};
use super::html;
use crate::api::events;
use crate::api::failure::Failure;
use crate::api::server::Answer;
use crate::api::wire::EventBody;
use crate::view;
use crate::view::clock::Moment;
use crate::view::event::EventRow;
use crate::view::look;
use crate::view::payload::brief;

/// What narrows the list, and where its page begins.
pub(super) const QUERY: [&str; 9] =
    ["cursor", "key", "key_source", "key_external_id", "scope", "source", "type", "outcome", "work"];
/// What may become of an Event.
const OUTCOMES: [&str; 5] = ["routed", "unmatched", "dropped", "terminal", "quarantined"];

#[derive(Debug, Template)]
#[template(path = "events.html")]
struct Events {
    frame: Frame,
    list: List,
}

/// A page of the list.
#[derive(Debug)]
pub(super) struct List {
    pub(super) rows: Vec<Row>,
    pub(super) filter: Filter,
    /// The query of the next page.
    pub(super) older: Option<String>,
}

/// A line of it.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) event: EventRow,
    /// Its source and key.
    pub(super) name: String,
    pub(super) at: Moment,
    pub(super) is_current: bool,
}

/// What the list is narrowed to.
#[derive(Debug, Default)]
pub(super) struct Filter {
    pub(super) key: String,
    pub(super) scope: String,
    pub(super) source: String,
    pub(super) event_type: String,
    pub(super) work: Option<String>,
    pub(super) outcomes: Vec<Choice>,
    /// Whether anything is left out.
    pub(super) is_narrow: bool,
    /// Whether newer Events are left out.
    pub(super) is_older: bool,
    /// The query as it was asked, to keep it in links; it begins with `?` unless it is empty.
    pub(super) query: String,
    /// The same from the newest one on.
    pub(super) newest: String,
}

/// A choice of a list.
#[derive(Debug)]
pub(super) struct Choice {
    pub(super) value: &'static str,
    pub(super) name: String,
    pub(super) is_chosen: bool,
}

/// Lists Events, newest first.
pub(super) async fn list(visit: &Visit) -> Answer {
    let list = List::read(visit, None).await?;
    html::page(&Events { frame: Frame::read(visit, Place::Events).await?, list })
}

impl List {
    /// Reads the page that a visit asks for, with one Event in it marked.
    ///
    /// # Errors
    /// As [`events::find`].
    pub(super) async fn read(visit: &Visit, current: Option<&str>) -> Result<Self, Failure> {
        let page = events::find(&visit.daemon, &visit.asked.query).await?;
        let clock = &visit.reader.clock;
        let filter = Filter::of(visit);
        let row = |event: &EventBody| Row {
            event: EventRow::new(event, clock.now()),
            name: name(event),
            at: clock.moment(&event.accepted_at),
            is_current: current == Some(event.id.as_str()),
        };
        let older = page.next.as_deref().map(|cursor| asked(visit, &QUERY, Some(cursor)));
        Ok(Self { rows: page.items.iter().map(row).collect(), filter, older })
    }

    /// Whether there is nothing in it.
    pub(super) const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Where the list goes on from here, to come back to.
    pub(super) fn path(&self) -> String {
        format!("/events{}", self.filter.query)
    }
}

fn name(event: &EventBody) -> String {
    let key = event.key.as_ref().map(|key| format!(" · {}", view::key(key))).unwrap_or_default();
    let source = event.replays.as_ref().map_or_else(|| event.source.clone(), |id| format!("replay of {id}"));
    brief(&format!("{source}{key}"))
}

impl Filter {
    fn of(visit: &Visit) -> Self {
        let query = &visit.asked.query;
        let text = |name: &str| query.text(name).unwrap_or_default().to_owned();
        Self {
            key: query.key_text(),
            scope: text("scope"),
            source: text("source"),
            event_type: text("type"),
            work: query.text("work").map(str::to_owned),
            outcomes: choices(&OUTCOMES, query.text("outcome")),
            is_narrow: QUERY.iter().any(|name| *name != "cursor" && query.text(name).is_some()),
            is_older: query.text("cursor").is_some(),
            query: asked(visit, &QUERY, query.text("cursor")),
            newest: asked(visit, &QUERY, None),
        }
    }
}

/// States to choose from, named as they are shown.
pub(super) fn choices(values: &[&'static str], chosen: Option<&str>) -> Vec<Choice> {
    let choice = |value: &&'static str| Choice {
        value,
        name: look::state(value).title(),
        is_chosen: chosen == Some(*value),
    };
    values.iter().map(choice).collect()
}

/// What was asked of a list, with another beginning, as a query for a link.
pub(super) fn asked(visit: &Visit, known: &[&str], cursor: Option<&str>) -> String {
    let kept = known.iter().filter(|name| **name != "cursor");
    let kept = kept.filter_map(|name| Some((*name, visit.asked.query.text(name)?)));
    query(&kept.chain(cursor.map(|cursor| ("cursor", cursor))).collect::<Vec<_>>())
}

/// A query for a link; it begins with `?` unless it is empty.
pub(super) fn query(parameters: &[(&str, &str)]) -> String {
    let pair =
        |(name, value): &(&str, &str)| format!("{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC));
    let pairs: Vec<String> = parameters.iter().map(pair).collect();
    if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
}
