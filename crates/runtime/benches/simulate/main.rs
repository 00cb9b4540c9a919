//! The simulator: the reference and the runtime side by side, for as many random programs as there is time for.
//!
//! It is the differential test of `tests/runner/specification`, let run long. Each program is on one thread, under a
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
use std::sync::Mutex;
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
    /// How many programs run at once, each on a thread of its own.
    threads: usize,
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
            threads: std::thread::available_parallelism().map_or(1, usize::from),
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
                "--threads" => arguments.threads = value()?.parse().map_err(|_| "no number of threads")?,
                "--replay" => arguments.replay = Some(value()?.into()),
                // Cargo says this to everything that it runs as a benchmark.
                "--bench" => {}
                other => return Err(format!("unknown argument {other}")),
            }
        }
        Ok(arguments)
    }

    /// The programs that were asked for.
    fn programs(&self) -> Result<Box<dyn Iterator<Item = Program> + Send>, String> {
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

/// What all threads have come to.
struct Progress {
    left: Box<dyn Iterator<Item = Program> + Send>,
    all: Ran,
    programs: u64,
    failed: u64,
    /// What kept a failure from being written down.
    broken: Option<String>,
}

/// Runs the programs. True when none failed.
fn simulate(arguments: &Arguments) -> Result<bool, String> {
    // What a program breaks is told once it is cut down, and not each time it is tried.
    std::panic::set_hook(Box::new(|_panic| {}));
    let start = Instant::now();
    let (left, all) = (arguments.programs()?, Ran::default());
    let progress = Mutex::new(Progress { left, all, programs: 0, failed: 0, broken: None });
    std::thread::scope(|scope| {
        for _ in 0..arguments.threads {
            scope.spawn(|| work_off(arguments, &progress, start));
        }
    });
    let progress = progress.into_inner().expect("no thread panics while it holds it");
    if let Some(broken) = progress.broken {
        return Err(broken);
    }
    println!("{}", table(&progress.all.coverage));
    let (seconds, Progress { programs, failed, all, .. }) = (start.elapsed().as_secs_f64(), progress);
    println!("{programs} programs, {} steps in {seconds:.0} s, {failed} failed", all.steps);
    Ok(failed == 0)
}

/// Runs programs, one after the other, until there is no time left or enough have failed.
fn work_off(arguments: &Arguments, progress: &Mutex<Progress>, start: Instant) {
    let limit = Duration::from_secs(60 * arguments.minutes);
    loop {
        let program = {
            let mut progress = progress.lock().expect("no thread panics while it holds it");
            if start.elapsed() >= limit || progress.failed >= arguments.failures {
                return;
            }
            let Some(program) = progress.left.next() else { return };
            progress.programs += 1;
            if progress.programs.is_multiple_of(1000) {
                let (programs, steps) = (progress.programs, progress.all.steps);
                println!("{programs} programs, {steps} steps, {} s", start.elapsed().as_secs());
            }
            program
        };
        let mut ran = Ran::default();
        let held = program.hold(&mut ran);
        let mut progress = progress.lock().expect("no thread panics while it holds it");
        progress.all.add(&ran);
        if let Err(failure) = held {
            progress.failed += 1;
            if let Err(broken) = report(arguments, &program, &failure) {
                progress.broken = Some(broken);
                return;
            }
        }
    }
}

/// Writes a program that failed into a file, and tells of it.
fn report(arguments: &Arguments, program: &Program, failure: &program::Failure) -> Result<(), String> {
    let file = arguments.directory.join(format!("program-{}.txt", program.name().replace(' ', "-")));
    std::fs::write(&file, format!("{}\n", failure.line)).map_err(|error| error.to_string())?;
    println!("{}: replay it with --replay {}\n{}\n", program.name(), file.display(), failure.told);
    Ok(())
}

/// How often each command went each way.
fn table(coverage: &Coverage) -> String {
    let mut lines = vec![format!("{:<24}{:<24}{:>12}", "command", "outcome", "times")];
    lines.extend(
        coverage.iter().map(|((command, outcome), times)| format!("{command:<24}{outcome:<24}{times:>12}")),
    );
    lines.join("\n")
}
