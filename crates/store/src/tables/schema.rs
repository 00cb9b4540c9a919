//! The schema, as numbered migrations in one text. A dialect fills in what the engines call things.
//!
//! Three rules decide what gets an index. A table is clustered by what its hot statements look it up with.
//! A list that grows with what is due, live or pending has a partial index that holds only those rows, so
//! history costs nothing. Every other index pays for itself at a page per insert, and says for what.

/// What an engine calls the parts that differ.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dialect {
    /// A 64-bit integer: numbers, flags, states and times alike.
    pub(crate) int: &'static str,
    /// Text, ordered by its bytes.
    pub(crate) text: &'static str,
    /// Bytes.
    pub(crate) blob: &'static str,
    /// After a table whose primary key is one number.
    pub(crate) table: &'static str,
    /// After a table that is stored in the order of its primary key of several columns, or of text.
    pub(crate) clustered: &'static str,
}

impl Dialect {
    /// A statement of the schema in this dialect.
    pub(crate) fn render(&self, statement: &str) -> String {
        statement
            .replace("{int}", self.int)
            .replace("{text}", self.text)
            .replace("{blob}", self.blob)
            .replace("{table}", self.table)
            .replace("{clustered}", self.clustered)
    }
}

/// One step of the schema's history. Once released it never changes.
#[derive(Debug)]
pub(crate) struct Migration {
    /// Its number; they follow one another from 1.
    pub(crate) number: i64,
    /// What it brings.
    pub(crate) statements: &'static [&'static str],
}

