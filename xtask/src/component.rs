//! What the tests need besides Rust: whether it is there, how it gets there, how a test learns of it.
//!
//! A component that is missing fails the check. Leaving one out has to be typed, and the tests are told,
//! so that a test that can't run says so instead of looking green.

use std::fs;
use std::path::{Path, PathBuf};

use clap::ValueEnum;

use crate::error::Error;
use crate::machine::{self, file_error};
use crate::output;

/// The variable that names, joined by commas, the components a person has left out.
pub(crate) const WITHOUT_VARIABLE: &str = "OPEN_CONDUIT_TEST_WITHOUT";
/// The variable that holds the folder of GitHub's own webhook samples.
pub(crate) const WEBHOOKS_VARIABLE: &str = "OPEN_CONDUIT_TEST_WEBHOOKS";

const SAMPLES: &str = "@octokit/webhooks-examples";
const SAMPLES_VERSION: &str = "7.6.1";

/// Where Debian keeps the server's programs, one folder for each major version.
const POSTGRES_VERSIONS: &str = "/usr/lib/postgresql";
const POSTGRES_PROGRAMS: &[&str] = &["initdb", "pg_isready", "postgres", "psql"];

/// The programs of [`Component::Curl`], whose packages have the same names.
const CURL_PROGRAMS: &[&str] = &["curl", "openssl"];

const CHROMIUM_PROGRAMS: &[&str] = &["chromium", "chromedriver"];
/// Without a font every letter is a box.
const CHROMIUM_FONT: &str = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf";
const CHROMIUM_PACKAGES: &[&str] = &["chromium", "chromium-driver", "fonts-dejavu-core"];

/// The programs of [`Component::Shells`], whose packages have the same names. Debian brings bash along.
const SHELL_PROGRAMS: &[&str] = &["bash", "fish", "zsh"];
const GROFF_PACKAGES: &[&str] = &["groff-base"];
const PYTHON_PACKAGES: &[&str] = &["python3"];

/// Something the tests use that is not a Rust package.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Component {
    /// A PostgreSQL server's programs
    Postgres,
    /// npm, and the webhook samples that it installs
    Npm,
    /// The right to mount a small file system, which only root has
    Mount,
    /// curl and openssl, with which the README sends a delivery
    Curl,
    /// Chromium, its driver and a font, in which the pages are tested
    Chromium,
    /// bash, fish and zsh, which read their completions
    Shells,
    /// groff, which renders the manual pages
    Groff,
    /// Python, in which extensions can be written
    Python,
    /// cargo-nextest; without it `cargo test` runs the tests
    Nextest,
}

impl Component {
    /// The name as it is typed.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Npm => "npm",
            Self::Mount => "mount",
            Self::Curl => "curl",
            Self::Chromium => "chromium",
            Self::Shells => "shells",
            Self::Groff => "groff",
            Self::Python => "python",
            Self::Nextest => "nextest",
        }
    }

    /// Whether the component can be used. One that has a substitute is never missing.
    fn is_present(self, target: &Path) -> bool {
        match self {
            Self::Postgres => postgres_programs().is_some(),
            Self::Npm => has_samples(target),
            Self::Mount => machine::is_root(),
            Self::Curl => CURL_PROGRAMS.iter().all(|program| has_program(program)),
            Self::Chromium => {
                CHROMIUM_PROGRAMS.iter().all(|program| has_program(program))
                    && Path::new(CHROMIUM_FONT).exists()
            }
            Self::Shells => SHELL_PROGRAMS.iter().all(|program| has_program(program)),
            Self::Groff => has_program("groff"),
            Self::Python => has_program("python3"),
            Self::Nextest => true,
        }
    }

    /// The command that installs the component.
    fn installing(self, target: &Path) -> String {
        match self {
            Self::Postgres => installing_packages(&["postgresql"]),
            Self::Npm => {
                let folder = npm_folder(target);
                let samples =
                    format!("npm install --prefix {} {SAMPLES}@{SAMPLES_VERSION}", folder.display());
                if has_npm() {
                    return samples;
                }
                format!("{} && {samples}", installing_packages(&["npm"]))
            }
            Self::Mount => "sudo --preserve-env=PATH cargo xtask test".to_owned(),
            Self::Curl => installing_packages(CURL_PROGRAMS),
            Self::Chromium => installing_packages(CHROMIUM_PACKAGES),
            Self::Shells => installing_packages(SHELL_PROGRAMS),
            Self::Groff => installing_packages(GROFF_PACKAGES),
            Self::Python => installing_packages(PYTHON_PACKAGES),
            Self::Nextest => "cargo install --locked cargo-nextest".to_owned(),
        }
    }

    fn install(self, target: &Path) -> Result<(), Error> {
        match self {
            Self::Postgres => install_packages(self, target, &["postgresql"]),
            Self::Npm => {
                if !has_npm() {
                    install_packages(self, target, &["npm"])?;
                }
                let folder = npm_folder(target);
                fs::create_dir_all(&folder).map_err(file_error("create", &folder))?;
                let package = format!("{SAMPLES}@{SAMPLES_VERSION}");
                machine::run(
                    machine::command("npm")
                        .args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"])
                        .arg(&folder)
                        .arg(package),
                )
            }
            Self::Mount => Err(Error::NotRoot { command: self.installing(target) }),
            Self::Curl => install_packages(self, target, CURL_PROGRAMS),
            Self::Chromium => install_packages(self, target, CHROMIUM_PACKAGES),
            Self::Shells => install_packages(self, target, SHELL_PROGRAMS),
            Self::Groff => install_packages(self, target, GROFF_PACKAGES),
            Self::Python => install_packages(self, target, PYTHON_PACKAGES),
            Self::Nextest => Ok(()),
        }
    }
}

