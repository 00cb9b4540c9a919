//! What one launch leaves on disk, and who may write which of it.
//!
//! ```text
//! input.json                  0600, what the command takes in
//! token                       0600, what the command shows to make calls; replaced when another daemon adopts it
//! output.log                  appended to by the command, or by its launcher when values are redacted
//! verdict                     `start` or `void`, made once, whoever is first
//! status                      how the command ended
//! stopping                    there once the tree is being asked to end
//! out/                        what the command leaves: artifacts, and its own `result.json`
//! inbox/                      Events that reach the command while it runs, and those it `acknowledged/`
//! work/                       its working directory, unless the binding names one
//! ```
//!
//! `verdict` is the only file that must survive a loss of power: it is the proof that something may have run.
//! The others are written without `fsync`. After a loss of power nothing of the segment lives, and a status
//! that did not reach the disk makes it an interrupted one, never one that is believed to be running.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use serde_json::{Value, json};

/// How many drafts of verdicts this process has made.
static DRAFTS: AtomicU64 = AtomicU64::new(0);

/// The launcher's own files are smaller.
const SMALL_FILE_BYTES_MAX: u64 = 4096;

/// Where the end of a command is recorded before it is named.
const STATUS_DRAFT: &str = ".status";
/// More bytes than any record of an end has.
const STATUS_BYTES: usize = 512;

/// The directory of one launch.
#[derive(Debug, Clone)]
pub struct SegmentDirectory(PathBuf);

impl SegmentDirectory {
    /// The directory of a launch, existing or not.
    pub const fn at(path: PathBuf) -> Self {
        Self(path)
    }

    /// The directory that a launcher was started in.
    pub fn current() -> Self {
        Self(PathBuf::from("."))
    }

    /// Makes it with its subdirectories and with room for what must be recorded, and the one that it lies in. It
    /// must not exist: one authority launches once.
    ///
    /// # Errors
    /// When it exists, or cannot be made.
    pub fn create(&self) -> io::Result<()> {
        self.create_parent()?;
        let mut builder = DirBuilder::new();
        builder.mode(0o700);
        builder.create(&self.0)?;
        builder.create(self.out())?;
        builder.create(self.inbox())?;
        builder.create(self.acknowledged())?;
        builder.create(self.work())?;
        self.reserve()
    }

    fn create_parent(&self) -> io::Result<()> {
        let Some(parent) = self.0.parent() else { return Ok(()) };
        DirBuilder::new().recursive(true).mode(0o700).create(parent)
    }

    /// Becomes a directory that was made ahead under another name. What runs in there goes along. It must not
    /// exist, as for [`SegmentDirectory::create`].
    ///
    /// # Errors
    /// When it exists, or the other cannot be moved.
    pub fn take(&self, ahead: &Self) -> io::Result<()> {
        self.create_parent()?;
        match renameat_with(CWD, &ahead.0, CWD, &self.0, RenameFlags::NOREPLACE) {
            // A file system that cannot promise it. It still replaces nothing but an empty directory.
            Err(Errno::INVAL | Errno::NOSYS) => fs::rename(&ahead.0, &self.0),
            moved => Ok(moved?),
        }
    }

