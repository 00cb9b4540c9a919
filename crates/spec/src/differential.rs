//! Two implementations, the same random commands, and everything compared after each.
//!
//! A program is a list of numbers; see [`program`](self::program). After every step what the two tell of themselves
//! is compared line by line, and the [invariants](crate::invariant) are looked at. The trace of a program says what
//! it did and what came of it, so that a program which is run twice can be seen to do the same twice.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::driver::{Answer, Command, Driver, Found, InjectAnswer, Model, Snapshot, TurnOutcome};
use crate::invariant;

mod program;
pub(crate) mod told;

use self::program::{Next, Step, resting, step};
pub use self::program::{Numbers, configuration};
use self::told::told;

/// How an answer went, in a word.
fn word(answer: &Answer, changed: bool) -> &'static str {
    match answer {
        Answer::Done if changed => "done",
        Answer::Done => "nothing",
        Answer::Accepted(_) => "accepted",
        Answer::Original(_) => "original",
        Answer::Attempts(attempts) if attempts.is_empty() => "none",
        Answer::Attempts(_) => "attempts",
        Answer::Refused(_) => "refused",
        Answer::Lacking(what) => what,
    }
}

/// What a command is called in tables.
fn name(command: &Command) -> &'static str {
    match command {
        Command::Configure(_) => "configure",
        Command::Accept(_) => "accept",
        Command::Route => "route",
        Command::Open(_) => "open",
        Command::Claim => "claim",
        Command::Launch => "launch",
        Command::Report { end, .. } => match end.outcome {
            TurnOutcome::Completed => "report completed",
            TurnOutcome::Handoff => "report handoff",
            TurnOutcome::Failed { .. } => "report failed",
            TurnOutcome::Waiting(_) => "report waiting",
        },
        Command::Renew => "renew",
        Command::Recover(Found::Alive) => "recover alive",
        Command::Recover(Found::Finished(_)) => "recover finished",
        Command::Recover(Found::NothingStarted) => "recover unstarted",
        Command::Recover(Found::NotAdoptable { stopped: true }) => "recover stopped",
        Command::Recover(Found::NotAdoptable { stopped: false }) => "recover unknown",
        Command::Advance(_) => "advance",
        Command::Fire => "fire",
        Command::Cancel(_) => "cancel",
        Command::Retry { .. } => "retry",
        Command::Interrupt { .. } => "interrupt",
        Command::Dispatch(InjectAnswer::Accepted) => "dispatch accepted",
        Command::Dispatch(InjectAnswer::NotAccepting) => "dispatch not accepting",
        Command::Dispatch(InjectAnswer::Ambiguous) => "dispatch ambiguous",
        Command::Present => "present",
        Command::Acknowledge(_) => "acknowledge",
        Command::Subscribe(_) => "subscribe",
        Command::Translate => "translate",
        Command::Release(_) => "release",
        Command::Pause(_) => "pause",
        Command::Resume(_) => "resume",
        Command::Reopen => "reopen",
    }
}

/// A step that the two do not agree about, or that breaks an invariant.
#[derive(Debug)]
pub struct Difference {
    /// The commands up to it.
    pub commands: Vec<String>,
    /// What only the first says.
    pub first: Vec<String>,
    /// What only the second says.
    pub second: Vec<String>,
    /// The invariant that does not hold.
    pub broken: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.commands.join("\n"))?;
        if let Some(broken) = &self.broken {
            return write!(f, "an invariant does not hold: {broken}");
        }
        writeln!(f, "the first says\n  {}", self.first.join("\n  "))?;
        write!(f, "the second says\n  {}", self.second.join("\n  "))
    }
}

/// How often each command went each way.
pub type Coverage = BTreeMap<(&'static str, &'static str), u64>;

/// What programs came to.
#[derive(Debug, Default)]
pub struct Ran {
    /// Commands that changed something durable. A command that was refused, or found nothing to do, is no step.
    pub steps: u64,
    /// How often each command went each way.
    pub coverage: Coverage,
    /// What each command did and what came of it, as one number for each.
    pub trace: Vec<u64>,
}

impl Ran {
    /// Adds what another one came to, but for its trace.
    pub fn add(&mut self, other: &Self) {
        self.steps += other.steps;
        for (went, times) in &other.coverage {
            *self.coverage.entry(*went).or_default() += times;
        }
    }
}

