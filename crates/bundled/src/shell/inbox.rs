//! The inbox of a command: Events that reach it while it runs, a file for each, and what it says of them.
//!
//! ```text
//! inbox/                            `OS_INBOX_DIR`; a name sorts as its Event was accepted
//!   0000000000000000042-ev_….json   whole from the moment it is there
//!   acknowledged/                   the command puts a file of the same name here once it has taken the Event in
//! ```
//!
//! A command acknowledges by moving the file, or by making one of the same name. That alone is the proof that the
//! runtime takes; a file that was only read counts for nothing and is given to the next run.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use extension::{EventId, InputView, TurnResult};
use launcher::directory::SegmentDirectory;

use super::input;

/// The most entries that are looked at for acknowledgements.
const ENTRIES_MAX: usize = 20_000;

/// Whether an Event reached the inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delivered {
    /// It is there, or was taken from there.
    Yes,
    /// There is no inbox.
    NoInbox,
}

fn name(input: &InputView) -> String {
    format!("{:019}-{}.json", input.event.sequence.number(), input.event.id)
}

/// The Event that a file is named after; none for a file of another name.
fn named(name: &str) -> Option<EventId> {
    name.strip_suffix(".json")?.split_once('-')?.1.parse().ok()
}

/// Whether an Event was put into the inbox before.
pub(super) fn has(directory: &SegmentDirectory, input: &InputView) -> bool {
    let name = name(input);
    // In this order: it only ever moves from the first to the second.
    directory.inbox().join(&name).exists() || directory.acknowledged().join(&name).exists()
}

/// Puts an Event into the inbox, whole or not at all.
pub(super) fn deliver(directory: &SegmentDirectory, input: &InputView) -> io::Result<Delivered> {
    if !is_directory(&directory.inbox()) {
        return Ok(Delivered::NoInbox);
    }
    let name = name(input);
    let draft = directory.path().join(format!(".inbox-{name}"));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    let written = file.write_all(&input::render_one(input));
    match written.and_then(|()| fs::rename(&draft, directory.inbox().join(&name))) {
        Ok(()) => Ok(Delivered::Yes),
        Err(error) => {
            // Of no use to anyone, and in the way of nothing.
            let _left_behind = fs::remove_file(&draft);
            Err(error)
        }
    }
}

/// The Events that a command acknowledged, each once and in the order of acceptance.
pub(super) fn acknowledged(directory: &SegmentDirectory) -> Vec<EventId> {
    let acknowledged = directory.acknowledged();
    // The command may have put links in their place. They prove nothing.
    if !is_directory(&directory.inbox()) || !is_directory(&acknowledged) {
        return Vec::new();
    }
    let Ok(entries) = fs::read_dir(&acknowledged) else { return Vec::new() };
    let mut names = BTreeSet::new();
    for entry in entries.flatten().take(ENTRIES_MAX) {
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if let Some(name) = entry.file_name().to_str().filter(|_name| is_file) {
            names.insert(name.to_owned());
        }
    }
    let mut seen = BTreeSet::new();
    let events = names.iter().filter_map(|name| named(name)).filter(|event| seen.insert(*event));
    events.take(TurnResult::CONSUMED_MAX).collect()
}

fn is_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
}

#[cfg(test)]
mod tests {
    use extension::EventId;

    use super::named;

    #[test]
    fn a_file_is_named_after_its_event() {
        let event = EventId::from_number(7);
        assert_eq!(named(&format!("0000000000000000042-{event}.json")), Some(event));
        for other in ["", "notes.json", "1-ev_7.json", "0000000000000000042-ev_0000000000007"] {
            assert_eq!(named(other), None, "{other}");
        }
    }
}
