//! Programs: from a number to a command, given what is there.
//!
//! A program is a list of numbers, and each is a step by itself, so a list can be cut down to the few that matter,
//! written into a file, and run again. What a step names (the third Work, the first attempt) is looked up in what is
//! there, which is the same on both sides or already a difference.

#![expect(
    clippy::unnecessary_wraps,
    reason = "each choice is one of many, of which some find nothing to name"
)]

use std::collections::BTreeSet;
use std::time::Duration;

use domain::event::Key;
use domain::id::{Epoch, EventId, Sequence, WorkId};
use domain::text::{DeliveryId, ScopeName};
use domain::work::Lifecycle;

use super::told::{attempts_in_order, works_in_order};
use crate::driver::{
    AttemptRecord, AttemptState, BindingText, Capability, Command, Delivery, EligibilityRecord, EventRecord,
    Found, InjectAnswer, IntentKind, IntentRecord, IntentState, Registration, ScopeText, Snapshot,
    Subscription, TurnEnd, TurnOutcome, Wish, WorkWord, binding, delivery, key, kind, route, scope,
};
use crate::reference::plain;

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

/// What one number of a program stands for, as a row of choices.
struct Draw(Numbers);

impl Draw {
    fn below(&mut self, limit: u32) -> u32 {
        self.0.next().expect("the numbers have no end") % limit
    }

    fn one_in(&mut self, times: u32) -> bool {
        self.below(times) == 0
    }

    fn of<'i, T>(&mut self, items: &'i [T]) -> Option<&'i T> {
        let length = u32::try_from(items.len()).expect("a case has few of anything");
        if length == 0 { None } else { items.get(self.below(length) as usize) }
    }

    fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        *self.of(items).expect("there is something to choose from")
    }
}

fn draw(number: u32) -> Draw {
    Draw(Numbers::of(u64::from(number)))
}

/// What both sides are configured with: bounds that a short program reaches.
///
/// `main` has a route for every policy; `side` may read it.
pub fn configuration(number: u32) -> Vec<ScopeText> {
    let mut draw = draw(number);
    let mut can = vec![Capability::Inject, Capability::Interrupt];
    if draw.one_in(2) {
        can.push(Capability::Resume);
    }
    let (causal_max_depth, causal_per_minute) = draw.pick(&[(1, 3), (1, 6), (2, 3), (4, 8), (12, 40)]);
    let mut routes = vec![
        route("given").takes("test.given").policy("inject"),
        route("stopping").takes("test.stopping").policy("interrupt"),
        route("passing").takes("test.passing").policy("drop"),
        route("dropped").takes("test.dropped").drops(),
        route("told").takes("test.happened").takes("test.alias"),
    ];
    if draw.one_in(3) {
        routes.push(route("turns").takes("core.turn.ended"));
    }
    let main = ScopeText {
        bindings: vec![BindingText { can, ..binding("double") }],
        routes,
        concurrency: draw.pick(&[1, 2, 16]),
        failure_budget: draw.pick(&[2, 3]),
        terminal_on_exhaustion: draw.one_in(2),
        causal_max_depth,
        causal_per_minute,
        ..scope("main")
    };
    let side =
        ScopeText { reads: vec![main.name.clone()], concurrency: 2, causal_per_minute, ..scope("side") };
    vec![main, side]
}

/// A step: a command, and the moment at which the process dies that does it.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) command: Command,
    /// None when it lives on.
    pub(super) dies_at: Option<u32>,
}

/// What a number stands for, given what is there; none when what it names is not.
pub(super) fn step(number: u32, seen: &Snapshot) -> Option<Step> {
    let mut draw = draw(number);
    let soon = if draw.one_in(3) { soon_or_never(&mut draw, seen) } else { None };
    let choice = soon.unwrap_or_else(|| draw.pick(&COMMANDS));
    let command = choice(&mut draw, seen)?;
    let dies = can_be_cut(&command) && draw.one_in(one_dies_in(&command));
    let moments = draw.pick(&[3, 8]);
    let dies_at = dies.then(|| draw.below(moments));
    Some(Step { command, dies_at })
}

