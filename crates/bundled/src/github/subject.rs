//! The issue or pull request that a delivery is about.

use serde::Serialize;
use serde_json::Value;

use super::body::Body;

/// Bytes of a short text: a title, a name, a ref.
const TEXT_BYTES_MAX: usize = 1 << 10;
/// Bytes of a comment or a review.
const COMMENT_BYTES_MAX: usize = 64 << 10;
/// Labels that are listed.
const LABELS_MAX: usize = 100;

/// An issue or a pull request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Subject {
    /// `issue` or `pull_request`.
    pub kind: &'static str,
    /// Its number.
    pub number: Option<u64>,
    /// Its title, clipped to 1 KiB.
    pub title: Option<String>,
    /// The names of its first hundred labels.
    pub labels: Vec<String>,
    /// `open` or `closed`.
    pub state: Option<String>,
    /// Who opened it.
    pub author: Option<String>,
    /// The comment that the delivery is about.
    pub comment: Option<Comment>,
    /// The review that the delivery is about.
    pub review: Option<Comment>,
    /// What a pull request would merge.
    pub head: Option<Tip>,
    /// What it would be merged into.
    pub base: Option<Tip>,
    /// Whether a pull request was merged.
    pub merged: Option<bool>,
    /// Whether a pull request is a draft.
    pub draft: Option<bool>,
}

/// What somebody wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Comment {
    /// GitHub's id for it.
    pub id: Option<u64>,
    /// Who wrote it.
    pub author: Option<String>,
    /// The verdict of a review.
    pub state: Option<String>,
    /// Its text, clipped to 64 KiB.
    pub text: String,
    /// Whether the text was clipped.
    pub truncated: bool,
}

/// A branch and the commit it was at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tip {
    /// The branch's name, without `refs/heads/`.
    #[serde(rename = "ref")]
    pub name: Option<String>,
    /// The commit.
    pub sha: Option<String>,
    /// The repository's full name; none when it was deleted.
    pub repo: Option<String>,
}

impl Subject {
    /// The subject of a body, when it has one.
    pub(super) fn of(body: &Body) -> Option<Self> {
        let present = |pointer: &str| body.get(pointer).filter(|value| value.is_object());
        let pull = present("/pull_request");
        let subject = pull.or_else(|| present("/issue"))?;
        let is_pull = pull.is_some() || present("/issue/pull_request").is_some();
        let labels = subject.get("labels").and_then(Value::as_array).into_iter().flatten();
        Some(Self {
            kind: if is_pull { "pull_request" } else { "issue" },
            number: subject.get("number").and_then(Value::as_u64),
            title: text(subject, "/title"),
            labels: labels.filter_map(|label| text(label, "/name")).take(LABELS_MAX).collect(),
            state: text(subject, "/state"),
            author: text(subject, "/user/login"),
            comment: present("/comment").map(Comment::of),
            review: present("/review").map(Comment::of),
            head: subject.get("head").filter(|head| head.is_object()).map(Tip::of),
            base: subject.get("base").filter(|base| base.is_object()).map(Tip::of),
            merged: subject.get("merged").and_then(Value::as_bool),
            draft: subject.get("draft").and_then(Value::as_bool),
        })
    }
}

impl Comment {
    pub(super) fn of(comment: &Value) -> Self {
        let whole = comment.get("body").and_then(Value::as_str).unwrap_or_default();
        let text_clipped = clip(whole, COMMENT_BYTES_MAX);
        Self {
            id: comment.get("id").and_then(Value::as_u64),
            author: text(comment, "/user/login"),
            state: text(comment, "/state"),
            text: text_clipped.to_owned(),
            truncated: text_clipped.len() < whole.len(),
        }
    }
}

impl Tip {
    fn of(tip: &Value) -> Self {
        Self { name: text(tip, "/ref"), sha: text(tip, "/sha"), repo: text(tip, "/repo/full_name") }
    }
}

/// The text at a pointer, clipped to a short one.
pub(super) fn text(value: &Value, pointer: &str) -> Option<String> {
    value.pointer(pointer).and_then(Value::as_str).map(short)
}

/// The beginning of a text that is meant to be short.
pub(super) fn short(text: &str) -> String {
    clip(text, TEXT_BYTES_MAX).to_owned()
}

fn clip(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}
