//! What a segment's end means: the command's own `result.json` first, its exit status otherwise.

use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use extension::{
    Artifact, EventType, Key, Outcome, RETRY_HINT_MAX, Registration, Secret, Sequence, TurnResult, Usage,
    UsageLimit, WAIT_TERMS_MAX, WAIT_TIMEOUT_MAX,
};
use launcher::directory::{End, SegmentDirectory, Status, open_plain};
use launcher::redact::Redactor;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::inbox;

/// The command's own statement, in `OS_OUTPUT_DIR`.
const RESULT_FILE: &str = "result.json";
/// The largest statement that is read.
const RESULT_BYTES_MAX: u64 = 64 << 10;
/// The longest status word a statement may declare.
const STATUS_BYTES_MAX: usize = 200;
/// The most units of usage in a statement.
const USAGE_UNITS_MAX: usize = 32;
/// The most artifacts of a segment.
const ARTIFACTS_MAX: usize = 1000;
/// The most directory entries that are looked at for artifacts.
const ENTRIES_MAX: usize = 20_000;
/// How much of the end of the output is searched for the last line.
const TAIL_BYTES: u64 = 64 << 10;
/// The most characters of the last line that become a summary.
const SUMMARY_CHARS_MAX: usize = 200;

/// Judges a segment whose command has ended. Secret values are kept out of every text.
pub(super) fn judge(
    directory: &SegmentDirectory,
    status: Status,
    secrets: &[(String, Secret)],
) -> TurnResult {
    // The command may have deleted or replaced its own output; that does not undo what it did.
    let last_line = last_line(directory).unwrap_or_default();
    let mut result = match status.end {
        End::Exit(0) => TurnResult { summary: last_line, ..TurnResult::of(Outcome::Completed) },
        End::Exit(code) => {
            TurnResult::failed("exit_status", last_line.unwrap_or_else(|| format!("exit status {code}")))
        }
        End::Signal(signal) => {
            TurnResult::failed("signal", last_line.unwrap_or_else(|| format!("ended by signal {signal}")))
        }
    };
    if let End::Exit(code) = status.end {
        result.exit_status = Some(code);
    }
    match read_statement(directory) {
        Ok(Some(statement)) => statement.apply(&mut result, secrets),
        Ok(None) => {}
        Err(reason) => {
            let before = result.summary.take().map(|summary| format!("{summary} ")).unwrap_or_default();
            result.summary = Some(format!("{before}({RESULT_FILE} was ignored: {reason})"));
        }
    }
    if status.timed_out {
        // What it said of its work may be true, but it was not done with it.
        result.outcome = Outcome::Failed;
        result.wait = None;
        result.code = Some("timeout".to_owned());
        result.summary = Some("shell command timed out".to_owned());
    }
    result.artifacts = artifacts(&directory.out());
    result.consumed_inputs = inbox::acknowledged(directory);
    result
}

/// A command's statement about itself. Keys it does not know are left for later versions.
#[derive(Debug, Deserialize)]
struct Statement {
    #[serde(default)]
    outcome: Option<Outcome>,
    #[serde(default)]
    handoff: bool,
    #[serde(default)]
    status: Option<String>,
    #[serde(default)]
    summary: Option<String>,
    #[serde(default)]
    retry_after_seconds: Option<u64>,
    #[serde(default)]
    usage_limit: Option<UsageLimit>,
    #[serde(default)]
    usage: Map<String, Value>,
    #[serde(default)]
    keys: Option<Vec<Key>>,
    #[serde(default)]
    types: Vec<EventType>,
    #[serde(default)]
    timeout_seconds: Option<u64>,
    #[serde(default)]
    after_sequence: Option<Sequence>,
}

/// The status of a command that ends to wait.
const WAITING: &str = "waiting";

