//! The index of the error codes, from their pages.

use std::fs;

use super::source::Source;
use super::{MARK, cell, unreadable};
use crate::error::Error;
use crate::machine::{self, file_error};

/// The index.
pub(super) const INDEX: &str = "docs/errors/README.md";
const FOLDER: &str = "docs/errors";

const INTRODUCTION: &str = "\
Every error carries one of these words as `code`, over HTTP and on the command line. A word keeps its meaning
for ever; the sentence beside it may change.
";

/// The index of the pages that are there.
pub(super) fn index(_source: &Source) -> Result<String, Error> {
    let folder = machine::root().join(FOLDER);
    let mut entries = Vec::new();
    for file in fs::read_dir(&folder).map_err(file_error("read", &folder))? {
        let path = file.map_err(file_error("read", &folder))?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if let Some(code) = name.strip_suffix(".md").filter(|code| *code != "README") {
            let text = fs::read_to_string(&path).map_err(file_error("read", &path))?;
            let entry = Entry::read(code, &text);
            entries.push(entry.ok_or_else(|| unreadable(&format!("{FOLDER}/{name}"), FORM))?);
        }
    }
    Ok(table(entries))
}

/// What every page must begin with.
const FORM: &str = "it does not begin with a title, a line `HTTP status N.` and a paragraph";

/// One code.
struct Entry {
    status: u16,
    code: String,
    /// The first sentence of its page.
    meaning: String,
}

impl Entry {
    fn read(code: &str, text: &str) -> Option<Self> {
        let mut paragraphs = text.split("\n\n").map(str::trim);
        if paragraphs.next()? != format!("# `{code}`") {
            return None;
        }
        let status = paragraphs.next()?.strip_prefix("HTTP status ")?.strip_suffix('.')?.parse().ok()?;
        let paragraph = cell(paragraphs.next()?);
        let sentence = paragraph.split_once(". ").map_or(paragraph.as_str(), |(first, _rest)| first);
        let meaning = format!("{}.", sentence.trim_end_matches('.'));
        Some(Self { status, code: code.to_owned(), meaning })
    }
}

fn table(mut entries: Vec<Entry>) -> String {
    entries.sort_by(|a, b| (a.status, &a.code).cmp(&(b.status, &b.code)));
    let mut text = format!("# Error codes\n\n{MARK}\n\n{INTRODUCTION}\n| code | status | meaning |\n| --- | --- | --- |\n");
    for Entry { status, code, meaning } in entries {
        text.push_str(&format!("| [`{code}`]({code}.md) | {status} | {meaning} |\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_is_in_the_order_of_statuses() {
        let page = |code: &str, status: u16| format!("# `{code}`\n\nHTTP status {status}.\n\nIt is\nheld. Or so.\n");
        let entries = [("later", 500), ("held", 409), ("gone", 409)]
            .map(|(code, status)| Entry::read(code, &page(code, status)).unwrap());
        let text = table(entries.into());
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| [")).collect();
        assert_eq!(
            rows,
            [
                "| [`gone`](gone.md) | 409 | It is held. |",
                "| [`held`](held.md) | 409 | It is held. |",
                "| [`later`](later.md) | 500 | It is held. |",
            ]
        );
    }

    #[test]
    fn read_refuses_a_page_of_another_form() {
        for text in ["", "# `held`\n\nHeld.\n", "# `other`\n\nHTTP status 409.\n\nHeld.\n"] {
            assert!(Entry::read("held", text).is_none(), "{text}");
        }
    }
}
