//! A turn from its start to its end, and what surrounds the command.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use extension::{Executor, LogRequest, Outcome, PinError, RunError};
use serde_json::json;

use super::fixture::{Granting, Home, RUN, Refusing, request, secret};

#[tokio::test]
async fn a_command_that_exits_with_zero_completes() {
    let home = Home::new();
    let result = home.run(json!({"command": "echo one; echo; echo '  two  '; echo"})).await;
    assert_eq!(result.outcome, Outcome::Completed);
    assert_eq!(result.summary.as_deref(), Some("two"));
    assert_eq!((result.code, result.exit_status), (None, Some(0)));
    assert_eq!(home.output().await, "one\n\n  two  \n\n");
}

#[tokio::test]
async fn a_command_that_exits_with_another_status_fails() {
    let result = Home::new().run(json!({"command": "echo broken >&2; exit 3"})).await;
    assert_eq!(result.outcome, Outcome::Failed);
    assert_eq!((result.code.as_deref(), result.exit_status), (Some("exit_status"), Some(3)));
    assert_eq!(result.summary.as_deref(), Some("broken"));
}

#[tokio::test]
async fn a_command_that_a_signal_ends_fails() {
    let result = Home::new().run(json!({"command": "kill -KILL $$"})).await;
    assert_eq!((result.code.as_deref(), result.exit_status), (Some("signal"), None));
    assert_eq!(result.summary.as_deref(), Some("ended by signal 9"));
}

#[tokio::test]
async fn an_argv_reaches_its_program_untouched() {
    let home = Home::new();
    let result = home.run(json!({"argv": ["printf", "%s|", "a b", "$(id)", "", "*"]})).await;
    assert_eq!(result.outcome, Outcome::Completed);
    assert_eq!(home.output().await, "a b|$(id)||*|");
}

#[tokio::test]
async fn a_program_that_is_not_there_fails_like_in_a_shell() {
    let home = Home::new();
    let result = home.run(json!({"argv": ["/nonexistent/program"]})).await;
    assert_eq!((result.code.as_deref(), result.exit_status), (Some("exit_status"), Some(127)));
    assert!(result.summary.unwrap().starts_with("the command could not be run"));
    let result = Home::new().run(json!({"argv": ["/etc/passwd"]})).await;
    assert_eq!(result.exit_status, Some(126));
}

#[tokio::test]
async fn the_environment_is_exactly_the_allow_list() {
    let home = Home::new();
    let config = json!({
        "command": "tr '\\0' '\\n' < /proc/$$/environ",
        "env": {"MODE": "fast", "HOME": "/home/job"},
        "pass_env": ["EDITOR", "NOT_SET"],
    });
    let mut request = request(config);
    request.secrets = vec![secret("TOKEN", "hunter22")];
    home.try_run(request, &Granting::default()).await.unwrap();
    let directory = fs::canonicalize(home.segment(1)).unwrap();
    let run_directory = directory.parent().unwrap().display().to_string();
    let path = std::env::var("PATH").unwrap();
    let expect = BTreeMap::from(
        [
            ("EDITOR", "vi"),
            ("HOME", "/home/job"),
            ("LC_ALL", "C"),
            ("MODE", "fast"),
            ("OPEN_CONDUIT_RUN", &run_directory),
            ("OS_ATTEMPT", "1"),
            ("OS_EXECUTION_ID", "run_000000000002d"),
            ("OS_INBOX_DIR", &format!("{run_directory}/e1/inbox")),
            ("OS_INPUT_FILE", &format!("{run_directory}/e1/input.json")),
            ("OS_OUTPUT_DIR", &format!("{run_directory}/e1/out")),
            ("OS_TRIGGER_TYPE", "build.requested"),
            ("OS_WORK_ID", "work_0000000000005"),
            ("PATH", &path),
            ("TERM", "dumb"),
            ("TOKEN", "***"),
        ]
        .map(|(name, value): (&str, &str)| (name.to_owned(), value.to_owned())),
    );
    let output = home.output().await;
    let lines = output.lines().filter_map(|line| line.split_once('='));
    let seen: BTreeMap<String, String> =
        lines.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    assert_eq!(seen, expect);
}

#[tokio::test]
async fn a_command_has_no_terminal_no_input_and_no_descriptor_of_ours() {
    let home = Home::new();
    let command = "cat; readlink /proc/self/fd/0; ls /proc/$$/fd; true";
    home.run(json!({"command": command})).await;
    let output = home.output().await;
    let (input, descriptors) = output.split_once('\n').unwrap();
    assert_eq!(input, "/dev/null");
    // Shells keep a copy of their own at 10 and above.
    let ours = descriptors.split_whitespace().filter_map(|fd| fd.parse::<u32>().ok()).filter(|fd| *fd < 10);
    assert_eq!(ours.collect::<Vec<_>>(), [0, 1, 2]);
}

