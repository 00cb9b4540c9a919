//! Waiting for what comes of an Event: its checkpoint, then the run that takes it in, then that run's end.

use std::time::Duration;

use crate::api::wire::{EventBody, ExplainBody, ExplanationBody, Page, RunBody, WhyBody, WorkBody};
use crate::cli::changes::Changes;
use crate::cli::exit::Exit;
use crate::cli::failure::{Failure, Stop};
use crate::client::{Client, Route};
use crate::error_code::ErrorCode;
use crate::view::{event, work};

/// The kinds of changes that [`Awaited::ended`] has to hear about.
pub(crate) const KINDS: &str = "checkpoint,work,run";

/// A Work that cannot start stays in its state, so no change tells of it.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// What came of an Event.
#[derive(Debug)]
pub(crate) enum Came {
    /// A run took it in, and ended.
    Run(Box<RunBody>),
    /// It reached no run, and will not.
    Nothing(Box<EventBody>),
    /// It, or its Work, cannot go on before an operator does something; this says why.
    Held(String),
}

impl Came {
    /// The run, when there is one.
    pub(crate) fn run(&self) -> Option<&RunBody> {
        match self {
            Self::Run(run) => Some(run),
            Self::Nothing(_) | Self::Held(_) => None,
        }
    }

    /// The exit code for it, or why there is no run.
    ///
    /// # Errors
    /// [`Stop`] when no run will come, or none before an operator does something.
    pub(crate) fn exit(&self) -> Result<Exit, Stop> {
        match self {
            Self::Run(run) => Ok(Exit::of_run(&run.state).unwrap_or(Exit::PENDING)),
            Self::Nothing(found) => {
                let routed =
                    found.checkpoint.as_ref().is_some_and(|checkpoint| checkpoint.outcome == "routed");
                let ended = if routed { " That ended before a run of it began." } else { "" };
                let detail = format!("no run came of {}. {}{ended}", found.id, event::fate(found));
                Err(Failure::new(Exit::FAILED, ErrorCode::NoRun, detail)
                    .hint("`open-conduit events explain` tells what each route says to such an Event")
                    .into())
            }
            Self::Held(why) => Err(Failure::new(Exit::HELD, ErrorCode::Held, why)
                .hint("change the configuration and `open-conduit config apply` it; nothing sent is lost")
                .into()),
        }
    }
}

/// An Event whose outcome somebody waits for.
#[derive(Debug)]
pub(crate) struct Awaited<'a> {
    client: &'a Client,
    event: &'a str,
    /// The Work it became input of, once that is known.
    work: Option<String>,
}

impl<'a> Awaited<'a> {
    pub(crate) const fn new(client: &'a Client, event: &'a str) -> Self {
        Self { client, event, work: None }
    }

    /// Waits until a run ended with it, or none will. `changes` must have been followed since before the Event was
    /// sent.
    ///
    /// # Errors
    /// [`Stop`] when the daemon went away.
    pub(crate) async fn ended(&mut self, changes: &mut Changes) -> Result<Came, Stop> {
        loop {
            if let Some(came) = self.look().await? {
                return Ok(came);
            }
            // Cutting this short loses nothing: a change that was not waited for is the next one.
            match tokio::time::timeout(LOOK_AGAIN_AFTER, self.something(changes)).await {
                Ok(happened) => happened?,
                Err(_elapsed) => {
                    if let Some(came) = self.look_closer().await? {
                        return Ok(came);
                    }
                }
            }
        }
    }

    /// Waits for a change that has to do with the Event or its Work.
    async fn something(&self, changes: &mut Changes) -> Result<(), Stop> {
        loop {
            let change = changes.next().await?;
            let concerns = |id: &str| change.id == id || change.work.as_deref() == Some(id);
            if concerns(self.event) || self.work.as_deref().is_some_and(concerns) {
                return Ok(());
            }
        }
    }

    async fn look(&mut self) -> Result<Option<Came>, Stop> {
        let event: EventBody = self.client.get(&Route::new(&["events", self.event])).await?;
        let Some(checkpoint) = &event.checkpoint else { return Ok(None) };
        let Some(work) = checkpoint.work.clone().filter(|_| checkpoint.outcome == "routed") else {
            return Ok(Some(Came::Nothing(Box::new(event))));
        };
        self.work = Some(work.clone());
        if let Some(run) = self.run(&event, &work).await? {
            return Ok(Exit::of_run(&run.state).map(|_exit| Came::Run(Box::new(run))));
        }
        let work: WorkBody = self.client.get(&Route::new(&["work", &work])).await?;
        if work::is_held(&work) {
            return Ok(Some(Came::Held(format!("{} is held. {}", work.id, work::mover(&work)))));
        }
        Ok(work.ended_at.is_some().then(|| Came::Nothing(Box::new(event))))
    }

    /// Whether an Event that is not routed waits for an operator: its scope may be disabled.
    async fn look_closer(&self) -> Result<Option<Came>, Stop> {
        if self.work.is_some() {
            return Ok(None);
        }
        let asked = ExplainBody { event: Some(self.event.to_owned()), ..ExplainBody::default() };
        let found: ExplanationBody = self.client.post(&Route::new(&["events", "explain"]), &asked).await?;
        let reason = found.reason.filter(|_reason| found.outcome == "held");
        Ok(reason.map(|reason| Came::Held(format!("{} is not routed: {reason}", self.event))))
    }

    /// The run that took the Event in: mostly it is the run's trigger, else one of its further inputs.
    async fn run(&self, event: &EventBody, work: &str) -> Result<Option<RunBody>, Stop> {
        let page: Page<RunBody> = self.client.get(&Route::new(&["runs"]).with("work", work)).await?;
        if let Some(run) = page.items.iter().find(|run| run.trigger.event == event.id) {
            return Ok(Some(run.clone()));
        }
        for run in page.items.iter().filter(|run| run.claimed_at >= event.accepted_at).rev() {
            let why: WhyBody = self.client.get(&Route::new(&["runs", &run.id, "why"])).await?;
            if why.inputs.iter().any(|input| input.id == event.id) {
                return Ok(Some(why.run));
            }
        }
        Ok(None)
    }
}
