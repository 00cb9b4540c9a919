//! Launchers that are started ahead, so that a turn does not wait for two processes to start, for its directory
//! to be made, and for the word that it will give to reach the disk.
//!
//! One that waits knows nothing yet and has nothing of any turn. It ends by itself when nobody needs it for a
//! minute, and at once when the daemon ends. None is started while a turn is on its way to its own.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use extension::RunError;
use launcher::directory::SegmentDirectory;
use launcher::wire::Plan;

use super::launch::{self, Abandoned, Held, Idle, NotHeld};

/// The most launchers that wait. A burst of more turns starts the others as it goes.
const WAITING_MAX: usize = 8;

/// How long a launcher waits for a plan.
const TIME_MAX: Duration = Duration::from_mins(1);
/// How many reserves this process has had.
static RESERVES: AtomicU64 = AtomicU64::new(0);

/// The launchers that wait for a plan.
#[derive(Debug, Clone)]
pub(super) struct Reserve {
    binary: super::Source,
    time_max: Duration,
    abandoned: Abandoned,
    waiting: Arc<Mutex<Waiting>>,
}

#[derive(Debug)]
struct Waiting {
    /// Where their directories lie until they are needed.
    place: PathBuf,
    /// The number of the next directory.
    next: u64,
    /// The one that has waited longest first, so that the others are the last to give up.
    ahead: VecDeque<Ahead>,
    /// How many are being started.
    starting: usize,
    /// How many there should be: as many as were missed when they were needed.
    wanted: usize,
    /// How many turns are on their way to being held.
    launching: usize,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.ahead.drain(..).for_each(Ahead::discard);
        // It may never have been made. What stays is removed by the next daemon.
        let _left_behind = fs::remove_dir_all(&self.place);
        // The process may have another.
        let _in_use = self.place.parent().map(fs::remove_dir);
    }
}

/// A launcher that waits, in its directory.
#[derive(Debug)]
struct Ahead {
    idle: Idle,
    directory: SegmentDirectory,
}

impl Ahead {
    /// Gives up what was made.
    fn discard(self) {
        self.idle.end();
        // The place is removed as a whole in the end.
        let _left_behind = self.directory.remove();
    }
}

/// A turn on its way to being held.
#[derive(Debug)]
struct Launching<'a>(&'a Reserve);

impl Drop for Launching<'_> {
    fn drop(&mut self) {
        self.0.lock().launching -= 1;
    }
}

impl Reserve {
    /// One that is empty. Directories are made below one that is this process's own and need not exist.
    pub(super) fn new(binary: super::Source, own: &Path) -> Self {
        let place = own.join(RESERVES.fetch_add(1, Ordering::Relaxed).to_string());
        let waiting =
            Waiting { place, next: 0, ahead: VecDeque::new(), starting: 0, wanted: 0, launching: 0 };
        Self {
            binary,
            time_max: TIME_MAX,
            abandoned: Abandoned::default(),
            waiting: Arc::new(Mutex::new(waiting)),
        }
    }

    /// The same with launchers that wait for so long.
    pub(super) const fn time_max(mut self, time: Duration) -> Self {
        self.time_max = time;
        self
    }

    /// The same with launchers from another binary.
    pub(super) fn with_binary(self, change: impl FnOnce(super::Source) -> super::Source) -> Self {
        Self { binary: change(self.binary), ..self }
    }

    /// Where launchers come from.
    pub(super) const fn binary(&self) -> &super::Source {
        &self.binary
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(&self, directory: &SegmentDirectory) -> Result<Idle, RunError> {
        launch::start(self.binary.path(), directory, self.time_max, &self.abandoned)
    }

    /// One that waits, when there is one.
    fn take(&self) -> Option<Ahead> {
        let mut waiting = self.lock();
        while let Some(ahead) = waiting.ahead.pop_front() {
            if ahead.idle.is_waiting() {
                return Some(ahead);
            }
            // It gave up waiting: fewer are needed than there were.
            waiting.wanted = waiting.ahead.len().max(1);
            ahead.discard();
        }
        waiting.wanted = WAITING_MAX.min(waiting.wanted + 1);
        None
    }

    /// Makes the directory of a launch, with a launcher in it: one that waited, or a new one.
    fn launcher_in(&self, directory: &SegmentDirectory) -> Result<Idle, RunError> {
        if let Some(ahead) = self.take() {
            match directory.take(&ahead.directory) {
                Ok(()) => return Ok(ahead.idle),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(not_made(&error)),
                // Somebody tidied up. What is made now says what is wrong, if something is.
                Err(_) => ahead.discard(),
            }
        }
        directory.create().map_err(|error| not_made(&error))?;
        self.start(directory)
    }

    /// Makes the directory of a launch and has a launcher hold the command. `fill` writes what the command needs
    /// to find there. It blocks for the time that a small program may need to start.
    ///
    /// # Errors
    /// When the directory exists or cannot be filled, or no launcher holds the command.
    pub(super) fn hold(
        &self,
        directory: &SegmentDirectory,
        plan: &Plan,
        fill: impl FnOnce() -> Result<(), RunError>,
    ) -> Result<Held, RunError> {
        self.lock().launching += 1;
        let _launching = Launching(self);
        let idle = self.launcher_in(directory)?;
        fill()?;
        match idle.hold(plan) {
            // It gave up in this moment, or was killed. It was not told to begin, so nothing has.
            Err(NotHeld::Gone(_)) => Ok(self.start(directory)?.hold(plan)?),
            held => Ok(held?),
        }
    }

    /// Starts as many as are wanted and not there, unless a turn is on its way: it needs the machine more. It
    /// blocks for the time it takes to start a process.
    pub(super) fn refill(&self) {
        while let Some(directory) = self.next_directory() {
            let started = match directory.create() {
                Ok(()) => self.start(&directory),
                Err(error) => Err(not_made(&error)),
            };
            let mut waiting = self.lock();
            waiting.starting -= 1;
            match started {
                Ok(idle) => waiting.ahead.push_back(Ahead { idle, directory }),
                // The next turn starts its own, and says why if it cannot.
                Err(_) => return,
            }
        }
    }

    /// The directory of one more, if one is needed now.
    fn next_directory(&self) -> Option<SegmentDirectory> {
        let mut waiting = self.lock();
        if waiting.launching > 0 || waiting.ahead.len() + waiting.starting >= waiting.wanted {
            return None;
        }
        waiting.starting += 1;
        waiting.next += 1;
        Some(SegmentDirectory::at(waiting.place.join(waiting.next.to_string())))
    }
}

fn not_made(error: &io::Error) -> RunError {
    super::spawn_failed("the segment's directory cannot be made", error)
}
