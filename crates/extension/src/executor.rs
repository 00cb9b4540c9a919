//! Executors: what runs a turn.
//!
//! The runtime calls an executor outside every transaction, from a durable claim. What comes back is applied
//! only while the claim's epoch is in force, so a call may be late, doubled or answered by a process that was
//! replaced long ago.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use thiserror::Error;

use crate::{
    Attempt, BoxFuture, ConfigProblem, Controls, Epoch, EventId, ExecutionId, ExecutorName, InputView,
    ScopeName, Secret, TurnResult, WorkId, WorkKind, WorkspaceFacts,
};

/// What an executor can do, as a matter of fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Whatever it starts does nothing until the runtime has recorded the handle it gave to
    /// [`AttemptHost::pin`]. Only then may a launch that recorded nothing be launched again.
    pub holds_until_pinned: bool,
    /// What can be done to a segment that runs: [`Executor::inject`] and [`Executor::interrupt`].
    pub controls: Controls,
    /// An attempt whose turn ended in a Wait goes on by [`Executor::resume`]. Without it that attempt ends, and the
    /// next one goes on.
    pub resumes: bool,
}

/// Runs turns.
pub trait Executor: fmt::Debug + Send + Sync {
    /// The name bindings refer to it by.
    fn name(&self) -> ExecutorName;

    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// Checks a binding's own configuration; answers what it runs, in one phrase for people.
    ///
    /// # Errors
    /// Every [`ConfigProblem`] found.
    fn validate(&self, config: &Value, resource: Option<&Value>) -> Result<String, Vec<ConfigProblem>>;

    /// Runs a segment to its end.
    ///
    /// It calls [`AttemptHost::pin`] once, with what it needs to find the segment again, before anything of
    /// the segment has an effect. When the pin is refused it undoes the launch and returns
    /// [`RunError::Fenced`].
    fn run<'a>(
        &'a self,
        request: RunRequest,
        host: &'a dyn AttemptHost,
    ) -> BoxFuture<'a, Result<TurnResult, RunError>>;

    /// Goes on with an attempt whose turn had ended in a Wait, as [`Self::run`] begins one: it pins what it starts.
    /// Only an executor that [`Capabilities::resumes`] is asked.
    fn resume<'a>(
        &'a self,
        request: ResumeRequest,
        host: &'a dyn AttemptHost,
    ) -> BoxFuture<'a, Result<TurnResult, RunError>> {
        let _unused = (request, host);
        let reason = "the executor cannot go on from a Wait".to_owned();
        Box::pin(async { Err(RunError::Failed { code: "cannot_resume", reason }) })
    }

    /// Finds out what became of a segment after its authority was lost. It never starts one.
    fn recover(&self, segment: Segment) -> BoxFuture<'_, Recovery>;

    /// Watches a segment that [`Self::recover`] found alive, to its end.
    fn observe(&self, segment: Segment) -> BoxFuture<'_, Result<TurnResult, RunError>>;

    /// Stops everything of a segment, and answers once that is established. It may be called for a segment
    /// that has ended or never began.
    fn stop(&self, segment: Segment) -> BoxFuture<'_, Stopped>;

    /// Offers an Event to a segment that runs.
    ///
    /// The Event is its own name: offered again, because an answer was lost, it is the same one, and the segment
    /// takes it in once. The answer is about the Event and not about this call, so what an earlier call delivered
    /// is [`Injected::Accepted`]. Only [`TurnResult::consumed_inputs`] says that it was taken in. It is called
    /// where [`Controls::inject`] is true, and is given about ten seconds.
    fn inject(&self, injection: Injection) -> BoxFuture<'_, Injected> {
        drop(injection);
        Box::pin(async { Injected::NotAccepting { reason: "it takes no input while it runs".to_owned() } })
    }

    /// Ends a segment that has lost its authority to an Event, and answers once nothing of it runs, as
    /// [`Self::stop`] does. It may be called again, and for a segment that has ended or never began.
    fn interrupt(&self, segment: Segment) -> BoxFuture<'_, Stopped> {
        self.stop(segment)
    }

    /// Tells a segment that runs something that it may act on. It is no Event and no input: nothing asks whether it
    /// was read, and it is not told again. An executor without a way to tell it does nothing.
    fn notify(&self, segment: Segment, notice: Notice) -> BoxFuture<'_, ()> {
        drop((segment, notice));
        Box::pin(async {})
    }

    /// The Events that a segment, which has ended without a result of its own, proves to have taken in besides
    /// those it was started with.
    fn proof(&self, segment: Segment) -> BoxFuture<'_, Vec<EventId>> {
        drop(segment);
        Box::pin(async { Vec::new() })
    }

    /// Removes everything that it has of an attempt, which has ended: output, artifacts, directories. It may be called
    /// again, and for one that it has nothing of.
    ///
    /// # Errors
    /// Why it could not, in words; it is tried again.
    fn release(&self, _execution: ExecutionId) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async { Ok(()) })
    }

    /// Reads from a segment's output.
    fn log(&self, request: LogRequest) -> BoxFuture<'_, Result<Log, RunError>>;

    /// The directory that a run works in, by its binding's configuration; none where it has none, or none yet.
    fn directory(&self, _execution: ExecutionId, _config: &Value) -> Option<std::path::PathBuf> {
        None
    }

    /// The path of an artifact that a segment left, when it is one.
    fn artifact(&self, execution: ExecutionId, path: &str) -> Option<std::path::PathBuf>;
}