/// Whether it can be seen of a command which of its parts were done.
const fn can_be_cut(command: &Command) -> bool {
    match command {
        Command::Accept(_)
        | Command::Route
        | Command::Claim
        | Command::Launch
        | Command::Report { .. }
        | Command::Renew
        | Command::Recover(_)
        | Command::Fire
        | Command::Cancel(_)
        | Command::Retry { .. }
        | Command::Interrupt { .. }
        | Command::Translate
        | Command::Release(_)
        | Command::Configure(_)
        | Command::Subscribe(_)
        | Command::Dispatch(_)
        | Command::Present
        | Command::Acknowledge(_)
        | Command::Pause(_)
        | Command::Resume(_) => true,
        // These are no transactions.
        Command::Open(_) | Command::Advance(_) | Command::Reopen => false,
    }
}

/// The next part of giving something to what runs: each has to come before the turn ends, or the process.
fn soon_or_never(draw: &mut Draw, seen: &Snapshot) -> Option<Choice> {
    let open = |it: &&IntentRecord| it.kind == IntentKind::Inject && it.state == IntentState::Pending;
    if seen.intents.iter().filter(open).any(|it| it.attempted) {
        return Some(acknowledge);
    }
    let heard = |id| seen.attempts.iter().any(|it| it.id == id && is_heard(seen, it));
    if seen.intents.iter().filter(open).any(|it| heard(it.execution)) {
        return Some(present);
    }
    let given = |it: &EventRecord| it.event_type.as_str() == "test.given" && it.checkpoint.is_none();
    let any_runs = seen.attempts.iter().any(|it| is_heard(seen, it));
    if any_runs && seen.events.iter().any(given) {
        return Some(route_all);
    }
    (any_runs && draw.one_in(3)).then_some(give)
}

/// Of how many of a command one is cut off: what is rare would else be cut off hardly ever.
const fn one_dies_in(command: &Command) -> u32 {
    match command {
        Command::Accept(_) | Command::Route | Command::Claim | Command::Launch => 20,
        Command::Renew => 6,
        Command::Report { .. } => 3,
        Command::Configure(_)
        | Command::Recover(_)
        | Command::Fire
        | Command::Cancel(_)
        | Command::Retry { .. }
        | Command::Interrupt { .. }
        | Command::Dispatch(_)
        | Command::Present
        | Command::Acknowledge(_)
        | Command::Subscribe(_)
        | Command::Translate
        | Command::Release(_)
        | Command::Pause(_)
        | Command::Resume(_)
        | Command::Open(_)
        | Command::Advance(_)
        | Command::Reopen => 4,
    }
}

/// What comes next as everything is let come to rest.
pub(super) enum Next {
    /// This.
    Step(Box<Step>),
    /// Nothing, in this turn.
    Nothing,
    /// The round is over.
    Over,
}

/// What is done again and again until everything is at rest: whatever goes on by itself, and what an operator does
/// who wants it to. Every turn that runs ends well. What can have no effect is left out.
pub(super) fn resting(turn: usize, seen: &Snapshot) -> Next {
    let due = seen.timers.iter().any(|timer| timer.due_at <= seen.now);
    let ready = seen.works.iter().any(|it| it.state == WorkWord::Ready && !it.pending.is_empty());
    let launching = seen.attempts.iter().any(|it| it.state == AttemptState::Launching);
    let pending = seen.intents.iter().any(|it| it.state == IntentState::Pending);
    let fixed = [
        (true, Command::Advance(Duration::from_mins(10))),
        (seen.events.iter().any(|event| event.checkpoint.is_none()), Command::Open("slow")),
        (!seen.subscriptions.is_empty(), Command::Translate),
        (true, Command::Route),
        (seen.attempts.iter().any(|it| is_lost(seen, it)), Command::Recover(Found::Alive)),
        (due, Command::Fire),
        (due, Command::Route),
        (ready, Command::Claim),
        (launching, Command::Launch),
        (pending, Command::Dispatch(InjectAnswer::Accepted)),
    ];
    let command = match fixed.get(turn) {
        Some((true, command)) => Some(command.clone()),
        Some((false, _)) => return Next::Nothing,
        // As many of them as there may be, and then the round is over.
        None if turn < MOVES_MAX => next_of_an_operator(seen),
        None => None,
    };
    command.map_or(Next::Over, |command| Next::Step(Box::new(Step { command, dies_at: None })))
}

