//! Random interleavings: whatever order deliveries, steps, ends, cancellations and lost leases come in, every
//! accepted Event ends in one checkpoint and at most one attempt, and Events of one key keep their order.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::event::Key;
use domain::execution::Execution;
use domain::execution::ExecutionState;
use domain::id::{EventId, Sequence, WorkId};
use domain::outcome::{Outcome, TurnResult};
use domain::route::{ActivePolicy, CheckpointOutcome};
use domain::store::WaitFilter;
use domain::text::SourceName;
use domain::wait::{Registration, WaitState};
use domain::work::WorkState;
use extension::Recovery;
use runtime::Stage;
use serde_json::{Value, json};

use super::world::{Call, World, route, scope};

const SEEDS: u64 = 16;
const MOVES: u64 = 120;
const KEYS: [&str; 4] = ["a", "b", "c", "d"];

/// A small generator: the same seed gives the same run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % bound
    }

    fn key(&mut self) -> &'static str {
        KEYS[usize::try_from(self.below(4)).unwrap()]
    }

    fn result(&mut self) -> TurnResult {
        match self.below(6) {
            0 | 1 => TurnResult::of(Outcome::Failed),
            2 | 3 => TurnResult::of(Outcome::Completed),
            waits => TurnResult::waiting(Registration {
                keys: (waits == 5).then(Vec::new),
                timeout_seconds: Some(1 + self.below(60)),
                ..Registration::default()
            }),
        }
    }

    fn payload(&mut self) -> Value {
        match self.below(12) {
            0 => json!({"keys": [self.key()]}),
            1 => json!({"fail": true}),
            2 => json!({"drop": true}),
            3 | 4 => json!({"slow": true}),
            5 => json!({"once": true}),
            6 => json!({"known": true, "slow": true}),
            7 => json!({"known": true}),
            8 => json!({"slow": true, "panic": true}),
            _ => json!({}),
        }
    }
}

async fn live(world: &World) -> Vec<Execution> {
    world.executions().await.into_iter().filter(|run| !run.state.is_terminal()).collect()
}

async fn one_move(world: &mut World, dice: &mut Dice, events: &mut Vec<EventId>) {
    match dice.below(18) {
        0..=4 => {
            let id = format!("d-{}", events.len());
            let payload = dice.payload();
            events.push(world.say(&id, Some(dice.key()), &payload).await);
        }
        5..=7 => drop(world.stages.route.step().await.unwrap()),
        8 => drop(world.stages.schedule.step().await.unwrap()),
        9 => drop(world.stages.execute.step().await.unwrap()),
        10 => drop(world.stages.complete.step().await.unwrap()),
        11 => world.settle_tasks().await,
        12 => {
            for run in live(world).await.iter().filter(|run| run.state != ExecutionState::Parked).take(2) {
                world.executor.try_end(run.id, dice.result());
            }
        }
        13 => {
            world.clock.advance(Duration::from_secs(dice.below(25)));
            world.runtime.renew().await.unwrap();
        }
        14 => {
            // Nobody renews: leases may end, and recovery takes over from the process itself.
            world.clock.advance(Duration::from_secs(dice.below(40)));
            world.stages.recover.step().await.unwrap();
        }
        15 | 16 => drop(world.stages.wake.step().await.unwrap()),
        _ => {
            if dice.below(6) == 0
                && let Some(run) = live(world).await.first()
            {
                world.runtime.cancel(run.work).await.unwrap();
            }
        }
    }
}

/// Lets everything come to its end.
async fn finish(world: &mut World) {
    for _ in 0..60 {
        world.run().await;
        world.clock.advance(Duration::from_secs(9));
        world.runtime.renew().await.unwrap();
        for run in live(world).await {
            world.executor.try_end(run.id, TurnResult::of(Outcome::Completed));
        }
        world.settle_tasks().await;
    }
    world.run().await;
}

async fn check(seed: u64, world: &World, events: &[EventId]) {
    let mut taken: BTreeMap<EventId, u32> = BTreeMap::new();
    let mut last: BTreeMap<(WorkId, Option<Key>), Sequence> = BTreeMap::new();
    let executions = world.executions().await;
    for run in &executions {
        assert!(run.state.is_terminal(), "seed {seed}: {run:?}");
        let id = run.id;
        let inputs = world
            .runtime
            .store()
            .read("test", move |tx| tx.inputs_of(id, Sequence::ZERO, 500))
            .await
            .unwrap();
        for input in inputs {
            *taken.entry(input.event).or_default() += 1;
            let event = world.runtime.store().read("test", move |tx| tx.event(input.event)).await;
            let key = event.unwrap().unwrap().key;
            let before = last.insert((run.work, key), input.sequence);
            assert!(before.is_none_or(|before| before < input.sequence), "seed {seed}: order within a key");
        }
    }
    for event in events {
        let checkpoint = world.checkpoint(*event).await;
        let checkpoint = checkpoint.unwrap_or_else(|| panic!("seed {seed}: {event} is not routed"));
        let times = taken.get(event).copied().unwrap_or(0);
        if checkpoint.outcome == CheckpointOutcome::Routed {
            let work = world.work(checkpoint.work.unwrap()).await;
            let lost = times == 0 && work.state != WorkState::Cancelled;
            assert!(times <= 1 && !lost, "seed {seed}: {event} taken {times} times");
        } else {
            assert_eq!(times, 0, "seed {seed}: {event}");
        }
    }
    let waits = world.runtime.store().read("test", |tx| tx.waits(&WaitFilter::default(), 500)).await.unwrap();
    for wait in &waits {
        assert!(!wait.state.is_active(), "seed {seed}: {wait:?}");
        let bridges = world.runtime.store().read("test", {
            let id = domain::wait::woken_delivery(wait.id);
            move |tx| tx.event_of_delivery(&SourceName::known("core"), &id)
        });
        let woken = matches!(wait.state, WaitState::Woken { .. });
        assert_eq!(bridges.await.unwrap().is_some(), woken, "seed {seed}: {wait:?}");
    }
    let mut begun: Vec<_> = world.executor.calls();
    begun.retain(|call| matches!(call, Call::Run(..)));
    assert!(begun.len() <= executions.len(), "seed {seed}: nothing was started twice");
}

#[tokio::test]
async fn no_interleaving_loses_or_doubles_anything() {
    for seed in 1..=SEEDS {
        let mut declared = scope(ActivePolicy::Queue, 3);
        declared.routes = vec![route("told", ActivePolicy::Queue, &json!({"looks": seed % 2 == 0}))];
        let mut world = World::with(declared).await;
        world.executor.on_recover(Recovery::Alive);
        world.executor.can_resume(seed % 3 == 0);
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut events = Vec::new();
        for _ in 0..MOVES {
            one_move(&mut world, &mut dice, &mut events).await;
        }
        finish(&mut world).await;
        check(seed, &world, &events).await;
    }
}
