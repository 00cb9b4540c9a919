//! Words that may not stand in some places: a product's words in the generic core, paths of somebody's
//! machine, and notes to oneself.

use super::Finding;
use super::repository::Repository;

/// The core routes Events and runs Work of any kind. It must not know what one of its sources or
/// trackers calls its own things; an underscore joins words that count only together.
const CORE_BANNED: &[&str] = &["issue", "pull_request", "review", "building", "slack", "github"];
const CORE_CRATES: &[&str] = &["crates/domain/", "crates/runtime/"];

/// Places that exist only where something was written. Each is in two parts, so that this list does not
/// find itself.
const PRIVATE_PATHS: &[(&str, &str)] =
    &[("../sha", "red"), ("/wo", "rk/main"), ("/wo", "rk/shared"), ("/wo", "rk/."), (".lib", "rary")];

/// Notes to oneself, in two parts as above, each with what to do.
const UNFINISHED: &[(&str, &str)] =
    &[("TO", "DO"), ("FIX", "ME"), ("to", "do!"), ("un", "implemented!"), ("#[", "ignore"), ("for ", "now")];

/// No word of [`CORE_BANNED`] occurs in the [`CORE_CRATES`], in code, comments or names.
pub(super) fn core_words(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in repository.rust_files() {
        if !CORE_CRATES.iter().any(|folder| file.path.starts_with(folder)) {
            continue;
        }
        if let Some(word) = banned_word(&file.path) {
            findings.push(Finding::of(&file.path, core_advice(word)));
        }
        for (number, line) in file.numbered() {
            if let Some(word) = banned_word(line) {
                findings.push(Finding::at(&file.path, number, core_advice(word)));
            }
        }
    }
    findings
}

fn core_advice(word: &str) -> String {
    format!("the core does not know the word `{word}`; say it in generic words or move it to an extension")
}

fn banned_word(line: &str) -> Option<&'static str> {
    let words = split_words(line);
    CORE_BANNED.iter().copied().find(|banned| {
        let parts: Vec<&str> = banned.split('_').collect();
        words.windows(parts.len()).any(|window| {
            let last = parts.len() - 1;
            window[..last] == parts[..last]
                && (window[last] == parts[last] || window[last].strip_suffix('s') == Some(parts[last]))
        })
    })
}

/// The words of a line in lower case, identifiers taken apart at underscores and at capitals.
fn split_words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut previous = ' ';
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        let next_is_lower = characters.peek().is_some_and(|next| next.is_lowercase());
        // `GitHub` is one word with a capital inside; so is every brand that is written like it.
        let hump = character.is_uppercase()
            && (previous.is_lowercase() || (previous.is_uppercase() && next_is_lower));
        if (hump && !word.eq_ignore_ascii_case("git")) || !character.is_alphanumeric() {
            words.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
        }
        if character.is_alphanumeric() {
            word.extend(character.to_lowercase());
        }
        previous = character;
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}

/// No file names a place outside the repository that only its writer has.
pub(super) fn private_paths(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &repository.files {
        for (number, line) in file.numbered() {
            for (start, end) in PRIVATE_PATHS {
                let path = format!("{start}{end}");
                if occurs_alone(line, &path) {
                    findings.push(Finding::at(
                        &file.path,
                        number,
                        format!("`{path}` exists only on one machine; say what is meant without it"),
                    ));
                }
            }
        }
    }
    findings
}

/// Whether the text occurs other than as the end of a longer path, name or URL.
fn occurs_alone(line: &str, text: &str) -> bool {
    line.match_indices(text).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + text.len()..].chars().next();
        let continues = |c: char| c.is_alphanumeric() || c == '_';
        !before.is_some_and(|c| continues(c) || matches!(c, '.' | '-' | '}' | ')'))
            && (text.ends_with(['.', '/']) || !after.is_some_and(continues))
    })
}

/// Sources hold what is finished; what is not is in the tracker or is not there.
pub(super) fn unfinished(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in repository.files.iter().filter(|file| file.is("rs") || file.is("sh") || file.is("sql")) {
        for (number, line) in file.numbered() {
            for (start, end) in UNFINISHED {
                let note = format!("{start}{end}");
                if has_note(line, &note) {
                    findings.push(Finding::at(
                        &file.path,
                        number,
                        format!(
                            "`{note}`: finish it, or leave it out and write it down where work is planned"
                        ),
                    ));
                }
            }
        }
    }
    findings
}

/// Whether the note stands in the line as words of its own. Prose may start with a capital; a marker is
/// looked for as it is written.
fn has_note(line: &str, note: &str) -> bool {
    let is_prose = note.contains(' ');
    let line = if is_prose { line.to_lowercase() } else { line.to_owned() };
    let continues = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(note).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + note.len()..].chars().next();
        !before.is_some_and(continues) && (note.ends_with('!') || !after.is_some_and(continues))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_words_takes_identifiers_apart() {
        assert_eq!(
            split_words("fn next_pullRequest(HTTPServer)"),
            ["fn", "next", "pull", "request", "http", "server"]
        );
        assert_eq!(split_words("GitHubEntry GITHUB_X"), ["github", "entry", "github", "x"]);
    }

    #[test]
    fn core_words_finds_each_form_and_nothing_else() {
        for line in [
            "struct IssueId;",
            "// an issue",
            "PULL_REQUEST",
            "let pullRequests = 1;",
            "\"GitHub\"",
            "reviews",
        ] {
            let sample =
                Repository::sample(&[("crates/domain/src/a.rs", line), ("crates/runtime/src/b.rs", line)]);
            assert_eq!(core_words(&sample).len(), 2, "{line}");
        }
        for line in ["tissue", "// preview", "pull the request", "slacken"] {
            assert_eq!(core_words(&Repository::sample(&[("crates/domain/src/a.rs", line)])), [], "{line}");
        }
        assert_eq!(core_words(&Repository::sample(&[("crates/tracker/src/a.rs", "struct Issue;")])), []);
    }

    #[test]
    fn core_words_looks_at_file_names() {
        assert_eq!(core_words(&Repository::sample(&[("crates/runtime/src/review.rs", "")])).len(), 1);
    }

    #[test]
    fn private_paths_finds_a_place_and_leaves_routes_alone() {
        for (start, end) in PRIVATE_PATHS {
            let line = format!("see {start}{end} for more");
            assert_eq!(private_paths(&Repository::sample(&[("docs/a.md", &line)])).len(), 1, "{line}");
        }
        for line in ["POST /v1/work/{id}/cancel", "\"/work/{id}\"", "self.library()", "crates/x/work/main.rs"]
        {
            assert_eq!(private_paths(&Repository::sample(&[("docs/a.md", line)])), [], "{line}");
        }
    }

    #[test]
    fn unfinished_finds_every_note() {
        for (start, end) in UNFINISHED {
            let line = format!("    // {start}{end}: later");
            assert_eq!(unfinished(&Repository::sample(&[("crates/a/src/a.rs", &line)])).len(), 1, "{line}");
        }
        for line in ["let todos = 1;", "// for nowhere", "mastodon!"] {
            assert_eq!(unfinished(&Repository::sample(&[("crates/a/src/a.rs", line)])), [], "{line}");
        }
        let capital = format!("// {}{}", "For ", "now it is");
        assert_eq!(unfinished(&Repository::sample(&[("a.rs", &capital)])).len(), 1);
    }
}
