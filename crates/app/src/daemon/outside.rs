//! Extensions that run in processes of their own: those that the configuration in force declares.
//!
//! They come and go with an apply. A start does not wait long for them: what was applied stays in force, and what an
//! extension is to decide waits until it answers.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use domain::budget::{BUDGET_EXCEEDED, BUDGET_WARNING};
use domain::replay::REPLAY_REQUESTED;
use domain::retry::{RETRY_DUE, RETRY_REQUESTED};
use domain::scope::SecretRef;
use domain::succession::WORK_CREATED;
use domain::text::HandlerName;
use domain::wait::{WAIT_TIMEOUT, WAIT_WOKEN};
use extension::{BoxFuture, Handler, Ingress};
use protocol::host::{Declaration, Process, ReadSurroundings, Refused, Standing, Surroundings};
use protocol::wire::Software;
use runtime::HandlerSource;
use tokio::sync::Notify;

use crate::config::Problem;
use crate::config::model::{Extension, Model, or_empty};
use crate::config::outside::owner;
use crate::config::registry::{below, ingress_entry, unknown};
use crate::config::secrets::SecretReader;

/// How long an apply waits for an extension to answer for the first time.
const APPLY_WITHIN: Duration = Duration::from_secs(15);
/// How long a start waits for all of them.
const START_WITHIN: Duration = Duration::from_secs(5);
/// What every process gets of the daemon's environment, besides variables that begin with `LC_`.
const PASSED_ON: [&str; 8] = ["PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "TMPDIR", "SHELL"];
/// The types of Events by which the runtime speaks.
const ANNOUNCEMENTS: [&str; 9] = [
    "core.turn.ended",
    "core.manual.interrupt",
    WORK_CREATED,
    RETRY_DUE,
    RETRY_REQUESTED,
    WAIT_WOKEN,
    WAIT_TIMEOUT,
    BUDGET_WARNING,
    BUDGET_EXCEEDED,
];

/// What processes are started with.
struct Setting {
    home: PathBuf,
    environment: Vec<(String, String)>,
    secrets: Arc<SecretReader>,
}

/// A declaration and its process.
#[derive(Debug, Clone)]
struct Running {
    declared: Extension,
    process: Arc<Process>,
}

type Processes = BTreeMap<String, Running>;

/// The processes of the configuration in force.
pub(crate) struct Outside {
    /// Our own binary.
    stage: PathBuf,
    setting: Mutex<Option<Arc<Setting>>>,
    running: RwLock<Processes>,
    answers: Arc<Notify>,
}

impl std::fmt::Debug for Outside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outside").field("stage", &self.stage).finish_non_exhaustive()
    }
}

/// What ran before [`Outside::declare`], until one of both is kept.
#[must_use]
pub(crate) struct Before(Processes);

impl Outside {
    /// None yet. `stage` is a binary that begins with the extension stage's entry.
    pub(crate) fn new(stage: PathBuf) -> Arc<Self> {
        Arc::new(Self {
            stage,
            setting: Mutex::default(),
            running: RwLock::default(),
            answers: Arc::default(),
        })
    }