#[tokio::test]
async fn a_command_leads_a_session_of_its_own() {
    // Its whole group is signalled, which must not reach the launcher: the end is still recorded.
    let result =
        Home::new().run(json!({"command": "trap 'echo told; exit 4' TERM; kill -TERM 0; sleep 30"})).await;
    assert_eq!((result.exit_status, result.summary.as_deref()), (Some(4), Some("told")));
}

#[tokio::test]
async fn a_command_works_in_its_own_directory_or_in_the_bindings() {
    let home = Home::new();
    home.run(json!({"command": "pwd"})).await;
    let own = fs::canonicalize(home.segment(1)).unwrap().join("work");
    assert_eq!(home.output().await, format!("{}\n", own.display()));

    let home = Home::new();
    let dir = fs::canonicalize(home.dir.path()).unwrap();
    home.run(json!({"command": "pwd", "dir": dir})).await;
    assert_eq!(home.output().await, format!("{}\n", dir.display()));
}

#[tokio::test]
async fn a_directory_that_is_gone_is_said_before_anything_is_started() {
    let home = Home::new();
    let config = json!({"command": "true", "dir": home.file("hidden-value")});
    let refused = home.try_run(request(config), &Granting::default()).await;
    let Err(RunError::Failed { code: "spawn_failed", reason }) = refused else { panic!("{refused:?}") };
    assert!(reason.contains("`dir`") && !reason.contains("hidden-value"), "{reason}");
}

#[tokio::test]
async fn what_cannot_be_run_is_refused() {
    let home = Home::new();
    let resource = json!({"provider": "git"});
    let problems = home.executor.validate(&json!({"comand": "x", "dir": "/x"}), Some(&resource)).unwrap_err();
    assert_eq!(problems.len(), 3, "{problems:?}");
    assert!(problems.iter().any(|problem| problem.path == "dir"), "{problems:?}");
    assert_eq!(home.executor.validate(&json!({"command": "make"}), Some(&resource)).unwrap(), "runs `make`");
    assert_eq!(home.executor.validate(&json!({"command": "make"}), None).unwrap(), "runs `make`");
    let refused = home.try_run(request(json!({"command": 1})), &Granting::default()).await;
    assert!(matches!(refused, Err(RunError::Failed { code: "spawn_failed", .. })), "{refused:?}");
}

#[tokio::test]
async fn a_command_runs_in_its_workspace_and_is_told_of_it() {
    let (home, place) = (Home::new(), tempfile::tempdir().unwrap());
    let dir = place.path().canonicalize().unwrap();
    let facts = extension::WorkspaceFacts {
        kind: "git".to_owned(),
        reference: None,
        dir: dir.display().to_string(),
        summary: "fresh worktree at origin/main 1a2b3c4".to_owned(),
        data: json!(null),
    };
    let command = r#"test "$OS_WORKSPACE_DIR" = "$(pwd -P)" && cp "$OS_INPUT_FILE" told && test "$OS_WORKSPACE" = 'fresh worktree at origin/main 1a2b3c4'"#;
    let mut asked = request(json!({"command": command}));
    asked.workspace = Some(std::sync::Arc::new(facts.clone()));
    let result = home.try_run(asked.clone(), &Granting::default()).await.unwrap();
    assert_eq!(result.outcome, Outcome::Completed, "{result:?}");
    let told: serde_json::Value = serde_json::from_slice(&fs::read(dir.join("told")).unwrap()).unwrap();
    assert_eq!(told["workspace"]["summary"], json!(facts.summary));
    let gone = extension::WorkspaceFacts { dir: dir.join("gone").display().to_string(), ..facts };
    let lost = extension::RunRequest {
        workspace: Some(std::sync::Arc::new(gone)),
        execution: extension::ExecutionId::from_number(99),
        ..asked
    };
    let refused = home.try_run(lost, &Granting::default()).await;
    let Err(RunError::Failed { code: "spawn_failed", reason }) = refused else { panic!("{refused:?}") };
    assert!(reason.contains("workspace"), "{reason}");
}

#[tokio::test]
async fn a_missing_launcher_is_a_failed_start() {
    let home = Home::new();
    let options = bundled::shell::ShellOptions::from_process();
    let executor = bundled::shell::ShellExecutor::new(&home.root(), "/nonexistent".into(), options).unwrap();
    let executor = executor.without_memory();
    let refused = executor.run(request(json!({"command": "true"})), &Granting::default()).await;
    assert!(matches!(refused, Err(RunError::Failed { code: "spawn_failed", .. })), "{refused:?}");
}

