//! `webhook`: signed webhooks of any sender, each request one Event with the body as it came.
//!
//! | key of the configuration | meaning |
//! | --- | --- |
//! | `namespace` | the source of everything it accepts; required |
//! | `verify` | `{ hmac = { header, secret, prefix, encoding } }`, `{ standard_webhooks = { secrets, tolerance_seconds } }` or `{ token = { secret } }`; required |
//! | `type` | an event type, or `{ header, prefix }` or `{ field, prefix }` to read it from; required, but for `standard_webhooks`, where it is the body's `/type` |
//! | `delivery_id` | `{ header }` or `{ field }`; not with `standard_webhooks` |
//! | `key` | `{ field, prefix }`; the key's source is the namespace |
//!
//! A `field` is a JSON pointer into the body, a `prefix` is put before what was read. With `hmac` the header
//! holds `prefix` and the HMAC-SHA-256 of the raw body, as `hex` (default) or `base64`. With `token` the URL
//! is the secret: `/hooks/<scope>/<entry>/<token>`, and a wrong one looks like no entry at all.
//!
//! With `standard_webhooks` a request has the headers `webhook-id`, `webhook-timestamp` and `webhook-signature`
//! of [Standard Webhooks](https://www.standardwebhooks.com). Each of the `secrets` is `whsec_` and 24 to 64 bytes
//! in base64, and any of them may sign, so that a new one can be added before the old one is taken away. The
//! time of the attempt may be `tolerance_seconds` (300; 1 to 3600) away from the daemon's clock, before or after.
//! Signatures of the kind `v1` are checked; those of other kinds, such as `v1a`, are skipped. An id holds no full
//! stop, as the specification advises. `webhook-id` is the delivery id: an attempt that is repeated with a new
//! time is a duplicate, and one that comes again with another body is too, so the first body stands.
//!
//! A delivery is accepted once under its id. Without `delivery_id` that is the sender's `Idempotency-Key`,
//! else its `X-Request-Id`, else a fresh one, which makes every request a delivery of its own: a sender that
//! repeats a request without an id is taken at its word. The id is not part of what is signed unless it is
//! read from the body.

mod entry;
mod standard;
#[cfg(test)]
mod tests;
mod verify;

use extension::{
    BoxFuture, ConfigProblem, HttpDelivery, Ingress, IngressDelivery, IngressEntry, IngressRefusal, Payload,
    PreparedIngress, Secrets, SourceName,
};
use serde_json::Value;

use self::entry::Entry;

/// The most bytes of a body, which becomes the Event's: 1 MiB.
pub const BODY_BYTES_MAX: usize = 1 << 20;

/// The kind of entry of that name.
#[derive(Debug, Clone, Copy, Default)]
pub struct Webhook;

impl Ingress for Webhook {
    fn entry_type(&self) -> &'static str {
        "webhook"
    }

    fn prepare(&self, entry: &IngressEntry) -> Result<Box<dyn PreparedIngress>, Vec<ConfigProblem>> {
        Ok(Box::new(Entry::read(entry)?))
    }
}

impl PreparedIngress for Entry {
    fn namespace(&self) -> &SourceName {
        &self.namespace
    }

    fn path_prefix(&self) -> &'static str {
        "hooks"
    }

    fn describe(&self) -> String {
        format!("webhooks with {}", self.verify.describe())
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
            self.verify.check(request, secrets).await?;
            let malformed = |why: &str| IngressRefusal::Malformed(why.to_owned());
            let payload = Payload::new(request.body.as_slice());
            let payload = payload.map_err(|error| malformed(&error.to_string()))?;
            let body: Value = serde_json::from_slice(payload.as_bytes())
                .map_err(|_source| malformed("the body is nested too deeply"))?;
            let delivery = IngressDelivery {
                delivery_id: self.delivery_id(request, &body)?,
                event_type: self.event_type(request, &body)?,
                key: self.key(&body)?,
                occurred_at: None,
                payload,
                drop: None,
            };
            Ok(vec![delivery])
        })
    }
}
