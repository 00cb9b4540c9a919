//! Listing runs, and searching them within a bound.
//!
//! A filter that the store has an order for costs a page, however long the history is. Every other one is
//! answered from outlines of the newest runs, at most [`LOOKED_AT_MAX`] in one answer: its `next` goes on with
//! older ones, and `searched` says so.

use std::sync::Arc;

use domain::event::Event;
use domain::execution::{Execution, ExecutionState};
use domain::id::{EventId, ExecutionId, WorkId};
use domain::store::{ExecutionFilter, Outline, Snapshot, StoreError};
use domain::text::{SourceName, WorkKind};

use super::body;
use crate::api::failure::Failure;
use crate::api::query::{self, Cursor, Query};
use crate::api::resolve;
use crate::api::server::{Answer, Asked, Refused, json, read};
use crate::api::wire::RunPage;
use crate::daemon::Daemon;

/// The most runs that one search looks at.
pub(crate) const LOOKED_AT_MAX: u32 = 10_000;
/// Outlines that are in memory at a time.
const PART: u32 = 500;
/// The most bytes of what is searched for.
pub(crate) const QUERY_BYTES_MAX: usize = 200;
/// Runs, Works or Events that a shortened id in a search may mean.
const CANDIDATES: u32 = 10;

/// Lists runs, newest first.
pub(crate) async fn list(daemon: &Arc<Daemon>, asked: &Asked) -> Answer {
    Ok(json(&find(daemon, &asked.query).await?))
}

/// The runs that a query asks for: newest first, or with `order=active` those first that have not ended.
///
/// # Errors
/// `bad_request` when the query cannot be read, and what reading the store answers.
pub(crate) async fn find(daemon: &Daemon, query: &Query) -> Result<RunPage, Failure> {
    within(daemon, query, LOOKED_AT_MAX).await
}

/// As [`find`], looking at no more than so many runs for what the store has no order for.
///
/// # Errors
/// As [`find`].
pub(crate) async fn within(daemon: &Daemon, query: &Query, looked_at_max: u32) -> Result<RunPage, Failure> {
    let wanted = Wanted::read(query, looked_at_max)?;
    read(daemon, "runs", move |tx| wanted.find(tx)).await
}

/// Which part of all runs is being listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    All,
    Live,
    Ended,
}

impl Section {
    const fn live(self) -> Option<bool> {
        match self {
            Self::All => None,
            Self::Live => Some(true),
            Self::Ended => Some(false),
        }
    }

    fn cursor(self, after: ExecutionId) -> String {
        let list = match self {
            Self::All | Self::Ended => Cursor::Runs,
            Self::Live => Cursor::LiveRuns,
        };
        query::cursor(list, after.number())
    }
}

/// What only an outline can answer.
#[derive(Debug, Clone, Default)]
struct Narrowing {
    work_kind: Option<WorkKind>,
    state: Option<ExecutionState>,
    source: Option<SourceName>,
    /// Folded.
    text: Option<String>,
}

impl Narrowing {
    const fn is_nothing(&self) -> bool {
        self.work_kind.is_none() && self.state.is_none() && self.source.is_none() && self.text.is_none()
    }

    fn takes(&self, outline: &Outline) -> bool {
        self.work_kind.as_ref().is_none_or(|kind| *kind == outline.work_kind)
            && self.state.is_none_or(|state| state == outline.state)
            && self.source.as_ref().is_none_or(|source| is_of(&outline.source, source))
            && self.text.as_ref().is_none_or(|text| says(outline, text))
    }
}

