//! Two implementations, the same random commands, and everything compared after each.
//!
//! A program is a list of numbers. Each number is a step by itself, so that a list can be cut down to the few
//! that matter, written into a file, and run again. What a step names (the third Work, the first attempt) is
//! looked up in what is there, which is the same on both sides or already a difference.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use domain::id::{EventId, ExecutionId, WorkId};
use domain::route::CheckpointOutcome;
use domain::text::DeliveryId;

use crate::driver::{
    Answer, AttemptRecord, Command, Delivery, Driver, EligibilityRecord, EventRecord, Found, ScopeText,
    Snapshot, TurnEnd, TurnOutcome, delivery, scope,
};

/// A generator of numbers from a seed: splitmix64.
#[derive(Debug)]
pub struct Numbers(u64);

impl Numbers {
    /// The numbers of a seed.
    pub const fn of(seed: u64) -> Self {
        Self(seed)
    }
}

impl Iterator for Numbers {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Some(u32::try_from((mixed ^ (mixed >> 31)) >> 32).expect("half of 64 bits"))
    }
}

/// Draws parts of a number, each from what the others have left.
struct Draw(u32);

impl Draw {
    const fn below(&mut self, limit: u32) -> u32 {
        let drawn = self.0 % limit;
        self.0 /= limit;
        drawn
    }

    fn of<'i, T>(&mut self, items: &'i [T]) -> Option<&'i T> {
        let length = u32::try_from(items.len()).expect("a case has few of anything");
        if length == 0 { None } else { items.get(self.below(length) as usize) }
    }
}

/// What both sides are configured with: bounds that a short program reaches.
pub fn configuration() -> ScopeText {
    ScopeText { failure_budget: 2, causal_max_depth: 2, causal_per_minute: 3, ..scope("main") }
}

/// The command that a number stands for, given what is there; none when what it names is not.
fn command(number: u32, seen: &Snapshot) -> Option<Command> {
    let mut draw = Draw(number);
    let works: Vec<WorkId> = in_order(seen).into_iter().collect();
    let attempts: Vec<&AttemptRecord> = attempts_in_order(seen);
    Some(match draw.below(20) {
        0..=4 => Command::Accept(handed(&mut draw, seen, &works)),
        5..=7 => Command::Route,
        8 | 9 => Command::Claim,
        10 => Command::Launch,
        11..=13 => {
            let attempt = draw.of(&attempts)?;
            // Now and then under an epoch of before.
            let stale = attempt.epoch.number() > 1 && draw.below(4) == 0;
            let epoch = if stale { domain::id::Epoch::FIRST } else { attempt.epoch };
            Command::Report { execution: attempt.id, epoch, end: end(&mut draw) }
        }
        14 => Command::Renew,
        15 => Command::Recover(match draw.below(5) {
            0 => Found::Alive,
            1 => Found::Finished(end(&mut draw)),
            2 => Found::NothingStarted,
            3 => Found::NotAdoptable { stopped: false },
            _other => Found::NotAdoptable { stopped: true },
        }),
        16 => Command::Advance(Duration::from_secs([1, 15, 30, 60, 300, 600][draw.below(6) as usize])),
        17 => match draw.below(4) {
            0 => Command::Open("slow"),
            1 => Command::Reopen,
            _other => Command::Fire,
        },
        18 => Command::Cancel(*draw.of(&works)?),
        _other => {
            let delivery = DeliveryId::known(&format!("retry {}", draw.below(4)));
            Command::Retry { work: *draw.of(&works)?, delivery }
        }
    })
}

fn handed(draw: &mut Draw, seen: &Snapshot, works: &[WorkId]) -> Delivery {
    let mut handed = delivery(&format!("d-{}", draw.below(24)));
    match draw.below(8) {
        0 => {}
        1 => handed.work = draw.of(works).copied(),
        _other => handed = handed.key(["a", "b", "c", "d"][draw.below(4) as usize]),
    }
    if draw.below(3) == 0 {
        handed.parent = draw.of(&seen.events).map(|event| event.id);
    }
    if draw.below(3) == 0 {
        handed = handed.standing();
    }
    if draw.below(8) == 0 {
        handed = handed.gate("slow");
    }
    handed
}

fn end(draw: &mut Draw) -> TurnEnd {
    TurnEnd::of(match draw.below(5) {
        0 | 1 => TurnOutcome::Completed,
        2 => TurnOutcome::Handoff,
        3 => TurnOutcome::Failed { retry_after_seconds: None },
        _other => TurnOutcome::Failed { retry_after_seconds: Some(30) },
    })
}

/// Works in the order of their first input, which no implementation chooses.
fn in_order(seen: &Snapshot) -> Vec<WorkId> {
    let mut works: Vec<WorkId> = Vec::new();
    for event in &seen.events {
        let Some(checkpoint) = &event.checkpoint else { continue };
        if let (CheckpointOutcome::Routed, Some(work)) = (checkpoint.outcome, checkpoint.work)
            && !works.contains(&work)
        {
            works.push(work);
        }
    }
    works
}

fn attempts_in_order(seen: &Snapshot) -> Vec<&AttemptRecord> {
    let works = in_order(seen);
    let mut attempts: Vec<&AttemptRecord> = seen.attempts.iter().collect();
    attempts.sort_by_key(|attempt| (works.iter().position(|work| *work == attempt.work), attempt.number));
    attempts
}

