//! What became of a segment that another daemon launched, and the end of one that must not go on.
//!
//! Two questions, in this order. Did it start? The verdict says so, and when nobody has said anything yet we
//! say `void`. Does it still run? Only an identity answers that, and only on the machine it belongs to.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use extension::{Epoch, EventId, ExecutionId, Injected, Injection, Recovery, Segment, Stopped, TurnResult};
use launcher::directory::{SegmentDirectory, Verdict};
use launcher::process::{Machine, Survivors, Tree, send, wait_readable};
use rustix::process::Signal;

use super::config::Config;
use super::handle::Handle;
use super::inbox::{self, Delivered};
use super::judge::judge;
use super::root::Root;

/// How long a launcher may take to end after its tree has. It has a small file to write.
const LAUNCHER_END_TIME_MAX: Duration = Duration::from_secs(5);

/// What is known about processes here.
#[derive(Debug)]
pub(super) struct Site {
    /// Where segments lie.
    pub(super) root: Root,
    /// Where this daemon runs.
    pub(super) machine: Machine,
}

/// Where a segment's processes are, seen from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Pids mean the same here.
    Here,
    /// On an earlier boot: nothing of it lives.
    EarlierBoot,
    /// In another pid namespace of this boot, which cannot be looked into.
    OtherNamespace,
}

impl Site {
    fn place(&self, machine: &Machine) -> Place {
        if machine.boot != self.machine.boot {
            Place::EarlierBoot
        } else if machine.pid_namespace == self.machine.pid_namespace {
            Place::Here
        } else {
            Place::OtherNamespace
        }
    }

    /// Finds out what became of a segment. It starts nothing.
    pub(super) fn recover(&self, segment: &Segment) -> io::Result<Recovery> {
        let Some(bytes) = &segment.handle else { return self.recover_unpinned(segment) };
        let Some(handle) = Handle::from_bytes(bytes) else {
            let reason = "its handle was written by another version of this program";
            return self.not_adoptable(segment.execution, reason, Place::Here);
        };
        let directory = self.root.segment(segment.execution, handle.epoch);
        if !directory.path().is_dir() {
            // Released, or lost with the power before the verdict could be: it must count as started.
            return self.not_adoptable(
                segment.execution,
                "its directory is gone",
                self.place(&handle.machine),
            );
        }
        match directory.decide(Verdict::Void)? {
            Verdict::Void => {
                self.end_held(segment.execution)?;
                Ok(Recovery::NothingStarted)
            }
            Verdict::Start => self.recover_started(segment, &handle, &directory),
        }
    }

    /// Without a handle nothing was let begin: the word is given only after the handle is durable, and under
    /// an epoch that no longer is in force none becomes durable any more.
    fn recover_unpinned(&self, segment: &Segment) -> io::Result<Recovery> {
        let mut started = false;
        for (_, directory) in self.launches(segment.execution, |epoch| epoch < segment.epoch)? {
            started |= directory.decide(Verdict::Void)? == Verdict::Start;
        }
        if started {
            // Such as after the database was put back from a copy.
            let reason = "it was started, but the runtime has no record of that";
            return self.not_adoptable(segment.execution, reason, Place::Here);
        }
        self.end_held(segment.execution)?;
        Ok(Recovery::NothingStarted)
    }

    fn launches(
        &self,
        execution: ExecutionId,
        wanted: impl Fn(Epoch) -> bool,
    ) -> io::Result<Vec<(Epoch, SegmentDirectory)>> {
        let mut launches = self.root.segments(execution)?;
        launches.retain(|(epoch, _)| wanted(*epoch));
        Ok(launches)
    }

