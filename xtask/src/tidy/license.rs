//! Licenses of what is linked in. The list is in `deny.toml`, which cargo-deny reads too.

use super::Finding;
use super::repository::Repository;

/// Every package may be used under the licenses that `deny.toml` allows.
pub(super) fn licenses(repository: &Repository) -> Vec<Finding> {
    let allowed = |license: &str| repository.licenses.iter().any(|entry| entry == license);
    let mut findings = Vec::new();
    for package in &repository.packages {
        let problem = match package.license.as_deref() {
            None => Some("states no license".to_owned()),
            Some(expression) => match permits(expression, &allowed) {
                Some(true) => None,
                Some(false) => Some(format!("is under `{expression}`, which deny.toml does not allow")),
                None => Some(format!("states a license that can't be read: `{expression}`")),
            },
        };
        if let Some(problem) = problem {
            findings.push(Finding::of(
                "Cargo.lock",
                format!(
                    "{} {} {problem}; replace the package, or allow the license",
                    package.name, package.version
                ),
            ));
        }
    }
    findings
}

/// Whether an SPDX expression can be satisfied by allowed licenses; `None` when it is not one. `AND` binds
/// tighter than `OR`, `/` is the old way to write `OR`, and a `WITH` exception only gives more rights.
fn permits(expression: &str, allowed: &dyn Fn(&str) -> bool) -> Option<bool> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let mut reader = Reader { words: spaced.split_whitespace().collect(), at: 0, allowed };
    let answer = reader.any()?;
    (reader.at == reader.words.len()).then_some(answer)
}

struct Reader<'a> {
    words: Vec<&'a str>,
    at: usize,
    allowed: &'a dyn Fn(&str) -> bool,
}

impl<'a> Reader<'a> {
    fn any(&mut self) -> Option<bool> {
        let mut answer = self.all()?;
        while self.take("OR") {
            answer |= self.all()?;
        }
        Some(answer)
    }

    fn all(&mut self) -> Option<bool> {
        let mut answer = self.one()?;
        while self.take("AND") {
            answer &= self.one()?;
        }
        Some(answer)
    }

    fn one(&mut self) -> Option<bool> {
        if self.take("(") {
            let answer = self.any()?;
            return self.take(")").then_some(answer);
        }
        let license = self.next()?;
        if matches!(license, "OR" | "AND" | "WITH" | ")") {
            return None;
        }
        if self.take("WITH") {
            self.next()?;
        }
        Some((self.allowed)(license))
    }

    fn next(&mut self) -> Option<&'a str> {
        let word = self.words.get(self.at).copied();
        self.at += 1;
        word
    }

    fn take(&mut self, word: &str) -> bool {
        let is_next = self.words.get(self.at) == Some(&word);
        self.at += usize::from(is_next);
        is_next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Package;

    #[test]
    fn permits_reads_expressions() {
        let allowed = |license: &str| matches!(license, "MIT" | "ISC");
        for (expression, answer) in [
            ("MIT", Some(true)),
            ("GPL-3.0", Some(false)),
            ("GPL-3.0 OR MIT", Some(true)),
            ("GPL-3.0/MIT", Some(true)),
            ("MIT AND GPL-3.0", Some(false)),
            ("GPL-3.0 OR MIT AND ISC", Some(true)),
            ("(GPL-3.0 OR MIT) AND GPL-2.0", Some(false)),
            ("(MIT OR GPL-3.0) AND ISC", Some(true)),
            ("MIT WITH LLVM-exception", Some(true)),
            ("MIT MIT", None),
            ("MIT OR", None),
            ("(MIT", None),
            ("", None),
        ] {
            assert_eq!(permits(expression, &allowed), answer, "{expression}");
        }
    }

    #[test]
    fn licenses_refuses_what_is_not_allowed_or_not_stated() {
        let package = |name: &str, license: Option<&str>| Package {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            license: license.map(str::to_owned),
            dependencies: Vec::new(),
        };
        let sample = Repository {
            packages: vec![
                package("good", Some("MIT")),
                package("bad", Some("GPL-3.0")),
                package("none", None),
            ],
            licenses: vec!["MIT".to_owned()],
            ..Repository::default()
        };
        let messages: Vec<_> = licenses(&sample).into_iter().map(|finding| finding.message).collect();
        assert_eq!(messages.len(), 2, "{messages:?}");
        assert!(messages[0].starts_with("bad 1.0.0 is under `GPL-3.0`"));
        assert!(messages[1].starts_with("none 1.0.0 states no license"));
    }
}
