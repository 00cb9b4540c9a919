//! The job that drills let the daemon run: it writes what it was given into the ledger, then does as told.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::ledger::Ledger;
use crate::error::Error;
use crate::machine::{self, file_error};
use crate::output;

/// How long a job waits to be let go, at most.
const GATE_TIME_MAX: Duration = Duration::from_mins(10);
/// What a job emits under the authority that it began with, and under what it has when it is let go.
pub(super) const STALE: &str = "drill.stale";
pub(super) const CALLED: &str = "drill.called";
/// How long a call is made again that may be taken later, in seconds.
const PATIENCE_SHORT: &str = "1";
const PATIENCE_LONG: &str = "60";
/// Between two lines of output.
const LINE_INTERVAL: Duration = Duration::from_millis(25);

/// What stands after `drill-job`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The ledger
    ledger: PathBuf,
    /// In a first attempt, wait until this folder has a file named after the first delivery, or one named `all`
    #[arg(long)]
    gate: Option<PathBuf>,
    /// Print so many lines, with pauses
    #[arg(long, default_value_t = 0)]
    lines: u32,
    /// End a first attempt in a Wait for Events of this type
    #[arg(long, value_name = "TYPE")]
    parks: Option<String>,
    /// End that Wait by itself after so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    timeout: u64,
    /// Fail a first attempt, and ask for the next one after so many seconds
    #[arg(long, value_name = "SECONDS")]
    fails: Option<u64>,
    /// Emit an Event when let go, by a call under the authority that the attempt began with, and by one under what it
    /// has by then
    #[arg(long)]
    calls: bool,
    /// Try what only an operator may, at this socket
    #[arg(long)]
    trespass: Option<PathBuf>,
}

/// Appends the deliveries that the attempt was given to the ledger, each on a line.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    let deliveries = deliveries()?;
    let names = deliveries.iter().map(String::as_str);
    Ledger::append(&arguments.ledger, names).map_err(file_error("append to", &arguments.ledger))?;
    if let Some(socket) = &arguments.trespass {
        super::trespass::try_everything(socket)?;
    }
    let first_token = arguments.calls.then(keep_token).transpose()?;
    for number in 0..arguments.lines {
        output::line(&line(number));
        // A pause, so that there is a middle to be interrupted in.
        machine::until(LINE_INTERVAL, || None::<()>);
    }
    let is_first = env::var("OS_ATTEMPT").as_deref() == Ok("1");
    if !is_first {
        return Ok(());
    }
    if let (Some(gate), Some(delivery)) = (&arguments.gate, deliveries.first()) {
        let open = || [delivery.as_str(), "all"].iter().any(|name| gate.join(name).exists());
        machine::until(GATE_TIME_MAX, || open().then_some(()))
            .ok_or_else(|| Error::Drill("nobody let the job go".to_owned()))?;
    }
    if let Some(first_token) = first_token {
        call(STALE, Some(&first_token), PATIENCE_SHORT)?;
        if !call(CALLED, None, PATIENCE_LONG)? {
            return Err(Error::Drill("a call under the present authority was refused".to_owned()));
        }
    }
    statement(arguments).map_or(Ok(()), |statement| declare(&statement))
}

/// Keeps the token that the attempt has now, in a file of its own.
fn keep_token() -> Result<PathBuf, Error> {
    let token = PathBuf::from(variable("OS_TOKEN_FILE")?);
    let kept = Path::new(&variable("OS_OUTPUT_DIR")?).join("first-token");
    fs::copy(&token, &kept).map_err(file_error("copy", &token))?;
    Ok(kept)
}

/// Emits an Event of a type by a call of that name. Whether it was taken.
fn call(event_type: &str, token: Option<&Path>, patience: &str) -> Result<bool, Error> {
    let mut command = machine::command("os");
    command.args(["emit", "--type", event_type, "--call", event_type, "--patience", patience]);
    if let Some(token) = token {
        command.env("OS_TOKEN_FILE", token);
    }
    let status = command.status().map_err(|source| machine::start_error(&command, source))?;
    Ok(status.success())
}

/// What a first attempt says of its end, unless that it is done.
fn statement(arguments: &Arguments) -> Option<Value> {
    let parks = arguments.parks.as_ref().map(
        |awaited| json!({ "status": "waiting", "types": [awaited], "timeout_seconds": arguments.timeout }),
    );
    let fails = || {
        let seconds = arguments.fails?;
        Some(json!({ "outcome": "failed", "retry_after_seconds": seconds }))
    };
    parks.or_else(fails)
}

/// Says it, whole or not at all: the daemon may look at any moment.
fn declare(statement: &Value) -> Result<(), Error> {
    let folder = variable("OS_OUTPUT_DIR")?;
    let (folder, name) = (Path::new(&folder), "result.json");
    let draft = folder.join("result.draft");
    fs::write(&draft, statement.to_string()).map_err(file_error("write", &draft))?;
    fs::rename(&draft, folder.join(name)).map_err(file_error("rename", &draft))
}

fn variable(name: &str) -> Result<std::ffi::OsString, Error> {
    env::var_os(name).ok_or_else(|| Error::Drill(format!("{name} is not set")))
}

/// A line of output.
pub(super) fn line(number: u32) -> String {
    format!("line {number:04}")
}

fn deliveries() -> Result<Vec<String>, Error> {
    let path = variable("OS_INPUT_FILE")?;
    let path = Path::new(&path);
    let text = fs::read_to_string(path).map_err(file_error("read", path))?;
    let input: Value = serde_json::from_str(&text).map_err(|error| Error::Drill(error.to_string()))?;
    let inputs = input["inputs"].as_array().filter(|inputs| !inputs.is_empty());
    inputs
        .and_then(|inputs| {
            // What an earlier attempt took in is told again as context, and is in the ledger already.
            let new = inputs.iter().filter(|input| input["context"] != true);
            new.map(|input| input["delivery_id"].as_str().map(str::to_owned)).collect()
        })
        .ok_or_else(|| Error::Drill("the input file names no deliveries".to_owned()))
}
