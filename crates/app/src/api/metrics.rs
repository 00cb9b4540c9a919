//! What the daemon counts, as Prometheus reads it.

use std::sync::Arc;

use domain::store::StoreError;
use hyper::Response;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::body::Body;
use super::failure::Failure;
use super::server::Answer;
use crate::daemon::Daemon;
use crate::error_code::ErrorCode;

/// Gauges count up to this.
const COUNTED_MAX: u32 = 10_000;

/// Writes every metric. Gauges are read from the rows at this moment, so none can drift.
pub(crate) async fn metrics(daemon: &Arc<Daemon>) -> Answer {
    let (unrouted, runnable, pauses) = daemon
        .store()
        .read("metrics", |tx| {
            let counts = (tx.count_unrouted(COUNTED_MAX)?, tx.count_runnable(COUNTED_MAX)?);
            Ok::<_, StoreError>((counts.0, counts.1, tx.pauses()?.len()))
        })
        .await
        .map_err(Failure::from)?;
    let mut registry = Registry::default();
    daemon.runtime().metrics().register(&mut registry);
    let running = i64::try_from(daemon.runtime().held().count()).unwrap_or(i64::MAX);
    let generation = daemon.applied().number;
    let gauges = [
        ("events_unrouted", "Events that wait to be routed, counted up to 10,000", i64::from(unrouted)),
        ("works_runnable", "Works that may start, counted up to 10,000", i64::from(runnable)),
        ("scopes_paused", "Scopes that an operator has paused", i64::try_from(pauses).unwrap_or(i64::MAX)),
        ("runs_live", "Attempts this process speaks for", running),
        ("config_generation", "The number of the configuration in force", generation),
        ("streams_open", "Clients that follow the change feed", daemon.streams_open()),
    ];
    let ours = registry.sub_registry_with_prefix("open_conduit");
    for (name, help, value) in gauges {
        let gauge: Gauge = Gauge::default();
        gauge.set(value);
        ours.register(name, help, gauge);
    }
    let mut text = String::new();
    encode(&mut text, &registry)
        .map_err(|_source| Failure::new(ErrorCode::Bug, "metrics could not be written"))?;
    let mut response = Response::new(Body::full(text));
    let kind = HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    Ok(response)
}
