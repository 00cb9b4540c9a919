//! What waits for a person, each in a sentence: what, why, since when, and what happens then.

use domain::lane::QUARANTINE_TRIES;
use domain::text::ScopeName;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::clock::{Clock, Moment};
use super::payload::spelled;
use super::{clip, count, event, key, work};
use crate::api::wire::{ExhaustedBody, HeldBody, KeyBody, LeftBody, NeedsBody, QuarantinedBody, StuckBody};

/// Letters of a reason that a line has room for.
const REASON_LETTERS: usize = 240;
/// Letters of a name that a line has room for.
const NAME_LETTERS: usize = 80;

/// Something that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Need {
    /// What it is.
    pub(crate) ask: String,
    /// The page that says more.
    pub(crate) path: String,
    /// Why it is so.
    pub(crate) why: String,
    /// `Held since`, which a moment follows.
    pub(crate) since_word: &'static str,
    pub(crate) since: Option<Moment>,
    /// What happens next, by itself or once somebody has done something.
    pub(crate) then: String,
    /// What can be done about it.
    pub(crate) action: Option<Action>,
}

/// A page on which something can be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Action {
    pub(crate) name: &'static str,
    pub(crate) path: String,
}

/// Everything that waits, a line each. What is of one kind and cannot be named any more shares one.
pub(crate) fn needs(body: &NeedsBody, clock: &Clock) -> Vec<Need> {
    let mut needs: Vec<Need> = body.held.iter().map(|held| of_held(held, clock)).collect();
    needs.extend(body.exhausted.iter().map(|failed| of_exhausted(failed, clock)));
    needs.extend(others(
        body.exhausted_count,
        body.exhausted.len(),
        "Work failed too often",
        "Works failed too often",
    ));
    needs.extend(body.lanes.iter().map(|stuck| of_lane(stuck, clock)));
    needs.extend(others(
        body.lanes_count,
        body.lanes.len(),
        "Event cannot be routed",
        "Events cannot be routed",
    ));
    if let Some(newest) = body.quarantined.first() {
        needs.push(of_quarantined(newest, body.quarantined_count, clock));
    }
    needs.extend(body.unstopped.iter().map(|left| of_unstopped(left, clock)));
    needs.extend(others(
        body.unstopped_count,
        body.unstopped.len(),
        "run may still run",
        "runs may still run",
    ));
    needs.extend(body.stranded.iter().map(|left| of_stranded(left, clock)));
    needs.extend(others(
        body.stranded_count,
        body.stranded.len(),
        "run is held by a silent host",
        "runs are held by silent hosts",
    ));
    needs
}

fn others(counted: usize, named: usize, one: &str, more: &str) -> Option<Need> {
    let left = i64::try_from(counted.saturating_sub(named)).ok().filter(|left| *left > 0)?;
    Some(Need {
        ask: format!("and {}", count(left, one, more)),
        path: "/health".to_owned(),
        why: "Health counts them.".to_owned(),
        since_word: "",
        since: None,
        then: String::new(),
        action: None,
    })
}

/// What people call a Work: its first key, else its id.
fn name(keys: &[KeyBody], id: &str) -> String {
    clip::middle(&spelled(&keys.first().map_or_else(|| id.to_owned(), key)), NAME_LETTERS)
}