    fn recover_started(
        &self,
        segment: &Segment,
        handle: &Handle,
        directory: &SegmentDirectory,
    ) -> io::Result<Recovery> {
        let place = self.place(&handle.machine);
        if place == Place::Here && self.open_launcher(handle)?.is_some() {
            if let Some(token) = &segment.token {
                // A command that has deleted its own directory goes on without calls.
                let _left_without = directory.write_token(token.expose());
            }
            return Ok(Recovery::Alive);
        }
        // After the look at the launcher: it writes the status before it ends.
        if let Some(status) = directory.status()? {
            if place == Place::Here {
                // It may have been killed while it ended what the command left running.
                let _survivors = self.end_tree(segment.execution, None, stop_grace(segment))?;
            }
            return Ok(Recovery::Finished(judge(directory, status, &segment.secrets)));
        }
        let reason = match place {
            Place::Here => "its launcher ended before the command did",
            Place::EarlierBoot => "the machine was started again since",
            Place::OtherNamespace => "it was launched in another pid namespace, which cannot be looked into",
        };
        self.not_adoptable(segment.execution, reason, place)
    }

    fn not_adoptable(&self, execution: ExecutionId, reason: &str, place: Place) -> io::Result<Recovery> {
        let stopped = match place {
            // Its authority is lost and nobody follows it: there is nothing that a grace could save.
            Place::Here => self.end_tree(execution, None, Duration::ZERO)?.is_ok(),
            Place::EarlierBoot => true,
            Place::OtherNamespace => false,
        };
        Ok(Recovery::NotAdoptable { reason: reason.to_owned(), stopped })
    }

    /// The launcher of a handle, when it is alive.
    fn open_launcher(&self, handle: &Handle) -> io::Result<Option<OwnedFd>> {
        match self.place(&handle.machine) {
            Place::Here => handle.launcher.open(),
            Place::EarlierBoot | Place::OtherNamespace => Ok(None),
        }
    }

    /// Ends launchers that hold a command, and what they hold. Their launch is void: they have done nothing.
    fn end_held(&self, execution: ExecutionId) -> io::Result<()> {
        let mark = self.root.mark(execution);
        // Whether or not that succeeds, what is held can only stand down.
        let _survivors = Tree { launcher: None, mark: &mark }.kill()?;
        Ok(())
    }

    fn end_tree(
        &self,
        execution: ExecutionId,
        handle: Option<&Handle>,
        grace: Duration,
    ) -> io::Result<Result<(), Survivors>> {
        let mark = self.root.mark(execution);
        let launcher = match handle {
            Some(handle) => self.open_launcher(handle)?.map(|process| (handle.launcher, process)),
            None => None,
        };
        let Some((identity, process)) = launcher else {
            return Tree { launcher: None, mark: &mark }.stop(grace);
        };
        if let Err(survivors) = (Tree { launcher: Some(identity), mark: &mark }).stop(grace)? {
            return Ok(Err(survivors));
        }
        // With its tree gone it records the end and ends itself.
        if !wait_readable(&[process.as_fd()], Some(LAUNCHER_END_TIME_MAX))?[0] {
            send(&process, Signal::KILL)?;
        }
        Tree { launcher: None, mark: &mark }.kill()
    }

    /// Stops everything of a segment.
    pub(super) fn stop(&self, segment: &Segment) -> io::Result<Stopped> {
        for (_, directory) in self.launches(segment.execution, |epoch| epoch <= segment.epoch)? {
            // What has not started must not start behind our back; what has, is ended below.
            if directory.decide(Verdict::Void)? == Verdict::Start {
                directory.note_stopping()?;
            }
        }
        let handle = segment.handle.as_deref().and_then(Handle::from_bytes);
        match handle.as_ref().map_or(Place::Here, |handle| self.place(&handle.machine)) {
            Place::Here => {}
            Place::EarlierBoot => return Ok(Stopped::Confirmed),
            Place::OtherNamespace => return self.stop_elsewhere(segment, handle.as_ref()),
        }
        Ok(match self.end_tree(segment.execution, handle.as_ref(), stop_grace(segment))? {
            Ok(()) => Stopped::Confirmed,
            Err(Survivors(count)) => {
                let reason = format!("{count} of its processes did not end, even when killed");
                Stopped::Unverifiable { reason }
            }
        })
    }

