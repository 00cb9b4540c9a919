//! The documents that a newcomer expects, and the links between them.

use super::Finding;
use super::repository::Repository;

const REQUIRED: &[&str] = &[
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "AGENTS.md",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "docs/style.md",
    "docs/glossary.md",
];

/// Every document of [`REQUIRED`] is there.
pub(super) fn required(repository: &Repository) -> Vec<Finding> {
    REQUIRED
        .iter()
        .filter(|path| !repository.paths.contains(**path))
        .map(|path| Finding::of(path, "this document must exist; write it"))
        .collect()
}

/// Every relative link in a Markdown file leads to a file or folder of the repository.
pub(super) fn links(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in repository.files.iter().filter(|file| file.is("md")) {
        let mut in_code = false;
        for (number, line) in file.numbered() {
            if line.trim_start().starts_with("```") {
                in_code = !in_code;
            }
            if in_code {
                continue;
            }
            for target in link_targets(line) {
                let place = target.split('#').next().unwrap_or_default();
                let leads_somewhere = place.is_empty()
                    || resolve(&file.path, place).is_some_and(|path| exists(repository, &path));
                if !leads_somewhere {
                    findings.push(Finding::at(
                        &file.path,
                        number,
                        format!("the link to `{target}` leads nowhere; correct or remove it"),
                    ));
                }
            }
        }
    }
    findings
}

/// The targets of a line's inline links that are not addresses on the network. Code spans are left out.
fn link_targets(line: &str) -> Vec<&str> {
    let is_code = |at: usize| line[..at].matches('`').count() % 2 == 1;
    line.match_indices("](")
        .filter(|(at, _)| !is_code(*at))
        .filter_map(|(at, opening)| {
            let rest = &line[at + opening.len()..];
            let target = rest[..rest.find(')')?].split_whitespace().next()?;
            let is_address = target.contains("://") || target.starts_with("mailto:");
            (!is_address).then_some(target)
        })
        .collect()
}

/// The path from the root that a link in a file leads to, or `None` when it leaves the repository.
fn resolve(from: &str, target: &str) -> Option<String> {
    let mut folders: Vec<&str> = from.split('/').collect();
    folders.pop();
    if target.starts_with('/') {
        return None;
    }
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                folders.pop()?;
            }
            name => folders.push(name),
        }
    }
    Some(folders.join("/"))
}

fn exists(repository: &Repository, path: &str) -> bool {
    let folder = format!("{path}/");
    path.is_empty() || repository.paths.iter().any(|other| other == path || other.starts_with(&folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn required_names_each_document_that_is_missing() {
        let found = required(&Repository::sample(&[("README.md", "")]));
        assert_eq!(found.len(), REQUIRED.len() - 1);
        assert!(!found.iter().any(|finding| finding.path == "README.md"));
    }

    #[test]
    fn links_finds_one_that_leads_nowhere() {
        let text = "[a](style.md) [b](../README.md#part) [c](gone.md) [d](#here) [e](https://example.com/x)\n\
                    ```\n[f](gone.md)\n```\n`[g](gone.md)` [h](../../outside.md) [i](design) [j](/etc/passwd)\n";
        let sample = Repository::sample(&[
            ("docs/index.md", text),
            ("docs/style.md", ""),
            ("docs/design/0001-x.md", ""),
            ("README.md", ""),
        ]);
        let messages: Vec<_> =
            links(&sample).into_iter().map(|finding| (finding.line, finding.message)).collect();
        assert_eq!(messages.len(), 3, "{messages:?}");
        assert!(messages[0].1.contains("gone.md") && messages[0].0 == Some(1));
        assert!(messages[1].1.contains("outside.md") && messages[1].0 == Some(5));
        assert!(messages[2].1.contains("/etc/passwd"));
    }
}
