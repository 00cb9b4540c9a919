//! A daemon with a home of its own, and a browser that has logged in to it.

use serde_json::Value;

use super::chromium::Scripts;
use super::home::{Home, Served, text};
use super::page::Page;

/// What a test needs. What is first ends first.
pub(super) struct Site {
    pub(super) page: Page,
    served: Option<Served>,
    pub(super) home: Home,
    /// Where the pages are, without a path.
    pub(super) origin: String,
}

impl Site {
    /// Starts everything and logs in.
    pub(super) fn open(home: Home, scripts: Scripts) -> Self {
        let served = home.serve();
        let mut site = Self { page: Page::open(scripts), served: Some(served), home, origin: String::new() };
        let link = site.link();
        site.page.goto(&link);
        let url = site.page.url();
        let (scheme, rest) = url.split_once("://").expect("an address has a scheme");
        let host = rest.split('/').next().expect("an address has a host");
        site.origin = format!("{scheme}://{host}");
        site
    }

    /// A link that logs in once.
    #[track_caller]
    pub(super) fn link(&self) -> String {
        text(&self.home.json(&["open"]), "/url").to_owned()
    }

    /// Goes to a page.
    #[track_caller]
    pub(super) fn goto(&self, path: &str) {
        self.page.goto(&format!("{}{path}", self.origin));
    }

    /// Sends an Event of this type with a key of its own and gives the answer.
    #[track_caller]
    pub(super) fn emit(&self, event_type: &str, key: &str) -> Value {
        self.home.emit(event_type, key)
    }

    /// Kills the daemon.
    pub(super) fn kill(&mut self) {
        self.served.take().expect("a daemon runs").kill();
    }

    /// Starts the daemon again.
    pub(super) fn serve(&mut self) {
        self.served = Some(self.home.serve());
    }
}
