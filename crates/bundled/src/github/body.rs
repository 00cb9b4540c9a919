//! A delivery's body, of which only what matters is kept: the rest of 25 MiB is passed over while it is read.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use percent_encoding::percent_decode;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};

/// Fields of a body that are kept whole. None of them grows with a push.
const KEPT: &[&str] = &[
    "action",
    "after",
    "before",
    "branches",
    "check_run",
    "check_suite",
    "comment",
    "conclusion",
    "created",
    "deleted",
    "forced",
    "installation",
    "issue",
    "label",
    "number",
    "pull_request",
    "ref",
    "ref_type",
    "release",
    "repository",
    "review",
    "sender",
    "sha",
    "workflow_job",
    "workflow_run",
];
/// Files that are listed. A list that long counts as cut.
pub(super) const FILES_MAX: usize = 1000;
/// Bytes of all their paths together, as JSON has them.
const FILES_BYTES_MAX: usize = 384 << 10;

/// What was kept of a body.
#[derive(Debug, Default)]
pub(super) struct Body {
    fields: Value,
    /// What a push lists, when it lists anything.
    pub(super) commits: Option<Commits>,
}

/// The commits of a push.
#[derive(Debug, Default)]
pub(super) struct Commits {
    /// How many there are.
    pub(super) count: usize,
    /// What they add, remove and modify, each path once, in the order it comes.
    pub(super) files: Vec<String>,
    /// Whether there are more files than `files`.
    pub(super) cut: bool,
}

impl Body {
    /// Reads a body, JSON or a form with a `payload`. Repeated fields are allowed, and the last one counts.
    ///
    /// # Errors
    /// Why it can't be read, in words.
    pub(super) fn read(content_type: Option<&str>, body: &[u8]) -> Result<Self, &'static str> {
        let kind = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        let json = if kind.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            Cow::Owned(form_payload(body).ok_or("the form has no `payload`")?)
        } else {
            Cow::Borrowed(body)
        };
        // Checked as a whole, since what is passed over is not.
        let json = str::from_utf8(&json).map_err(|_source| "the body is not UTF-8")?;
        serde_json::from_str(json).map_err(|_source| "the body is not a JSON object")
    }

    /// What is at a JSON pointer.
    pub(super) fn get(&self, pointer: &str) -> Option<&Value> {
        self.fields.pointer(pointer)
    }

    /// The text at a JSON pointer.
    pub(super) fn text(&self, pointer: &str) -> Option<&str> {
        self.get(pointer).and_then(Value::as_str)
    }

    /// The truth at a JSON pointer; what is not there is not true.
    pub(super) fn is(&self, pointer: &str) -> bool {
        self.get(pointer).and_then(Value::as_bool).unwrap_or(false)
    }
}

/// The `payload` of a form, decoded.
fn form_payload(form: &[u8]) -> Option<Vec<u8>> {
    let field = form.split(|byte| *byte == b'&').find_map(|field| field.strip_prefix(b"payload="))?;
    let spaced: Vec<u8> = field.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect();
    Some(percent_decode(&spaced).collect())
}

impl<'de> Deserialize<'de> for Body {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(BodyVisitor)
    }
}

struct BodyVisitor;

impl<'de> Visitor<'de> for BodyVisitor {
    type Value = Body;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Body, A::Error> {
        let mut fields = Map::new();
        let mut commits = None;
        while let Some(name) = entries.next_key::<String>()? {
            if name == "commits" {
                commits = entries.next_value::<Option<CommitList>>()?.map(|list| list.0);
            } else if KEPT.contains(&name.as_str()) {
                let value = entries.next_value::<Value>()?;
                fields.insert(name, value);
            } else {
                entries.next_value::<IgnoredAny>()?;
            }
        }
        Ok(Body { fields: Value::Object(fields), commits })
    }
}

struct CommitList(Commits);

impl<'de> Deserialize<'de> for CommitList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(CommitsVisitor).map(Self)
    }
}

struct CommitsVisitor;

#[derive(Deserialize)]
struct Commit {
    added: Option<Vec<String>>,
    removed: Option<Vec<String>>,
    modified: Option<Vec<String>>,
}

impl<'de> Visitor<'de> for CommitsVisitor {
    type Value = Commits;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of commits")
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut list: A) -> Result<Commits, A::Error> {
        let mut commits = Commits::default();
        let mut seen = BTreeSet::new();
        let mut bytes = 0;
        while let Some(commit) = list.next_element::<Commit>()? {
            commits.count += 1;
            let lists = [commit.added, commit.removed, commit.modified];
            for path in lists.into_iter().flatten().flatten() {
                if commits.cut || seen.contains(&path) {
                    continue;
                }
                // A control character takes six bytes.
                bytes += serde_json::to_string(&path).map_or(6 * path.len(), |written| written.len() + 1);
                commits.cut = seen.len() == FILES_MAX || bytes > FILES_BYTES_MAX;
                if !commits.cut {
                    seen.insert(path.clone());
                    commits.files.push(path);
                }
            }
        }
        Ok(commits)
    }
}
