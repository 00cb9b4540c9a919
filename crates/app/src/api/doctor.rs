//! How the daemon is: its state at a glance, and a look for what is wrong.

use std::sync::Arc;

use domain::store::{Snapshot, StoreError, WaitFilter, WorkFilter};
use domain::timer::{Timer, TimerKind};
use domain::wait::Wait;
use domain::work::{Queue, Work, WorkState};
use extension::Secrets as _;

mod extensions;
mod machine;
mod queues;
mod states;

use super::failure::{Chain, Failure};
use super::server::{Answer, Asked, json};
use super::starts;
use super::wire::{
    BlockedBody, CheckBody, DoctorBody, LaneBody, PauseBody, StartBody, StatusBody, WebhookBody,
};
use crate::config::Listeners;
use crate::daemon::Daemon;
use crate::view::time;

/// Rows counted for the state at a glance.
const COUNTED_MAX: u32 = 1000;
/// Rows looked at by one check.
const LOOKED_AT_MAX: u32 = 500;
/// Works that a check names.
const NAMED_MAX: usize = 5;

/// The state of the daemon.
pub(crate) async fn status(daemon: &Arc<Daemon>) -> Answer {
    Ok(json(&glance(daemon).await?))
}

/// The state of the daemon at a glance.
///
/// # Errors
/// What reading the store answers.
pub(crate) async fn glance(daemon: &Daemon) -> Result<StatusBody, Failure> {
    let rows = daemon.store().read("status", rows).await.map_err(Failure::from)?;
    let addresses = daemon.addresses();
    let file = daemon.home().config().unwrap_or_else(|error| {
        tracing::warn!(error = %Chain(&error), "the configuration file cannot be read");
        None
    });
    let text = |address: std::net::SocketAddr| address.to_string();
    Ok(StatusBody {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: daemon.started_at().to_string(),
        now: daemon.store().now().to_string(),
        home: daemon.home().root().display().to_string(),
        generation: daemon.applied().number,
        config_edited: daemon.is_edited(file.as_ref()),
        api_address: addresses.api.map(text).unwrap_or_default(),
        webhook_address: addresses.webhooks.map(text),
        unrouted: rows.unrouted,
        runnable: rows.runnable,
        running: daemon.runtime().held().count(),
        blocked: rows.blocked,
        lanes: rows.lanes,
        paused: rows.paused,
        last_downtime: rows.last_downtime,
        zone_data: schedule::zone::data_version().to_owned(),
        store: facts(daemon).into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
    })
}

struct Rows {
    unrouted: u32,
    runnable: u32,
    blocked: Vec<BlockedBody>,
    lanes: Vec<LaneBody>,
    paused: Vec<PauseBody>,
    last_downtime: Option<StartBody>,
}

fn rows(tx: &mut dyn Snapshot) -> Result<Rows, StoreError> {
    let blockers = tx.blockers(COUNTED_MAX)?;
    Ok(Rows {
        unrouted: tx.count_unrouted(COUNTED_MAX)?,
        runnable: tx.count_runnable(COUNTED_MAX)?,
        blocked: blockers
            .into_iter()
            .map(|(blocker, works)| BlockedBody { reason: blocker.to_string(), works })
            .collect(),
        lanes: tx.lane_blocks(LOOKED_AT_MAX)?.iter().map(LaneBody::from).collect(),
        paused: tx.pauses()?.iter().map(PauseBody::from).collect(),
        last_downtime: starts::newest(tx)?,
    })
}

fn facts(daemon: &Daemon) -> Vec<(&'static str, String)> {
    daemon.store().backend().facts()
}

/// What a check found.
struct Checks(Vec<CheckBody>);

impl Checks {
    fn add(&mut self, name: &str, level: &str, sentence: impl Into<String>) {
        let (name, level) = (name.to_owned(), level.to_owned());
        self.0.push(CheckBody { name, level, sentence: sentence.into() });
    }
}

/// Looks for what is wrong.
pub(crate) async fn doctor(daemon: &Arc<Daemon>, asked: &Asked) -> Answer {
    let deep: bool = asked.query.parsed("check_secrets")?.unwrap_or(false);
    Ok(json(&examine(daemon, if deep { Secrets::Read } else { Secrets::Leave }).await))
}

/// Whether a look for what is wrong reads every secret, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Secrets {
    /// It reads each, and shows none.
    Read,
    /// It doesn't.
    Leave,
}

/// What is wrong, and what was measured.
pub(crate) async fn examine(daemon: &Arc<Daemon>, secrets: Secrets) -> DoctorBody {
    let mut checks = Checks(Vec::new());
    store(daemon, &mut checks);
    let mut figures = machine::measure(daemon, &mut checks);
    loops(daemon, &mut checks);
    config(daemon, &mut checks);
    extensions::check(daemon, &mut checks);
    queues::check(daemon, &mut figures, &mut checks).await;
    match daemon.store().read("doctor", look).await {
        Ok(found) => found.report(&mut checks),
        Err(error) => {
            tracing::warn!(error = %Chain(&error), "a check could not read the store");
            checks.add("store", "error", format!("the store cannot be read: {error}"));
        }
    }
    if secrets == Secrets::Read {
        read_secrets(daemon, &mut checks).await;
    }
    let ok = checks.0.iter().all(|check| check.level != "error");
    DoctorBody { ok, checks: checks.0, webhooks: webhooks(daemon), figures }
}

