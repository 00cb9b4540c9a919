//! What waits for a person.

use crate::api::wire::StatusBody;

/// How many things wait for a person.
pub(super) fn count(status: &StatusBody) -> usize {
    let held = status.blocked.iter().filter(|blocked| !blocked.reason.starts_with("scope_full:")).count();
    held + status.lanes.len()
}
