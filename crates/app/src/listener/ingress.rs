//! Which path of the webhook listener leads to which entry, for the configuration in force.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::scope::{EffectiveScope, Entry};
use domain::text::{EntryName, ScopeName};
use extension::{IngressEntry, PreparedIngress, Secrets};
use runtime::ActiveGeneration;

use crate::config::secrets::SecretReader;
use crate::daemon::extensions::Extensions;

/// An entry that can receive.
#[derive(Debug)]
pub(crate) struct Receiver {
    /// Its scope.
    pub(crate) scope: ScopeName,
    /// Its name.
    pub(crate) entry: EntryName,
    /// What it does with a request.
    pub(crate) prepared: Box<dyn PreparedIngress>,
    /// The secrets it may read.
    pub(crate) secrets: Arc<dyn Secrets>,
}

/// Entries by their path, such as `/hooks/main/builds`.
#[derive(Debug, Default)]
pub(crate) struct Table {
    receivers: BTreeMap<String, Arc<Receiver>>,
}

impl Table {
    /// The entries of a configuration. A scope takes webhooks for the entries that it declares itself, as each
    /// has one target; a disabled scope takes none.
    ///
    /// An entry's namespace is fixed while the daemon runs, so one that would change keeps what it had `before`.
    pub(crate) fn build(
        active: &ActiveGeneration,
        extensions: &Extensions,
        secrets: &Arc<SecretReader>,
        before: &Self,
    ) -> Self {
        let mut receivers = BTreeMap::new();
        for scope in active.scopes.values().map(|active| &active.scope).filter(|scope| !scope.disabled) {
            let own = scope.extensions.values().filter(|entry| entry.declared_in == scope.name);
            for entry in own {
                let Some(receiver) = receiver(scope, entry, extensions, secrets) else { continue };
                let prefix = receiver.prepared.path_prefix();
                let path = format!("/{prefix}/{}/{}", receiver.scope, receiver.entry);
                let kept = before
                    .receivers
                    .get(&path)
                    .filter(|known| known.prepared.namespace() != receiver.prepared.namespace());
                let receiver = kept.map_or_else(|| Arc::new(receiver), Arc::clone);
                receivers.insert(path, receiver);
            }
        }
        Self { receivers }
    }

    /// The entry of a decoded path, and what follows it. Names may hold slashes, so the longest path wins.
    pub(crate) fn find<'p>(&self, path: &'p str) -> Option<(&Arc<Receiver>, &'p str)> {
        let ends = path.match_indices('/').map(|(at, _slash)| at).chain([path.len()]);
        let mut ends: Vec<usize> = ends.collect();
        while let Some(end) = ends.pop() {
            if let Some(receiver) = self.receivers.get(&path[..end]) {
                return Some((receiver, path.get(end + 1..).unwrap_or_default()));
            }
        }
        None
    }

    /// Every entry with its path.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&String, &Arc<Receiver>)> {
        self.receivers.iter()
    }
}

fn receiver(
    scope: &EffectiveScope,
    entry: &Entry,
    extensions: &Extensions,
    secrets: &Arc<SecretReader>,
) -> Option<Receiver> {
    let asked = IngressEntry {
        name: entry.name.clone(),
        scope: scope.name.clone(),
        secret_names: entry.secrets.keys().cloned().collect(),
        config: entry.config.clone(),
    };
    match extensions.ingress(&asked, &entry.entry_type)?.prepare(&asked) {
        Ok(prepared) => Some(Receiver {
            scope: scope.name.clone(),
            entry: entry.name.clone(),
            prepared,
            secrets: Arc::new(secrets.select(entry.secrets.clone())),
        }),
        Err(problems) => {
            // It was valid when it was applied; the extension has become stricter since.
            let problems = problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
            tracing::error!(scope = %scope.name, entry = %entry.name, problems, "an entry takes no webhooks");
            None
        }
    }
}
