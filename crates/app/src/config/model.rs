//! The configuration as it is written: one type for each table of the file.
//!
//! These types say what a file may hold and nothing else. Names are plain text here and become the domain's
//! types in [`super::lower`], so that every bad name is reported and not only the first. The JSON Schema comes
//! from these types, and files are checked against it, so that a key is described in one place only.

use std::collections::BTreeMap;

use domain::config::limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

/// The configuration of Open Conduit.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Open Conduit configuration")]
pub(crate) struct Model {
    /// Where the daemon listens. What is here takes effect when the daemon starts.
    #[serde(default, skip_serializing_if = "Daemon::is_default")]
    pub(crate) daemon: Daemon,
    /// Extensions that run in processes of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) extensions: Vec<Extension>,
    /// The scopes, in any order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) scopes: Vec<Scope>,
}

/// Where the daemon listens.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Daemon {
    /// The address of the API. Default 127.0.0.1:7717; port 0 picks a free one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) api_listen: Option<String>,
    /// The address that webhooks are sent to, or `off`. Default 127.0.0.1:7718.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) webhook_listen: Option<String>,
    /// Host names that webhooks may be addressed to, besides the listener's own address; with `behind_proxy` the
    /// interface and the page as well. Links name the first of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) public_hosts: Vec<String>,
    /// Whether a proxy that speaks TLS stands before both listeners. Without one they only listen on loopback
    /// addresses, and the page is for this machine alone.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) behind_proxy: bool,
}

impl Daemon {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// An extension in a process of its own. Routes name its handlers, and entries its types: those that are called what it
/// is called, or begin with its name and a full stop.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Extension {
    /// Its name, unique in the file: letters, digits, `_` and `-`. With the name of one that comes with the program it
    /// takes that one's place.
    pub(crate) name: String,
    /// The program and its arguments, run in the home. It may be left out for an extension that comes with the program,
    /// which then runs in a process of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) command: Vec<String>,
    /// Variables of the daemon's environment that it gets besides `PATH`, `HOME`, `USER`, `LOGNAME`, `LANG`, `TZ`,
    /// `TMPDIR`, `SHELL` and those that begin with `LC_`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) pass_env: Vec<String>,
    /// Environment variables, each with a reference to the secret it holds: `env:NAME`, `file:PATH` or
    /// `cmd:PROGRAM ARGS`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) secrets: BTreeMap<String, String>,
}

/// A scope. It inherits from its parent what it does not declare.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scope {
    /// Its name, unique in the file.
    pub(crate) name: String,
    /// The scope it inherits from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) parent: Option<String>,
    /// Whether it, and everything below it, neither routes nor starts anything.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) disabled: bool,
    /// Settings, inherited one by one.
    #[serde(default, skip_serializing_if = "Settings::is_empty")]
    pub(crate) settings: Settings,
    /// Upper bounds on settings, for this scope and everything below it.
    #[serde(default, skip_serializing_if = "Ceilings::is_empty")]
    pub(crate) ceilings: Ceilings,
    /// Secrets by name, each a reference: `env:NAME`, `file:PATH` or `cmd:PROGRAM ARGS`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) secrets: BTreeMap<String, String>,
    /// What can be run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) bindings: Vec<Binding>,
    /// Which Event starts what, asked in order; the first that matches wins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) routes: Vec<Route>,
    /// Entries of extensions, such as a webhook that is received.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) extensions: Vec<Entry>,
    /// Scopes whose Events may end this scope's Waits. It gives no authority to write there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) read_scopes: Vec<String>,
    /// Scopes in which runs of this scope may create Works. It gives no right to read there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) write_scopes: Vec<String>,
    /// How much its turns may use, each a limit on one unit. They are inherited, and a scope below can only lower a
    /// limit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) budgets: Vec<Budget>,
}