fn store(daemon: &Daemon, checks: &mut Checks) {
    let facts = facts(daemon);
    let fact =
        |name: &str| facts.iter().find(|(known, _value)| *known == name).map(|(_name, value)| value.as_str());
    let engine = fact("engine").unwrap_or("the store");
    let version = fact("version").unwrap_or_default();
    checks.add("store", "ok", format!("{engine} {version} answers").trim_end().replace("  ", " "));
    match fact("clock_stepped_back_seconds") {
        Some(step) => {
            let sentence = format!(
                "the clock stood {step} s behind the newest record when the daemon started; set it right"
            );
            checks.add("clock", "warning", sentence);
        }
        None => checks.add("clock", "ok", "the clock has not stepped back over a restart"),
    }
}

/// Where several daemons share the database, whether this one runs the loops.
fn loops(daemon: &Daemon, checks: &mut Checks) {
    if daemon.store().exclusive() {
        return;
    }
    let sentence = if daemon.runtime().owns_loops() {
        "this daemon routes and schedules; the others on the database accept and wait for their turn"
    } else {
        "another daemon on the database routes and schedules; this one accepts, and takes over if that one ends"
    };
    checks.add("loops", "note", sentence);
}

fn config(daemon: &Daemon, checks: &mut Checks) {
    let applied = daemon.applied();
    if applied.number == 0 {
        let sentence = "no configuration is in force, so nothing is accepted; write conduit.toml and run \
                        `open-conduit config apply`";
        checks.add("config", "error", sentence);
        return;
    }
    match daemon.home().config() {
        Err(error) => checks.add("config", "warning", error.to_string()),
        Ok(None) => checks.add(
            "config",
            "note",
            "the home has no configuration file; the last applied one is in force",
        ),
        Ok(file) if daemon.is_edited(file.as_ref()) => {
            let sentence = format!(
                "the file differs from generation {}; `open-conduit config plan` shows how, `config apply` puts it in force",
                applied.number
            );
            checks.add("config", "note", sentence);
        }
        Ok(Some(_)) => checks.add("config", "ok", format!("generation {} is in force", applied.number)),
    }
}

/// What the rows say.
struct Look {
    paused: Vec<PauseBody>,
    lanes: Vec<LaneBody>,
    unstopped: Vec<String>,
    stranded: Vec<String>,
    movers: Vec<String>,
    looked_at: usize,
    states: states::States,
}

fn look(tx: &mut dyn Snapshot) -> Result<Look, StoreError> {
    let lanes = tx.lane_blocks(LOOKED_AT_MAX)?.iter().map(LaneBody::from).collect();
    let unstopped =
        tx.unstopped(None, LOOKED_AT_MAX)?.iter().map(|execution| execution.id.to_string()).collect();
    let now = tx.now();
    let stranded = tx.stranded(now, LOOKED_AT_MAX)?;
    let stranded = stranded.iter().map(|run| format!("{} on {}", run.execution, run.host)).collect();
    let (mut movers, mut looked_at, mut states) = (Vec::new(), 0, states::States::default());
    for state in ["ready", "running"] {
        let filter = WorkFilter { state: Some(state.to_owned()), ..WorkFilter::default() };
        for work in tx.works(&filter, LOOKED_AT_MAX)? {
            looked_at += 1;
            states.add(&work, work.queued_at);
            if let Some(reason) = stands_still(tx, &work)? {
                movers.push(format!("{}: {reason}", work.id));
            }
        }
    }
    let paused = tx.pauses()?.iter().map(PauseBody::from).collect();
    // By their Waits, for there is an index of those that go on.
    let active = WaitFilter { active: true, ..WaitFilter::default() };
    for wait in tx.waits(&active, LOOKED_AT_MAX)? {
        looked_at += 1;
        let Some(work) = tx.work(wait.work)? else { continue };
        states.add(&work, wait.registered_at);
        let reason = match work.state.waits_for() {
            Some(waits_for) if waits_for == wait.id => waits_for_nothing(tx, &wait, &work)?,
            Some(_) | None => Some("it has a Wait and does not wait"),
        };
        movers.extend(reason.map(|reason| format!("{}: {reason}", work.id)));
    }
    Ok(Look { paused, lanes, unstopped, stranded, movers, looked_at, states })
}

