//! A mutant's file: a head that says which rule it breaks and which tests notice, and the difference.

/// The head of a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    /// The rule of `docs/spec` that it breaks.
    pub(crate) rule: String,
    /// The package whose tests are run.
    pub(crate) package: String,
    /// Which of its tests: `lib`, or the name of an integration test.
    pub(crate) target: String,
    /// The tests that must fail, by their whole names.
    pub(crate) killed_by: Vec<String>,
}

impl Head {
    /// Reads what stands before the first difference.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let head = text.split("diff --git").next().unwrap_or_default();
        let value = |name: &str| {
            let line = head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.map(|value| value.trim().to_owned())
                .ok_or_else(|| format!("its head has no line `{name}: …`"))
        };
        let killed_by: Vec<String> =
            value("Killed by")?.split(',').map(|name| name.trim().to_owned()).collect();
        if killed_by.iter().any(String::is_empty) {
            return Err("it names no test that must fail".to_owned());
        }
        Ok(Self { rule: value("Rule")?, package: value("Package")?, target: value("Target")?, killed_by })
    }
}

/// What a patch changes in one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change<'p> {
    /// The file, from the root.
    pub(crate) path: &'p str,
    /// The lines that each part of the difference expects, in order.
    parts: Vec<Vec<&'p str>>,
}

impl<'p> Change<'p> {
    /// Reads the differences of a patch.
    pub(crate) fn parse(text: &'p str) -> Result<Vec<Self>, String> {
        let mut changes: Vec<Self> = Vec::new();
        // How many more lines of the old and of the new file the part at hand has.
        let mut left = (0, 0);
        for line in text.lines().skip_while(|line| !line.starts_with("diff --git ")) {
            if left != (0, 0) {
                let change = changes.last_mut().expect("a part follows the name of its file");
                let part = change.parts.last_mut().expect("lines follow the place of their part");
                let (old, new) = match line.split_at_checked(1) {
                    Some((" ", rest)) => (Some(rest), true),
                    Some(("-", rest)) => (Some(rest), false),
                    Some(("+", _added)) => (None, true),
                    // An empty line whose one space an editor took away.
                    None => (Some(""), true),
                    Some(_) => return Err(format!("its line `{line}` is none of a difference")),
                };
                part.extend(old);
                let less = |count: usize, is_one: bool| count.checked_sub(usize::from(is_one));
                left = less(left.0, old.is_some())
                    .zip(less(left.1, new))
                    .ok_or("a part of it has more lines than it says")?;
            } else if let Some(path) = line.strip_prefix("--- a/") {
                changes.push(Self { path, parts: Vec::new() });
            } else if let Some(place) = line.strip_prefix("@@ ") {
                left = counts(place).ok_or_else(|| format!("it has a part at no place: `{line}`"))?;
                changes.last_mut().ok_or("a part of it is of no file")?.parts.push(Vec::new());
            }
        }
        if left != (0, 0) {
            return Err("a part of it has fewer lines than it says".to_owned());
        }
        if changes.is_empty() || changes.iter().any(|change| change.parts.is_empty()) {
            return Err("it changes nothing".to_owned());
        }
        Ok(changes)
    }

    /// Whether the file still has the lines that it expects, each part of them in one place only.
    pub(crate) fn check(&self, text: &str) -> Result<(), String> {
        let lines: Vec<&str> = text.lines().collect();
        for part in &self.parts {
            let places = lines.windows(part.len().max(1)).filter(|window| window == part).count();
            let first = part.iter().map(|line| line.trim()).find(|line| line.len() > 1).unwrap_or_default();
            match places {
                1 => {}
                0 => {
                    return Err(format!("it no longer applies to {} at `{first}`; write it anew", self.path));
                }
                _ => return Err(format!("{} has more than one place at `{first}`", self.path)),
            }
        }
        Ok(())
    }
}

/// How many lines of the old and the new file a part has, of `-12,3 +12,4 @@`.
fn counts(place: &str) -> Option<(usize, usize)> {
    let (old, rest) = place.strip_prefix('-')?.split_once(" +")?;
    let (new, _where) = rest.split_once(" @@")?;
    let count = |range: &str| range.split_once(',').map_or(Some(1), |(_line, count)| count.parse().ok());
    Some((count(old)?, count(new)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "A Wait is not woken.\n\nRule: WAI-6\nPackage: runtime\nTarget: runner\n\
                        Killed by: memory::a, memory::b\n\n";
    const BODY: &str = "diff --git a/x.rs b/x.rs\n--- a/x.rs\n+++ b/x.rs\n@@ -2,3 +2,2 @@\n two\n-three\n four\n\
                        @@ -7 +6 @@ fn seven\n-seven\n+eight\n";

    #[test]
    fn a_head_names_rule_package_target_and_tests() {
        let head = Head::parse(&format!("{HEAD}diff --git a/x b/x\nPackage: other\n")).unwrap();
        assert_eq!((head.rule.as_str(), head.package.as_str()), ("WAI-6", "runtime"));
        assert_eq!(
            (head.target.as_str(), head.killed_by),
            ("runner", vec!["memory::a".into(), "memory::b".into()])
        );
    }

    #[test]
    fn a_head_that_names_no_test_is_refused() {
        let of = |rest: &str| Head::parse(&format!("Rule: A-1\nPackage: a\nTarget: lib\n{rest}"));
        assert!(of("Killed by: memory::a\n").is_ok());
        for head in [of(""), of("Killed by:\n"), of("Killed by: a,\n"), Head::parse("")] {
            assert!(head.is_err(), "{head:?}");
        }
    }

    #[test]
    fn a_change_applies_where_its_lines_are_once() {
        let changes = Change::parse(BODY).unwrap();
        let [change] = &changes[..] else { panic!("{changes:?}") };
        assert_eq!((change.path, change.parts.len()), ("x.rs", 2));
        let check = |text: &str| change.check(text).is_ok();
        assert!(check("two\nthree\nfour\nseven\n"));
        assert!(check("zero\none\ntwo\nthree\nfour\n\nfive\nseven"), "it has only moved");
        assert!(!check("two\nthree\n4\nseven\n"), "a neighbor changed");
        assert!(!check("two\nthree\nfour\n"), "a part is gone");
        assert!(!check("two\nthree\nfour\nseven\nseven\n"), "it could mean either");
        assert!(!check(""));
    }

    #[test]
    fn a_part_with_other_lines_than_it_says_is_refused() {
        let wrong = ["@@ -2,4 +2,2 @@", "@@ -2,2 +2,2 @@", "@@ -2,3 +2,3 @@", "@@ 2,3 @@"];
        for wrong in wrong {
            let body = BODY.replace("@@ -2,3 +2,2 @@", wrong);
            assert!(Change::parse(&body).is_err(), "{wrong}");
        }
        assert!(Change::parse(HEAD).is_err(), "nothing is changed");
    }
}
