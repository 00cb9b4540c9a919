//! What goes over the wire about budgets.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A budget, and how its ledger stands.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct BudgetBody {
    /// `turns` and `attempts` are counted by the runtime; any other unit is what executors report.
    pub(crate) unit: String,
    /// Whose use counts: `work`, `scope` or `all`.
    pub(crate) per: String,
    /// Over which time: `life`, `day` or `week`, in UTC.
    pub(crate) window: String,
    /// At which amount no further turn starts: a decimal.
    pub(crate) limit: String,
    /// At which share of the limit it warns.
    pub(crate) warning_percent: u32,
    /// What has been used; none where each Work has its own.
    pub(crate) used: Option<String>,
    /// What runs that go on have reserved.
    pub(crate) reserved: Option<String>,
    /// When it is counted anew.
    pub(crate) resets_at: Option<String>,
    /// Whether the limit is reached.
    pub(crate) is_used_up: bool,
}