/// More turns than a round has.
const MOVES_MAX: usize = 64;

/// Whether nobody has an attempt's authority, or only an outcome that waits to be settled.
fn is_lost(seen: &Snapshot, attempt: &AttemptRecord) -> bool {
    !attempt.state.is_terminal()
        && attempt.state != AttemptState::Parked
        && attempt.lease_until.is_none_or(|until| until <= seen.now)
}

/// Whether a report of an attempt would have an effect.
fn is_heard(seen: &Snapshot, attempt: &AttemptRecord) -> bool {
    attempt.state == AttemptState::Running
        && !attempt.recovering
        && attempt.lease_until.is_some_and(|until| until > seen.now)
}

fn next_of_an_operator(seen: &Snapshot) -> Option<Command> {
    if let Some(attempt) = attempts_in_order(seen).into_iter().find(|attempt| is_heard(seen, attempt)) {
        let end = TurnEnd::of(TurnOutcome::Completed);
        return Some(Command::Report { execution: attempt.id, epoch: attempt.epoch, end });
    }
    if let Some(scope) = seen.paused.first() {
        return Some(Command::Resume(scope.clone()));
    }
    let held = works_in_order(seen).into_iter().find(|work| {
        let work = seen.work(*work);
        work.held.is_some() && !work.state.is_terminal()
    });
    held.map(Command::Release)
}

type Choice = fn(&mut Draw, &Snapshot) -> Option<Command>;

/// What a step may be, the likely more than once.
const COMMANDS: [Choice; 73] = [
    accept,
    accept,
    accept,
    accept,
    accept,
    accept,
    accept,
    accept,
    accept,
    route_all,
    route_all,
    route_all,
    route_all,
    route_all,
    claim,
    claim,
    claim,
    claim,
    launch,
    launch,
    launch,
    report,
    report,
    report,
    report,
    report,
    report,
    renew,
    recover,
    recover,
    advance,
    advance,
    fire,
    fire,
    open_or_reopen,
    open_or_reopen,
    cancel,
    retry,
    interrupt,
    order,
    order,
    alias,
    order,
    alias,
    alias,
    release,
    release,
    configure,
    pause,
    pause,
    reopening,
    reopening,
    poisoned,
    possible,
    possible,
    possible,
    possible,
    possible,
    possible,
    possible,
    possible,
    possible,
    possible,
    possible,
    possible,
    possible,
    possible,
    possible,
    possible,
    possible,
    possible,
    possible,
    possible,
];

fn accept(draw: &mut Draw, seen: &Snapshot) -> Option<Command> {
    Some(Command::Accept(handed(draw, seen)))
}

fn route_all(_draw: &mut Draw, _seen: &Snapshot) -> Option<Command> {
    Some(Command::Route)
}

fn claim(_draw: &mut Draw, _seen: &Snapshot) -> Option<Command> {
    Some(Command::Claim)
}

fn launch(_draw: &mut Draw, _seen: &Snapshot) -> Option<Command> {
    Some(Command::Launch)
}

fn renew(_draw: &mut Draw, _seen: &Snapshot) -> Option<Command> {
    Some(Command::Renew)
}

fn fire(_draw: &mut Draw, _seen: &Snapshot) -> Option<Command> {
    Some(Command::Fire)
}

