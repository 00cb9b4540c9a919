//! The configuration in force in words, and what the edited file would change.

use askama::Template;

use super::Visit;
use super::frame::{Frame, Place};
use super::html;
use super::pause;
use crate::api::failure::Failure;
use crate::api::server::Answer;
use crate::api::wire::{ConfigBody, PlanBody, PlanChangeBody, ProblemItem, ScopeLineBody};
use crate::api::{config, scopes};
use crate::error_code::ErrorCode;
use crate::view::clock::{Clock, Moment};
use crate::view::config::{Part, ScopeWords, SettingRow};
use crate::view::payload::spelled;
use crate::view::said;

/// Characters of a digest that are shown.
const DIGEST_SHOWN: usize = 12;
/// How deep a line of the tree is moved in.
const DEPTH_SHOWN: usize = 6;

#[derive(Debug, Template)]
#[template(path = "config.html")]
struct Config {
    frame: Frame,
    generation: i64,
    digest: Option<String>,
    applied: Option<Moment>,
    file: Option<String>,
    proposal: Proposal,
    tree: Vec<Line>,
    scope: Option<Scope>,
}

/// A sentence in its parts.
pub(super) type Said = Vec<said::Part>;

/// A scope of the tree.
#[derive(Debug)]
struct Line {
    name: String,
    depth: usize,
    is_disabled: bool,
    is_paused: bool,
    is_shown: bool,
}

/// A scope in words.
#[derive(Debug)]
struct Scope {
    name: String,
    place: Said,
    disabled: Option<Said>,
    paused: Option<Said>,
    /// The path of the button that pauses it, or that resumes what pauses it; none while it is disabled.
    pause: String,
    resume: Option<Resume>,
    lists: Vec<List>,
    removed: Vec<Said>,
    settings: Vec<SettingRow>,
    ceilings: Vec<SettingRow>,
    secrets: Vec<Part>,
    read_scopes: Vec<String>,
    write_scopes: Vec<String>,
    /// Each with how it stands.
    budgets: Vec<(String, Vec<said::Part>)>,
}

/// The button that resumes the scope that pauses one.
#[derive(Debug)]
struct Resume {
    path: String,
    scope: String,
}

/// The routes, bindings or entries of a scope.
#[derive(Debug)]
struct List {
    id: &'static str,
    title: &'static str,
    note: &'static str,
    /// What is said when there is none.
    nothing: &'static str,
    icon: &'static str,
    items: Vec<Item>,
}

#[derive(Debug)]
struct Item {
    name: String,
    inherited: Option<String>,
    sentences: Vec<Said>,
}

/// What the home's file says beside what is in force.
#[derive(Debug)]
pub(super) enum Proposal {
    /// There is no file.
    Missing,
    /// The same.
    Same,
    /// Something else.
    Differs(Plan),
    /// Something that cannot be put in force.
    Wrong {
        /// Why, when it is one thing.
        detail: String,
        /// Everything that is wrong with it, with its place.
        problems: Vec<ProblemItem>,
    },
}

/// What an apply would change.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) digest: String,
    pub(super) generation: i64,
    pub(super) changes: Vec<Change>,
    pub(super) restart_required: Vec<Said>,
}

/// A line of a plan.
#[derive(Debug)]
pub(super) struct Change {
    /// `Added`, `Removed` or `Changed`.
    pub(super) word: &'static str,
    /// Its family of colours.
    pub(super) class: &'static str,
    pub(super) icon: &'static str,
    pub(super) sentence: Said,
}

impl Proposal {
    /// What the file says.
    ///
    /// # Errors
    /// What reading the home answers.
    pub(super) fn read(visit: &Visit) -> Result<Self, Failure> {
        match config::proposed(&visit.daemon) {
            Ok(plan) if plan.changes.is_empty() && plan.restart_required.is_empty() => Ok(Self::Same),
            Ok(plan) => Ok(Self::Differs(Plan::new(plan, &visit.reader.clock))),
            Err(failure) if failure.code() == ErrorCode::NoConfigFile => Ok(Self::Missing),
            Err(failure) if failure.code() == ErrorCode::InvalidConfig => {
                Ok(Self::Wrong { detail: failure.detail().to_owned(), problems: failure.problems().to_vec() })
            }
            Err(failure) => Err(failure),
        }
    }
}

