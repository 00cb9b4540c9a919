//! The list of runs: the first page.

use askama::Template;

use super::Visit;
use super::frame::{Frame, Place};
use super::html;
use crate::api::runs;
use crate::api::server::Answer;
use crate::view::run::RunRow;

#[derive(Debug, Template)]
#[template(path = "runs.html")]
struct Runs {
    frame: Frame,
    rows: Vec<RunRow>,
    older: Option<String>,
}

/// Lists runs, newest first.
pub(super) async fn list(visit: &Visit) -> Answer {
    let page = runs::find(&visit.daemon, &visit.asked.query).await?;
    let rows = page.items.iter().map(|run| RunRow::new(run, visit.reader.clock.now())).collect();
    html::page(&Runs { frame: Frame::read(visit, Place::Runs).await?, rows, older: page.next })
}
