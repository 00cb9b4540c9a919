//! `github`: the webhooks of a GitHub repository or organization.
//!
//! | key of the configuration | meaning |
//! | --- | --- |
//! | `namespace` | the source of everything it accepts; required |
//! | `webhook_secret` | the name of the secret that signs; required |
//! | `forks` | `ignore` (default) or `accept` what comes from a fork, or may |
//!
//! Every delivery with a right signature becomes one `github.delivery` Event under GitHub's own delivery id,
//! whatever it is about, so that a redelivery is a duplicate and nothing that was sent is missing from the
//! history. The Event holds the facts of [`facts::Facts`], not the body, which may have 25 MiB.
//!
//! Which deliveries count as a fork's is [`fork`]'s subject, and their keys are [`key`]'s.

pub mod facts;
pub mod fork;
mod body;
mod key;
mod subject;
#[cfg(test)]
mod tests;

use extension::{
    BoxFuture, Code, ConfigProblem, DeliveryId, EventType, HttpDelivery, Ingress, IngressDelivery,
    IngressEntry, IngressRefusal, Payload, PreparedIngress, Secrets, SourceName,
};

use self::body::Body;
use self::facts::Facts;
use self::fork::Origin;
use crate::signature;
use crate::table::Table;

/// The most bytes of a body, which is the most GitHub sends: 25 MiB.
pub const BODY_BYTES_MAX: usize = 25 << 20;
/// The type of every Event it accepts.
pub const EVENT_TYPE: &str = "github.delivery";

/// Bytes of GitHub's own names for an event.
const EVENT_NAME_BYTES_MAX: usize = 100;

/// The kind of entry of that name.
#[derive(Debug, Clone, Copy, Default)]
pub struct GitHub;

impl Ingress for GitHub {
    fn entry_type(&self) -> &'static str {
        "github"
    }

    fn prepare(&self, entry: &IngressEntry) -> Result<Box<dyn PreparedIngress>, Vec<ConfigProblem>> {
        const FORKS: &[(&str, Forks)] = &[("ignore", Forks::Ignore), ("accept", Forks::Accept)];
        let mut problems = Vec::new();
        let table = Table::root(&entry.config, &["namespace", "webhook_secret", "forks"], &mut problems);
        let namespace = table.namespace("namespace", &mut problems);
        let secret = table.secret("webhook_secret", &entry.secret_names, &mut problems);
        let forks = table.word("forks", FORKS, Forks::Ignore, &mut problems);
        match (namespace, secret) {
            (Some(namespace), Some(secret)) if problems.is_empty() => {
                Ok(Box::new(Entry { namespace, secret, forks }))
            }
            (_namespace, _secret) => Err(problems),
        }
    }
}

/// The facts of a delivery, given its event and its JSON body, without a delivery: nothing is accepted.
///
/// # Errors
/// Why there are none, in words.
pub fn facts(event: &str, body: &[u8]) -> Result<Facts, &'static str> {
    if !is_event(event) {
        return Err("the event is not the name of one");
    }
    let body = Body::read(None, body)?;
    let origin = fork::origin(&body);
    Ok(Facts::of(event, &body, origin))
}

fn is_event(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    !name.is_empty() && name.len() <= EVENT_NAME_BYTES_MAX && name.bytes().all(is_letter)
}

/// What becomes of a fork's deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Forks {
    /// They are recorded and start nothing.
    Ignore,
    /// They are as good as any.
    Accept,
}

#[derive(Debug)]
struct Entry {
    namespace: SourceName,
    /// The name of the secret.
    secret: String,
    forks: Forks,
}

impl PreparedIngress for Entry {
    fn namespace(&self) -> &SourceName {
        &self.namespace
    }

    fn path_prefix(&self) -> &'static str {
        "github"
    }

    fn describe(&self) -> String {
        match self.forks {
            Forks::Ignore => "GitHub deliveries, those of forks recorded only".to_owned(),
            Forks::Accept => "GitHub deliveries, those of forks too".to_owned(),
        }
    }

    fn body_bytes_max(&self) -> usize {
        BODY_BYTES_MAX
    }

    fn receive<'a>(
        &'a self,
        request: &'a HttpDelivery,
        secrets: &'a dyn Secrets,
    ) -> BoxFuture<'a, Result<Vec<IngressDelivery>, IngressRefusal>> {
        Box::pin(async move {
            self.authenticate(request, secrets).await?;
            self.read(request).map(|delivery| vec![delivery])
        })
    }
}

impl Entry {
    async fn authenticate(
        &self,
        request: &HttpDelivery,
        secrets: &dyn Secrets,
    ) -> Result<(), IngressRefusal> {
        if !request.path_tail.is_empty() {
            return Err(IngressRefusal::NotFound);
        }
        let header = request.header("x-hub-signature-256").and_then(|header| header.strip_prefix("sha256="));
        let shown = header.and_then(signature::from_hex).ok_or(IngressRefusal::Unauthorized)?;
        let secret = signature::secret(secrets, &self.secret).await?;
        if signature::is_hmac_of(&shown, &request.body, &secret) {
            Ok(())
        } else {
            Err(IngressRefusal::Unauthorized)
        }
    }

    fn read(&self, request: &HttpDelivery) -> Result<IngressDelivery, IngressRefusal> {
        let malformed = |why: &str| IngressRefusal::Malformed(why.to_owned());
        let id =
            request.header("x-github-delivery").ok_or_else(|| malformed("X-GitHub-Delivery is missing"))?;
        let delivery_id = DeliveryId::new(id).map_err(|error| malformed(&error.to_string()))?;
        let event = request.header("x-github-event").ok_or_else(|| malformed("X-GitHub-Event is missing"))?;
        if !is_event(event) {
            return Err(malformed("X-GitHub-Event is not the name of an event"));
        }
        let body = Body::read(request.header("content-type"), &request.body).map_err(malformed)?;
        let origin = fork::origin(&body);
        let facts = Facts::of(event, &body, origin);
        let key = key::key(&self.namespace, event, &body);
        let payload =
            serde_json::to_vec(&facts).map_err(|_source| malformed("its facts cannot be written"))?;
        Ok(IngressDelivery {
            delivery_id,
            event_type: EventType::known(EVENT_TYPE),
            key,
            occurred_at: None,
            payload: Payload::new(payload).map_err(|error| malformed(&error.to_string()))?,
            drop: self.drop(origin),
        })
    }

    fn drop(&self, origin: Origin) -> Option<(Code, String)> {
        let reason = match (self.forks, origin) {
            (Forks::Accept, _) | (Forks::Ignore, Origin::Own) => return None,
            (Forks::Ignore, Origin::Fork) => "it comes from a fork, and this entry ignores forks",
            (Forks::Ignore, Origin::Unknown) => {
                "nothing in it proves that it does not come from a fork, and this entry ignores forks"
            }
        };
        Some((Code::known("fork"), reason.to_owned()))
    }
}
