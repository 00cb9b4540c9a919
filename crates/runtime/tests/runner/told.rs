//! The handler of these tests, which does what an Event's payload says.

use domain::event::Key;
use domain::route::{End, Match};
use domain::text::{Code, ConcurrencyKey, EventType, HandlerName, WorkKind};
use domain::work::Lifecycle;
use extension::{
    BoxFuture, ConfigProblem, EXTENSION_UNAVAILABLE, Handler, HandlerError, PreparedRoute, RouteInput,
};
use serde_json::Value;

use super::world::key;

/// A handler that reads its answer from the Event's payload: `keys`, `kind`, `fresh`, `once`, `drop`, `fail`,
/// `hang`, `slow`, `panic`. A route that `looks` sees the Work, and with `known` matches only where there is one.
#[derive(Debug)]
pub(super) struct Told;

#[derive(Debug)]
struct ToldRoute {
    types: Vec<String>,
    looks: bool,
    /// The only value of `for` in the payload that it takes.
    only: Option<String>,
    /// The key that an announcement leads to.
    other: Option<String>,
    /// After which ends it goes on with a new Work.
    reopens: Vec<End>,
    /// Whether each announcement leads to one of two keys, in turn.
    ping: bool,
}

impl Handler for Told {
    fn name(&self) -> HandlerName {
        HandlerName::known("told")
    }

    fn prepare(&self, config: &Value) -> Result<Box<dyn PreparedRoute>, Vec<ConfigProblem>> {
        let types = config["types"].as_array().cloned().unwrap_or_default();
        let types = types.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let only = config["only"].as_str().map(str::to_owned);
        let other = config["other"].as_str().map(str::to_owned);
        let ping = config["ping"] == true;
        let reopens = config["reopens"].as_array().cloned().unwrap_or_default();
        let reopens = reopens.into_iter().map(|end| serde_json::from_value(end).unwrap()).collect();
        Ok(Box::new(ToldRoute { reopens, types, looks: config["looks"] == true, only, other, ping }))
    }
}

impl PreparedRoute for ToldRoute {
    fn describe(&self) -> String {
        "what the payload says".to_owned()
    }

    fn ignores_work(&self) -> bool {
        !self.looks
    }

    fn takes_announcement(&self, event_type: &EventType) -> bool {
        self.types.iter().any(|known| known == event_type.as_str())
    }

    fn decide<'a>(&'a self, input: &'a RouteInput) -> BoxFuture<'a, Result<Option<Match>, HandlerError>> {
        Box::pin(async move {
            if !self.types.is_empty()
                && !self.types.iter().any(|known| known == input.event.event_type.as_str())
            {
                return Ok(None);
            }
            let says = input.payload();
            if self.only.is_some() && self.only.as_deref() != says["for"].as_str() {
                return Ok(None);
            }
            if says["hang"] == true {
                std::future::pending::<()>().await;
            }
            if says["slow"] == true {
                tokio::task::yield_now().await;
            }
            assert!(says["panic"] != true, "the test says so");
            if self.looks && says["known"] == true && input.work.is_none() {
                return Ok(None);
            }
            if says["away"] == true {
                let reason = "the test says so".to_owned();
                return Err(HandlerError {
                    code: Code::known(EXTENSION_UNAVAILABLE),
                    reason,
                    is_final: false,
                });
            }
            if says["fail"] == true || says["fail"] == "for good" {
                let reason = "the test says so".to_owned();
                let is_final = says["fail"] == "for good";
                return Err(HandlerError { code: Code::known("told_to_fail"), reason, is_final });
            }
            if says["drop"] == true {
                let reason = "the test says so".to_owned();
                return Ok(Some(Match::Drop { code: Code::known("told_to_drop"), reason }));
            }
            let mut keys: Vec<Key> = input.event.key.iter().cloned().collect();
            if input.event.event_type.is_core() {
                keys.extend(self.other.as_deref().map(key));
                // Never the key of the Work that published it: two of them, in turn.
                let to = if input.event.depth % 2 == 0 { "even" } else { "odd" };
                keys.extend(self.ping.then(|| key(to)));
            }
            keys.extend(says["keys"].as_array().into_iter().flatten().filter_map(Value::as_str).map(key));
            let kind = WorkKind::known(says["kind"].as_str().unwrap_or("told"));
            let concurrency = says["alone"].as_str().map(ConcurrencyKey::known);
            let lifecycle = if says["once"] == true { Lifecycle::Once } else { Lifecycle::Standing };
            Ok(if says["fresh"] == true {
                Some(Match::Fresh { kind, lifecycle: Lifecycle::Once, keys, concurrency })
            } else if !keys.is_empty() {
                Some(Match::Attach { keys, kind, lifecycle, concurrency, reopens: self.reopens.clone() })
            } else if input.event.work.is_some() {
                Some(Match::Addressed)
            } else {
                None
            })
        })
    }
}