/// What can be told of an implementation without the ids that it made up: one line for each thing.
fn told(seen: &Snapshot) -> BTreeSet<String> {
    let works = in_order(seen);
    let attempts = attempts_in_order(seen);
    let event = |id: EventId| seen.events.iter().position(|event| event.id == id);
    let work = |id: WorkId| works.iter().position(|work| *work == id);
    let attempt = |id: ExecutionId| attempts.iter().position(|attempt| attempt.id == id);
    let list = |ids: &[EventId]| ids.iter().map(|id| event(*id)).collect::<Vec<_>>();
    let mut lines = BTreeSet::new();
    for it in &seen.events {
        let checkpoint = it
            .checkpoint
            .as_ref()
            .map(|it| (it.outcome, it.route.clone(), it.policy.clone(), it.work.map(work), it.generation));
        lines.insert(format!(
            "event {:?}: {} {} for {:?} {:?}, of {:?} at {} by {:?}, again {}, {checkpoint:?}",
            event(it.id),
            it.event_type,
            name(it),
            it.key,
            it.work.map(work),
            it.parent.map(event),
            it.depth,
            it.emitted_by.map(attempt),
            it.redelivered,
        ));
    }
    for it in &seen.works {
        let eligibility = match it.eligibility {
            EligibilityRecord::Due(id) => format!("due by {:?}", event(id)),
            other @ (EligibilityRecord::Clear
            | EligibilityRecord::Backoff(_)
            | EligibilityRecord::Exhausted) => format!("{other:?}"),
        };
        let (pending, failures) = (list(&it.pending), it.failures);
        lines.insert(format!(
            "work {:?}: {:?}, keys {:?}, pending {pending:?}, failed {failures}, {eligibility}",
            work(it.id),
            it.state,
            it.keys,
        ));
    }
    for it in &seen.attempts {
        lines.insert(format!(
            "attempt {:?} of {:?}, number {}: {:?} at {} until {:?}, recovering {}, by {:?} after {:?}, took {:?}",
            attempt(it.id),
            work(it.work),
            it.number,
            it.state,
            it.epoch,
            it.lease_until,
            it.recovering,
            event(it.trigger),
            it.retry_of.map(attempt),
            list(&it.consumed),
        ));
    }
    for it in &seen.timers {
        lines.insert(format!("timer of {:?}: {:?} at {}", work(it.work), it.kind, it.due_at));
    }
    for it in &seen.rejections {
        let kind = it.delivery.as_str().split('/').next().unwrap_or_default();
        let (parent, root, depth) = (event(it.parent), event(it.root), it.depth);
        lines.insert(format!(
            "rejected {} {kind}: of {parent:?} in {root:?} at {depth}, {}",
            it.source, it.code
        ));
    }
    for ((root, minute), count) in &seen.charged {
        lines.insert(format!("charged {:?} in {minute}: {count}", event(*root)));
    }
    lines
}

/// What a delivery is called, without the ids in what the runtime itself says.
fn name(event: &EventRecord) -> &str {
    let delivery = event.delivery.as_str();
    if event.source.as_str() == "core" { delivery.split('/').next().unwrap_or_default() } else { delivery }
}

/// How an answer went, in a word.
fn word(answer: &Answer) -> String {
    match answer {
        Answer::Done => "done".to_owned(),
        Answer::Accepted(_) => "accepted".to_owned(),
        Answer::Original(_) => "original".to_owned(),
        Answer::Attempts(attempts) => if attempts.is_empty() { "none" } else { "attempts" }.to_owned(),
        Answer::Refused(_) => "refused".to_owned(),
        Answer::Lacking(what) => format!("lacking {what}"),
    }
}

/// A step that the two do not agree about.
#[derive(Debug)]
pub struct Difference {
    /// The commands up to it.
    pub commands: Vec<String>,
    /// What only the first says.
    pub first: Vec<String>,
    /// What only the second says.
    pub second: Vec<String>,
}

/// How often each command went each way.
pub type Coverage = BTreeMap<(String, String), u32>;

/// Runs a program on two empty drivers and compares everything after every step.
///
/// # Errors
/// The first [`Difference`].
pub fn compare(
    first: &mut dyn Driver,
    second: &mut dyn Driver,
    program: &[u32],
    coverage: &mut Coverage,
) -> Result<(), Difference> {
    let mut commands = Vec::new();
    first.configure(configuration());
    second.configure(configuration());
    let (mut seen, mut also) = (first.snapshot(), second.snapshot());
    for number in program {
        let (Some(one), Some(other)) = (command(*number, &seen), command(*number, &also)) else { continue };
        commands.push(format!("{number}: {one:?}"));
        let named = format!("{one:?}");
        let named =
            named.split(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default().to_owned();
        let (answer, same) = (word(&first.act(one)), word(&second.act(other)));
        (seen, also) = (first.snapshot(), second.snapshot());
        let (mut left, mut right) = (told(&seen), told(&also));
        left.insert(format!("answer {answer}"));
        right.insert(format!("answer {same}"));
        if left != right {
            let first = left.difference(&right).cloned().collect();
            let second = right.difference(&left).cloned().collect();
            return Err(Difference { commands, first, second });
        }
        *coverage.entry((named, answer)).or_default() += 1;
    }
    Ok(())
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
    use super::{Coverage, Numbers, compare, shrink};
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
        compare(&mut right, &mut wrong, program, &mut Coverage::new()).is_err()
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
            let compared = compare(&mut one, &mut other, &program, &mut Coverage::new());
            assert!(compared.is_ok(), "seed {seed}: {compared:?}");
        }
    }
}
