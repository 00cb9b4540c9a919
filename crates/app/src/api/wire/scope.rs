//! What goes over the wire about scopes: what holds in each, in words, and where it comes from. No configured
//! secret and no value of a variable is in it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{BudgetBody, PauseBody};

/// A scope's place in the tree.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ScopeLineBody {
    pub(crate) name: String,
    pub(crate) parent: Option<String>,
    /// How many scopes it inherits from.
    pub(crate) depth: usize,
    /// The scope that is disabled, when it or one that it inherits from is.
    pub(crate) disabled_by: Option<String>,
    /// The pause that keeps it from starting anything, its own or that of a scope that it descends from.
    #[serde(default)]
    pub(crate) paused: Option<PauseBody>,
}

/// A scope with everything that holds in it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ScopeBody {
    pub(crate) name: String,
    pub(crate) parent: Option<String>,
    /// The scope that is disabled, when it or one that it inherits from is.
    pub(crate) disabled_by: Option<String>,
    /// The pause that keeps it from starting anything, its own or that of a scope that it descends from.
    #[serde(default)]
    pub(crate) paused: Option<PauseBody>,
    /// In the order in which they are asked.
    pub(crate) routes: Vec<RouteBody>,
    pub(crate) bindings: Vec<BindingBody>,
    /// Entries of extensions.
    pub(crate) entries: Vec<EntryBody>,
    /// What it inherits and takes away.
    pub(crate) removed: Vec<RemovedBody>,
    pub(crate) settings: Vec<SettingBody>,
    pub(crate) ceilings: Vec<SettingBody>,
    /// Names only; a value never leaves the daemon.
    pub(crate) secrets: Vec<SecretNameBody>,
    /// Scopes whose Events may end its Waits.
    pub(crate) read_scopes: Vec<String>,
    /// Scopes in which its runs may create Works.
    #[serde(default)]
    pub(crate) write_scopes: Vec<String>,
    /// The budgets that its turns are under.
    #[serde(default)]
    pub(crate) budgets: Vec<BudgetBody>,
}

/// A route that holds in a scope.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct RouteBody {
    pub(crate) name: String,
    pub(crate) handler: String,
    /// What it takes, in one phrase.
    pub(crate) takes: String,
    /// What Work it leads to, in one phrase.
    pub(crate) leads_to: String,
    /// What happens to a match while the Work runs: `queue`, `inject`, `interrupt` or `drop`.
    pub(crate) policy: String,
    /// The binding that runs the Work. A route that only drops needs none.
    pub(crate) binding: Option<String>,
    /// The scope that declares it.
    pub(crate) declared_in: String,
}

/// A binding that holds in a scope.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct BindingBody {
    pub(crate) name: String,
    pub(crate) executor: String,
    /// What it does, in one phrase of its executor.
    pub(crate) does: String,
    /// The longest an attempt may be active.
    pub(crate) timeout_seconds: u32,
    /// Whether the binding says so itself; else the scope does.
    pub(crate) own_timeout: bool,
    /// The longest an attempt may write nothing; none when it may be quiet.
    #[serde(default)]
    pub(crate) inactivity_seconds: Option<u32>,
    /// How its failed attempts are tried again, where it says so itself.
    #[serde(default)]
    pub(crate) retry: Option<OwnRetryBody>,
    /// What it calls the account that its executor uses.
    #[serde(default)]
    pub(crate) credential: Option<String>,
    /// The secrets that its attempts get.
    pub(crate) secrets: Vec<VariableBody>,
    /// The scope that declares it.
    pub(crate) declared_in: String,
}

/// How a binding's failed attempts are tried again.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct OwnRetryBody {
    /// How many attempts there may be in a row, the first included.
    pub(crate) attempts: u32,
    /// The wait after the first failure.
    pub(crate) backoff_seconds: u64,
}

/// A variable that holds a secret.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct VariableBody {
    pub(crate) variable: String,
    /// The secret's name.
    pub(crate) secret: String,
}

/// An entry of an extension that holds in a scope.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct EntryBody {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) entry_type: String,
    /// What it takes, in one phrase.
    pub(crate) takes: String,
    /// The source of everything it accepts.
    pub(crate) namespace: Option<String>,
    /// The names of the secrets it may read.
    pub(crate) secrets: Vec<String>,
    /// The scope that declares it. Only there it receives.
    pub(crate) declared_in: String,
}

/// Something inherited that a scope takes away.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct RemovedBody {
    /// `route`, `binding` or `entry`.
    pub(crate) what: String,
    pub(crate) name: String,
}

/// A setting or a ceiling, with where it comes from.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct SettingBody {
    pub(crate) name: String,
    /// A number or a truth value; `null` when it is off.
    pub(crate) value: Value,
    /// The scope that sets it; none when it is the default.
    pub(crate) set_in: Option<String>,
}

/// A secret that a scope may use.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct SecretNameBody {
    pub(crate) name: String,
    /// The scope that declares it.
    pub(crate) declared_in: String,
}
