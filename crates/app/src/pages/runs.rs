//! The list of runs: the first page. What needs a person, what ran lately, and every run.

use askama::Template;

use super::events::{Choice, asked, choices};
use super::frame::{Frame, Place};
use super::{Visit, html, timeline};
use crate::api::query::Query;
use crate::api::runs;
use crate::api::server::Answer;
use crate::api::wire::RunPage;
use crate::view::count;
use crate::view::payload::spelled;
use crate::view::run::line::{RunLine, source_name};
use domain::delivery::{CORE_SOURCE, MANUAL_SOURCE};

/// What narrows the page, and where its list begins.
pub(super) const QUERY: [&str; 6] = ["cursor", "q", "scope", "state", "trigger_source", "span"];
/// Parameters that narrow the list.
const NARROWING: [&str; 4] = ["q", "scope", "state", "trigger_source"];
/// Where a run may be.
const STATES: [&str; 8] =
    ["launching", "running", "parked", "completed", "handoff", "waiting", "failed", "cancelled"];
/// The most choices of a list; more of them are typed.
const CHOICES_MAX: usize = 60;

#[derive(Debug, Template)]
#[template(path = "runs.html")]
struct Runs {
    frame: Frame,
    rows: Vec<RunLine>,
    filter: Filter,
    timeline: timeline::Card,
    /// `50 runs, and older ones`.
    counted: String,
    /// How many were looked at, when there are older ones that were not.
    searched: Option<String>,
    /// Whether any row says what it cost.
    has_cost: bool,
    older: Option<String>,
}

/// What the list is narrowed to.
#[derive(Debug)]
struct Filter {
    text: String,
    scope: String,
    scopes: Vec<Pick>,
    sources: Vec<Pick>,
    states: Vec<Choice>,
    span: String,
    is_narrow: bool,
    is_older: bool,
    /// The query from the newest one on.
    newest: String,
    /// The query without what narrows it.
    whole: String,
}

/// A choice that the configuration brought.
#[derive(Debug)]
struct Pick {
    value: String,
    name: String,
    is_chosen: bool,
}

/// Lists runs: those that have not ended first, then newest first.
pub(super) async fn list(visit: &Visit) -> Answer {
    let query = &visit.asked.query;
    let mut wanted: Vec<(&str, &str)> = vec![("order", "active")];
    let kept = QUERY.iter().filter(|name| **name != "span");
    wanted.extend(kept.filter_map(|name| Some((*name, query.text(name)?))));
    let page = runs::find(&visit.daemon, &Query::of(&wanted)).await?;
    let timeline = timeline::read(visit).await?;
    let filter = Filter::of(visit);
    let rows: Vec<RunLine> = page.items.iter().map(|run| RunLine::new(run, &visit.reader.clock)).collect();
    html::page(&Runs {
        frame: Frame::read(visit, Place::Runs).await?,
        counted: counted(&page),
        searched: page.searched.map(thousands),
        has_cost: rows.iter().any(|row| row.cost.is_some()),
        older: page.next.as_deref().map(|cursor| asked(visit, &QUERY, Some(cursor))),
        rows,
        filter,
        timeline,
    })
}

/// How many there are on the page, and whether those are all.
fn counted(page: &RunPage) -> String {
    let number = count(i64::try_from(page.items.len()).unwrap_or(i64::MAX), "run", "runs");
    match (page.searched, &page.next) {
        (Some(searched), _) => format!("{number} among {}", thousands(searched)),
        (None, Some(_next)) => format!("{number}, and older ones"),
        (None, None) => number,
    }
}

/// A number with a comma before each three digits.
fn thousands(number: u32) -> String {
    let digits = number.to_string();
    let grouped: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|three| std::str::from_utf8(three).expect("digits are ASCII"))
        .collect();
    grouped.join(",")
}

impl Filter {
    fn of(visit: &Visit) -> Self {
        let query = &visit.asked.query;
        let text = |name: &str| query.text(name).unwrap_or_default().to_owned();
        let scope = query.text("scope");
        let active = visit.daemon.runtime().generations().active();
        let scopes = active.scopes.keys().map(|name| (name.to_string(), name.to_string())).collect();
        let mut sources: Vec<(String, String)> =
            [MANUAL_SOURCE, CORE_SOURCE].iter().map(|name| (source_name(name), (*name).to_owned())).collect();
        let table = visit.daemon.ingress();
        sources.extend(table.iter().map(|(_path, receiver)| {
            let namespace = receiver.prepared.namespace().to_string();
            (namespace.clone(), namespace)
        }));
        Self {
            text: text("q"),
            scope: text("scope"),
            scopes: picks(scopes, scope),
            sources: picks(sources, query.text("trigger_source")),
            states: choices(&STATES, query.text("state")),
            span: text("span"),
            is_narrow: NARROWING.iter().any(|name| query.text(name).is_some()),
            is_older: query.text("cursor").is_some(),
            newest: asked(visit, &QUERY, None),
            whole: asked(visit, &["span"], None),
        }
    }
}

/// Choices by their names and values. None when there are too many to choose from; one that is chosen and not
/// among them, such as of an older configuration, is added.
fn picks(mut known: Vec<(String, String)>, chosen: Option<&str>) -> Vec<Pick> {
    if known.len() > CHOICES_MAX {
        return Vec::new();
    }
    known.dedup();
    if let Some(chosen) = chosen.filter(|chosen| known.iter().all(|(_name, value)| value != chosen)) {
        known.push((spelled(chosen), chosen.to_owned()));
    }
    let pick = |(name, value): (String, String)| {
        let is_chosen = chosen == Some(value.as_str());
        Pick { value, name, is_chosen }
    };
    known.into_iter().map(pick).collect()
}

#[cfg(test)]
mod tests {
    use super::{counted, picks, thousands};
    use crate::api::wire::RunPage;

    #[test]
    fn a_count_says_whether_it_is_all() {
        let page = |next: Option<&str>, searched| RunPage {
            items: Vec::new(),
            next: next.map(str::to_owned),
            searched,
        };
        assert_eq!(counted(&page(None, None)), "0 runs");
        assert_eq!(counted(&page(Some("r1"), None)), "0 runs, and older ones");
        assert_eq!(counted(&page(Some("r1"), Some(10_000))), "0 runs among 10,000");
        assert_eq!((thousands(999), thousands(1_234_567)), ("999".to_owned(), "1,234,567".to_owned()));
    }

    #[test]
    fn what_is_chosen_can_be_chosen_again() {
        let known = |number: usize| (0..number).map(|one| (format!("s{one}"), format!("s{one}"))).collect();
        let chosen = |picks: &[super::Pick]| {
            picks.iter().filter(|pick| pick.is_chosen).map(|pick| pick.value.clone()).collect::<Vec<_>>()
        };
        assert_eq!(chosen(&picks(known(3), Some("s1"))), ["s1"]);
        assert_eq!(chosen(&picks(known(3), Some("gone"))), ["gone"]);
        assert!(picks(known(61), Some("s1")).is_empty());
    }
}
