//! A daemon that dies while a command runs, and the next one that takes it over.

use std::fs;

use extension::{Epoch, Executor, Outcome, Recovery};
use launcher::process::Identity;
use serde_json::{Value, json};

use super::fixture::{
    Granting, Home, bystander, daemon, executor, kill, request, runs, secret, segment, until,
};

/// A command that counts its runs, says that it has begun, and ends when it is told to.
fn gated(home: &Home) -> Value {
    let command = format!(
        "echo ran >> {count}; echo first; : > {ready}; while [ ! -e {gate} ]; do sleep 0.02; done; echo last",
        count = home.file("count").display(),
        ready = home.file("ready").display(),
        gate = home.file("gate").display(),
    );
    json!({"command": command})
}

fn open_gate(home: &Home) {
    fs::write(home.file("gate"), "").unwrap();
}

fn count(home: &Home) -> usize {
    fs::read_to_string(home.file("count")).unwrap_or_default().lines().count()
}

#[tokio::test]
async fn a_live_segment_is_followed_to_its_own_end() {
    let home = Home::new();
    let config = gated(&home);
    let handle = home.abandon(request(config.clone()), || home.file("ready").exists()).await;
    let next = home.restarted();
    assert_eq!(next.recover(segment(2, Some(handle.clone()), &config)).await, Recovery::Alive);
    // The one that took over may die as well.
    let third = home.restarted();
    assert_eq!(third.recover(segment(3, Some(handle.clone()), &config)).await, Recovery::Alive);
    open_gate(&home);
    let result = third.observe(segment(3, Some(handle.clone()), &config)).await.unwrap();
    assert_eq!((result.outcome, result.summary.as_deref()), (Outcome::Completed, Some("last")));
    assert_eq!(home.output().await, "first\nlast\n");
    assert_eq!(count(&home), 1);
    // Whoever asks later gets the same answer.
    let again = home.restarted().recover(segment(4, Some(handle), &config)).await;
    assert_eq!(again, Recovery::Finished(result));
}

#[tokio::test]
async fn a_redacted_output_stays_whole_without_a_daemon() {
    let home = Home::new();
    let ready = home.file("ready");
    let command = format!(
        "echo \"$KEY\"; : > {r}; while [ ! -e {g} ]; do echo \"$KEY\"; sleep 0.01; done; printf end",
        r = ready.display(),
        g = home.file("gate").display()
    );
    let config = json!({"command": command});
    let mut request = request(config.clone());
    request.secrets = vec![secret("KEY", "hunter22")];
    let handle = home.abandon(request, || ready.exists()).await;
    open_gate(&home);
    let mut asked = segment(2, Some(handle), &config);
    asked.secrets = vec![secret("KEY", "hunter22")];
    let next = home.restarted();
    assert!(matches!(next.recover(asked.clone()).await, Recovery::Alive | Recovery::Finished(_)));
    assert_eq!(next.observe(asked).await.unwrap().summary.as_deref(), Some("end"));
    let output = home.output().await;
    let (keys, end) = output.rsplit_once('\n').unwrap();
    assert_eq!(end, "end");
    assert!(keys.lines().all(|line| line == "***"), "{output}");
}

/// Incident: the attempt finished while nobody looked, and was run again.
#[tokio::test]
async fn a_segment_that_ended_unobserved_is_finished() {
    let home = Home::new();
    let config = gated(&home);
    let handle = home.abandon(request(config.clone()), || home.file("ready").exists()).await;
    open_gate(&home);
    until("everything has ended", || home.marked().is_empty()).await;
    for epoch in [2, 3] {
        let recovered = home.restarted().recover(segment(epoch, Some(handle.clone()), &config)).await;
        let Recovery::Finished(result) = recovered else { panic!("{recovered:?}") };
        assert_eq!((result.outcome, result.exit_status), (Outcome::Completed, Some(0)));
    }
    assert_eq!(count(&home), 1);
}

#[tokio::test]
async fn a_deadline_holds_without_a_daemon() {
    let home = Home::new();
    let ready = home.file("ready");
    let config = json!({"command": format!(": > {}; sleep 300", ready.display()), "timeout_seconds": 1});
    let handle = home.abandon(request(config.clone()), || ready.exists()).await;
    until("everything has ended", || home.marked().is_empty()).await;
    let recovered = home.restarted().recover(segment(2, Some(handle), &config)).await;
    let Recovery::Finished(result) = recovered else { panic!("{recovered:?}") };
    assert_eq!(result.code.as_deref(), Some("timeout"));
}

