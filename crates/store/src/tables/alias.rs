//! Subscriptions to what other Works own, with those that have ended.

use domain::alias::Subscription;
use domain::event::Key;
use domain::id::{Sequence, WaitId, WorkId};
use domain::store::{AliasReads, AliasWrites, StoreError};
use domain::text::{EventType, SubscriptionId};
use domain::time::Timestamp;

use crate::db::{Columns, Sql, int, limit, maybe_int, maybe_time, text, time};
use crate::tx::Transaction;

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, work, wait, scope, watched_source, watched_external_id, types, own_source, ",
            "own_external_id, becomes, after_sequence, installed_at, ended_at FROM subscription",
            $rest
        )
    };
}

static BY_ID: Sql = Sql::new("read a subscription", "subscription", select!(" WHERE id = $1"));
// The order keeps ended rows from being walked through.
static ANY: Sql = Sql::new(
    "find whether anything is subscribed to",
    "subscription",
    "SELECT work FROM subscription WHERE ended_at IS NULL ORDER BY work LIMIT 1",
);
static ON: Sql = Sql::new(
    "find who watches a key",
    "subscription",
    select!(
        " WHERE watched_source = $1 AND watched_external_id = $2 AND after_sequence < $3 AND ended_at IS NULL
         ORDER BY after_sequence, id LIMIT $4"
    ),
);
static OF_WORK: Sql = Sql::new(
    "read the subscriptions of a Work",
    "subscription",
    select!(" WHERE work = $1 AND ended_at IS NULL ORDER BY id LIMIT $2"),
);
static INSERT: Sql = Sql::new(
    "install a subscription",
    "subscription",
    "INSERT INTO subscription (id, work, wait, scope, watched_source, watched_external_id, types, own_source,
        own_external_id, becomes, after_sequence, installed_at, ended_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) ON CONFLICT (id) DO NOTHING",
);
static UPDATE: Sql = Sql::new(
    "move a subscription on",
    "subscription",
    "UPDATE subscription SET after_sequence = $2, ended_at = $3 WHERE id = $1 AND ended_at IS NULL",
);
static END_OF: Sql = Sql::new(
    "end the subscriptions of a Work",
    "subscription",
    "UPDATE subscription SET ended_at = $2 WHERE work = $1 AND ended_at IS NULL",
);

fn key(columns: &mut Columns<'_>) -> Result<Key, StoreError> {
    Ok(Key { source: columns.text()?, external_id: columns.text()? })
}

fn types(columns: &mut Columns<'_>) -> Result<Vec<EventType>, StoreError> {
    let json: String = columns.text()?;
    // The error of the decoder would repeat what it read.
    serde_json::from_str(&json).map_err(|_source| columns.corrupt("types that are none"))
}

fn decode(columns: &mut Columns<'_>) -> Result<Subscription, StoreError> {
    Ok(Subscription {
        id: columns.text()?,
        work: WorkId::from_number(columns.int()?),
        wait: columns.maybe_int()?.map(WaitId::from_number),
        scope: columns.text()?,
        watched: key(columns)?,
        types: types(columns)?,
        own: key(columns)?,
        becomes: columns.text()?,
        after: Sequence::from_number(columns.int()?),
        installed_at: columns.time()?,
        ended_at: columns.maybe_time()?,
    })
}

impl AliasReads for Transaction<'_> {
    fn subscription(&mut self, id: &SubscriptionId) -> Result<Option<Subscription>, StoreError> {
        self.db.one(&BY_ID, &[text(id.as_str())], decode)
    }

    fn is_subscribed(&mut self) -> Result<bool, StoreError> {
        Ok(self.db.one(&ANY, &[], |columns| columns.int().map(WorkId::from_number))?.is_some())
    }

    fn subscriptions_on(
        &mut self,
        watched: &Key,
        sequence: Sequence,
        rows: u32,
    ) -> Result<Vec<Subscription>, StoreError> {
        let (source, id) = (text(watched.source.as_str()), text(watched.external_id.as_str()));
        self.db.many(&ON, &[source, id, int(sequence.number()), limit(rows)], decode)
    }

    fn subscriptions_of(&mut self, work: WorkId, rows: u32) -> Result<Vec<Subscription>, StoreError> {
        self.db.many(&OF_WORK, &[int(work.number()), limit(rows)], decode)
    }
}

impl AliasWrites for Transaction<'_> {
    fn insert_subscription(&mut self, subscription: &Subscription) -> Result<(), StoreError> {
        let types = serde_json::to_string(&subscription.types).expect("types are plain text");
        self.db.write(
            &INSERT,
            &[
                text(subscription.id.as_str()),
                int(subscription.work.number()),
                maybe_int(subscription.wait.map(WaitId::number)),
                text(subscription.scope.as_str()),
                text(subscription.watched.source.as_str()),
                text(subscription.watched.external_id.as_str()),
                text(&types),
                text(subscription.own.source.as_str()),
                text(subscription.own.external_id.as_str()),
                text(subscription.becomes.as_str()),
                int(subscription.after.number()),
                time(subscription.installed_at),
                maybe_time(subscription.ended_at),
            ],
            1,
        )
    }

    fn update_subscription(&mut self, subscription: &Subscription) -> Result<(), StoreError> {
        let (after, ended_at) = (int(subscription.after.number()), maybe_time(subscription.ended_at));
        self.db.write(&UPDATE, &[text(subscription.id.as_str()), after, ended_at], 1)
    }

    fn end_subscriptions_of(&mut self, work: WorkId, at: Timestamp) -> Result<u64, StoreError> {
        self.db.count(&END_OF, &[int(work.number()), time(at)])
    }
}

#[cfg(test)]
mod tests {
    use super::{ANY, END_OF, OF_WORK, ON};
    use crate::tables::plan::assert_uses;

    #[test]
    fn subscriptions_that_ended_cost_nothing() {
        assert_uses(&ANY, "subscription_work");
        assert_uses(&OF_WORK, "subscription_work");
        assert_uses(&END_OF, "subscription_work");
        assert_uses(&ON, "subscription_watched");
    }
}