/// Makes sure that each component is there: installs it if asked to, else says how.
pub(crate) fn provide(components: &[Component], install: bool, target: &Path) -> Result<(), Error> {
    let missing: Vec<Component> =
        components.iter().copied().filter(|component| !component.is_present(target)).collect();
    if install {
        for component in missing {
            output::heading(&format!("install {}", component.name()));
            component.install(target)?;
        }
        return Ok(());
    }
    for component in &missing {
        let name = component.name();
        output::line(&format!("{name} is missing. Install it with:\n    {}", component.installing(target)));
        output::line(&format!("or let `cargo xtask test --install` do it, or type `--without {name}`."));
    }
    if missing.is_empty() {
        return Ok(());
    }
    Err(Error::Missing { names: joined(&missing) })
}

/// The components' names, joined by commas.
pub(crate) fn joined(components: &[Component]) -> String {
    components.iter().map(|component| component.name()).collect::<Vec<_>>().join(",")
}

/// The folder of the newest PostgreSQL server's programs.
pub(crate) fn postgres_programs() -> Option<PathBuf> {
    let versions = fs::read_dir(POSTGRES_VERSIONS).ok()?;
    versions
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let version: u32 = path.file_name()?.to_str()?.parse().ok()?;
            let programs = path.join("bin");
            POSTGRES_PROGRAMS.iter().all(|name| programs.join(name).exists()).then_some((version, programs))
        })
        .max()
        .map(|(_, programs)| programs)
}

/// Whether `cargo nextest` can run.
pub(crate) fn has_nextest() -> bool {
    machine::succeeds(machine::cargo().args(["nextest", "--version"]))
}

/// The folder of the webhook samples, installed or not.
pub(crate) fn samples_folder(target: &Path) -> PathBuf {
    npm_folder(target).join("node_modules").join(SAMPLES)
}

fn npm_folder(target: &Path) -> PathBuf {
    target.join("npm")
}

fn has_npm() -> bool {
    has_program("npm")
}

fn has_program(name: &str) -> bool {
    machine::succeeds(machine::command("sh").args(["-c", "command -v \"$0\"", name]))
}

fn has_samples(target: &Path) -> bool {
    let manifest = samples_folder(target).join("package.json");
    fs::read(manifest)
        .ok()
        .and_then(|text| serde_json::from_slice::<serde_json::Value>(&text).ok())
        .is_some_and(|package| package["version"] == SAMPLES_VERSION)
}

/// The command that installs Debian packages.
fn installing_packages(packages: &[&str]) -> String {
    format!("apt-get install --yes --no-install-recommends {}", packages.join(" "))
}

fn install_packages(component: Component, target: &Path, packages: &[&str]) -> Result<(), Error> {
    if !machine::is_root() {
        return Err(Error::NotRoot { command: component.installing(target) });
    }
    let apt = || {
        let mut command = machine::command("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive");
        command
    };
    machine::run(apt().args(["update", "--quiet"]))?;
    machine::run(apt().args(["install", "--yes", "--quiet", "--no-install-recommends"]).args(packages))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_names_components_as_they_are_typed() {
        assert_eq!(joined(&[Component::Postgres, Component::Npm]), "postgres,npm");
        for component in Component::value_variants() {
            let typed = component.to_possible_value().expect("no variant is hidden");
            assert_eq!(typed.get_name(), component.name());
        }
    }

    #[test]
    fn npm_is_missing_where_nothing_is_installed() {
        let nowhere = Path::new("/nonexistent/target");
        assert!(!Component::Npm.is_present(nowhere));
        assert!(
            matches!(provide(&[Component::Npm], false, nowhere), Err(Error::Missing { names }) if names == "npm")
        );
    }
}
