//! `cargo xtask test`: the whole check as one table of parts.
//!
//! To add a part, write a function that runs it and give it a row in [`PARTS`], where its turn is. The
//! parts run in order; a failed part does not keep the next from running unless that would be pointless,
//! so that one run shows all there is to put right.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use clap::builder::PossibleValuesParser;

use crate::component::{self, Component};
use crate::error::Error;
use crate::postgres::{self, Server};
use crate::{codegen, drill, machine, metadata, output, readme, tidy};

/// One part of the check.
struct Part {
    name: &'static str,
    /// What it uses besides Rust.
    needs: &'static [Component],
    on_failure: OnFailure,
    run: fn(&Session) -> Result<(), Error>,
}

enum OnFailure {
    /// The following parts can still find something.
    GoOn,
    /// The following parts can't run.
    Stop,
}

/// How Cargo is told of the tests that need Chromium. It runs them only where they are named.
pub(crate) const BROWSER_TESTS: &[&str] = &["--package", "open-conduit", "--test", "browser"];

/// The check, in order.
const PARTS: &[Part] = &[
    Part { name: "format", needs: &[], on_failure: OnFailure::GoOn, run: format },
    Part { name: "tidy", needs: &[], on_failure: OnFailure::GoOn, run: |_| tidy::run() },
    Part { name: "clippy", needs: &[], on_failure: OnFailure::GoOn, run: clippy },
    Part { name: "build", needs: &[Component::Nextest], on_failure: OnFailure::Stop, run: build },
    Part {
        name: "tests",
        needs: &[
            Component::Postgres,
            Component::Npm,
            Component::Shells,
            Component::Groff,
            Component::Nextest,
        ],
        on_failure: OnFailure::GoOn,
        run: tests,
    },
    Part {
        name: "browser",
        needs: &[Component::Chromium, Component::Nextest],
        on_failure: OnFailure::GoOn,
        run: browser,
    },
    Part { name: "doc-tests", needs: &[], on_failure: OnFailure::GoOn, run: doc_tests },
    Part { name: "codegen", needs: &[], on_failure: OnFailure::GoOn, run: |_| codegen::check() },
    Part { name: "readme", needs: &[Component::Curl], on_failure: OnFailure::GoOn, run: readme },
    Part {
        name: "drills",
        needs: &[Component::Postgres, Component::Npm, Component::Mount],
        on_failure: OnFailure::GoOn,
        run: |session| drill::run(&drill::Arguments::whole(&session.without)),
    },
];

/// What is typed after `cargo xtask test`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Install what is missing, as root: Debian packages, and npm packages into `target`
    #[arg(long)]
    install: bool,
    /// Leave a component out; the tests that need it report themselves as left out
    #[arg(long, value_name = "COMPONENT", value_delimiter = ',')]
    without: Vec<Component>,
    /// Run only these parts
    #[arg(long, value_name = "PART", value_delimiter = ',',
          value_parser = PossibleValuesParser::new(PARTS.iter().map(|part| part.name)))]
    only: Vec<String>,
    /// What the test runner gets besides, such as a part of a test's name
    #[arg(last = true, value_name = "FILTER")]
    filter: Vec<String>,
}

/// What the parts of one run share.
struct Session {
    has_nextest: bool,
    /// For the test runner, as typed.
    filter: Vec<String>,
    /// What was left out, as typed.
    without: Vec<Component>,
    /// Variables for everything that runs tests.
    variables: Vec<(&'static str, String)>,
    /// Held until the last part has ended.
    _server: Option<Server>,
}

/// How one part went.
struct Outcome {
    name: &'static str,
    took: Duration,
    result: Result<(), Error>,
}

/// Runs the parts that were asked for, then prints how long each took.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    let parts: Vec<&Part> = PARTS.iter().filter(|part| is_wanted(part, &arguments.only)).collect();
    let session = Session::open(arguments, &parts)?;
    let mut outcomes = Vec::new();
    for part in &parts {
        output::heading(part.name);
        let start = machine::now();
        let result = (part.run)(&session);
        let took = start.elapsed();
        let failed = result.is_err();
        if let Err(error) = &result {
            output::error(error);
        }
        outcomes.push(Outcome { name: part.name, took, result });
        match part.on_failure {
            OnFailure::Stop if failed => break,
            OnFailure::Stop | OnFailure::GoOn => {}
        }
    }
    drop(session);
    let not_run = parts.len() - outcomes.len();
    output::line(&table(&outcomes, not_run));
    let failed: Vec<&str> =
        outcomes.iter().filter(|outcome| outcome.result.is_err()).map(|outcome| outcome.name).collect();
    if failed.is_empty() {
        return Ok(());
    }
    Err(Error::Parts { names: failed.join(", ") })
}

fn is_wanted(part: &Part, only: &[String]) -> bool {
    only.is_empty() || only.iter().any(|name| name == part.name)
}

