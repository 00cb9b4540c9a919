//! The `config` of a binding's `resource`: every problem is found at once, and none repeats a value.

use std::path::PathBuf;
use std::time::Duration;

use extension::ConfigProblem;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::table::Table;

const KEYS: [&str; 5] = ["checkout", "mode", "remote", "branch", "retain_failed_seconds"];
/// How long a fresh checkout is kept after a failure when the configuration does not say: a day.
const RETAIN_SECONDS_DEFAULT: u32 = 24 * 3600;
/// The longest it may be kept: a year.
const RETAIN_SECONDS_MAX: u32 = 366 * 24 * 3600;
/// The most bytes of a remote's or branch's name.
const NAME_BYTES_MAX: usize = 200;

/// How an attempt works with a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Mode {
    /// In the main checkout, beside whoever else works there.
    Shared,
    /// In a worktree of its own at the remote's head.
    Fresh,
    /// In the worktree of its Work, on the Work's branch.
    Worktree,
}

impl Mode {
    /// The word in the configuration.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::Fresh => "fresh",
            Self::Worktree => "worktree",
        }
    }
}

/// What a binding asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Config {
    /// The main checkout.
    pub(super) checkout: PathBuf,
    pub(super) mode: Mode,
    /// The remote whose head counts.
    pub(super) remote: String,
    /// The branch of the remote; its default branch when none is given.
    pub(super) branch: Option<String>,
    /// How long a fresh checkout is kept after a failure.
    pub(super) retain_failed: Duration,
}

impl Config {
    /// Reads and checks a configuration.
    pub(super) fn parse(config: &Value) -> Result<Self, Vec<ConfigProblem>> {
        let mut problems = Vec::new();
        let table = Table::root(config, &KEYS, &mut problems);
        let checkout = table.need_text("checkout", &mut problems).map(PathBuf::from).unwrap_or_default();
        let is_path = checkout.is_absolute() && !checkout.as_os_str().as_encoded_bytes().contains(&0);
        if !checkout.as_os_str().is_empty() && !is_path {
            problems.push(ConfigProblem::at("checkout", "must be an absolute path"));
        }
        if table.get("mode").is_none() {
            problems.push(ConfigProblem::at("mode", "is required: `shared`, `fresh` or `worktree`"));
        }
        let modes = [Mode::Shared, Mode::Fresh, Mode::Worktree].map(|mode| (mode.as_str(), mode));
        let mode = table.word("mode", &modes, Mode::Shared, &mut problems);
        let mut name = |key: &str| {
            let name = table.text(key, &mut problems)?;
            if !is_name(name) {
                let message = "must be a name as git has them, without spaces and not beginning with `-`";
                problems.push(ConfigProblem::at(key, message));
            }
            Some(name.to_owned())
        };
        let remote = name("remote").unwrap_or_else(|| "origin".to_owned());
        let branch = name("branch");
        let seconds = table.number("retain_failed_seconds", 0, RETAIN_SECONDS_MAX, &mut problems);
        if table.get("retain_failed_seconds").is_some() && mode != Mode::Fresh {
            let message = "is for `mode = \"fresh\"` alone: nothing else is removed after a run";
            problems.push(ConfigProblem::at("retain_failed_seconds", message));
        }
        let retain_failed = Duration::from_secs(u64::from(seconds.unwrap_or(RETAIN_SECONDS_DEFAULT)));
        if problems.is_empty() {
            Ok(Self { checkout, mode, remote, branch, retain_failed })
        } else {
            Err(problems)
        }
    }

    /// What it gives, in one phrase.
    pub(super) fn describe(&self) -> String {
        match self.mode {
            Mode::Shared => "in the main checkout".to_owned(),
            Mode::Fresh => "in a fresh checkout".to_owned(),
            Mode::Worktree => "in a worktree of the Work".to_owned(),
        }
    }
}

/// Whether git takes it as the name of a branch or remote, and never as an option or a range.
fn is_name(name: &str) -> bool {
    let forbidden = |c: char| c.is_control() || " ~^:?*[\\".contains(c);
    !name.is_empty()
        && name.len() <= NAME_BYTES_MAX
        && !name.starts_with(['-', '/', '.'])
        && !name.ends_with(['/', '.'])
        && !["..", "//", "@{", "/.", ".lock"].iter().any(|part| name.contains(part))
        && !name.contains(forbidden)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn refuses(config: &Value, paths: &[&str]) {
        let found = Config::parse(config).unwrap_err();
        assert_eq!(found.iter().map(|problem| problem.path.as_str()).collect::<Vec<_>>(), paths, "{found:?}");
        assert!(found.iter().all(|problem| !problem.message.contains("s3cret")), "{found:?}");
    }

    #[test]
    fn parse_takes_what_the_guide_shows_and_fills_in_the_rest() {
        let config = Config::parse(&json!({"checkout": "/srv/site", "mode": "fresh"})).unwrap();
        assert_eq!((config.mode, config.remote.as_str(), config.branch), (Mode::Fresh, "origin", None));
        assert_eq!(config.retain_failed, Duration::from_hours(24));
    }

    #[test]
    fn parse_finds_every_problem_and_repeats_no_value() {
        refuses(&json!({}), &["checkout", "mode"]);
        refuses(&Value::Null, &["checkout", "mode"]);
        refuses(&json!({"checkout": "s3cret", "mode": "s3cret"}), &["checkout", "mode"]);
        let bad = json!({"checkout": "/x", "mode": "fresh", "remote": "--s3cret", "branch": "a..s3cret"});
        refuses(&bad, &["remote", "branch"]);
        refuses(
            &json!({"checkout": "/x", "mode": "shared", "retain_failed_seconds": 5}),
            &["retain_failed_seconds"],
        );
        let near = Config::parse(&json!({"checkout": "/x", "mode": "shared", "remot": "x"})).unwrap_err();
        assert!(near[0].message.contains("`remote`"), "{near:?}");
    }

    #[test]
    fn is_name_takes_names_and_no_options_or_ranges() {
        for name in ["main", "release/1.2", "agent/work_1", "a@b"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "-f", "a..b", "a b", "a:b", "a^", "/a", "a/", "a@{1}", "a\n", ".a", "a/.b", "a.lock"]
        {
            assert!(!is_name(name), "{name}");
        }
    }
}
