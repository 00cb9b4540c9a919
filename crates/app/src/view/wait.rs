//! Waiting, in words: what for, on which keys, until when, and what came that it was not for.

use std::collections::BTreeMap;

use super::time;
use crate::api::wire::{PendingInputBody, SubscriptionBody, TimerBody, WaitBody, WokenBody};

/// The most keys, types and kinds of input that a sentence names.
const NAMED_MAX: usize = 4;

/// What a Work waits for, in one sentence, with the input that has come meanwhile.
pub(crate) fn sentence(wait: &WaitBody, pending: &[PendingInputBody]) -> String {
    let mut sentence = format!("It waits {}", goal(wait));
    if !pending.is_empty() {
        sentence.push_str("; seen and not matching: ");
        sentence.push_str(&seen(pending));
    }
    sentence.push('.');
    sentence
}

/// What ended a Wait: for what and since when it was, and which Event came.
pub(crate) fn ended(woken: &WokenBody) -> String {
    let WokenBody { wait, by, event_type } = woken;
    let winner = wait.winner.as_deref().unwrap_or("an Event");
    let at = wait.ended_at.as_deref().map(|at| format!(" at {}", time::absolute(at))).unwrap_or_default();
    let how = match by.as_str() {
        "timeout" => format!("Its time was up, and {winner} `{event_type}` ended it{at}."),
        _fact => format!("{winner} `{event_type}` ended it{at}."),
    };
    let since = time::absolute(&wait.registered_at);
    format!("{} had waited since {since} {} ({}). {how}", wait.run, goal(wait), wait.id)
}

/// What a Wait is for: `for build.finished on key x until 2026-03-01 12:00:00 UTC`.
pub(crate) fn goal(wait: &WaitBody) -> String {
    let until = wait.timeout_at.as_deref().map(|at| format!("until {}", time::absolute(at)));
    if wait.keys.is_empty() {
        return until.unwrap_or_else(|| "for nothing that could come".to_owned());
    }
    let types = if wait.types.is_empty() { "any Event".to_owned() } else { listed(&wait.types, " or ") };
    let keys: Vec<String> = wait.keys.iter().map(|key| format!("`{}`", super::key(key))).collect();
    let on = if keys.len() == 1 { "key" } else { "keys" };
    let until = until.unwrap_or_else(|| "as long as it takes".to_owned());
    let heard: Vec<String> = wait.through.iter().map(heard).collect();
    let through = match &*heard {
        [] => String::new(),
        heard => format!(", told of {}", listed(heard, " or ")),
    };
    format!("for {types} on {on} {} {until}{through}", listed(&keys, " or "))
}

/// What a subscription tells of: `build.finished on key x (subscription s)`.
fn heard(subscription: &SubscriptionBody) -> String {
    let types = match &*subscription.types {
        [] => "any Event".to_owned(),
        types => listed(types, " or "),
    };
    format!("{types} on key `{}` (subscription `{}`)", super::key(&subscription.watches), subscription.id)
}

/// Input by its type, with how often each came.
fn seen(pending: &[PendingInputBody]) -> String {
    let mut types: BTreeMap<&str, u32> = BTreeMap::new();
    for input in pending {
        *types.entry(&input.event_type).or_default() += 1;
    }
    let one =
        |(name, count): (&str, u32)| if count == 1 { name.to_owned() } else { format!("{count} {name}") };
    listed(&types.into_iter().map(one).collect::<Vec<_>>(), ", ")
}

/// The first of a list, and how many more there are.
fn listed(names: &[String], between: &str) -> String {
    let named = names.iter().take(NAMED_MAX).map(String::as_str).collect::<Vec<_>>().join(between);
    match names.len().saturating_sub(NAMED_MAX) {
        0 => named,
        more => format!("{named}{between}{more} more"),
    }
}

/// What a timer will do, in a few words.
pub(crate) fn timer(timer: &TimerBody) -> String {
    match (timer.kind.as_str(), &timer.run, &timer.wait) {
        ("retry", Some(run), _) => format!("try again after {run}"),
        ("wait_timeout", _, Some(wait)) => format!("end {wait}"),
        // A later daemon may know more kinds.
        (other, ..) => other.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::sentence;
    use crate::api::wire::{KeyBody, PendingInputBody, SubscriptionBody, WaitBody};

    fn wait(types: &[&str], keys: &[&str], timeout_at: Option<&str>) -> WaitBody {
        let key = |id: &&str| KeyBody { source: "ci".to_owned(), external_id: (*id).to_owned() };
        WaitBody {
            id: "wait_1".to_owned(),
            work: "work_1".to_owned(),
            scope: "main".to_owned(),
            run: "run_1".to_owned(),
            keys: keys.iter().map(key).collect(),
            types: types.iter().map(|name| (*name).to_owned()).collect(),
            after_sequence: 7,
            timeout_at: timeout_at.map(str::to_owned),
            registered_at: "2026-03-01T11:00:00Z".to_owned(),
            state: "active".to_owned(),
            winner: None,
            ended_at: None,
            through: Vec::new(),
        }
    }

    fn input(event_type: &str) -> PendingInputBody {
        PendingInputBody {
            event: "ev_1".to_owned(),
            event_type: event_type.to_owned(),
            source: "ci".to_owned(),
            accepted_at: "2026-03-01T11:30:00Z".to_owned(),
            binding: "job".to_owned(),
        }
    }

    #[test]
    fn a_sentence_says_for_what_until_when_and_what_came() {
        let two = wait(&["build.finished", "build.failed"], &["a"], Some("2026-03-01T12:00:00Z"));
        assert_eq!(
            sentence(&two, &[input("note.added"), input("build.started"), input("note.added")]),
            "It waits for build.finished or build.failed on key `ci a` until 2026-03-01 12:00:00 UTC; \
             seen and not matching: build.started, 2 note.added."
        );
        assert_eq!(
            sentence(&wait(&[], &["a", "b"], None), &[]),
            "It waits for any Event on keys `ci a` or `ci b` as long as it takes."
        );
        assert_eq!(
            sentence(&wait(&[], &[], Some("2026-03-01T12:00:00Z")), &[]),
            "It waits until 2026-03-01 12:00:00 UTC."
        );
        let key = |id: &str| KeyBody { source: "ci".to_owned(), external_id: id.to_owned() };
        let told = SubscriptionBody {
            id: "tracker/1".to_owned(),
            watches: key("o"),
            types: vec!["build.finished".to_owned()],
            key: key("a"),
            becomes: "dependency.moved".to_owned(),
            after_sequence: 7,
        };
        let through = WaitBody { through: vec![told], ..wait(&["dependency.moved"], &["a"], None) };
        assert_eq!(
            sentence(&through, &[]),
            "It waits for dependency.moved on key `ci a` as long as it takes, told of build.finished on key `ci o` \
             (subscription `tracker/1`)."
        );
        let many = ["a", "b", "c", "d", "e", "f"];
        assert!(sentence(&wait(&many, &["k"], None), &[]).contains("for a or b or c or d or 2 more on key"));
    }
}
