//! A binding's own configuration: every problem is found at once, and none repeats a value.

use std::path::PathBuf;
use std::time::Duration;

use extension::ConfigProblem;
use serde_json::Value;

use crate::table::Table;

/// What may stand in a binding's configuration.
const KEYS: [&str; 7] =
    ["command", "argv", "env", "dir", "timeout_seconds", "pass_env", "stop_grace_seconds"];
/// The longest deadline.
const TIMEOUT_SECONDS_MAX: u64 = 30 * 24 * 3600;
/// The longest time between asking a tree to end and killing it.
const STOP_GRACE_SECONDS_MAX: u64 = 3600;
/// That time when the binding does not say.
const STOP_GRACE_SECONDS_DEFAULT: u64 = 10;
/// The kernel takes no longer argument.
const ARGUMENT_BYTES_MAX: usize = (128 << 10) - 1;
/// What the kernel takes as an argument, in words.
const ARGUMENT_FORM: &str = "without NUL and shorter than 128 KiB";
/// The most entries of a list or map.
const ENTRIES_MAX: usize = 1000;
/// The most characters of a command that are shown to people.
const DESCRIPTION_CHARS_MAX: usize = 60;

/// A binding's configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Config {
    /// The program and its arguments.
    pub(super) argv: Vec<String>,
    /// Variables of the binding.
    pub(super) env: Vec<(String, String)>,
    /// The working directory, when it is not the segment's own.
    pub(super) dir: Option<PathBuf>,
    /// The deadline of the tree.
    pub(super) timeout: Option<Duration>,
    /// Names that are passed on from the daemon's environment besides the usual ones.
    pub(super) pass_env: Vec<String>,
    /// How long the tree has between being asked to end and being killed.
    pub(super) stop_grace: Duration,
}

impl Config {
    /// Reads and checks a configuration.
    pub(super) fn parse(config: &Value) -> Result<Self, Vec<ConfigProblem>> {
        let mut problems = Vec::new();
        let table = Table::root(config, &KEYS, &mut problems);
        let mut reader = Reader { table, problems };
        let read = Self {
            argv: reader.argv(),
            env: reader.env(),
            dir: reader.dir(),
            timeout: reader.seconds("timeout_seconds", 1, TIMEOUT_SECONDS_MAX),
            pass_env: reader.pass_env(),
            stop_grace: reader
                .seconds("stop_grace_seconds", 0, STOP_GRACE_SECONDS_MAX)
                .unwrap_or(Duration::from_secs(STOP_GRACE_SECONDS_DEFAULT)),
        };
        if reader.problems.is_empty() { Ok(read) } else { Err(reader.problems) }
    }

    /// What it runs, in one phrase.
    pub(super) fn describe(&self) -> String {
        let words = match self.argv.as_slice() {
            [shell, flag, command] if shell == SHELL && flag == "-c" => command.clone(),
            argv => argv.join(" "),
        };
        let line = words.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        let mut shown: String =
            line.chars().filter(|c| !c.is_control()).take(DESCRIPTION_CHARS_MAX).collect();
        if shown.len() < words.trim().len() {
            shown.push('…');
        }
        format!("runs `{shown}`")
    }

    /// The time between asking and killing that a configuration asks for, however broken the rest of it is:
    /// what was started under it must still be stoppable.
    pub(super) fn stop_grace_of(config: &Value) -> Duration {
        let seconds = config.get("stop_grace_seconds").and_then(Value::as_u64);
        Duration::from_secs(seconds.unwrap_or(STOP_GRACE_SECONDS_DEFAULT).min(STOP_GRACE_SECONDS_MAX))
    }
}

/// What runs a `command`.
const SHELL: &str = "/bin/sh";

struct Reader<'a> {
    table: Table<'a>,
    problems: Vec<ConfigProblem>,
}

impl Reader<'_> {
    fn problem(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.problems.push(ConfigProblem::at(path, message));
    }

    fn argv(&mut self) -> Vec<String> {
        match (self.table.get("command"), self.table.get("argv")) {
            (Some(_), Some(_)) => self.problem("", "give either `command` or `argv`, not both"),
            (None, None) => {
                self.problem(
                    "",
                    "needs `command` (a line for /bin/sh) or `argv` (a list: program and arguments)",
                );
            }
            (Some(command), None) => match command.as_str() {
                Some(line) if !line.trim().is_empty() && is_argument(line) => {
                    return vec![SHELL.to_owned(), "-c".to_owned(), line.to_owned()];
                }
                _unfit => {
                    self.problem("command", format!("must be a text that is not blank, {ARGUMENT_FORM}"));
                }
            },
            (None, Some(_)) => {
                let argv = self.texts("argv", is_argument, ARGUMENT_FORM);
                if argv.first().is_some_and(|program| program.trim().is_empty()) {
                    self.problem("argv[0]", "must be a program");
                }
                return argv;
            }
        }
        Vec::new()
    }

    fn texts(&mut self, key: &str, fits: fn(&str) -> bool, form: &str) -> Vec<String> {
        let mut fitting = Vec::new();
        for (path, text) in self.table.texts(key, &mut self.problems) {
            if fits(text) {
                fitting.push(text.to_owned());
            } else {
                self.problems.push(ConfigProblem::at(path, format!("must be {form}")));
            }
        }
        if fitting.len() > ENTRIES_MAX {
            self.problem(key, format!("must have at most {ENTRIES_MAX} entries"));
        }
        fitting
    }

    fn env(&mut self) -> Vec<(String, String)> {
        let Some(env) = self.table.get("env") else { return Vec::new() };
        let Some(env) = env.as_object().filter(|env| env.len() <= ENTRIES_MAX) else {
            self.problem("env", format!("must be a table of at most {ENTRIES_MAX} variables"));
            return Vec::new();
        };
        let mut variables = Vec::new();
        for (name, value) in env {
            let path = format!("env.{name}");
            if let Err(reason) = check_variable(name) {
                self.problem(path, reason);
            } else if let Some(text) = value.as_str().filter(|text| is_argument(text)) {
                variables.push((name.clone(), text.to_owned()));
            } else {
                self.problem(path, format!("must be a text, {ARGUMENT_FORM}"));
            }
        }
        variables
    }

    fn pass_env(&mut self) -> Vec<String> {
        let fits = |name: &str| check_variable(name).is_ok();
        self.texts("pass_env", fits, "the name of a variable that the runtime does not set itself")
    }

    fn dir(&mut self) -> Option<PathBuf> {
        let dir = self.table.get("dir")?;
        let path = dir.as_str().filter(|text| is_argument(text)).map(PathBuf::from);
        let path = path.filter(|path| path.is_absolute());
        if path.is_none() {
            self.problem("dir", "must be an absolute path");
        }
        path
    }

    fn seconds(&mut self, key: &str, min: u64, max: u64) -> Option<Duration> {
        let value = self.table.get(key)?;
        let seconds = value.as_u64().filter(|seconds| (min..=max).contains(seconds));
        if seconds.is_none() {
            self.problem(key, format!("must be a whole number of seconds from {min} to {max}"));
        }
        seconds.map(Duration::from_secs)
    }
}

