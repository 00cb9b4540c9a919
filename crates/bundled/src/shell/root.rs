//! Where launches lie. What is in the directory of one, and who may write which of it, stands in
//! `launcher::directory`.
//!
//! ```text
//! <root>/<execution id>/          0700
//!   e<epoch>/                     one for each launch; an attempt that started nothing may be launched again
//! <root>/.ahead-<pid>-<start>/    what that daemon has made ahead of launches to come
//!   <executor>/<number>/
//! ```

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use extension::{Epoch, ExecutionId};
use launcher::directory::SegmentDirectory;
use launcher::process::Identity;

/// How the names begin of what daemons make ahead.
const AHEAD: &str = ".ahead-";

/// The directory that holds one directory for each Execution.
#[derive(Debug, Clone)]
pub(super) struct Root(PathBuf);

impl Root {
    /// Makes the directory when it is missing, readable by its owner alone.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        // Resolved once, so that later comparisons of resolved paths hold.
        Ok(Self(fs::canonicalize(path)?))
    }

    /// Where this daemon makes directories ahead, existing or not.
    pub(super) fn ahead(&self, daemon: Identity) -> PathBuf {
        self.0.join(format!("{AHEAD}{}-{}", daemon.pid, daemon.start))
    }

    /// Deletes what daemons made ahead that live no more.
    pub(super) fn remove_abandoned(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.0)? {
            let entry = entry?;
            let name = entry.file_name();
            let Some((pid, start)) = name.to_str().and_then(|name| name.strip_prefix(AHEAD)?.split_once('-'))
            else {
                continue;
            };
            let (Ok(pid), Ok(start)) = (pid.parse(), start.parse()) else { continue };
            if (Identity { pid, start }).open()?.is_none() {
                fs::remove_dir_all(entry.path())?;
            }
        }
        Ok(())
    }

    /// The directory of one Execution, existing or not. Its path is also the Execution's mark: ids repeat
    /// between installations, paths of one machine do not.
    pub(super) fn execution(&self, execution: ExecutionId) -> PathBuf {
        self.0.join(execution.to_string())
    }

    /// The mark of one Execution.
    pub(super) fn mark(&self, execution: ExecutionId) -> String {
        self.execution(execution).to_string_lossy().into_owned()
    }

    /// The directory of one launch, existing or not.
    pub(super) fn segment(&self, execution: ExecutionId, epoch: Epoch) -> SegmentDirectory {
        SegmentDirectory::at(self.execution(execution).join(format!("e{epoch}")))
    }

    /// The launches of an Execution, the oldest first.
    pub(super) fn segments(&self, execution: ExecutionId) -> io::Result<Vec<(Epoch, SegmentDirectory)>> {
        let entries = match fs::read_dir(self.execution(execution)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix('e')?.parse().ok());
            if let Some(number) = number {
                found.push((Epoch::from_number(number), SegmentDirectory::at(entry.path())));
            }
        }
        found.sort_by_key(|(epoch, _)| *epoch);
        Ok(found)
    }

    /// Deletes everything an Execution left.
    pub(super) fn remove(&self, execution: ExecutionId) -> io::Result<()> {
        match fs::remove_dir_all(self.execution(execution)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use extension::{Epoch, ExecutionId};
    use launcher::process::Identity;

    use super::Root;

    #[test]
    fn what_a_dead_daemon_made_ahead_is_removed_and_nothing_else() {
        let home = tempfile::tempdir().unwrap();
        let root = Root::open(home.path()).unwrap();
        let own = Identity::of(i32::try_from(std::process::id()).unwrap()).unwrap();
        let dead = Identity { start: own.start + 1, ..own };
        for daemon in [own, dead] {
            fs::create_dir_all(root.ahead(daemon).join("0")).unwrap();
        }
        let run = root.segment(ExecutionId::from_number(7), Epoch::FIRST);
        run.create().unwrap();
        root.remove_abandoned().unwrap();
        assert!(root.ahead(own).exists() && !root.ahead(dead).exists() && run.path().exists());
    }

    #[test]
    fn create_refuses_a_second_launch_of_one_authority() {
        let home = tempfile::tempdir().unwrap();
        let root = Root::open(home.path()).unwrap();
        let id = ExecutionId::from_number(7);
        root.segment(id, Epoch::FIRST).create().unwrap();
        assert!(root.segment(id, Epoch::FIRST).create().is_err());
        root.segment(id, Epoch::from_number(12)).create().unwrap();
        let epochs: Vec<i64> = root.segments(id).unwrap().iter().map(|(epoch, _)| epoch.number()).collect();
        assert_eq!(epochs, [1, 12]);
        root.remove(id).unwrap();
        root.remove(id).unwrap();
        assert!(root.segments(id).unwrap().is_empty());
    }
}
