//! From a file's text to a tree of values that remembers lines, the same for both formats.
//!
//! Everything after this works on one kind of tree and on paths, so that a configuration means the same and is
//! criticized alike whichever way it is written.

use std::collections::BTreeMap;

use jsonc_parser::ast;
use jsonc_parser::errors::ParseErrorKind;
use jsonc_parser::{CollectOptions, ParseOptions};
use serde_json::{Map, Number, Value};
use toml::de::{DeTable, DeValue};

use super::problem::Problem;

/// The most bytes of a configuration file.
pub(crate) const CONFIG_BYTES_MAX: usize = 1024 * 1024;

/// How a configuration is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// `conduit.toml`.
    Toml,
    /// `conduit.json`, in which comments and trailing commas are allowed.
    Json,
}

impl Format {
    /// The name of the file in a home.
    pub(crate) const fn file_name(self) -> &'static str {
        match self {
            Self::Toml => "conduit.toml",
            Self::Json => "conduit.json",
        }
    }
}

/// A parsed file.
#[derive(Debug)]
pub(crate) struct Source {
    /// Its content.
    pub(crate) value: Value,
    /// The line on which each path begins.
    pub(crate) lines: Lines,
}

/// The line of each path of a file.
#[derive(Debug, Default, Clone)]
pub(crate) struct Lines(BTreeMap<String, usize>);

impl Lines {
    /// The line of a path, or of the nearest thing around it.
    pub(crate) fn of(&self, path: &str) -> Option<usize> {
        let mut path = path;
        loop {
            if let Some(line) = self.0.get(path) {
                return Some(*line);
            }
            path = &path[..path.rfind(['.', '['])?];
        }
    }

    /// Gives every problem without a line the line of its path, and sorts by line.
    pub(crate) fn locate(&self, mut problems: Vec<Problem>) -> Vec<Problem> {
        for problem in &mut problems {
            problem.line = problem.line.or_else(|| self.of(&problem.path));
        }
        problems.sort_by_key(|problem| problem.line);
        problems
    }
}

