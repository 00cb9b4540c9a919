//! Bodies for the tests of the views, with ids that a reader can follow.

use crate::api::wire::{
    CheckpointBody, EventBody, KeyBody, LaneBody, RedeliveryBody, RunBody, StartBody, TriggerBody, WaitBody,
};

/// A moment of the samples.
const AT: &str = "2026-03-10T12:00:00.25Z";

/// An Event in the making.
pub(super) struct Sample(EventBody);

/// An Event without a checkpoint.
pub(super) fn event(id: &str) -> Sample {
    Sample(EventBody {
        id: id.to_owned(),
        sequence: 1,
        source: "hook/ci".to_owned(),
        delivery_id: format!("delivery of {id}"),
        event_type: "build.finished".to_owned(),
        scope: "main".to_owned(),
        key: None,
        work: None,
        parent: None,
        root: id.to_owned(),
        depth: 0,
        emitted_by: None,
        replays: None,
        occurred_at: None,
        accepted_at: AT.to_owned(),
        checkpoint: None,
        redelivered: None,
        led_to: None,
        payload: None,
    })
}

impl Sample {
    pub(super) fn body(self) -> EventBody {
        self.0
    }

    pub(super) fn derived(mut self, parent: &str, run: &str) -> Self {
        self.0.parent = Some(parent.to_owned());
        self.0.root = parent.to_owned();
        self.0.depth = 1;
        self.0.source = "core".to_owned();
        self.0.event_type = "core.turn.ended".to_owned();
        self.0.emitted_by = Some(run.to_owned());
        self
    }

    pub(super) fn routed(self) -> Self {
        self.checkpoint("routed", None)
    }

    pub(super) fn checkpoint(mut self, outcome: &str, because: Option<(&str, &str)>) -> Self {
        self.0.checkpoint = Some(CheckpointBody {
            outcome: outcome.to_owned(),
            route: (outcome != "unmatched").then(|| "ci".to_owned()),
            policy: None,
            work: Some("work_1".to_owned()),
            generation: 3,
            code: because.map(|(code, _reason)| code.to_owned()),
            reason: because.map(|(_code, reason)| reason.to_owned()),
            at: AT.to_owned(),
        });
        self
    }

    pub(super) fn repeated(mut self, count: i64) -> Self {
        self.0.redelivered = Some(RedeliveryBody { count, last_at: AT.to_owned() });
        self
    }
}

/// A run that failed.
pub(super) fn run() -> RunBody {
    RunBody {
        id: "run_1".to_owned(),
        work: "work_1".to_owned(),
        work_kind: "ci".to_owned(),
        scope: "main".to_owned(),
        keys: vec![KeyBody { source: "hook/ci".to_owned(), external_id: "build/7".to_owned() }],
        attempt: 2,
        retry_of: None,
        turn: 1,
        woken_by: None,
        epoch: 2,
        state: "failed".to_owned(),
        trigger: TriggerBody {
            event: "ev_2".to_owned(),
            event_type: "core.turn.ended".to_owned(),
            source: "core".to_owned(),
            depth: 1,
        },
        binding: "build".to_owned(),
        executor: "shell".to_owned(),
        workspace: None,
        directory: None,
        generation: 3,
        timeout_seconds: 3600,
        deadline_at: None,
        remaining_seconds: None,
        claimed_at: AT.to_owned(),
        started_at: Some(AT.to_owned()),
        ended_at: Some("2026-03-10T12:00:02Z".to_owned()),
        outcome: Some("failed".to_owned()),
        code: Some("exit_status".to_owned()),
        summary: Some("the command ended with status 3".to_owned()),
        exit_status: Some(3),
        usage: Vec::new(),
        retention: "kept".to_owned(),
        credential: None,
        artifacts: Vec::new(),
        settling: false,
        recovering: false,
        unstopped: true,
        interrupt_event_id: None,
        controls: Vec::new(),
        orders: Vec::new(),
        progress: None,
    }
}

/// What a Work waits for.
pub(super) fn wait() -> WaitBody {
    WaitBody {
        id: "wait_1".to_owned(),
        work: "work_1".to_owned(),
        scope: "main".to_owned(),
        run: "run_1".to_owned(),
        keys: vec![KeyBody { source: "hook/ci".to_owned(), external_id: "build/7".to_owned() }],
        types: vec!["build.finished".to_owned()],
        after_sequence: 7,
        timeout_at: Some("2026-03-11T12:00:00Z".to_owned()),
        registered_at: AT.to_owned(),
        state: "active".to_owned(),
        winner: None,
        ended_at: None,
        through: Vec::new(),
    }
}

/// A lane that stands still.
pub(super) fn lane(event: &str) -> LaneBody {
    LaneBody {
        event: event.to_owned(),
        code: "handler_failed".to_owned(),
        reason: "the handler answered no".to_owned(),
        tries: 3,
        next_try_at: AT.to_owned(),
    }
}

/// A start after a crash.
pub(super) fn start() -> StartBody {
    StartBody {
        started_at: "2026-03-10T12:00:00Z".to_owned(),
        host: None,
        here: true,
        down_since: Some("2026-03-10T11:17:00Z".to_owned()),
        down_seconds: Some(43 * 60),
        stopped: false,
        adopted: 2,
        relaunched: 1,
        finished: 0,
        interrupted: 0,
    }
}