/// A limit on what may be used of a unit. Once it is reached, no further turn starts: the Work is held until an
/// operator releases it, which lets one turn through, or the limit is raised.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Budget {
    /// What is counted: `turns` and `attempts` are counted by the runtime; `usd`, `tokens`, `minutes` or any other
    /// unit is what executors report.
    pub(crate) unit: String,
    /// Whose use counts: that of each `work`, of the `scope`, or of `all` scopes together.
    #[schemars(extend("enum" = ["work", "scope", "all"]))]
    pub(crate) per: String,
    /// Over which time: the whole `life`, a UTC `day`, or a UTC `week` from Monday on.
    #[schemars(extend("enum" = ["life", "day", "week"]))]
    pub(crate) window: String,
    /// At which amount no further turn starts, with at most three decimals.
    pub(crate) limit: Number,
    /// At which share of the limit a `core.budget.warning` Event is published, in percent. Default 80.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub(crate) warning_percent: Option<u32>,
}

/// Settings of a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    /// The longest an attempt may be active, in seconds. Default 3600.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = limits::TIMEOUT_SECONDS_MAX))]
    pub(crate) timeout_seconds: Option<u32>,
    /// The longest an attempt may write nothing to its output, in seconds, before it is stopped and fails as
    /// `inactive`. Default 0, which is off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = limits::INACTIVITY_SECONDS_MAX))]
    pub(crate) inactivity_seconds: Option<u32>,
    /// How many attempts may run in the scope at once. Default 16.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = limits::CONCURRENCY_MAX))]
    pub(crate) concurrency: Option<u32>,
    /// How many of a Work's newest runs keep their logs, files and the bodies of their input. Default 20.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = limits::KEPT_EXECUTIONS_MAX))]
    pub(crate) kept_executions: Option<u32>,
    /// How many days after its end finished Work keeps its logs, files and the bodies of its input; standing Work does
    /// not end. Default 0, which is for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = limits::KEPT_FINISHED_DAYS_MAX))]
    pub(crate) kept_finished_days: Option<u32>,
    /// The deepest a derived Event may stand in its chain. Default 32. It holds for the whole chain from its first
    /// Event on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = limits::CAUSAL_DEPTH_MAX))]
    pub(crate) causal_max_depth: Option<u32>,
    /// The most derived Events that one first Event may lead to in a UTC minute. Default 128. It holds for the
    /// whole chain from its first Event on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = limits::CAUSAL_PER_MINUTE_MAX))]
    pub(crate) causal_per_minute: Option<u32>,
    /// How many failures in a row a Work may have before it is no longer tried again by itself. Default 3: it
    /// waits 5 minutes after the first and 10 after the second. Standing Work is not tried again at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = limits::FAILURE_BUDGET_MAX))]
    pub(crate) failure_budget: Option<u32>,
    /// Whether Work that used up its failure budget has failed for good, unless input is pending. Default false,
    /// and then it waits for an operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) terminal_on_exhaustion: Option<bool>,
}