/// The path of a member of what is at `path`.
pub(crate) fn member(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// Parses a file.
///
/// # Errors
/// Every problem of syntax that the parser finds.
pub(crate) fn parse(text: &str, format: Format) -> Result<Source, Vec<Problem>> {
    if text.len() > CONFIG_BYTES_MAX {
        let message = format!("the file is larger than {CONFIG_BYTES_MAX} bytes");
        return Err(vec![Problem::new("", "too_large", message)]);
    }
    let mut reader =
        Reader { text, starts: line_starts(text), lines: Lines::default(), problems: Vec::new() };
    let value = match format {
        Format::Toml => reader.toml(),
        Format::Json => reader.json(),
    };
    match value {
        Some(value) if reader.problems.is_empty() => Ok(Source { value, lines: reader.lines }),
        Some(_) | None => Err(reader.problems),
    }
}

fn line_starts(text: &str) -> Vec<usize> {
    text.match_indices('\n').map(|(at, _newline)| at + 1).collect()
}

struct Reader<'a> {
    text: &'a str,
    starts: Vec<usize>,
    lines: Lines,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn line(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset) + 1
    }

    fn note(&mut self, path: &str, offset: usize) {
        let line = self.line(offset);
        self.lines.0.entry(path.to_owned()).or_insert(line);
    }

    fn refuse(&mut self, path: &str, offset: usize, message: &str) -> Option<Value> {
        let line = self.line(offset);
        self.problems.push(Problem::new(path, "syntax", message).on_line(line));
        None
    }

    fn toml(&mut self) -> Option<Value> {
        let (table, errors) = DeTable::parse_recoverable(self.text);
        for error in &errors {
            // The parser's message describes the grammar; its snippet would show the line, so it is left out.
            let offset = error.span().map_or(0, |span| span.start);
            self.refuse("", offset, &format!("this is not TOML: {}", error.message()));
        }
        errors.is_empty().then(|| self.toml_table("", table.get_ref()))
    }

    fn toml_table(&mut self, path: &str, table: &DeTable<'_>) -> Value {
        let mut members = Map::new();
        for (key, value) in table {
            let path = member(path, key.get_ref());
            self.note(&path, key.span().start);
            let value = self.toml_value(&path, value.get_ref(), value.span().start);
            members.insert(key.get_ref().clone().into_owned(), value.unwrap_or(Value::Null));
        }
        Value::Object(members)
    }

    fn toml_value(&mut self, path: &str, value: &DeValue<'_>, offset: usize) -> Option<Value> {
        match value {
            DeValue::String(text) => Some(Value::String(text.clone().into_owned())),
            DeValue::Boolean(truth) => Some(Value::Bool(*truth)),
            DeValue::Integer(integer) => match i64::from_str_radix(integer.as_str(), integer.radix()) {
                Ok(number) => Some(Value::Number(number.into())),
                Err(_source) => self.refuse(path, offset, "the number does not fit 64 bits"),
            },
            DeValue::Float(float) => match float.as_str().parse().ok().and_then(Number::from_f64) {
                Some(number) => Some(Value::Number(number)),
                None => self.refuse(path, offset, "the number is not finite"),
            },
            DeValue::Datetime(_datetime) => self.refuse(path, offset, "write a date or time in quotes"),
            DeValue::Array(elements) => {
                let mut list = Vec::new();
                for (index, element) in elements.iter().enumerate() {
                    let path = format!("{path}[{index}]");
                    self.note(&path, element.span().start);
                    let value = self.toml_value(&path, element.get_ref(), element.span().start);
                    list.push(value.unwrap_or(Value::Null));
                }
                Some(Value::Array(list))
            }
            DeValue::Table(table) => Some(self.toml_table(path, table)),
        }
    }

    fn json(&mut self) -> Option<Value> {
        let options = ParseOptions {
            allow_comments: true,
            allow_loose_object_property_names: false,
            allow_trailing_commas: true,
            allow_missing_commas: false,
            allow_single_quoted_strings: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            allow_bare_decimal_point_numbers: false,
            allow_non_finite_numbers: false,
            allow_extended_string_escapes: false,
        };
        match jsonc_parser::parse_to_ast(self.text, &CollectOptions::default(), &options) {
            Ok(parsed) => match parsed.value {
                Some(value) => self.json_value("", &value),
                None => self.refuse("", 0, "the file is empty; an empty configuration is `{}`"),
            },
            Err(error) => {
                // The text of an error in a string quotes the string.
                let message = if matches!(error.kind(), ParseErrorKind::String(_)) {
                    "a string is not written as JSON has it".to_owned()
                } else {
                    error.kind().to_string().to_lowercase()
                };
                self.refuse("", error.range().start, &format!("this is not JSON: {message}"))
            }
        }
    }

    fn json_value(&mut self, path: &str, value: &ast::Value<'_>) -> Option<Value> {
        match value {
            ast::Value::StringLit(text) => Some(Value::String(text.value.clone().into_owned())),
            ast::Value::BooleanLit(truth) => Some(Value::Bool(truth.value)),
            ast::Value::NullKeyword(_null) => Some(Value::Null),
            ast::Value::NumberLit(number) => match serde_json::from_str(number.value) {
                Ok(number) => Some(Value::Number(number)),
                Err(_source) => self.refuse(path, number.range.start, "the number cannot be represented"),
            },
            ast::Value::Array(array) => {
                let mut list = Vec::new();
                for (index, element) in array.elements.iter().enumerate() {
                    let path = format!("{path}[{index}]");
                    self.note(&path, json_start(element));
                    list.push(self.json_value(&path, element).unwrap_or(Value::Null));
                }
                Some(Value::Array(list))
            }
            ast::Value::Object(object) => Some(self.json_object(path, object)),
        }
    }

    fn json_object(&mut self, path: &str, object: &ast::Object<'_>) -> Value {
        let mut members = Map::new();
        for property in &object.properties {
            let key = property.name.as_str();
            let at = member(path, key);
            self.note(&at, property.range.start);
            let value = self.json_value(&at, &property.value).unwrap_or(Value::Null);
            if members.insert(key.to_owned(), value).is_some() {
                self.refuse(path, property.range.start, "a key is written twice");
            }
        }
        Value::Object(members)
    }
}

