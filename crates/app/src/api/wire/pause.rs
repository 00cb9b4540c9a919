//! What goes over the wire about paused scopes.

use domain::pause::Pause;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A pause that stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct PauseBody {
    /// The scope that is paused. What descends from it is paused with it.
    pub(crate) scope: String,
    pub(crate) since: String,
}

/// What pausing or resuming a scope came to.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct PausedBody {
    pub(crate) scope: String,
    /// The scope that pauses it now: itself, or one that it descends from. None when it starts again.
    pub(crate) paused_by: Option<String>,
    /// Since when, after a pause.
    pub(crate) since: Option<String>,
    /// Whether anything is different than before.
    pub(crate) changed: bool,
}

impl From<&Pause> for PauseBody {
    fn from(pause: &Pause) -> Self {
        Self { scope: pause.scope.to_string(), since: pause.since.to_string() }
    }
}
