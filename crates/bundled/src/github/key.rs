//! The key of a delivery: what it is about, so that everything about one thing reaches one Work in order.
//!
//! | about | external id |
//! | --- | --- |
//! | a pull request, its reviews, comments on it | `<owner>/<repo>/pull/<number>` |
//! | an issue, comments on it | `<owner>/<repo>/issue/<number>` |
//! | a push | `<owner>/<repo>/ref/<ref>` |
//! | anything else | none |

use extension::{ExternalId, Key, SourceName};
use serde_json::Value;

use super::body::Body;

/// The key, when the body names one.
pub(super) fn key(namespace: &SourceName, event: &str, body: &Body) -> Option<Key> {
    let repository = body.text("/repository/full_name")?;
    let about = if let Some(number) = number(body, "/pull_request/number") {
        format!("pull/{number}")
    } else if let Some(number) = number(body, "/issue/number") {
        let is_pull = body.get("/issue/pull_request").is_some_and(|pull| !pull.is_null());
        format!("{}/{number}", if is_pull { "pull" } else { "issue" })
    } else if event == "push" {
        format!("ref/{}", body.text("/ref")?)
    } else {
        return None;
    };
    let external_id = ExternalId::new(format!("{repository}/{about}")).ok()?;
    Some(Key { source: namespace.clone(), external_id })
}

fn number(body: &Body, pointer: &str) -> Option<u64> {
    body.get(pointer).and_then(Value::as_u64)
}
