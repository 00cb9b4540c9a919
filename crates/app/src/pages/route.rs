//! Every page's path.

use hyper::Method;

use crate::api::route::{Found, Route, find_in, get};

/// What a request for a page asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Page {
    /// A style sheet, the script, the icon. They hold no data, so everyone may have them.
    Asset,
    /// The list of runs, which is the first page.
    Runs,
}

/// Every page.
static PAGES: [Route<Page>; 2] = [
    get("/", Page::Runs, &["cursor", "q", "scope", "state", "span"]),
    get("/assets/{name}", Page::Asset, &[]),
];

/// Finds the page of a request.
pub(crate) fn find<'p>(method: &Method, path: &'p str) -> Found<'p, Page> {
    find_in(&PAGES, method, path)
}
