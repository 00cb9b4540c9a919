//! How many slots of cron expressions are found in a second.

use std::hint::black_box;
use std::time::{Duration, Instant};

use domain::time::Timestamp;
use schedule::cron::Cron;
use schedule::slot::Pattern;
use schedule::zone::Zone;
use serde_json::Value;

use crate::Setting;
use crate::figure::{Goal, Report};

/// The expressions, zones and moments that the crate's own tests use.
const VECTORS: &str = include_str!("../../../schedule/tests/vectors/cron_vectors.json");
/// Slots that are taken of an expression before the next one's turn.
const TURN: usize = 1000;

pub(crate) fn run(setting: &Setting, report: &mut Report) {
    let vectors: Value = serde_json::from_str(VECTORS).expect("the examples are JSON");
    let rows = vectors["next"].as_array().expect("there are examples");
    let plain: Vec<_> = rows.iter().filter(|row| row["group"] == "plain").map(example).collect();
    let time = setting.seconds / 2;

    // As a list of slots is made, and one by one, as a firing asks.
    let together = rate(time, &plain, |(pattern, zone, from)| {
        pattern.slots(zone, *from).take(TURN).fold(0, |count, slot| {
            black_box(slot);
            count + 1
        })
    });
    let alone = rate(time, &plain, |(pattern, zone, from)| {
        let mut from = *from;
        let mut count = 0;
        while let Some(slot) = pattern.next(zone, from).filter(|_slot| count < TURN) {
            from = black_box(slot).at;
            count += 1;
        }
        count
    });
    report.add(
        "cron: slots of the plain examples, in a row",
        together,
        "/s",
        None,
        Goal::AtLeast(1_000_000.0),
    );
    report.note("cron: slots of the plain examples, one by one", alone, "/s");

    let never: Vec<_> = rows.iter().filter(|row| row["group"] == "never").map(example).collect();
    let asked = rate(time / 4, &never, |(pattern, zone, from)| {
        black_box(pattern.next(zone, *from));
        1
    });
    report.add("cron: an expression that never fires", 1000.0 / asked, "ms", None, Goal::AtMost(1.0));
}

type Example = (Pattern, Zone, Timestamp);

fn example(row: &Value) -> Example {
    let text = |key: &str| row[key].as_str().expect("an example has its texts");
    let cron = Cron::parse(text("expr")).expect("an example's expression is right");
    let zone = Zone::named(text("zone")).expect("an example's zone is known");
    (Pattern::Cron(cron), zone, Timestamp::parse(text("from")).expect("an example begins at a moment"))
}

/// How many are found in a second.
fn rate(time: Duration, examples: &[Example], find: impl Fn(&Example) -> usize) -> f64 {
    let start = Instant::now();
    let mut found = 0;
    while start.elapsed() < time {
        found += examples.iter().map(&find).sum::<usize>();
    }
    found as f64 / start.elapsed().as_secs_f64()
}
