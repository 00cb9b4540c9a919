//! Where one drill takes place: its folder, its time, and what it says when a fact does not come about.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::ledger::Ledger;
use super::process;
use super::random::Random;
use crate::error::Error;
use crate::machine::{self, file_error};

/// Between two looks at a fact that is waited for.
const LOOK_INTERVAL: Duration = Duration::from_millis(4);
/// The same where a moment must be hit.
const WATCH_INTERVAL: Duration = Duration::from_micros(200);
/// What a drill asks for when it knows no better.
pub(super) const SOON: Duration = Duration::from_secs(30);
/// The last lines of a daemon's log that an error repeats.
const LOG_LINES: usize = 6;

/// The programs that drills run: copies, so that a build in between changes nothing.
#[derive(Debug, Clone)]
pub(super) struct Programs {
    /// `open-conduit`.
    pub(super) daemon: PathBuf,
    /// This program, which is also the job.
    pub(super) job: PathBuf,
}

/// Where one drill takes place.
#[derive(Debug, Clone)]
pub(super) struct Site {
    /// The drill's name.
    pub(super) name: &'static str,
    /// The database on PostgreSQL that its daemons share; their homes' own when none.
    pub(super) database: Option<String>,
    /// Everything of it lies below.
    pub(super) folder: PathBuf,
    pub(super) programs: Programs,
    /// How often the drill repeats what it does.
    pub(super) rounds: u32,
    pub(super) seed: u64,
    /// The folder of GitHub's own samples, when it is there.
    pub(super) samples: Option<PathBuf>,
    /// When the time of all drills is over.
    pub(super) deadline: Instant,
}

impl Site {
    /// The same place with another database.
    pub(super) fn on(&self, database: String) -> Self {
        Self { database: Some(database), ..self.clone() }
    }

    /// Makes the drill's folder anew.
    pub(super) fn prepare(&self) -> Result<(), Error> {
        match fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(file_error("remove", &self.folder)(error));
            }
            Ok(()) | Err(_) => {}
        }
        for folder in [self.home(), self.other_home(), self.gate()] {
            let mut builder = DirBuilder::new();
            builder.recursive(true).mode(0o700).create(&folder).map_err(file_error("create", &folder))?;
        }
        Ok(())
    }

    /// Chance, repeatable by the seed.
    pub(super) fn random(&self) -> Random {
        Random::new(self.seed, self.name)
    }

    /// The daemon's home.
    pub(super) fn home(&self) -> PathBuf {
        self.folder.join("home")
    }

    /// The home of a second daemon, where two share a database.
    pub(super) fn other_home(&self) -> PathBuf {
        self.folder.join("other")
    }

    /// The folder whose files let jobs go.
    pub(super) fn gate(&self) -> PathBuf {
        self.folder.join("gate")
    }

    /// Lets the job of a delivery go; `all` lets every job go.
    pub(super) fn open_gate(&self, name: &str) -> Result<(), Error> {
        let path = self.gate().join(name);
        fs::write(&path, "").map_err(file_error("write", &path))
    }

    /// What jobs append to. It lies outside of the home, whose disk may be full.
    pub(super) fn ledger(&self) -> Ledger {
        Ledger::at(self.folder.join("ledger"))
    }

    /// What daemons of the drill print.
    pub(super) fn log(&self) -> PathBuf {
        self.folder.join("daemon.log")
    }

    /// The end of that.
    pub(super) fn last_log_lines(&self) -> String {
        let text = fs::read_to_string(self.log()).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LOG_LINES)..].join("\n    ")
    }

    /// Writes the configuration, which the first daemon applies.
    pub(super) fn configure(&self, config: &Value) -> Result<(), Error> {
        for home in [self.home(), self.other_home()] {
            let path = home.join("conduit.json");
            fs::write(&path, format!("{config:#}\n")).map_err(file_error("write", &path))?;
        }
        Ok(())
    }

    /// Waits for a fact, looking again and again, but not beyond the limit or the drills' time.
    pub(super) fn wait<T>(
        &self,
        what: &str,
        limit: Duration,
        done: impl FnMut() -> Option<T>,
    ) -> Result<T, Error> {
        let left = self.deadline.saturating_duration_since(machine::now());
        machine::until_every(LOOK_INTERVAL, limit.min(left), done).ok_or_else(|| {
            let why = if left < limit {
                "before the time for all drills was over".to_owned()
            } else {
                format!("within {limit:?}")
            };
            Error::Drill(format!("{what}: not {why}\n    {}", self.last_log_lines()))
        })
    }

    /// As [`Self::wait`], looking so often that little else has happened when it returns.
    pub(super) fn watch<T>(&self, what: &str, done: impl FnMut() -> Option<T>) -> Result<T, Error> {
        machine::until_every(WATCH_INTERVAL, SOON, done).ok_or_else(|| {
            Error::Drill(format!("{what}: not within {SOON:?}\n    {}", self.last_log_lines()))
        })
    }

    /// Lets time pass: for moments that chance chose and for pauses that are part of a case.
    pub(super) fn pass(&self, time: Duration) {
        let left = self.deadline.saturating_duration_since(machine::now());
        machine::until_every(WATCH_INTERVAL, time.min(left), || None::<()>);
    }

    /// The folder of an attempt's first launch, once the daemon has made it.
    pub(super) fn launch_folder(&self, run: &str) -> PathBuf {
        self.home().join("runs").join(run).join("e1")
    }

    /// The folders of every attempt so far.
    pub(super) fn run_folders(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.home().join("runs"));
        let is_run = |path: &PathBuf| !path.to_string_lossy().contains(process::AHEAD);
        entries
            .map(|entries| entries.flatten().map(|entry| entry.path()).filter(is_run).collect())
            .unwrap_or_default()
    }

    /// Ends whatever still runs of the drill's runs, and forgets its files.
    pub(super) fn clear(&self) {
        self.end_runs();
        fs::remove_dir_all(&self.folder).ok();
    }

    /// Ends whatever still runs of the drill's runs. Only what carries this very home's mark is touched.
    pub(super) fn end_runs(&self) {
        for home in [self.home(), self.other_home()] {
            for process in process::of_home(&home) {
                process::kill_if_there(process.pid);
            }
        }
    }
}

/// Fails unless something holds.
pub(super) fn check(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), Error> {
    if holds { Ok(()) } else { Err(Error::Drill(otherwise())) }
}