fn report(draw: &mut Draw, seen: &Snapshot) -> Option<Command> {
    let attempts = attempts_in_order(seen);
    let heard: Vec<_> = attempts.iter().filter(|attempt| is_heard(seen, attempt)).copied().collect();
    let attempt = if draw.one_in(12) { *draw.of(&attempts)? } else { *draw.of(&heard)? };
    // Now and then under an epoch of before.
    let stale = attempt.epoch.number() > 1 && draw.one_in(4);
    let epoch = if stale { Epoch::FIRST } else { attempt.epoch };
    Some(Command::Report { execution: attempt.id, epoch, end: end(draw, seen, attempt) })
}

fn recover(draw: &mut Draw, seen: &Snapshot) -> Option<Command> {
    Some(Command::Recover(match draw.below(6) {
        0 | 1 => Found::Alive,
        2 => {
            let attempts = attempts_in_order(seen);
            Found::Finished(end(draw, seen, draw_attempt(&attempts)?))
        }
        3 => Found::NothingStarted,
        4 => Found::NotAdoptable { stopped: false },
        _other => Found::NotAdoptable { stopped: true },
    }))
}

fn draw_attempt<'a>(attempts: &[&'a AttemptRecord]) -> Option<&'a AttemptRecord> {
    attempts.iter().find(|attempt| !attempt.state.is_terminal()).or_else(|| attempts.first()).copied()
}

fn advance(draw: &mut Draw, _seen: &Snapshot) -> Option<Command> {
    Some(Command::Advance(Duration::from_secs(draw.pick(&[1, 1, 1, 15, 15, 29, 30, 60, 300, 600]))))
}

fn open_or_reopen(draw: &mut Draw, _seen: &Snapshot) -> Option<Command> {
    Some(if draw.one_in(2) { Command::Open("slow") } else { Command::Reopen })
}

fn cancel(draw: &mut Draw, seen: &Snapshot) -> Option<Command> {
    let works = works_in_order(seen);
    draw.of(&works).copied().map(Command::Cancel)
}

fn retry(draw: &mut Draw, seen: &Snapshot) -> Option<Command> {
    let delivery = DeliveryId::known(&format!("retry {}", draw.below(6)));
    let works = works_in_order(seen);
    draw.of(&works).map(|work| Command::Retry { work: *work, delivery })
}

fn interrupt(draw: &mut Draw, seen: &Snapshot) -> Option<Command> {
    let delivery = DeliveryId::known(&format!("interrupt {}", draw.below(6)));
    let works = works_in_order(seen);
    draw.of(&works).map(|work| Command::Interrupt { work: *work, delivery })
}

fn order(draw: &mut Draw, _seen: &Snapshot) -> Option<Command> {
    let answer = draw.pick(&[InjectAnswer::Accepted, InjectAnswer::NotAccepting, InjectAnswer::Ambiguous]);
    Some(match draw.below(6) {
        0..=2 => Command::Present,
        3 => Command::Acknowledge(answer),
        _other => Command::Dispatch(answer),
    })
}

fn release(draw: &mut Draw, seen: &Snapshot) -> Option<Command> {
    let works = works_in_order(seen);
    let held = |work: &&WorkId| seen.work(**work).held.is_some();
    let held: Vec<WorkId> = works.iter().filter(held).copied().collect();
    if draw.one_in(4) { draw.of(&works) } else { draw.of(&held) }.copied().map(Command::Release)
}

