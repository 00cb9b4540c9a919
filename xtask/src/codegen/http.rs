//! The overview of the HTTP interface, from its `OpenAPI` document.

use serde_json::Value;

use super::{MARK, add, cell, unreadable};
use crate::error::Error;

const INTRODUCTION: &str = "\
The daemon answers on the socket `conduit.sock` in its home and on the loopback address `api_listen`. Every
path but `/healthz` wants `Authorization: Bearer` with the content of the file `token` in the home. Errors are
problem details (RFC 9457) with a `code` from [the list](../errors/README.md). Lists have `items` and `next`,
which is given back as `cursor`. [`openapi.json`](openapi.json) has every field.
";

/// The page.
pub(super) fn page(document: &Value) -> Result<String, Error> {
    let paths = document["paths"].as_object().ok_or_else(|| unreadable("the document", "it has no paths"))?;
    let mut text = format!(
        "# HTTP\n\n{MARK}\n\n{INTRODUCTION}\n| method | path | what it does |\n| --- | --- | --- |\n"
    );
    for (path, operations) in paths {
        for (method, operation) in operations.as_object().into_iter().flatten() {
            let summary = operation["summary"].as_str();
            let summary = summary.ok_or_else(|| unreadable(path, "an operation has no summary"))?;
            add(&mut text, format_args!("| {} | `{path}` | {} |\n", method.to_uppercase(), cell(summary)));
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn page_lists_every_operation() {
        let page = page(
            &json!({ "paths": { "/v1/a": { "get": { "summary": "See a" }, "post": { "summary": "Make a" } } } }),
        );
        let page = page.unwrap();
        assert!(page.ends_with("| GET | `/v1/a` | See a |\n| POST | `/v1/a` | Make a |\n"), "{page}");
    }

    #[test]
    fn page_refuses_an_operation_without_words() {
        assert!(page(&json!({ "paths": { "/v1/a": { "get": {} } } })).is_err());
    }
}