fn of_held(held: &HeldBody, clock: &Clock) -> Need {
    let (word, scope) = held.reason.split_once(':').unwrap_or((held.reason.as_str(), ""));
    let because = match word {
        "scope_disabled" => format!("scope {scope} is disabled"),
        "scope_paused" => format!("scope {scope} is paused"),
        "held" => match held.because.as_deref() {
            // Its own words, where they are about all of them.
            Some("budget" | "gate") if held.works == 1 => spelled_reason(held),
            Some("budget") => "a budget is used up".to_owned(),
            Some("gate") => "a gate holds their start".to_owned(),
            Some(_) | None => "the bounds of its chain refused what it goes on from".to_owned(),
        },
        "credential" => match held.detail.as_deref() {
            Some(detail) => clip::end(&spelled(detail), REASON_LETTERS),
            None => format!("credential {scope} has met its usage limit"),
        },
        "unconfigured" => format!("the configuration has no such scope or binding any more, in {scope}"),
        other => other.to_owned(),
    };
    let (ask, path) = if held.works == 1 {
        (format!("{} is held: {because}", name(&held.keys, &held.work)), format!("/work/{}", held.work))
    } else {
        let path = if word == "held" {
            format!("/work/{}", held.work)
        } else if ScopeName::new(scope).is_ok() {
            format!("/work?scope={scope}&state=ready")
        } else {
            format!("/work/{}", held.work)
        };
        (format!("{} are held: {because}", count(i64::from(held.works), "Work", "Works")), path)
    };
    Need {
        ask,
        path,
        why: "Input waits and stays in order.".to_owned(),
        since_word: "Held since",
        since: Some(clock.moment(&held.since)),
        then: match held.because.as_deref() {
            Some("budget") => {
                "A release lets one more turn through, and a raised limit lets it go on.".to_owned()
            }
            Some("gate") => "Its gate settles that, and a release lets it start.".to_owned(),
            Some(_) | None => work::blocked(&held.reason).replace('`', ""),
        },
        action: Some(lets_go(held, word, scope)),
    }
}

/// What a person would do about a hold.
fn lets_go(held: &HeldBody, word: &str, scope: &str) -> Action {
    match (word, held.works) {
        ("held", 1) => Action { name: "Release…", path: format!("/work/{}/release", held.work) },
        ("held", _) => Action { name: "See the first", path: format!("/work/{}", held.work) },
        ("scope_paused", _) => {
            let scope = utf8_percent_encode(scope, NON_ALPHANUMERIC);
            Action { name: "Resume…", path: format!("/scopes/{scope}/resume") }
        }
        _configured => Action { name: "See the configuration", path: "/config".to_owned() },
    }
}

fn spelled_reason(held: &HeldBody) -> String {
    clip::end(&spelled(held.detail.as_deref().unwrap_or_default()), REASON_LETTERS)
}

fn of_exhausted(failed: &ExhaustedBody, clock: &Clock) -> Need {
    let times = count(i64::from(failed.failures), "time", "times");
    let why = match failed.because.as_str() {
        "causal_bounds" => "Its chain may not go further, so it is not tried again by itself.",
        _budget => "Its failure budget is used up, so it is not tried again by itself.",
    };
    Need {
        ask: format!("{} failed {times} in a row", name(&failed.keys, &failed.work)),
        path: failed
            .run
            .as_ref()
            .map_or_else(|| format!("/work/{}", failed.work), |run| format!("/runs/{run}")),
        why: why.to_owned(),
        since_word: "Since",
        since: Some(clock.moment(&failed.since)),
        then: "Input waits and stays in order.".to_owned(),
        action: Some(Action { name: "Retry", path: format!("/work/{}", failed.work) }),
    }
}

fn of_lane(stuck: &StuckBody, clock: &Clock) -> Need {
    let reason = clip::end(&spelled(&stuck.reason.trim_end_matches('.').replace('`', "")), REASON_LETTERS);
    let next = clock.moment(&stuck.next_try_at);
    let (ask, then) = if stuck.tries > 0 {
        let tries = count(stuck.tries, "try", "tries");
        let ask = format!("{} could not be routed after {tries}", spelled(&stuck.event_type));
        let then = format!(
            "It is tried again {}; after {QUARANTINE_TRIES} tries it is set aside, and what follows it goes on.",
            next.ago
        );
        (ask, then)
    } else {
        let ask = format!("{} waits, and so does what follows it", spelled(&stuck.event_type));
        (ask, format!("It is routed once scope {} takes Events again.", stuck.scope))
    };
    Need {
        ask,
        path: format!("/events/{}", stuck.event),
        why: format!("{} ({}).", sentence(&reason), stuck.code),
        since_word: "Accepted",
        since: Some(clock.moment(&stuck.since)),
        then,
        action: None,
    }
}

