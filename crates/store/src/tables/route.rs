//! What waits to be routed, the lanes it waits in, and the checkpoints.
//!
//! An Event without a lane is filed under lane 0, which orders nothing. Its block is filed under the
//! negative of its sequence; asked for such a lane, the statements here find that one Event.

use domain::feed::Change;
use domain::id::{EventId, Generation, Sequence, WorkId};
use domain::lane::{LaneBlock, LaneId};
use domain::route::Checkpoint;
use domain::store::{RouteReads, RouteWrites, StoreError, Unrouted};
use domain::text::{Code, RouteName};
use domain::time::Timestamp;

use super::code;
use crate::db::{self, Columns, Sql, int, limit, maybe_int, maybe_text, text, time};
use crate::tx::Transaction;

static CANDIDATES: Sql = Sql::new(
    "find Events to route",
    "unrouted",
    "SELECT sequence, lane FROM unrouted WHERE parked = 0 ORDER BY sequence LIMIT $1",
);
static UNROUTED: Sql =
    Sql::new("read an unrouted Event", "unrouted", "SELECT sequence, lane FROM unrouted WHERE sequence = $1");
static IN_LANE: Sql = Sql::new(
    "read a lane",
    "unrouted",
    "SELECT sequence FROM unrouted WHERE lane = $1 AND lane <> 0 AND sequence < $2 ORDER BY sequence LIMIT $3",
);
static LANELESS: Sql = Sql::new(
    "read an unrouted Event without a lane",
    "unrouted",
    "SELECT sequence FROM unrouted WHERE sequence = $1 AND lane = 0",
);
static COUNT: Sql = Sql::new(
    "count unrouted Events",
    "unrouted",
    "SELECT CAST(COUNT(*) AS BIGINT) FROM (SELECT 1 FROM unrouted LIMIT $1) AS counted",
);
static INSERT: Sql = Sql::new(
    "queue an Event for routing",
    "unrouted",
    "INSERT INTO unrouted (sequence, lane, parked) VALUES ($1, $2, 0)",
);
static DELETE: Sql =
    Sql::new("take an Event off the routing queue", "unrouted", "DELETE FROM unrouted WHERE sequence = $1");
static PARK: Sql =
    Sql::new("park an Event", "unrouted", "UPDATE unrouted SET parked = 1 WHERE sequence = $1");
static UNPARK: Sql = Sql::new(
    "unpark a lane",
    "unrouted",
    "UPDATE unrouted SET parked = 0 WHERE sequence IN
     (SELECT sequence FROM unrouted WHERE lane = $1 AND lane <> 0 AND parked = 1 ORDER BY sequence LIMIT $2)",
);
static UNPARK_LANELESS: Sql = Sql::new(
    "unpark an Event without a lane",
    "unrouted",
    "UPDATE unrouted SET parked = 0 WHERE sequence = $1 AND lane = 0 AND parked = 1",
);

macro_rules! select_block {
    ($rest:literal) => {
        concat!("SELECT lane, head, event, blocked_until, tries, code, reason FROM lane_block", $rest)
    };
}

static BLOCK: Sql = Sql::new("read a lane's block", "lane_block", select_block!(" WHERE lane = $1"));
static BLOCKS_DUE: Sql = Sql::new(
    "find blocks that are due",
    "lane_block",
    select_block!(" WHERE blocked_until <= $1 ORDER BY blocked_until, lane LIMIT $2"),
);
static BLOCKS: Sql =
    Sql::new("list blocked lanes", "lane_block", select_block!(" ORDER BY head, lane LIMIT $1"));
static NEXT_BLOCK: Sql = Sql::new(
    "find the next block that is due",
    "lane_block",
    "SELECT blocked_until FROM lane_block ORDER BY blocked_until LIMIT 1",
);
static PUT_BLOCK: Sql = Sql::new(
    "block a lane",
    "lane_block",
    "INSERT INTO lane_block (lane, head, event, blocked_until, tries, code, reason)
     VALUES ($1, $2, $3, $4, $5, $6, $7)
     ON CONFLICT (lane) DO UPDATE SET head = excluded.head, event = excluded.event,
        blocked_until = excluded.blocked_until, tries = excluded.tries, code = excluded.code,
        reason = excluded.reason",
);
static DELETE_BLOCK: Sql = Sql::new("unblock a lane", "lane_block", "DELETE FROM lane_block WHERE lane = $1");

