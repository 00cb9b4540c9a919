//! The reference of the bundled extensions' own configuration, from the documentation of their modules, which
//! is where whoever changes a key looks.

use std::fs;

use super::source::Source;
use super::{MARK, add, unreadable};
use crate::error::Error;
use crate::machine::{self, file_error};

const FOLDER: &str = "crates/bundled/src";
/// The modules in the order of the page, with what their configuration belongs to.
const MODULES: &[(&str, &str)] = &[
    ("manual", "A handler of routes"),
    ("matching", "A handler of routes"),
    ("github", "A type of entries"),
    ("webhook", "A type of entries"),
];

const INTRODUCTION: &str = "\
What stands under `config` of a route, by its `handler`, and of an entry, by its `type`. The executor `shell`
has [a page of its own](../guide/jobs.md).
";

/// The page.
pub(super) fn page(_source: &Source) -> Result<String, Error> {
    let mut text = format!("# Extensions\n\n{MARK}\n\n{INTRODUCTION}");
    for (module, what) in MODULES {
        let file = format!("{FOLDER}/{module}.rs");
        let on_disk = machine::root().join(&file);
        let code = fs::read_to_string(&on_disk).map_err(file_error("read", &on_disk))?;
        let section = section(module, what, &code);
        text.push_str(
            &section.ok_or_else(|| unreadable(&file, "it does not begin with `name`: and what it is"))?,
        );
    }
    Ok(text)
}

/// A module's documentation as a section.
fn section(module: &str, what: &str, code: &str) -> Option<String> {
    let lines = code.lines().map_while(|line| line.strip_prefix("//!"));
    let doc = lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n");
    let (name, meaning) = doc.strip_prefix('`')?.split_once("`: ")?;
    let doc = linked(module, meaning);
    Some(format!("\n## `{name}`\n\n{what}: {}\n", doc.trim_end()))
}

/// The text with its references to inner modules turned into links to their files.
fn linked(module: &str, doc: &str) -> String {
    let mut parts = doc.split("[`");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let Some((path, rest)) = part.split_once("`]") else {
            text.push_str("[`");
            text.push_str(part);
            continue;
        };
        let inner = path.split("::").next().unwrap_or(path);
        add(&mut text, format_args!("[`{path}`](../../{FOLDER}/{module}/{inner}.rs){rest}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn section_is_the_documentation_of_the_module() {
        let code = "//! `hook`: what is sent.\n//!\n//! | key | meaning |\n//!\n//! See [`a::B`] and [`c`].\n\nmod a;\n//! no\n";
        assert_eq!(
            section("hook", "A type of entries", code).unwrap(),
            "\n## `hook`\n\nA type of entries: what is sent.\n\n| key | meaning |\n\nSee \
             [`a::B`](../../crates/bundled/src/hook/a.rs) and [`c`](../../crates/bundled/src/hook/c.rs).\n"
        );
        assert!(section("hook", "A handler", "//! Something.\n").is_none());
    }
}