impl Migration {
    /// A digest of its text, in no dialect: FNV-1a, since it is stored.
    pub(crate) fn checksum(&self) -> i64 {
        let mut digest: u64 = 0xcbf2_9ce4_8422_2325;
        for byte in self.statements.iter().flat_map(|statement| statement.bytes().chain([0])) {
            digest = (digest ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        digest.cast_signed()
    }
}

/// Where migrations are noted. It comes before the first.
pub(crate) const MIGRATION_TABLE: &str =
    "CREATE TABLE IF NOT EXISTS migration (number {int} PRIMARY KEY, checksum {int} NOT NULL) {table}";

/// Every migration, in order.
pub(crate) const MIGRATIONS: &[Migration] = &[Migration { number: 1, statements: FIRST }];

const FIRST: &[&str] = &[
    // One row. `owner`, `epoch` and `lease_until` belong to the node that runs the loops.
    "CREATE TABLE coordination (
        id {int} PRIMARY KEY CHECK (id = 1),
        next_sequence {int} NOT NULL,
        owner {int},
        epoch {int} NOT NULL,
        lease_until {int},
        clock {int} NOT NULL
    ) {table}",
    "INSERT INTO coordination (id, next_sequence, owner, epoch, lease_until, clock)
     VALUES (1, 1, NULL, 0, NULL, 0)",
    // The places whose processes look after attempts; none where one process has the database alone.
    "CREATE TABLE host (number {int} PRIMARY KEY, identity {text} NOT NULL UNIQUE, label {text} NOT NULL) {table}",
    // What each life of a process committed last; it answers whether a lost commit happened.
    "CREATE TABLE writer (
        incarnation {int} PRIMARY KEY,
        host {int} NOT NULL,
        batch {int} NOT NULL,
        started_at {int} NOT NULL
    ) {table}",
    // A row for each life that a daemon began: when the one before was last seen alive, whether it had stopped
    // in order, and what became of the runs that earlier ones left.
    "CREATE TABLE daemon_start (
        incarnation {int} PRIMARY KEY,
        host {int} NOT NULL,
        started_at {int} NOT NULL,
        seen_at {int},
        stopped {int} NOT NULL CHECK (stopped IN (0, 1)),
        adopted {int} NOT NULL,
        relaunched {int} NOT NULL,
        finished {int} NOT NULL,
        interrupted {int} NOT NULL
    ) {table}",
    // `id` is looked up by people and by causation; the pair is the idempotency key. Both are identities.
    "CREATE TABLE event (
        sequence {int} PRIMARY KEY,
        id {int} NOT NULL UNIQUE,
        source {text} NOT NULL,
        delivery_id {text} NOT NULL,
        event_type {text} NOT NULL,
        scope {text} NOT NULL,
        key_source {text},
        key_external_id {text},
        work {int},
        parent {int},
        root {int} NOT NULL,
        depth {int} NOT NULL CHECK (depth >= 0),
        max_depth {int} NOT NULL,
        per_minute {int} NOT NULL,
        emitted_by {int},
        occurred_at {int},
        accepted_at {int} NOT NULL,
        UNIQUE (source, delivery_id),
        CHECK ((key_source IS NULL) = (key_external_id IS NULL))
    ) {table}",
    // The history of a key, for lists and for what subscribes to a key. Keyless Events do not pay.
    "CREATE INDEX event_key ON event (key_source, key_external_id, sequence) WHERE key_source IS NOT NULL",
    // The history of a Work before routing. Only addressed Events pay.
    "CREATE INDEX event_work ON event (work, sequence) WHERE work IS NOT NULL",
    // What an operator had looked at again. Only replays pay.
    "CREATE INDEX event_replay ON event (parent, sequence) WHERE event_type = 'core.replay.requested'",
    // Apart from the Event, so that coordination never reads past a mebibyte and retention deletes a row.
    "CREATE TABLE payload (sequence {int} PRIMARY KEY, body {blob} NOT NULL) {table}",
    "CREATE TABLE redelivery (
        sequence {int} PRIMARY KEY,
        count {int} NOT NULL,
        last_at {int} NOT NULL
    ) {table}",
    "CREATE TABLE root_minute (
        root {int} NOT NULL,
        minute {int} NOT NULL,
        count {int} NOT NULL,
        PRIMARY KEY (root, minute)
    ) {clustered}",
    "CREATE TABLE unrouted (
        sequence {int} PRIMARY KEY,
        lane {int} NOT NULL,
        parked {int} NOT NULL CHECK (parked IN (0, 1))
    ) {table}",
    // "Is an earlier Event of this lane unrouted" is asked for every Event; it must not walk the backlog.
    "CREATE INDEX unrouted_lane ON unrouted (lane, sequence) WHERE lane <> 0",
    // The candidates, past any number of parked rows.
    "CREATE INDEX unrouted_candidate ON unrouted (sequence) WHERE parked = 0",
    "CREATE TABLE lane_block (
        lane {int} PRIMARY KEY,
        head {int} NOT NULL,
        event {int} NOT NULL,
        blocked_until {int} NOT NULL,
        tries {int} NOT NULL,
        code {text} NOT NULL,
        reason {text} NOT NULL
    ) {table}",
    // What is due. Rows are few, and written only on failure.
    "CREATE INDEX lane_block_due ON lane_block (blocked_until, lane)",
    "CREATE TABLE checkpoint (
        sequence {int} PRIMARY KEY,
        event {int} NOT NULL,
        outcome {int} NOT NULL CHECK (outcome BETWEEN 0 AND 4),
        route {text},
        policy {int} CHECK (policy BETWEEN 0 AND 3),
        work {int},
        generation {int} NOT NULL,
        code {text},
        reason {text},
        at {int} NOT NULL
    ) {table}",
    // What somebody should look at. Rows are few.
    "CREATE INDEX checkpoint_quarantined ON checkpoint (at) WHERE outcome = 4",
    // The history of a Work.
    "CREATE INDEX checkpoint_work ON checkpoint (work, sequence) WHERE work IS NOT NULL",
    // States: ready 0, running 1, waiting 2, completed 3, failed 4, cancelled 5.
    // Queues: idle 0, runnable 1, blocked 2.
    // Eligibility: clear 0, backoff 1, due 2, woken 3, exhausted by its budget 4 or by its chain 5, stopping 6.
    // `failed` is the attempt that it is about. `wait` is what it waits for, or was woken from; `next_trigger` is
    // the Event that begins the next turn whatever is pending.
    "CREATE TABLE work (
        id {int} PRIMARY KEY,
        scope {text} NOT NULL,
        kind {text} NOT NULL,
        lifecycle {int} NOT NULL CHECK (lifecycle BETWEEN 0 AND 2),
        concurrency {text},
        state {int} NOT NULL CHECK (state BETWEEN 0 AND 5),
        execution {int},
        queue {int} NOT NULL CHECK (queue BETWEEN 0 AND 2),
        blocker {text},
        queued_at {int} NOT NULL,
        failures {int} NOT NULL CHECK (failures >= 0),
        eligibility {int} NOT NULL CHECK (eligibility BETWEEN 0 AND 6),
        failed {int},
        retry_at {int},
        next_trigger {int},
        wait {int},
        resumes {int},
        hold {int} CHECK (hold BETWEEN 0 AND 2),
        hold_reason {text},
        held_at {int},
        let_through {int} NOT NULL DEFAULT 0 CHECK (let_through IN (0, 1)),
        revision {int} NOT NULL,
        attempts {int} NOT NULL,
        created_at {int} NOT NULL,
        ended_at {int},
        CHECK ((state = 1) = (execution IS NOT NULL)),
        CHECK ((queue = 2) = (blocker IS NOT NULL)),
        CHECK ((eligibility IN (0, 3)) = (failed IS NULL)),
        CHECK ((eligibility = 1) = (retry_at IS NOT NULL)),
        CHECK (eligibility NOT IN (2, 3) OR next_trigger IS NOT NULL),
        CHECK (eligibility IN (2, 3, 6) OR next_trigger IS NULL),
        CHECK ((state = 2 OR eligibility = 3) = (wait IS NOT NULL)),
        CHECK (resumes IS NULL OR eligibility = 3),
        CHECK ((hold IS NULL) = (held_at IS NULL) AND (hold IS NULL) = (hold_reason IS NULL))
    ) {table}",
    "CREATE INDEX work_runnable ON work (queued_at, id) WHERE queue = 1",
    "CREATE INDEX work_blocked ON work (blocker, queued_at, id) WHERE queue = 2",
    "CREATE INDEX work_exhausted ON work (queued_at, id) WHERE eligibility IN (4, 5)",
    // What an operator is to release. Rows are few.
    "CREATE INDEX work_held ON work (held_at, id) WHERE held_at IS NOT NULL",
    // Lists by scope, newest first. Updates never touch it.
    "CREATE INDEX work_scope ON work (scope, id)",
    // Works that share a concurrency key: the belt is that a second one cannot be written as running. Others do not
    // pay.
    "CREATE UNIQUE INDEX work_concurrency ON work (concurrency, scope) WHERE concurrency IS NOT NULL AND state = 1",
    // A row for each Work that succeeds one which has ended. The belt: a second successor cannot be written.
    "CREATE TABLE succession (
        work {int} PRIMARY KEY,
        predecessor {int} NOT NULL UNIQUE,
        first {int} NOT NULL,
        generation {int} NOT NULL CHECK (generation > 1)
    ) {table}",
    "CREATE UNIQUE INDEX succession_line ON succession (first, generation)",
    "CREATE TABLE work_key (
        source {text} NOT NULL,
        external_id {text} NOT NULL,
        work {int} NOT NULL,
        PRIMARY KEY (source, external_id)
    ) {clustered}",
    // The keys of one Work: shown with it, and asked before it may end.
    "CREATE INDEX work_key_work ON work_key (work)",
    // `turn` is that of a resumed attempt which began with it; none for the first.
    "CREATE TABLE input (
        work {int} NOT NULL,
        sequence {int} NOT NULL,
        event {int} NOT NULL,
        binding {text} NOT NULL,
        consumed_by {int},
        turn {int},
        PRIMARY KEY (work, sequence)
    ) {clustered}",
    // A standing Work has years of consumed input, and none of it may cost the next attempt. Led by the
    // consumer, this one index finds what is pending of a Work and what an Execution took; a partial one on
    // the key's own columns would lose to the key.
    "CREATE INDEX input_consumer ON input (consumed_by, work, sequence)",
    // States: pending 0, launching 1, running 2, parked 3, completed 4, handoff 5, waiting 6, failed 7,
    // cancelled 8. Below 4 an Execution is live, and below 3 it runs or is about to. `token` is a digest, and
    // `declared` and `workspace` are JSON that no query looks into.
    "CREATE TABLE execution (
        id {int} PRIMARY KEY,
        work {int} NOT NULL,
        scope {text} NOT NULL,
        attempt {int} NOT NULL,
        state {int} NOT NULL CHECK (state BETWEEN 0 AND 8),
        epoch {int} NOT NULL,
        lease_owner {int},
        lease_until {int},
        recovering {int} NOT NULL CHECK (recovering IN (0, 1)),
        trigger {int} NOT NULL,
        trigger_sequence {int} NOT NULL,
        retry_of {int},
        binding {text} NOT NULL,
        executor {text} NOT NULL,
        generation {int} NOT NULL,
        timeout {int} NOT NULL,
        deadline_at {int},
        handle {blob},
        turn {int} NOT NULL CHECK (turn >= 1),
        cause {int} NOT NULL,
        used {int} NOT NULL,
        resumed_by {int},
        session {blob},
        outcome {int} CHECK (outcome BETWEEN 0 AND 3),
        claimed_at {int} NOT NULL,
        started_at {int},
        ended_at {int},
        unstopped {int} NOT NULL CHECK (unstopped IN (0, 1)),
        host {int} NOT NULL,
        controls {int} NOT NULL CHECK (controls BETWEEN 0 AND 3),
        interrupted_by {int},
        token {blob},
        declared {text},
        let_through {int} NOT NULL DEFAULT 0 CHECK (let_through IN (0, 1)),
        reports {int} NOT NULL DEFAULT 0 CHECK (reports >= 0),
        credential {text},
        content {int} NOT NULL DEFAULT 0 CHECK (content BETWEEN 0 AND 2),
        workspace {text},
        CHECK ((lease_owner IS NULL) = (lease_until IS NULL)),
        CHECK (state <> 3 OR (lease_until IS NULL AND outcome IS NULL))
    ) {table}",
    // The belt: a second live attempt of one Work cannot be written.
    "CREATE UNIQUE INDEX execution_live ON execution (work) WHERE state < 4",
    // Capacity is counted from these rows, and any number may be parked beside them. The state stands in it so that
    // no planner takes the index of a scope's whole history for as good.
    "CREATE INDEX execution_live_scope ON execution (scope, state) WHERE state < 3",
    // By host: what only another can look after must not stand before what this one can.
    "CREATE INDEX execution_lease ON execution (host, lease_until, id) WHERE state < 3 AND outcome IS NULL",
    "CREATE INDEX execution_unsettled ON execution (id) WHERE state < 4 AND outcome IS NOT NULL",
    "CREATE INDEX execution_unstopped ON execution (host, id) WHERE unstopped = 1",
    // Content that its host has yet to remove.
    "CREATE INDEX execution_releasing ON execution (host, id) WHERE content = 1",
    // What ended lately, for whoever draws it, and in its order for whoever releases content. A run that ended is written at its end, and once.
    "CREATE INDEX execution_ended ON execution (ended_at) WHERE ended_at IS NOT NULL",
    // The attempts of a Work, and the runs of a scope, newest first. Updates never touch them.
    "CREATE INDEX execution_work ON execution (work, id)",
    "CREATE INDEX execution_scope ON execution (scope, id)",
    // How far the runs of a Work have lost their content: a row where any has, or is to at a time that is known.
    "CREATE TABLE retention (
        work {int} PRIMARY KEY,
        released {int} NOT NULL CHECK (released >= 0),
        run {int},
        look_at {int}
    ) {table}",
    "CREATE INDEX retention_look ON retention (look_at, work) WHERE look_at IS NOT NULL",
    // Apart from the Execution, for it is the one record that is kept as JSON.
    "CREATE TABLE turn_result (execution {int} PRIMARY KEY, body {blob} NOT NULL) {table}",
    // Every row is to come: what fired or was disarmed is gone.
    "CREATE TABLE timer (
        id {int} PRIMARY KEY,
        kind {int} NOT NULL CHECK (kind BETWEEN 0 AND 2),
        scope {text} NOT NULL,
        work {int} NOT NULL,
        execution {int},
        wait {int},
        armed_at {int} NOT NULL,
        due_at {int} NOT NULL
    ) {table}",
    "CREATE INDEX timer_due ON timer (due_at, id)",
    // Disarmed with its Work, and shown with it.
    "CREATE INDEX timer_work ON timer (work, due_at)",
    // One for each part that recurs. Those of a disabled scope rest, and stand behind all the others.
    "CREATE TABLE recurrence (
        id {int} PRIMARY KEY,
        scope {text} NOT NULL,
        entry {text} NOT NULL,
        source {text} NOT NULL,
        external_id {text} NOT NULL,
        state {blob} NOT NULL,
        rests {int} NOT NULL CHECK (rests BETWEEN 0 AND 1),
        armed_at {int} NOT NULL,
        due_at {int} NOT NULL,
        firings {int} NOT NULL
    ) {table}",
    "CREATE INDEX recurrence_due ON recurrence (rests, due_at, id)",
    "CREATE UNIQUE INDEX recurrence_key ON recurrence (scope, source, external_id)",
    "CREATE TABLE firing (
        recurrence {int} NOT NULL,
        number {int} NOT NULL,
        due_at {int} NOT NULL,
        fired_at {int} NOT NULL,
        event {int},
        told {blob} NOT NULL,
        PRIMARY KEY (recurrence, number)
    ) {clustered}",
    // Found by the attempt, in the order of its Events. States: pending 0, dispatched 1, ambiguous 2, accepted 3,
    // not accepting 4, fell back 5, consumed 6, delivered 7, stale 8.
    "CREATE TABLE intent (
        execution {int} NOT NULL,
        sequence {int} NOT NULL,
        event {int} NOT NULL,
        work {int} NOT NULL,
        kind {int} NOT NULL CHECK (kind BETWEEN 0 AND 1),
        epoch {int} NOT NULL,
        on_error {int} CHECK (on_error = 0),
        state {int} NOT NULL CHECK (state BETWEEN 0 AND 8),
        due_at {int},
        tries {int} NOT NULL,
        created_at {int} NOT NULL,
        reason {text},
        host {int} NOT NULL,
        PRIMARY KEY (execution, sequence),
        CHECK ((state < 3) = (due_at IS NOT NULL))
    ) {clustered}",
    // By host, as leases are: only its process can carry the order out.
    "CREATE INDEX intent_due ON intent (host, due_at, execution, sequence) WHERE due_at IS NOT NULL",
    // States: active 0, woken 1, cancelled 2. Keys and types are JSON: no query looks into them, for a key leads
    // to its Work and a Work to its Wait. The timer may be gone.
    "CREATE TABLE wait (
        id {int} PRIMARY KEY,
        work {int} NOT NULL,
        scope {text} NOT NULL,
        execution {int} NOT NULL,
        keys {text} NOT NULL,
        types {text} NOT NULL,
        after_sequence {int} NOT NULL,
        timer {int},
        timeout_at {int},
        registered_at {int} NOT NULL,
        state {int} NOT NULL CHECK (state BETWEEN 0 AND 2),
        winner {int},
        winner_sequence {int},
        ended_at {int},
        CHECK ((timer IS NULL) = (timeout_at IS NULL)),
        CHECK ((state = 1) = (winner IS NOT NULL)),
        CHECK ((winner IS NULL) = (winner_sequence IS NULL)),
        CHECK ((state = 0) = (ended_at IS NULL))
    ) {table}",
    // The belt: a second active Wait of one Work cannot be written. It is also how one is found.
    "CREATE UNIQUE INDEX wait_active ON wait (work) WHERE state = 0",
    // Lists of what can still be woken, and of what a Work has waited for, newest first.
    "CREATE INDEX wait_open ON wait (id) WHERE state = 0",
    "CREATE INDEX wait_work ON wait (work, id)",
    // Types are JSON. Ended rows stay, so that no id is used again.
    "CREATE TABLE subscription (
        id {text} PRIMARY KEY,
        work {int} NOT NULL,
        wait {int},
        scope {text} NOT NULL,
        watched_source {text} NOT NULL,
        watched_external_id {text} NOT NULL,
        types {text} NOT NULL,
        own_source {text} NOT NULL,
        own_external_id {text} NOT NULL,
        becomes {text} NOT NULL,
        after_sequence {int} NOT NULL,
        installed_at {int} NOT NULL,
        ended_at {int}
    ) {clustered}",
    // Who watches a key and has not observed an Event of it; and the belt of a Work's end.
    "CREATE INDEX subscription_watched ON subscription (watched_source, watched_external_id, after_sequence)
     WHERE ended_at IS NULL",
    "CREATE INDEX subscription_work ON subscription (work) WHERE ended_at IS NULL",
    // What has been used of a unit, by whom and over which stretch of time. It is found by its key and never
    // walked; a row is written only where a budget looks at it. Spans: life 0, day 1, week 2.
    "CREATE TABLE ledger (
        owner {text} NOT NULL,
        unit {text} NOT NULL,
        span {int} NOT NULL CHECK (span BETWEEN 0 AND 2),
        start {int} NOT NULL,
        used {int} NOT NULL CHECK (used >= 0),
        PRIMARY KEY (owner, unit, span, start)
    ) {clustered}",
    // What the turns that run may still use. It counts by its Execution's state alone.
    "CREATE TABLE reservation (
        execution {int} NOT NULL,
        unit {text} NOT NULL,
        scope {text} NOT NULL,
        amount {int} NOT NULL CHECK (amount >= 0),
        PRIMARY KEY (execution, unit)
    ) {clustered}",
    "CREATE INDEX reservation_unit ON reservation (unit, scope)",
    // What turns that go on have reported of their use, by unit, and under which names they did. The names go with
    // the turn; the amounts do when they are in its result, so what is left is of runs that go on or were stopped.
    "CREATE TABLE metered (
        execution {int} NOT NULL,
        unit {text} NOT NULL,
        amount {int} NOT NULL CHECK (amount >= 0),
        PRIMARY KEY (execution, unit)
    ) {clustered}",
    "CREATE TABLE usage_report (
        execution {int} NOT NULL,
        report {text} NOT NULL,
        PRIMARY KEY (execution, report)
    ) {clustered}",
    // What the newest turns of a kind used, for the next one's estimate.
    "CREATE TABLE recent_use (
        kind {text} NOT NULL,
        unit {text} NOT NULL,
        amounts {text} NOT NULL,
        PRIMARY KEY (kind, unit)
    ) {clustered}",
    // What attempts asked for by calls; a run that makes none has no row. A call is found by its name, and counted
    // by its number. Operations: emit 0, wait 1, child 2, progress 3, usage 4, acknowledge 5.
    "CREATE TABLE tool_call (
        execution {int} NOT NULL,
        id {text} NOT NULL,
        number {int} NOT NULL CHECK (number >= 1),
        operation {int} NOT NULL CHECK (operation BETWEEN 0 AND 5),
        request {int} NOT NULL,
        answer {blob} NOT NULL,
        at {int} NOT NULL,
        PRIMARY KEY (execution, id)
    ) {clustered}",
    "CREATE UNIQUE INDEX tool_call_number ON tool_call (execution, number)",
    "CREATE TABLE progress (
        execution {int} PRIMARY KEY,
        line {text} NOT NULL,
        percent {int} CHECK (percent BETWEEN 0 AND 100),
        at {int} NOT NULL
    ) {table}",
    "CREATE TABLE acknowledgement (
        execution {int} NOT NULL,
        sequence {int} NOT NULL,
        event {int} NOT NULL,
        PRIMARY KEY (execution, sequence)
    ) {clustered}",
    // A row for each Work that an attempt created.
    "CREATE TABLE parentage (child {int} PRIMARY KEY, parent {int} NOT NULL, execution {int} NOT NULL) {table}",
    "CREATE INDEX parentage_parent ON parentage (parent, child)",
    // The credentials whose usage limit was met, until everybody who waited for it is back. Rows are few.
    "CREATE TABLE credential_hold (
        credential {text} PRIMARY KEY,
        until {int} NOT NULL,
        since {int} NOT NULL,
        reported_by {int} NOT NULL
    ) {clustered}",
    "CREATE INDEX credential_hold_until ON credential_hold (until, credential)",
    // Starts that had to wait for a credential; none for any other.
    "CREATE TABLE credential_wait (
        work {int} NOT NULL,
        attempt {int} NOT NULL,
        turn {int} NOT NULL,
        credential {text} NOT NULL,
        since {int} NOT NULL,
        until {int},
        PRIMARY KEY (work, attempt, turn, credential)
    ) {clustered}",
    "CREATE TABLE kv (
        namespace {text} NOT NULL,
        key {text} NOT NULL,
        body {blob} NOT NULL,
        at {int} NOT NULL,
        PRIMARY KEY (namespace, key)
    ) {clustered}",
    "CREATE TABLE generation (
        number {int} PRIMARY KEY,
        body {text} NOT NULL,
        digest {text} NOT NULL,
        applied_at {int} NOT NULL
    ) {table}",
    // What an operator has paused, beside what is configured. Rows are few.
    "CREATE TABLE scope_pause (scope {text} PRIMARY KEY, since {int} NOT NULL) {clustered}",
    "CREATE TABLE token (
        digest {text} PRIMARY KEY,
        label {text} NOT NULL,
        created_at {int} NOT NULL,
        expires_at {int}
    ) {clustered}",
    // At most a few dozen rows, read whole; the digest is unique as a belt.
    "CREATE TABLE session (
        id {int} PRIMARY KEY,
        digest {text} NOT NULL UNIQUE,
        label {text} NOT NULL,
        created_at {int} NOT NULL,
        last_seen_at {int} NOT NULL,
        expires_at {int} NOT NULL
    ) {table}",
    // No index by time: rows stand in the order of commits, which is the order of time, so that pruning
    // takes them from the front. It would cost every transition a page.
    "CREATE TABLE feed (
        sequence {int} PRIMARY KEY,
        at {int} NOT NULL,
        kind {int} NOT NULL CHECK (kind BETWEEN 0 AND 3),
        a {int} NOT NULL,
        b {int},
        from_state {int},
        to_state {int}
    ) {table}",
];
