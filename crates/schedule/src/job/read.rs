//! Reading an entry: everything that is wrong with it at once, in words, and no value among them.

use std::collections::BTreeSet;

use extension::table::Table;
use extension::{ConfigProblem, ScopeName};
use serde_json::Value;

use super::{Conclusion, Entry, EventRule, JOBS_MAX, Job, JobName, On, Rules};
use crate::cron::Cron;
use crate::glob::{Globs, PATTERNS_MAX};
use crate::slot::Pattern;
use crate::timing::{CatchUp, EVERY_MINUTES_MAX, Timing, clock};
use crate::zone::Zone;

const ENTRY_KEYS: &[&str] = &["namespace", "scope", "webhook_secret", "jobs"];
const JOB_KEYS: &[&str] = &["name", "every_minutes", "at", "cron", "time_zone", "catch_up", "on"];
const ON_KEYS: &[&str] = &["events", "branches", "paths", "conclusions", "webhook"];
/// Bytes of the name of an event or an action.
const EVENT_BYTES_MAX: usize = 100;
/// Times of day that one job may name.
const AT_MAX: usize = 24 * 60;

type Problems = Vec<ConfigProblem>;

pub(super) fn entry(config: &Value, scope: &ScopeName, secret_names: &[String]) -> Result<Entry, Problems> {
    let mut problems = Vec::new();
    let table = Table::root(config, ENTRY_KEYS, &mut problems);
    let namespace = table.namespace("namespace", &mut problems);
    if table.text("scope", &mut problems).is_some_and(|named| named != scope.as_str()) {
        problems.push(ConfigProblem::at("scope", "must be the scope that holds the entry; leave it out"));
    }
    let webhook_secret = match table.get("webhook_secret") {
        Some(_named) => table.secret("webhook_secret", secret_names, &mut problems),
        None => None,
    };
    let tables = table.tables("jobs", JOB_KEYS, &mut problems);
    if tables.len() > JOBS_MAX {
        problems.push(ConfigProblem::at(
            "jobs",
            format!("must have at most {JOBS_MAX} jobs; use a second entry"),
        ));
    }
    let mut names = BTreeSet::new();
    let mut jobs = Vec::with_capacity(tables.len());
    for table in &tables {
        let Some(job) = job(table, &mut problems) else { continue };
        if !names.insert(job.name.clone()) {
            problems.push(ConfigProblem::at(
                table.path("name"),
                "is the name of an earlier job; each needs its own",
            ));
        }
        if job.on.webhook && table_lacks_secret(config) {
            let message = "needs the entry's `webhook_secret`, which signs the job's URL";
            problems.push(ConfigProblem::at(format!("{}.on.webhook", table.own_path()), message));
        }
        jobs.push(job);
    }
    match namespace {
        Some(namespace) if problems.is_empty() => Ok(Entry { namespace, webhook_secret, jobs }),
        _wrong => Err(problems),
    }
}

fn table_lacks_secret(config: &Value) -> bool {
    config.get("webhook_secret").is_none_or(Value::is_null)
}

/// A job; none when it has no name to be told by.
fn job(table: &Table<'_>, problems: &mut Problems) -> Option<Job> {
    let name = table.need_text("name", problems).map(JobName::new);
    let timing = timing(table, problems);
    let catch_up = match table.text("catch_up", problems).map(CatchUp::parse) {
        Some(Ok(catch_up)) => catch_up,
        Some(Err(error)) => {
            problems.push(ConfigProblem::at(table.path("catch_up"), error.to_string()));
            CatchUp::default()
        }
        None => CatchUp::default(),
    };
    let has_slots = table.get("cron").is_some() || table.get("at").is_some();
    if table.get("catch_up").is_some() && !has_slots {
        let message = "is for `at` and `cron`; an interval runs once after an outage, whatever its length";
        problems.push(ConfigProblem::at(table.path("catch_up"), message));
    }
    let on = table.table("on", ON_KEYS, problems).map(|table| on(&table, problems)).unwrap_or_default();
    match name? {
        Ok(name) => Some(Job { name, timing, catch_up, on }),
        Err(error) => {
            problems.push(ConfigProblem::at(table.path("name"), error.to_string()));
            None
        }
    }
}

fn timing(table: &Table<'_>, problems: &mut Problems) -> Option<Timing> {
    let named: Vec<&str> =
        ["every_minutes", "at", "cron"].into_iter().filter(|key| table.get(key).is_some()).collect();
    if let [_first, second, ..] = named.as_slice() {
        let message = format!("excludes `{}`; a job has one of `every_minutes`, `at` and `cron`", named[0]);
        problems.push(ConfigProblem::at(table.path(second), message));
    }
    if table.get("time_zone").is_some() && table.get("cron").is_none() {
        let message = "is for `cron` only; `at` is in UTC, and an interval has no zone";
        problems.push(ConfigProblem::at(table.path("time_zone"), message));
    }
    let every = table.number("every_minutes", 1, EVERY_MINUTES_MAX, problems).map(Timing::Every);
    let at = at(table, problems);
    let cron = cron(table, problems);
    every.or(at).or(cron)
}

