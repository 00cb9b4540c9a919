//! One driver and its one Chromium, with files of their own, both gone when the test ends.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::webdriver::{self, Refused};

/// What makes a Chromium quiet, alone and the same everywhere.
const ARGUMENTS: &[&str] = &[
    "--headless=new",
    // Chromium ends when this pipe does, so it never outlives a driver that was killed.
    "--remote-debugging-pipe",
    // The tests run as root in a container, where the sandbox can't.
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--no-first-run",
    "--no-proxy-server",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--hide-scrollbars",
    "--font-render-hinting=none",
    "--force-device-scale-factor=1",
    "--lang=en-US",
];
/// How the driver says that it is ready, before its port.
const READY: &str = "started successfully on port ";

/// Whether pages may run scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scripts {
    On,
    Off,
}

/// A browser with one window.
pub(super) struct Chromium {
    driver: Child,
    port: u16,
    session: String,
    /// The profile and whatever else the two write.
    _files: TempDir,
}

/// Whether a person has left Chromium out; the test says so.
pub(super) fn is_left_out() -> bool {
    let without = std::env::var("OPEN_CONDUIT_TEST_WITHOUT").unwrap_or_default();
    let left_out = without.split(',').any(|name| name == "chromium");
    if left_out {
        println!("left out: OPEN_CONDUIT_TEST_WITHOUT={without}");
    }
    left_out
}

impl Chromium {
    pub(super) fn start(scripts: Scripts) -> Self {
        let files = tempfile::tempdir().unwrap();
        let mut driver = driver_command(files.path()).spawn().expect("setpriv is part of every Debian");
        let port = ready_port(&mut driver);
        let mut chromium = Self { driver, port, session: String::new(), _files: files };
        let answer = webdriver::command(port, "POST", "/session", Some(&capabilities(scripts)))
            .unwrap_or_else(|refused| panic!("Chromium did not start: {}", refused.message));
        chromium.session = answer["sessionId"].as_str().expect("a session has an id").to_owned();
        chromium
    }

    /// Sends a command of this session.
    pub(super) fn post(&self, path: &str, body: &Value) -> Result<Value, Refused> {
        webdriver::command(self.port, "POST", &self.path(path), Some(body))
    }

    pub(super) fn get(&self, path: &str) -> Result<Value, Refused> {
        webdriver::command(self.port, "GET", &self.path(path), None)
    }

    /// Sends a command of Chromium's own protocol, for what the driver has no words.
    pub(super) fn devtools(&self, command: &str, parameters: &Value) -> Value {
        let body = json!({"cmd": command, "params": parameters});
        self.post("/goog/cdp/execute", &body)
            .unwrap_or_else(|refused| panic!("{command} was refused: {}", refused.message))
    }

    fn path(&self, path: &str) -> String {
        format!("/session/{}{path}", self.session)
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        // The driver waits for its Chromium, so nothing is left to be reaped. Then whatever still hangs is killed.
        if !self.session.is_empty() {
            // It may be what hangs, and a test that fails must not fail once more here.
            drop(webdriver::exchange(self.port, "DELETE", &self.path(""), None));
        }
        let group = Pid::from_raw(i32::try_from(self.driver.id()).unwrap()).unwrap();
        // Nobody may be left in it.
        kill_process_group(group, Signal::KILL).ok();
        drop(self.driver.wait());
    }
}

/// The driver in a process group of its own, which the kernel ends with this process, however that ends.
#[expect(clippy::disallowed_methods, reason = "what is used is a program")]
fn driver_command(files: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command
        .args(["--pdeathsig", "KILL", "chromedriver", "--port=0"])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", files)
        .env("TMPDIR", files)
        .env("TZ", "UTC")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0);
    command
}

fn ready_port(driver: &mut Child) -> u16 {
    let out = BufReader::new(driver.stdout.take().expect("its output is piped"));
    let port = out.lines().map_while(Result::ok).find_map(|line| {
        let (_, port) = line.split_once(READY)?;
        port.trim_end_matches('.').parse().ok()
    });
    port.unwrap_or_else(|| {
        panic!(
            "ChromeDriver did not start; install it with `apt-get install chromium chromium-driver \
             fonts-dejavu-core`, or set OPEN_CONDUIT_TEST_WITHOUT=chromium to leave these tests out"
        )
    })
}

fn capabilities(scripts: Scripts) -> Value {
    let allow = 1;
    let block = 2;
    let javascript = match scripts {
        Scripts::On => allow,
        Scripts::Off => block,
    };
    json!({"capabilities": {"alwaysMatch": {
        "browserName": "chrome",
        "goog:chromeOptions": {
            "args": ARGUMENTS,
            "prefs": {"profile.managed_default_content_settings.javascript": javascript},
        },
        "goog:loggingPrefs": {"browser": "ALL"},
        // A dialog stays, so that the test sees it.
        "unhandledPromptBehavior": "ignore",
    }}})
}