#[tokio::test]
async fn a_segment_whose_launcher_was_killed_is_not_adoptable() {
    let home = Home::new();
    let pids = home.file("pids");
    let command = format!(
        "setsid sleep 300 & echo $PPID $$ $! > {p}.new; mv {p}.new {p}; sleep 300",
        p = pids.display()
    );
    let config = json!({"command": command});
    let handle = home.abandon(request(config.clone()), || pids.exists()).await;
    let text = fs::read_to_string(&pids).unwrap();
    let pids: Vec<i32> = text.split_whitespace().map(|pid| pid.parse().unwrap()).collect();
    let [launcher, command, grandchild] = pids[..] else { panic!("{text}") };
    kill(launcher, "KILL");
    until("the command died with its launcher", || !runs(launcher) && !runs(command)).await;
    assert!(runs(grandchild), "what it started did not");
    let recovered = home.restarted().recover(segment(2, Some(handle), &config)).await;
    let Recovery::NotAdoptable { stopped: true, .. } = recovered else { panic!("{recovered:?}") };
    assert!(!runs(grandchild), "it was found by its mark");
    assert_eq!(home.marked(), Vec::<i32>::new());
}

/// Changes one place of a handle.
fn altered(handle: &[u8], change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut value: Value = serde_json::from_slice(handle).unwrap();
    change(&mut value);
    serde_json::to_vec(&value).unwrap()
}

/// Incident: a recycled pid was taken for the old child, and an unrelated process was signalled.
#[tokio::test]
async fn a_recycled_pid_is_neither_adopted_nor_signalled() {
    let home = Home::new();
    let pids = home.file("pids");
    let config = json!({"command": format!("echo $PPID > {p}.new; mv {p}.new {p}; exec sleep 300", p = pids.display())});
    let handle = home.abandon(request(config.clone()), || pids.exists()).await;
    let launcher: i32 = fs::read_to_string(&pids).unwrap().trim().parse().unwrap();
    kill(launcher, "KILL");
    until("everything has ended", || home.marked().is_empty()).await;

    let mut foreign = bystander(&["/bin/sleep", "300"]);
    let mut starts = Vec::new();
    altered(&handle, |handle| {
        starts = ["launcher", "command"].map(|it| handle[it]["start"].as_u64().unwrap()).to_vec();
    });
    // A clock tick is long enough for all of this, and a pid does not come again within one.
    while starts.contains(&Identity::of(i32::try_from(foreign.id()).unwrap()).unwrap().start) {
        foreign.kill().unwrap();
        foreign.wait().unwrap();
        foreign = bystander(&["/bin/sleep", "300"]);
    }
    let handle = altered(&handle, |handle| {
        handle["launcher"]["pid"] = foreign.id().into();
        handle["command"]["pid"] = foreign.id().into();
    });
    let next = home.restarted();
    let recovered = next.recover(segment(2, Some(handle.clone()), &config)).await;
    assert!(matches!(recovered, Recovery::NotAdoptable { stopped: true, .. }), "{recovered:?}");
    let result = next.observe(segment(2, Some(handle.clone()), &config)).await.unwrap();
    assert_eq!(result.code.as_deref(), Some("interrupted"));
    assert_eq!(next.stop(segment(2, Some(handle), &config)).await, extension::Stopped::Confirmed);
    assert_eq!(foreign.try_wait().unwrap(), None, "the bystander was not signalled");
    foreign.kill().unwrap();
    foreign.wait().unwrap();
}

#[tokio::test]
async fn a_segment_of_an_earlier_boot_does_not_run() {
    let home = Home::new();
    let config = gated(&home);
    let handle = home.abandon(request(config.clone()), || home.file("ready").exists()).await;
    let earlier = altered(&handle, |handle| handle["machine"]["boot"] = "earlier".into());
    let next = home.restarted();
    let recovered = next.recover(segment(2, Some(earlier), &config)).await;
    assert!(matches!(recovered, Recovery::NotAdoptable { stopped: true, .. }), "{recovered:?}");
    assert!(!home.marked().is_empty(), "pids of another boot are not looked at");
    assert_eq!(next.stop(segment(2, Some(handle), &config)).await, extension::Stopped::Confirmed);
}

