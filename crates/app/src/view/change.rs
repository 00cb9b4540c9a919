//! A row of the change feed, in one line.

use super::word;
use super::{Word, time};
use crate::api::wire::ChangeBody;

/// A line of what happens.
#[derive(Debug, Clone)]
pub(crate) struct ChangeRow {
    /// The time of day.
    pub(crate) at: String,
    /// What it happened to.
    pub(crate) id: String,
    /// The state it is in now.
    pub(crate) state: Word,
}

impl ChangeRow {
    pub(crate) fn new(change: &ChangeBody) -> Self {
        let state = change.state.as_deref().unwrap_or("accepted");
        Self { at: time::of_day(&change.at), id: change.id.clone(), state: word::state(state) }
    }
}
