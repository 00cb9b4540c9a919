//! The key that a list is narrowed to.

use clap::Args;

use crate::client::Route;

/// A key, in its two parts.
#[derive(Debug, Args)]
pub(super) struct KeyArgs {
    /// Only with this key: its namespace
    #[arg(long, value_name = "NS", requires = "key_external_id")]
    key_source: Option<String>,
    /// Only with this key: its identifier
    #[arg(long, value_name = "ID", requires = "key_source")]
    key_external_id: Option<String>,
}

impl KeyArgs {
    pub(super) fn of(&self, route: Route) -> Route {
        route
            .with_some("key_source", self.key_source.as_ref())
            .with_some("key_external_id", self.key_external_id.as_ref())
    }
}