/// Whether the kernel takes a text as an argument or the value of a variable.
pub(super) fn is_argument(text: &str) -> bool {
    !text.contains('\0') && text.len() <= ARGUMENT_BYTES_MAX
}

/// Whether a binding may set a variable of that name.
pub(super) fn check_variable(name: &str) -> Result<(), &'static str> {
    let mut bytes = name.bytes();
    let formed = bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !formed {
        return Err("must be a name of letters, digits and `_` that does not begin with a digit");
    }
    if super::environment::is_reserved(name) {
        return Err("the runtime sets this variable itself; choose another name");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::Config;

    #[track_caller]
    fn refused(config: &Value, path: &str, message_part: &str) {
        let problems = Config::parse(config).unwrap_err();
        let found =
            problems.iter().any(|problem| problem.path == path && problem.message.contains(message_part));
        assert!(found, "{problems:?}");
    }

    #[test]
    fn parse_takes_a_command_or_an_argv() {
        let config = Config::parse(&json!({"command": "echo hi"})).unwrap();
        assert_eq!(config.argv, ["/bin/sh", "-c", "echo hi"]);
        assert_eq!(config.stop_grace, Duration::from_secs(10));
        assert_eq!(config.timeout, None);
        assert_eq!(config.describe(), "runs `echo hi`");
        let config = Config::parse(&json!({"argv": ["make", "all"], "timeout_seconds": 5})).unwrap();
        assert_eq!(config.argv, ["make", "all"]);
        assert_eq!(config.timeout, Some(Duration::from_secs(5)));
        let long = json!({"command": "\n  first line\nsecond"});
        assert_eq!(Config::parse(&long).unwrap().describe(), "runs `first line…`");
    }

    #[test]
    fn parse_refuses_what_is_wrong_without_repeating_it() {
        refused(&json!(null), "", "needs `command`");
        refused(&json!({}), "", "needs `command`");
        refused(&json!({"command": "a", "argv": ["a"]}), "", "not both");
        refused(&json!({"command": " "}), "command", "not blank");
        refused(&json!({"command": "a\u{0}b"}), "command", "without NUL");
        refused(&json!({"argv": []}), "argv", "must not be an empty list");
        refused(&json!({"argv": ["a", 3]}), "argv[1]", "must be a text");
        refused(&json!({"command": "a", "comand": "b"}), "comand", "did you mean `command`?");
        refused(&json!({"command": "a", "timeout": 5}), "timeout", "`timeout_seconds`");
        refused(&json!({"command": "a", "timeout_secnds": 5}), "timeout_secnds", "`timeout_seconds`");
        refused(&json!({"command": "a", "timeout_seconds": 0}), "timeout_seconds", "from 1 to");
        refused(&json!({"command": "a", "stop_grace_seconds": 1.5}), "stop_grace_seconds", "whole number");
        refused(&json!({"command": "a", "dir": "relative"}), "dir", "absolute");
        refused(&json!({"command": "a", "env": {"1A": "x"}}), "env.1A", "does not begin with a digit");
        refused(&json!({"command": "a", "env": {"OS_WORK_ID": "x"}}), "env.OS_WORK_ID", "sets this variable");
        refused(&json!({"command": "a", "pass_env": ["A=B"]}), "pass_env[0]", "the name of a variable");
        let secret = json!({"command": "a", "dir": "s3cr3t", "env": {"A": ["s3cr3t"]}, "pass_env": "s3cr3t"});
        for problem in Config::parse(&secret).unwrap_err() {
            assert!(!problem.to_string().contains("s3cr3t"), "{problem}");
        }
    }

    #[test]
    fn parse_finds_every_problem_at_once() {
        let broken = json!({"command": 1, "dir": 1, "env": 1, "timeout_seconds": "x", "nonsense": 1});
        assert_eq!(Config::parse(&broken).unwrap_err().len(), 5);
    }
}