/// A reason as it begins a sentence.
fn sentence(reason: &str) -> String {
    let mut letters = reason.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn of_quarantined(newest: &QuarantinedBody, counted: usize, clock: &Clock) -> Need {
    let number = i64::try_from(counted).unwrap_or(i64::MAX);
    let (ask, path, since_word) = if number == 1 {
        ("One Event is quarantined".to_owned(), format!("/events/{}", newest.event), "Set aside")
    } else {
        let ask = format!("{number} Events are quarantined");
        (ask, "/events?outcome=quarantined".to_owned(), "The newest was set aside")
    };
    let by = newest.route.as_ref().map(|route| format!(" made route {route} fail"));
    let reason = newest.reason.as_deref().map(|reason| clip::end(&spelled(reason), REASON_LETTERS));
    let because = event::because(reason.as_deref(), newest.code.as_deref()).replace('`', "");
    let fails = by.unwrap_or_else(|| " could not be routed".to_owned());
    Need {
        ask,
        path,
        why: format!("{}{fails}{because}.", spelled(&newest.event_type)),
        since_word,
        since: Some(clock.moment(&newest.since)),
        then: "What follows it goes on without it. It is told about here for seven days.".to_owned(),
        action: None,
    }
}

fn of_unstopped(left: &LeftBody, clock: &Clock) -> Need {
    Need {
        ask: format!("{} ended, and what it had started may still run", name(&left.keys, &left.run)),
        path: format!("/runs/{}", left.run),
        why: "That it has stopped is not confirmed.".to_owned(),
        since_word: "Ended",
        since: Some(clock.moment(&left.since)),
        then: "The daemon goes on stopping it until nothing of it is left.".to_owned(),
        action: None,
    }
}

fn of_stranded(left: &LeftBody, clock: &Clock) -> Need {
    let host = spelled(left.host.as_deref().unwrap_or("another host"));
    Need {
        ask: format!("{} is held: {host} is silent", name(&left.keys, &left.run)),
        path: format!("/runs/{}", left.run),
        why: "Only that host can tell whether it still runs.".to_owned(),
        since_word: "Silent since",
        since: Some(clock.moment(&left.since)),
        then: "It goes on when the daemon there starts again. Cancel its Work once nothing of it runs."
            .to_owned(),
        action: Some(Action { name: "Cancel the Work", path: format!("/work/{}/cancel", left.work) }),
    }
}

#[cfg(test)]
mod tests {
    use domain::time::Timestamp;
    use jiff::tz::TimeZone;

    use super::{Need, needs};
    use crate::api::wire::{
        ExhaustedBody, HeldBody, KeyBody, LeftBody, NeedsBody, QuarantinedBody, StuckBody,
    };
    use crate::view::clock::Clock;

    const SINCE: &str = "2026-03-10T10:00:00Z";

    fn told(body: &NeedsBody) -> Vec<Need> {
        needs(body, &Clock::new(TimeZone::UTC, Timestamp::parse("2026-03-10T14:00:00Z").unwrap()))
    }

    fn text(need: &Need) -> String {
        let since =
            need.since.as_ref().map(|since| format!("{} {}, {}.", need.since_word, since.at, since.ago));
        format!("{}\n{} {}\n{}\n{}", need.ask, need.why, since.unwrap_or_default(), need.then, need.path)
    }

    fn held(reason: &str, works: u32) -> HeldBody {
        let keys = vec![KeyBody { source: "hook/ci".to_owned(), external_id: "pr/7".to_owned() }];
        HeldBody {
            reason: reason.to_owned(),
            because: None,
            detail: None,
            works,
            work: "work_1".to_owned(),
            keys,
            since: SINCE.to_owned(),
        }
    }

    fn stuck(tries: i64, code: &str) -> StuckBody {
        StuckBody {
            event: "ev_1".to_owned(),
            event_type: "build.finished".to_owned(),
            scope: "main".to_owned(),
            code: code.to_owned(),
            reason: "the handler answered no".to_owned(),
            tries,
            next_try_at: "2026-03-10T14:00:08Z".to_owned(),
            since: SINCE.to_owned(),
        }
    }

    fn left(host: Option<&str>) -> LeftBody {
        LeftBody {
            run: "run_1".to_owned(),
            work: "work_1".to_owned(),
            keys: Vec::new(),
            host: host.map(str::to_owned),
            since: SINCE.to_owned(),
        }
    }

    fn quarantined() -> QuarantinedBody {
        QuarantinedBody {
            event: "ev_2".to_owned(),
            event_type: "build.finished".to_owned(),
            route: Some("triage".to_owned()),
            code: Some("handler_failed".to_owned()),
            reason: Some("no such field".to_owned()),
            since: SINCE.to_owned(),
        }
    }

    #[test]
    fn nothing_is_said_about_nothing() {
        assert!(told(&NeedsBody::default()).is_empty());
    }

    #[test]
    fn each_need_says_what_why_since_when_and_what_then() {
        let body = NeedsBody {
            held: vec![held("scope_disabled:main", 1), held("unconfigured:team/eng", 3)],
            exhausted: vec![exhausted("failure_budget"), exhausted("causal_bounds")],
            exhausted_count: 3,
            lanes: vec![stuck(3, "handler_failed"), stuck(0, "scope_disabled")],
            lanes_count: 4,
            quarantined: vec![quarantined()],
            quarantined_count: 1,
            unstopped: vec![left(None)],
            unstopped_count: 1,
            stranded: vec![left(Some("cellar:/home"))],
            stranded_count: 1,
        };
        let told: Vec<String> = told(&body).iter().map(text).collect();
        insta::assert_snapshot!("needs", told.join("\n\n"));
    }

    fn exhausted(because: &str) -> ExhaustedBody {
        ExhaustedBody {
            work: "work_0000000000007".to_owned(),
            keys: Vec::new(),
            failures: 3,
            run: Some("run_0000000000009".to_owned()),
            because: because.to_owned(),
            since: "2026-03-10T11:00:00Z".to_owned(),
        }
    }

    #[test]
    fn a_hold_says_its_reason_and_what_lifts_it() {
        let of = |because: &str, works| HeldBody {
            because: Some(because.to_owned()),
            detail: Some("the budget of usd per scope a day is used up: 5 of 5 usd".to_owned()),
            ..held("held:main", works)
        };
        let body = NeedsBody {
            held: vec![of("budget", 1), of("budget", 4), of("gate", 2), of("wake_refused", 1)],
            ..NeedsBody::default()
        };
        let told: Vec<String> = told(&body).iter().map(text).collect();
        insta::assert_snapshot!("holds", told.join("\n\n"));
    }

    #[test]
    fn several_quarantined_events_are_one_need() {
        let body =
            NeedsBody { quarantined: vec![quarantined(); 2], quarantined_count: 7, ..NeedsBody::default() };
        let told = told(&body);
        assert_eq!(told.len(), 1);
        assert_eq!(
            (told[0].ask.as_str(), told[0].path.as_str()),
            ("7 Events are quarantined", "/events?outcome=quarantined")
        );
    }

    #[test]
    fn hidden_letters_are_spelled_out() {
        let mut body = NeedsBody { lanes: vec![stuck(1, "x")], lanes_count: 1, ..NeedsBody::default() };
        body.lanes[0].reason = "a\u{202e}b".to_owned();
        assert!(told(&body)[0].why.contains("A\\u{202e}b"), "{:?}", told(&body)[0].why);
    }
}
