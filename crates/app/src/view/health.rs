//! How the daemon is, in words: what it takes of its machine, what its store says, and what waits in its queues.

use super::{count, run::bytes, time, work};
use crate::api::wire::{FiguresBody, PauseBody, StatusBody, WaitingBody};

/// A named fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fact {
    /// Its name, as it begins a line.
    pub(crate) name: &'static str,
    /// What it is.
    pub(crate) value: String,
    /// A sentence more, when there is more to say.
    pub(crate) more: String,
}

impl Fact {
    fn new(name: &'static str, value: impl Into<String>) -> Self {
        Self { name, value: value.into(), more: String::new() }
    }

    fn more(mut self, more: impl Into<String>) -> Self {
        self.more = more.into();
        self
    }
}

/// The daemon itself.
pub(crate) fn daemon(status: &StatusBody, figures: &FiguresBody) -> Vec<Fact> {
    let up = time::between(Some(&status.started_at), Some(&status.now)).unwrap_or_default();
    let generation = match status.generation {
        0 => "none is in force".to_owned(),
        number => format!("generation {number}"),
    };
    let webhooks =
        status.webhook_address.as_ref().map_or_else(|| "off".to_owned(), |at| format!("http://{at}"));
    vec![
        Fact::new("Version", status.version.as_str()),
        Fact::new("Up", time::span(up)).more(format!("Since {}.", time::absolute(&status.started_at))),
        Fact::new("Memory", size(figures.memory_bytes)),
        Fact::new("Configuration", generation),
        Fact::new("Zone data", status.zone_data.as_str()),
        Fact::new("Home", status.home.as_str()),
        Fact::new("API", format!("http://{}", status.api_address)),
        Fact::new("Webhooks", webhooks),
        Fact::new("Streams", some(figures.streams_open, "client follows", "clients follow")),
    ]
}

/// The store's own figures by name, with the name that people read.
const STORE: [(&str, &str); 12] = [
    ("file", "File"),
    ("journal_mode", "Journal"),
    ("synchronous", "Synchronous"),
    ("page_size", "Page size"),
    ("cache_size", "Cache"),
    ("wal_autocheckpoint", "Checkpoint by itself"),
    ("commits", "Commits"),
    ("requests", "Requests"),
    ("batch_max", "Largest batch"),
    ("undone", "Undone"),
    ("statements", "Statements"),
    ("reads", "Reads"),
];

/// The store and the disk that it is on.
pub(crate) fn store(status: &StatusBody, figures: &FiguresBody) -> Vec<Fact> {
    let fact = |name: &str| status.store.get(name).map(String::as_str);
    let engine = [fact("engine"), fact("version")].into_iter().flatten().collect::<Vec<_>>().join(" ");
    let mut facts = vec![Fact::new("Engine", engine)];
    if let Some(database) = figures.database_bytes {
        facts.push(Fact::new("Database", bytes(database)));
    }
    if let Some(log) = figures.wal_bytes {
        facts.push(Fact::new("Write-ahead log", bytes(log)));
    }
    let disk = match (figures.disk_free_bytes, figures.disk_size_bytes) {
        (Some(free), Some(size)) => format!("{} of {} free", bytes(free), bytes(size)),
        (None | Some(_), None | Some(_)) => "not known".to_owned(),
    };
    facts.push(Fact::new("Disk", disk));
    facts.extend(STORE.iter().filter_map(|(name, shown)| Some(Fact::new(shown, figure(name, fact(name)?)))));
    facts
}

/// What is under way and what waits, with what has waited for longest.
pub(crate) fn queues(status: &StatusBody, figures: &FiguresBody) -> Vec<Fact> {
    let running = i64::try_from(status.running).unwrap_or(i64::MAX);
    let mut facts = vec![
        Fact::new("Running", some(running, "run", "runs")),
        Fact::new("To start", at_most(status.runnable, "Work", "Works"))
            .more(oldest(figures.oldest_runnable.as_ref())),
        Fact::new("To route", at_most(status.unrouted, "Event", "Events"))
            .more(oldest(figures.oldest_unrouted.as_ref())),
    ];
    let blocked: u32 = status.blocked.iter().map(|blocked| blocked.works).sum();
    facts.push(
        Fact::new("Blocked", at_most(blocked, "Work", "Works")).more(oldest(figures.oldest_blocked.as_ref())),
    );
    facts
}