#[tokio::test]
async fn a_refused_pin_undoes_the_launch() {
    let refusals = [
        (PinError::Fenced, None),
        (PinError::TooLarge, Some("pin_failed")),
        (PinError::Store("disk full".to_owned()), Some("not started")),
    ];
    for (refusal, expect) in refusals {
        let home = Home::new();
        let marker = home.file("marker");
        let config = json!({"argv": ["touch", marker]});
        let refused = home.try_run(request(config), &Refusing(refusal)).await;
        match (refused, expect) {
            (Err(RunError::Fenced), None) => {}
            (Err(RunError::Failed { code, .. }), Some(expect)) => assert_eq!(code, expect),
            // Nothing was started and the store may come back: the same attempt is launched again.
            (Err(RunError::NotStarted { .. }), Some(expect)) => assert_eq!(expect, "not started"),
            (refused, _) => panic!("{refused:?}"),
        }
        assert!(!marker.exists());
        assert_eq!(home.marked(), Vec::<i32>::new(), "nothing of it runs");
        assert_eq!(fs::read_to_string(home.segment(1).join("verdict")).unwrap(), "void\n");
    }
}

#[tokio::test]
async fn what_is_kept_is_readable_by_its_owner_alone() {
    let home = Home::new();
    home.run(json!({"command": "echo x"})).await;
    let mode = |path: &str| fs::metadata(home.segment(1).join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!([mode("../.."), mode(".."), mode("."), mode("out"), mode("work")], [0o700; 5]);
    assert_eq!([mode("input.json"), mode("output.log")], [0o600; 2]);
}

#[tokio::test]
async fn the_log_is_read_in_pieces() {
    let home = Home::new();
    let read = async |from, bytes_max| {
        let log = home.executor.log(LogRequest { execution: RUN, from, bytes_max }).await.unwrap();
        (log.from, String::from_utf8(log.bytes).unwrap(), log.size)
    };
    assert_eq!(read(0, 10).await, (0, String::new(), 0), "before the launch there is none");
    home.run(json!({"command": "printf 0123456789"})).await;
    assert_eq!(read(0, 4).await, (0, "0123".to_owned(), 10));
    assert_eq!(read(8, 4).await, (8, "89".to_owned(), 10));
    assert_eq!(read(99, 4).await, (10, String::new(), 10));
    assert_eq!(read(-3, 99).await, (7, "789".to_owned(), 10));
    assert_eq!(read(-99, 2).await, (0, "01".to_owned(), 10));
    assert_eq!(read(i64::MIN, 1).await, (0, "0".to_owned(), 10));
    home.executor.release(RUN).await.unwrap();
    Executor::release(&*home.executor, RUN).await.expect("it is gone already");
    assert_eq!(read(0, 10).await, (0, String::new(), 0), "after a release there is none");
}

#[tokio::test]
async fn turns_run_side_by_side() {
    let mut turns = tokio::task::JoinSet::new();
    for _ in 0..8 {
        turns.spawn(async {
            let home = Home::new();
            let result = home.run(json!({"command": "exit 0"})).await;
            (result.outcome, home.marked())
        });
    }
    assert_eq!(turns.join_all().await, vec![(Outcome::Completed, Vec::new()); 8]);
}

#[tokio::test]
async fn a_command_that_destroys_its_own_files_harms_only_itself() {
    // A pipe in place of the output would block whoever opens it; a link would show another file.
    let home = Home::new();
    let result =
        home.run(json!({"command": "cd \"$OS_OUTPUT_DIR/..\"; rm output.log; mkfifo output.log"})).await;
    assert_eq!(result.outcome, Outcome::Completed);
    assert!(home.executor.log(LogRequest { execution: RUN, from: 0, bytes_max: 9 }).await.is_err());
    let home = Home::new();
    home.run(json!({"command": "cd \"$OS_OUTPUT_DIR/..\"; rm output.log; ln -s /etc/passwd output.log"}))
        .await;
    assert!(home.executor.log(LogRequest { execution: RUN, from: 0, bytes_max: 9 }).await.is_err());

    let home = Home::new();
    let config = json!({"command": "rm -rf \"${OS_OUTPUT_DIR%/out}\"; setsid sleep 300 &"});
    let lost = home.try_run(request(config), &Granting::default()).await;
    assert!(matches!(lost, Err(RunError::Failed { code: "segment_unreadable", .. })), "{lost:?}");
    assert_eq!(home.marked(), Vec::<i32>::new());
}
