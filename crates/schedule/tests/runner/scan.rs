//! What holds for every expression, zone and moment: the slots are those that looking at every minute finds.

use extension::Timestamp;
use jiff::tz::TimeZone;
use proptest::prelude::*;
use schedule::cron::Cron;
use schedule::slot::Pattern;
use schedule::zone::Zone;

/// Zones with clock changes of all sorts: by half an hour, at midnight, over a whole day, without daylight saving.
const ZONES: &[&str] = &[
    "",
    "Europe/London",
    "America/New_York",
    "America/St_Johns",
    "America/Sao_Paulo",
    "America/Havana",
    "Africa/Casablanca",
    "Africa/Cairo",
    "Asia/Beirut",
    "Asia/Tehran",
    "Asia/Kathmandu",
    "Atlantic/Azores",
    "Australia/Lord_Howe",
    "Antarctica/Troll",
    "Pacific/Apia",
    "Pacific/Kiritimati",
];
const MINUTE: i64 = 60;
/// Minutes that are looked at on each side.
const WINDOW: i64 = 2 * 24 * 60;

/// One field as it is written and what it holds, found without the parser.
#[derive(Debug, Clone)]
struct Written {
    text: String,
    values: Vec<i64>,
    star: bool,
}

fn item(min: i64, max: i64) -> impl Strategy<Value = Written> {
    let step = prop_oneof![2 => Just(None), 1 => (1..=max + 2).prop_map(Some)];
    (0..8_u8, min..=max, min..=max, step).prop_map(move |(form, one, other, step)| {
        let (low, high) = (one.min(other), one.max(other));
        let (text, first, mut last) = match form {
            0..3 => ("*".to_owned(), min, max),
            3 => ("?".to_owned(), min, max),
            4 | 5 => (format!("{low}-{high}"), low, high),
            _single => (low.to_string(), low, low),
        };
        if form > 5 && step.is_some() {
            last = max;
        }
        let by = step.unwrap_or(1);
        let values = (first..=last).filter(|value| (value - first) % by == 0).collect();
        let text = step.map_or(text.clone(), |step| format!("{text}/{step}"));
        Written { text, values, star: form < 4 && by == 1 }
    })
}

fn field(min: i64, max: i64) -> impl Strategy<Value = Written> {
    prop::collection::vec(item(min, max), 1..3).prop_map(|items| Written {
        text: items.iter().map(|item| item.text.as_str()).collect::<Vec<_>>().join(","),
        values: items.iter().flat_map(|item| item.values.clone()).collect(),
        star: items.iter().any(|item| item.star),
    })
}

/// Five fields, in their order.
fn expression() -> impl Strategy<Value = [Written; 5]> {
    (field(0, 59), field(0, 23), field(1, 31), field(1, 12), field(0, 6))
        .prop_map(|(minute, hour, day, month, weekday)| [minute, hour, day, month, weekday])
}

/// A zone and a second near one of its clock changes, or anywhere from 1990 to 2035.
fn place() -> impl Strategy<Value = (&'static str, i64)> {
    let anywhere = 631_152_000_i64..2_051_222_400;
    (0..ZONES.len(), anywhere, any::<bool>(), -WINDOW..WINDOW, 0..MINUTE).prop_map(
        |(zone, anywhere, near, minutes, seconds)| {
            let name = ZONES[zone];
            let from = jiff::Timestamp::from_second(anywhere).unwrap();
            let clock = clock(name);
            let edge = clock.following(from).next().filter(|_edge| near);
            let base = edge.map_or(anywhere, |edge| edge.timestamp().as_second());
            (name, base + minutes * MINUTE + seconds)
        },
    )
}

fn clock(name: &str) -> TimeZone {
    if name.is_empty() { TimeZone::UTC } else { TimeZone::get(name).unwrap() }
}

/// Whether the wall clock shows a matching minute at a second, and that minute begins there.
fn matches(fields: &[Written; 5], clock: &TimeZone, second: i64) -> bool {
    let shown = clock.to_datetime(jiff::Timestamp::from_second(second).unwrap());
    let [minutes, hours, days, months, weekdays] = fields;
    let has = |field: &Written, value: i8| field.values.contains(&i64::from(value));
    let day = has(days, shown.day());
    let weekday = has(weekdays, shown.date().weekday().to_sunday_zero_offset());
    let date = if days.star || weekdays.star { day && weekday } else { day || weekday };
    shown.second() == 0
        && date
        && has(minutes, shown.minute())
        && has(hours, shown.hour())
        && has(months, shown.month())
}

fn moment(second: i64) -> Timestamp {
    Timestamp::from_micros(second * 1_000_000)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn slots_are_what_looking_at_every_minute_finds(fields in expression(), (name, from) in place()) {
        let written: Vec<&str> = fields.iter().map(|field| field.text.as_str()).collect();
        let pattern = Pattern::Cron(Cron::parse(&written.join(" ")).unwrap());
        let (zone, clock) = (Zone::named(name).unwrap(), clock(name));
        // Every offset since 1990 is of whole minutes.
        let first = from - from.rem_euclid(MINUTE);
        let looked: Vec<i64> = (1..WINDOW)
            .map(|minute| first + minute * MINUTE)
            .filter(|second| matches(&fields, &clock, *second))
            .take(4)
            .collect();
        let end = first + WINDOW * MINUTE;
        let found: Vec<i64> = pattern
            .slots(&zone, moment(from))
            .map(|slot| slot.at.as_seconds())
            .take_while(|second| *second < end)
            .take(4)
            .collect();
        prop_assert_eq!(&found, &looked);

        let before = (0..WINDOW).map(|minute| first - minute * MINUTE).find(|at| matches(&fields, &clock, *at));
        let latest = pattern.latest(&zone, moment(from)).map(|slot| slot.at.as_seconds());
        prop_assert_eq!(latest.filter(|at| *at > first - WINDOW * MINUTE), before);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_next_slot_is_later_and_the_latest_is_not(fields in expression(), (name, from) in place()) {
        let written: Vec<&str> = fields.iter().map(|field| field.text.as_str()).collect();
        let pattern = Pattern::Cron(Cron::parse(&written.join(" ")).unwrap());
        let zone = Zone::named(name).unwrap();
        let from = moment(from);
        if let Some(next) = pattern.next(&zone, from) {
            prop_assert!(next.at > from);
            prop_assert_eq!(pattern.latest(&zone, next.at), Some(next), "a slot is the latest at its own moment");
        }
        if let Some(latest) = pattern.latest(&zone, from) {
            prop_assert!(latest.at <= from);
            let again = pattern.next(&zone, Timestamp::from_micros(latest.at.as_micros() - 1));
            prop_assert_eq!(again, Some(latest), "and the next just before it");
        }
    }
}
