//! Secrets: from a reference to its value, at the moment of use and only for who selected it.
//!
//! A value is read late, handed over and forgotten. Only the answer of a command is kept, for a minute, as
//! password managers are slow and may ask a person. Nothing here ever formats a value: errors say which secret
//! could not be read and why, in the words of this module alone.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fmt;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::scope::SecretRef;
use extension::{BoxFuture, Secret, SecretError, Secrets};
use tokio::time::Instant;

/// The most bytes of a secret's value.
pub(crate) const SECRET_BYTES_MAX: usize = 64 * 1024;
/// How long a command may take to print a secret.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a command's answer is used again.
const COMMAND_KEPT: Duration = Duration::from_mins(1);
/// Permission bits of a file that others can read or write.
const OPEN_TO_OTHERS: u32 = 0o077;

/// Reads secrets by reference.
pub(crate) struct SecretReader {
    /// Where relative paths begin.
    home: PathBuf,
    environment: HashMap<OsString, OsString>,
    command_timeout: Duration,
    answers: Mutex<HashMap<String, (Instant, Secret)>>,
}

impl fmt::Debug for SecretReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretReader").field("home", &self.home).finish_non_exhaustive()
    }
}

impl SecretReader {
    /// A reader over an environment. Relative paths begin at `home`.
    pub(crate) fn new(
        home: PathBuf,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Arc<Self> {
        Arc::new(Self {
            home,
            environment: environment.into_iter().collect(),
            command_timeout: COMMAND_TIMEOUT,
            answers: Mutex::new(HashMap::new()),
        })
    }

    /// What one entry or binding may read.
    pub(crate) fn select(self: &Arc<Self>, selected: BTreeMap<String, SecretRef>) -> SelectedSecrets {
        SelectedSecrets { reader: Arc::clone(self), selected }
    }

    /// Reads one secret now.
    ///
    /// # Errors
    /// [`SecretError`] under the given name, without the value or the reference.
    pub(crate) async fn read(&self, name: &str, reference: &SecretRef) -> Result<Secret, SecretError> {
        let read = match reference.0.split_once(':') {
            Some(("env", variable)) => self.variable(variable),
            Some(("file", path)) => self.file(name, path).await,
            Some(("cmd", command)) => self.command(command).await,
            Some(_) | None => Err(Unreadable::Form),
        };
        read.map_err(|reason| SecretError { name: name.to_owned(), reason: reason.to_string() })
    }

    fn variable(&self, variable: &str) -> Result<Secret, Unreadable> {
        let value = self.environment.get(&OsString::from(variable)).ok_or(Unreadable::NoVariable)?;
        usable(value.to_str().ok_or(Unreadable::NotText)?)
    }

    async fn file(&self, name: &str, path: &str) -> Result<Secret, Unreadable> {
        let path = self.home.join(path);
        let (bytes, mode) = tokio::task::spawn_blocking(move || read_file(&path))
            .await
            .map_err(|_panicked| Unreadable::File(std::io::ErrorKind::Other))??;
        if mode & OPEN_TO_OTHERS != 0 {
            tracing::warn!(secret = name, "the file of a secret is open to other users; make its mode 0600");
        }
        usable(std::str::from_utf8(&bytes).map_err(|_source| Unreadable::NotText)?)
    }

    async fn command(&self, command: &str) -> Result<Secret, Unreadable> {
        let now = Instant::now();
        let kept = self.answers.lock().unwrap_or_else(PoisonError::into_inner).get(command).cloned();
        if let Some((read_at, secret)) = kept
            && now.duration_since(read_at) < COMMAND_KEPT
        {
            return Ok(secret);
        }
        let bytes = run(command, &self.home, self.command_timeout).await?;
        let secret = usable(std::str::from_utf8(&bytes).map_err(|_source| Unreadable::NotText)?)?;
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        // Commands come from configurations, which are few; what is too old goes with the next answer.
        answers.retain(|_command, (read_at, _secret)| now.duration_since(*read_at) < COMMAND_KEPT);
        answers.insert(command.to_owned(), (now, secret.clone()));
        Ok(secret)
    }
}

/// The secrets that one entry or binding selected.
#[derive(Clone)]
pub(crate) struct SelectedSecrets {
    reader: Arc<SecretReader>,
    selected: BTreeMap<String, SecretRef>,
}

impl fmt::Debug for SelectedSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.selected.keys()).finish()
    }
}

