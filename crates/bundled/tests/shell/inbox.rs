//! Events that reach a command while it runs, and the proof that it took them in.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;

use bundled::shell::ShellExecutor;
use extension::{
    Epoch, EventId, ExecutionId, Executor, Injected, Injection, InputView, Outcome, Segment, Stopped,
    TurnResult,
};
use serde_json::{Value, json};
use spec::inject::{InjectDriver, check_inject_executor};
use tokio::task::JoinHandle;

use super::fixture::{Granting, Home, RUN, executor, input, request, segment, until};

/// A shell executor under the suite: commands that acknowledge what a file tells them to, and end at another.
struct Shell {
    home: Home,
    executor: Arc<ShellExecutor>,
    turns: BTreeMap<ExecutionId, JoinHandle<TurnResult>>,
}

impl Shell {
    fn new() -> Self {
        let home = Home::new();
        let executor = home.restarted();
        Self { home, executor, turns: BTreeMap::new() }
    }

    fn file(&self, name: &str, execution: ExecutionId) -> PathBuf {
        self.home.file(&format!("{name}-{execution}"))
    }

    /// What the command of an attempt does, in a loop: what is in `take` it moves.
    fn config(&self, execution: ExecutionId) -> Value {
        let (ready, take, gate) =
            (self.file("ready", execution), self.file("take", execution), self.file("gate", execution));
        let command = format!(
            ": > {ready}; while [ ! -e {gate} ]; do if [ -e {take} ]; then \
             mv \"$OS_INBOX_DIR\"/*-$(cat {take}).json \"$OS_INBOX_DIR/acknowledged/\" && rm {take}; fi; \
             sleep 0.01; done",
            ready = ready.display(),
            take = take.display(),
            gate = gate.display(),
        );
        json!({"command": command})
    }

    /// Lets a turn be followed by a task.
    fn follow(&mut self, execution: ExecutionId, turn: JoinHandle<TurnResult>) {
        if let Some(before) = self.turns.insert(execution, turn) {
            before.abort();
        }
    }
}

impl InjectDriver for Shell {
    fn executor(&self) -> &dyn Executor {
        &*self.executor
    }

    async fn begin(&mut self, execution: ExecutionId) -> Segment {
        let config = self.config(execution);
        let mut request = request(config.clone());
        request.execution = execution;
        let (running, host) = (Arc::clone(&self.executor), Arc::new(Granting::default()));
        let pinned = Arc::clone(&host);
        let turn = tokio::runtime::Handle::current()
            .spawn(async move { running.run(request, &*host).await.unwrap() });
        self.follow(execution, turn);
        let ready = self.file("ready", execution);
        until("the command runs", || ready.exists()).await;
        let handle = Some(pinned.handle());
        Segment { execution, epoch: Epoch::FIRST, handle, config, secrets: Vec::new(), token: None }
    }

    async fn take(&mut self, segment: &Segment, event: EventId) {
        let take = self.file("take", segment.execution);
        let draft = self.file("draft", segment.execution);
        fs::write(&draft, event.to_string()).unwrap();
        fs::rename(draft, &take).unwrap();
        until("the command has taken it", || !take.exists()).await;
    }

    async fn end(&mut self, segment: &Segment) -> TurnResult {
        fs::write(self.file("gate", segment.execution), "").unwrap();
        self.turns.remove(&segment.execution).expect("it was begun").await.unwrap()
    }

    async fn restart(&mut self, segment: &Segment) -> Segment {
        self.executor = self.home.restarted();
        let adopted = Segment { epoch: segment.epoch.next(), ..segment.clone() };
        let (observing, asked) = (Arc::clone(&self.executor), adopted.clone());
        let turn =
            tokio::runtime::Handle::current().spawn(async move { observing.observe(asked).await.unwrap() });
        self.follow(segment.execution, turn);
        adopted
    }

    fn event(&self, number: i64) -> InputView {
        input(number, &json!({"number": number}))
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        for turn in self.turns.values() {
            turn.abort();
        }
    }
}

#[tokio::test]
async fn the_shell_executor_passes_the_inject_suite() {
    check_inject_executor(&mut Shell::new()).await.unwrap();
}