static CHECKPOINT: Sql = Sql::new(
    "read a checkpoint",
    "checkpoint",
    "SELECT sequence, event, outcome, route, policy, work, generation, code, reason, at FROM checkpoint
     WHERE sequence = $1",
);
static QUARANTINED: Sql = Sql::new(
    "find quarantined Events",
    "checkpoint",
    "SELECT sequence, event, outcome, route, policy, work, generation, code, reason, at FROM checkpoint
     WHERE outcome = 4 AND at >= $1 ORDER BY at DESC, sequence DESC LIMIT $2",
);
static INSERT_CHECKPOINT: Sql = Sql::new(
    "write a checkpoint",
    "checkpoint",
    "INSERT INTO checkpoint (sequence, event, outcome, route, policy, work, generation, code, reason, at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (sequence) DO NOTHING",
);

fn sequence(columns: &mut Columns<'_>) -> Result<Sequence, StoreError> {
    columns.int().map(Sequence::from_number)
}

fn decode_unrouted(columns: &mut Columns<'_>) -> Result<Unrouted, StoreError> {
    Ok(Unrouted { sequence: sequence(columns)?, lane: LaneId::from_number(columns.int()?) })
}

fn decode_block(columns: &mut Columns<'_>) -> Result<LaneBlock, StoreError> {
    Ok(LaneBlock {
        lane: LaneId::from_number(columns.int()?),
        head: sequence(columns)?,
        event: EventId::from_number(columns.int()?),
        blocked_until: columns.time()?,
        tries: columns.int()?,
        code: columns.text()?,
        reason: columns.text()?,
    })
}

fn decode_checkpoint(columns: &mut Columns<'_>) -> Result<Checkpoint, StoreError> {
    Ok(Checkpoint {
        sequence: sequence(columns)?,
        event: EventId::from_number(columns.int()?),
        outcome: columns.word(code::checkpoint_outcome_of)?,
        route: columns.maybe_text()?,
        policy: columns.maybe_word(code::policy_of)?,
        work: columns.maybe_int()?.map(WorkId::from_number),
        generation: Generation::from_number(columns.int()?),
        code: columns.maybe_text()?,
        reason: columns.maybe_text()?,
        at: columns.time()?,
    })
}

/// The sequence of the one Event that a lane stands for, if it is the lane of a block without one.
const fn laneless(lane: LaneId) -> Option<i64> {
    if lane.number() < 0 { lane.number().checked_neg() } else { None }
}

impl RouteReads for Transaction<'_> {
    fn route_candidates(&mut self, rows: u32) -> Result<Vec<Unrouted>, StoreError> {
        self.db.many(&CANDIDATES, &[limit(rows)], decode_unrouted)
    }

    fn unrouted(&mut self, sequence: Sequence) -> Result<Option<Unrouted>, StoreError> {
        self.db.one(&UNROUTED, &[int(sequence.number())], decode_unrouted)
    }

    fn earlier_unrouted(
        &mut self,
        lanes: &[LaneId],
        before: Sequence,
    ) -> Result<Option<Sequence>, StoreError> {
        let mut earliest: Option<Sequence> = None;
        for lane in lanes.iter().filter(|lane| **lane != LaneId::NONE) {
            let bound = earliest.unwrap_or(before);
            let found =
                self.db.one(&IN_LANE, &[int(lane.number()), int(bound.number()), limit(1)], sequence)?;
            earliest = found.or(earliest);
        }
        Ok(earliest)
    }

    fn unrouted_in_lane(
        &mut self,
        lane: LaneId,
        before: Sequence,
        rows: u32,
    ) -> Result<Vec<Sequence>, StoreError> {
        let values = [int(lane.number()), int(before.number()), limit(rows)];
        let mut found = self.db.many(&IN_LANE, &values, sequence)?;
        if let Some(number) = laneless(lane)
            && found.is_empty()
            && number < before.number()
        {
            found = self.db.many(&LANELESS, &[int(number)], sequence)?;
        }
        Ok(found)
    }

    fn lane_block(&mut self, lane: LaneId) -> Result<Option<LaneBlock>, StoreError> {
        self.db.one(&BLOCK, &[int(lane.number())], decode_block)
    }

    fn due_blocks(&mut self, now: Timestamp, rows: u32) -> Result<Vec<LaneBlock>, StoreError> {
        self.db.many(&BLOCKS_DUE, &[time(now), limit(rows)], decode_block)
    }

    fn next_block_due(&mut self) -> Result<Option<Timestamp>, StoreError> {
        self.db.one(&NEXT_BLOCK, &[], db::moment)
    }

    fn lane_blocks(&mut self, rows: u32) -> Result<Vec<LaneBlock>, StoreError> {
        self.db.many(&BLOCKS, &[limit(rows)], decode_block)
    }

    fn checkpoint(&mut self, sequence: Sequence) -> Result<Option<Checkpoint>, StoreError> {
        self.db.one(&CHECKPOINT, &[int(sequence.number())], decode_checkpoint)
    }

    fn quarantined(&mut self, since: Timestamp, rows: u32) -> Result<Vec<Checkpoint>, StoreError> {
        self.db.many(&QUARANTINED, &[time(since), limit(rows)], decode_checkpoint)
    }

    fn count_unrouted(&mut self, rows: u32) -> Result<u32, StoreError> {
        self.counted(&COUNT, &[limit(rows)])
    }
}

