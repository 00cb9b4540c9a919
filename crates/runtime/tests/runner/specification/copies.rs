//! Crashes of a case in a file: the files are copied at each commit, and every copy is opened elsewhere.
//!
//! A copy that was taken before a commit holds what a power cut would leave; one taken after it, what was promised.
//! The first has to be what was there before, the second what is there afterwards, and from those in
//! the middle of a command everything goes on to its end. What a case does next it does on such a copy, whenever no attempt is live.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use spec::driver::{AttemptRecord, Snapshot};
use spec::{differential, invariant};
use store::{Faults, Point};

use super::production::Production;

/// What a crash at one point would leave.
#[derive(Debug, Clone)]
pub(super) struct Copy {
    pub(super) point: Point,
    pub(super) path: PathBuf,
}

/// The copies of one database, and of the copies that it goes on in.
#[derive(Debug)]
pub(super) struct Copies {
    root: PathBuf,
    taken: Mutex<Vec<Copy>>,
    count: Mutex<usize>,
}

impl Copies {
    /// Copies into folders below this one.
    pub(super) fn below(root: PathBuf) -> Arc<Self> {
        Arc::new(Self { root, taken: Mutex::default(), count: Mutex::new(0) })
    }

    /// How many copies were taken.
    pub(super) fn count(&self) -> usize {
        *self.count.lock().unwrap()
    }

    /// The copies since this was asked last, in order.
    pub(super) fn take(&self) -> Vec<Copy> {
        std::mem::take(&mut *self.taken.lock().unwrap())
    }

    /// What copies a database at its commits.
    pub(super) fn faults(self: &Arc<Self>, database: &Path) -> Arc<Faults> {
        let faults = Arc::new(Faults::default());
        let (copies, database) = (Arc::clone(self), database.to_owned());
        faults.at_points(move |point| match point {
            Point::Begin => {}
            Point::BeforeCommit | Point::AfterCommit => copies.copy(point, &database),
        });
        faults
    }

    fn copy(&self, point: Point, database: &Path) {
        let mut count = self.count.lock().unwrap();
        *count += 1;
        let path = copy_to(database, &self.root.join(format!("crash-{count}")));
        self.taken.lock().unwrap().push(Copy { point, path });
    }
}

/// Copies a database as a power cut would leave it. Where it is now.
fn copy_to(database: &Path, folder: &Path) -> PathBuf {
    fs::create_dir_all(folder).unwrap();
    let path = folder.join("conduit.db");
    for end in ["", "-wal"] {
        let from = PathBuf::from(format!("{}{end}", database.display()));
        if from.exists() {
            fs::copy(from, format!("{}{end}", path.display())).unwrap();
        }
    }
    path
}

/// What is durable of a snapshot: not which handlers were asked, and what an executor was handed.
fn durable(seen: &Snapshot) -> Snapshot {
    let attempts = seen.attempts.iter().cloned().map(|attempt| AttemptRecord { label: None, ..attempt });
    Snapshot { asked: std::collections::BTreeMap::new(), attempts: attempts.collect(), ..seen.clone() }
}

/// Sees that each copy is what a crash may leave, from what was there before to what is there now; and lets
/// everything go on from each that lies in the middle of a command.
pub(super) fn verify(copies: &[Copy], driver: &Production, before: &Snapshot, now: &Snapshot) {
    let mut last = Snapshot { now: now.now, ..durable(before) };
    for (at, copy) in copies.iter().enumerate() {
        // The case may go on in the copy itself, which is left as it is.
        let folder = copy.path.parent().expect("a copy is in a folder of its own");
        let mut other = driver.elsewhere(&copy_to(&copy.path, &folder.join("opened")));
        let seen = durable(&other.left());
        match copy.point {
            Point::BeforeCommit => assert_eq!(seen, last, "nothing is durable before its commit"),
            Point::AfterCommit => {
                invariant::check(&last, &seen).unwrap();
                // The last of a command is where everything goes on in any case.
                if seen != last && at + 1 < copies.len() {
                    differential::come_to_rest(&mut other).unwrap();
                }
                last = seen;
            }
            Point::Begin => panic!("nothing is copied there"),
        }
    }
    assert_eq!(last, durable(now), "what was committed is there");
}
