//! The handler that the cases mean: it answers what a delivery says, and can be made to stand at a gate.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use domain::event::Key;
use domain::id::EventId;
use domain::route::{End, Match};
use domain::succession::plain_keys;
use domain::text::{Code, ConcurrencyKey, EventType, HandlerName, RouteName, WorkKind};
use domain::work::Lifecycle;
use extension::{BoxFuture, ConfigProblem, Handler, HandlerError, PreparedRoute, RouteInput};
use serde_json::{Value, json};
use spec::driver::{Delivery, Wish};
use tokio::sync::watch;

/// Which gates are open, and which handlers were asked.
#[derive(Debug)]
pub(super) struct Desk {
    open: watch::Sender<Gates>,
    asked: Mutex<BTreeMap<EventId, BTreeSet<RouteName>>>,
}

/// Gates that are open.
#[derive(Debug, Default)]
struct Gates {
    named: BTreeSet<String>,
    all: bool,
}

impl Gates {
    fn contains(&self, gate: &str) -> bool {
        self.all || self.named.contains(gate)
    }
}

impl Desk {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { open: watch::channel(Gates::default()).0, asked: Mutex::default() })
    }

    pub(super) fn open(&self, gate: &str) {
        self.open.send_modify(|open| {
            open.named.insert(gate.to_owned());
        });
    }

    /// Opens every gate there is.
    pub(super) fn open_all(&self) {
        self.open.send_modify(|open| open.all = true);
    }

    pub(super) fn asked(&self) -> BTreeMap<EventId, BTreeSet<RouteName>> {
        self.asked.lock().unwrap().clone()
    }
}

/// What a delivery says to the handler, as its payload.
pub(super) fn payload(delivery: &Delivery) -> Value {
    let (wish, keys): (&str, &[Key]) = match &delivery.wish {
        Wish::Usual => ("usual", &[]),
        Wish::Keys(keys) => ("keys", keys),
        Wish::Fresh(keys) => ("fresh", keys),
        Wish::Successor { keys, .. } => ("successor", keys),
        Wish::Reopen => ("reopen", &[]),
        Wish::Drop => ("drop", &[]),
        Wish::Fail => ("fail", &[]),
        Wish::Poison => ("poison", &[]),
    };
    json!({ "wish": wish, "keys": keys, "lifecycle": delivery.lifecycle, "gate": delivery.gate,
        "concurrency": delivery.concurrency })
}

#[derive(Debug)]
pub(super) struct Told(pub(super) Arc<Desk>);

#[derive(Debug)]
struct ToldRoute {
    name: RouteName,
    takes: Vec<EventType>,
    drops: bool,
    desk: Arc<Desk>,
}

impl Handler for Told {
    fn name(&self) -> HandlerName {
        HandlerName::known("told")
    }

    fn prepare(&self, config: &Value) -> Result<Box<dyn PreparedRoute>, Vec<ConfigProblem>> {
        Ok(Box::new(ToldRoute {
            name: serde_json::from_value(config["name"].clone()).unwrap(),
            takes: serde_json::from_value(config["takes"].clone()).unwrap(),
            drops: config["drops"] == true,
            desk: Arc::clone(&self.0),
        }))
    }
}

impl PreparedRoute for ToldRoute {
    fn describe(&self) -> String {
        "what a delivery says".to_owned()
    }

    fn ignores_work(&self) -> bool {
        true
    }

    fn takes_announcement(&self, event_type: &EventType) -> bool {
        self.takes.contains(event_type)
    }

    fn decide<'a>(&'a self, input: &'a RouteInput) -> BoxFuture<'a, Result<Option<Match>, HandlerError>> {
        Box::pin(async move {
            self.desk.asked.lock().unwrap().entry(input.event.id).or_default().insert(self.name.clone());
            if !self.takes.is_empty() && !self.takes.contains(&input.event.event_type) {
                return Ok(None);
            }
            // An alias was made by the runtime, and says nothing to its handler.
            let usual = json!({ "wish": "usual", "keys": [], "lifecycle": Lifecycle::Once, "gate": null });
            let says = input.payload();
            let says = if says["wish"].is_null() { &usual } else { says };
            if let Some(gate) = says["gate"].as_str() {
                let mut open = self.desk.open.subscribe();
                open.wait_for(|open| open.contains(gate)).await.expect("the desk outlives its handlers");
            }
            if says["wish"] == "fail" || says["wish"] == "poison" {
                let (code, is_final) = (Code::known("told_to_fail"), says["wish"] == "poison");
                return Err(HandlerError { code, reason: "the case says so".to_owned(), is_final });
            }
            if self.drops || says["wish"] == "drop" {
                let code = Code::known("told_to_drop");
                return Ok(Some(Match::Drop { code, reason: "the case says so".to_owned() }));
            }
            let lifecycle: Lifecycle = serde_json::from_value(says["lifecycle"].clone()).unwrap();
            let keys: Vec<Key> = serde_json::from_value(says["keys"].clone()).unwrap();
            let concurrency = says["concurrency"].as_str().map(ConcurrencyKey::known);
            let attach = |keys, reopens| {
                let concurrency = concurrency.clone();
                Match::Attach { keys, kind: kind(), lifecycle, concurrency, reopens }
            };
            Ok(match says["wish"].as_str().expect("a payload of the cases has a wish") {
                "usual" => match (&input.event.key, input.event.work) {
                    (Some(key), _) => Some(attach(vec![key.clone()], Vec::new())),
                    (None, Some(_work)) => Some(Match::Addressed),
                    (None, None) => None,
                },
                "keys" => Some(attach(keys, Vec::new())),
                // The runtime makes the generation of a plain key itself.
                "successor" => Some(attach(plain_keys(&keys), every_end())),
                "reopen" => Some(attach(input.event.key.iter().cloned().collect(), every_end())),
                "fresh" => Some(Match::Fresh { kind: kind(), lifecycle, keys, concurrency }),
                wish => panic!("no such wish: {wish}"),
            })
        })
    }
}

fn every_end() -> Vec<End> {
    vec![End::Completed, End::Failed, End::Cancelled]
}

fn kind() -> WorkKind {
    WorkKind::known("told")
}
