//! What goes over the wire about sessions of browsers.

use domain::store::Session;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A one-time code that was given out.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct LoginCodeBody {
    /// The code. It opens one session.
    pub(crate) code: String,
    /// The page that takes it, with the code in it.
    pub(crate) url: String,
    /// When the code stops being valid.
    pub(crate) expires_at: String,
}

impl std::fmt::Debug for LoginCodeBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoginCodeBody").field("expires_at", &self.expires_at).finish_non_exhaustive()
    }
}

/// A browser that is logged in.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct SessionBody {
    pub(crate) id: String,
    /// The browser in words.
    pub(crate) label: String,
    pub(crate) created_at: String,
    /// When it was used, to within an hour.
    pub(crate) last_seen_at: String,
    /// When it ends unless it is used before.
    pub(crate) expires_at: String,
    /// Whether it is the one that asks.
    pub(crate) current: bool,
}

impl SessionBody {
    pub(crate) fn new(session: &Session, current: bool) -> Self {
        Self {
            id: session.id.to_string(),
            label: session.label.clone(),
            created_at: session.created_at.to_string(),
            last_seen_at: session.last_seen_at.to_string(),
            expires_at: session.expires_at.to_string(),
            current,
        }
    }
}

/// What was revoked.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct RevokedBody {
    /// The sessions that have ended by it.
    pub(crate) sessions: Vec<String>,
}