/// Runs a program on two empty drivers and compares everything after every step. When it is through, both are let
/// come to rest, and nothing may be left that nobody moves.
///
/// # Errors
/// The first [`Difference`].
pub fn compare<M: Model>(
    first: &mut M,
    second: &mut dyn Driver,
    program: &[u32],
    ran: &mut Ran,
) -> Result<(), Difference> {
    let Some((chosen, program)) = program.split_first() else { return Ok(()) };
    let mut both = Both::begin(first, second, *chosen);
    for number in program {
        let (Some(one), Some(other)) = (step(*number, &both.seen), step(*number, &both.also)) else {
            continue;
        };
        both.commands.push(format!("{number}: {one:?}"));
        both.step(one, other, ran)?;
    }
    both.come_to_rest(ran)
}

/// Lets everything go on in one implementation, as [`compare`] does at its end.
///
/// # Errors
/// The first invariant that does not hold, or what is left.
pub fn come_to_rest(driver: &mut dyn Driver) -> Result<(), String> {
    let mut seen = driver.snapshot();
    let mut left = Ok(());
    for _ in 0..ROUNDS_MAX {
        let mut changed = false;
        for turn in 0.. {
            let step = match resting(turn, &seen) {
                Next::Step(step) => *step,
                Next::Nothing => continue,
                Next::Over => break,
            };
            driver.act(step.command);
            let before = std::mem::replace(&mut seen, driver.snapshot());
            invariant::check(&before, &seen)?;
            changed |= told(&before) != told(&seen);
        }
        left = invariant::check_rest(&seen);
        if !changed && left.is_ok() {
            return Ok(());
        }
    }
    left.and(Err("it does not come to rest".to_owned()))
}

/// The two, at the same place.
struct Both<'d, M> {
    first: &'d mut M,
    second: &'d mut dyn Driver,
    seen: Snapshot,
    also: Snapshot,
    told: BTreeSet<String>,
    commands: Vec<String>,
}

impl<'d, M: Model> Both<'d, M> {
    fn begin(first: &'d mut M, second: &'d mut dyn Driver, chosen: u32) -> Self {
        (first as &mut dyn Driver).must(Command::Configure(configuration(chosen)));
        second.must(Command::Configure(configuration(chosen)));
        let (seen, also) = (first.snapshot(), second.snapshot());
        let told = told(&seen);
        Self { first, second, seen, also, told, commands: Vec::new() }
    }

    /// Does one step on both. True when it changed anything.
    fn step(&mut self, one: Step, other: Step, ran: &mut Ran) -> Result<bool, Difference> {
        let name = name(&one.command);
        let dies = one.dies_at.is_some();
        let (answer, same) = match (one.dies_at, other.dies_at) {
            (Some(_), Some(at)) => {
                self.crash(&one.command, other.command, at);
                (Answer::Done, Answer::Done)
            }
            (_, _) => (self.first.act(one.command), self.second.act(other.command)),
        };
        self.seen = self.first.snapshot();
        let before = std::mem::replace(&mut self.also, self.second.snapshot());
        let (mut left, mut right) = (told(&self.seen), told(&self.also));
        let (changed, also) = (left != self.told, right != self.told);
        self.told.clone_from(&left);
        let (answer, same) = (word(&answer, changed), word(&same, also));
        left.insert(format!("answer {answer}"));
        right.insert(format!("answer {same}"));
        if left != right {
            let first = left.difference(&right).cloned().collect();
            let second = right.difference(&left).cloned().collect();
            return Err(Difference { commands: self.commands.clone(), first, second, broken: None });
        }
        invariant::check(&before, &self.also).map_err(|broken| self.broken(broken))?;
        ran.steps += u64::from(changed);
        ran.trace.push(digest(&left));
        let outcome = match (dies, changed) {
            (false, _) => answer,
            (true, true) => "died, something done",
            (true, false) => "died, nothing done",
        };
        *ran.coverage.entry((name, outcome)).or_default() += 1;
        Ok(changed)
    }

