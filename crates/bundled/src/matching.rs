//! `match`: a route by type, source and a CEL condition, with a key made from the Event.
//!
//! | key of the configuration | meaning |
//! | --- | --- |
//! | `types` | event types; `build.*` is a family, `*` is every type |
//! | `sources` | namespaces, in the same way |
//! | `when` | a CEL expression over `event` and `payload` that must give `true` |
//! | `work` | `keyed` (default), `fresh` or `addressed` |
//! | `key` | `"event"`, or `{ source, external_id }` with `${CEL}` parts |
//! | `kind` | the kind of a Work that is created |
//! | `concurrency` | what a Work that is created shares with others that must not run at the same time, with `${CEL}` parts |
//! | `reopen` | after which ends of a keyed Work a new one takes over: `completed`, `failed`, `cancelled` |
//!
//! At least one of the first three must be there. Reading a field that is missing is an error in CEL, and an
//! Event on which an expression fails is set aside at once; `has(payload.field)` asks first.
//!
//! An expression sees the first 200 items of a list, the first 200 entries of a table and the first 64 KiB of
//! a text. It may nest two comprehensions, of which one may be a `map` or `filter`; what it iterates over is
//! not made with `+`, and a pattern for `matches` is written out.
//!
//! A keyed match goes to the Work that owns the key, which is standing work: it waits for the next Event
//! after each attempt. A fresh one makes a Work that ends. An Event that is addressed to a Work never makes
//! a fresh one, so a fresh match leaves it to later routes.
//!
//! Works of one scope with the same `concurrency` never run at the same time; the others wait until it is free. A
//! Work keeps what it was created with.
//!
//! A Work that has ended takes nothing more, and an Event with its key changes nothing. With `reopen` the Event makes
//! a new Work instead, whose key is that of the next generation (`42/generation/2`), and so do all that follow until
//! that one ends. Every route that names such a key should then reopen.

pub(crate) mod expression;
mod measure;
mod pattern;
mod template;
#[cfg(test)]
mod tests;

use extension::{
    BoxFuture, Code, ConcurrencyKey, ConfigProblem, End, EventType, ExternalId, Handler, HandlerError,
    HandlerName, Key, Lifecycle, Match, PreparedRoute, RouteInput, SourceName, TextError, WorkKind,
};
use serde_json::Value;

use self::expression::{Answer, Expression};
use self::pattern::Pattern;
use self::template::{Template, bad_key};
use crate::table::Table;

/// What separates the words of an event type.
const TYPE_SEPARATORS: &[char] = &['.'];
/// What separates the words of a namespace.
const SOURCE_SEPARATORS: &[char] = &['.', '/'];

/// The keys of its configuration.
const KEYS: &[&str] = &["types", "sources", "when", "work", "key", "kind", "concurrency", "reopen"];

/// The handler of that name.
#[derive(Debug, Clone, Copy, Default)]
pub struct Matching;

impl Handler for Matching {
    fn name(&self) -> HandlerName {
        HandlerName::known("match")
    }

    fn prepare(&self, config: &Value) -> Result<Box<dyn PreparedRoute>, Vec<ConfigProblem>> {
        let mut problems = Vec::new();
        let route = MatchRoute::read(config, &mut problems);
        if problems.is_empty() { Ok(Box::new(route)) } else { Err(problems) }
    }
}

#[derive(Debug)]
struct MatchRoute {
    types: Vec<Pattern>,
    sources: Vec<Pattern>,
    when: Option<Expression>,
    target: Target,
}

/// What Work a matching Event goes to.
#[derive(Debug)]
enum Target {
    /// The one that owns the key, by the template or else the Event's own.
    Keyed { kind: WorkKind, key: Option<KeyTemplate>, concurrency: Option<Template>, reopens: Vec<End> },
    /// A new one.
    Fresh { kind: WorkKind, key: Option<KeyTemplate>, concurrency: Option<Template> },
    /// The one the Event is addressed to.
    Addressed,
}

