//! The reader's machine: a home, a checkout with the built program, and a terminal or two.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use crate::error::Error;
use crate::machine::{self, file_error};
use crate::metadata;

/// Where a reader's build leaves the program, below the checkout.
const PROGRAM: &str = "target/release/open-conduit";
/// The variable in the bash that says where output goes.
const OUTPUT: &str = "README_OUTPUT";
/// How long a command may take.
const COMMAND_TIME_MAX: Duration = Duration::from_mins(1);

/// Both terminals. Dropping it ends what runs in them.
#[derive(Debug)]
pub(super) struct Session {
    /// The home and the checkout at once.
    folder: PathBuf,
    bash: Child,
    keyboard: Option<ChildStdin>,
    /// The program, in the other terminal.
    program: Option<Child>,
    /// How many commands were typed.
    typed: usize,
}

impl Session {
    /// Builds the program and makes everything anew.
    pub(super) fn open() -> Result<Self, Error> {
        machine::run(machine::cargo().args(["build", "--quiet", "--package", "open-conduit"]))?;
        let target = metadata::members()?.target_directory;
        let folder = target.join("readme");
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(file_error("remove", &folder))?;
        }
        let program = folder.join(PROGRAM);
        let below = program.parent().unwrap_or(&folder);
        fs::create_dir_all(below).map_err(file_error("create", below))?;
        DirBuilder::new()
            .mode(0o700)
            .create(output(&folder))
            .map_err(file_error("create", &output(&folder)))?;
        // A copy, so that a build in between changes nothing.
        let built = target.join("debug").join("open-conduit");
        fs::copy(&built, &program).map_err(file_error("copy", &built))?;

        let mut command = here(&folder, "bash");
        command.args(["--noprofile", "--norc"]).stdin(Stdio::piped());
        let mut bash = command.spawn().map_err(|source| machine::start_error(&command, source))?;
        let keyboard = bash.stdin.take();
        Ok(Self { folder, bash, keyboard, program: None, typed: 0 })
    }

    /// Adds text to the end of a file of the home, which must be there.
    pub(super) fn append(&self, path: &str, text: &str) -> Result<(), Error> {
        let path = self.folder.join(path);
        let file = OpenOptions::new().append(true).open(&path);
        file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(file_error("append to", &path))
    }

    /// Starts the program in the other terminal.
    pub(super) fn start(&mut self, arguments: &str) -> Result<(), Error> {
        let path = self.screen();
        let screen = File::create(&path).map_err(file_error("create", &path))?;
        let errors = screen.try_clone().map_err(file_error("open", &path))?;
        let mut command = here(&self.folder, PROGRAM);
        command.args(arguments.split_whitespace()).stdout(screen).stderr(errors);
        let child = command.spawn().map_err(|source| machine::start_error(&command, source))?;
        self.program = Some(child);
        Ok(())
    }

    /// What the program has printed.
    pub(super) fn printed_so_far(&self) -> Result<String, String> {
        fs::read_to_string(self.screen()).map_err(|error| error.to_string())
    }

    fn screen(&self) -> PathBuf {
        output(&self.folder).join("program")
    }

    /// Types a command into the bash and waits until it has ended.
    ///
    /// # Errors
    /// What to tell about a command that did not succeed.
    pub(super) fn enter(&mut self, command: &str) -> Result<String, String> {
        self.typed += 1;
        let name = self.typed.to_string();
        // A group in braces is no shell of its own, so what a command sets is there for the next one. The file
        // with its status appears whole.
        let line = format!(
            "{{ {command}\n}} </dev/null >\"${OUTPUT}/{name}.out\" 2>&1; echo $? >\"${OUTPUT}/{name}.part\"; \
             mv \"${OUTPUT}/{name}.part\" \"${OUTPUT}/{name}.status\"\n"
        );
        let keyboard = self.keyboard.as_mut().ok_or("bash has no keyboard")?;
        keyboard.write_all(line.as_bytes()).map_err(|error| format!("bash is gone: {error}"))?;
        let file = |end: &str| output(&self.folder).join(format!("{name}.{end}"));
        let status = machine::until(COMMAND_TIME_MAX, || fs::read_to_string(file("status")).ok());
        let printed = fs::read(file("out")).unwrap_or_default();
        let printed = String::from_utf8_lossy(&printed).into_owned();
        match status.as_deref().map(str::trim) {
            Some("0") => Ok(printed),
            Some(status) => Err(format!("`{command}` ended with status {status} and printed\n{printed}")),
            None => Err(format!("`{command}` did not end; it printed\n{printed}")),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Without a keyboard, bash ends by itself.
        drop(self.keyboard.take());
        for child in self.program.iter_mut().chain([&mut self.bash]) {
            child.kill().ok();
            child.wait().ok();
        }
    }
}

/// A command of the reader, in the checkout and with the home.
fn here(folder: &Path, program: &str) -> Command {
    let mut command = machine::command(program);
    command.current_dir(folder).env("HOME", folder).env(OUTPUT, output(folder));
    command.env_remove("OPEN_CONDUIT_HOME").env_remove("OPEN_CONDUIT_LOG");
    command
}

/// The folder of what was printed.
fn output(folder: &Path) -> PathBuf {
    folder.join("printed")
}
