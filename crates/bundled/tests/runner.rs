//! The one integration binary of this crate: extensions with real processes, seen through `extension` alone.

// Says to the linter that everything here is a test, what it calls included.
#[cfg(test)]
mod shell {
    //! The shell executor.
    mod fixture;

    mod turn;
    mod binary;
    mod input;
    mod inbox;
    mod result;
    mod redaction;
    mod toolbelt;
    mod tree;
    mod adoption;
    mod verdict;
    mod reserve;
}

#[cfg(test)]
mod git {
    //! The git provider of workspaces, on real repositories.
    mod fixture;

    mod modes;
    mod crash;
}

/// A file that no `mod` names would never be compiled, and its tests would seem to pass.
#[test]
fn every_file_is_a_module() {
    let source = include_str!("runner.rs");
    for folder in ["shell", "git"] {
        let folder = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests")).join(folder);
        for entry in std::fs::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let module = name.strip_suffix(".rs").unwrap();
            assert!(source.contains(&format!("mod {module};")), "{name} is not a module of the runner");
        }
    }
}