    /// Lets both die in the middle of a command. The first is whichever of what it may be then that the second is.
    fn crash(&mut self, one: &Command, other: Command, at: u32) {
        self.second.crash(other, at);
        let seen = self.second.snapshot();
        let right = told(&seen);
        let mut left = self.first.crashed(one, &seen);
        let found = left.iter_mut().position(|model| told(&model.snapshot()) == right);
        // When there is none, what comes nearest is what it would be if all had been done.
        let last = left.len().saturating_sub(1);
        *self.first = left.swap_remove(found.unwrap_or(last));
    }

    /// Lets everything go on that goes on by itself, and sees that nothing is left.
    fn come_to_rest(&mut self, ran: &mut Ran) -> Result<(), Difference> {
        for round in 0..ROUNDS_MAX {
            let mut changed = false;
            for turn in 0.. {
                let (one, other) = match (resting(turn, &self.seen), resting(turn, &self.also)) {
                    (Next::Step(one), Next::Step(other)) => (*one, *other),
                    (Next::Nothing, Next::Nothing) => continue,
                    (Next::Step(_) | Next::Nothing | Next::Over, _) => break,
                };
                self.commands.push(format!("at rest, round {round}: {:?}", one.command));
                changed |= self.step(one, other, ran)?;
            }
            if !changed {
                return invariant::check_rest(&self.also).map_err(|broken| self.broken(broken));
            }
        }
        Err(self.broken("it does not come to rest".to_owned()))
    }

    fn broken(&self, broken: String) -> Difference {
        let (first, second) = (Vec::new(), Vec::new());
        Difference { commands: self.commands.clone(), first, second, broken: Some(broken) }
    }
}

/// More rounds than any program needs to come to rest.
const ROUNDS_MAX: u32 = 200;

fn digest(lines: &BTreeSet<String>) -> u64 {
    let mut hasher = DefaultHasher::new();
    lines.hash(&mut hasher);
    hasher.finish()
}

/// The shortest program that can be found, by leaving parts out, of which `fails` still says so.
pub fn shrink(mut program: Vec<u32>, mut fails: impl FnMut(&[u32]) -> bool) -> Vec<u32> {
    let mut part = program.len().div_ceil(2);
    while part > 0 {
        let mut at = 0;
        while at < program.len() {
            let mut shorter = program.clone();
            shorter.drain(at..(at + part).min(program.len()));
            if fails(&shorter) {
                program = shorter;
            } else {
                at += part;
            }
        }
        part /= 2;
    }
    program
}

#[cfg(test)]
mod tests {
    use super::{Numbers, Ran, compare, shrink};
    use crate::reference::{Fault, Order, Reference};

    /// Rules that random commands can tell broken; the others need what no program does.
    const WITHIN_REACH: [Fault; 9] = [
        Fault::DedupForgotten,
        Fault::ClaimsTwice,
        Fault::OrderIsGlobal,
        Fault::EndsAreRevived,
        Fault::CancelKeepsTimers,
        Fault::ExpiryIsInclusive,
        Fault::InputEndsBackoff,
        Fault::BoundsAreBypassed,
        Fault::CountersInMemory,
    ];

    fn differs(fault: Fault, program: &[u32]) -> bool {
        let (mut right, mut wrong) = (Reference::new(Order::Listed), Reference::broken(fault));
        compare(&mut right, &mut wrong, program, &mut Ran::default()).is_err()
    }

    #[test]
    fn random_commands_tell_a_broken_rule() {
        for fault in WITHIN_REACH {
            let program = (0..40)
                .map(|seed| Numbers::of(seed).take(120).collect::<Vec<_>>())
                .find(|program| differs(fault, program))
                .unwrap_or_else(|| panic!("no program tells {fault:?}"));
            let shortest = shrink(program, |shorter| differs(fault, shorter));
            assert!(differs(fault, &shortest) && shortest.len() < 20, "{fault:?}: {shortest:?}");
        }
    }

    #[test]
    fn two_that_are_alike_never_differ() {
        for seed in 0..40 {
            let program: Vec<u32> = Numbers::of(seed).take(120).collect();
            let (mut one, mut other) = (Reference::new(Order::Listed), Reference::new(Order::Listed));
            let compared = compare(&mut one, &mut other, &program, &mut Ran::default());
            assert!(compared.is_ok(), "seed {seed}: {compared:?}");
        }
    }
}
