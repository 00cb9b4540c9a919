//! What a `github.delivery` Event says: the facts of a delivery in one shape, whatever the event.
//!
//! A field that an event does not have is `null`, so that an expression can read every one of them.

use serde::Serialize;
use serde_json::Value;

use super::body::{Body, FILES_MAX};
use super::fork::Origin;
use super::subject::{Subject, short, text};

/// Commits that GitHub lists of one push at most. A list that long may be cut.
const COMMITS_MAX: usize = 2048;
/// The version of this shape.
const KIND: &str = "github.delivery.v1";

/// The facts of a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Facts {
    /// `github.delivery.v1`.
    pub kind: &'static str,
    /// GitHub's name for the event: `push`.
    pub event: String,
    /// What happened, for events that have several actions: `opened`.
    pub action: Option<String>,
    /// The repository.
    pub repository: Option<Repository>,
    /// The full ref of a push, or of a branch or tag that was made or deleted. Checks and workflow runs name
    /// none: the branch they name may be a fork's of the same name, and only GitHub could tell.
    #[serde(rename = "ref")]
    pub name: Option<String>,
    /// The commit before a push.
    pub before: Option<String>,
    /// The commit after a push, the one that a check, run or status that ended was about, or a pull
    /// request's head.
    pub after: Option<String>,
    /// How a check or a run that ended did so, as GitHub writes it.
    pub conclusion: Option<String>,
    /// What the commits of a push touch; at most 1000. None for other events.
    pub files: Option<Vec<String>>,
    /// Whether `files` is certain to be all that changed. None for other events than a push.
    pub files_complete: Option<bool>,
    /// How many commits a push lists; at most 2048.
    pub commits: Option<usize>,
    /// Whether a push made its ref.
    pub created: bool,
    /// Whether a push deleted its ref.
    pub deleted: bool,
    /// Whether a push moved its ref to where it could not simply advance.
    pub forced: bool,
    /// The tag of a release.
    pub tag: Option<String>,
    /// The label that was added or taken away.
    pub label: Option<String>,
    /// Whether it is about a fork's code; `null` when that can't be told.
    pub fork: Option<bool>,
    /// Who did it.
    pub sender: Option<String>,
    /// The installation of the app that GitHub told.
    pub installation: Option<u64>,
    /// The issue or pull request it is about.
    pub subject: Option<Subject>,
}

/// A repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Repository {
    /// GitHub's id for it, which outlives its name.
    pub id: Option<u64>,
    /// `owner/name`.
    pub full_name: Option<String>,
    /// Its default branch.
    pub default_branch: Option<String>,
}

impl Facts {
    /// The facts of a body.
    pub(super) fn of(event: &str, body: &Body, origin: Origin) -> Self {
        let plain = |pointer: &str| body.text(pointer).map(short);
        let push = (event == "push").then(|| Push::of(body));
        let repository = body.get("/repository").filter(|repository| repository.is_object());
        Self {
            kind: KIND,
            event: event.to_owned(),
            action: plain("/action"),
            repository: repository.map(|repository| Repository {
                id: repository.get("id").and_then(Value::as_u64),
                full_name: text(repository, "/full_name"),
                default_branch: text(repository, "/default_branch"),
            }),
            name: full_ref(event, body),
            before: plain("/before"),
            after: after(event, body),
            conclusion: ended(body, "conclusion").map(short),
            files_complete: push.as_ref().map(|push| push.files_complete),
            commits: push.as_ref().map(|push| push.commits),
            files: push.map(|push| push.files),
            created: body.is("/created"),
            deleted: body.is("/deleted"),
            forced: body.is("/forced"),
            tag: plain("/release/tag_name"),
            label: plain("/label/name"),
            fork: origin.is_fork(),
            sender: plain("/sender/login"),
            installation: body.get("/installation/id").and_then(Value::as_u64),
            subject: Subject::of(body),
        }
    }
}

/// Objects that have a conclusion and the commit they are about.
const RUNS: &[&str] = &["check_suite", "check_run", "workflow_run", "workflow_job"];

/// A field of the check or run that a delivery reports the end of. One that goes on may still show the
/// conclusion of the time before.
fn ended<'b>(body: &'b Body, field: &str) -> Option<&'b str> {
    let has_ended = body.text("/action") == Some("completed");
    RUNS.iter().filter(|_run| has_ended).find_map(|run| body.text(&format!("/{run}/{field}")))
}

fn full_ref(event: &str, body: &Body) -> Option<String> {
    let name = body.text("/ref").filter(|name| !name.is_empty())?;
    match (event, body.text("/ref_type")) {
        ("create" | "delete", Some("branch")) => Some(short(&format!("refs/heads/{name}"))),
        ("create" | "delete", Some("tag")) => Some(short(&format!("refs/tags/{name}"))),
        _other => Some(short(name)),
    }
}

fn after(event: &str, body: &Body) -> Option<String> {
    let status = || if event == "status" { body.text("/sha") } else { None };
    let found = body.text("/after").or_else(|| ended(body, "head_sha")).or_else(status);
    found.or_else(|| body.text("/pull_request/head/sha")).map(short)
}

struct Push {
    commits: usize,
    files: Vec<String>,
    files_complete: bool,
}

impl Push {
    /// Which files a push changed, and whether that is certain. A ref that is gone changes nothing. A tag is
    /// not a change of files at all; a ref that was made or moved by force may list no commits although it
    /// differs from what was there; and a list at its limit may have lost its end.
    fn of(body: &Body) -> Self {
        let none = super::body::Commits::default();
        let listed = body.commits.as_ref().unwrap_or(&none);
        let is_tag = body.text("/ref").is_some_and(|name| name.starts_with("refs/tags/"));
        let moved = body.is("/created") || body.is("/forced");
        let unknown = is_tag
            || listed.cut
            || listed.files.len() >= FILES_MAX
            || listed.count >= COMMITS_MAX
            || (moved && listed.count == 0)
            || body.commits.is_none();
        Self {
            commits: listed.count,
            files: listed.files.clone(),
            files_complete: body.is("/deleted") || !unknown,
        }
    }
}
