//! What changes about extensions in processes of their own.

use super::{ChangeKind, Plan};
use crate::config::model::Extension;

impl Plan {
    /// Compares the extensions that run outside. One that is started differently is started again by the apply.
    pub(super) fn extensions(&mut self, before: &[Extension], after: &[Extension]) {
        for extension in after {
            let name = &extension.name;
            let (what, words) = match before.iter().find(|known| known.name == *name) {
                None => (ChangeKind::Added, "runs in a process of its own"),
                Some(known) if known != extension => {
                    (ChangeKind::Changed, "is started again, in another way")
                }
                Some(_same) => continue,
            };
            self.add(format!("extensions.{name}"), what, format!("extension `{name}` {words}"));
        }
        for gone in before.iter().filter(|known| after.iter().all(|kept| kept.name != known.name)) {
            let name = &gone.name;
            let sentence = format!("extension `{name}` no longer runs in a process of its own");
            self.add(format!("extensions.{name}"), ChangeKind::Removed, sentence);
        }
    }
}