impl RouteWrites for Transaction<'_> {
    fn insert_unrouted(&mut self, unrouted: Unrouted) -> Result<(), StoreError> {
        let values = [int(unrouted.sequence.number()), int(unrouted.lane.number())];
        self.db.write(&INSERT, &values, 1)
    }

    fn route_off(&mut self, checkpoint: &Checkpoint) -> Result<(), StoreError> {
        self.db.write(&DELETE, &[int(checkpoint.sequence.number())], 1)?;
        self.insert_checkpoint(checkpoint)
    }

    fn insert_checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<(), StoreError> {
        self.db.write(
            &INSERT_CHECKPOINT,
            &[
                int(checkpoint.sequence.number()),
                int(checkpoint.event.number()),
                int(code::checkpoint_outcome(checkpoint.outcome)),
                maybe_text(checkpoint.route.as_ref().map(RouteName::as_str)),
                maybe_int(checkpoint.policy.map(code::policy)),
                maybe_int(checkpoint.work.map(WorkId::number)),
                int(checkpoint.generation.number()),
                maybe_text(checkpoint.code.as_ref().map(Code::as_str)),
                maybe_text(checkpoint.reason.as_deref()),
                time(checkpoint.at),
            ],
            1,
        )?;
        self.feed(Change::Checkpoint { event: checkpoint.event, outcome: checkpoint.outcome })
    }

    fn park_unrouted(&mut self, sequence: Sequence) -> Result<(), StoreError> {
        self.db.write(&PARK, &[int(sequence.number())], 1)
    }

    fn unpark_lane(&mut self, lane: LaneId, rows: u32) -> Result<u32, StoreError> {
        let mut unparked = self.db.count(&UNPARK, &[int(lane.number()), limit(rows)])?;
        if let Some(number) = laneless(lane)
            && unparked == 0
        {
            unparked = self.db.count(&UNPARK_LANELESS, &[int(number)])?;
        }
        Ok(u32::try_from(unparked).unwrap_or(u32::MAX))
    }

    fn put_lane_block(&mut self, block: &LaneBlock) -> Result<(), StoreError> {
        let values = [
            int(block.lane.number()),
            int(block.head.number()),
            int(block.event.number()),
            time(block.blocked_until),
            int(block.tries),
            text(block.code.as_str()),
            text(&block.reason),
        ];
        self.db.write(&PUT_BLOCK, &values, 1)
    }

    fn delete_lane_block(&mut self, lane: LaneId) -> Result<(), StoreError> {
        self.db.write(&DELETE_BLOCK, &[int(lane.number())], 1)
    }
}

#[cfg(test)]
mod tests {
    use super::{BLOCKS_DUE, CANDIDATES, IN_LANE, UNPARK};
    use crate::tables::plan::assert_uses;

    #[test]
    fn a_backlog_costs_the_next_event_nothing() {
        assert_uses(&CANDIDATES, "unrouted_candidate");
        assert_uses(&IN_LANE, "unrouted_lane");
        assert_uses(&UNPARK, "unrouted_lane");
        assert_uses(&BLOCKS_DUE, "lane_block_due");
    }
}
