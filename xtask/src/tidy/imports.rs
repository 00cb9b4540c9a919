//! What the specification may take from the domain. Its reference is worth something only while it
//! does not reuse the rules that it has to check.

use super::Finding;
use super::repository::Repository;

const SPEC_CRATE: &str = "crates/spec/";
const DOMAIN: &str = "domain";

/// Every path into `domain` in the specification crate is one that `xtask/tidy.toml` lists.
pub(super) fn specification_imports(repository: &Repository) -> Vec<Finding> {
    let allowed = &repository.settings.spec_imports;
    let mut findings = Vec::new();
    for file in repository.rust_files().filter(|file| file.path.starts_with(SPEC_CRATE)) {
        for (line, path) in domain_paths(&file.text) {
            let is_allowed =
                allowed.iter().any(|entry| path == *entry || path.starts_with(&format!("{entry}::")));
            if !is_allowed {
                findings.push(Finding::at(
                    &file.path,
                    line,
                    format!(
                        "the specification may not use `{path}`; work it out independently, or list it in \
                         xtask/tidy.toml if it is a value and not a rule"
                    ),
                ));
            }
        }
    }
    findings
}

/// Every path that starts with the crate's name, with its line; groups are spread out.
fn domain_paths(text: &str) -> Vec<(usize, String)> {
    let code = without_comments(text);
    let mut paths = Vec::new();
    for (at, _) in code.match_indices(DOMAIN) {
        let before = code[..at].trim_end();
        let is_word_start = !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        // A leading `::` names the crate too; after a word it is some other path's end.
        let inside_path = before
            .strip_suffix("::")
            .is_some_and(|outer| outer.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '>')));
        if !is_word_start || inside_path {
            continue;
        }
        let rest = &code[at + DOMAIN.len()..];
        let line = code[..at].matches('\n').count() + 1;
        if let Some(tree) = rest.trim_start().strip_prefix("::") {
            let mut reader = TreeReader { rest: tree };
            let mut spread = Vec::new();
            reader.tree(DOMAIN, &mut spread);
            paths.extend(spread.into_iter().map(|path| (line, path)));
        } else if before.ends_with("use") && rest.trim_start().starts_with([';', 'a']) {
            // `use domain;` and `use domain as d;` open everything.
            paths.push((line, DOMAIN.to_owned()));
        }
    }
    paths
}

/// The text with line comments blanked, its lines kept.
fn without_comments(text: &str) -> String {
    text.lines().fold(String::new(), |mut code, line| {
        if !line.trim_start().starts_with("//") {
            code.push_str(line);
        }
        code.push('\n');
        code
    })
}

/// Reads what follows `domain::` in a path or a `use`.
struct TreeReader<'a> {
    rest: &'a str,
}

impl TreeReader<'_> {
    /// Adds every path of the tree that starts here to `paths`, each after `prefix`.
    fn tree(&mut self, prefix: &str, paths: &mut Vec<String>) {
        self.rest = self.rest.trim_start();
        if let Some(group) = self.rest.strip_prefix('{') {
            self.rest = group;
            self.group(prefix, paths);
            return;
        }
        if let Some(rest) = self.rest.strip_prefix('*') {
            self.rest = rest;
            paths.push(format!("{prefix}::*"));
            return;
        }
        let end = self.rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        let (segment, rest) = self.rest.split_at(end);
        self.rest = rest;
        let path = match segment {
            "" | "self" => prefix.to_owned(),
            _ => format!("{prefix}::{segment}"),
        };
        match self.rest.trim_start().strip_prefix("::") {
            // What follows `::<` are type arguments, which are paths of their own.
            Some(deeper) if !segment.is_empty() && !deeper.trim_start().starts_with('<') => {
                self.rest = deeper;
                self.tree(&path, paths);
            }
            _ => paths.push(path),
        }
    }

    fn group(&mut self, prefix: &str, paths: &mut Vec<String>) {
        loop {
            self.rest = self.rest.trim_start();
            if let Some(rest) = self.rest.strip_prefix('}') {
                self.rest = rest;
                return;
            }
            self.tree(prefix, paths);
            // Past a rename, to the comma or the end of the group.
            let Some(end) = self.rest.find([',', '}']) else {
                return;
            };
            self.rest = self.rest[end..].strip_prefix(',').unwrap_or(&self.rest[end..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str) -> Vec<String> {
        domain_paths(text).into_iter().map(|(_, path)| path).collect()
    }

    #[test]
    fn domain_paths_spreads_groups_and_globs() {
        assert_eq!(
            paths("use domain::{id::{WorkId, EventId as E}, work::*, store::{self, Tx}};"),
            [
                "domain::id::WorkId",
                "domain::id::EventId",
                "domain::work::*",
                "domain::store",
                "domain::store::Tx"
            ]
        );
    }

    #[test]
    fn domain_paths_reads_paths_in_code() {
        assert_eq!(
            paths("let x = domain::work::start::<u8>(::domain::id::X);"),
            ["domain::work::start", "domain::id::X"]
        );
        assert_eq!(paths("use domain as d;"), ["domain"]);
        assert_eq!(paths("// domain::work\nlet domain = other::domain::x; let subdomain = 1;"), [""; 0]);
    }

    #[test]
    fn specification_imports_refuses_what_is_not_listed() {
        let text = "//! A.\nuse domain::id::WorkId;\nuse domain::{\n    id,\n    work,\n};\nuse domain::*;\n";
        let mut sample =
            Repository::sample(&[("crates/spec/src/a.rs", text), ("crates/store/src/a.rs", text)]);
        sample.settings.spec_imports = vec!["domain::id".to_owned()];
        let found = specification_imports(&sample);
        let places: Vec<_> = found.iter().map(|finding| (finding.path.as_str(), finding.line)).collect();
        assert_eq!(places, [("crates/spec/src/a.rs", Some(3)), ("crates/spec/src/a.rs", Some(7))]);
        assert!(found[0].message.contains("`domain::work`") && found[1].message.contains("`domain::*`"));
    }
}
