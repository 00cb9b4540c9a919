//! What is written down about a workspace before anything is done for it, so that the next daemon knows.
//!
//! ```text
//! <root>/runs/<execution>.json      one for each attempt that has, or had and left, a workspace
//! <root>/locks/<checkout>.lock      held while git works on a checkout; says for which run, and which git
//! <root>/trees/<checkout>/<name>/   the worktrees
//! ```

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use extension::{ExecutionId, WorkId, WorkspaceFacts};
use serde::{Deserialize, Serialize};

use super::config::Mode;

/// The version of a record's form.
const VERSION: u32 = 1;
/// More bytes than a record has.
const RECORD_BYTES_MAX: u64 = 64 << 10;

/// How far a workspace has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    /// It is being made; nothing ran in it.
    Making,
    /// Its attempt has it.
    Held,
    /// It waits for the next attempt at its Work.
    ForWork,
    /// It is kept until then, in microseconds since 1970.
    Until { at: i64 },
}

/// One workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) version: u32,
    pub(super) execution: i64,
    pub(super) work: i64,
    pub(super) mode: Mode,
    /// The main checkout, resolved.
    pub(super) checkout: PathBuf,
    /// Where the attempt works.
    pub(super) dir: PathBuf,
    pub(super) state: State,
    pub(super) retain_failed_seconds: u64,
    /// What the attempt was told, once it was.
    pub(super) facts: Option<WorkspaceFacts>,
}

impl Record {
    /// A record of a workspace that is about to be made.
    pub(super) fn new(
        execution: ExecutionId,
        work: WorkId,
        mode: Mode,
        checkout: &Path,
        dir: PathBuf,
    ) -> Self {
        Self {
            version: VERSION,
            execution: execution.number(),
            work: work.number(),
            mode,
            checkout: checkout.to_owned(),
            dir,
            state: State::Making,
            retain_failed_seconds: 0,
            facts: None,
        }
    }

    pub(super) const fn execution(&self) -> ExecutionId {
        ExecutionId::from_number(self.execution)
    }

    pub(super) const fn work(&self) -> WorkId {
        WorkId::from_number(self.work)
    }

    /// Whether its attempt has it, or is about to.
    pub(super) const fn is_in_use(&self) -> bool {
        match self.state {
            State::Making | State::Held => true,
            State::ForWork | State::Until { .. } => false,
        }
    }

    #[cfg(test)]
    pub(super) fn sample(execution: i64, work: i64, mode: Mode) -> Self {
        let (execution, work) = (ExecutionId::from_number(execution), WorkId::from_number(work));
        Self {
            state: State::Held,
            retain_failed_seconds: 60,
            ..Self::new(execution, work, mode, Path::new("/srv/site"), "/trees/x".into())
        }
    }
}

/// The records of one home.
#[derive(Debug)]
pub(super) struct Records(PathBuf);

impl Records {
    /// Those below `root`. The directory is made with the first of them.
    pub(super) fn below(root: &Path) -> Self {
        Self(root.join("runs"))
    }

    fn path(&self, execution: ExecutionId) -> PathBuf {
        self.0.join(format!("{execution}.json"))
    }

    /// The record of an attempt.
    pub(super) fn read(&self, execution: ExecutionId) -> io::Result<Option<Record>> {
        read(&self.path(execution))
    }

    /// Every record.
    pub(super) fn all(&self) -> io::Result<Vec<Record>> {
        let mut records = Vec::new();
        let entries = match fs::read_dir(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(records),
            entries => entries?,
        };
        for entry in entries {
            let path = entry?.path();
            // What a crash left of a write has another ending, and the next write replaces it.
            if path.extension().is_some_and(|ending| ending == "json") {
                records.extend(read(&path)?);
            }
        }
        Ok(records)
    }

    /// Writes a record, durably and whole.
    pub(super) fn write(&self, record: &Record) -> io::Result<()> {
        private_directory(&self.0)?;
        let path = self.path(record.execution());
        let fresh = path.with_extension("new");
        let mut file = File::create(&fresh)?;
        file.write_all(&serde_json::to_vec(record).expect("a record is plain data with text keys"))?;
        file.sync_all()?;
        fs::rename(&fresh, &path)?;
        File::open(&self.0)?.sync_all()
    }

    /// Forgets an attempt. Again is fine.
    pub(super) fn forget(&self, execution: ExecutionId) -> io::Result<()> {
        match fs::remove_file(self.path(execution)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }
}

/// Makes a directory that only its owner can read.
pub(super) fn private_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn read(path: &Path) -> io::Result<Option<Record>> {
    let bytes = match fs::metadata(path) {
        Ok(about) if about.len() > RECORD_BYTES_MAX => return Err(damaged()),
        Ok(_) => fs::read(path),
        Err(error) => Err(error),
    };
    match bytes {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
        Ok(bytes) => {
            let record: Record = serde_json::from_slice(&bytes).map_err(|_source| damaged())?;
            if record.version == VERSION { Ok(Some(record)) } else { Err(damaged()) }
        }
    }
}

fn damaged() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the record of a workspace was written by another version, or is damaged",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_read_back_and_what_a_crash_left_is_no_record() {
        let home = tempfile::tempdir().unwrap();
        let records = Records::below(home.path());
        assert_eq!(records.all().unwrap(), []);
        let record = Record { state: State::Until { at: 7 }, ..Record::sample(1, 2, Mode::Fresh) };
        records.write(&record).unwrap();
        fs::write(records.path(ExecutionId::from_number(9)).with_extension("new"), b"{").unwrap();
        assert_eq!(records.all().unwrap(), std::slice::from_ref(&record));
        assert_eq!(records.read(record.execution()).unwrap(), Some(record.clone()));
        records.forget(record.execution()).unwrap();
        records.forget(record.execution()).unwrap();
        assert_eq!(records.read(record.execution()).unwrap(), None);
    }

    #[test]
    fn a_damaged_record_is_told_and_not_taken_for_none() {
        let home = tempfile::tempdir().unwrap();
        let records = Records::below(home.path());
        fs::create_dir(&records.0).unwrap();
        fs::write(records.path(ExecutionId::from_number(1)), b"{}").unwrap();
        assert!(records.all().is_err() && records.read(ExecutionId::from_number(1)).is_err());
    }
}