    /// Says what processes are started with. It comes before anything is declared.
    pub(crate) fn set(
        &self,
        home: PathBuf,
        environment: &[(OsString, OsString)],
        secrets: Arc<SecretReader>,
    ) {
        let text = |text: &OsString| text.to_str().map(str::to_owned);
        let environment = environment.iter().filter_map(|(name, value)| Some((text(name)?, text(value)?)));
        let setting = Setting { home, environment: environment.collect(), secrets };
        *self.setting.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(setting));
    }

    /// Runs what is declared, and nothing else from now on. What is declared as before goes on.
    pub(crate) fn declare(&self, declared: &[Extension]) -> Before {
        let mut running = self.running.write().unwrap_or_else(PoisonError::into_inner);
        let mut next = Processes::new();
        for extension in declared {
            let kept = running.get(&extension.name).filter(|known| known.declared == *extension).cloned();
            let one = kept.unwrap_or_else(|| Running {
                declared: extension.clone(),
                process: Process::start(self.declaration(extension)),
            });
            next.insert(extension.name.clone(), one);
        }
        Before(std::mem::replace(&mut *running, next))
    }

    /// Keeps what was declared last, and ends what ran only before.
    pub(crate) async fn keep(&self, before: Before) {
        let now = self.processes();
        end(before.0.into_values().filter(|old| !is_among(old, &now))).await;
    }

    /// Goes back to what ran before.
    pub(crate) async fn take_back(&self, before: Before) {
        let tried = self.replace(before.0);
        let now = self.processes();
        end(tried.into_values().filter(|new| !is_among(new, &now))).await;
    }

    /// Ends all of them.
    pub(crate) async fn stop(&self) {
        let all = self.replace(Processes::new());
        end(all.into_values()).await;
    }

    fn replace(&self, next: Processes) -> Processes {
        std::mem::replace(&mut *self.running.write().unwrap_or_else(PoisonError::into_inner), next)
    }

    /// Each with how it is.
    pub(crate) fn standings(&self) -> Vec<(String, Standing)> {
        self.processes().iter().map(|one| (one.declared.name.clone(), one.process.standing())).collect()
    }

    /// Waits until one of them answers again.
    pub(crate) async fn answer(&self) {
        self.answers.notified().await;
    }

    /// What stands in for the type of entries, when one of them offers it. An address does not change when an
    /// extension of ours moves into a process of its own, so `ours` says how it begins.
    pub(crate) fn ingress(&self, entry_type: &str, ours: Option<&str>) -> Option<Arc<dyn Ingress>> {
        Some(self.process(entry_type)?.ingress(entry_type, ours.unwrap_or(entry_type)))
    }

    /// Asks the extensions about their parts of a configuration; everything that they refuse.
    pub(crate) async fn ask(&self, model: &Model) -> Vec<Problem> {
        let mut problems = Vec::new();
        for (index, extension) in model.extensions.iter().enumerate() {
            let Some(process) = self.process(&extension.name) else { continue };
            process.settle(APPLY_WITHIN).await;
            let reason = match process.standing() {
                Standing::Ready { .. } => continue,
                Standing::Starting => "it takes too long to start".to_owned(),
                Standing::Down { reason, .. } => reason,
                Standing::Stopped => "it was stopped".to_owned(),
            };
            let message =
                format!("the extension does not answer: {reason}; its standard error is in the log");
            problems.push(Problem::new(format!("extensions[{index}]"), "extension_unavailable", message));
        }
        if !problems.is_empty() {
            return problems;
        }
        for (index, scope) in model.scopes.iter().enumerate() {
            for (at, route) in scope.routes.iter().enumerate().filter(|(_at, route)| !route.disabled) {
                let Some(name) = &route.handler else { continue };
                let Some(process) = self.asked(model, name) else { continue };
                let asked = process.check_route(name, &or_empty(route.config.as_ref())).await;
                let path = format!("scopes[{index}].routes[{at}]");
                problems.extend(refused(asked, &path, ("handler", "unknown_handler", "handler"), name));
            }
            for (at, entry) in scope.extensions.iter().enumerate().filter(|(_at, entry)| !entry.disabled) {
                let Some(name) = &entry.kind else { continue };
                let Some(process) = self.asked(model, name) else { continue };
                let Some(asked) = ingress_entry(scope, entry) else { continue };
                let asked = process.check_entry(name, &asked).await;
                let path = format!("scopes[{index}].extensions[{at}]");
                problems.extend(refused(asked, &path, ("type", "unknown_entry_type", "type of entry"), name));
            }
        }
        problems
    }

    /// Asks at a start, so that what stands in for the extensions knows what they say. What they refuse now was
    /// right when it was applied.
    pub(crate) async fn ask_at_start(&self, model: &Model) {
        if model.extensions.is_empty() {
            return;
        }
        let asked = tokio::time::timeout(START_WITHIN, self.ask(model)).await;
        for problem in asked.unwrap_or_default() {
            tracing::error!(%problem, "an extension does not take what was applied");
        }
    }

    fn asked(&self, model: &Model, name: &str) -> Option<Arc<Process>> {
        self.process(&owner(&model.extensions, name)?.name)
    }

    /// The process that whatever has this name belongs to.
    fn process(&self, name: &str) -> Option<Arc<Process>> {
        let extension = name.split('.').next().unwrap_or(name);
        let running = self.running.read().unwrap_or_else(PoisonError::into_inner);
        running.get(extension).map(|one| Arc::clone(&one.process))
    }

    fn processes(&self) -> Vec<Running> {
        self.running.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    fn declaration(&self, extension: &Extension) -> Declaration {
        let setting = self.setting.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let setting = setting.expect("a daemon says what processes are started with before it declares any");
        let argv = if extension.command.is_empty() {
            let stage = self.stage.to_string_lossy().into_owned();
            vec![stage, "extension-run".to_owned(), extension.name.clone()]
        } else {
            extension.command.clone()
        };
        let answers = Arc::clone(&self.answers);
        Declaration {
            name: extension.name.clone(),
            argv,
            dir: setting.home.clone(),
            stage: self.stage.clone(),
            surroundings: surroundings(setting, extension.clone()),
            announcements: ANNOUNCEMENTS.iter().chain([&REPLAY_REQUESTED]).map(ToString::to_string).collect(),
            runtime: Software {
                name: "open-conduit".to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
            },
            on_ready: Arc::new(move || answers.notify_one()),
        }
    }
}

