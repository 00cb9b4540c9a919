//! Starts of a daemon, one row for each of its lives.

use domain::id::Incarnation;
use domain::store::{
    LastSeen, Recovered, RecoveryTally, StartFilter, StartReads, StartRow, StartWrites, StoreError,
};

use super::list::List;
use crate::db::{Columns, Sql, int, maybe_time, time};
use crate::tx::Transaction;

static LIST: Sql = Sql::new(
    "list starts",
    "daemon_start",
    "SELECT incarnation, host.label, daemon_start.host, started_at, seen_at, stopped, adopted, relaunched,
        finished, interrupted
     FROM daemon_start LEFT JOIN host ON host.number = daemon_start.host",
);
static INSERT: Sql = Sql::new(
    "note a start",
    "daemon_start",
    "INSERT INTO daemon_start (incarnation, host, started_at, seen_at, stopped, adopted, relaunched, finished,
        interrupted)
     VALUES ($1, $2, $3, $4, $5, 0, 0, 0, 0)
     ON CONFLICT DO NOTHING",
);
static COUNT: Sql = Sql::new(
    "count a recovered run",
    "daemon_start",
    "UPDATE daemon_start SET adopted = adopted + $2, relaunched = relaunched + $3, finished = finished + $4,
        interrupted = interrupted + $5
     WHERE incarnation = $1",
);

fn decode(columns: &mut Columns<'_>, host: i64) -> Result<StartRow, StoreError> {
    Ok(StartRow {
        incarnation: Incarnation::from_number(columns.int()?),
        host: columns.maybe_text()?,
        here: columns.int()? == host,
        started_at: columns.time()?,
        before: {
            let at = columns.maybe_time()?;
            let stopped = columns.flag()?;
            at.map(|at| LastSeen { at, stopped })
        },
        recovered: RecoveryTally {
            adopted: columns.int()?,
            relaunched: columns.int()?,
            finished: columns.int()?,
            interrupted: columns.int()?,
        },
    })
}

impl StartReads for Transaction<'_> {
    fn starts(&mut self, filter: &StartFilter, limit: u32) -> Result<Vec<StartRow>, StoreError> {
        let host = self.place.host;
        let mut list = List::new(LIST.text);
        list.only("daemon_start.host = $n", filter.here.then(|| int(host)));
        list.only("incarnation < $n", filter.before.map(|before| int(before.number())));
        let (query, values) = list.ordered("incarnation DESC", limit);
        self.db.listed(&LIST, &query, &values, |columns| decode(columns, host))
    }
}

impl StartWrites for Transaction<'_> {
    fn insert_start(&mut self, incarnation: Incarnation, before: Option<LastSeen>) -> Result<(), StoreError> {
        let values = [
            int(incarnation.number()),
            int(self.place.host),
            time(self.place.now),
            maybe_time(before.map(|seen| seen.at)),
            int(i64::from(before.is_some_and(|seen| seen.stopped))),
        ];
        self.db.write(&INSERT, &values, 1)
    }

    fn count_recovered(&mut self, incarnation: Incarnation, found: Recovered) -> Result<bool, StoreError> {
        let one = |counted: Recovered| int(i64::from(found == counted));
        let values = [
            int(incarnation.number()),
            one(Recovered::Adopted),
            one(Recovered::Relaunched),
            one(Recovered::Finished),
            one(Recovered::Interrupted),
        ];
        Ok(self.db.count(&COUNT, &values)? > 0)
    }
}
