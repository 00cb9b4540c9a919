//! The environment of a command: built from an allow-list, never inherited.
//!
//! Later sources win: what the daemon passes on, what the binding sets, secrets, and last what the runtime
//! itself says. Nothing of an Event stands here but its type, which is a validated name.

use std::collections::BTreeMap;
use std::path::Path;

use extension::{RunError, RunRequest};
use launcher::directory::SegmentDirectory;
use launcher::process::MARK_VARIABLE;

use super::ShellOptions;
use super::config::{Config, check_variable, is_argument};

/// What is passed on from the daemon's environment; besides these, every `LC_` variable.
const PASSED_ON: [&str; 8] = ["PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "TMPDIR", "SHELL"];

/// What the runtime sets itself.
const RESERVED: [&str; 13] = [
    "OS_INPUT_FILE",
    "OS_OUTPUT_DIR",
    "OS_INBOX_DIR",
    "OS_TRIGGER_TYPE",
    "OS_EXECUTION_ID",
    "OS_WORK_ID",
    "OS_ATTEMPT",
    "OS_RETRY_OF",
    "OS_TOKEN_FILE",
    "OS_SOCKET",
    "OS_WORKSPACE_DIR",
    "OS_WORKSPACE",
    MARK_VARIABLE,
];

/// Where programs are looked for when nothing says so, as shells do.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Whether only the runtime may set that variable.
pub(super) fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

/// This process's environment, as far as it is text.
pub(super) fn of_this_process() -> Vec<(String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// Builds the environment of a command.
pub(super) fn build(
    options: &ShellOptions,
    config: &Config,
    request: &RunRequest,
    directory: &SegmentDirectory,
    mark: &str,
) -> Result<Vec<(String, String)>, RunError> {
    let mut variables: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in &options.environment {
        let passed = PASSED_ON.contains(&name.as_str())
            || name.starts_with("LC_")
            || (config.pass_env.contains(name) && !is_reserved(name));
        if passed {
            variables.insert(name.clone(), value.clone());
        }
    }
    // There is no terminal, and programs that believe in one write control sequences into the log.
    variables.insert("TERM".to_owned(), "dumb".to_owned());
    variables.extend(config.env.iter().cloned());
    for (name, secret) in &request.secrets {
        check_variable(name).map_err(|reason| failed(format!("the secret for `{name}`: {reason}")))?;
        if !is_argument(secret.expose()) {
            return Err(failed(format!(
                "the secret for `{name}` holds a NUL or is too large for a variable"
            )));
        }
        variables.insert(name.clone(), secret.expose().to_owned());
    }
    if let (Some(toolbelt), Some(_token)) = (&options.toolbelt, &request.token) {
        let bin = text(&toolbelt.bin)?;
        let path = variables.get("PATH").map_or(PATH, String::as_str);
        variables.insert("PATH".to_owned(), format!("{bin}:{path}"));
        // Paths, and no secret: whoever may read the environment of a process need not be who may read the file.
        variables.insert("OS_TOKEN_FILE".to_owned(), text(&directory.token())?);
        variables.insert("OS_SOCKET".to_owned(), text(&toolbelt.socket)?);
    }
    let mut say = |name: &str, value: String| variables.insert(name.to_owned(), value);
    say("OS_INPUT_FILE", text(&directory.input())?);
    say("OS_OUTPUT_DIR", text(&directory.out())?);
    say("OS_INBOX_DIR", text(&directory.inbox())?);
    say("OS_EXECUTION_ID", request.execution.to_string());
    say("OS_WORK_ID", request.work.to_string());
    say("OS_ATTEMPT", request.attempt.to_string());
    say(MARK_VARIABLE, mark.to_owned());
    if let Some(workspace) = &request.workspace {
        say("OS_WORKSPACE_DIR", workspace.dir.clone());
        say("OS_WORKSPACE", workspace.summary.clone());
    }
    if let Some(failed) = request.retry_of {
        say("OS_RETRY_OF", failed.to_string());
    }
    if let Some(trigger) = request.inputs.iter().find(|input| input.event.id == request.trigger) {
        say("OS_TRIGGER_TYPE", trigger.event.event_type.to_string());
    }
    Ok(variables.into_iter().collect())
}

/// A path as text; ours are, unless the home's own path is not.
pub(super) fn text(path: &Path) -> Result<String, RunError> {
    let text = path.to_str().ok_or_else(|| failed("the path of the home is not valid UTF-8".to_owned()))?;
    Ok(text.to_owned())
}

fn failed(reason: String) -> RunError {
    RunError::Failed { code: super::SPAWN_FAILED, reason }
}
