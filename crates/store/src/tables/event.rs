//! Events, their payloads, and what each chain has published.

use domain::causal::Bounds;
use domain::delivery::Redelivery;
use domain::event::{Causation, Event, Key, Payload};
use domain::feed::Change;
use domain::id::{EventId, ExecutionId, Sequence, WorkId};
use domain::store::{EventFilter, EventReads, EventWrites, StoreError};
use domain::text::{DeliveryId, SourceName};
use domain::time::Timestamp;

use super::{code, list::List};
use crate::db::{self, Columns, Sql, Value, blob, int, limit, maybe_int, maybe_text, maybe_time, text, time};
use crate::tx::Transaction;

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT sequence, id, source, delivery_id, event_type, scope, key_source, key_external_id, work, ",
            "parent, root, depth, max_depth, per_minute, emitted_by, occurred_at, accepted_at FROM event",
            $rest
        )
    };
}

static BY_ID: Sql = Sql::new("read an Event", "event", select!(" WHERE id = $1"));
static BY_SEQUENCE: Sql = Sql::new("read an Event by its sequence", "event", select!(" WHERE sequence = $1"));
static BY_DELIVERY: Sql =
    Sql::new("read an Event by its delivery", "event", select!(" WHERE source = $1 AND delivery_id = $2"));
static LIST: Sql = Sql::new("list Events", "event", select!(""));
static OF_KEY: Sql = Sql::new(
    "read Events of a key",
    "event",
    select!(" WHERE key_source = $1 AND key_external_id = $2 AND sequence > $3 ORDER BY sequence LIMIT $4"),
);
static AFTER: Sql =
    Sql::new("read Events in order", "event", select!(" WHERE sequence > $1 ORDER BY sequence LIMIT $2"));
static REPLAYS: Sql = Sql::new(
    "read replays of an Event",
    "event",
    select!(" WHERE parent = $1 AND event_type = 'core.replay.requested' ORDER BY sequence LIMIT $2"),
);
static IDS: Sql = Sql::new(
    "list ids of Events",
    "event",
    "SELECT id FROM event WHERE id >= $1 AND id <= $2 ORDER BY id LIMIT $3",
);
static INSERT: Sql = Sql::new(
    "accept an Event",
    "event",
    "INSERT INTO event (sequence, id, source, delivery_id, event_type, scope, key_source, key_external_id,
        work, parent, root, depth, max_depth, per_minute, emitted_by, occurred_at, accepted_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
     ON CONFLICT (source, delivery_id) DO NOTHING",
);
static PAYLOAD: Sql = Sql::new("read a payload", "payload", "SELECT body FROM payload WHERE sequence = $1");
static INSERT_PAYLOAD: Sql =
    Sql::new("keep a payload", "payload", "INSERT INTO payload (sequence, body) VALUES ($1, $2)");
static REDELIVERY: Sql = Sql::new(
    "read how often a delivery came again",
    "redelivery",
    "SELECT count, last_at FROM redelivery WHERE sequence = $1",
);
static COUNT_REDELIVERY: Sql = Sql::new(
    "count a delivery that came again",
    "redelivery",
    "INSERT INTO redelivery (sequence, count, last_at) VALUES ($1, 1, $2)
     ON CONFLICT (sequence) DO UPDATE SET count = redelivery.count + 1, last_at = excluded.last_at",
);
static ROOT_MINUTE: Sql = Sql::new(
    "read what a chain published",
    "root_minute",
    "SELECT count FROM root_minute WHERE root = $1 AND minute = $2",
);
static CHARGE_ROOT: Sql = Sql::new(
    "count what a chain published",
    "root_minute",
    "INSERT INTO root_minute (root, minute, count) VALUES ($1, $2, 1)
     ON CONFLICT (root, minute) DO UPDATE SET count = root_minute.count + 1
     WHERE root_minute.count < $3",
);