fn at(table: &Table<'_>, problems: &mut Problems) -> Option<Timing> {
    let texts = table.texts("at", problems);
    if texts.len() > AT_MAX {
        problems.push(ConfigProblem::at(table.path("at"), format!("must have at most {AT_MAX} times")));
        return None;
    }
    let mut minutes = BTreeSet::new();
    for (path, text) in texts {
        match clock(text) {
            Some(minute) if !minutes.insert(minute) => {
                problems.push(ConfigProblem::at(path, "is there already; name each time once"));
            }
            Some(_minute) => {}
            None => problems.push(ConfigProblem::at(path, "must be a time of day in UTC, such as `05:17`")),
        }
    }
    let minutes: Vec<u16> = minutes.into_iter().collect();
    (!minutes.is_empty()).then(|| Timing::Slots(Pattern::Daily(minutes), Zone::utc()))
}

fn cron(table: &Table<'_>, problems: &mut Problems) -> Option<Timing> {
    let mut refuse = |key: &str, message: String| problems.push(ConfigProblem::at(table.path(key), message));
    let text = |key: &str| table.get(key).map(|value| value.as_str().ok_or("must be a text"));
    let zone = match text("time_zone") {
        Some(Ok(name)) => Zone::named(name).map_err(|error| refuse("time_zone", error.to_string())).ok(),
        Some(Err(message)) => {
            refuse("time_zone", message.to_owned());
            None
        }
        None => Some(Zone::utc()),
    };
    let cron = match text("cron")? {
        Ok(text) => Cron::parse(text).map_err(|error| refuse("cron", error.to_string())).ok(),
        Err(message) => {
            refuse("cron", message.to_owned());
            None
        }
    };
    Some(Timing::Slots(Pattern::Cron(cron?), zone?))
}

fn on(table: &Table<'_>, problems: &mut Problems) -> On {
    let events = table.texts("events", problems);
    let events: Vec<EventRule> =
        events.into_iter().filter_map(|(path, text)| event(path, text, problems)).collect();
    let on = On {
        events,
        branches: rules(table, "branches", problems),
        paths: rules(table, "paths", problems),
        conclusions: conclusions(table, problems),
        webhook: table.flag("webhook", problems),
    };
    if table.get("events").is_none() {
        for key in ["branches", "paths", "conclusions"].into_iter().filter(|key| table.get(key).is_some()) {
            problems.push(ConfigProblem::at(table.path(key), "narrows `events`, and there are none"));
        }
        if table.get("webhook").is_none() {
            problems.push(ConfigProblem::at(table.own_path(), "must name `events`, or `webhook = true`"));
        }
    }
    on
}

fn event(path: String, text: &str, problems: &mut Problems) -> Option<EventRule> {
    let is_word = |word: &str| {
        let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        !word.is_empty() && word.len() <= EVENT_BYTES_MAX && word.bytes().all(is_letter)
    };
    let (event, action) = text.split_once('.').map_or((text, None), |(event, action)| (event, Some(action)));
    if !is_word(event) || !action.is_none_or(is_word) {
        let message =
            "must be the name of an event, such as `push`, or with an action, such as `release.published`";
        problems.push(ConfigProblem::at(path, message));
        return None;
    }
    Some(EventRule { event: event.to_owned(), action: action.map(str::to_owned) })
}

fn rules(table: &Table<'_>, key: &str, problems: &mut Problems) -> Option<Rules> {
    let texts = table.texts(key, problems);
    if texts.len() > PATTERNS_MAX {
        problems
            .push(ConfigProblem::at(table.path(key), format!("must have at most {PATTERNS_MAX} patterns")));
    }
    if texts.is_empty() {
        return None;
    }
    match Globs::parse(texts.iter().map(|(_path, text)| *text)) {
        Ok(globs) if globs.only_takes_back() => {
            let message =
                "takes nothing: every pattern begins with `!`; put one before them that takes, such as `**`";
            problems.push(ConfigProblem::at(table.path(key), message));
            None
        }
        Ok(globs) => {
            Some(Rules { globs, texts: texts.iter().map(|(_path, text)| (*text).to_owned()).collect() })
        }
        Err(found) => {
            let at = |place: usize| texts.get(place).map(|(path, _text)| path.clone()).unwrap_or_default();
            let found =
                found.into_iter().map(|(place, error)| ConfigProblem::at(at(place), error.to_string()));
            problems.extend(found);
            None
        }
    }
}

fn conclusions(table: &Table<'_>, problems: &mut Problems) -> Vec<Conclusion> {
    let mut conclusions = Vec::new();
    for (path, text) in table.texts("conclusions", problems) {
        if let Some(conclusion) = Conclusion::of(text) {
            conclusions.push(conclusion);
        } else {
            let all: Vec<&str> = Conclusion::ALL.iter().map(|known| known.as_str()).collect();
            problems.push(ConfigProblem::at(path, format!("must be one of `{}`", all.join("`, `"))));
        }
    }
    conclusions
}