    /// In another namespace only the verdict can tell that nothing runs.
    fn stop_elsewhere(&self, segment: &Segment, handle: Option<&Handle>) -> io::Result<Stopped> {
        if let Some(handle) = handle {
            let directory = self.root.segment(segment.execution, handle.epoch);
            if directory.verdict()? == Some(Verdict::Void) {
                return Ok(Stopped::Confirmed);
            }
        }
        let reason = "it was launched in another pid namespace, which cannot be looked into".to_owned();
        Ok(Stopped::Unverifiable { reason })
    }

    /// What a launch came to whose launcher has ended.
    pub(super) fn settle(&self, segment: &Segment, epoch: Epoch) -> io::Result<Settled> {
        let directory = self.root.segment(segment.execution, epoch);
        match directory.verdict()? {
            Some(Verdict::Start) => {}
            Some(Verdict::Void) => return Ok(Settled::Voided),
            // A launcher that ended without a verdict makes none any more; now nobody does.
            None => {
                let _holds = directory.decide(Verdict::Void)?;
                return Ok(Settled::LauncherLost);
            }
        }
        if let Some(status) = directory.status()? {
            return Ok(Settled::Ended(judge(&directory, status, &segment.secrets)));
        }
        // The command died with its launcher, but what the command had started did not.
        let summary = match self.end_tree(segment.execution, None, stop_grace(segment))? {
            Ok(()) => "the launcher was ended before the command, and the command with it".to_owned(),
            Err(Survivors(count)) => format!("the launcher was ended, and {count} processes could not be"),
        };
        let mut result = TurnResult::failed("interrupted", summary);
        result.consumed_inputs = inbox::acknowledged(&directory);
        Ok(Settled::Ended(result))
    }

    /// Puts an Event into the inbox of a command that runs.
    pub(super) fn inject(&self, injection: &Injection) -> io::Result<Injected> {
        let Injection { segment, input } = injection;
        let no = |reason: &str| Ok(Injected::NotAccepting { reason: reason.to_owned() });
        let Some(handle) = segment.handle.as_deref().and_then(Handle::from_bytes) else {
            return no("there is no handle by which the run could be found");
        };
        let directory = self.root.segment(segment.execution, handle.epoch);
        // What an earlier call delivered is there, whatever became of the command since.
        if inbox::has(&directory, input) {
            return Ok(Injected::Accepted);
        }
        if self.open_launcher(&handle)?.is_none() || directory.status()?.is_some() {
            return no("the command has ended");
        }
        Ok(match inbox::deliver(&directory, input)? {
            Delivered::Yes => Injected::Accepted,
            Delivered::NoInbox => {
                let reason = "the run has no inbox: it was started by another version, or removed it";
                Injected::NotAccepting { reason: reason.to_owned() }
            }
        })
    }

    /// What the launches of a segment have acknowledged.
    pub(super) fn proof(&self, segment: &Segment) -> io::Result<Vec<EventId>> {
        let launches = self.launches(segment.execution, |epoch| epoch <= segment.epoch)?;
        let mut events: Vec<EventId> = Vec::new();
        for (_, directory) in launches {
            for event in inbox::acknowledged(&directory) {
                if !events.contains(&event) {
                    events.push(event);
                }
            }
        }
        Ok(events)
    }

    /// Opens the launcher of an adopted segment; `None` when it has ended meanwhile.
    pub(super) fn open_adopted(&self, handle: &Handle) -> io::Result<Option<OwnedFd>> {
        self.open_launcher(handle)
    }
}

/// What a launch came to.
#[derive(Debug)]
pub(super) enum Settled {
    /// Another authority made it void.
    Voided,
    /// Its launcher ended before it let the command begin.
    LauncherLost,
    /// It has a result.
    Ended(TurnResult),
}

fn stop_grace(segment: &Segment) -> Duration {
    Config::stop_grace_of(&segment.config)
}
