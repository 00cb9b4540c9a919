//! Workspaces: acquired before a run, kept while it may still run, given back by its end, across crashes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::execution::{Execution, ExecutionState};
use domain::id::{ExecutionId, WorkId};
use domain::lease::LEASE;
use domain::outcome::{Outcome, TurnResult};
use domain::route::ActivePolicy;
use domain::scope::EffectiveScope;
use domain::time::Timestamp;
use extension::{
    AcquireError, BoxFuture, ConfigProblem, KeptState, KeptWorkspace, Recovery, WorkspaceEnded,
    WorkspaceFacts, WorkspaceProvider, WorkspaceRequest,
};
use runtime::{Options, Progress, Runtime, SecretSource, Stage};
use serde_json::{Value, json};
use store::Location;

use super::tokens::CountedTokens;
use super::world::{Call, HandClock, Texts, World, open, scope};

/// What the double was asked, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Asked {
    Acquire(ExecutionId),
    Release(ExecutionId, bool, bool),
    Remove(ExecutionId),
}

#[derive(Debug, Default)]
struct State {
    asked: Vec<Asked>,
    kept: BTreeMap<ExecutionId, (WorkId, KeptState)>,
    /// How the next acquisitions are refused.
    refusals: Vec<AcquireError>,
    /// Whether every acquisition waits for whoever has one.
    exclusive: bool,
    /// What a run leaves when it fails.
    until: Option<Timestamp>,
}

/// A provider that does what it is told.
#[derive(Debug, Default)]
struct Places(Mutex<State>);

impl Places {
    fn asked(&self) -> Vec<Asked> {
        self.0.lock().unwrap().asked.clone()
    }

    fn kept(&self) -> Vec<ExecutionId> {
        self.0.lock().unwrap().kept.keys().copied().collect()
    }
}

impl WorkspaceProvider for Places {
    fn name(&self) -> &'static str {
        "places"
    }

    fn validate(&self, _config: &Value) -> Result<String, Vec<ConfigProblem>> {
        Ok("in a place".to_owned())
    }

    fn acquire(&self, request: WorkspaceRequest) -> BoxFuture<'_, Result<WorkspaceFacts, AcquireError>> {
        let mut state = self.0.lock().unwrap();
        state.asked.push(Asked::Acquire(request.execution));
        let other = state.kept.keys().copied().find(|other| *other != request.execution);
        let answer = match (state.refusals.pop(), other) {
            (Some(refusal), _) => Err(refusal),
            (None, Some(by)) if state.exclusive => Err(AcquireError::Busy { by }),
            (None, _) => {
                state.kept.insert(request.execution, (request.work, KeptState::InUse));
                Ok(facts(request.execution))
            }
        };
        Box::pin(async move { answer })
    }

    fn release(
        &self,
        execution: ExecutionId,
        ended: WorkspaceEnded,
    ) -> BoxFuture<'_, Result<Option<String>, String>> {
        let mut state = self.0.lock().unwrap();
        state.asked.push(Asked::Release(execution, ended.well, ended.work_ended));
        match state.until {
            Some(at) if !ended.well => {
                let kept = state.kept.get_mut(&execution).unwrap();
                kept.1 = KeptState::Until(at);
            }
            Some(_) | None => drop(state.kept.remove(&execution)),
        }
        Box::pin(async { Ok(None) })
    }

    fn kept(&self) -> BoxFuture<'_, Result<Vec<KeptWorkspace>, String>> {
        let state = self.0.lock().unwrap();
        let kept = state.kept.iter().map(|(execution, (work, state))| KeptWorkspace {
            execution: *execution,
            work: *work,
            state: *state,
        });
        let kept = kept.collect();
        Box::pin(async move { Ok(kept) })
    }

    fn remove(
        &self,
        execution: ExecutionId,
        _now: Timestamp,
    ) -> BoxFuture<'_, Result<Option<String>, String>> {
        let mut state = self.0.lock().unwrap();
        state.asked.push(Asked::Remove(execution));
        state.kept.remove(&execution);
        Box::pin(async { Ok(None) })
    }
}

fn facts(execution: ExecutionId) -> WorkspaceFacts {
    WorkspaceFacts {
        kind: "places".to_owned(),
        reference: None,
        dir: format!("/places/{execution}"),
        summary: "a place".to_owned(),
        data: Value::Null,
    }
}

/// A scope whose runs need a workspace.
fn placed() -> EffectiveScope {
    let mut scope = scope(ActivePolicy::Queue, 16);
    for binding in scope.bindings.values_mut() {
        binding.resource = Some(json!({ "provider": "places" }));
    }
    scope
}