#[derive(Debug)]
enum KeyTemplate {
    /// The Event's own key.
    Event,
    /// A key made from the Event.
    Made { source: Template, external_id: Template },
}

#[derive(Debug, Clone, Copy)]
enum WorkWord {
    Keyed,
    Fresh,
    Addressed,
}

impl MatchRoute {
    fn read(config: &Value, problems: &mut Vec<ConfigProblem>) -> Self {
        let table = Table::root(config, KEYS, problems);
        let types =
            patterns(&table, "types", TYPE_SEPARATORS, |text| EventType::new(text).map(drop), problems);
        for (index, pattern) in types.iter().enumerate() {
            if let Pattern::Family(family) = pattern
                && (family == "core." || family.starts_with("core."))
            {
                let message = "announcements of the runtime are asked for one by one, by their full name";
                problems.push(ConfigProblem::at(format!("{}[{index}]", table.path("types")), message));
            }
        }
        let sources =
            patterns(&table, "sources", SOURCE_SEPARATORS, |text| SourceName::new(text).map(drop), problems);
        let when = table.text("when", problems).and_then(|text| {
            let compiled = Expression::compile(text);
            compiled.map_err(|problem| problems.push(ConfigProblem::at(table.path("when"), problem))).ok()
        });
        if ["types", "sources", "when"].iter().all(|key| table.get(key).is_none()) {
            let message = "must say what it takes, by `types`, `sources` or `when`";
            problems.push(ConfigProblem::at(table.own_path(), message));
        }
        let target = Target::read(&table, problems);
        Self { types, sources, when, target }
    }

    fn takes(&self, input: &RouteInput) -> Result<bool, HandlerError> {
        let event = &input.event;
        let listed = |patterns: &[Pattern], name: &str| {
            patterns.is_empty() || patterns.iter().any(|pattern| pattern.takes(name))
        };
        if event.event_type.is_core() && !self.takes_announcement(&event.event_type) {
            return Ok(false);
        }
        if !listed(&self.types, event.event_type.as_str()) || !listed(&self.sources, event.source.as_str()) {
            return Ok(false);
        }
        let Some(when) = &self.when else { return Ok(true) };
        match when.evaluate(input)? {
            Answer::Bool(answer) => Ok(answer),
            Answer::Text(_) | Answer::Other => Err(HandlerError {
                code: Code::known("cel_not_bool"),
                reason: "`when` gives neither `true` nor `false`".to_owned(),
                is_final: true,
            }),
        }
    }

    fn wants(&self, input: &RouteInput) -> Result<Option<Match>, HandlerError> {
        if !self.takes(input)? {
            return Ok(None);
        }
        match &self.target {
            Target::Addressed => Ok(input.event.work.map(|_work| Match::Addressed)),
            // What the runtime says about a Work names that Work and is addressed to none.
            Target::Fresh { .. } if input.event.work.is_some() && !input.event.event_type.is_core() => {
                Ok(None)
            }
            Target::Fresh { kind, key, concurrency } => {
                let key = key.as_ref().map(|key| key.fill(input)).transpose()?;
                let keys = key.into_iter().collect();
                let concurrency = shared(concurrency.as_ref(), input)?;
                let lifecycle = Lifecycle::Once;
                Ok(Some(Match::Fresh { kind: kind.clone(), lifecycle, keys, concurrency }))
            }
            Target::Keyed { key: None, .. } if input.event.key.is_none() && input.event.work.is_some() => {
                Ok(Some(Match::Addressed))
            }
            Target::Keyed { kind, key, concurrency, reopens } => {
                let key = key.as_ref().unwrap_or(&KeyTemplate::Event).fill(input)?;
                let lifecycle = Lifecycle::Standing;
                let concurrency = shared(concurrency.as_ref(), input)?;
                let (keys, kind, reopens) = (vec![key], kind.clone(), reopens.clone());
                Ok(Some(Match::Attach { keys, kind, lifecycle, concurrency, reopens }))
            }
        }
    }
}

