//! What a command says about itself, and what it leaves behind.

use std::fs;
use std::os::unix::fs::symlink;

use extension::{Artifact, Executor, Outcome, Registration, Sequence, TurnResult, Usage, UsageLimit};
use serde_json::json;

use super::fixture::{Granting, Home, RUN, request, secret};

/// Runs a command that leaves `statement` and exits with `code`.
async fn stating(statement: &str, code: i32) -> TurnResult {
    let command =
        format!("echo working; printf '%s' \"$STATEMENT\" > \"$OS_OUTPUT_DIR/result.json\"; exit {code}");
    Home::new().run(json!({"command": command, "env": {"STATEMENT": statement}})).await
}

#[tokio::test]
async fn a_statement_beats_the_exit_status() {
    let result =
        stating(r#"{"outcome":"completed","summary":"done\u001b[0m","status":"merged","later":[1]}"#, 3)
            .await;
    assert_eq!(result.outcome, Outcome::Completed);
    assert_eq!((result.code, result.exit_status), (None, Some(3)));
    assert_eq!((result.summary.as_deref(), result.status.as_deref()), (Some("done"), Some("merged")));

    let result = stating(r#"{"outcome":"failed"}"#, 0).await;
    assert_eq!((result.outcome, result.code.as_deref()), (Outcome::Failed, Some("declared")));

    let result = stating(r#"{"handoff":true,"usage":{"usd":0.25,"tokens":1200}}"#, 0).await;
    assert_eq!(result.outcome, Outcome::Handoff);
    let usage = |unit: &str, thousandths| Usage { unit: unit.to_owned(), thousandths };
    assert_eq!(result.usage, [usage("usd", 250), usage("tokens", 1_200_000)]);
}

#[tokio::test]
async fn a_statement_may_say_when_another_try_is_worth_it() {
    let result = stating(r#"{"outcome":"failed","retry_after_seconds":90}"#, 0).await;
    assert_eq!((result.outcome, result.retry_after_seconds), (Outcome::Failed, Some(90)));
    let result = stating(r#"{"retry_after_seconds":604800}"#, 1).await;
    assert_eq!((result.outcome, result.retry_after_seconds), (Outcome::Failed, Some(604_800)));
}

#[tokio::test]
async fn a_statement_may_say_that_its_account_is_used_up() {
    let limit = |resets_in_seconds| Some(UsageLimit { resets_in_seconds });
    let result = stating(r#"{"outcome":"failed","usage_limit":{"resets_in_seconds":3600}}"#, 0).await;
    assert_eq!((result.outcome, result.usage_limit), (Outcome::Failed, limit(Some(3600))));
    let result = stating(r#"{"usage_limit":{}}"#, 0).await;
    assert_eq!((result.outcome, result.usage_limit), (Outcome::Completed, limit(None)));
    assert_eq!(stating("{}", 0).await.usage_limit, None);
}

#[tokio::test]
async fn a_statement_may_say_what_the_work_waits_for() {
    let result = stating(
        r#"{"status":"waiting","keys":[{"source":"github/acme","external_id":"pr/7"}],
            "types":["github.check_run.completed"],"timeout_seconds":3600,"after_sequence":12}"#,
        0,
    )
    .await;
    assert_eq!((result.outcome, result.status.as_deref()), (Outcome::Waiting, Some("waiting")));
    let wait = result.wait.unwrap();
    let key = &wait.keys.as_ref().unwrap()[0];
    assert_eq!((key.source.as_str(), key.external_id.as_str()), ("github/acme", "pr/7"));
    assert_eq!(wait.types[0].as_str(), "github.check_run.completed");
    assert_eq!((wait.timeout_seconds, wait.after.map(Sequence::number)), (Some(3600), Some(12)));

    // Every key of its Work, for any news, as long as it takes; its exit status says nothing about that.
    let result = stating(r#"{"status":"waiting"}"#, 3).await;
    assert_eq!((result.outcome, result.code.as_deref()), (Outcome::Waiting, None));
    assert_eq!(result.wait.as_deref(), Some(&Registration::default()));
    let result = stating(r#"{"outcome":"completed","status":"waiting"}"#, 0).await;
    assert_eq!((result.outcome, result.wait), (Outcome::Completed, None), "the outcome says how it ended");
}

#[tokio::test]
async fn a_statement_without_an_outcome_leaves_it_to_the_exit_status() {
    let result = stating(r#"{"summary":"half"}"#, 2).await;
    assert_eq!((result.outcome, result.code.as_deref()), (Outcome::Failed, Some("exit_status")));
    assert_eq!(result.summary.as_deref(), Some("half"));
}

#[tokio::test]
async fn an_unusable_statement_is_noted_and_ignored() {
    let large = format!(r#"{{"outcome":"failed","summary":"{}"}}"#, "x".repeat(70_000));
    let statements = [
        "not json",
        r#"{"outcome":"great s3cr3t"}"#,
        r#"{"status":""}"#,
        r#"{"usage":{"usd":-1}}"#,
        r#"{"usage":[1]}"#,
        r#"{"status":"waiting","timeout_seconds":0}"#,
        r#"{"status":"waiting","timeout_seconds":34560001}"#,
        r#"{"status":"waiting","types":["s3cr3t NOT A TYPE"]}"#,
        r#"{"status":"waiting","keys":[{"source":"s3cr3t"}]}"#,
        r#"{"status":"done","keys":[]}"#,
        r#"{"retry_after_seconds":0}"#,
        r#"{"retry_after_seconds":604801}"#,
        r#"{"retry_after_seconds":"soon"}"#,
        r#"{"usage_limit":{"resets_in_seconds":"s3cr3t"}}"#,
        &large,
    ];
    for statement in statements {
        let result = stating(statement, 0).await;
        assert_eq!(result.outcome, Outcome::Completed);
        let summary = result.summary.unwrap();
        assert!(summary.starts_with("working (result.json was ignored: "), "{summary}");
        assert!(!summary.contains("s3cr3t"), "{summary}");
    }
}

#[tokio::test]
async fn a_statement_that_is_no_file_is_never_opened() {
    for command in [
        "ln -s /etc/passwd \"$OS_OUTPUT_DIR/result.json\"",
        "mkfifo \"$OS_OUTPUT_DIR/result.json\"",
        "mkdir \"$OS_OUTPUT_DIR/result.json\"",
    ] {
        let result = Home::new().run(json!({"command": command})).await;
        assert_eq!(result.outcome, Outcome::Completed);
        assert!(result.summary.unwrap().contains("result.json was ignored"), "{command}");
    }
}

#[tokio::test]
async fn a_statement_is_redacted() {
    let home = Home::new();
    let command =
        r#"printf '{"summary":"key %s","status":"%s"}' "$KEY" "$KEY" > "$OS_OUTPUT_DIR/result.json""#;
    let mut request = request(json!({"command": command}));
    request.secrets = vec![secret("KEY", "hunter22")];
    let result = home.try_run(request, &Granting::default()).await.unwrap();
    assert_eq!((result.summary.as_deref(), result.status.as_deref()), (Some("key ***"), Some("***")));
}

#[tokio::test]
async fn artifacts_are_the_regular_files_below_the_output_directory() {
    let home = Home::new();
    let outside = home.file("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("private"), "x").unwrap();
    let command = format!(
        "cd \"$OS_OUTPUT_DIR\"; echo '{{}}' > result.json; mkdir -p a/b; printf 12345 > a/b/report.txt; : > empty; \
         ln -s {o}/private link; ln -s {o} linked; ln a/b/report.txt 'with space'; mkfifo pipe",
        o = outside.display()
    );
    let result = home.run(json!({"command": command})).await;
    let artifact = |path: &str, bytes| Artifact { path: path.to_owned(), bytes };
    assert_eq!(
        result.artifacts,
        [artifact("a/b/report.txt", 5), artifact("empty", 0), artifact("with space", 5)]
    );

    let find = |path: &str| home.executor.artifact(RUN, path);
    assert_eq!(fs::read_to_string(find("a/b/report.txt").unwrap()).unwrap(), "12345");
    for path in [
        "",
        ".",
        "..",
        "a",
        "a/b",
        "link",
        "linked/private",
        "a/../empty",
        "../output.log",
        "pipe",
        "nothing",
    ] {
        assert_eq!(find(path), None, "{path:?}");
    }
    assert_eq!(find(outside.join("private").to_str().unwrap()), None);
    assert_eq!(find("empty\0"), None);
}

#[tokio::test]
async fn an_output_directory_that_was_replaced_shows_nothing() {
    let home = Home::new();
    let outside = home.file("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("private"), "x").unwrap();
    let command = format!("rmdir \"$OS_OUTPUT_DIR\"; ln -s {} \"$OS_OUTPUT_DIR\"", outside.display());
    let result = home.run(json!({"command": command})).await;
    assert_eq!(result.outcome, Outcome::Completed);
    assert_eq!(result.artifacts, []);
    assert_eq!(home.executor.artifact(RUN, "private"), None);
    symlink(&outside, home.file("again")).unwrap();
}

#[tokio::test]
async fn artifacts_are_bounded() {
    let result = Home::new()
        .run(json!({"command": "cd \"$OS_OUTPUT_DIR\"; i=0; while [ $i -lt 1100 ]; do : > f$i; i=$((i+1)); done"}))
        .await;
    assert_eq!(result.artifacts.len(), 1000);
}
