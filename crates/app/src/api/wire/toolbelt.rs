//! What goes over the wire about what a run said of itself by its calls.

use domain::time::Timestamp;
use domain::toolbelt::Progress;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How far a run last said that it had come.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct RunProgressBody {
    pub(crate) text: String,
    /// In hundredths of the whole, when it knows.
    pub(crate) percent: Option<u8>,
    pub(crate) at: String,
}

impl From<(Progress, Timestamp)> for RunProgressBody {
    fn from((progress, at): (Progress, Timestamp)) -> Self {
        Self { text: progress.text, percent: progress.percent, at: at.to_string() }
    }
}
