//! A template as an answer.

use askama::Template;
use hyper::header::{CONTENT_TYPE, HeaderValue, LOCATION};
use hyper::{Response, StatusCode};

use crate::api::body::Body;
use crate::api::failure::Failure;
use crate::api::server::Answer;
use crate::error_code::ErrorCode;

/// Renders a template.
///
/// # Errors
/// When a value in it refuses to be shown, which is a bug.
pub(super) fn page(template: &impl Template) -> Answer {
    with_status(StatusCode::OK, template)
}

/// Renders a template as an answer with a status.
///
/// # Errors
/// As [`page`].
pub(super) fn with_status(status: StatusCode, template: &impl Template) -> Answer {
    let text = template.render().map_err(|error| {
        tracing::error!(%error, "a page could not be rendered");
        Failure::new(ErrorCode::Bug, "the page could not be made; the daemon's log says more")
    })?;
    let mut response = Response::new(Body::full(text));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    Ok(response)
}

/// Sends the reader to another page of ours, which is then asked for with `GET`.
pub(super) fn see(path: &str) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    let path = HeaderValue::from_str(path).unwrap_or_else(|_invalid| HeaderValue::from_static("/"));
    response.headers_mut().insert(LOCATION, path);
    response
}
