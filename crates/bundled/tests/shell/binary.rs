//! Where launchers are started from: memory, or the binary that the executor was given.

use std::fs;
use std::path::{Path, PathBuf};

use bundled::shell::LauncherBinary;
use extension::{Executor, Outcome, Recovery};
use serde_json::{Value, json};

use super::fixture::{Granting, Home, Slow, request, runs, secret, segment, until};

/// What a process of a handle runs, by the kernel's own word.
fn program(handle: &[u8], who: &str) -> PathBuf {
    let handle: Value = serde_json::from_slice(handle).unwrap();
    fs::read_link(format!("/proc/{}/exe", handle[who]["pid"])).unwrap()
}

#[track_caller]
fn check_is_embedded(program: &Path) {
    assert_eq!(program, Path::new("/memfd:open-conduit-launcher (deleted)"));
}

#[track_caller]
fn check_is_given(program: &Path) {
    assert_eq!(program, Path::new(env!("CARGO_BIN_EXE_shell-launcher")));
}

/// Launcher and held stage come from there, and nothing else about the turn is different.
async fn runs_to_its_end(home: &Home, check: impl Fn(&Path)) {
    let host = Slow::new();
    let mut request = request(json!({"command": "echo $TOKEN; exit 3", "timeout_seconds": 60}));
    request.secrets = vec![secret("TOKEN", "hunter22")];
    let looking = async {
        let handle = host.handle().await;
        check(&program(&handle, "launcher"));
        check(&program(&handle, "command"));
        host.granted.notify_one();
    };
    let (result, ()) = tokio::join!(home.try_run(request, &host), looking);
    assert_eq!(result.unwrap().exit_status, Some(3));
    assert_eq!(home.output().await, "***\n");
}

#[tokio::test]
async fn launchers_are_started_from_memory() {
    let home = Home::new();
    assert_eq!(home.executor.launcher_binary(), LauncherBinary::Embedded);
    runs_to_its_end(&home, |program| check_is_embedded(program)).await;
}

#[tokio::test]
async fn launchers_are_started_from_the_given_binary_where_memory_is_out() {
    let home = Home::without_memory();
    assert!(matches!(home.executor.launcher_binary(), LauncherBinary::Given { .. }));
    runs_to_its_end(&home, |program| check_is_given(program)).await;
}

/// An update may change which binary it is: the launcher that runs is followed as what it is.
#[tokio::test]
async fn a_launcher_of_either_binary_is_adopted() {
    for home in [Home::new(), Home::without_memory()] {
        let config = json!({"command": "while [ ! -e ../../../../go ]; do sleep 0.01; done"});
        let host = Granting::default();
        let verdict = home.segment(1).join("verdict");
        tokio::select! {
            ended = home.executor.run(request(config.clone()), &host) => panic!("the turn ended: {ended:?}"),
            () = until("the command runs", || verdict.exists()) => {}
        }
        let segment = segment(2, Some(host.handle()), &config);
        let next = home.restarted();
        assert_eq!(next.recover(segment.clone()).await, Recovery::Alive);
        let letting_go = async { fs::write(home.file("go"), []).unwrap() };
        let (result, ()) = tokio::join!(next.observe(segment), letting_go);
        assert_eq!(result.unwrap().outcome, Outcome::Completed);
        let handle: Value = serde_json::from_slice(&host.handle()).unwrap();
        assert!(!runs(i32::try_from(handle["launcher"]["pid"].as_i64().unwrap()).unwrap()));
    }
}