fn decode(columns: &mut Columns<'_>) -> Result<Event, StoreError> {
    Ok(Event {
        sequence: Sequence::from_number(columns.int()?),
        id: EventId::from_number(columns.int()?),
        source: columns.text()?,
        delivery_id: columns.text()?,
        event_type: columns.text()?,
        scope: columns.text()?,
        key: match (columns.maybe_text()?, columns.maybe_text()?) {
            (Some(source), Some(external_id)) => Some(Key { source, external_id }),
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => return Err(columns.corrupt("half a key")),
        },
        work: columns.maybe_int()?.map(WorkId::from_number),
        causation: Causation {
            parent: columns.maybe_int()?.map(EventId::from_number),
            root: EventId::from_number(columns.int()?),
            depth: columns.int()?,
            bounds: Bounds { max_depth: small(columns)?, per_minute: small(columns)? },
        },
        emitted_by: columns.maybe_int()?.map(ExecutionId::from_number),
        occurred_at: columns.maybe_time()?,
        accepted_at: columns.time()?,
    })
}

/// A bound of a chain.
fn small(columns: &mut Columns<'_>) -> Result<u32, StoreError> {
    let number = columns.int()?;
    u32::try_from(number).map_err(|_large| columns.corrupt("a bound that is none"))
}

impl EventReads for Transaction<'_> {
    fn event(&mut self, id: EventId) -> Result<Option<Event>, StoreError> {
        self.db.one(&BY_ID, &[int(id.number())], decode)
    }

    fn event_at(&mut self, sequence: Sequence) -> Result<Option<Event>, StoreError> {
        self.db.one(&BY_SEQUENCE, &[int(sequence.number())], decode)
    }

    fn event_of_delivery(
        &mut self,
        source: &SourceName,
        delivery_id: &DeliveryId,
    ) -> Result<Option<Event>, StoreError> {
        self.db.one(&BY_DELIVERY, &[text(source.as_str()), text(delivery_id.as_str())], decode)
    }

    fn payload(&mut self, sequence: Sequence) -> Result<Option<Payload>, StoreError> {
        self.db.one(&PAYLOAD, &[int(sequence.number())], |columns| Ok(Payload::stored(columns.blob()?)))
    }

    fn redelivery(&mut self, sequence: Sequence) -> Result<Option<Redelivery>, StoreError> {
        self.db.one(&REDELIVERY, &[int(sequence.number())], |columns| {
            Ok(Redelivery { count: columns.int()?, last_at: columns.time()? })
        })
    }

    fn derived_in_minute(&mut self, root: EventId, minute: i64) -> Result<i64, StoreError> {
        let count = self.db.one(&ROOT_MINUTE, &[int(root.number()), int(minute)], db::number)?;
        Ok(count.unwrap_or(0))
    }

    fn events(&mut self, filter: &EventFilter, limit: u32) -> Result<Vec<Event>, StoreError> {
        let mut list = List::new(LIST.text);
        list.only("scope = $n", filter.scope.as_ref().map(|scope| text(scope.as_str())));
        list.only("event_type = $n", filter.event_type.as_ref().map(|name| text(name.as_str())));
        list.only("source = $n", filter.source.as_ref().map(|source| text(source.as_str())));
        list.only_pair(
            "key_source = $m AND key_external_id = $n",
            filter.key.as_ref().map(|key| (text(key.source.as_str()), text(key.external_id.as_str()))),
        );
        list.only(
            "sequence IN (SELECT sequence FROM checkpoint WHERE work = $n
             UNION SELECT sequence FROM event WHERE work = $n)",
            filter.work.map(|work| int(work.number())),
        );
        list.only(
            "EXISTS (SELECT 1 FROM checkpoint WHERE checkpoint.sequence = event.sequence AND outcome = $n)",
            filter.outcome.map(|outcome| int(code::checkpoint_outcome(outcome))),
        );
        list.only("sequence < $n", filter.before.map(|before| int(before.number())));
        let (query, values) = list.ordered("sequence DESC", limit);
        self.db.listed(&LIST, &query, &values, decode)
    }

    fn events_after(&mut self, after: Sequence, rows: u32) -> Result<Vec<Event>, StoreError> {
        self.db.many(&AFTER, &[int(after.number()), limit(rows)], decode)
    }

    fn events_of_key(&mut self, key: &Key, after: Sequence, rows: u32) -> Result<Vec<Event>, StoreError> {
        let (source, id) = (text(key.source.as_str()), text(key.external_id.as_str()));
        self.db.many(&OF_KEY, &[source, id, int(after.number()), limit(rows)], decode)
    }

    fn replays_of(&mut self, id: EventId, rows: u32) -> Result<Vec<Event>, StoreError> {
        self.db.many(&REPLAYS, &[int(id.number()), limit(rows)], decode)
    }

    fn event_ids(&mut self, low: EventId, high: EventId, rows: u32) -> Result<Vec<EventId>, StoreError> {
        let values = [int(low.number()), int(high.number()), limit(rows)];
        self.db.many(&IDS, &values, |columns| columns.int().map(EventId::from_number))
    }
}

