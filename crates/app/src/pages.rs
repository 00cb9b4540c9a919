//! The pages: what a person sees in a browser.
//!
//! A page asks the same functions as the interface under `/v1` and shows their bodies through [`crate::view`],
//! so that a page, the command line and a program are told the same. No page reads the store by itself.
//!
//! Pages are whole documents. The one script in `assets/` asks for a page again when the change feed says that
//! something changed, and puts in the parts marked `data-live`; without it a reload does the same.
//!
//! A request passes [`route`] (which page), then one of the modules that are named after what they show.
//! `frame` is what stands around every page, `reader` is who reads it: time zone and theme.

pub(crate) mod route;
mod asset;
mod reader;
mod frame;
mod html;
mod failed;
mod needs;
mod form;
pub(crate) mod login;
mod runs;
mod timeline;
mod run;
mod log;
mod again;
mod events;
mod event;
mod emit;
mod explain;
mod works;
mod work;
mod confirm;
mod cancel;
mod interrupt;
mod inject;
mod release;
mod replay;
mod retry;
mod pause;
mod config;
mod apply;
mod health;
mod settings;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::Bytes;
use hyper::{Method, Response};

use crate::api::body::Body;
use crate::api::failure::Failure;
use crate::api::posture::Audience;
use crate::api::server::{Answer, Asked};
use crate::api::stream;
use crate::auth::Authority;
use crate::daemon::Daemon;

use reader::Reader;
use route::Page;

/// A request for a page that was let in.
#[derive(Debug)]
pub(crate) struct Visit {
    /// The daemon.
    pub(crate) daemon: Arc<Daemon>,
    /// What was asked.
    pub(crate) asked: Asked,
    /// Who reads it.
    pub(crate) reader: Reader,
    /// What a form sent; nothing for a page that is only read.
    pub(crate) sent: Bytes,
    /// From where the change feed tells what the page does not show yet: it was read before anything else.
    pub(crate) cursor: Option<String>,
}

/// Answers with a page, or with one that says why not.
pub(crate) async fn answer(daemon: &Arc<Daemon>, page: Page, asked: Asked) -> Response<Body> {
    let reader = Reader::of(&asked.parts.headers, daemon.store().now());
    let mut visit = Visit { daemon: Arc::clone(daemon), asked, reader, sent: Bytes::new(), cursor: None };
    if visit.asked.parts.method == Method::POST {
        match form::receive(&mut visit.asked).await {
            Ok(sent) => visit.sent = sent,
            Err(failure) => return told(&visit, failure).await,
        }
    } else if page.audience() == Audience::LoggedIn {
        visit.cursor = stream::from_now(daemon).await;
    }
    match Box::pin(show(page, &visit)).await {
        Ok(response) => response,
        Err(failure) => told(&visit, failure).await,
    }
}

/// Answers a request for a page that there is not, or not like that.
pub(crate) async fn refuse(daemon: &Arc<Daemon>, failure: Failure, asked: Asked) -> Response<Body> {
    let reader = Reader::of(&asked.parts.headers, daemon.store().now());
    let visit = Visit { daemon: Arc::clone(daemon), asked, reader, sent: Bytes::new(), cursor: None };
    told(&visit, failure).await
}

/// Says why there is no page. What stands around a page says how the daemon is, which is not for everyone.
async fn told(visit: &Visit, failure: Failure) -> Response<Body> {
    match visit.asked.authority {
        Authority::Nobody => failure.into_response(),
        Authority::Operator | Authority::Session(_) => failed::page(visit, failure).await,
    }
}

async fn show(page: Page, visit: &Visit) -> Answer {
    match page {
        Page::Asset => asset::serve(visit.asked.id()).ok_or_else(|| Failure::not_found("no such file")),
        Page::Login => login::show(visit),
        Page::LogIn => login::log_in(visit).await,
        Page::LogOut => login::log_out(visit).await,
        Page::Runs => runs::list(visit).await,
        Page::Run => Box::pin(run::show(visit)).await,
        Page::RunLog => Box::pin(log::show(visit)).await,
        Page::RunLogRaw => log::download(visit).await,
        Page::AskAgain => Box::pin(again::confirm(visit)).await,
        Page::Again => Box::pin(again::send(visit)).await,
        Page::AskCancel => Box::pin(cancel::confirm(visit)).await,
        Page::Cancel => cancel::cancel(visit).await,
        Page::AskInterrupt => Box::pin(interrupt::confirm(visit)).await,
        Page::Interrupt => interrupt::interrupt(visit).await,
        Page::AskRetry => Box::pin(retry::confirm(visit)).await,
        Page::Retry => retry::retry(visit).await,
        Page::AskInject => inject::form(visit).await,
        Page::Inject => Box::pin(inject::inject(visit)).await,
        Page::AskRelease => Box::pin(release::confirm(visit)).await,
        Page::Release => release::release(visit).await,
        Page::Config => Box::pin(config::show(visit)).await,
        Page::AskApply => apply::ask(visit).await,
        Page::Apply => apply::apply(visit).await,
        Page::AskReplay => Box::pin(replay::confirm(visit)).await,
        Page::Replay => replay::replay(visit).await,
        Page::AskPause => Box::pin(pause::confirm_pause(visit)).await,
        Page::PauseScope => pause::pause(visit).await,
        Page::AskResume => Box::pin(pause::confirm_resume(visit)).await,
        Page::ResumeScope => pause::resume(visit).await,
        Page::Health => Box::pin(health::show(visit)).await,
        Page::Settings => settings::show(visit).await,
        Page::Theme => settings::choose_theme(visit),
        Page::RevokeSession => settings::revoke(visit).await,
        Page::RevokeOthers => settings::revoke_others(visit).await,
        Page::Events => events::list(visit).await,
        Page::NewEvent => emit::form(visit).await,
        Page::EmitEvent => Box::pin(emit::send(visit)).await,
        Page::ExplainEvent => Box::pin(explain::form(visit)).await,
        Page::ExplainedEvent => Box::pin(explain::answered(visit)).await,
        Page::Event => Box::pin(event::show(visit)).await,
        Page::EventPayload => event::payload(visit).await,
        Page::Works => works::list(visit).await,
        Page::Work => work::show(visit).await,
    }
}