impl Statement {
    fn apply(mut self, result: &mut TurnResult, secrets: &[(String, Secret)]) {
        let mut redactor = Redactor::new(secrets.iter().map(|(_name, secret)| secret.expose()));
        let outcome = self.outcome();
        if outcome == Some(Outcome::Waiting) {
            result.wait = Some(Box::new(Registration {
                keys: self.keys.take(),
                types: std::mem::take(&mut self.types),
                after: self.after_sequence,
                timeout_seconds: self.timeout_seconds,
            }));
        }
        match outcome {
            Some(Outcome::Failed) if result.code.is_none() => result.code = Some("declared".to_owned()),
            Some(Outcome::Completed | Outcome::Handoff | Outcome::Waiting) => result.code = None,
            Some(Outcome::Failed) | None => {}
        }
        result.outcome = outcome.unwrap_or(result.outcome);
        if let Some(summary) = self.summary.filter(|summary| !summary.trim().is_empty()) {
            let mut summary = plain(&redactor.text(&summary));
            summary.truncate(summary.floor_char_boundary(TurnResult::SUMMARY_BYTES_MAX));
            result.summary = Some(summary);
        }
        result.retry_after_seconds = self.retry_after_seconds;
        result.usage_limit = self.usage_limit;
        result.status = self.status.map(|status| redactor.text(&status));
        result.usage = self
            .usage
            .iter()
            .filter_map(|(unit, amount)| {
                Some(Usage { unit: unit.clone(), thousandths: thousandths(amount)? })
            })
            .collect();
    }

    /// How it says that it ended.
    fn outcome(&self) -> Option<Outcome> {
        let waits = self.status.as_deref() == Some(WAITING);
        let handoff = self.handoff.then_some(Outcome::Handoff);
        handoff.or(self.outcome).or(waits.then_some(Outcome::Waiting))
    }

    /// What is wrong with it, without repeating it.
    fn problem(&self) -> Option<&'static str> {
        let status_fits = |status: &String| {
            !status.trim().is_empty()
                && status.len() <= STATUS_BYTES_MAX
                && !status.contains(char::is_control)
        };
        if !self.status.as_ref().is_none_or(status_fits) {
            return Some("`status` must be a short word");
        }
        let hint_fits = |seconds: u64| (1..=RETRY_HINT_MAX.as_secs()).contains(&seconds);
        if !self.retry_after_seconds.is_none_or(hint_fits) {
            return Some("`retry_after_seconds` must be from 1 to 604800");
        }
        let says_for_what = self.keys.is_some()
            || !self.types.is_empty()
            || self.timeout_seconds.is_some()
            || self.after_sequence.is_some();
        if says_for_what && self.outcome() != Some(Outcome::Waiting) {
            return Some(
                "`keys`, `types`, `timeout_seconds` and `after_sequence` want `status` to be `waiting`",
            );
        }
        if !self.timeout_seconds.is_none_or(|seconds| (1..=WAIT_TIMEOUT_MAX.as_secs()).contains(&seconds)) {
            return Some("`timeout_seconds` must be from 1 to 34560000");
        }
        if self.keys.as_ref().is_some_and(|keys| keys.len() > WAIT_TERMS_MAX)
            || self.types.len() > WAIT_TERMS_MAX
        {
            return Some("`keys` and `types` have at most 64 entries each");
        }
        if self.usage.len() > USAGE_UNITS_MAX {
            return Some("`usage` has too many units");
        }
        if self.usage.values().any(|amount| thousandths(amount).is_none()) {
            return Some("`usage` must be a table of units and amounts from 0");
        }
        None
    }
}

/// An amount, rounded to thousandths of its unit; `None` when it is no amount.
fn thousandths(amount: &Value) -> Option<i64> {
    /// Beyond this, a double no longer holds every whole number.
    const THOUSANDTHS_MAX: f64 = 9e15;
    let rounded = (amount.as_f64()? * 1000.0).round();
    #[expect(clippy::cast_possible_truncation, reason = "rounded and in range")]
    (0.0..=THOUSANDTHS_MAX).contains(&rounded).then_some(rounded as i64)
}