impl Plan {
    fn new(plan: PlanBody, clock: &Clock) -> Self {
        Self {
            digest: plan.digest,
            generation: plan.generation,
            changes: plan.changes.iter().map(|change| Change::new(change, clock)).collect(),
            restart_required: plan.restart_required.iter().map(|sentence| said(sentence, clock)).collect(),
        }
    }
}

impl Change {
    fn new(change: &PlanChangeBody, clock: &Clock) -> Self {
        let (word, class, icon) = match change.what.as_str() {
            "added" => ("Added", "done", "i-plus"),
            "removed" => ("Removed", "fail", "i-x"),
            _changed => ("Changed", "run", "i-retry"),
        };
        Self { word, class, icon, sentence: said(&change.sentence, clock) }
    }
}

/// A sentence in its parts, with an upper-case first letter.
pub(super) fn said(sentence: &str, clock: &Clock) -> Said {
    let mut letters = sentence.chars();
    let first = letters.next().map(char::to_uppercase);
    let text: String = first.into_iter().flatten().chain(letters).collect();
    said::parts(&spelled(&text), clock)
}

/// Shows the configuration in force.
pub(super) async fn show(visit: &Visit) -> Answer {
    let body = config::in_force(&visit.daemon).await?;
    let named = visit.asked.query.text("scope").map(str::to_owned);
    let shown = named.or_else(|| body.tree.first().map(|line| line.name.clone()));
    let scope = match &shown {
        Some(name) => {
            let body = scopes::show(&visit.daemon, name).await?;
            let paused_by = body.paused.as_ref().map(|pause| pause.scope.clone());
            Some(Scope::new(ScopeWords::new(&body), paused_by, &visit.reader.clock))
        }
        None => None,
    };
    let ConfigBody { generation, digest, applied_at, tree, file, .. } = body;
    html::page(&Config {
        frame: Frame::read(visit, Place::Config).await?,
        generation,
        digest: digest.map(|digest| digest.chars().take(DIGEST_SHOWN).collect()),
        applied: applied_at.map(|at| visit.reader.clock.moment(&at)),
        file,
        proposal: Proposal::read(visit)?,
        tree: tree.into_iter().map(|line| Line::new(line, shown.as_deref())).collect(),
        scope,
    })
}

impl Line {
    fn new(line: ScopeLineBody, shown: Option<&str>) -> Self {
        Self {
            is_shown: shown == Some(&line.name),
            depth: line.depth.min(DEPTH_SHOWN),
            is_disabled: line.disabled_by.is_some(),
            is_paused: line.paused.is_some(),
            name: line.name,
        }
    }

    /// The page of the scope.
    fn path(&self) -> String {
        pause::path(&self.name)
    }
}

impl Scope {
    fn new(words: ScopeWords, paused_by: Option<String>, clock: &Clock) -> Self {
        let list = |id, title, note, nothing, icon, parts: Vec<Part>| List {
            id,
            title,
            note,
            nothing,
            icon,
            items: parts.into_iter().map(|part| Item::new(part, clock)).collect(),
        };
        let lists = vec![
            list(
                "routes",
                "Routes",
                "Asked in this order; the first that matches wins",
                "It has no route, so what arrives here starts nothing.",
                "i-route",
                words.routes,
            ),
            list("bindings", "Bindings", "What can be run", "It has no binding.", "i-play", words.bindings),
            list(
                "entries",
                "Entries",
                "What it receives from outside",
                "It receives nothing from outside but what is emitted to it.",
                "i-hook",
                words.entries,
            ),
        ];
        let resume = |scope: String| Resume { path: pause::action(&scope, "resume"), scope };
        Self {
            pause: pause::action(&words.name, "pause"),
            resume: paused_by.map(resume),
            paused: words.paused.map(|sentence| said(&sentence, clock)),
            name: words.name,
            place: said(&words.place, clock),
            disabled: words.disabled.map(|sentence| said(&sentence, clock)),
            lists,
            removed: words.removed.iter().map(|sentence| said(sentence, clock)).collect(),
            settings: words.settings,
            ceilings: words.ceilings,
            secrets: words.secrets,
            read_scopes: words.read_scopes,
            write_scopes: words.write_scopes,
            budgets: words
                .budgets
                .into_iter()
                .map(|(name, standing)| (name, said::parts(&standing, clock)))
                .collect(),
        }
    }
}

impl Item {
    fn new(part: Part, clock: &Clock) -> Self {
        Self {
            name: part.name,
            inherited: part.inherited,
            sentences: part.sentences.iter().map(|sentence| said(sentence, clock)).collect(),
        }
    }
}