async fn world() -> (World, Arc<Places>) {
    let (places, clock) = (Arc::new(Places::default()), HandClock::new());
    let store = open(&Location::Memory, &clock).await;
    let world = World::over(store, clock, Arc::default(), Texts::default()).await;
    let mut world = over(&world, &places).await;
    world.apply(placed()).await;
    (world, places)
}

/// A runtime with nothing in its memory over what another one left.
async fn over(world: &World, places: &Arc<Places>) -> World {
    let (store, known) = (world.runtime.store().clone(), world.texts());
    let (clock, executor) = (Arc::clone(&world.clock), Arc::clone(&world.executor));
    let mut next = World::over(store.clone(), clock, executor, world.texts()).await;
    let options = Options {
        read_scopes: Arc::new(move |text| {
            known.lock().unwrap().get(text).cloned().ok_or_else(|| "unknown text".to_owned())
        }),
        secrets: Arc::clone(&next.secrets) as Arc<dyn SecretSource>,
        tokens: Arc::new(CountedTokens::default()),
        look_again: None,
    };
    let provider = Arc::clone(places) as Arc<dyn WorkspaceProvider>;
    let registry = next.runtime.registry().clone().with_workspaces([provider]);
    (next.runtime, next.stages) = Runtime::new(store, registry, options);
    next.runtime.prepare().await.unwrap();
    next
}

async fn result(world: &World, run: ExecutionId) -> TurnResult {
    world.runtime.store().read("test", move |tx| tx.turn_result(run)).await.unwrap().unwrap()
}

/// Steps the stage as its loop does: while it advances. Answers when it wants to look again.
async fn give_back(world: &mut World) -> Option<Timestamp> {
    loop {
        if let Progress::Idle { due_at } = world.stages.workspace.step().await.unwrap() {
            return due_at;
        }
    }
}

async fn run_one(world: &mut World, id: &str) -> Execution {
    world.deliver(id, id).await;
    world.run().await;
    world.executions().await.last().unwrap().clone()
}

#[tokio::test]
async fn a_run_has_its_workspace_before_it_starts_and_history_keeps_it() {
    let (mut world, places) = world().await;
    let run = run_one(&mut world, "one").await;
    assert_eq!((run.state, places.asked()), (ExecutionState::Running, vec![Asked::Acquire(run.id)]));
    assert_eq!(run.workspace.as_deref(), Some(&facts(run.id)));
    assert_eq!(world.executor.workspace(run.id).as_deref(), Some(&facts(run.id)));
    assert_eq!(give_back(&mut world).await, None);
    assert_eq!(places.kept(), [run.id], "it runs");
    world.end(run.id, Outcome::Completed).await;
    assert_eq!(give_back(&mut world).await, None);
    assert_eq!(places.asked().last(), Some(&Asked::Release(run.id, true, false)));
    assert_eq!(world.execution(run.id).await.workspace.as_deref(), Some(&facts(run.id)));
}

#[tokio::test]
async fn a_run_without_a_resource_asks_nobody() {
    let (mut world, places) = world().await;
    world.apply(scope(ActivePolicy::Queue, 16)).await;
    let run = run_one(&mut world, "one").await;
    world.end(run.id, Outcome::Completed).await;
    give_back(&mut world).await;
    assert_eq!((places.asked(), run.workspace), (vec![], None));
}

#[tokio::test]
async fn a_workspace_that_cannot_be_made_fails_the_run_and_another_try_is_worth_it() {
    let (mut world, places) = world().await;
    let reason = || "no network".to_owned();
    places.0.lock().unwrap().refusals =
        vec![AcquireError::Failed { reason: reason() }, AcquireError::Unavailable { reason: reason() }];
    for (id, code, hint) in [("one", "workspace_unavailable", Some(60)), ("two", "workspace_failed", None)] {
        let run = run_one(&mut world, id).await;
        assert_eq!(run.state, ExecutionState::Failed);
        let result = result(&world, run.id).await;
        assert_eq!((result.code.as_deref(), result.retry_after_seconds), (Some(code), hint));
    }
    assert_eq!(world.executor.runs(), 0);
}

