//! A page that could not be shown, and what to do next.

use askama::Template;
use hyper::Response;

use super::Visit;
use super::frame::{Frame, Place};
use super::html;
use crate::api::body::Body;
use crate::api::failure::Failure;

#[derive(Debug, Template)]
#[template(path = "failed.html")]
struct Failed {
    frame: Frame,
    title: &'static str,
    detail: String,
    code: &'static str,
}

/// Shows a failure.
pub(super) async fn page(visit: &Visit, failure: Failure) -> Response<Body> {
    let code = failure.code();
    let frame = match Box::pin(Frame::read(visit, Place::Elsewhere)).await {
        Ok(frame) => frame,
        Err(_also_failed) => Frame::bare(visit, Place::Elsewhere),
    };
    let detail = sentence(failure.detail());
    let template = Failed { frame, title: code.title(), detail, code: code.as_str() };
    html::with_status(code.status(), &template).unwrap_or_else(|_unrendered| failure.into_response())
}

/// A detail as a sentence.
pub(super) fn sentence(detail: &str) -> String {
    let mut letters = detail.chars();
    let first = letters.next().map(char::to_uppercase);
    let text: String = first.into_iter().flatten().chain(letters).collect();
    if text.ends_with(['.', '!', '?']) { text } else { format!("{text}.") }
}
