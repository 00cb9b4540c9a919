//! What a command is given to make calls with.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use bundled::shell::Toolbelt;
use extension::{Executor, Outcome, Recovery, Secret, Segment};
use serde_json::json;

use super::fixture::{Granting, Home, executor_for, request, segment, until};

#[tokio::test]
async fn the_token_is_in_a_file_of_its_user_and_is_replaced_at_adoption() {
    let home = Home::new();
    let (ready, gate) = (home.file("ready"), home.file("gate"));
    let command = format!(
        "env; cat /proc/$$/cmdline; echo; : > {}; while [ ! -e {} ]; do sleep 0.02; done; cat \"$OS_TOKEN_FILE\"",
        ready.display(),
        gate.display()
    );
    let config = json!({"command": command});
    let toolbelt = Toolbelt { socket: "/run/os.sock".into(), bin: "/opt/tools".into() };
    let executor = Arc::new(executor_for(&home.root(), Some(toolbelt)));
    let host = Arc::new(Granting::default());
    let mut asked = request(config.clone());
    asked.token = Some(Secret::new("run_1.1.first".to_owned()));
    let (running, pinned) = (Arc::clone(&executor), Arc::clone(&host));
    let turn =
        tokio::runtime::Handle::current().spawn(async move { running.run(asked, &*pinned).await.unwrap() });
    until("it runs", || ready.exists()).await;

    let file = home.segment(1).join("token");
    assert_eq!(fs::read_to_string(&file).unwrap(), "run_1.1.first");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    // What the command put in its place is replaced and not followed.
    let elsewhere = home.file("elsewhere");
    fs::write(&elsewhere, "untouched").unwrap();
    fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &file).unwrap();
    let token = Some(Secret::new("run_1.2.second".to_owned()));
    let adopted = Segment { token, ..segment(2, Some(host.handle()), &config) };
    assert_eq!(home.restarted().recover(adopted).await, Recovery::Alive);
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "untouched");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);

    fs::write(&gate, "").unwrap();
    let result = turn.await.unwrap();
    assert_eq!((result.outcome, result.summary.as_deref()), (Outcome::Completed, Some("run_1.2.second")));
    let output = home.output().await;
    let said = |line: &str| output.lines().any(|said| said == line);
    assert!(said("OS_SOCKET=/run/os.sock"), "{output}");
    assert!(said(&format!("OS_TOKEN_FILE={}", fs::canonicalize(&file).unwrap().display())), "{output}");
    assert!(output.lines().any(|line| line.starts_with("PATH=/opt/tools:")), "{output}");
    assert!(!output.contains("first"), "it is neither in the environment nor in arguments: {output}");
}

#[tokio::test]
async fn without_a_door_for_calls_there_is_no_token() {
    let home = Home::new();
    let mut asked = request(json!({"command": "env"}));
    asked.token = Some(Secret::new("run_1.1.first".to_owned()));
    home.try_run(asked, &Granting::default()).await.unwrap();
    let output = home.output().await;
    assert!(!output.contains("OS_TOKEN_FILE") && !output.contains("OS_SOCKET"), "{output}");
    assert!(!home.segment(1).join("token").exists());
}