/// One of the commands that would have an effect now, however seldom there is one.
fn possible(draw: &mut Draw, seen: &Snapshot) -> Option<Command> {
    let lost = |it: &AttemptRecord| is_lost(seen, it);
    let soon = seen.now.after(Duration::from_secs(30));
    let later = |it: &AttemptRecord| is_heard(seen, it) && it.lease_until < Some(soon);
    let mut choices: Vec<Choice> = Vec::new();
    let mut add = |is_possible: bool, choice: Choice| {
        if is_possible {
            choices.push(choice);
        }
    };
    // The rarer it is that something is possible, the more often it is done then.
    for _ in 0..3 {
        add(seen.attempts.iter().any(later), renew);
        add(seen.attempts.iter().any(|it| is_heard(seen, it)), advance_a_little);
        add(seen.attempts.iter().any(|it| is_heard(seen, it)), give);
        add(seen.attempts.iter().any(|it| is_heard(seen, it)), report);
        add(seen.works.iter().any(|it| it.held.is_some() && !it.state.is_terminal()), release_held);
        add(seen.intents.iter().any(|it| it.state == IntentState::Pending), order);
    }
    add(seen.events.iter().any(|event| event.checkpoint.is_none()), route_all);
    add(seen.attempts.iter().any(later), renew);
    add(seen.attempts.iter().any(lost), recover);
    add(seen.attempts.iter().any(|it| it.state == AttemptState::Launching), launch);
    add(seen.attempts.iter().any(|it| is_heard(seen, it)), report);
    add(seen.works.iter().any(|it| it.state == WorkWord::Ready && !it.pending.is_empty()), claim);
    add(seen.works.iter().any(|it| it.state == WorkWord::Running), interrupt_running);
    add(seen.works.iter().any(|it| it.eligibility != EligibilityRecord::Clear), retry_failed);
    add(seen.timers.iter().any(|it| it.due_at <= seen.now), fire);
    add(seen.timers.iter().any(|it| it.due_at > seen.now), advance);
    add(seen.intents.iter().any(|it| it.state == IntentState::Pending), order);
    add(!seen.subscriptions.is_empty(), subscribe_again);
    add(!seen.subscriptions.is_empty(), |_draw, _seen| Some(Command::Translate));
    draw.of(&choices)?(draw, seen)
}

/// Less time than a lease lasts.
fn advance_a_little(draw: &mut Draw, _seen: &Snapshot) -> Option<Command> {
    Some(Command::Advance(Duration::from_secs(draw.pick(&[1, 15, 29]))))
}

/// Something for what runs, to be taken in where its binding can.
fn give(draw: &mut Draw, seen: &Snapshot) -> Option<Command> {
    // A key of another scope's Work would only be refused until it is set aside.
    let works = works_in_order(seen);
    let running: Vec<Key> = works
        .into_iter()
        .filter(|work| seen.work(*work).state == WorkWord::Running)
        .filter(|work| seen.work(*work).scope.as_str() == "main")
        .flat_map(|work| seen.work(work).keys.iter().map(plain))
        .collect();
    let key = draw.of(&running)?.clone();
    let handed = delivery(&format!("given-{}", draw.below(96))).of("test.given");
    Some(Command::Accept(Delivery { key: Some(key), ..handed }))
}

fn present(_draw: &mut Draw, _seen: &Snapshot) -> Option<Command> {
    Some(Command::Present)
}

fn acknowledge(draw: &mut Draw, _seen: &Snapshot) -> Option<Command> {
    Some(Command::Acknowledge(draw.pick(&[
        InjectAnswer::Accepted,
        InjectAnswer::NotAccepting,
        InjectAnswer::Ambiguous,
    ])))
}

/// A subscription as it is, which is installed again.
fn subscribe_again(draw: &mut Draw, seen: &Snapshot) -> Option<Command> {
    let known: Vec<&Subscription> = seen.subscriptions.values().collect();
    draw.of(&known).map(|known| Command::Subscribe((*known).clone()))
}

fn interrupt_running(draw: &mut Draw, seen: &Snapshot) -> Option<Command> {
    let delivery = DeliveryId::known(&format!("interrupt {}", draw.below(24)));
    let works = works_in_order(seen);
    let running: Vec<WorkId> =
        works.into_iter().filter(|work| seen.work(*work).state == WorkWord::Running).collect();
    draw.of(&running).map(|work| Command::Interrupt { work: *work, delivery })
}

fn retry_failed(draw: &mut Draw, seen: &Snapshot) -> Option<Command> {
    let delivery = DeliveryId::known(&format!("retry {}", draw.below(8)));
    let works = works_in_order(seen);
    let failed: Vec<WorkId> =
        works.into_iter().filter(|work| seen.work(*work).eligibility != EligibilityRecord::Clear).collect();
    draw.of(&failed).map(|work| Command::Retry { work: *work, delivery })
}