    /// Deletes it with everything in it.
    ///
    /// # Errors
    /// When something of it stays.
    pub fn remove(&self) -> io::Result<()> {
        fs::remove_dir_all(&self.0)
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Where the command leaves its artifacts.
    pub fn out(&self) -> PathBuf {
        self.0.join("out")
    }

    /// Where Events are put that reach the command while it runs.
    pub fn inbox(&self) -> PathBuf {
        self.0.join("inbox")
    }

    /// Where the command says which of them it took in.
    pub fn acknowledged(&self) -> PathBuf {
        self.inbox().join("acknowledged")
    }

    /// Where the command works, unless its binding says otherwise.
    pub fn work(&self) -> PathBuf {
        self.0.join("work")
    }

    /// What the command takes in.
    pub fn input(&self) -> PathBuf {
        self.0.join("input.json")
    }

    /// What the command wrote to its standard streams.
    pub fn output(&self) -> PathBuf {
        self.0.join("output.log")
    }

    /// Opens the output for appending.
    ///
    /// # Errors
    /// When it can neither be opened nor made.
    pub fn open_output(&self) -> io::Result<File> {
        OpenOptions::new().append(true).create(true).mode(0o600).open(self.output())
    }

    /// Takes the room that the end of the command will need to be recorded in, and the output's file: a disk
    /// that is full by then must not make a run that ended well look as if it had been interrupted.
    fn reserve(&self) -> io::Result<()> {
        self.open_output()?;
        fs::write(self.0.join(STATUS_DRAFT), [b' '; STATUS_BYTES])
    }

    /// Writes what the command takes in.
    ///
    /// # Errors
    /// When it is there already, or cannot be written.
    pub fn write_input(&self, bytes: &[u8]) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(self.input())?;
        file.write_all(bytes)
    }

    /// What the command shows to make calls.
    pub fn token(&self) -> PathBuf {
        self.0.join("token")
    }

    /// Writes what the command shows to make calls, in place of an earlier one. It is whole at every moment, and
    /// for this user alone; a link that the command put there is replaced and not followed.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_token(&self, token: &str) -> io::Result<()> {
        let draft = self.0.join(".token");
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let mut file = match options.open(&draft) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                // Of a daemon that died in the middle.
                fs::remove_file(&draft)?;
                options.open(&draft)?
            }
            opened => opened?,
        };
        file.write_all(token.as_bytes())?;
        fs::rename(&draft, self.token())
    }

    /// The verdict on the launch, when there is one.
    ///
    /// # Errors
    /// When it cannot be read, or is none of ours.
    pub fn verdict(&self) -> io::Result<Option<Verdict>> {
        match read_small(&self.0.join(Verdict::FILE))? {
            Some(bytes) if bytes == Verdict::Start.as_bytes() => Ok(Some(Verdict::Start)),
            Some(bytes) if bytes == Verdict::Void.as_bytes() => Ok(Some(Verdict::Void)),
            Some(_) => Err(io::Error::other("the file `verdict` says neither start nor void")),
            None => Ok(None),
        }
    }

    /// Writes a verdict down without making it: [`VerdictDraft::decide`] does. The slow half of a decision, for
    /// a maker that waits for something else meanwhile.
    ///
    /// # Errors
    /// When it could not be written down durably.
    pub fn draft(&self, verdict: Verdict) -> io::Result<VerdictDraft<'_>> {
        // A draft is one maker's own: once it is linked, opening it again would empty the verdict itself.
        let number = DRAFTS.fetch_add(1, Ordering::Relaxed);
        let name = format!(".verdict-{}-{}-{number}", verdict.word(), std::process::id());
        let path = self.0.join(name);
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path)?;
        // From here on the draft is removed, however this goes on.
        let draft = VerdictDraft { directory: self, verdict, path };
        file.write_all(verdict.as_bytes())?;
        file.sync_all()?;
        Ok(draft)
    }

    /// Makes the verdict unless there is one, and answers the one that holds. It is whole or absent, and
    /// durable once this returns; `link` lets exactly one maker succeed.
    ///
    /// # Errors
    /// When none could be made. One that holds may be there nonetheless.
    pub fn decide(&self, verdict: Verdict) -> io::Result<Verdict> {
        match self.verdict()? {
            Some(earlier) => Ok(earlier),
            None => self.draft(verdict)?.decide(),
        }
    }

    /// How the command ended, when that was recorded. Half a file, as a loss of power may leave, is none.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn status(&self) -> io::Result<Option<Status>> {
        let bytes = read_small(&self.0.join("status"))?;
        Ok(bytes.and_then(|bytes| Status::from_json(&serde_json::from_slice(&bytes).ok()?)))
    }

    /// Records how the command ended: whole or not at all.
    ///
    /// # Errors
    /// When it is not recorded.
    pub fn write_status(&self, status: Status) -> io::Result<()> {
        let draft = self.0.join(STATUS_DRAFT);
        let mut bytes = serde_json::to_vec(&status.to_json())?;
        // Written over what was reserved; JSON does not mind the spaces after it.
        bytes.resize(bytes.len().max(STATUS_BYTES), b' ');
        OpenOptions::new().write(true).create(true).truncate(false).open(&draft)?.write_all(&bytes)?;
        fs::rename(&draft, self.0.join("status"))
    }

    /// Notes that the tree is being asked to end, so that its launcher does not ask it again.
    ///
    /// # Errors
    /// When it cannot be noted.
    pub fn note_stopping(&self) -> io::Result<()> {
        fs::write(self.0.join("stopping"), [])
    }

    /// Whether the tree is being asked to end.
    pub fn is_stopping(&self) -> bool {
        self.0.join("stopping").exists()
    }

    /// The path of a regular file below `out/`, reached without leaving it and through no link.
    pub fn artifact(&self, path: &str) -> Option<PathBuf> {
        let relative = Path::new(path);
        let plain = |name: &OsStr| !name.is_empty();
        let only_names = relative.components().all(|part| match part {
            std::path::Component::Normal(name) => plain(name),
            std::path::Component::Prefix(_)
            | std::path::Component::RootDir
            | std::path::Component::CurDir
            | std::path::Component::ParentDir => false,
        });
        if path.is_empty() || !only_names {
            return None;
        }
        // The command may have made links of anything it can write, `out` itself included.
        let wanted = self.out().join(relative);
        let resolved = fs::canonicalize(&wanted).ok()?;
        (resolved == wanted && fs::symlink_metadata(&resolved).ok()?.is_file()).then_some(resolved)
    }
}

