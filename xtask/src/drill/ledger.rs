//! The ledger: a file to which every job appends what it was given. It alone says what ran how often; the
//! daemon's own rows are what is being checked.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::error::Error;

/// The ledger of one drill.
#[derive(Debug, Clone)]
pub(super) struct Ledger {
    path: PathBuf,
}

impl Ledger {
    /// The ledger in that file, which need not exist.
    pub(super) const fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// Where it lies.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends deliveries in one write, as jobs do.
    pub(super) fn append<'a>(path: &Path, deliveries: impl Iterator<Item = &'a str>) -> io::Result<()> {
        let lines: String = deliveries.flat_map(|delivery| [delivery, "\n"]).collect();
        let mut file = OpenOptions::new().append(true).create(true).open(path)?;
        file.write_all(lines.as_bytes())
    }

    /// How often each delivery was appended.
    pub(super) fn counts(&self) -> BTreeMap<String, usize> {
        let text = fs::read_to_string(&self.path).unwrap_or_default();
        let mut counts = BTreeMap::new();
        for line in text.lines() {
            *counts.entry(line.to_owned()).or_default() += 1;
        }
        counts
    }

    /// How many lines it has.
    pub(super) fn len(&self) -> usize {
        self.counts().values().sum()
    }

    /// Whether a delivery is in it.
    pub(super) fn has(&self, delivery: &str) -> bool {
        self.counts().contains_key(delivery)
    }

    /// Whether all of these deliveries are in it.
    pub(super) fn has_all<'a>(&self, deliveries: impl IntoIterator<Item = &'a String>) -> bool {
        let counts = self.counts();
        deliveries.into_iter().all(|delivery| counts.contains_key(delivery))
    }

    /// Makes sure that each of these deliveries is in it once, and that nothing else is.
    pub(super) fn check(&self, expected: &BTreeSet<String>) -> Result<(), Error> {
        let counts = self.counts();
        let lost: Vec<&String> = expected.iter().filter(|delivery| !counts.contains_key(*delivery)).collect();
        let doubled: Vec<&String> =
            counts.iter().filter(|(_, count)| **count > 1).map(|(delivery, _)| delivery).collect();
        let foreign: Vec<&String> = counts.keys().filter(|delivery| !expected.contains(*delivery)).collect();
        if lost.is_empty() && doubled.is_empty() && foreign.is_empty() {
            return Ok(());
        }
        Err(Error::Drill(format!(
            "of {} deliveries {} were lost, {} ran more than once, {} came from nowhere: {}",
            expected.len(),
            lost.len(),
            doubled.len(),
            foreign.len(),
            [("lost", &lost), ("doubled", &doubled), ("foreign", &foreign)]
                .iter()
                .filter(|(_, found)| !found.is_empty())
                .map(|(word, found)| format!("{word} {:?}", &found[..found.len().min(5)]))
                .collect::<Vec<_>>()
                .join(", ")
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_finds_what_is_lost_doubled_and_foreign() {
        let path = std::env::temp_dir().join(format!("drill-ledger-{}", std::process::id()));
        fs::remove_file(&path).ok();
        let ledger = Ledger::at(path.clone());
        let expected: BTreeSet<String> = ["a", "b"].map(str::to_owned).into();
        Ledger::append(&path, ["a", "b"].into_iter()).expect("appends");
        ledger.check(&expected).expect("each once");
        Ledger::append(&path, ["a", "c"].into_iter()).expect("appends");
        let wider: BTreeSet<String> = ["a", "b", "d"].map(str::to_owned).into();
        let error = ledger.check(&wider).expect_err("a twice, c from nowhere, d lost").to_string();
        assert_eq!(
            error,
            "of 3 deliveries 1 were lost, 1 ran more than once, 1 came from nowhere: lost [\"d\"], doubled [\"a\"], \
             foreign [\"c\"]"
        );
        fs::remove_file(&path).ok();
    }
}
