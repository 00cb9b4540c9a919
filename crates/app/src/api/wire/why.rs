//! What goes over the wire about why a run started.

use domain::lane::LaneBlock;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{EventBody, RunBody};

/// Why a run started.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct WhyBody {
    pub(crate) run: RunBody,
    /// From the first Event of the chain to the trigger.
    pub(crate) chain: Vec<EventBody>,
    /// Everything the run took in.
    pub(crate) inputs: Vec<EventBody>,
    /// Events about the same Work that had no effect, newest first.
    pub(crate) without_effect: Vec<EventBody>,
    /// Lanes of the Work that stand still.
    pub(crate) blocked: Vec<LaneBody>,
    /// The whole story, a sentence a line.
    pub(crate) sentences: Vec<String>,
}

/// A lane that stands still.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct LaneBody {
    pub(crate) event: String,
    pub(crate) code: String,
    pub(crate) reason: String,
    pub(crate) tries: i64,
    pub(crate) next_try_at: String,
}

impl From<&LaneBlock> for LaneBody {
    fn from(block: &LaneBlock) -> Self {
        Self {
            event: block.event.to_string(),
            code: block.code.to_string(),
            reason: block.reason.clone(),
            tries: block.tries,
            next_try_at: block.blocked_until.to_string(),
        }
    }
}
