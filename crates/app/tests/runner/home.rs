//! A home of a test, the commands that are run in it and the daemon that may serve it.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// How long anything that is waited for may take. It is long: the machine may be busy.
const DEADLINE: Duration = Duration::from_mins(1);
/// How long to pause between two looks at something that only looking tells.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A home in a directory that goes away with it.
pub(super) struct Home {
    directory: TempDir,
}

/// What a command printed and how it ended.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) code: i32,
    pub(super) out: String,
    pub(super) err: String,
}

impl Ran {
    pub(super) fn of(output: Output) -> Self {
        Self {
            code: output.status.code().expect("a command ends by itself"),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// What it printed, when it ended with this code.
    #[track_caller]
    pub(super) fn code(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}{}", self.out, self.err);
        self
    }

    /// The one object it printed, when it ended well.
    #[track_caller]
    pub(super) fn object(self) -> Value {
        let ran = self.code(0);
        assert_eq!(ran.out.lines().count(), 1, "{}", ran.out);
        serde_json::from_str(&ran.out).unwrap()
    }

    /// The problem it printed to standard error.
    #[track_caller]
    pub(super) fn problem(self) -> Value {
        serde_json::from_str(&self.err).unwrap_or_else(|error| panic!("{error}: {}", self.err))
    }
}

impl Home {
    /// A home without anything in it, not even the directory.
    pub(super) fn empty() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    /// A home whose routes each take one type of Event: `say.hello` is answered, `do.fail` fails, `do.slow` runs
    /// until [`Home::open_gate`].
    pub(super) fn usual() -> Self {
        let home = Self::empty();
        home.configure(&home.usual_config());
        home
    }

    /// The configuration of [`Home::usual`].
    pub(super) fn usual_config(&self) -> String {
        let mut config = "[daemon]\napi_listen = \"127.0.0.1:0\"\nwebhook_listen = \"127.0.0.1:0\"\n\n\
                          [[scopes]]\nname = \"main\"\n"
            .to_owned();
        let gate = self.gate();
        // A run whose test is over, and its folder gone, must not go on for ever.
        let (folder, gate) = (self.directory.path().display(), gate.display());
        let wait = format!("while [ -d {folder} ] && [ ! -e {gate} ]; do sleep 0.02; done");
        let slow = format!("echo begun; {wait}; echo ended");
        for (name, event_type, script) in [
            ("hello", "say.hello", "echo hello; cat \"$OS_INPUT_FILE\" >/dev/null"),
            ("fail", "do.fail", "echo oops >&2; exit 3"),
            ("slow", "do.slow", &slow),
        ] {
            let script = script.replace('"', "\\\"");
            write!(
                config,
                "\n[[scopes.bindings]]\nname = \"{name}\"\nexecutor = \"shell\"\n\
                 config = {{ argv = [\"sh\", \"-c\", \"{script}\"] }}\n\
                 [[scopes.routes]]\nname = \"{name}\"\nhandler = \"match\"\nbinding = \"{name}\"\n\
                 config = {{ types = [\"{event_type}\"] }}\n"
            )
            .unwrap();
        }
        config
    }

    pub(super) fn path(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    /// A file beside the home.
    pub(super) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    pub(super) fn configure(&self, text: &str) {
        std::fs::create_dir_all(self.path()).unwrap();
        let closed = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o700);
        std::fs::set_permissions(self.path(), closed).unwrap();
        std::fs::write(self.path().join("conduit.toml"), text).unwrap();
    }

    pub(super) fn gate(&self) -> PathBuf {
        self.directory.path().join("gate")
    }

    /// Lets every run of `do.slow` end.
    pub(super) fn open_gate(&self) {
        std::fs::write(self.gate(), "").unwrap();
    }

    /// The binary, in an environment that has nothing of the developer's.
    #[expect(clippy::disallowed_methods, reason = "what is tested is a program")]
    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_open-conduit"));
        command
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.directory.path())
            .env("OPEN_CONDUIT_HOME", self.path())
            .current_dir(self.directory.path())
            .stdin(Stdio::null());
        command
    }

    /// Runs a command to its end.
    pub(super) fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.command(arguments).output().unwrap())
    }

    /// Runs a command with this on its standard input.
    pub(super) fn run_with(&self, arguments: &[&str], input: &str) -> Ran {
        let mut command = self.command(arguments);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        Ran::of(child.wait_with_output().unwrap())
    }

    /// Runs a command with `--json` and gives the object it printed.
    #[track_caller]
    pub(super) fn json(&self, arguments: &[&str]) -> Value {
        self.run(&[arguments, &["--json"]].concat()).object()
    }

    /// Sends an Event of this type with a key of its own and waits for its run.
    #[track_caller]
    pub(super) fn emit(&self, event_type: &str, key: &str) -> Value {
        self.json(&emit(event_type, key))
    }

    /// Starts the daemon and waits until it takes requests.
    pub(super) fn serve(&self) -> Served {
        let mut served = Served::spawn(self.command(&["serve", "--json"]));
        served.places = served.line();
        served
    }
}

/// The words of an `events emit`.
pub(super) fn emit<'a>(event_type: &'a str, key: &'a str) -> Vec<&'a str> {
    let words = ["events", "emit", "--scope", "main", "--type", event_type, "--key-source", "test"];
    [&words[..], &["--key-external-id", key]].concat()
}

/// A command that stays, such as a daemon. It is killed when the test ends.
pub(super) struct Served {
    child: Child,
    out: BufReader<ChildStdout>,
    /// Where things are, as the daemon said.
    pub(super) places: Value,
}

impl Served {
    pub(super) fn spawn(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Self { child, out, places: Value::Null }
    }

    /// The next line it prints, which is JSON.
    pub(super) fn line(&mut self) -> Value {
        let text = self.text_line();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// The next line it prints.
    pub(super) fn text_line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "it ended: {:?}", self.child.try_wait());
        line
    }

    /// What it prints up to and including a line.
    pub(super) fn text_until(&mut self, last: &str) -> String {
        let mut text = String::new();
        while !text.lines().last().is_some_and(|line| line.contains(last)) {
            text.push_str(&self.text_line());
        }
        text
    }

    /// Presses Ctrl-C, and waits for the end.
    pub(super) fn interrupt(self) -> i32 {
        self.signal(Signal::INT);
        self.end()
    }

    /// Kills it.
    pub(super) fn kill(self) {
        self.signal(Signal::KILL);
        let mut served = self;
        served.child.wait().unwrap();
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Waits for its end and gives its exit code.
    pub(super) fn end(mut self) -> i32 {
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).unwrap();
        self.child.wait().unwrap().code().expect("it ends by itself")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Looks until something is there. Each look is a whole command or a file; nothing tells when to look.
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "other processes can only be looked at")]
pub(super) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < DEADLINE, "{what} did not happen");
        std::thread::sleep(LOOK_EVERY);
    }
}

/// The text of a field.
#[track_caller]
pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_else(|| panic!("no text at {pointer}: {object}"))
}

/// A file of the repository.
pub(super) fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}