impl Settings {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Upper bounds on settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ceilings {
    /// The most `timeout_seconds` may be, in settings and bindings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = limits::TIMEOUT_SECONDS_MAX))]
    pub(crate) timeout_seconds: Option<u32>,
    /// The most `concurrency` may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = limits::CONCURRENCY_MAX))]
    pub(crate) concurrency: Option<u32>,
    /// The most `causal_max_depth` may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = limits::CAUSAL_DEPTH_MAX))]
    pub(crate) causal_max_depth: Option<u32>,
    /// The most `causal_per_minute` may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = limits::CAUSAL_PER_MINUTE_MAX))]
    pub(crate) causal_per_minute: Option<u32>,
    /// The most `failure_budget` may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = limits::FAILURE_BUDGET_MAX))]
    pub(crate) failure_budget: Option<u32>,
}

impl Ceilings {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Who makes the directory ready that a run works in.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Resource {
    /// The provider: `git`.
    pub(crate) provider: String,
    /// The provider's own configuration. For `git` it is a table with `checkout`, `mode` (`shared`, `fresh` or
    /// `worktree`), `remote`, `branch` and `retain_failed_seconds`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) config: Option<Value>,
}

impl Resource {
    /// As an extension sees it.
    pub(crate) fn to_value(&self) -> Value {
        serde_json::to_value(self).expect("a text and a value become JSON")
    }
}

/// What can be run. With `disabled = true` and nothing but a name it takes an inherited binding away.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Binding {
    /// Its name, unique within the scope. It replaces an inherited binding of that name whole.
    pub(crate) name: String,
    /// Takes the inherited binding of that name away.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) disabled: bool,
    /// The executor, such as `shell`. Required unless disabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) executor: Option<String>,
    /// The executor's own configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) config: Option<Value>,
    /// The workspace its runs need, made ready before each starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) resource: Option<Resource>,
    /// The longest an attempt may be active, in seconds; the scope's setting by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = limits::TIMEOUT_SECONDS_MAX))]
    pub(crate) timeout_seconds: Option<u32>,
    /// The longest an attempt may write nothing to its output, in seconds; the scope's setting by default, and 0 turns
    /// it off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = limits::INACTIVITY_SECONDS_MAX))]
    pub(crate) inactivity_seconds: Option<u32>,
    /// How failed attempts are tried again, in place of the scope's `failure_budget`; also those of standing Work,
    /// which is not tried again otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) retry: Option<Retry>,
    /// What the account that its executor uses is called, such as `claude/team`. When a run says that its account is
    /// used up, no run of any binding with the same credential starts until the reset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) credential: Option<String>,
    /// Environment variables, each with the name of the secret it holds.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) secrets: BTreeMap<String, String>,
}

/// How a binding's failed attempts are tried again.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Retry {
    /// How many attempts there may be in a row, the first included.
    #[schemars(range(min = 1, max = limits::FAILURE_BUDGET_MAX))]
    pub(crate) attempts: u32,
    /// The wait after the first failure, such as `30s`, `5m`, `2h` or `1d`; the second waits twice as long, and so
    /// on. From a second to 7 days. Default `5m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) backoff: Option<String>,
}

/// Which Event starts what. With `disabled = true` and nothing but a name it takes an inherited route away.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Route {
    /// Its name, unique within the scope. It replaces an inherited route of that name in its place.
    pub(crate) name: String,
    /// Takes the inherited route of that name away.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) disabled: bool,
    /// The handler, such as `match`. Required unless disabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) handler: Option<String>,
    /// The binding that runs what it matches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) binding: Option<String>,
    /// What happens to a match while the Work runs: `queue`, the default, keeps it for the next run; `inject` gives it
    /// to the one that runs; `interrupt` ends that one for the next; `drop` records it and nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["queue", "inject", "interrupt", "drop", null]))]
    pub(crate) active_policy: Option<String>,
    /// What takes the place of `inject` or `interrupt` where a run's executor cannot do it: `queue` or `drop`. Without
    /// one, a binding whose executor cannot is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["queue", "drop", null]))]
    pub(crate) fallback: Option<String>,
    /// What happens when an executor that can do it fails at it: `queue` leaves the Event to the next run. By default it
    /// is tried again for as long as the run goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["queue", null]))]
    pub(crate) on_error: Option<String>,
    /// The handler's own configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) config: Option<Value>,
}

/// An entry of an extension. With `disabled = true` and nothing but a name it takes an inherited entry away.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    /// Its name, unique within the scope. It replaces an inherited entry of that name whole.
    pub(crate) name: String,
    /// Takes the inherited entry of that name away.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) disabled: bool,
    /// The type of the extension, such as `webhook`. Required unless disabled.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "type")]
    pub(crate) kind: Option<String>,
    /// The names of the secrets it may read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) secret_names: Vec<String>,
    /// The extension's own configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) config: Option<Value>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes the field by reference")]
fn is_false(value: &bool) -> bool {
    !*value
}

/// An extension's own configuration; an absent one is an empty table.
pub(crate) fn or_empty(config: Option<&Value>) -> Value {
    config.cloned().unwrap_or_else(|| Value::Object(serde_json::Map::new()))
}
