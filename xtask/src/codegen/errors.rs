//! The index of the error codes, from their pages.

use std::fs;

use super::source::Source;
use super::{MARK, add, cell, unreadable};
use crate::error::Error;
use crate::machine::{self, file_error};

/// The index.
pub(super) const INDEX: &str = "docs/errors/README.md";
const FOLDER: &str = "docs/errors";

const INTRODUCTION: &str = "\
Every error carries one of these words as `code`, over HTTP and on the command line. A word keeps its meaning
for ever; the sentence beside it may change. Those without a status are only shown on the command line.
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
const FORM: &str = "it does not begin with a title, a line that says where it is shown, and a paragraph";

/// One code.
struct Entry {
    /// Of the answer that has it; none when only the command line shows it.
    status: Option<u16>,
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
        let status = match paragraphs.next()?.strip_prefix("HTTP status ") {
            Some(status) => Some(status.strip_suffix('.')?.parse().ok()?),
            None => None,
        };
        let paragraph = cell(paragraphs.next()?);
        let sentence = paragraph.split_once(". ").map_or(paragraph.as_str(), |(first, _rest)| first);
        let meaning = format!("{}.", sentence.trim_end_matches('.'));
        Some(Self { status, code: code.to_owned(), meaning })
    }
}

fn table(mut entries: Vec<Entry>) -> String {
    entries.sort_by(|a, b| {
        let place = |entry: &Entry| (entry.status.is_none(), entry.status);
        place(a).cmp(&place(b)).then_with(|| a.code.cmp(&b.code))
    });
    let mut text = format!(
        "# Error codes\n\n{MARK}\n\n{INTRODUCTION}\n| code | status | meaning |\n| --- | --- | --- |\n"
    );
    for Entry { status, code, meaning } in entries {
        let status = status.map(|status| status.to_string()).unwrap_or_default();
        add(&mut text, format_args!("| [`{code}`]({code}.md) | {status} | {meaning} |\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_is_in_the_order_of_statuses() {
        let page = |code: &str, place: &str| format!("# `{code}`\n\n{place}\n\nIt is\nheld. Or so.\n");
        let entries = [
            ("here", "The command line says this."),
            ("later", "HTTP status 500."),
            ("held", "HTTP status 409."),
            ("gone", "HTTP status 409."),
        ]
        .map(|(code, place)| Entry::read(code, &page(code, place)).unwrap());
        let text = table(entries.into());
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| [")).collect();
        assert_eq!(
            rows,
            [
                "| [`gone`](gone.md) | 409 | It is held. |",
                "| [`held`](held.md) | 409 | It is held. |",
                "| [`later`](later.md) | 500 | It is held. |",
                "| [`here`](here.md) |  | It is held. |",
            ]
        );
    }

    #[test]
    fn read_refuses_a_page_of_another_form() {
        for text in [
            "",
            "# `held`\n\nHeld.\n",
            "# `held`\n\nHTTP status x.\n\nHeld.\n",
            "# `other`\n\nHTTP status 409.\n\nHeld.\n",
        ] {
            assert!(Entry::read("held", text).is_none(), "{text}");
        }
    }
}
