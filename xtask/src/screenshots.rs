//! `cargo xtask screenshots`: the pictures in `docs/images`, taken anew by the tests that look at every page.

use std::fs;

use crate::check::BROWSER_TESTS;
use crate::component::{self, Component};
use crate::error::Error;
use crate::machine::{self, file_error};
use crate::{metadata, output};

/// Where the documents find the pictures.
const IMAGES: &str = "docs/images";
/// The variable that tells the test where to leave its pictures.
const VARIABLE: &str = "OPEN_CONDUIT_TEST_SCREENSHOTS";
/// The tests, by the beginning of their names.
const TESTS: &str = "browser::looks::";

/// What is typed after `cargo xtask screenshots`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Install what is missing, as root
    #[arg(long)]
    install: bool,
}

/// Takes every picture; those of pages that are no more go.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    let target = metadata::members()?.target_directory;
    component::provide(&[Component::Chromium], arguments.install, &target)?;
    let images = machine::root().join(IMAGES);
    if images.exists() {
        fs::remove_dir_all(&images).map_err(file_error("remove", &images))?;
    }
    fs::create_dir_all(&images).map_err(file_error("create", &images))?;
    let mut command = machine::cargo();
    command.arg("test").args(BROWSER_TESTS).args(["--", TESTS]);
    machine::run(command.env_remove(component::WITHOUT_VARIABLE).env(VARIABLE, &images))?;
    let pictures = fs::read_dir(&images).map_err(file_error("read", &images))?.count();
    if pictures == 0 {
        return Err(Error::NoPictures { tests: TESTS });
    }
    output::line(&format!("{pictures} pictures in {IMAGES}"));
    Ok(())
}
