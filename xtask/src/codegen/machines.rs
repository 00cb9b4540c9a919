//! The tables of the state machines, from the snapshots that the domain's tests hold.

use std::fs;

use super::{MARK, add, cell, unreadable};
use crate::error::Error;
use crate::machine::{self, file_error};

const SNAPSHOTS: &str = "crates/domain/src/snapshots";
const PREFIX: &str = "domain__machines__";
const SUFFIX: &str = ".snap";

/// A page for each state machine, by path.
pub(super) fn documents() -> Result<Vec<(String, String)>, Error> {
    let folder = machine::root().join(SNAPSHOTS);
    let mut documents = Vec::new();
    for file in fs::read_dir(&folder).map_err(file_error("read", &folder))? {
        let path = file.map_err(file_error("read", &folder))?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if let Some(machine) = name.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(SUFFIX)) {
            let text = fs::read_to_string(&path).map_err(file_error("read", &path))?;
            let page =
                page(machine, &text).ok_or_else(|| unreadable(&name, "it is no table of a state machine"))?;
            documents.push((format!("docs/machines/{machine}.md"), page));
        }
    }
    documents.sort();
    Ok(documents)
}

/// The page of one machine; `None` when the snapshot is of another form.
fn page(machine: &str, snapshot: &str) -> Option<String> {
    let (_header, body) = snapshot.strip_prefix("---\n")?.split_once("\n---\n")?;
    let mut first = machine.chars();
    let title: String = first.next()?.to_uppercase().chain(first).collect();
    let mut text = format!(
        "# {title}: every state and every command\n\n{MARK}\n\nWhat comes of each command in each state, as the \
         tests of `crates/domain` hold it. A section is a\nstate, described below its name; `now` is the moment \
         of the command.\n"
    );
    for line in body.lines().filter(|line| !line.trim().is_empty()) {
        if let Some(row) = line.strip_prefix("  ") {
            let (command, result) = row.split_once("  ")?;
            add(&mut text, format_args!("| {} | {} |\n", cell(command), cell(result)));
        } else {
            let (state, description) = line.split_once(": ")?;
            add(
                &mut text,
                format_args!("\n## {state}\n\n{description}\n\n| command | result |\n| --- | --- |\n"),
            );
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_makes_a_section_of_each_state() {
        let snapshot = "---\nsource: a.rs\nexpression: x\n---\nidle: ready, attempts 1\n  claim     refused: a | b\n  cancel    cancelled\n";
        let page = page("work", snapshot).unwrap();
        assert!(page.starts_with("# Work: every state"), "{page}");
        let end = "\n## idle\n\nready, attempts 1\n\n| command | result |\n| --- | --- |\n\
                   | claim | refused: a \\| b |\n| cancel | cancelled |\n";
        assert!(page.ends_with(end), "{page}");
        assert!(super::page("work", "no header").is_none());
    }
}
