//! `cargo xtask readme`: types what the README says and compares what happens with what it shows, so that the
//! first thing a newcomer tries is known to work.
//!
//! What counts, in the README:
//!
//! | there | here |
//! | --- | --- |
//! | a `console` block | each line after `$ ` is typed into one bash, and must succeed; lines after `> ` go on with it |
//! | the lines below a command | what it must print; with none, it may print anything |
//! | `…` | any text; alone on a line, any lines |
//! | an id or a loopback address in what is printed | stands for what comes in its place, from there on |
//! | `<!-- append: PATH -->` before a block | the block is appended to that file of the user's home |
//! | `<!-- not run: REASON -->` before a block | the block is passed over |
//!
//! Two things differ from what a reader does. `cargo run --release --` is the program that was built already,
//! under the path where the reader has it, and it runs beside the bash as in another terminal. And a command
//! that only looks is typed again until it sees what it should, since a reader types more slowly than a run
//! takes. The home is a new one; where the usual ports are taken, `up` writes other ones down by itself.

mod names;
mod script;
mod session;

use std::fs;
use std::time::Duration;

use self::names::Names;
use self::script::{Action, Step};
use self::session::Session;
use crate::error::Error;
use crate::machine::{self, file_error};
use crate::output;

const README: &str = "README.md";
/// How a reader runs what the repository holds.
const CARGO_RUN: &str = "cargo run --release -- ";
/// Beginnings of commands that change nothing.
const LOOKS: &[&str] =
    &["open-conduit status", "open-conduit runs ", "open-conduit work ", "open-conduit events show"];
/// How long a command that looks may take to see what it should.
const LOOK_TIME_MAX: Duration = Duration::from_secs(20);

/// Types the README.
pub(crate) fn run() -> Result<(), Error> {
    let path = machine::root().join(README);
    let text = fs::read_to_string(&path).map_err(file_error("read", &path))?;
    let steps = script::steps(&text).map_err(|problem| Error::Readme(format!("{README}:{problem}")))?;
    let mut reader = Reader { session: Session::open()?, names: Names::default() };
    for step in &steps {
        let done = reader.follow(step);
        done.map_err(|why| Error::Readme(format!("{README}:{}: {why}", step.line)))?;
    }
    let typed = steps.iter().filter(|step| matches!(step.action, Action::Type { .. })).count();
    output::line(&format!("{typed} commands did what {README} says"));
    Ok(())
}

/// Who reads and types.
struct Reader {
    session: Session,
    names: Names,
}

impl Reader {
    fn follow(&mut self, step: &Step) -> Result<(), String> {
        match &step.action {
            Action::Append { path, text } => {
                self.session.append(path, &self.names.actual(text)).map_err(|error| output::chain(&error))
            }
            Action::Type { command, expected } => {
                let typed = self.names.actual(command);
                if let Some(arguments) = typed.strip_prefix(CARGO_RUN) {
                    return self.stay(arguments, expected);
                }
                self.enter(&typed, expected)
            }
        }
    }

    /// Starts the program, which stays, and waits until it has printed what it should.
    fn stay(&mut self, arguments: &str, expected: &[String]) -> Result<(), String> {
        self.session.start(arguments).map_err(|error| output::chain(&error))?;
        self.see(expected, |session| session.printed_so_far())
    }

    /// Types a command and compares what it prints.
    fn enter(&mut self, command: &str, expected: &[String]) -> Result<(), String> {
        if LOOKS.iter().any(|look| command.starts_with(look)) {
            return self.see(expected, |session| session.enter(command));
        }
        let printed = self.session.enter(command)?;
        self.compare(expected, &printed)
    }

    /// Looks again and again until what is printed is what is expected.
    fn see(
        &mut self,
        expected: &[String],
        mut look: impl FnMut(&mut Session) -> Result<String, String>,
    ) -> Result<(), String> {
        let mut last = Err("it was not tried".to_owned());
        let seen = machine::until(LOOK_TIME_MAX, || {
            last = look(&mut self.session).and_then(|printed| self.compare(expected, &printed));
            last.is_ok().then_some(())
        });
        match seen {
            Some(()) => Ok(()),
            None => last,
        }
    }

    fn compare(&mut self, expected: &[String], printed: &str) -> Result<(), String> {
        if expected.is_empty() || self.names.learn(expected, printed) {
            return Ok(());
        }
        Err(format!("expected\n{}\nbut it printed\n{}", indented(&expected.join("\n")), indented(printed)))
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readme_can_be_typed() {
        let text = fs::read_to_string(machine::root().join(README)).unwrap();
        let steps = script::steps(&text).unwrap();
        let first = steps.iter().find(|step| matches!(step.action, Action::Type { .. })).unwrap();
        assert!(matches!(&first.action, Action::Type { command, .. } if command.starts_with(CARGO_RUN)));
        assert!(steps.iter().any(|step| matches!(step.action, Action::Append { .. })));
    }
}
