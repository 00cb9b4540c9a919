//! `manual`: what an operator sends becomes input of the Work it names, by key or by address.
//!
//! Each key gets one standing Work of kind `manual.work`. An Event with neither key nor address says nothing
//! about what it is for, so it does not match and a later route may take it.

use extension::{
    BoxFuture, ConfigProblem, EventType, Handler, HandlerError, HandlerName, Lifecycle, Match, PreparedRoute,
    RouteInput, WorkKind,
};
use serde_json::Value;

use crate::table::Table;

/// The namespace of what operators send.
const SOURCE: &str = "core.manual";
/// The kind of the Work that a key gets.
const KIND: &str = "manual.work";

/// The handler of that name.
#[derive(Debug, Clone, Copy, Default)]
pub struct Manual;

impl Handler for Manual {
    fn name(&self) -> HandlerName {
        HandlerName::known("manual")
    }

    fn prepare(&self, config: &Value) -> Result<Box<dyn PreparedRoute>, Vec<ConfigProblem>> {
        let mut problems = Vec::new();
        drop(Table::root(config, &[], &mut problems));
        if problems.is_empty() { Ok(Box::new(ManualRoute)) } else { Err(problems) }
    }
}

#[derive(Debug)]
struct ManualRoute;

impl PreparedRoute for ManualRoute {
    fn describe(&self) -> String {
        "what an operator sends".to_owned()
    }

    fn leads_to(&self) -> String {
        format!("one standing Work per key, of kind `{KIND}`, or the Work that it is addressed to")
    }

    fn ignores_work(&self) -> bool {
        true
    }

    fn takes_announcement(&self, _event_type: &EventType) -> bool {
        false
    }

    fn decide<'a>(&'a self, input: &'a RouteInput) -> BoxFuture<'a, Result<Option<Match>, HandlerError>> {
        Box::pin(std::future::ready(Ok(wants(input))))
    }
}

fn wants(input: &RouteInput) -> Option<Match> {
    let event = &input.event;
    if event.source.as_str() != SOURCE || event.event_type.is_core() {
        return None;
    }
    match &event.key {
        Some(key) => Some(Match::Attach {
            keys: vec![key.clone()],
            kind: WorkKind::known(KIND),
            lifecycle: Lifecycle::Standing,
            concurrency: None,
            reopens: Vec::new(),
        }),
        None => event.work.map(|_work| Match::Addressed),
    }
}

#[cfg(test)]
mod tests {
    use extension::{Handler, Lifecycle, Match, WorkKind};
    use serde_json::{Value, json};

    use super::Manual;
    use crate::sample::{Sample, block_on};

    fn decide(sample: &Sample) -> Option<Match> {
        let route = Manual.prepare(&Value::Null).unwrap();
        block_on(route.decide(&sample.input())).unwrap()
    }

    #[test]
    fn a_key_gets_one_standing_work() {
        let sample = Sample::new("core.manual", "ask.something").key("notes", "n1");
        let wanted = Match::Attach {
            keys: vec![sample.event.key.clone().unwrap()],
            kind: WorkKind::known("manual.work"),
            lifecycle: Lifecycle::Standing,
            concurrency: None,
            reopens: Vec::new(),
        };
        assert_eq!(decide(&sample), Some(wanted.clone()));
        assert_eq!(decide(&sample.addressed()), Some(wanted));
    }

    #[test]
    fn without_a_key_only_an_address_matches() {
        assert_eq!(decide(&Sample::new("core.manual", "ask")), None);
        assert_eq!(decide(&Sample::new("core.manual", "ask").addressed()), Some(Match::Addressed));
    }

    #[test]
    fn neither_other_sources_nor_the_runtimes_types_match() {
        assert_eq!(decide(&Sample::new("github/acme", "ask").key("a", "b")), None);
        assert_eq!(decide(&Sample::new("core.manual", "core.manual.interrupt").key("a", "b")), None);
    }

    #[test]
    fn it_has_no_configuration() {
        let problems = Manual.prepare(&json!({ "types": [] })).unwrap_err();
        assert_eq!(problems[0].to_string(), "`types`: is not known; nothing can be set here");
        assert!(Manual.prepare(&json!({})).is_ok());
    }

    #[test]
    fn it_describes_itself() {
        let route = Manual.prepare(&Value::Null).unwrap();
        assert_eq!(route.describe(), "what an operator sends");
        assert_eq!(
            route.leads_to(),
            "one standing Work per key, of kind `manual.work`, or the Work that it is addressed to"
        );
    }
}
