//! Programs of the differential, on the reference and on the runtime: run, run twice, cut down, read from a file.

use std::panic::{AssertUnwindSafe, catch_unwind};

use spec::differential::{Numbers, Ran, compare, shrink};
use spec::reference::{Order, Reference};

use super::production::{Engine, Production};

/// How long a program is, in numbers.
pub(super) const STEPS: usize = 120;
/// Each so many-th seed is run twice, and has to do the same twice.
const TWICE: u64 = 16;

/// How carefully the runtime is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speed {
    /// Every body of a transaction runs twice.
    Careful,
    /// Everything is done once.
    Swift,
}

/// A program, with what it is called.
#[derive(Debug, Clone)]
pub(super) struct Program {
    name: String,
    numbers: Vec<u32>,
    speed: Speed,
    twice: bool,
}

/// A program that told the two apart, cut down.
#[derive(Debug)]
pub(super) struct Failure {
    /// The program, as a line of a file.
    pub(super) line: String,
    /// What it did, and where the two differ.
    pub(super) told: String,
}

impl Program {
    /// The program of a seed.
    pub(super) fn of(seed: u64, speed: Speed) -> Self {
        let numbers = Numbers::of(seed).take(STEPS).collect();
        Self { name: format!("seed {seed}"), numbers, speed, twice: seed.is_multiple_of(TWICE) }
    }

    /// The programs of a file, one in a line. A line that begins with `#` is none.
    pub(super) fn read(text: &str, speed: Speed) -> Result<Vec<Self>, String> {
        let lines = text.lines().enumerate().filter(|(_at, line)| !line.starts_with('#'));
        lines
            .map(|(at, line)| {
                let name = format!("line {}", at + 1);
                let numbers = line.split_whitespace().map(str::parse).collect::<Result<_, _>>();
                let numbers = numbers.map_err(|error| format!("{name} is no program: {error}"))?;
                Ok(Self { name, numbers, speed, twice: true })
            })
            .collect()
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Runs it. One that fails is cut down first.
    pub(super) fn hold(&self, ran: &mut Ran) -> Result<(), Failure> {
        let mut own = Ran::default();
        if let Err(told) = self.run(&self.numbers, &mut own) {
            return Err(self.cut_down(told));
        }
        if self.twice {
            let mut again = Ran::default();
            let same = self.run(&self.numbers, &mut again).is_ok() && own.trace == again.trace;
            if !same {
                let told = "it did not do the same twice".to_owned();
                return Err(Failure { line: line(&self.numbers), told });
            }
        }
        ran.add(&own);
        Ok(())
    }

    fn cut_down(&self, told: String) -> Failure {
        let fails = |shorter: &[u32]| self.run(shorter, &mut Ran::default()).is_err();
        let shortest = shrink(self.numbers.clone(), fails);
        let told = self.run(&shortest, &mut Ran::default()).err().unwrap_or(told);
        Failure { line: line(&shortest), told }
    }

    fn run(&self, numbers: &[u32], ran: &mut Ran) -> Result<(), String> {
        let run = catch_unwind(AssertUnwindSafe(|| {
            let mut reference = Reference::new(Order::Listed);
            let mut runtime = match self.speed {
                Speed::Careful => Production::new(Engine::Memory),
                Speed::Swift => Production::swift(),
            };
            compare(&mut reference, &mut runtime, numbers, ran)
        }));
        match run {
            Ok(compared) => compared.map_err(|difference| difference.to_string()),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().cloned();
                let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
                Err(format!("it panics: {}", text.unwrap_or_default()))
            }
        }
    }
}

fn line(numbers: &[u32]) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}
