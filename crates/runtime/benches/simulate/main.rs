//! The simulator: the reference and the runtime side by side, for as many random programs as there is time for.
//!
//! It is the differential test of `tests/runner/specification`, let run long. Everything is on one thread, under a
//! clock of its own, over SQLite in memory; a process that dies is dropped, and another is put together over what is
//! durable. Run it with `cargo xtask simulate`; what it came to is in `docs/reliability.md`.

#![expect(clippy::unwrap_used, reason = "it shares the files of the tests, and fails as they do")]
#![expect(clippy::print_stdout, reason = "the simulator reports to standard output")]
#![expect(clippy::disallowed_methods, reason = "the simulator is told for how many minutes it runs")]

#[path = "../../tests/runner/clock.rs"]
mod clock;
#[path = "../../tests/runner/specification/config.rs"]
mod config;
#[path = "../../tests/runner/specification/copies.rs"]
mod copies;
#[path = "../../tests/runner/specification/mortal.rs"]
mod mortal;
#[path = "../../tests/runner/specification/production.rs"]
#[expect(dead_code, reason = "the tests use every engine")]
mod production;
#[path = "../../tests/runner/specification/program.rs"]
#[expect(dead_code, reason = "the tests use the short runs")]
mod program;
#[path = "../../tests/runner/specification/scripted.rs"]
mod scripted;
#[path = "../../tests/runner/specification/snapshot.rs"]
mod snapshot;
#[path = "../../tests/runner/specification/told.rs"]
mod told;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use spec::differential::{Coverage, Ran};

use program::{Program, Speed};

/// How the simulator was asked to run.
struct Arguments {
    /// Where it begins.
    from: u64,
    /// How many programs there are at most.
    seeds: u64,
    /// How long it begins new ones.
    minutes: u64,
    /// A file of programs, one in a line, in place of seeds.
    replay: Option<PathBuf>,
    /// Where programs that fail are written.
    directory: PathBuf,
    /// How many may fail before it stops.
    failures: u64,
}

impl Arguments {
    fn read() -> Result<Self, String> {
        let mut arguments = Self {
            from: 0,
            seeds: u64::MAX,
            minutes: 5,
            replay: None,
            directory: PathBuf::from(env!("CARGO_TARGET_TMPDIR")),
            failures: 1,
        };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} needs a value"));
            let number = |text: String| text.parse().map_err(|_| format!("{text} is no number"));
            match word.as_str() {
                "--from" => arguments.from = number(value()?)?,
                "--seeds" => arguments.seeds = number(value()?)?,
                "--minutes" => arguments.minutes = number(value()?)?,
                "--failures" => arguments.failures = number(value()?)?,
                "--replay" => arguments.replay = Some(value()?.into()),
                // Cargo says this to everything that it runs as a benchmark.
                "--bench" => {}
                other => return Err(format!("unknown argument {other}")),
            }
        }
        Ok(arguments)
    }

    /// The programs that were asked for.
    fn programs(&self) -> Result<Box<dyn Iterator<Item = Program>>, String> {
        let Some(file) = &self.replay else {
            let until = self.from.saturating_add(self.seeds);
            return Ok(Box::new((self.from..until).map(|seed| Program::of(seed, Speed::Swift))));
        };
        let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        Ok(Box::new(Program::read(&text, Speed::Swift)?.into_iter()))
    }
}

fn main() -> ExitCode {
    match Arguments::read().and_then(|arguments| simulate(&arguments)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(reason) => {
            println!("error: {reason}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the programs. True when none failed.
fn simulate(arguments: &Arguments) -> Result<bool, String> {
    // What a program breaks is told once it is cut down, and not each time it is tried.
    std::panic::set_hook(Box::new(|_panic| {}));
    let (start, limit) = (Instant::now(), Duration::from_secs(60 * arguments.minutes));
    let (mut all, mut programs, mut failed) = (Ran::default(), 0_u64, 0_u64);
    for program in arguments.programs()? {
        if start.elapsed() >= limit || failed >= arguments.failures {
            break;
        }
        programs += 1;
        if let Err(failure) = program.hold(&mut all) {
            failed += 1;
            let file = arguments.directory.join(format!("program-{}.txt", program.name().replace(' ', "-")));
            std::fs::write(&file, format!("{}\n", failure.line)).map_err(|error| error.to_string())?;
            println!("{}: replay it with --replay {}\n{}\n", program.name(), file.display(), failure.told);
        }
        all.trace.clear();
        if programs.is_multiple_of(1000) {
            println!("{programs} programs, {} steps, {} s", all.steps, start.elapsed().as_secs());
        }
    }
    println!("{}", table(&all.coverage));
    let seconds = start.elapsed().as_secs_f64();
    println!("{programs} programs, {} steps in {seconds:.0} s, {failed} failed", all.steps);
    Ok(failed == 0)
}

/// How often each command went each way.
fn table(coverage: &Coverage) -> String {
    let mut lines = vec![format!("{:<24}{:<24}{:>12}", "command", "outcome", "times")];
    lines.extend(
        coverage.iter().map(|((command, outcome), times)| format!("{command:<24}{outcome:<24}{times:>12}")),
    );
    lines.join("\n")
}
