//! Examples that were computed elsewhere.

use extension::Timestamp;
use schedule::cron::Cron;
use schedule::slot::{Pattern, Slot};
use schedule::zone::{Zone, data_version};
use serde_json::Value;

const CRON: &str = include_str!("../vectors/cron_vectors.json");
const FUZZ: &str = include_str!("../vectors/cron_fuzz.jsonl");

pub(super) fn text<'a>(row: &'a Value, key: &str) -> &'a str {
    row[key].as_str().unwrap_or_else(|| panic!("{key} of {row}"))
}

fn texts(row: &Value, key: &str) -> Vec<String> {
    row[key].as_array().unwrap().iter().map(|item| item.as_str().unwrap().to_owned()).collect()
}

pub(super) fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

pub(super) fn groups() -> Value {
    serde_json::from_str(CRON).unwrap()
}

fn pattern(row: &Value) -> Pattern {
    Pattern::Cron(Cron::parse(text(row, "expr")).unwrap_or_else(|error| panic!("{row}: {error}")))
}

fn zone(row: &Value) -> Zone {
    Zone::named(text(row, "zone")).unwrap()
}

fn next_three(pattern: &Pattern, zone: &Zone, from: Timestamp) -> Vec<Slot> {
    let alone: Vec<Slot> =
        std::iter::successors(pattern.next(zone, from), |slot| pattern.next(zone, slot.at)).take(3).collect();
    let together: Vec<Slot> = pattern.slots(zone, from).take(3).collect();
    assert_eq!(alone, together, "one after the other and together are the same");
    together
}

fn moments(slots: &[Slot]) -> Vec<String> {
    slots.iter().map(|slot| slot.at.to_string()).collect()
}

#[test]
fn slots_are_those_of_the_examples() {
    let groups = groups();
    let rows = groups["next"].as_array().unwrap();
    assert_eq!(rows.len(), 93);
    for row in rows {
        let (pattern, zone, from) = (pattern(row), zone(row), at(text(row, "from")));
        let slots = next_three(&pattern, &zone, from);
        let expected = match row.get("by_zone_data") {
            Some(by) => texts(by, data_version()),
            None => texts(row, "slots"),
        };
        assert_eq!(moments(&slots), expected, "{row}");
        if row.get("by_zone_data").is_some() {
            continue;
        }
        let names: Vec<String> = slots.iter().map(Slot::time).collect();
        assert_eq!(names, texts(row, "names"), "{row}");
        let latest = pattern.latest(&zone, from);
        match row["prev"].as_str() {
            Some(expected) => {
                assert_eq!(latest.map(|slot| slot.at.to_string()).as_deref(), Some(expected), "{row}");
            }
            None => assert_eq!(latest, None, "{row}"),
        }
    }
}

#[test]
fn random_slots_are_those_of_the_examples() {
    let mut rows = 0;
    for line in FUZZ.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let (pattern, zone, from) = (pattern(&row), zone(&row), at(text(&row, "from")));
        assert_eq!(moments(&next_three(&pattern, &zone, from)), texts(&row, "slots"), "{row}");
        let latest = pattern.latest(&zone, from).map(|slot| slot.at.to_string());
        assert_eq!(latest.as_deref(), row["prev"].as_str(), "{row}");
        rows += 1;
    }
    assert_eq!(rows, 1438);
}

#[test]
fn an_expression_that_is_accepted_means_what_the_examples_say() {
    let groups = groups();
    let rows = groups["accept"].as_array().unwrap();
    assert_eq!(rows.len(), 16);
    for row in rows {
        let same = Cron::parse(text(row, "same_as")).unwrap();
        assert_eq!(Cron::parse(text(row, "expr")), Ok(same), "{row}");
    }
}

#[test]
fn an_expression_outside_the_grammar_is_refused() {
    let groups = groups();
    let rows = groups["refuse"].as_array().unwrap();
    assert_eq!(rows.len(), 46);
    for row in rows {
        assert!(Cron::parse(text(row, "expr")).is_err(), "{row}");
    }
}
