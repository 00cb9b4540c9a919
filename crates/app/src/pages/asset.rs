//! What pages are made with: a style sheet, a script and an icon, compiled in.
//!
//! The name of each has the digest of its content, so a browser may keep it for ever and never has an old one.

use std::sync::LazyLock;

use bytes::Bytes;
use hyper::Response;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use sha2::{Digest as _, Sha256};

use crate::api::body::Body;
use crate::auth;

const TOKENS: &str = include_str!("../../assets/tokens.css");
const STYLE: &str = include_str!("../../assets/app.css");
const SCRIPT: &str = include_str!("../../assets/app.js");
const ICON: &str = include_str!("../../assets/icon.svg");

/// Hexadecimal digits of a digest that stand in a name.
const DIGITS: usize = 12;

/// A file with its name.
struct Asset {
    path: String,
    kind: &'static str,
    content: Bytes,
}

impl Asset {
    fn new(stem: &str, extension: &str, kind: &'static str, content: Bytes) -> Self {
        let digest = Sha256::digest(&content);
        let digest = auth::hex(&digest[..DIGITS / 2]);
        Self { path: format!("/assets/{stem}-{digest}.{extension}"), kind, content }
    }
}

static ASSETS: LazyLock<[Asset; 3]> = LazyLock::new(|| {
    let style = Bytes::from([TOKENS, STYLE].concat());
    [
        Asset::new("app", "css", "text/css; charset=utf-8", style),
        Asset::new("app", "js", "text/javascript; charset=utf-8", Bytes::from_static(SCRIPT.as_bytes())),
        Asset::new("icon", "svg", "image/svg+xml", Bytes::from_static(ICON.as_bytes())),
    ]
});

/// Where a page finds them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Paths {
    pub(super) style: &'static str,
    pub(super) script: &'static str,
    pub(super) icon: &'static str,
}

/// Where a page finds them.
pub(super) fn paths() -> Paths {
    let [style, script, icon] = &*ASSETS;
    Paths { style: &style.path, script: &script.path, icon: &icon.path }
}

/// One of them, by the last part of its path.
pub(super) fn serve(name: &str) -> Option<Response<Body>> {
    let asset = ASSETS.iter().find(|asset| asset.path.strip_prefix("/assets/") == Some(name))?;
    let mut response = Response::new(Body::full(asset.content.clone()));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(asset.kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable"));
    Some(response)
}

#[cfg(test)]
mod tests {
    use super::{paths, serve};

    #[test]
    fn what_a_page_names_is_served_and_nothing_else() {
        let paths = paths();
        for path in [paths.style, paths.script, paths.icon] {
            let name = path.strip_prefix("/assets/").unwrap();
            assert!(serve(name).is_some(), "{path}");
        }
        for other in ["", "app.css", "app-000000000000.css", "../Cargo.toml"] {
            assert!(serve(other).is_none(), "{other}");
        }
    }

    #[test]
    fn nothing_is_asked_of_another_server() {
        for text in [super::TOKENS, super::STYLE, super::SCRIPT, super::ICON] {
            let text = text.replace("http://www.w3.org/2000/svg", "");
            assert!(!text.contains("http://") && !text.contains("https://") && !text.contains("@import"));
        }
    }
}
