//! How many packages the binary may be made of. Each is somebody's code that we vouch for.

use super::Finding;
use super::repository::Repository;

/// Packages in the binary or run while it is built, ours included.
const PACKAGES_MAX: usize = 300;

/// The binary keeps to [`PACKAGES_MAX`]; the number is always shown.
pub(super) fn packages(repository: &Repository) -> Vec<Finding> {
    let count = repository.linked.len();
    if count > PACKAGES_MAX {
        return vec![Finding::of(
            "Cargo.lock",
            format!(
                "the binary needs {count} packages, and {PACKAGES_MAX} is the most; do without the newest"
            ),
        )];
    }
    vec![Finding::notice(
        "Cargo.lock",
        format!("the binary needs {count} packages of at most {PACKAGES_MAX}"),
    )]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::Severity;

    #[test]
    fn packages_fails_beyond_the_budget_and_shows_the_number() {
        let of = |count: usize| {
            let linked = (0..count).map(|n| format!("p{n} v1.0.0")).collect();
            packages(&Repository { linked, ..Repository::default() })
        };
        assert_eq!(of(PACKAGES_MAX)[0].severity, Severity::Notice);
        assert!(of(PACKAGES_MAX)[0].message.contains("300 packages"));
        assert_eq!(of(PACKAGES_MAX + 1)[0].severity, Severity::Fault);
    }
}