impl PreparedRoute for MatchRoute {
    fn describe(&self) -> String {
        let list = |patterns: &[Pattern]| {
            let words: Vec<String> = patterns.iter().map(Pattern::as_written).collect();
            words.join(", ")
        };
        let mut text = if self.types.is_empty() { "any event".to_owned() } else { list(&self.types) };
        if !self.sources.is_empty() {
            text = format!("{text} from {}", list(&self.sources));
        }
        if let Some(when) = &self.when {
            text = format!("{text} when {}", when.source());
        }
        text
    }

    fn leads_to(&self) -> String {
        self.target.in_words()
    }

    fn ignores_work(&self) -> bool {
        true
    }

    fn may_take_long(&self) -> bool {
        self.when.as_ref().is_some_and(Expression::iterates)
    }

    fn takes_announcement(&self, event_type: &EventType) -> bool {
        self.types.iter().any(|pattern| pattern.names(event_type.as_str()))
    }

    fn decide<'a>(&'a self, input: &'a RouteInput) -> BoxFuture<'a, Result<Option<Match>, HandlerError>> {
        Box::pin(async move { self.wants(input) })
    }
}

impl Target {
    fn read(table: &Table<'_>, problems: &mut Vec<ConfigProblem>) -> Self {
        const WORDS: &[(&str, WorkWord)] =
            &[("keyed", WorkWord::Keyed), ("fresh", WorkWord::Fresh), ("addressed", WorkWord::Addressed)];
        let work = table.word("work", WORDS, WorkWord::Keyed, problems);
        let named: Option<WorkKind> = table.parsed("kind", problems);
        let key = KeyTemplate::read(table, problems);
        let kind = |default: &str| named.clone().unwrap_or_else(|| WorkKind::known(default));
        let concurrency = table.text("concurrency", problems).and_then(|text| {
            let compiled = Template::compile(text);
            compiled
                .map_err(|problem| problems.push(ConfigProblem::at(table.path("concurrency"), problem)))
                .ok()
        });
        let reopens = reopens(table, problems);
        if !matches!(work, WorkWord::Keyed) && table.get("reopen").is_some() {
            let message =
                "has a meaning only with `work = \"keyed\"`: nothing else finds a Work that has ended";
            problems.push(ConfigProblem::at(table.path("reopen"), message));
        }
        match work {
            WorkWord::Keyed => Self::Keyed { kind: kind("match.keyed"), key, concurrency, reopens },
            WorkWord::Fresh => Self::Fresh { kind: kind("match.fresh"), key, concurrency },
            WorkWord::Addressed => {
                for word in ["key", "kind", "concurrency"] {
                    if table.get(word).is_some() {
                        let message =
                            "has no meaning with `work = \"addressed\"`: no work is created or keyed";
                        problems.push(ConfigProblem::at(table.path(word), message));
                    }
                }
                Self::Addressed
            }
        }
    }

    fn in_words(&self) -> String {
        match self {
            Self::Keyed { kind, key, concurrency, reopens } => {
                let made = if matches!(key, Some(KeyTemplate::Made { .. })) { " that it makes" } else { "" };
                let ends: Vec<&str> = reopens.iter().map(|end| end.as_str()).collect();
                let reopened = if ends.is_empty() {
                    String::new()
                } else {
                    format!(", and to a new one when that is {}", ends.join(" or "))
                };
                let alone = alone(concurrency.as_ref());
                format!("one standing Work per key{made}, of kind `{kind}`{alone}{reopened}")
            }
            Self::Fresh { kind, key, concurrency } => {
                let keyed = if key.is_some() { ", with a key" } else { "" };
                format!("a new Work for each, of kind `{kind}`{keyed}{}", alone(concurrency.as_ref()))
            }
            Self::Addressed => "the Work that it is addressed to".to_owned(),
        }
    }
}

