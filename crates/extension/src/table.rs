//! Reading an entry's or a route's own configuration: every problem at once, and never a value repeated.

use std::str::FromStr;

use serde_json::{Map, Value};

use crate::{ConfigProblem, SourceName, TextError};

/// How unlike a known key may be to be offered for an unknown one: 0 is nothing in common, 1 the same.
const LIKENESS_MIN: f64 = 0.6;

/// One table of the configuration, its keys already checked against those that are known.
#[derive(Debug)]
pub struct Table<'a> {
    path: String,
    entries: Option<&'a Map<String, Value>>,
}

impl<'a> Table<'a> {
    /// Opens the whole of a configuration. One that is left out is an empty table.
    pub fn root(value: &'a Value, known: &[&str], problems: &mut Vec<ConfigProblem>) -> Self {
        Self::open(String::new(), value, known, problems)
    }

    fn open(path: String, value: &'a Value, known: &[&str], problems: &mut Vec<ConfigProblem>) -> Self {
        let entries = value.as_object();
        if entries.is_none() && !value.is_null() {
            problems.push(ConfigProblem::at(path.clone(), "must be a table"));
        }
        let table = Self { path, entries };
        for key in table.entries.iter().flat_map(|entries| entries.keys()) {
            if !known.contains(&key.as_str()) {
                problems.push(ConfigProblem::at(table.path(key), unknown(key, known)));
            }
        }
        table
    }

    /// The table below `key`, when it is there.
    pub fn table(&self, key: &str, known: &[&str], problems: &mut Vec<ConfigProblem>) -> Option<Self> {
        Some(Self::open(self.path(key), self.get(key)?, known, problems))
    }

    /// The tables of a list of tables. Empty when it is left out.
    pub fn tables(&self, key: &str, known: &[&str], problems: &mut Vec<ConfigProblem>) -> Vec<Self> {
        let Some(value) = self.get(key) else { return Vec::new() };
        let Some(list) = value.as_array() else {
            problems.push(ConfigProblem::at(self.path(key), "must be a list of tables"));
            return Vec::new();
        };
        let path = |index: usize| format!("{}[{index}]", self.path(key));
        list.iter().enumerate().map(|(index, item)| Self::open(path(index), item, known, problems)).collect()
    }

    /// The path of `key`, as a [`ConfigProblem`] has it.
    pub fn path(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// The table's own path; empty for the whole.
    pub fn own_path(&self) -> &str {
        &self.path
    }

    /// The value of `key`; an explicit `null` counts as left out.
    pub fn get(&self, key: &str) -> Option<&'a Value> {
        self.entries?.get(key).filter(|value| !value.is_null())
    }

    /// The text of `key`, when it is there.
    pub fn text(&self, key: &str, problems: &mut Vec<ConfigProblem>) -> Option<&'a str> {
        let text = self.get(key)?.as_str();
        if text.is_none() {
            problems.push(ConfigProblem::at(self.path(key), "must be a text"));
        }
        text
    }

    /// The text of `key`, which must be there and not be empty.
    pub fn need_text(&self, key: &str, problems: &mut Vec<ConfigProblem>) -> Option<&'a str> {
        if self.get(key).is_none() {
            problems.push(ConfigProblem::at(self.path(key), "is required"));
            return None;
        }
        let text = self.text(key, problems)?;
        if text.is_empty() {
            problems.push(ConfigProblem::at(self.path(key), "must not be empty"));
            return None;
        }
        Some(text)
    }

    /// The whole number of `key` within its bounds, when it is there.
    pub fn number(&self, key: &str, min: u32, max: u32, problems: &mut Vec<ConfigProblem>) -> Option<u32> {
        let number = self.get(key)?.as_u64().and_then(|number| u32::try_from(number).ok());
        let number = number.filter(|number| (min..=max).contains(number));
        if number.is_none() {
            let message = format!("must be a whole number from {min} to {max}");
            problems.push(ConfigProblem::at(self.path(key), message));
        }
        number
    }

    /// The truth of `key`; false when it is left out.
    pub fn flag(&self, key: &str, problems: &mut Vec<ConfigProblem>) -> bool {
        let Some(value) = self.get(key) else { return false };
        value.as_bool().unwrap_or_else(|| {
            problems.push(ConfigProblem::at(self.path(key), "must be true or false"));
            false
        })
    }

    /// The validated text of `key`, when it is there.
    pub fn parsed<T: FromStr<Err = TextError>>(
        &self,
        key: &str,
        problems: &mut Vec<ConfigProblem>,
    ) -> Option<T> {
        let parsed = self.text(key, problems)?.parse::<T>();
        parsed.map_err(|error| problems.push(ConfigProblem::at(self.path(key), error.to_string()))).ok()
    }

    /// One of a few words, or `default` when it is left out or wrong.
    pub fn word<T: Copy>(
        &self,
        key: &str,
        words: &[(&str, T)],
        default: T,
        problems: &mut Vec<ConfigProblem>,
    ) -> T {
        let Some(text) = self.text(key, problems) else { return default };
        if let Some((_word, meaning)) = words.iter().find(|(word, _meaning)| *word == text) {
            return *meaning;
        }
        let all: Vec<String> = words.iter().map(|(word, _meaning)| format!("`{word}`")).collect();
        problems.push(ConfigProblem::at(self.path(key), format!("must be one of {}", all.join(", "))));
        default
    }

    /// The texts of a list, each with its path. Empty when it is left out.
    pub fn texts(&self, key: &str, problems: &mut Vec<ConfigProblem>) -> Vec<(String, &'a str)> {
        let Some(value) = self.get(key) else { return Vec::new() };
        let Some(list) = value.as_array() else {
            problems.push(ConfigProblem::at(self.path(key), "must be a list of texts"));
            return Vec::new();
        };
        if list.is_empty() {
            problems
                .push(ConfigProblem::at(self.path(key), "must not be an empty list; leave it out instead"));
        }
        let mut texts = Vec::with_capacity(list.len());
        for (index, item) in list.iter().enumerate() {
            let path = format!("{}[{index}]", self.path(key));
            match item.as_str() {
                Some(text) => texts.push((path, text)),
                None => problems.push(ConfigProblem::at(path, "must be a text")),
            }
        }
        texts
    }

    /// The namespace an entry delivers in: required, and not one of the runtime's or a CloudEvent's.
    pub fn namespace(&self, key: &str, problems: &mut Vec<ConfigProblem>) -> Option<SourceName> {
        self.need_text(key, problems)?;
        let source: SourceName = self.parsed(key, problems)?;
        if source.is_core() {
            problems.push(ConfigProblem::at(self.path(key), "`core` and `core.*` belong to the runtime"));
            return None;
        }
        if source.is_of_cloud_events() {
            let message = "`cloudevents:` is for the sources of CloudEvents";
            problems.push(ConfigProblem::at(self.path(key), message));
            return None;
        }
        Some(source)
    }

    /// The name of a secret, which must be among those the entry may read.
    pub fn secret(
        &self,
        key: &str,
        secret_names: &[String],
        problems: &mut Vec<ConfigProblem>,
    ) -> Option<String> {
        let name = self.need_text(key, problems)?;
        if !secret_names.iter().any(|known| known == name) {
            let message = "must name one of the entry's `secret_names`";
            problems.push(ConfigProblem::at(self.path(key), message));
            return None;
        }
        Some(name.to_owned())
    }
}