/// A segment to run.
#[derive(Debug, Clone)]
pub struct RunRequest {
    /// The attempt.
    pub execution: ExecutionId,
    /// Its number.
    pub attempt: Attempt,
    /// The attempt that it repeats after a failure.
    pub retry_of: Option<ExecutionId>,
    /// The epoch of the claim.
    pub epoch: Epoch,
    /// Its Work.
    pub work: WorkId,
    /// The Work's kind.
    pub kind: WorkKind,
    /// Its scope.
    pub scope: ScopeName,
    /// The Event that triggered it; one of `inputs`. For an attempt that repeats another it is what triggered
    /// the first of them.
    pub trigger: EventId,
    /// What it takes in, in order of acceptance; first, as context, what the attempts it repeats took in.
    pub inputs: Vec<InputView>,
    /// The binding's own configuration.
    pub config: Value,
    /// The directory that was made ready for it, where its binding needs one.
    pub workspace: Option<Arc<WorkspaceFacts>>,
    /// Secrets for its environment: the variable and the value.
    pub secrets: Vec<(String, Secret)>,
    /// How long it may take. The runtime stops it after that.
    pub timeout: Duration,
    /// What its process shows to make calls, good for this epoch once the segment is pinned. It reaches the process
    /// in a file that only its user can read, or as an open descriptor, and never in arguments or the environment.
    pub token: Option<Secret>,
}

/// A turn to go on with.
#[derive(Debug, Clone)]
pub struct ResumeRequest {
    /// The attempt, at its new epoch. Its inputs are what it was not given before; its trigger stays the first one,
    /// and its timeout is what earlier turns left.
    pub request: RunRequest,
    /// The Event that ended the Wait; one of the inputs.
    pub woken_by: EventId,
    /// What the turn before had recorded by [`AttemptHost::pin`] last.
    pub session: Option<Vec<u8>>,
}

/// A segment that may have been started earlier.
#[derive(Debug, Clone)]
pub struct Segment {
    /// The attempt.
    pub execution: ExecutionId,
    /// The epoch of the claim that asks. Lower epochs of the same attempt are what it may find.
    pub epoch: Epoch,
    /// What the executor recorded, when it got that far.
    pub handle: Option<Vec<u8>>,
    /// The binding's own configuration.
    pub config: Value,
    /// Secret values to keep out of what is written.
    pub secrets: Vec<(String, Secret)>,
    /// The token of the claim that asks [`Executor::recover`]. What is alive has it in place of its older one before
    /// that answers.
    pub token: Option<Secret>,
}

/// An Event for a segment that runs.
#[derive(Debug, Clone)]
pub struct Injection {
    /// The segment.
    pub segment: Segment,
    /// The Event, with its body unless that is gone.
    pub input: InputView,
}

/// Something that a segment which runs may act on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// A stable word: `budget_warning`.
    pub code: &'static str,
    /// In words, for people and agents.
    pub text: String,
}

/// What became of an Event that was offered to a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Injected {
    /// It was delivered. Whether it is taken in is not known.
    Accepted,
    /// It certainly was not delivered and will not be: the segment has ended, has no way in, or is not one that
    /// this executor holds.
    NotAccepting {
        /// Why, in words.
        reason: String,
    },
    /// Whether it was delivered is not known; it is offered again.
    Ambiguous {
        /// Why, in words.
        reason: String,
    },
}

/// The runtime, as one running attempt sees it.
pub trait AttemptHost: fmt::Debug + Send + Sync {
    /// Records what was started, durably. Once it answers well, the segment may begin.
    fn pin(&self, handle: Vec<u8>) -> BoxFuture<'_, Result<(), PinError>>;
}

/// Why a handle was not recorded. The segment must not begin.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PinError {
    /// The claim is no longer in force.
    #[error("the claim on the run is no longer in force")]
    Fenced,
    /// The handle is too large.
    #[error("the handle is too large")]
    TooLarge,
    /// The store failed; the claim may still be in force.
    #[error("the handle could not be recorded: {0}")]
    Store(String),
}

/// A segment did not get to a result of its own.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RunError {
    /// The claim is no longer in force; nothing is to be reported.
    #[error("the claim on the run is no longer in force")]
    Fenced,
    /// Nothing was started, and what was in the way may pass, such as a full disk. It is tried again.
    #[error("{reason}")]
    NotStarted {
        /// In words, without a secret.
        reason: String,
    },
    /// It could not be started or watched.
    #[error("{reason}")]
    Failed {
        /// A stable word: `spawn_failed`.
        code: &'static str,
        /// In words, without a secret.
        reason: String,
    },
}

/// What became of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recovery {
    /// It was verified to be alive; [`Executor::observe`] follows it.
    Alive,
    /// It has ended, with this result.
    Finished(TurnResult),
    /// It is certain that nothing was started, and that nothing still can be.
    NothingStarted,
    /// It cannot be taken over.
    NotAdoptable {
        /// Why, in words.
        reason: String,
        /// Whether it is established that nothing of it runs any more.
        stopped: bool,
    },
}

/// What stopping established.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stopped {
    /// Nothing of the segment runs.
    Confirmed,
    /// That could not be established.
    Unverifiable {
        /// Why, in words.
        reason: String,
    },
}

/// A request for output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogRequest {
    /// The attempt.
    pub execution: ExecutionId,
    /// Where to begin, in bytes; negative counts from the end.
    pub from: i64,
    /// The most bytes to answer with.
    pub bytes_max: usize,
}

/// A piece of output, secrets redacted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// Where the piece begins.
    pub from: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The size of the output so far.
    pub size: u64,
}