#[tokio::test]
async fn what_cannot_be_looked_into_is_never_called_stopped() {
    let home = Home::new();
    let config = gated(&home);
    let handle = home.abandon(request(config.clone()), || home.file("ready").exists()).await;
    let elsewhere = altered(&handle, |handle| handle["machine"]["pid_namespace"] = 1.into());
    let next = home.restarted();
    let recovered = next.recover(segment(2, Some(elsewhere.clone()), &config)).await;
    assert!(matches!(recovered, Recovery::NotAdoptable { stopped: false, .. }), "{recovered:?}");
    let stopped = next.stop(segment(2, Some(elsewhere), &config)).await;
    assert!(matches!(stopped, extension::Stopped::Unverifiable { .. }), "{stopped:?}");
    assert_eq!(next.stop(segment(2, Some(handle), &config)).await, extension::Stopped::Confirmed);
}

#[tokio::test]
async fn an_unreadable_handle_or_a_lost_directory_never_counts_as_nothing_started() {
    let home = Home::new();
    let config = gated(&home);
    let handle = home.abandon(request(config.clone()), || home.file("ready").exists()).await;
    let next = home.restarted();
    let later = altered(&handle, |handle| handle["version"] = 2.into());
    let recovered = next.recover(segment(2, Some(later), &config)).await;
    assert!(matches!(recovered, Recovery::NotAdoptable { stopped: true, .. }), "{recovered:?}");
    assert_eq!(home.marked(), Vec::<i32>::new(), "its mark found it");
    next.release(super::fixture::RUN).await.unwrap();
    let recovered = next.recover(segment(2, Some(handle), &config)).await;
    assert!(matches!(recovered, Recovery::NotAdoptable { stopped: true, .. }), "{recovered:?}");
}

/// Half a status, as a loss of power may leave it, is no status.
#[tokio::test]
async fn half_a_status_is_none() {
    let home = Home::new();
    let config = json!({"command": "true"});
    let host = Granting::default();
    home.try_run(request(config.clone()), &host).await.unwrap();
    fs::write(home.segment(1).join("status"), "{\"end\":{\"ex").unwrap();
    let recovered = home.restarted().recover(segment(2, Some(host.handle()), &config)).await;
    assert!(matches!(recovered, Recovery::NotAdoptable { stopped: true, .. }), "{recovered:?}");
}

/// Where the test below keeps its home, for the process that plays the daemon.
const ROOT_VARIABLE: &str = "SHELL_TEST_ADOPTION_ROOT";
/// The command of that daemon's turn.
const COMMAND_VARIABLE: &str = "SHELL_TEST_ADOPTION_COMMAND";

/// Not a test by itself: a daemon that runs one turn and records its handle, until it is killed.
#[tokio::test]
async fn daemon_that_pins() {
    let Ok(root) = std::env::var(ROOT_VARIABLE) else { return };
    let config = json!({"command": std::env::var(COMMAND_VARIABLE).unwrap()});
    let host = Granting::default();
    let executor = executor(root.as_ref());
    let run = executor.run(request(config), &host);
    let record = until("the command runs", || std::path::Path::new(&root).with_file_name("ready").exists());
    tokio::pin!(run);
    tokio::select! {
        ended = &mut run => panic!("{ended:?}"),
        () = record => {}
    }
    fs::write(std::path::Path::new(&root).with_file_name("handle"), host.handle()).unwrap();
    let _ended = run.await;
}

/// Incident: a restart left a live orphan beside its replacement.
#[tokio::test]
async fn a_command_outlives_a_killed_daemon_and_is_adopted() {
    let home = Home::new();
    let config = gated(&home);
    let root = home.root();
    let variables =
        [(ROOT_VARIABLE, root.to_str().unwrap()), (COMMAND_VARIABLE, config["command"].as_str().unwrap())];
    let mut killed = daemon("shell::adoption::daemon_that_pins", &variables);
    until("the handle is recorded", || fs::metadata(home.file("handle")).is_ok_and(|file| file.len() > 0))
        .await;
    killed.kill().unwrap();
    killed.wait().unwrap();
    let handle = fs::read(home.file("handle")).unwrap();
    let next = home.restarted();
    let mut asked = segment(2, Some(handle), &config);
    assert_eq!(next.recover(asked.clone()).await, Recovery::Alive);
    open_gate(&home);
    asked.epoch = Epoch::from_number(2);
    let result = next.observe(asked).await.unwrap();
    assert_eq!(result.outcome, Outcome::Completed);
    assert_eq!(home.output().await, "first\nlast\n");
    assert_eq!(count(&home), 1);
}
