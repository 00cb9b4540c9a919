//! The timeline on the first page.

use std::time::Duration;

use domain::time::Timestamp;

use super::Visit;
use super::events::query;
use super::runs::QUERY;
use crate::api::failure::Failure;
use crate::api::timeline::{self, Span};
use crate::api::wire::TimelineBody;
use crate::view::timeline::Timeline;

const HOUR: Duration = Duration::from_hours(1);
/// Rows that are drawn.
const ROWS_MAX: usize = 8;

/// The card.
#[derive(Debug)]
pub(super) struct Card {
    pub(super) title: &'static str,
    pub(super) spans: Vec<Choice>,
    pub(super) drawn: Timeline,
}

/// A span that can be chosen.
#[derive(Debug)]
pub(super) struct Choice {
    pub(super) name: &'static str,
    /// The query of the page with it.
    pub(super) query: String,
    pub(super) is_chosen: bool,
}

/// Reads what ran within the span that a visit asks for.
///
/// # Errors
/// `bad_request` when there is no such span, and what reading the store answers.
pub(super) async fn read(visit: &Visit) -> Result<Card, Failure> {
    let mut span = timeline::span(&visit.asked.query)?;
    let mut body = timeline::find(&visit.daemon, span, ROWS_MAX).await?;
    if visit.asked.query.text("span").is_none() && is_recent(&body, visit.reader.clock.now()) {
        // What a newcomer sees of a day is one full hour of it.
        let hour = timeline::find(&visit.daemon, Span::Hour, ROWS_MAX).await?;
        if !body.cut && works(&hour) == works(&body) {
            (span, body) = (Span::Hour, hour);
        }
    }
    let spans = Span::ALL.into_iter().map(|other| Choice {
        name: short(other),
        query: with_span(visit, other),
        is_chosen: other == span,
    });
    Ok(Card {
        title: long(span),
        spans: spans.collect(),
        drawn: Timeline::new(&body, &visit.reader.clock, ROWS_MAX),
    })
}

/// How many Works ran.
const fn works(body: &TimelineBody) -> usize {
    body.rows.len() + body.more
}

/// Whether everything that is shown began within the last hour.
fn is_recent(body: &TimelineBody, now: Timestamp) -> bool {
    let mut runs = body.rows.iter().flat_map(|row| &row.runs);
    let recent = |at: &str| Timestamp::parse(at).is_ok_and(|at| now.since(at) < HOUR);
    body.downtimes.is_empty() && runs.all(|run| recent(&run.started_at))
}

/// The same list with another span.
fn with_span(visit: &Visit, span: Span) -> String {
    let kept = QUERY.iter().filter(|name| **name != "span");
    let kept = kept.filter_map(|name| Some((*name, visit.asked.query.text(name)?)));
    query(&kept.chain([("span", span.as_str())]).collect::<Vec<_>>())
}

const fn short(span: Span) -> &'static str {
    match span {
        Span::Hour => "1 h",
        Span::Hours => "6 h",
        Span::Day => "24 h",
        Span::Week => "7 d",
    }
}

const fn long(span: Span) -> &'static str {
    match span {
        Span::Hour => "Past hour",
        Span::Hours => "Past 6 hours",
        Span::Day => "Past 24 hours",
        Span::Week => "Past 7 days",
    }
}