/// Why nothing will move a Work. None when something will, or it has ended.
fn stands_still(tx: &mut dyn Snapshot, work: &Work) -> Result<Option<&'static str>, StoreError> {
    let pending = !tx.pending_inputs(work.id, 1)?.is_empty();
    Ok(match (work.state, &work.queue) {
        (WorkState::Ready, Queue::Idle) => pending.then_some("it has input and stands in no queue"),
        (WorkState::Ready, Queue::Runnable | Queue::Blocked(_)) => {
            (!pending).then_some("it stands in a queue and has no input")
        }
        (WorkState::Running { execution }, _) => match tx.execution(execution)? {
            None => Some("its run is gone"),
            Some(run) if run.state.is_terminal() => Some("its run has ended"),
            Some(run) => {
                (run.lease.is_none() && run.outcome.is_none()).then_some("nobody speaks for its run")
            }
        },
        // Those are looked at by their Waits.
        (WorkState::Waiting { .. } | WorkState::Completed | WorkState::Failed | WorkState::Cancelled, _) => {
            None
        }
    })
}

/// Why nothing will end the Wait of a Work.
fn waits_for_nothing(
    tx: &mut dyn Snapshot,
    wait: &Wait,
    work: &Work,
) -> Result<Option<&'static str>, StoreError> {
    // A key brings it on, and a hold is an operator's.
    if !wait.keys.is_empty() || work.hold.is_some() {
        return Ok(None);
    }
    let timers = tx.timers_of(work.id, LOOKED_AT_MAX)?;
    let its = |timer: &Timer| timer.kind == TimerKind::Wait { wait: wait.id };
    Ok((!timers.iter().any(its)).then_some("its Wait has no key and no timer"))
}

impl Look {
    fn report(self, checks: &mut Checks) {
        if self.lanes.is_empty() {
            checks.add("lanes", "ok", "no lane stands still");
        }
        for lane in &self.lanes {
            let sentence = format!(
                "{} cannot be routed: {} ({}); it is tried again at {}",
                lane.event,
                lane.reason,
                lane.code,
                time::absolute(&lane.next_try_at)
            );
            checks.add("lanes", "warning", sentence);
        }
        for pause in &self.paused {
            let sentence = format!(
                "scope `{0}` is paused since {1} and starts nothing; `open-conduit scope resume {0}` lets it start again",
                pause.scope,
                time::absolute(&pause.since)
            );
            checks.add("pauses", "note", sentence);
        }
        match self.unstopped.as_slice() {
            [] => checks.add("stopped", "ok", "everything that ended has stopped"),
            runs => {
                let named = runs.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
                let sentence = format!("{} ended runs may still run: {named}", runs.len());
                checks.add("stopped", "warning", sentence);
            }
        }
        if !self.stranded.is_empty() {
            let named = self.stranded.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
            let sentence = format!(
                "{} runs are held, as their hosts are silent and only those can tell whether they still run: \
                 {named}; start the daemon there again, or cancel their Work once nothing of it runs",
                self.stranded.len()
            );
            checks.add("hosts", "warning", sentence);
        }
        self.states.report(checks);
        match self.movers.as_slice() {
            [] => {
                let sentence = match self.looked_at {
                    0 => "no Work is open".to_owned(),
                    1 => "the one open Work has something that will move it".to_owned(),
                    number => {
                        format!("each of the {number} newest open Works has something that will move it")
                    }
                };
                checks.add("movers", "ok", sentence);
            }
            stuck => {
                let named = stuck.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join("; ");
                checks.add(
                    "movers",
                    "error",
                    format!("{} Works have nothing that will move them: {named}", stuck.len()),
                );
            }
        }
    }
}

/// Resolves every secret that an entry may read. No value leaves here.
async fn read_secrets(daemon: &Daemon, checks: &mut Checks) {
    let active = daemon.runtime().generations().active();
    let mut read = 0_usize;
    let mut failed = false;
    for scope in active.scopes.values() {
        let scope = &scope.scope;
        let entries = scope.extensions.values().filter(|entry| entry.declared_in == scope.name);
        let bindings = scope.bindings.values().filter(|binding| binding.declared_in == scope.name);
        let selected = entries.map(|entry| &entry.secrets).chain(bindings.map(|binding| &binding.secrets));
        for references in selected {
            let view = daemon.secrets().select(references.clone());
            for name in references.keys() {
                read += 1;
                if let Err(error) = view.resolve(name).await {
                    failed = true;
                    checks.add("secrets", "error", format!("scope `{}`: {error}", scope.name));
                }
            }
        }
    }
    if !failed {
        checks.add("secrets", "ok", format!("each of the {read} secrets in use can be read"));
    }
}

/// The webhooks to create at their senders: under the first public host, else under the listener's address.
fn webhooks(daemon: &Daemon) -> Vec<WebhookBody> {
    let Some(address) = daemon.addresses().webhooks else { return Vec::new() };
    let listeners = daemon.applied().model.as_ref().and_then(|model| Listeners::of(&model.daemon).ok());
    let public = listeners.and_then(|listeners| listeners.public_hosts.first().cloned());
    let base = public.map_or_else(|| format!("http://{address}"), |host| format!("https://{host}"));
    let table = daemon.ingress();
    let body = |path: &String, receiver: &crate::listener::ingress::Receiver| WebhookBody {
        scope: receiver.scope.to_string(),
        entry: receiver.entry.to_string(),
        takes: receiver.prepared.describe(),
        url: format!("{base}{path}"),
    };
    table.iter().map(|(path, receiver)| body(path, receiver)).collect()
}