/// Reads the environment of an extension's process: what is passed on, then its secrets.
fn surroundings(setting: Arc<Setting>, extension: Extension) -> ReadSurroundings {
    Arc::new(move || {
        let (setting, extension) = (Arc::clone(&setting), extension.clone());
        Box::pin(async move { read(&setting, &extension).await }) as BoxFuture<'static, _>
    })
}

async fn read(setting: &Setting, extension: &Extension) -> Result<Surroundings, String> {
    let passed = setting.environment.iter().filter(|(name, _value)| {
        PASSED_ON.contains(&name.as_str()) || name.starts_with("LC_") || extension.pass_env.contains(name)
    });
    let mut environment: BTreeMap<String, String> = passed.cloned().collect();
    let mut secrets = Vec::new();
    for (variable, reference) in &extension.secrets {
        let read = setting.secrets.read(variable, &SecretRef(reference.clone())).await;
        let value = read.map_err(|error| error.to_string())?.expose().to_owned();
        secrets.push(value.clone());
        environment.insert(variable.clone(), value);
    }
    Ok(Surroundings { environment: environment.into_iter().collect(), secrets })
}

fn is_among(one: &Running, others: &[Running]) -> bool {
    others.iter().any(|other| Arc::ptr_eq(&other.process, &one.process))
}

async fn end(processes: impl Iterator<Item = Running>) {
    let mut ending = tokio::task::JoinSet::new();
    for one in processes {
        ending.spawn(async move { one.process.stop().await });
    }
    ending.join_all().await;
}

/// What an extension said about a part, as problems of the file.
fn refused(
    asked: Result<(), Refused>,
    path: &str,
    (key, code, what): (&str, &'static str, &str),
    name: &str,
) -> Vec<Problem> {
    match asked {
        Ok(()) => Vec::new(),
        Err(Refused::Problems(found)) => below(&format!("{path}.config"), found),
        Err(Refused::NotOffered { offered }) => {
            vec![unknown(format!("{path}.{key}"), code, what, name, &offered)]
        }
        Err(Refused::Unavailable { reason }) => {
            let message =
                format!("the extension does not answer: {reason}; its standard error is in the log");
            vec![Problem::new(path, "extension_unavailable", message)]
        }
    }
}

impl HandlerSource for Outside {
    fn handler(&self, name: &HandlerName) -> Option<Arc<dyn Handler>> {
        Some(self.process(name.as_str())?.handler(name.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Spec: EXT-15
    #[tokio::test]
    async fn a_process_gets_what_is_passed_on_and_its_secrets() {
        let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let environment =
            [("PATH", "/bin"), ("LC_ALL", "C"), ("MINE", "1"), ("TOKEN", "other"), ("KEY", "s3cret")];
        let environment: Vec<_> = environment.map(|(name, value)| variable(name, value)).to_vec();
        let os = environment.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let secrets = SecretReader::new(PathBuf::from("/nonexistent"), os);
        let setting = Setting { home: PathBuf::from("/nonexistent"), environment, secrets };
        let extension = Extension {
            name: "mine".to_owned(),
            pass_env: vec!["MINE".to_owned()],
            secrets: BTreeMap::from([("TOKEN".to_owned(), "env:KEY".to_owned())]),
            ..Extension::default()
        };
        let read_now = read(&setting, &extension).await.unwrap();
        let expected = [("LC_ALL", "C"), ("MINE", "1"), ("PATH", "/bin"), ("TOKEN", "s3cret")];
        assert_eq!(read_now.environment, expected.map(|(name, value)| variable(name, value)));
        assert_eq!(read_now.secrets, ["s3cret"]);
        let missing = BTreeMap::from([("TOKEN".to_owned(), "env:NONE".to_owned())]);
        let extension = Extension { secrets: missing, ..extension };
        let reason = read(&setting, &extension).await.unwrap_err();
        assert!(reason.contains("`TOKEN`"), "{reason}");
    }
}