/// A verdict that is on the disk under a name that means nothing yet. Dropping it leaves no trace.
#[derive(Debug)]
pub struct VerdictDraft<'a> {
    directory: &'a SegmentDirectory,
    verdict: Verdict,
    path: PathBuf,
}

impl VerdictDraft<'_> {
    /// Makes the verdict unless there is one, and answers the one that holds, as [`SegmentDirectory::decide`]
    /// does.
    ///
    /// # Errors
    /// As there.
    pub fn decide(self) -> io::Result<Verdict> {
        let directory = &self.directory;
        match fs::hard_link(&self.path, directory.0.join(Verdict::FILE)) {
            Ok(()) => {
                File::open(&directory.0)?.sync_all()?;
                Ok(self.verdict)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                directory.verdict()?.ok_or_else(|| io::Error::other("the file `verdict` vanished"))
            }
            Err(error) => Err(error),
        }
    }
}

impl Drop for VerdictDraft<'_> {
    fn drop(&mut self) {
        // One that stays behind is an unnamed copy of a few bytes, deleted with the directory.
        let _left_behind = fs::remove_file(&self.path);
    }
}

/// Opens a file that the command could have replaced: neither a link that leads elsewhere, nor a pipe that
/// would never end. `None` when there is nothing.
///
/// # Errors
/// When something else is there, or it cannot be opened.
pub fn open_plain(path: &Path) -> io::Result<Option<File>> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    match OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path) {
        Ok(file) if file.metadata()?.is_file() => Ok(Some(file)),
        Ok(_) => Err(io::Error::other("it is not a file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads one of the launcher's own files.
fn read_small(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let Some(file) = open_plain(path)? else { return Ok(None) };
    let mut bytes = Vec::new();
    file.take(SMALL_FILE_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// Whether a launch took place. There is one for each launch, for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The launcher said it before it let the command begin.
    Start,
    /// Nothing was started, and nothing will be.
    Void,
}

impl Verdict {
    const FILE: &'static str = "verdict";

    const fn word(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Void => "void",
        }
    }

    const fn as_bytes(self) -> &'static [u8] {
        match self {
            Self::Start => b"start\n",
            Self::Void => b"void\n",
        }
    }
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// Its end.
    pub end: End,
    /// Whether the launcher ended it at its deadline.
    pub timed_out: bool,
    /// When, in microseconds since 1970.
    pub ended_at: u64,
}

impl Status {
    fn to_json(self) -> Value {
        let end = match self.end {
            End::Exit(code) => json!({"exit": code}),
            End::Signal(signal) => json!({"signal": signal}),
        };
        json!({"end": end, "timed_out": self.timed_out, "ended_at": self.ended_at})
    }

    fn from_json(json: &Value) -> Option<Self> {
        let end = json.get("end")?;
        let number = |name| i32::try_from(end.get(name)?.as_i64()?).ok();
        Some(Self {
            end: number("exit").map(End::Exit).or_else(|| number("signal").map(End::Signal))?,
            timed_out: json.get("timed_out")?.as_bool()?,
            ended_at: json.get("ended_at")?.as_u64()?,
        })
    }
}

/// The end of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It exited with this status.
    Exit(i32),
    /// A signal ended it.
    Signal(i32),
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{End, SegmentDirectory, Status, Verdict};

    fn segment(home: &tempfile::TempDir, execution: u32) -> SegmentDirectory {
        let segment = SegmentDirectory::at(home.path().join(execution.to_string()).join("e1"));
        segment.create().unwrap();
        segment
    }

    #[test]
    fn decide_lets_the_first_verdict_hold() {
        for (first, second) in [(Verdict::Start, Verdict::Void), (Verdict::Void, Verdict::Start)] {
            let home = tempfile::tempdir().unwrap();
            let segment = segment(&home, 7);
            assert_eq!(segment.verdict().unwrap(), None);
            assert_eq!(segment.decide(first).unwrap(), first);
            assert_eq!(segment.decide(second).unwrap(), first);
            assert_eq!(segment.verdict().unwrap(), Some(first));
        }
    }

    #[test]
    fn decide_has_one_winner_among_many() {
        let home = tempfile::tempdir().unwrap();
        let segment = segment(&home, 7);
        let answers = std::thread::scope(|scope| {
            let run = |verdict| segment.decide(verdict).unwrap();
            let start = scope.spawn(move || run(Verdict::Start));
            let void = scope.spawn(move || run(Verdict::Void));
            [start.join().unwrap(), void.join().unwrap()]
        });
        assert_eq!(answers[0], answers[1]);
    }

    #[test]
    fn decide_agrees_with_itself_when_one_daemon_asks_from_many_sides() {
        let home = tempfile::tempdir().unwrap();
        for number in 0..50 {
            let segment = segment(&home, number);
            std::thread::scope(|scope| {
                let asked: Vec<_> =
                    (0..4).map(|_| scope.spawn(|| segment.decide(Verdict::Void).unwrap())).collect();
                for answer in asked {
                    assert_eq!(answer.join().unwrap(), Verdict::Void);
                }
            });
            assert_eq!(segment.verdict().unwrap(), Some(Verdict::Void));
        }
    }

    #[test]
    fn a_status_is_read_as_it_was_recorded_and_half_of_one_is_none() {
        let home = tempfile::tempdir().unwrap();
        let segment = segment(&home, 7);
        assert_eq!(segment.status().unwrap(), None);
        for (end, timed_out) in [(End::Exit(3), false), (End::Signal(9), true)] {
            let status = Status { end, timed_out, ended_at: 1_700_000_000_000_000 };
            segment.write_status(status).unwrap();
            assert_eq!(segment.status().unwrap(), Some(status));
        }
        let path = segment.path().join("status");
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with(r#"{"end":{"signal":9},"timed_out":true,"ended_at":17"#), "{text}");
        fs::write(&path, &text[..40]).unwrap();
        assert_eq!(segment.status().unwrap(), None);
        fs::write(&path, r#"{"end":{},"timed_out":true,"ended_at":1}"#).unwrap();
        assert_eq!(segment.status().unwrap(), None);
    }
}
