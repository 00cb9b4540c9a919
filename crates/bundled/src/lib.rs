//! The extensions that come with the binary. They see only `extension`, as anyone else's would.

use std::sync::Arc;

use extension::{Handler, Ingress};

pub mod matching;
pub mod manual;
pub mod webhook;
pub mod github;
pub mod shell;
pub mod git;

mod signature;

use extension::table;

#[cfg(test)]
mod sample;

/// The names of the extensions that come with the binary and can run in processes of their own.
pub const PACKAGES: [&str; 4] = ["match", "manual", "webhook", "github"];

/// What one extension offers.
#[derive(Debug, Clone)]
pub struct Package {
    /// Its kinds of routes.
    pub handlers: Vec<Arc<dyn Handler>>,
    /// Its kinds of entries.
    pub ingresses: Vec<Arc<dyn Ingress>>,
}

/// What the extension of that name offers, each part under the extension's own name.
pub fn package(name: &str) -> Option<Package> {
    let handlers: Vec<_> = handlers().into_iter().filter(|handler| handler.name().as_str() == name).collect();
    let ingresses: Vec<_> = ingresses().into_iter().filter(|ingress| ingress.entry_type() == name).collect();
    (handlers.len() + ingresses.len() > 0).then_some(Package { handlers, ingresses })
}

/// Every kind of route.
pub fn handlers() -> Vec<Arc<dyn Handler>> {
    vec![Arc::new(matching::Matching), Arc::new(manual::Manual)]
}

/// Every kind of entry that takes webhooks.
pub fn ingresses() -> Vec<Arc<dyn Ingress>> {
    vec![Arc::new(webhook::Webhook), Arc::new(github::GitHub)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_package_is_one_and_nothing_is_left_out() {
        let packages = PACKAGES.map(|name| package(name).expect("it is there"));
        let offered: usize = packages.iter().map(|it| it.handlers.len() + it.ingresses.len()).sum();
        assert_eq!(offered, handlers().len() + ingresses().len());
        assert!(package("none").is_none());
    }
}
