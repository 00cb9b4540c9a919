//! Every page's path.

use hyper::Method;

use super::{emit, events, explain, runs, works};
use crate::api::posture::Audience;
use crate::api::route::{Found, Route, find_in, get, post};

/// What a request for a page asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Page {
    /// A style sheet, the script, the icon. They hold no data, so everyone may have them.
    Asset,
    /// The login page, with or without a code.
    Login,
    /// Its button.
    LogIn,
    /// The end of the session that asks.
    LogOut,
    /// The list of runs, which is the first page.
    Runs,
    /// One run.
    Run,
    /// Its output.
    RunLog,
    /// Its output, to keep.
    RunLogRaw,
    /// What running it again does.
    AskAgain,
    /// Its button.
    Again,
    /// What cancelling a Work does.
    AskCancel,
    /// Its button.
    Cancel,
    /// What interrupting the run of a Work does.
    AskInterrupt,
    /// Its button.
    Interrupt,
    /// The button that starts the next run of a Work that failed.
    Retry,
    /// What giving the run of a Work something does, and the form for it.
    AskInject,
    /// Its button.
    Inject,
    /// What releasing a held Work does.
    AskRetry,
    AskRelease,
    /// The button that lets a held Work go on.
    Release,
    /// The list of Events.
    Events,
    /// The form for sending one.
    NewEvent,
    /// Its button.
    EmitEvent,
    /// What an Event would do: the question.
    ExplainEvent,
    /// The answer.
    ExplainedEvent,
    /// One Event.
    Event,
    /// Its payload, to keep.
    EventPayload,
    /// The list of Works.
    Works,
    /// One Work.
    Work,
    /// The configuration in force.
    Config,
    /// What an apply of the edited file does.
    AskApply,
    /// Its button.
    Apply,
    /// What replaying an Event does.
    AskReplay,
    /// The button that has an Event looked at again.
    Replay,
    /// What pausing a scope does.
    AskPause,
    /// The button that lets a scope start nothing more.
    PauseScope,
    /// What resuming a scope does.
    AskResume,
    /// The button that lets it start again.
    ResumeScope,
    /// How the daemon is.
    Health,
    /// Sessions, theme and where things are.
    Settings,
    /// The choice of a theme.
    Theme,
    /// The end of another browser's session.
    RevokeSession,
    /// The end of every other browser's session.
    RevokeOthers,
}

impl Page {
    /// Who may see it.
    pub(crate) const fn audience(self) -> Audience {
        match self {
            Self::Asset | Self::Login | Self::LogIn => Audience::Everyone,
            Self::LogOut
            | Self::Runs
            | Self::Run
            | Self::RunLog
            | Self::RunLogRaw
            | Self::AskAgain
            | Self::Again
            | Self::AskCancel
            | Self::Cancel
            | Self::AskInterrupt
            | Self::Interrupt
            | Self::Retry
            | Self::AskInject
            | Self::Inject
            | Self::AskRetry
            | Self::AskRelease
            | Self::Release
            | Self::Events
            | Self::NewEvent
            | Self::EmitEvent
            | Self::ExplainEvent
            | Self::ExplainedEvent
            | Self::Event
            | Self::EventPayload
            | Self::Works
            | Self::Work
            | Self::Config
            | Self::AskApply
            | Self::Apply
            | Self::AskReplay
            | Self::Replay
            | Self::AskPause
            | Self::PauseScope
            | Self::AskResume
            | Self::ResumeScope
            | Self::Health
            | Self::Settings
            | Self::Theme
            | Self::RevokeSession
            | Self::RevokeOthers => Audience::LoggedIn,
        }
    }
}

/// Every page.
static PAGES: &[Route<Page>] = &[
    get("/", Page::Runs, &runs::QUERY),
    get("/runs/{id}", Page::Run, &[]),
    get("/runs/{id}/log", Page::RunLog, &["from", "to", "bytes", "view"]),
    get("/runs/{id}/log/raw", Page::RunLogRaw, &[]),
    get("/runs/{id}/again", Page::AskAgain, &[]),
    post("/runs/{id}/again", Page::Again),
    get("/work/{id}/cancel", Page::AskCancel, &[]),
    post("/work/{id}/cancel", Page::Cancel),
    get("/work/{id}/interrupt", Page::AskInterrupt, &[]),
    post("/work/{id}/interrupt", Page::Interrupt),
    get("/work/{id}/retry", Page::AskRetry, &[]),
    post("/work/{id}/retry", Page::Retry),
    get("/work/{id}/inject", Page::AskInject, &[]),
    post("/work/{id}/inject", Page::Inject),
    get("/work/{id}/release", Page::AskRelease, &[]),
    post("/work/{id}/release", Page::Release),
    get("/assets/{name}", Page::Asset, &[]),
    get("/login", Page::Login, &["code", "next"]),
    post("/login", Page::LogIn),
    post("/logout", Page::LogOut),
    get("/events", Page::Events, &events::QUERY),
    get("/events/new", Page::NewEvent, &emit::QUERY),
    post("/events/new", Page::EmitEvent),
    get("/events/explain", Page::ExplainEvent, &explain::QUERY),
    post("/events/explain", Page::ExplainedEvent),
    get("/events/{id}", Page::Event, &events::QUERY),
    get("/events/{id}/payload", Page::EventPayload, &[]),
    get("/events/{id}/replay", Page::AskReplay, &[]),
    post("/events/{id}/replay", Page::Replay),
    get("/work", Page::Works, &works::QUERY),
    get("/work/{id}", Page::Work, &[]),
    get("/config", Page::Config, &["scope"]),
    get("/config/apply", Page::AskApply, &[]),
    post("/config/apply", Page::Apply),
    get("/scopes/{name}/pause", Page::AskPause, &[]),
    post("/scopes/{name}/pause", Page::PauseScope),
    get("/scopes/{name}/resume", Page::AskResume, &[]),
    post("/scopes/{name}/resume", Page::ResumeScope),
    get("/health", Page::Health, &[]),
    get("/settings", Page::Settings, &[]),
    post("/settings/theme", Page::Theme),
    post("/settings/sessions/{id}/revoke", Page::RevokeSession),
    post("/settings/sessions/revoke-others", Page::RevokeOthers),
];

/// Finds the page of a request.
pub(crate) fn find<'p>(method: &Method, path: &'p str) -> Found<'p, Page> {
    find_in(PAGES, method, path)
}
