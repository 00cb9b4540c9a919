//! What stands in for a type of entries of another process.
//!
//! The namespace is the `namespace` of the entry's own configuration, for every entry of every extension: it must be
//! known while the process is away, since it is what keeps others from delivering in it.

use std::sync::{Arc, Mutex, PoisonError};

use extension::{
    BoxFuture, ConfigProblem, HttpDelivery, Ingress, IngressDelivery, IngressEntry, IngressRefusal,
    PreparedIngress, Secrets, SourceName,
};

use super::connection::{CallError, Connection, is_forgotten};
use super::{CALL_WITHIN, Process, recall};
use crate::convert;
use crate::wire::{PrepareEntryResult, ReceiveResult, ReleaseEntryParams, SecretBody, method};

/// The most bytes of a body that an extension may ask for: 25 MiB.
const BODY_BYTES_MAX: usize = 25 << 20;
/// What a body may have before the extension has said anything about it: 1 MiB.
const BODY_BYTES_UNKNOWN: usize = 1 << 20;

/// The namespace of an entry of an extension in another process.
///
/// # Errors
/// What is wrong with the `namespace` of its configuration.
pub fn namespace(entry: &IngressEntry) -> Result<SourceName, Vec<ConfigProblem>> {
    let text = entry.config.get("namespace").and_then(|namespace| namespace.as_str());
    let Some(text) = text else {
        let message = "is missing: the source of everything that the entry accepts";
        return Err(vec![ConfigProblem::at("namespace", message)]);
    };
    SourceName::new(text).map_err(|error| vec![ConfigProblem::at("namespace", error.to_string())])
}

#[derive(Debug)]
pub(super) struct Outside {
    process: Arc<Process>,
    entry_type: String,
    path_prefix: String,
}

impl Outside {
    pub(super) fn new(process: Arc<Process>, entry_type: &str, path_prefix: &str) -> Self {
        Self { process, entry_type: entry_type.to_owned(), path_prefix: path_prefix.to_owned() }
    }
}

impl Ingress for Outside {
    fn entry_type(&self) -> &str {
        &self.entry_type
    }

    /// It refuses only what has no namespace: whoever applies a configuration asks with [`Process::check_entry`] first.
    fn prepare(&self, entry: &IngressEntry) -> Result<Box<dyn PreparedIngress>, Vec<ConfigProblem>> {
        let namespace = namespace(entry)?;
        Ok(Box::new(Entry {
            process: Arc::clone(&self.process),
            kind: self.entry_type.clone(),
            path_prefix: self.path_prefix.clone(),
            namespace,
            known: Mutex::new(recall(&self.process.entries, &self.entry_type, &entry.config)),
            declared: entry.clone(),
            handle: self.process.handle(),
            prepared: tokio::sync::Mutex::new(0),
        }))
    }
}

#[derive(Debug)]
struct Entry {
    process: Arc<Process>,
    kind: String,
    path_prefix: String,
    namespace: SourceName,
    declared: IngressEntry,
    handle: String,
    /// What the process said about it last; none before it ever has.
    known: Mutex<Option<PrepareEntryResult>>,
    /// The start of the process that knows the handle.
    prepared: tokio::sync::Mutex<u64>,
}

impl Entry {
    fn known<T>(&self, read: impl FnOnce(&PrepareEntryResult) -> T) -> Option<T> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(read)
    }

    /// Prepares it where that start of the process has not.
    async fn prepare(&self, connection: &Connection) -> Result<(), CallError> {
        let mut prepared = self.prepared.lock().await;
        if *prepared != connection.start {
            let asked = self.process.prepare_entry(connection, &self.handle, &self.kind, &self.declared);
            *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some(asked.await?);
            *prepared = connection.start;
        }
        Ok(())
    }

    async fn ask(
        &self,
        request: &HttpDelivery,
        secrets: &dyn Secrets,
    ) -> Result<Vec<IngressDelivery>, IngressRefusal> {
        let ready = self.process.ready().map_err(IngressRefusal::Unavailable)?;
        let connection = &ready.connection;
        self.prepare(connection).await.map_err(|error| self.refusal(&error))?;
        let mut params = convert::receiving(&self.handle, request);
        for name in &self.declared.secret_names {
            let (value, problem) = match secrets.resolve(name).await {
                Ok(secret) => (Some(secret.expose().to_owned()), None),
                Err(error) => (None, Some(error.reason)),
            };
            params.secrets.push(SecretBody { name: name.clone(), value, problem });
        }
        let asked = connection.call::<ReceiveResult>(method::RECEIVE, &params, CALL_WITHIN).await;
        if asked.as_ref().is_err_and(is_forgotten) {
            *self.prepared.lock().await = 0;
        }
        let deliveries = asked.map_err(|error| self.refusal(&error))?.deliveries.into_iter();
        let read: Result<Vec<_>, _> = deliveries.map(convert::delivered).collect();
        read.map_err(|error| {
            let name = &self.process.name;
            IngressRefusal::Unavailable(format!(
                "extension `{name}` answered what cannot be accepted: {error}"
            ))
        })
    }

    fn refusal(&self, error: &CallError) -> IngressRefusal {
        if let CallError::Refused(body) = error
            && let Some(refusal) = convert::refused(body)
        {
            return refusal;
        }
        IngressRefusal::Unavailable(format!("extension `{}` does not answer: {error}", self.process.name))
    }
}

impl PreparedIngress for Entry {
    fn namespace(&self) -> &SourceName {
        &self.namespace
    }

    fn path_prefix(&self) -> &str {
        &self.path_prefix
    }

    fn describe(&self) -> String {
        self.known(|known| known.describe.clone())
            .unwrap_or_else(|| format!("what extension `{}` reads", self.process.name))
    }

    fn body_bytes_max(&self) -> usize {
        self.known(|known| known.body_bytes_max).unwrap_or(BODY_BYTES_UNKNOWN).min(BODY_BYTES_MAX)
    }

    fn receive<'a>(
        &'a self,
        request: &'a HttpDelivery,
        secrets: &'a dyn Secrets,
    ) -> BoxFuture<'a, Result<Vec<IngressDelivery>, IngressRefusal>> {
        Box::pin(self.ask(request, secrets))
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if let Ok(ready) = self.process.ready() {
            ready.connection.notify(method::RELEASE_ENTRY, ReleaseEntryParams { entry: self.handle.clone() });
        }
    }
}
