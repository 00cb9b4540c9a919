//! Whose code a delivery is about: the repository's own, or a fork's.
//!
//! Code from a fork is written by anybody, and GitHub reports on it with our repository's name. So the answer
//! rests on ids in the signed body, and what proves nothing counts as unknown:
//!
//! | the body has | own | a fork's | unknown |
//! | --- | --- | --- | --- |
//! | `pull_request` | its head repository is its base | another head repository | no head repository any more |
//! | `issue` with a `pull_request` | | | always: a comment names no head |
//! | `workflow_run` | its head repository is ours | another | none |
//! | `check_run`, `check_suite` | pull requests, all with our head | any with another head | no pull requests |
//! | `workflow_job` | | | always: it names no repository |
//! | `sha` and `branches` (a status) | it is on a branch of ours | | on none |
//! | `comment` on a commit | | | always: forks share their commits with us |
//! | `ref` below `refs/pull/` | | | always |
//! | none of these | always | | |
//!
//! The first row that applies and is not "own" decides. GitHub lists no pull requests for a check on a
//! fork's commit, and none for one on a branch without a pull request either; only asking GitHub whether the
//! commit is in the branch's history could tell them apart.

use serde_json::Value;

use super::body::Body;

/// Whose code it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// The repository's own, or no code is involved.
    Own,
    /// That can't be told.
    Unknown,
    /// A fork's.
    Fork,
}

impl Origin {
    /// As the facts have it: `null` when it can't be told.
    pub const fn is_fork(self) -> Option<bool> {
        match self {
            Self::Own => Some(false),
            Self::Unknown => None,
            Self::Fork => Some(true),
        }
    }
}

/// Whose code a delivery is about, by the worst of its parts.
pub(super) fn origin(body: &Body) -> Origin {
    let repository = body.get("/repository");
    let part = |pointer: &str, judge: &dyn Fn(&Value) -> Origin| {
        body.get(pointer).filter(|value| !value.is_null()).map(judge)
    };
    let always_unknown = |_value: &Value| Origin::Unknown;
    let parts = [
        part("/pull_request", &|pull| {
            same(pull.pointer("/head/repo"), pull.pointer("/base/repo").or(repository))
        }),
        part("/issue/pull_request", &always_unknown),
        part("/workflow_run", &|run| same(run.get("head_repository"), repository)),
        part("/check_run", &|check| pull_requests(check, repository)),
        part("/check_suite", &|check| pull_requests(check, repository)),
        part("/workflow_job", &always_unknown),
        part("/branches", &|branches| match branches.as_array() {
            Some(branches) if !branches.is_empty() => Origin::Own,
            Some(_) | None => Origin::Unknown,
        }),
        part("/comment/commit_id", &|_id| match body.get("/pull_request") {
            Some(_pull) => Origin::Own,
            None => Origin::Unknown,
        }),
        part("/ref", &|name| match name.as_str() {
            Some(name) if name.starts_with("refs/pull/") => Origin::Unknown,
            Some(_) | None => Origin::Own,
        }),
    ];
    parts.into_iter().flatten().max().unwrap_or(Origin::Own)
}

/// Whether two repositories are one, by their ids, and by their names only where an id is missing.
fn same(head: Option<&Value>, base: Option<&Value>) -> Origin {
    let (Some(head), Some(base)) = (head, base) else { return Origin::Unknown };
    let id = |repository: &Value| repository.get("id").and_then(Value::as_u64);
    let name =
        |repository: &Value| repository.get("full_name").and_then(Value::as_str).map(str::to_ascii_lowercase);
    let answer = match (id(head), id(base)) {
        (Some(head), Some(base)) => Some(head == base),
        (None, _) | (_, None) => name(head).zip(name(base)).map(|(head, base)| head == base),
    };
    match answer {
        Some(true) => Origin::Own,
        Some(false) => Origin::Fork,
        None => Origin::Unknown,
    }
}

fn pull_requests(check: &Value, repository: Option<&Value>) -> Origin {
    let pulls = check.get("pull_requests").and_then(Value::as_array);
    let origins = pulls.into_iter().flatten().map(|pull| same(pull.pointer("/head/repo"), repository));
    origins.max().unwrap_or(Origin::Unknown)
}