fn json_start(value: &ast::Value<'_>) -> usize {
    match value {
        ast::Value::StringLit(node) => node.range.start,
        ast::Value::NumberLit(node) => node.range.start,
        ast::Value::BooleanLit(node) => node.range.start,
        ast::Value::Object(node) => node.range.start,
        ast::Value::Array(node) => node.range.start,
        ast::Value::NullKeyword(node) => node.range.start,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{CONFIG_BYTES_MAX, Format, parse};

    #[track_caller]
    fn refuses(text: &str, format: Format, line: Option<usize>, message: &str) {
        let problems = parse(text, format).unwrap_err();
        let shown = format!("{problems:?}");
        assert_eq!(problems[0].line, line, "{shown}");
        assert!(problems[0].message.contains(message), "{shown}");
        assert!(!shown.contains("S3CRET"), "{shown}");
    }

    #[test]
    fn parse_gives_both_formats_the_same_tree_and_their_own_lines() {
        let toml = parse("a = 1\n[[b]]\nc = 'x'\n[[b]]\nd = [true, 2.5]\n", Format::Toml).unwrap();
        let json = "// why\n{\n \"a\": 1, /* c */\n \"b\": [{\"c\": \"x\"},\n {\"d\": [true, 2.5,],},],\n}\n";
        let json = parse(json, Format::Json).unwrap();
        assert_eq!(toml.value, json!({"a": 1, "b": [{"c": "x"}, {"d": [true, 2.5]}]}));
        assert_eq!(json.value, toml.value);
        assert_eq!((toml.lines.of("b[1].d[1]"), toml.lines.of("b[0].c")), (Some(5), Some(3)));
        assert_eq!((json.lines.of("b[1].d"), json.lines.of("a")), (Some(5), Some(3)));
        assert_eq!(toml.lines.of("b[1].gone.deeper"), Some(4));
        assert_eq!(toml.lines.of("gone"), None);
    }

    #[test]
    fn parse_refuses_bad_syntax_without_showing_it() {
        refuses("a = 1\nb = S3CRET\n", Format::Toml, Some(2), "not TOML");
        refuses("a = 1\na = 'S3CRET'\n", Format::Toml, Some(2), "not TOML");
        refuses("a = 2026-01-01\n", Format::Toml, Some(1), "in quotes");
        refuses("a = 99999999999999999999\n", Format::Toml, Some(1), "64 bits");
        refuses("\na = inf\n", Format::Toml, Some(2), "finite");
        refuses("{\n \"a\": S3CRET }", Format::Json, Some(2), "not JSON");
        refuses("{\"a\": \"S3CRET\\uS3CRET\"}", Format::Json, Some(1), "not JSON");
        refuses("{\"a\": 1,\n \"a\": \"S3CRET\"}", Format::Json, Some(2), "twice");
        refuses("", Format::Json, Some(1), "empty");
        refuses("{\"a\": 1} {}", Format::Json, Some(1), "not JSON");
        refuses("{'a': 1}", Format::Json, Some(1), "not JSON");
    }

    #[test]
    fn parse_bounds_size_and_depth() {
        refuses(&" ".repeat(CONFIG_BYTES_MAX + 1), Format::Toml, None, "larger");
        refuses(&"[".repeat(CONFIG_BYTES_MAX), Format::Json, Some(1), "not JSON");
        refuses(&format!("a = {}", "[".repeat(100_000)), Format::Toml, Some(1), "not TOML");
    }

    #[test]
    fn parse_reports_several_toml_errors_at_once() {
        assert_eq!(parse("a = \nb = \nc = 1\n", Format::Toml).unwrap_err().len(), 2);
    }
}