fn release_held(draw: &mut Draw, seen: &Snapshot) -> Option<Command> {
    let works = works_in_order(seen);
    let held = |work: &WorkId| seen.work(*work).held.is_some() && !seen.work(*work).state.is_terminal();
    let held: Vec<WorkId> = works.into_iter().filter(held).collect();
    draw.of(&held).copied().map(Command::Release)
}

fn pause(draw: &mut Draw, seen: &Snapshot) -> Option<Command> {
    let name = ScopeName::known(draw.pick(&["main", "main", "side"]));
    // What is paused starts nothing, and a program is short.
    let resumes = seen.paused.contains(&name) || draw.one_in(8);
    Some(if resumes && !draw.one_in(6) { Command::Resume(name) } else { Command::Pause(name) })
}

/// Something about what may have ended, which then goes on as a successor.
fn reopening(draw: &mut Draw, seen: &Snapshot) -> Option<Command> {
    let mut handed = delivery(&format!("line-{}", draw.below(48))).key(draw.pick(&["x", "y"]));
    if draw.one_in(8) {
        // News for whoever waits, in any generation.
        return Some(Command::Accept(handed.of("test.stray")));
    }
    if draw.one_in(4) {
        handed.parent = draw.of(&seen.events).map(|event| event.id);
    }
    if draw.one_in(8) {
        handed = handed.gate("slow");
    }
    handed.lifecycle = draw.pick(&[Lifecycle::Once, Lifecycle::RunOnce]);
    let wish = if draw.one_in(8) { Wish::Usual } else { Wish::Reopen };
    Some(Command::Accept(handed.of(draw.pick(&["test.happened", "test.given"])).wish(wish)))
}

/// Something that no handler will ever take.
fn poisoned(draw: &mut Draw, seen: &Snapshot) -> Option<Command> {
    let Command::Accept(handed) = accept(draw, seen)? else { return None };
    let id = DeliveryId::known(&format!("poison-{}", draw.below(48)));
    Some(Command::Accept(Delivery { id, wish: Wish::Poison, ..handed }))
}

fn configure(draw: &mut Draw, seen: &Snapshot) -> Option<Command> {
    // The same names, under other bounds. A handler that stands at its gate meanwhile is asked again, and which of two
    // Works that it makes with another one is the older is nobody's concern.
    let stands = |event: &EventRecord| event.checkpoint.is_none() && seen.asked.contains_key(&event.id);
    (!seen.events.iter().any(stands)).then(|| Command::Configure(configuration(draw.below(64))))
}

fn alias(draw: &mut Draw, seen: &Snapshot) -> Option<Command> {
    if draw.one_in(2) {
        return Some(Command::Translate);
    }
    let works = works_in_order(seen);
    let work = *draw.of(&works)?;
    let own: Vec<Key> = seen.work(work).keys.iter().cloned().collect();
    let own = draw.of(&own)?.clone();
    Some(Command::Subscribe(Subscription {
        // A name is one Work's for ever.
        id: format!("{}-{}", works.iter().position(|known| *known == work)?, draw.below(2)),
        work,
        watched: key(draw.pick(&KEYS)),
        types: if draw.one_in(2) { vec![kind("test.happened")] } else { Vec::new() },
        own,
        becomes: kind("test.alias"),
        after: watermark(draw, seen),
    }))
}

const KEYS: [&str; 5] = ["a", "b", "c", "d", "e"];
const TYPES: [&str; 12] = [
    "test.happened",
    "test.happened",
    "test.happened",
    "test.happened",
    "test.given",
    "test.given",
    "test.given",
    "test.stopping",
    "test.passing",
    "test.dropped",
    "test.stray",
    "test.stray",
];

