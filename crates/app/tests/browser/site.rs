//! A daemon with a home of its own, and a browser that has logged in to it.

use super::chromium::Scripts;
use super::home::{Home, Served, emit, text, wait_for};
use super::page::Page;

/// What a test needs. What is first ends first.
pub(super) struct Site {
    pub(super) page: Page,
    served: Option<Served>,
    pub(super) home: Home,
    /// Where the pages are, without a path.
    origin: String,
}

impl Site {
    /// Starts everything and logs in, which ends at the runs.
    pub(super) fn open(home: Home, scripts: Scripts) -> Self {
        let served = home.serve();
        let page = Page::open(scripts);
        let mut site = Self { page, served: Some(served), home, origin: String::new() };
        let link = site.link();
        let (origin, _code) = link.split_once("/login").expect("the link leads to the login page");
        origin.clone_into(&mut site.origin);
        site.page.goto(&link);
        site.page.click("main form button");
        site.page.wait_for_text("h1", "Runs");
        if scripts == Scripts::On {
            site.wait_for_zone();
        }
        site
    }

    /// The first page is asked for again once it is known in which time zone its reader is.
    pub(super) fn wait_for_zone(&self) {
        let body = "return document.readyState === 'complete' \
                    && performance.getEntriesByType('navigation')[0].type === 'reload'";
        self.page.wait_for("the page in the reader's time", body, &[]);
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

    /// The path that the window shows.
    #[track_caller]
    pub(super) fn path(&self) -> String {
        let url = self.page.url();
        url.strip_prefix(&self.origin).unwrap_or_else(|| panic!("{url} is elsewhere")).to_owned()
    }

    /// Sends an Event of this type with a key of its own, waits until a run of it has begun and gives its id.
    #[track_caller]
    pub(super) fn begin(&self, event_type: &str, key: &str) -> String {
        self.home.json(&emit(event_type, key));
        self.run_of("test", key)
    }

    /// The newest run of a key, once there is one.
    #[track_caller]
    pub(super) fn run_of(&self, source: &str, key: &str) -> String {
        let words = ["runs", "list", "--key-source", source, "--key-external-id", key];
        wait_for("a run", || Some(self.home.json(&words)["items"][0]["id"].as_str()?.to_owned()))
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

/// The row of a run in a list.
pub(super) fn row(run: &str) -> String {
    format!("tr:has(a[href='/runs/{run}'])")
}

/// Writes on the page what a load of it would wipe off.
#[track_caller]
pub(super) fn mark(page: &Page) {
    page.script("window.isMarked = true", &[]);
}

#[track_caller]
pub(super) fn assert_not_loaded_again(page: &Page) {
    assert_eq!(page.script("return window.isMarked === true", &[]), true, "the page was loaded again");
}
