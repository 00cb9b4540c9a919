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
mod runs;

use std::sync::Arc;

use hyper::Response;

use crate::api::body::Body;
use crate::api::failure::Failure;
use crate::api::server::{Answer, Asked};
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
}

/// Answers with a page, or with one that says why not.
pub(crate) async fn answer(daemon: &Arc<Daemon>, page: Page, asked: Asked) -> Response<Body> {
    let reader = Reader::of(&asked.parts.headers, daemon.store().now());
    let visit = Visit { daemon: Arc::clone(daemon), asked, reader };
    match Box::pin(show(page, &visit)).await {
        Ok(response) => response,
        Err(failure) => failed::page(&visit, failure).await,
    }
}

async fn show(page: Page, visit: &Visit) -> Answer {
    match page {
        Page::Asset => asset::serve(visit.asked.id()).ok_or_else(|| Failure::not_found("no such file")),
        Page::Runs => runs::list(visit).await,
    }
}