/// Whether a source is the one that is meant, or lies below it: `hook/ci` is of `hook`.
fn is_of(source: &SourceName, meant: &SourceName) -> bool {
    let rest = source.as_str().strip_prefix(meant.as_str());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Texts are compared without regard to case, here and not in a database, where each has its own idea of it.
fn folded(text: &str) -> String {
    text.to_lowercase()
}

fn says(outline: &Outline, text: &str) -> bool {
    let has = |said: &str| folded(said).contains(text);
    let key = |key: &domain::event::Key| has(&format!("{} {}", key.source, key.external_id));
    has(outline.event_type.as_str())
        || has(outline.source.as_str())
        || outline.summary.as_deref().is_some_and(has)
        || outline.keys.iter().any(key)
}

/// What was asked for.
#[derive(Debug)]
struct Wanted {
    limit: usize,
    looked_at_max: u32,
    sections: &'static [Section],
    filter: ExecutionFilter,
    narrowing: Narrowing,
    key: Option<domain::event::Key>,
    work: Option<String>,
    /// What is searched for, as it was typed.
    text: Option<String>,
}

impl Wanted {
    fn read(query: &Query, looked_at_max: u32) -> Result<Self, Failure> {
        let active_first = match query.text("order") {
            None | Some("newest") => false,
            Some("active") => true,
            Some(_other) => return Err(Failure::bad("`order` is `newest` or `active`")),
        };
        let text = query.text("q").map(str::trim).filter(|text| !text.is_empty());
        if text.is_some_and(|text| text.len() > QUERY_BYTES_MAX) {
            return Err(Failure::bad(format!("`q` has at most {QUERY_BYTES_MAX} bytes")));
        }
        let (live, after) = match query.cursor_of(&[Cursor::Runs, Cursor::LiveRuns])? {
            Some((Cursor::LiveRuns, after)) if active_first => (true, Some(after)),
            Some((Cursor::LiveRuns, _after)) => {
                return Err(Failure::bad("the cursor is one of `order=active`; begin without one"));
            }
            Some((_runs, after)) => (false, Some(after)),
            None => (active_first, None),
        };
        let state = query.text("state").map(state).transpose()?;
        let sections: &[Section] = match (state.map(ExecutionState::is_going_on), active_first, live) {
            (Some(false), _, _) | (None, true, false) => &[Section::Ended],
            (Some(true), _, _) => &[Section::Live],
            (None, true, true) => &[Section::Live, Section::Ended],
            (None, false, _) => &[Section::All],
        };
        Ok(Self {
            limit: query.limit()? as usize,
            looked_at_max,
            sections,
            filter: ExecutionFilter {
                scope: query.parsed("scope")?,
                before: after.map(ExecutionId::from_number),
                ..ExecutionFilter::default()
            },
            narrowing: Narrowing {
                work_kind: query.parsed("work_kind")?,
                state,
                source: query.parsed("trigger_source")?,
                text: None,
            },
            key: query.key()?,
            work: query.text("work").map(str::to_owned),
            text: text.map(str::to_owned),
        })
    }

    fn find(mut self, tx: &mut dyn Snapshot) -> Result<RunPage, Refused> {
        if let Some(work) = &self.work {
            self.filter.work = Some(resolve::work(tx, work)?);
        }
        if let Some(key) = &self.key {
            let owner = tx.key_owner(key)?;
            if owner.is_none() || self.filter.work.is_some_and(|work| owner != Some(work)) {
                return Ok(RunPage::default());
            }
            self.filter.work = owner;
        }
        if let Some(text) = self.text.take() {
            match meant(tx, &text)? {
                Meant::Runs(runs) => return self.of(tx, runs),
                Meant::Work(work) if self.filter.work.is_some_and(|other| other != work) => {
                    return Ok(RunPage::default());
                }
                Meant::Work(work) => self.filter.work = Some(work),
                Meant::Text => self.narrowing.text = Some(folded(&text)),
            }
        }
        self.listed(tx)
    }

    /// The page of runs that an id led to, as far as the other filters leave them.
    fn of(&self, tx: &mut dyn Snapshot, runs: Vec<ExecutionId>) -> Result<RunPage, Refused> {
        let mut items = Vec::new();
        for id in runs {
            let Some(execution) = tx.execution(id)? else { continue };
            let in_scope = self.filter.scope.as_ref().is_none_or(|scope| *scope == execution.scope);
            let of_work = self.filter.work.is_none_or(|work| work == execution.work);
            let one = ExecutionFilter {
                work: Some(execution.work),
                before: Some(ExecutionId::from_number(id.number().saturating_add(1))),
                ..ExecutionFilter::default()
            };
            let outlines = tx.outlines(&one, 1)?;
            if in_scope && of_work && outlines.iter().any(|outline| self.narrowing.takes(outline)) {
                items.push(body(tx, &execution)?);
            }
        }
        Ok(RunPage { items, ..RunPage::default() })
    }

    fn listed(mut self, tx: &mut dyn Snapshot) -> Result<RunPage, Refused> {
        let mut found: Vec<(Section, Execution)> = Vec::new();
        let mut left = self.looked_at_max;
        let mut stopped_at = None;
        for section in self.sections {
            self.filter.live = section.live();
            stopped_at = self.section(tx, *section, &mut found, &mut left)?;
            if stopped_at.is_some() || found.len() > self.limit {
                break;
            }
            self.filter.before = None;
        }
        // One more than the page holds was looked for, to know whether there is one.
        let mut page = RunPage::default();
        if found.len() > self.limit {
            found.truncate(self.limit);
            page.next = found.last().map(|(section, execution)| section.cursor(execution.id));
        } else if let Some(next) = stopped_at {
            page.next = Some(next);
            page.searched = Some(self.looked_at_max);
        }
        for (_section, execution) in found {
            page.items.push(body(tx, &execution)?);
        }
        Ok(page)
    }

    /// Looks through one section. A cursor when it stopped before the section's end, since it had looked at as
    /// much as one search may.
    fn section(
        &mut self,
        tx: &mut dyn Snapshot,
        section: Section,
        found: &mut Vec<(Section, Execution)>,
        left: &mut u32,
    ) -> Result<Option<String>, StoreError> {
        let enough = self.limit + 1;
        if *left == 0 {
            return Ok(Some(section.cursor(ExecutionId::from_number(i64::MAX))));
        }
        if self.narrowing.is_nothing() {
            let rows = u32::try_from(enough - found.len()).unwrap_or(u32::MAX);
            found
                .extend(tx.executions(&self.filter, rows)?.into_iter().map(|execution| (section, execution)));
            return Ok(None);
        }
        loop {
            let rows = PART.min(*left);
            let outlines = tx.outlines(&self.filter, rows)?;
            let all = outlines.len() < rows as usize;
            *left -= u32::try_from(outlines.len()).unwrap_or(*left);
            for outline in outlines {
                self.filter.before = Some(outline.execution);
                if self.narrowing.takes(&outline)
                    && let Some(execution) = tx.execution(outline.execution)?
                {
                    found.push((section, execution));
                    if found.len() == enough {
                        return Ok(None);
                    }
                }
            }
            if all {
                return Ok(None);
            }
            if let Some(before) = self.filter.before.filter(|_before| *left == 0) {
                return Ok(Some(section.cursor(before)));
            }
        }
    }
}

fn state(word: &str) -> Result<ExecutionState, Failure> {
    let found = ExecutionState::ALL.into_iter().find(|state| state.as_str() == word);
    found.ok_or_else(|| {
        let known: Vec<&str> = ExecutionState::ALL.iter().map(|state| state.as_str()).collect();
        Failure::bad(format!("`state` is one of {}", known.join(", ")))
    })
}

/// What somebody who typed a text into a search may mean.
enum Meant {
    /// These runs, newest first.
    Runs(Vec<ExecutionId>),
    /// The runs of this Work.
    Work(WorkId),
    /// Whatever has it in it.
    Text,
}

/// What the beginning of an id leads to; else it is just a text.
fn meant(tx: &mut dyn Snapshot, text: &str) -> Result<Meant, StoreError> {
    if !may_be_an_id(text) {
        return Ok(Meant::Text);
    }
    if let Ok((low, high)) = ExecutionId::range(text) {
        let before = Some(ExecutionId::from_number(high.number().saturating_add(1)));
        let below = ExecutionFilter { before, ..ExecutionFilter::default() };
        let runs = tx.executions(&below, CANDIDATES)?;
        let runs: Vec<_> = runs.iter().map(|run| run.id).take_while(|run| *run >= low).collect();
        if !runs.is_empty() {
            return Ok(Meant::Runs(runs));
        }
    }
    if let Ok((low, high)) = WorkId::range(text) {
        let works = tx.work_ids(low, high, CANDIDATES)?;
        if let [work] = works.as_slice() {
            return Ok(Meant::Work(*work));
        }
        let mut runs = Vec::new();
        for work in works {
            let of_work = ExecutionFilter { work: Some(work), ..ExecutionFilter::default() };
            runs.extend(tx.executions(&of_work, CANDIDATES)?.iter().map(|execution| execution.id));
        }
        if !runs.is_empty() {
            runs.sort_by(|one, two| two.cmp(one));
            return Ok(Meant::Runs(runs));
        }
    }
    if let Ok((low, high)) = EventId::range(text) {
        let mut runs = Vec::new();
        for event in tx.event_ids(low, high, CANDIDATES)? {
            if let Some(event) = tx.event(event)? {
                runs.extend(taken_by(tx, &event)?);
            }
        }
        if !runs.is_empty() {
            runs.sort_by(|one, two| two.cmp(one));
            runs.dedup();
            return Ok(Meant::Runs(runs));
        }
    }
    Ok(Meant::Text)
}

/// Whether a text is long enough to be taken for the beginning of an id. The first letters of all ids are alike.
fn may_be_an_id(text: &str) -> bool {
    match text.split_once('_') {
        Some((_prefix, letters)) => letters.len() >= 4,
        None => text.len() >= 8,
    }
}

/// The run that took an Event in.
fn taken_by(tx: &mut dyn Snapshot, event: &Event) -> Result<Option<ExecutionId>, StoreError> {
    let work = tx.checkpoint(event.sequence)?.and_then(|checkpoint| checkpoint.work);
    let Some(work) = work else { return Ok(None) };
    Ok(tx.input(work, event.sequence)?.and_then(|input| input.consumed_by))
}

#[cfg(test)]
mod tests {
    use domain::event::Key;
    use domain::execution::ExecutionState;
    use domain::id::ExecutionId;
    use domain::store::Outline;
    use domain::text::{EventType, ExternalId, SourceName, WorkKind};

    use super::{folded, is_of, may_be_an_id, says};

    #[test]
    fn a_source_is_meant_by_its_name_or_what_it_lies_below() {
        let source = |text: &str| SourceName::known(text);
        assert!(is_of(&source("hook/ci"), &source("hook/ci")));
        assert!(is_of(&source("hook/ci"), &source("hook")));
        assert!(!is_of(&source("hook/ci"), &source("hook/c")));
        assert!(!is_of(&source("hook"), &source("hook/ci")));
    }

    #[test]
    fn a_word_is_not_taken_for_an_id() {
        for id in ["run_0abc", "0abcdefg", "ev_00000001"] {
            assert!(may_be_an_id(id), "{id}");
        }
        for word in ["0", "build", "run_", "run_0"] {
            assert!(!may_be_an_id(word), "{word}");
        }
    }

    #[test]
    fn a_text_is_looked_for_in_everything_people_remember() {
        let outline = Outline {
            execution: ExecutionId::from_number(1),
            state: ExecutionState::Failed,
            work_kind: WorkKind::known("ci"),
            event_type: EventType::known("build.finished"),
            source: SourceName::known("hook/ci"),
            keys: vec![Key {
                source: SourceName::known("git/acme"),
                external_id: ExternalId::known("PR/Ärger"),
            }],
            summary: Some("Two Tests fail".to_owned()),
        };
        for found in ["BUILD.fin", "hook/", "acme pr/ä", "pr/ÄRGER", "tests FAIL"] {
            assert!(says(&outline, &folded(found)), "{found}");
        }
        for nothing in ["failed", "build finished", "pr/2"] {
            assert!(!says(&outline, &folded(nothing)), "{nothing}");
        }
    }
}