impl Secrets for SelectedSecrets {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Secret, SecretError>> {
        Box::pin(async move {
            let Some(reference) = self.selected.get(name) else {
                let reason = "it is not among the secrets that were selected".to_owned();
                return Err(SecretError { name: name.to_owned(), reason });
            };
            self.reader.read(name, reference).await
        })
    }
}

/// Why a secret could not be read. No variant holds anything that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum Unreadable {
    #[error("its reference has none of the forms `env:NAME`, `file:PATH` and `cmd:PROGRAM ARGS`")]
    Form,
    #[error("the environment variable is not set for the daemon")]
    NoVariable,
    #[error("the value is empty")]
    Empty,
    #[error("the value is not text")]
    NotText,
    #[error("the value is larger than {SECRET_BYTES_MAX} bytes")]
    TooLarge,
    #[error("its path does not lead to a plain file")]
    NotAFile,
    #[error("the file cannot be read: {0}")]
    File(std::io::ErrorKind),
    #[error("the command cannot be started: {0}")]
    Start(std::io::ErrorKind),
    #[error("the command failed with status {0}")]
    Status(i32),
    #[error("the command was killed by a signal")]
    Signal,
    #[error("the command took longer than it may")]
    Timeout,
}

/// Takes the line's end away that files and commands leave behind.
fn usable(text: &str) -> Result<Secret, Unreadable> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    let text = text.strip_suffix('\r').unwrap_or(text);
    if text.is_empty() {
        return Err(Unreadable::Empty);
    }
    if text.len() > SECRET_BYTES_MAX {
        return Err(Unreadable::TooLarge);
    }
    Ok(Secret::new(text.to_owned()))
}

fn read_file(path: &Path) -> Result<(Vec<u8>, u32), Unreadable> {
    let unreadable = |source: std::io::Error| Unreadable::File(source.kind());
    let metadata = std::fs::metadata(path).map_err(unreadable)?;
    // Opening a pipe would wait for whoever writes to it.
    if !metadata.is_file() {
        return Err(Unreadable::NotAFile);
    }
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let mode = metadata.mode();
    Ok((read_bounded(file).map_err(unreadable)?, mode))
}

/// Reads one byte more than allowed, so that the bound shows.
fn read_bounded(source: impl std::io::Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(SECRET_BYTES_MAX as u64 + 2).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Runs a command without a shell: words are split at spaces, and nothing is expanded.
async fn run(command: &str, home: &Path, timeout: Duration) -> Result<Vec<u8>, Unreadable> {
    let mut words = command.split_whitespace();
    let program = words.next().ok_or(Unreadable::Form)?;
    #[expect(clippy::disallowed_methods, reason = "a configured command that prints a secret")]
    let mut command = Command::new(program);
    command.args(words).current_dir(home).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    // A group of its own, so that what the command starts can be stopped with it.
    command.process_group(0);
    let mut child = command.spawn().map_err(|source| Unreadable::Start(source.kind()))?;
    let group = rustix::process::Pid::from_child(&child);
    let reading = tokio::task::spawn_blocking(move || finish(&mut child));
    match tokio::time::timeout(timeout, reading).await {
        Ok(Ok(finished)) => finished,
        Ok(Err(_panicked)) => Err(Unreadable::Start(std::io::ErrorKind::Other)),
        Err(_elapsed) => {
            // The blocking read ends with the group, and then reaps the child; it needs no one to wait for it.
            if let Err(error) = rustix::process::kill_process_group(group, rustix::process::Signal::KILL) {
                tracing::debug!(%error, "the command of a secret had ended when its time was up");
            }
            Err(Unreadable::Timeout)
        }
    }
}

fn finish(child: &mut Child) -> Result<Vec<u8>, Unreadable> {
    let output = child.stdout.take().expect("the output was asked for as a pipe");
    // The pipe is closed once the bound is read, so a command that prints without end ends by itself.
    let read = read_bounded(output);
    let status = child.wait().map_err(|source| Unreadable::Start(source.kind()))?;
    let bytes = read.map_err(|source| Unreadable::Start(source.kind()))?;
    if bytes.len() > SECRET_BYTES_MAX + 1 {
        return Err(Unreadable::TooLarge);
    }
    match status.code() {
        Some(0) => Ok(bytes),
        Some(code) => Err(Unreadable::Status(code)),
        None => Err(Unreadable::Signal),
    }
}

#[cfg(test)]
mod tests;