impl Session {
    /// Provides what the parts need and starts the server that the tests share.
    fn open(arguments: &Arguments, parts: &[&Part]) -> Result<Self, Error> {
        let mut needed: Vec<Component> = Vec::new();
        for component in parts.iter().flat_map(|part| part.needs) {
            if !needed.contains(component) && !arguments.without.contains(component) {
                needed.push(*component);
            }
        }
        let target = metadata::members()?.target_directory;
        component::provide(&needed, arguments.install, &target)?;

        let mut variables = Vec::new();
        if !arguments.without.is_empty() {
            variables.push((component::WITHOUT_VARIABLE, component::joined(&arguments.without)));
        }
        if needed.contains(&Component::Npm) {
            let folder: PathBuf = component::samples_folder(&target);
            variables.push((component::WEBHOOKS_VARIABLE, folder.to_string_lossy().into_owned()));
        }
        let server = needed.contains(&Component::Postgres).then(Server::start).transpose()?;
        if let Some(server) = &server {
            let (tls, authority) = server.tls();
            variables.push((postgres::VARIABLE, server.url().to_owned()));
            variables.push((postgres::TLS_VARIABLE, tls.to_owned()));
            variables.push((postgres::CA_VARIABLE, authority.to_string_lossy().into_owned()));
        }
        let has_nextest = needed.contains(&Component::Nextest) && component::has_nextest();
        Ok(Self {
            has_nextest,
            filter: arguments.filter.clone(),
            without: arguments.without.clone(),
            variables,
            _server: server,
        })
    }

    /// Cargo with the variables that tests look at.
    fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = machine::cargo();
        // What a person has set for a server of their own must not reach tests of this run's.
        for variable in [
            component::WITHOUT_VARIABLE,
            component::WEBHOOKS_VARIABLE,
            postgres::VARIABLE,
            postgres::TLS_VARIABLE,
            postgres::CA_VARIABLE,
        ] {
            command.env_remove(variable);
        }
        command.args(arguments).envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }
}

fn format(session: &Session) -> Result<(), Error> {
    machine::run(&mut session.cargo(&["fmt", "--all", "--check"]))
}

fn clippy(session: &Session) -> Result<(), Error> {
    machine::run(&mut session.cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    // Cargo's word for all targets leaves out a test that runs only where it is named.
    machine::run(session.cargo(&["clippy"]).args(BROWSER_TESTS).args(["--", "-D", "warnings"]))
}

/// Compiles what the tests run, so that an error of the compiler is told from a failing test.
fn build(session: &Session) -> Result<(), Error> {
    let runner: &[&str] = if session.has_nextest { &["nextest", "run"] } else { &["test"] };
    machine::run(session.cargo(runner).args(["--workspace", "--no-run"]))?;
    machine::run(session.cargo(runner).args(BROWSER_TESTS).arg("--no-run"))
}

fn tests(session: &Session) -> Result<(), Error> {
    let arguments: &[&str] = if session.has_nextest {
        &["nextest", "run", "--workspace", "--profile", "ci"]
    } else {
        &["test", "--workspace", "--lib", "--bins", "--tests", "--no-fail-fast"]
    };
    machine::run(session.cargo(arguments).args(&session.filter))
}

/// The pages in Chromium.
fn browser(session: &Session) -> Result<(), Error> {
    if session.without.contains(&Component::Chromium) {
        output::line("the pages are not tested in a browser, because Chromium was left out");
        return Ok(());
    }
    let (runner, how): (&[&str], &[&str]) = if session.has_nextest {
        (&["nextest", "run"], &["--profile", "ci"])
    } else {
        (&["test"], &["--no-fail-fast"])
    };
    machine::run(session.cargo(runner).args(BROWSER_TESTS).args(how).args(&session.filter))
}

fn doc_tests(session: &Session) -> Result<(), Error> {
    machine::run(&mut session.cargo(&["test", "--doc", "--workspace", "--no-fail-fast"]))
}

fn readme(session: &Session) -> Result<(), Error> {
    if session.without.contains(&Component::Curl) {
        output::line("the README is not typed, because its commands need curl");
        return Ok(());
    }
    readme::run()
}

/// The parts with their times, one a line.
fn table(outcomes: &[Outcome], not_run: usize) -> String {
    let mut lines = vec![String::new(), "part          seconds  result".to_owned()];
    for outcome in outcomes {
        let result = if outcome.result.is_ok() { "passed" } else { "FAILED" };
        lines.push(format!("{:<12} {:>8.1}  {result}", outcome.name, outcome.took.as_secs_f64()));
    }
    let total: Duration = outcomes.iter().map(|outcome| outcome.took).sum();
    lines.push(format!("{:<12} {:>8.1}", "all", total.as_secs_f64()));
    if not_run > 0 {
        lines.push(format!("{not_run} parts were not run, because what they need failed"));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(name: &'static str, millis: u64, result: Result<(), Error>) -> Outcome {
        Outcome { name, took: Duration::from_millis(millis), result }
    }

    #[test]
    fn table_shows_each_part_and_what_was_not_run() {
        let failed = Error::Untidy { count: 1 };
        let shown = table(&[outcome("format", 1_500, Ok(())), outcome("build", 61_000, Err(failed))], 2);
        assert_eq!(
            shown.lines().collect::<Vec<_>>(),
            [
                "",
                "part          seconds  result",
                "format            1.5  passed",
                "build            61.0  FAILED",
                "all              62.5",
                "2 parts were not run, because what they need failed",
            ]
        );
    }

    #[test]
    fn only_selects_parts_by_name() {
        let selected = |only: &[&str]| -> Vec<&str> {
            let only: Vec<String> = only.iter().map(|name| (*name).to_owned()).collect();
            PARTS.iter().filter(|part| is_wanted(part, &only)).map(|part| part.name).collect()
        };
        assert_eq!(selected(&["tidy", "format"]), ["format", "tidy"]);
        assert_eq!(selected(&[]).len(), PARTS.len());
    }

    #[test]
    fn parts_have_distinct_names() {
        let mut names: Vec<&str> = PARTS.iter().map(|part| part.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), PARTS.len());
    }
}