fn unknown(key: &str, known: &[&str]) -> String {
    let likeness = |name: &&&str| strsim::jaro_winkler(key, name);
    let nearest = known
        .iter()
        .filter(|name| likeness(name) >= LIKENESS_MIN)
        .max_by(|left, right| likeness(left).total_cmp(&likeness(right)));
    match nearest {
        Some(name) => format!("is not known; did you mean `{name}`?"),
        None if known.is_empty() => "is not known; nothing can be set here".to_owned(),
        None => format!("is not known; there are `{}`", known.join("`, `")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Table;

    #[test]
    fn an_unknown_key_names_the_nearest() {
        let mut problems = Vec::new();
        let config = json!({ "typs": [], "zzz": 1, "types": ["a"] });
        drop(Table::root(&config, &["types", "sources"], &mut problems));
        let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "`typs`: is not known; did you mean `types`?",
                "`zzz`: is not known; there are `types`, `sources`",
            ]
        );
    }

    #[test]
    fn numbers_flags_and_tables_say_where_they_are_wrong() {
        let mut problems = Vec::new();
        let config = json!({ "n": 61, "f": "yes", "l": [{ "a": 1 }, { "b": 2 }, 3], "t": {} });
        let table = Table::root(&config, &["n", "f", "l", "t"], &mut problems);
        assert_eq!(table.number("n", 1, 60, &mut problems), None);
        assert_eq!(table.number("n", 1, 61, &mut problems), Some(61));
        assert!(!table.flag("f", &mut problems));
        assert_eq!(table.tables("l", &["a"], &mut problems).len(), 3);
        assert!(table.tables("t", &[], &mut problems).is_empty());
        let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "`n`: must be a whole number from 1 to 60",
                "`f`: must be true or false",
                "`l[1].b`: is not known; there are `a`",
                "`l[2]`: must be a table",
                "`t`: must be a list of tables",
            ]
        );
    }

    #[test]
    fn a_wrong_value_is_never_repeated() {
        let mut problems = Vec::new();
        let config = json!({ "forks": "hunter2", "namespace": "core.hunter2", "list": [7, "x"], "t": 1 });
        let table = Table::root(&config, &["forks", "namespace", "list", "t"], &mut problems);
        assert!(!table.word("forks", &[("ignore", false), ("accept", true)], false, &mut problems));
        assert_eq!(table.namespace("namespace", &mut problems), None);
        let event = json!({ "namespace": "cloudevents:/hunter2" });
        let event = Table::root(&event, &["namespace"], &mut problems);
        assert_eq!(event.namespace("namespace", &mut problems), None);
        assert_eq!(table.texts("list", &mut problems), [("list[1]".to_owned(), "x")]);
        assert!(table.table("t", &[], &mut problems).is_some());
        assert_eq!(table.secret("gone", &[], &mut problems), None);
        let text = format!("{problems:?}");
        assert_eq!(problems.len(), 6, "{text}");
        assert!(!text.contains("hunter2"), "{text}");
    }
}