#[tokio::test]
async fn a_cancelled_run_keeps_its_workspace_until_its_tree_is_gone() {
    let (mut world, places) = world().await;
    places.0.lock().unwrap().exclusive = true;
    let first = run_one(&mut world, "one").await;
    world.executor.never_stop(first.id);
    world.runtime.cancel(first.work).await.unwrap();
    assert!(world.runtime.stop_unstopped().await.unwrap());
    assert_eq!(world.execution(first.id).await.state, ExecutionState::Cancelled);
    let second = run_one(&mut world, "two").await;
    give_back(&mut world).await;
    assert_eq!((second.state, places.kept()), (ExecutionState::Launching, vec![first.id]));
    assert_eq!(world.executor.runs(), 1, "the second waits");

    world.executor.stops_again(first.id);
    assert!(!world.runtime.stop_unstopped().await.unwrap());
    give_back(&mut world).await;
    world.run().await;
    assert_eq!(places.asked()[2..], [Asked::Release(first.id, false, true), Asked::Acquire(second.id)]);
    assert_eq!(world.execution(second.id).await.state, ExecutionState::Running);
}

#[tokio::test]
async fn a_run_whose_executor_cannot_say_that_it_stopped_keeps_its_workspace() {
    let (mut world, places) = world().await;
    let run = run_one(&mut world, "one").await;
    world.end(run.id, Outcome::Failed).await;
    world.executor.never_stop(run.id);
    assert!(give_back(&mut world).await.is_some(), "it is looked at again");
    assert_eq!(places.kept(), [run.id]);
    world.executor.stops_again(run.id);
    give_back(&mut world).await;
    assert_eq!(places.kept(), []);
}

#[tokio::test]
async fn a_run_that_is_adopted_keeps_its_workspace_and_one_launched_again_gets_it_again() {
    for (found, calls) in [(Recovery::Alive, 1), (Recovery::NothingStarted, 2)] {
        let (mut world, places) = world().await;
        let run = run_one(&mut world, "one").await;
        world.executor.on_recover(found);
        // The daemon that had it is gone, and so is what it knew.
        let mut next = over(&world, &places).await;
        next.clock.advance(LEASE);
        give_back(&mut next).await;
        assert_eq!(places.kept(), [run.id], "it has not ended");
        next.run().await;
        let acquired = places.asked().into_iter().filter(|asked| *asked == Asked::Acquire(run.id)).count();
        assert_eq!(acquired, calls);
        let now = next.execution(run.id).await;
        assert_eq!(now.workspace.as_deref(), Some(&facts(run.id)));
        next.end(run.id, Outcome::Completed).await;
        give_back(&mut next).await;
        assert_eq!(places.kept(), []);
    }
}

#[tokio::test]
async fn what_ended_while_no_daemon_looked_is_given_back_at_the_start() {
    let (mut world, places) = world().await;
    let run = run_one(&mut world, "one").await;
    world.end(run.id, Outcome::Completed).await;
    // Between the commit and the giving back.
    let mut next = over(&world, &places).await;
    give_back(&mut next).await;
    assert_eq!(places.asked().last(), Some(&Asked::Release(run.id, true, false)));
}

#[tokio::test]
async fn what_is_kept_after_a_failure_is_removed_when_its_time_is_over() {
    let (mut world, places) = world().await;
    let until = world.runtime.store().now().after(Duration::from_hours(24));
    places.0.lock().unwrap().until = Some(until);
    let run = run_one(&mut world, "one").await;
    world.end(run.id, Outcome::Failed).await;
    assert_eq!(give_back(&mut world).await, Some(until), "the stage sleeps until then");
    world.clock.advance(Duration::from_hours(25));
    give_back(&mut world).await;
    assert_eq!((places.asked().last(), places.kept()), (Some(&Asked::Remove(run.id)), vec![]));
}

#[tokio::test]
async fn what_waits_for_the_next_turn_goes_when_its_work_is_cancelled() {
    let (mut world, places) = world().await;
    let run = run_one(&mut world, "one").await;
    world.end(run.id, Outcome::Handoff).await;
    give_back(&mut world).await;
    places.0.lock().unwrap().kept.insert(run.id, (run.work, KeptState::ForWork));
    give_back(&mut world).await;
    assert_eq!(places.kept(), [run.id], "its Work goes on");
    world.runtime.cancel(run.work).await.unwrap();
    give_back(&mut world).await;
    assert_eq!(places.asked().last(), Some(&Asked::Release(run.id, true, true)));
}

#[tokio::test]
async fn a_stop_is_asked_for_before_a_workspace_is_given_back() {
    let (mut world, places) = world().await;
    let run = run_one(&mut world, "one").await;
    world.end(run.id, Outcome::Completed).await;
    assert!(!world.executor.calls().contains(&Call::Stop(run.id)));
    give_back(&mut world).await;
    assert!(world.executor.calls().contains(&Call::Stop(run.id)) && places.kept().is_empty());
}