fn offered(segment: Segment, number: i64) -> Injection {
    Injection { segment, input: input(number, &json!({"number": number})) }
}

#[tokio::test]
async fn an_event_is_a_whole_file_of_its_owner_that_sorts_as_it_was_accepted() {
    let mut shell = Shell::new();
    let segment = shell.begin(RUN).await;
    for number in [12, 9, 100] {
        assert_eq!(shell.executor.inject(offered(segment.clone(), number)).await, Injected::Accepted);
    }
    let inbox = shell.home.segment(1).join("inbox");
    let mut names: Vec<String> = fs::read_dir(&inbox)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "acknowledged")
        .collect();
    names.sort();
    let events: Vec<String> = [9, 12, 100].map(|number| EventId::from_number(number).to_string()).into();
    assert!(names.iter().zip(&events).all(|(name, event)| name.contains(event.as_str())), "{names:?}");
    let first = inbox.join(&names[0]);
    let body: Value = serde_json::from_slice(&fs::read(&first).unwrap()).unwrap();
    assert_eq!((&body["id"], &body["payload"]), (&json!(events[0]), &json!({"number": 9})));
    assert_eq!(fs::metadata(&first).unwrap().permissions().mode() & 0o777, 0o600);
    shell.end(&segment).await;
}

#[tokio::test]
async fn a_made_file_acknowledges_and_links_and_strangers_do_not() {
    let home = Home::new();
    let one = EventId::from_number(1);
    let command = format!(
        "cd \"$OS_INBOX_DIR/acknowledged\" && : > 0000000000000000001-{one}.json && : > notes.json && \
         : > 0000000000000000009-{one}.json && mkdir 0000000000000000002-{two}.json && \
         ln -s /etc/hostname 0000000000000000003-{three}.json",
        two = EventId::from_number(2),
        three = EventId::from_number(3),
    );
    for (end, outcome) in [("", Outcome::Completed), ("; exit 3", Outcome::Failed)] {
        let home = Home::new();
        let result = home.run(json!({"command": format!("{command}{end}")})).await;
        assert_eq!((result.outcome, result.consumed_inputs), (outcome, vec![one]));
    }
    let result = home.run(json!({"command": "rm -r \"$OS_INBOX_DIR\""})).await;
    assert_eq!((result.outcome, result.consumed_inputs), (Outcome::Completed, Vec::new()));
}

#[tokio::test]
async fn a_link_in_place_of_the_inbox_is_not_followed() {
    let home = Home::new();
    let (ready, elsewhere) = (home.file("ready"), home.file("elsewhere"));
    fs::create_dir(&elsewhere).unwrap();
    let command = format!(
        "rm -r \"$OS_INBOX_DIR\"; ln -s {} \"$OS_INBOX_DIR\"; : > {}; sleep 600",
        elsewhere.display(),
        ready.display()
    );
    let config = json!({"command": command});
    let handle = home.abandon(request(config.clone()), || ready.exists()).await;
    let segment = segment(1, Some(handle), &config);
    let answer = home.executor.inject(offered(segment.clone(), 5)).await;
    assert!(matches!(answer, Injected::NotAccepting { .. }), "{answer:?}");
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    assert_eq!(home.executor.stop(segment).await, Stopped::Confirmed);
}

#[tokio::test]
async fn a_stopped_command_proves_what_it_took_and_takes_no_more() {
    let mut shell = Shell::new();
    let segment = shell.begin(RUN).await;
    assert_eq!(shell.executor.inject(offered(segment.clone(), 7)).await, Injected::Accepted);
    let event = EventId::from_number(7);
    shell.take(&segment, event).await;
    assert_eq!(shell.executor.interrupt(segment.clone()).await, Stopped::Confirmed);
    assert!(shell.home.marked().is_empty(), "nothing of it runs");
    assert_eq!(shell.executor.proof(segment.clone()).await, [event]);
    let next = executor(&shell.home.root());
    assert_eq!(next.proof(segment.clone()).await, [event], "and to the next daemon");
    let answer = next.inject(offered(segment, 8)).await;
    assert!(matches!(answer, Injected::NotAccepting { .. }), "{answer:?}");
}