/// Why Works are blocked, a sentence for each reason.
pub(crate) fn blocked(status: &StatusBody) -> Vec<String> {
    let sentence = |reason: &str, works: u32| {
        let works = count(i64::from(works), "Work is blocked.", "Works are blocked.");
        format!("{works} {}", work::blocked(reason))
    };
    status.blocked.iter().map(|blocked| sentence(&blocked.reason, blocked.works)).collect()
}

/// Which scopes an operator has paused, a sentence for each.
pub(crate) fn paused(status: &StatusBody) -> Vec<String> {
    let sentence = |pause: &PauseBody| {
        format!(
            "Scope `{}` is paused since {} and starts nothing.",
            pause.scope,
            time::absolute(&pause.since)
        )
    };
    status.paused.iter().map(sentence).collect()
}

fn oldest(waiting: Option<&WaitingBody>) -> String {
    waiting.map_or_else(String::new, |oldest| {
        format!("{} has waited for longest, since {}.", oldest.id, time::absolute(&oldest.since))
    })
}

/// A number that was counted up to a thousand.
fn at_most(number: u32, one: &str, more: &str) -> String {
    match number {
        0..1000 => some(i64::from(number), one, more),
        1000.. => format!("1000 {more} or more"),
    }
}

fn some(number: i64, one: &str, more: &str) -> String {
    if number == 0 { format!("no {one}") } else { count(number, one, more) }
}

/// A figure of the store as people read it.
fn figure(name: &str, value: &str) -> String {
    match (name, value, value.parse::<i64>()) {
        ("synchronous" | "wal_autocheckpoint", "0", _) => "off".to_owned(),
        ("synchronous", "1", _) => "normal".to_owned(),
        ("synchronous", "2", _) => "full".to_owned(),
        ("synchronous", "3", _) => "extra".to_owned(),
        ("page_size", _, Ok(size)) => bytes(size.unsigned_abs()),
        // Below zero it is a size in KiB, else a number of pages.
        ("cache_size", _, Ok(size @ ..0)) => bytes(size.unsigned_abs().saturating_mul(1024)),
        ("cache_size", _, Ok(pages)) => count(pages, "page", "pages"),
        (_name, value, _number) => value.to_owned(),
    }
}

fn size(size: Option<u64>) -> String {
    size.map_or_else(|| "not known".to_owned(), bytes)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{blocked, daemon, queues, store};
    use crate::api::wire::{FiguresBody, StatusBody};

    #[test]
    fn the_daemon_is_told_in_facts() {
        let status: StatusBody = serde_json::from_value(json!({
            "version": "0.1.0", "started_at": "2026-03-10T10:00:00Z", "now": "2026-03-10T12:05:00Z",
            "home": "/home/u/.open-conduit", "generation": 3, "config_edited": false,
            "api_address": "127.0.0.1:7717", "webhook_address": null,
            "unrouted": 0, "runnable": 1, "running": 2,
            "blocked": [{ "reason": "scope_full:main", "works": 999 }, { "reason": "unconfigured:x", "works": 1 }],
            "lanes": [], "zone_data": "2026b", "store": { "engine": "sqlite", "version": "3.51.3", "journal_mode": "wal",
                "synchronous": "2", "page_size": "4096", "cache_size": "-65536", "wal_autocheckpoint": "0", "commits": "11" },
        }))
        .unwrap();
        let figures: FiguresBody = serde_json::from_value(json!({
            "memory_bytes": 12 << 20, "database_bytes": 4096, "wal_bytes": 0, "disk_free_bytes": null,
            "disk_size_bytes": null, "streams_open": 1, "oldest_unrouted": null,
            "oldest_runnable": { "id": "work_1", "since": "2026-03-10T12:00:00Z", "reason": null },
            "oldest_blocked": null,
        }))
        .unwrap();
        let told = (
            daemon(&status, &figures),
            store(&status, &figures),
            queues(&status, &figures),
            blocked(&status),
        );
        insta::assert_debug_snapshot!(told);
    }
}
