//! Builds the launcher's binary, which the shell executor carries as bytes and starts from memory.
//!
//! It is a build of its own because nothing of the daemon may be in it: the features, the profile and the way
//! it is linked are the launcher's, whatever the daemon is built with.

use std::env;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

/// What decides about the binary besides the compiler, from this crate's folder.
const SOURCES: [&str; 4] =
    ["../launcher/src", "../launcher/Cargo.toml", "../../Cargo.toml", "../../Cargo.lock"];
/// Variables that are meant for the build around this one: Clippy's wrapper, a user's flags, where results go.
const NOT_INHERITED: [&str; 5] =
    ["RUSTFLAGS", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "CARGO_TARGET_DIR", "CARGO_INCREMENTAL"];
/// What the names of others begin with. Where packages and linkers are found is the same for both builds.
const NOT_INHERITED_PREFIXES: [&str; 2] = ["CARGO_BUILD_", "CARGO_PROFILE_"];
/// Nothing is left to be loaded when the binary starts, which is half of a small program's start. The standard
/// library looks for the two functions and does without them, by `fork`, when the linker left them out: nothing
/// else names them.
const STATIC: &str = "-Ctarget-feature=+crt-static\x1f\
     -Clink-arg=-Wl,--undefined=gnu_get_libc_version,--undefined=posix_spawn_file_actions_addchdir_np";
/// The profile in the workspace's table.
const PROFILE: &str = "launcher";

fn main() -> Result<(), Box<dyn Error>> {
    for source in SOURCES {
        say(&format!("rerun-if-changed={source}"));
    }
    let target_dir = PathBuf::from(env::var("OUT_DIR")?).join("launcher");
    let target = env::var("TARGET")?;
    if !build(&target_dir, &target, STATIC)?.success() {
        say(
            "warning=the launcher cannot be linked statically (is there a libc.a?), so jobs start more slowly",
        );
        let status = build(&target_dir, &target, "")?;
        if !status.success() {
            return Err(format!("the launcher cannot be built ({status}); Cargo says why above").into());
        }
    }
    let binary = target_dir.join(target).join(PROFILE).join("launcher");
    say(&format!("rustc-env=LAUNCHER_BINARY={}", binary.display()));
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a build within a build is a process")]
fn build(target_dir: &Path, target: &str, flags: &str) -> Result<ExitStatus, Box<dyn Error>> {
    let mut cargo = Command::new(env::var("CARGO")?);
    for (name, _) in env::vars_os() {
        let Some(known) = name.to_str() else { continue };
        let has_prefix = NOT_INHERITED_PREFIXES.iter().any(|prefix| known.starts_with(prefix));
        if has_prefix || NOT_INHERITED.contains(&known) {
            cargo.env_remove(name);
        }
    }
    // The outer build has resolved and fetched everything; this one takes the same and nothing else.
    cargo.args(["build", "--locked", "--offline", "--package", "launcher", "--bin", "launcher"]);
    cargo.args(["--manifest-path", "../launcher/Cargo.toml", "--profile", PROFILE, "--target", target]);
    // A target is named, even where it is the host: so the flags do not hold for the build's own tools.
    cargo.arg("--target-dir").arg(target_dir).env("CARGO_ENCODED_RUSTFLAGS", flags);
    Ok(cargo.status()?)
}

/// Tells Cargo.
fn say(instruction: &str) {
    println!("cargo::{instruction}");
}