/// An Event as its row has it.
fn columns_of(event: &Event) -> [Value<'_>; 17] {
    [
        int(event.sequence.number()),
        int(event.id.number()),
        text(event.source.as_str()),
        text(event.delivery_id.as_str()),
        text(event.event_type.as_str()),
        text(event.scope.as_str()),
        maybe_text(event.key.as_ref().map(|key| key.source.as_str())),
        maybe_text(event.key.as_ref().map(|key| key.external_id.as_str())),
        maybe_int(event.work.map(WorkId::number)),
        maybe_int(event.causation.parent.map(EventId::number)),
        int(event.causation.root.number()),
        int(event.causation.depth),
        int(i64::from(event.causation.bounds.max_depth)),
        int(i64::from(event.causation.bounds.per_minute)),
        maybe_int(event.emitted_by.map(ExecutionId::number)),
        maybe_time(event.occurred_at),
        time(event.accepted_at),
    ]
}

impl Transaction<'_> {
    fn insert_payload(&mut self, event: &Event, payload: &Payload) -> Result<(), StoreError> {
        let values = [int(event.sequence.number()), blob(payload.as_bytes())];
        self.db.write(&INSERT_PAYLOAD, &values, 1)?;
        self.feed_as(event.sequence, Change::Event { id: event.id })
    }
}

impl EventWrites for Transaction<'_> {
    fn insert_event(&mut self, event: &Event, payload: &Payload) -> Result<bool, StoreError> {
        let inserted = self.db.count(&INSERT, &columns_of(event))?;
        if inserted == 0 {
            return Ok(false);
        }
        self.insert_payload(event, payload)?;
        Ok(true)
    }

    fn insert_new_event(&mut self, event: &Event, payload: &Payload) -> Result<(), StoreError> {
        self.db.write(&INSERT, &columns_of(event), 1)?;
        self.insert_payload(event, payload)
    }

    fn count_redelivery(&mut self, sequence: Sequence, at: Timestamp) -> Result<(), StoreError> {
        self.db.write(&COUNT_REDELIVERY, &[int(sequence.number()), time(at)], 1)
    }

    fn charge_root(&mut self, root: EventId, minute: i64, per_minute: u32) -> Result<bool, StoreError> {
        let values = [int(root.number()), int(minute), int(i64::from(per_minute))];
        Ok(self.db.count(&CHARGE_ROOT, &values)? > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::{OF_KEY, REPLAYS};
    use crate::tables::plan::assert_uses;

    #[test]
    fn what_an_event_has_nothing_to_do_with_costs_nothing() {
        assert_uses(&REPLAYS, "event_replay");
        assert_uses(&OF_KEY, "event_key");
    }
}
