//! Which crate may know which: the architecture's walls, as far as Cargo's tables show them.

use super::Finding;
use super::repository::Repository;
use crate::metadata::{Kind, Package};

/// A crate of the workspace and the crates of the workspace that it may use.
struct Allowed {
    package: &'static str,
    /// In any table.
    uses: &'static [&'static str],
    /// In `[dev-dependencies]` besides.
    in_tests: &'static [&'static str],
}

const ALLOWED: &[Allowed] = &[
    Allowed { package: "domain", uses: &[], in_tests: &[] },
    Allowed { package: "extension", uses: &["domain"], in_tests: &[] },
    Allowed { package: "runtime", uses: &["domain", "extension"], in_tests: &["spec", "store"] },
    Allowed { package: "tracker", uses: &["domain"], in_tests: &[] },
    Allowed { package: "store", uses: &["domain", "tracker"], in_tests: &["spec"] },
    // One is started for every job, twice, and nothing of the daemon may make it larger.
    Allowed { package: "launcher", uses: &[], in_tests: &[] },
    Allowed { package: "protocol", uses: &["extension", "launcher"], in_tests: &["spec"] },
    Allowed { package: "schedule", uses: &["extension"], in_tests: &[] },
    Allowed { package: "bundled", uses: &["extension", "launcher"], in_tests: &["spec"] },
    Allowed { package: "spec", uses: &["domain", "extension"], in_tests: &[] },
    Allowed {
        package: "open-conduit",
        uses: &["bundled", "domain", "extension", "protocol", "runtime", "schedule", "store", "tracker"],
        in_tests: &["spec"],
    },
    // The tools start what they test as anyone else would.
    Allowed { package: "xtask", uses: &[], in_tests: &[] },
];

/// An external package that only some crates of the workspace may name, in any table.
struct Wall {
    package: &'static str,
    only: Only,
    /// Crates that may name it for their tests and benchmarks.
    in_tests: &'static [&'static str],
}

enum Only {
    /// These crates and no other.
    In(&'static [&'static str]),
    /// Every crate but these.
    OutsideOf(&'static [&'static str]),
}

const WALLS: &[Wall] = &[
    Wall { package: "tokio", only: Only::OutsideOf(&["domain", "launcher", "schedule"]), in_tests: &[] },
    Wall { package: "tracing", only: Only::OutsideOf(&["domain", "launcher", "schedule"]), in_tests: &[] },
    // The benchmark runs the store's statements bare.
    Wall { package: "rusqlite", only: Only::In(&["store"]), in_tests: &["open-conduit"] },
    Wall { package: "tokio-postgres", only: Only::In(&["store"]), in_tests: &["open-conduit", "runtime"] },
    Wall { package: "axum", only: Only::In(&["open-conduit"]), in_tests: &[] },
    Wall { package: "clap", only: Only::In(&["open-conduit", "xtask"]), in_tests: &[] },
];

/// Every edge between crates of the workspace is one of [`ALLOWED`].
pub(super) fn allowed_edges(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for member in &repository.members {
        let Some(allowed) = ALLOWED.iter().find(|row| row.package == member.name) else {
            findings.push(Finding::of(
                "Cargo.toml",
                format!(
                    "crate `{}` has no row in xtask/src/tidy/edges.rs; a new crate is a design decision: say there \
                     what it may use",
                    member.name
                ),
            ));
            continue;
        };
        for dependency in &member.dependencies {
            let name = dependency.name.as_str();
            let is_ours = repository.members.iter().any(|other| other.name == name);
            let is_allowed = allowed.uses.contains(&name)
                || (dependency.kind == Kind::Dev && allowed.in_tests.contains(&name));
            if is_ours && !is_allowed {
                findings.push(Finding::of(
                    &manifest(member),
                    format!(
                        "`{}` may not depend on `{name}`; move the code to the crate that may",
                        member.name
                    ),
                ));
            }
        }
    }
    findings
}

/// Every external package of [`WALLS`] is named only where it may be.
pub(super) fn walls(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for member in &repository.members {
        for dependency in &member.dependencies {
            let Some(wall) = WALLS.iter().find(|wall| wall.package == dependency.name) else {
                continue;
            };
            let name = member.name.as_str();
            let is_allowed = match wall.only {
                Only::In(crates) => crates.contains(&name),
                Only::OutsideOf(crates) => !crates.contains(&name),
            };
            let is_test = dependency.kind == Kind::Dev && wall.in_tests.contains(&name);
            if !is_allowed && !is_test {
                findings.push(Finding::of(
                    &manifest(member),
                    format!("`{}` may not use `{}`; keep it behind the wall", member.name, wall.package),
                ));
            }
        }
    }
    findings
}

fn manifest(member: &Package) -> String {
    match member.name.as_str() {
        "xtask" => "xtask/Cargo.toml".to_owned(),
        "open-conduit" => "crates/app/Cargo.toml".to_owned(),
        name => format!("crates/{name}/Cargo.toml"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Dependency;

    fn member(name: &str, dependencies: &[(&str, Kind)]) -> Package {
        Package {
            name: name.to_owned(),
            version: "0.0.0".to_owned(),
            license: None,
            dependencies: dependencies
                .iter()
                .map(|(name, kind)| Dependency { name: (*name).to_owned(), kind: *kind })
                .collect(),
        }
    }

    fn repository(members: Vec<Package>) -> Repository {
        Repository { members, ..Repository::default() }
    }

    #[test]
    fn allowed_edges_refuses_an_edge_that_is_not_in_the_table() {
        let found = allowed_edges(&repository(vec![
            member("store", &[("domain", Kind::Normal), ("serde", Kind::Normal)]),
            member("runtime", &[("store", Kind::Normal), ("domain", Kind::Build)]),
            member("domain", &[]),
        ]));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].path, "crates/runtime/Cargo.toml");
        assert!(found[0].message.contains("`runtime` may not depend on `store`"), "{found:?}");
    }

    #[test]
    fn allowed_edges_lets_tests_use_more() {
        let members = vec![member("runtime", &[("store", Kind::Dev)]), member("store", &[])];
        assert_eq!(allowed_edges(&repository(members)), []);
    }

    #[test]
    fn allowed_edges_wants_a_row_for_a_new_crate() {
        let found = allowed_edges(&repository(vec![member("planner", &[])]));
        assert!(found[0].message.contains("crate `planner` has no row"), "{found:?}");
    }

    #[test]
    fn walls_keeps_the_domain_pure_and_sql_in_one_crate() {
        let found = walls(&repository(vec![
            member("domain", &[("tokio", Kind::Dev)]),
            member("runtime", &[("tokio", Kind::Normal), ("rusqlite", Kind::Normal)]),
            member("store", &[("rusqlite", Kind::Normal)]),
            member("open-conduit", &[("rusqlite", Kind::Dev), ("tokio-postgres", Kind::Normal)]),
            member("xtask", &[("clap", Kind::Normal)]),
        ]));
        let messages: Vec<&str> = found.iter().map(|finding| finding.message.as_str()).collect();
        assert_eq!(messages.len(), 3, "{messages:?}");
        assert!(messages[0].contains("`domain` may not use `tokio`"));
        assert!(messages[1].contains("`runtime` may not use `rusqlite`"));
        assert!(messages[2].contains("`open-conduit` may not use `tokio-postgres`"));
    }
}