/// Reads a command's statement. `Ok(None)` when there is none, `Err` when it cannot be used.
fn read_statement(directory: &SegmentDirectory) -> Result<Option<Statement>, String> {
    let path = directory.out().join(RESULT_FILE);
    let unreadable = |error: io::Error| format!("it cannot be read ({error})");
    let Some(file) = open_plain(&path).map_err(unreadable)? else { return Ok(None) };
    let mut bytes = Vec::new();
    file.take(RESULT_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > RESULT_BYTES_MAX {
        return Err(format!("it is larger than {RESULT_BYTES_MAX} bytes"));
    }
    let statement: Statement = serde_json::from_slice(&bytes).map_err(|error| {
        // serde's own message may repeat a value.
        format!("it is not a valid result, at line {} column {}", error.line(), error.column())
    })?;
    match statement.problem() {
        Some(problem) => Err(problem.to_owned()),
        None => Ok(Some(statement)),
    }
}

/// The last line of the output that says something.
fn last_line(directory: &SegmentDirectory) -> io::Result<Option<String>> {
    let Some(mut file) = open_plain(&directory.output())? else { return Ok(None) };
    let size = file.metadata()?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(TAIL_BYTES)))?;
    let mut tail = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut tail)?;
    let text = String::from_utf8_lossy(&tail);
    let mut lines = text.split(['\n', '\r']).rev().map(plain);
    let line = lines.find(|line| !line.is_empty());
    Ok(line.map(|line| line.chars().take(SUMMARY_CHARS_MAX).collect()))
}

/// A text without control characters and without the sequences that color a terminal.
fn plain(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' && chars.next_if_eq(&'[').is_some() {
            // Parameters, then one final letter.
            while chars.next_if(|c| matches!(c, ' '..='?')).is_some() {}
            chars.next_if(|c| matches!(c, '@'..='~'));
        } else if c.is_whitespace() {
            shown.push(' ');
        } else if !c.is_control() {
            shown.push(c);
        }
    }
    shown.trim().to_owned()
}

/// The regular files below the output directory, by path. Links are not followed, and what cannot be read or
/// named in text is left out: no artifact may turn a finished command into a failed one.
fn artifacts(out: &Path) -> Vec<Artifact> {
    let mut found = Vec::new();
    let mut directories = vec![PathBuf::new()];
    let mut n_entries = 0;
    // The command may have put a link in place of the directory itself.
    if !fs::symlink_metadata(out).is_ok_and(|metadata| metadata.is_dir()) {
        return found;
    }
    while let Some(directory) = directories.pop() {
        let Ok(entries) = fs::read_dir(out.join(&directory)) else { continue };
        for entry in entries.flatten() {
            n_entries += 1;
            if n_entries > ENTRIES_MAX || found.len() == ARTIFACTS_MAX {
                break;
            }
            let path = directory.join(entry.file_name());
            // Of the entry itself, not of what a link leads to.
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() {
                directories.push(path);
            } else if let Some(path) = path.to_str().filter(|path| metadata.is_file() && *path != RESULT_FILE)
            {
                found.push(Artifact { path: path.to_owned(), bytes: metadata.len() });
            }
        }
    }
    found.sort_by(|left, right| left.path.cmp(&right.path));
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{plain, thousandths};

    #[test]
    fn plain_drops_colors_and_control_characters() {
        assert_eq!(plain("\u{1b}[1;31mred\u{1b}[0m\tand\u{7} \u{0}blue "), "red and blue");
        assert_eq!(plain("\u{1b}[K"), "");
    }

    #[test]
    fn thousandths_rounds_and_refuses_what_is_no_amount() {
        assert_eq!(thousandths(&json!(0.1234)), Some(123));
        assert_eq!(thousandths(&json!(7)), Some(7000));
        assert_eq!(thousandths(&json!(-1)), None);
        assert_eq!(thousandths(&json!("1")), None);
        assert_eq!(thousandths(&json!(1e300)), None);
    }
}
