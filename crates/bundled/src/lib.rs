//! The extensions that come with the binary. They see only `extension`, as anyone else's would.

use std::sync::Arc;

use extension::{Handler, Ingress};

pub mod matching;
pub mod manual;
pub mod webhook;
pub mod github;
pub mod shell;

mod signature;

use extension::table;

#[cfg(test)]
mod sample;

/// Every kind of route.
pub fn handlers() -> Vec<Arc<dyn Handler>> {
    vec![Arc::new(matching::Matching), Arc::new(manual::Manual)]
}

/// Every kind of entry that takes webhooks.
pub fn ingresses() -> Vec<Arc<dyn Ingress>> {
    vec![Arc::new(webhook::Webhook), Arc::new(github::GitHub)]
}
