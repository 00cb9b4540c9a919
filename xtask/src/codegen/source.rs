//! What documents are made from: the program, and a daemon that runs while they are made.

use std::fs::{self, DirBuilder, File};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::unreadable;
use crate::error::Error;
use crate::machine::{self, file_error};
use crate::metadata;

/// How long the daemon may take to answer after it was started.
const START_TIME_MAX: Duration = Duration::from_secs(30);
/// What a run counts last.
const LAST_COUNTED: &str = "open_conduit_runs_ended_total{";
/// How long it may be silent within an answer.
const SILENCE_MAX: Duration = Duration::from_secs(20);

/// The program and its daemon. Dropping it ends the daemon.
#[derive(Debug)]
pub(super) struct Source {
    program: PathBuf,
    home: PathBuf,
    daemon: Child,
}

impl Source {
    /// Builds the program and starts a daemon in a new home.
    pub(super) fn open() -> Result<Self, Error> {
        machine::run(machine::cargo().args(["build", "--quiet", "--package", "open-conduit"]))?;
        let target = metadata::members()?.target_directory;
        let program = target.join("debug").join("open-conduit");
        let home = target.join("codegen");
        prepare(&home)?;
        let mut command = machine::command(&program);
        command.arg("serve").arg("--home").arg(&home).env_remove("OPEN_CONDUIT_HOME");
        let log = log(&home);
        let errors = File::create(&log).map_err(file_error("create", &log))?;
        command.stdout(Stdio::null()).stderr(errors);
        let daemon = command.spawn().map_err(|source| machine::start_error(&command, source))?;
        let source = Self { program, home, daemon };
        source.wait_until_it_answers()?;
        source.run_once()?;
        Ok(source)
    }

    /// Lets a run happen, as metrics with labels begin with what they count.
    fn run_once(&self) -> Result<(), Error> {
        let mut emit = machine::command(&self.program);
        emit.args(["events", "emit", "--scope", "main", "--type", "say.hello", "--key-source", "codegen"]);
        emit.args(["--key-external-id", "first", "--wait", "--home"]).arg(&self.home);
        machine::read(&mut emit)?;
        let counted =
            || self.daemon_text("/metrics").is_ok_and(|text| text.contains(LAST_COUNTED)).then_some(());
        machine::until(START_TIME_MAX, counted)
            .ok_or_else(|| unreadable("/metrics", format!("`{LAST_COUNTED}` is not there after a run")))
    }

    fn wait_until_it_answers(&self) -> Result<(), Error> {
        let answers = || {
            let mut status = machine::command(&self.program);
            machine::succeeds(status.arg("status").arg("--home").arg(&self.home)).then_some(())
        };
        machine::until(START_TIME_MAX, answers).ok_or_else(|| {
            unreadable("the daemon", format!("it does not answer; see {}", log(&self.home).display()))
        })
    }

    /// What the program prints.
    pub(super) fn program(&self, arguments: &[&str]) -> Result<String, Error> {
        machine::read(machine::command(&self.program).args(arguments))
    }

    /// What the program prints, as JSON.
    pub(super) fn program_json(&self, arguments: &[&str]) -> Result<Value, Error> {
        let text = self.program(arguments)?;
        serde_json::from_str(&text).map_err(|error| unreadable(&arguments.join(" "), error.to_string()))
    }

    /// What the daemon answers to a GET.
    pub(super) fn daemon_text(&self, path: &str) -> Result<String, Error> {
        let token = self.home.join("token");
        let token = fs::read_to_string(&token).map_err(file_error("read", &token))?;
        let answer = get(&self.home.join("conduit.sock"), path, token.trim());
        let answer = answer.map_err(|error| unreadable(path, error.to_string()))?;
        let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(|| unreadable(path, "it is cut"))?;
        let status = head.lines().next().unwrap_or_default();
        if status.split(' ').nth(1) == Some("200") {
            return Ok(body.to_owned());
        }
        Err(unreadable(path, status))
    }

    /// What the daemon answers to a GET, as JSON.
    pub(super) fn daemon_json(&self, path: &str) -> Result<Value, Error> {
        let text = self.daemon_text(path)?;
        serde_json::from_str(&text).map_err(|error| unreadable(path, error.to_string()))
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        // Both fail when it has ended by itself.
        self.daemon.kill().ok();
        self.daemon.wait().ok();
    }
}

/// What the daemon prints.
fn log(home: &Path) -> PathBuf {
    home.join("daemon.log")
}

/// Makes the home anew, with a configuration that takes no fixed port.
fn prepare(home: &Path) -> Result<(), Error> {
    if home.exists() {
        fs::remove_dir_all(home).map_err(file_error("remove", home))?;
    }
    DirBuilder::new().recursive(true).mode(0o700).create(home).map_err(file_error("create", home))?;
    let config = json!({
        "daemon": { "api_listen": "127.0.0.1:0", "webhook_listen": "off" },
        "scopes": [{
            "name": "main",
            "bindings": [{ "name": "hello", "executor": "shell", "config": { "argv": ["true"] } }],
            "routes": [{ "name": "manual", "handler": "manual", "binding": "hello" }],
        }],
    });
    let path = home.join("conduit.json");
    fs::write(&path, config.to_string()).map_err(file_error("write", &path))
}

/// The whole answer. In the older version of the protocol it ends with the connection and is in one piece.
fn get(socket: &Path, path: &str, token: &str) -> std::io::Result<String> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(SILENCE_MAX))?;
    stream.set_write_timeout(Some(SILENCE_MAX))?;
    let request = format!("GET {path} HTTP/1.0\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
