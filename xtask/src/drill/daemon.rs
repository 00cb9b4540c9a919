//! The daemon under drill: a real process, started, suspended and killed from outside.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use super::api::Api;
use super::delivery::SECRET;
use super::process;
use super::site::{SOON, Site, check};
use crate::error::Error;
use crate::machine::{self, file_error};

/// The variable that names the database, where it is not the home's own.
const DATABASE_VARIABLE: &str = "OPEN_CONDUIT_DATABASE";
/// How long a daemon may take to stop by itself.
const STOP_TIME_MAX: Duration = Duration::from_secs(20);

/// A daemon's process. Dropping it kills it.
#[derive(Debug)]
pub(super) struct Daemon<'s> {
    site: &'s Site,
    home: PathBuf,
    child: Child,
}

impl<'s> Daemon<'s> {
    /// The command that starts a daemon in the drill's home.
    pub(super) fn command(site: &Site) -> Command {
        Self::command_in(site, &site.home())
    }

    fn command_in(site: &Site, home: &Path) -> Command {
        let mut command = machine::command(&site.programs.daemon);
        command.arg("serve").arg("--home").arg(home).env("DRILL_SECRET", SECRET);
        command.env_remove("OPEN_CONDUIT_HOME").env_remove(DATABASE_VARIABLE);
        command.envs(site.database.iter().map(|database| (DATABASE_VARIABLE, database)));
        command
    }

    /// Starts a daemon and does not wait for it.
    pub(super) fn spawn(site: &'s Site) -> Result<Self, Error> {
        Self::spawn_in(site, site.home())
    }

    fn spawn_in(site: &'s Site, home: PathBuf) -> Result<Self, Error> {
        let path = site.log();
        let log =
            OpenOptions::new().append(true).create(true).open(&path).map_err(file_error("open", &path))?;
        let errors = log.try_clone().map_err(file_error("open", &path))?;
        let mut command = Self::command_in(site, &home);
        command.stdout(Stdio::from(log)).stderr(Stdio::from(errors));
        let child = command.spawn().map_err(|source| machine::start_error(&command, source))?;
        Ok(Self { site, home, child })
    }

    /// Starts a daemon and waits until it answers.
    pub(super) fn start(site: &'s Site) -> Result<(Self, Api), Error> {
        Self::start_in(site, site.home())
    }

    /// As [`Self::start`], in a home that is not the usual one.
    pub(super) fn start_in(site: &'s Site, home: PathBuf) -> Result<(Self, Api), Error> {
        let mut daemon = Self::spawn_in(site, home)?;
        let api = daemon.wait_until_ready()?;
        Ok((daemon, api))
    }

    /// Waits until it answers.
    pub(super) fn wait_until_ready(&mut self) -> Result<Api, Error> {
        let home = self.home.clone();
        let answer = self.site.wait("a started daemon answers", SOON, || {
            match self.child.try_wait() {
                Ok(None) => {}
                Ok(Some(status)) => return Some(Err(status)),
                Err(_) => return None,
            }
            Api::at(&home).filter(Api::is_healthy).map(Ok)
        })?;
        answer.map_err(|status| {
            Error::Drill(format!("the daemon ended ({status})\n    {}", self.site.last_log_lines()))
        })
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it still runs.
    pub(super) fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Kills it, as a loss of memory or a person would, and waits until it is gone.
    pub(super) fn kill(mut self) -> Result<(), Error> {
        let ended = self.child.kill().and_then(|()| self.child.wait());
        ended.map_err(|error| Error::Drill(format!("the daemon could not be waited for: {error}")))?;
        Ok(())
    }

    /// Asks it to stop and waits until it has.
    pub(super) fn stop(mut self) -> Result<ExitStatus, Error> {
        process::signal(self.pid(), "TERM")?;
        let site = self.site;
        let status =
            site.wait("a daemon stops when asked", STOP_TIME_MAX, || self.child.try_wait().ok().flatten())?;
        check(status.success(), || format!("a daemon that was asked to stop ended with {status}"))?;
        Ok(status)
    }

    /// Suspends it, and returns once it stands still.
    pub(super) fn suspend(&self) -> Result<(), Error> {
        process::signal(self.pid(), "STOP")?;
        self.site
            .wait("a suspended daemon stands still", SOON, || process::is_suspended(self.pid()).then_some(()))
    }

    /// Lets it go on.
    pub(super) fn resume(&self) -> Result<(), Error> {
        process::signal(self.pid(), "CONT")
    }
}

impl Drop for Daemon<'_> {
    fn drop(&mut self) {
        // Both fail when it has been waited for already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