/// What is said of Works that do not run beside one another.
fn alone(concurrency: Option<&Template>) -> String {
    concurrency.map_or_else(String::new, |shared| match shared.literal() {
        Some(shared) => format!(", one at a time under `{shared}`"),
        None => ", one at a time under a concurrency key that it makes".to_owned(),
    })
}

/// The concurrency key of a Work that an Event may create.
fn shared(template: Option<&Template>, input: &RouteInput) -> Result<Option<ConcurrencyKey>, HandlerError> {
    let Some(template) = template else { return Ok(None) };
    let key = ConcurrencyKey::new(template.fill(input)?);
    key.map(Some).map_err(|error| bad_key(&error.to_string()))
}

/// The ends after which a new Work takes over.
fn reopens(table: &Table<'_>, problems: &mut Vec<ConfigProblem>) -> Vec<End> {
    let mut ends = Vec::new();
    for (path, text) in table.texts("reopen", problems) {
        match [End::Completed, End::Failed, End::Cancelled].into_iter().find(|end| end.as_str() == text) {
            Some(end) if ends.contains(&end) => {
                problems.push(ConfigProblem::at(path, "is there twice"));
            }
            Some(end) => ends.push(end),
            None => problems.push(ConfigProblem::at(path, "must be `completed`, `failed` or `cancelled`")),
        }
    }
    ends
}

impl KeyTemplate {
    fn read(table: &Table<'_>, problems: &mut Vec<ConfigProblem>) -> Option<Self> {
        let value = table.get("key")?;
        if let Some(word) = value.as_str() {
            if word != "event" {
                let message = "must be `event` or a table of `source` and `external_id`";
                problems.push(ConfigProblem::at(table.path("key"), message));
            }
            return Some(Self::Event);
        }
        let made = table.table("key", &["source", "external_id"], problems)?;
        let mut template = |key: &str| {
            let compiled = Template::compile(made.need_text(key, problems)?);
            compiled.map_err(|problem| problems.push(ConfigProblem::at(made.path(key), problem))).ok()
        };
        let (source, external_id) = (template("source"), template("external_id"));
        let (source, external_id) = (source?, external_id?);
        if let Some(literal) = source.literal()
            && let Err(error) = SourceName::new(literal)
        {
            problems.push(ConfigProblem::at(made.path("source"), error.to_string()));
        }
        Some(Self::Made { source, external_id })
    }

    fn fill(&self, input: &RouteInput) -> Result<Key, HandlerError> {
        match self {
            Self::Event => input.event.key.clone().ok_or_else(|| HandlerError {
                code: Code::known("no_key"),
                reason: "the event has no key, and the route makes none; send it with a key, or let the route say \
                         `key` or `work = \"fresh\"`"
                    .to_owned(),
                is_final: true,
            }),
            Self::Made { source, external_id } => {
                let source = SourceName::new(source.fill(input)?);
                let external_id = ExternalId::new(external_id.fill(input)?);
                Ok(Key {
                    source: source.map_err(|error| bad_key(&error.to_string()))?,
                    external_id: external_id.map_err(|error| bad_key(&error.to_string()))?,
                })
            }
        }
    }
}

fn patterns(
    table: &Table<'_>,
    key: &str,
    separators: &[char],
    is_valid: fn(&str) -> Result<(), TextError>,
    problems: &mut Vec<ConfigProblem>,
) -> Vec<Pattern> {
    let mut patterns = Vec::new();
    for (path, text) in table.texts(key, problems) {
        match Pattern::parse(text, separators) {
            Ok(pattern) => {
                if let Pattern::Exact(exact) = &pattern
                    && let Err(error) = is_valid(exact)
                {
                    problems.push(ConfigProblem::at(path, error.to_string()));
                }
                patterns.push(pattern);
            }
            Err(problem) => problems.push(ConfigProblem::at(path, problem)),
        }
    }
    patterns
}