fn handed(draw: &mut Draw, seen: &Snapshot) -> Delivery {
    let mut handed = delivery(&format!("d-{}", draw.below(48))).of(draw.pick(&TYPES));
    if draw.one_in(8) {
        // Keys of its own: one of another scope's Work would only be refused until it is set aside.
        return handed.scope("side").of("test.happened").key(draw.pick(&["s", "t"]));
    }
    let works = works_in_order(seen);
    let attempts = attempts_in_order(seen);
    if draw.one_in(10)
        && let Some(attempt) = draw.of(&attempts)
    {
        // What a run publishes names it and its Work, and is caused by what triggered it.
        let emitted = handed.to(attempt.work).because(attempt.trigger);
        let key = if draw.one_in(2) { Some(key(draw.pick(&KEYS))) } else { None };
        return Delivery { emitted_by: Some(attempt.id), key, ..emitted };
    }
    match draw.below(12) {
        0 => {}
        1 => handed.work = draw.of(&works).copied(),
        2 => {
            handed.work = draw.of(&works).copied();
            handed = handed.key(draw.pick(&KEYS));
        }
        3 => handed = handed.wish(Wish::Fresh(Vec::new())),
        4 => {
            // A second key that leads nowhere else.
            let id = draw.pick(&KEYS);
            handed = handed.key(id).wish(Wish::Keys(vec![key(id), key(&format!("{id}-too"))]));
        }
        5 => handed = handed.key(draw.pick(&KEYS)).wish(Wish::Drop),
        _other => handed = handed.key(draw.pick(&KEYS)),
    }
    if draw.one_in(4) {
        handed.parent = draw.of(&seen.events).map(|event| event.id);
    }
    handed.lifecycle = draw.pick(&[
        Lifecycle::Once,
        Lifecycle::Once,
        Lifecycle::Once,
        Lifecycle::RunOnce,
        Lifecycle::Standing,
        Lifecycle::Standing,
    ]);
    if draw.one_in(8) {
        handed.concurrency = Some(draw.pick(&["alone", "apart"]));
    }
    if draw.one_in(10) {
        handed = handed.gate("slow");
    }
    handed
}

fn end(draw: &mut Draw, seen: &Snapshot, attempt: &AttemptRecord) -> TurnEnd {
    let outcome = match draw.below(9) {
        0 | 1 => TurnOutcome::Completed,
        2 | 3 => TurnOutcome::Handoff,
        4 => TurnOutcome::Failed { retry_after_seconds: None },
        5 => TurnOutcome::Failed { retry_after_seconds: Some(30) },
        _other => TurnOutcome::Waiting(registration(draw, seen, attempt)),
    };
    let mut consumed: Vec<EventId> = Vec::new();
    for intent in seen.intents.iter().filter(|intent| intent.execution == attempt.id) {
        if draw.one_in(2) {
            consumed.push(intent.event);
        }
    }
    if draw.one_in(8) {
        // A proof of what it was never given.
        consumed.extend(draw.of(&seen.events).map(|event| event.id));
    }
    TurnEnd { outcome, consumed }
}

fn registration(draw: &mut Draw, seen: &Snapshot, attempt: &AttemptRecord) -> Registration {
    let own: BTreeSet<Key> =
        seen.work(attempt.work).keys.iter().flat_map(|key| [key.clone(), plain(key)]).collect();
    let own = own.into_iter().collect();
    Registration {
        keys: match draw.below(10) {
            0 => Vec::new(),
            1 => vec![key(draw.pick(&KEYS))],
            _other => own,
        },
        types: match draw.below(4) {
            0 => vec![kind("test.happened")],
            1 => vec![kind("test.stray"), kind("test.given")],
            _other => Vec::new(),
        },
        after: watermark(draw, seen),
        timeout: draw.pick(&[None, Some(1), Some(30), Some(30), Some(600)]).map(Duration::from_secs),
    }
}

/// A place in the order of acceptance; now and then one that is not reached yet.
fn watermark(draw: &mut Draw, seen: &Snapshot) -> Sequence {
    let last = seen.events.last().map_or(Sequence::ZERO, |event| event.sequence);
    match draw.below(8) {
        0 => draw.of(&seen.events).map_or(Sequence::ZERO, |event| event.sequence),
        1 if draw.one_in(4) => Sequence::from_number(last.number() + 1_000_000),
        _other => last,
    }
}
