//! What is waited for: Waits, and the timers to come.

use std::sync::Arc;

use domain::id::{TimerId, WaitId};
use domain::store::WaitFilter;
use domain::time::Timestamp;

use super::failure::Failure;
use super::query::{self, Cursor, Query};
use super::resolve;
use super::server::{Answer, Asked, json, read};
use super::wire::{Page, TimerBody, WaitBody};
use crate::daemon::Daemon;

/// Lists Waits, newest first.
pub(crate) async fn list(daemon: &Arc<Daemon>, asked: &Asked) -> Answer {
    Ok(json(&find(daemon, &asked.query).await?))
}

/// The Waits that a query asks for, newest first: those that go on, or with `state=all` the past ones too.
///
/// # Errors
/// `bad_request` when the query cannot be read, `not_found` and `ambiguous_id` for its Work, and what reading the
/// store answers.
pub(crate) async fn find(daemon: &Daemon, query: &Query) -> Result<Page<WaitBody>, Failure> {
    let limit = query.limit()?;
    let active = match query.text("state") {
        None | Some("active") => true,
        Some("all") => false,
        Some(_other) => return Err(Failure::bad("`state` is `active` or `all`")),
    };
    let filter = WaitFilter {
        scope: query.parsed("scope")?,
        work: None,
        key: query.key()?,
        active,
        before: query.cursor(Cursor::Waits)?.map(WaitId::from_number),
    };
    let work = query.text("work").map(str::to_owned);
    read(daemon, "waits", move |tx| {
        let work = work.as_deref().map(|text| resolve::work(tx, text)).transpose()?;
        let waits = tx.waits(&WaitFilter { work, ..filter.clone() }, limit)?;
        let next = waits.last().filter(|_last| waits.len() == limit as usize);
        let next = next.map(|wait| query::cursor(Cursor::Waits, wait.id.number()));
        let items = waits.iter().map(|wait| WaitBody::read(tx, wait)).collect::<Result<_, _>>()?;
        Ok(Page { items, next })
    })
    .await
}

/// Lists timers, the next one first.
pub(crate) async fn timers(daemon: &Arc<Daemon>, asked: &Asked) -> Answer {
    Ok(json(&find_timers(daemon, &asked.query).await?))
}

/// The timers to come, the next one first.
///
/// # Errors
/// `bad_request` when the query cannot be read, and what reading the store answers.
pub(crate) async fn find_timers(daemon: &Daemon, query: &Query) -> Result<Page<TimerBody>, Failure> {
    let limit = query.limit()?;
    let after = query.text("cursor").map(read_place).transpose()?;
    read(daemon, "timers", move |tx| {
        let timers = tx.timers(after, limit)?;
        let next = timers.last().filter(|_last| timers.len() == limit as usize);
        let next = next.map(|timer| place(timer.due_at, timer.id));
        Ok(Page { items: timers.iter().map(TimerBody::from).collect(), next })
    })
    .await
}

/// A cursor after a timer: timers stand by their time, and by their id where that is the same.
fn place(due_at: Timestamp, id: TimerId) -> String {
    let [due_at, id] = [due_at.as_micros(), id.number()].map(|number| query::cursor(Cursor::Timers, number));
    format!("{due_at}-{id}")
}

fn read_place(text: &str) -> Result<(Timestamp, TimerId), Failure> {
    let read = |text| query::read_cursor(Cursor::Timers, text);
    let halves = text.split_once('-').and_then(|(due_at, id)| Some((read(due_at)?, read(id)?)));
    let halves = halves.map(|(due_at, id)| (Timestamp::from_micros(due_at), TimerId::from_number(id)));
    halves.ok_or_else(|| Failure::bad("the cursor is not one of this list; begin without one"))
}

#[cfg(test)]
mod tests {
    use domain::id::TimerId;
    use domain::time::Timestamp;

    use super::{place, read_place};

    #[test]
    fn a_place_among_timers_round_trips() {
        let (due_at, id) = (Timestamp::from_micros(1_772_366_400_000_000), TimerId::from_number(77));
        assert_eq!(read_place(&place(due_at, id)).ok(), Some((due_at, id)));
        for wrong in ["", "t1", "t1-", "w1-t2", "t1-t2-t3"] {
            assert!(read_place(wrong).is_err(), "{wrong}");
        }
    }
}
