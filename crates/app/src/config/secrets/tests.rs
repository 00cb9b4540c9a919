use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use domain::scope::SecretRef;
use extension::Secrets as _;

use super::{COMMAND_KEPT, SECRET_BYTES_MAX, SecretReader};

const VALUE: &str = "S3CRET-value";

fn reader(home: &Path) -> Arc<SecretReader> {
    let environment = [("TOKEN", VALUE), ("EMPTY", ""), ("LINE", "S3CRET-value\r\n")];
    let environment = environment.map(|(name, value)| (OsString::from(name), OsString::from(value)));
    SecretReader::new(home.to_owned(), environment)
}

async fn read(reader: &SecretReader, reference: &str) -> Result<String, String> {
    let secret = reader.read("token", &SecretRef(reference.to_owned())).await;
    secret.map(|secret| secret.expose().to_owned()).map_err(|error| error.to_string())
}

#[track_caller]
fn refuses(result: &Result<String, String>, reason: &str) {
    let error = result.as_ref().expect_err("the secret cannot be read");
    assert!(error.contains(reason), "{error}");
    assert!(error.starts_with("the secret `token` cannot be read: "), "{error}");
    assert!(!error.contains("S3CRET"), "{error}");
}

#[tokio::test]
async fn read_takes_the_environment_it_was_given() {
    let home = tempfile::tempdir().unwrap();
    let reader = reader(home.path());
    assert_eq!(read(&reader, "env:TOKEN").await.unwrap(), VALUE);
    assert_eq!(read(&reader, "env:LINE").await.unwrap(), VALUE);
    refuses(&read(&reader, "env:PATH").await, "not set");
    refuses(&read(&reader, "env:EMPTY").await, "empty");
    refuses(&read(&reader, "S3CRET").await, "none of the forms");
    refuses(&read(&reader, "vault:S3CRET").await, "none of the forms");
}

#[tokio::test]
async fn read_takes_files_from_the_home_and_follows_their_changes() {
    let home = tempfile::tempdir().unwrap();
    let reader = reader(home.path());
    let path = home.path().join("token");
    fs::write(&path, "one\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(read(&reader, "file:token").await.unwrap(), "one");
    fs::write(&path, "two").unwrap();
    assert_eq!(read(&reader, &format!("file:{}", path.display())).await.unwrap(), "two");
    refuses(&read(&reader, "file:S3CRET").await, "entity not found");
    refuses(&read(&reader, "file:.").await, "plain file");
    fs::write(&path, [0xff, 0xfe]).unwrap();
    refuses(&read(&reader, "file:token").await, "not text");
    fs::write(&path, "S3CRET".repeat(SECRET_BYTES_MAX)).unwrap();
    refuses(&read(&reader, "file:token").await, "larger than");
    fs::write(&path, "x".repeat(SECRET_BYTES_MAX)).unwrap();
    assert!(read(&reader, "file:token").await.is_ok());
}

/// A command that counts how often it ran, in a file beside it.
fn counting(home: &Path) -> String {
    let script = home.join("answer");
    fs::write(&script, "#!/bin/sh\necho run >> runs\necho \"S3CRET $1 $#\"\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o700)).unwrap();
    format!("cmd:sh {} $HOME;ls", script.display())
}

fn runs(home: &Path) -> usize {
    fs::read_to_string(home.join("runs")).unwrap().lines().count()
}

#[tokio::test(start_paused = true)]
async fn read_runs_a_command_without_a_shell_and_keeps_its_answer_for_a_minute() {
    let home = tempfile::tempdir().unwrap();
    let reader = reader(home.path());
    let command = counting(home.path());
    assert_eq!(read(&reader, &command).await.unwrap(), "S3CRET $HOME;ls 1");
    assert_eq!(read(&reader, &command).await.unwrap(), "S3CRET $HOME;ls 1");
    assert_eq!(runs(home.path()), 1);
    tokio::time::advance(COMMAND_KEPT).await;
    read(&reader, &command).await.unwrap();
    assert_eq!(runs(home.path()), 2);
}

#[tokio::test]
async fn read_refuses_a_command_that_fails_and_keeps_nothing_of_it() {
    let home = tempfile::tempdir().unwrap();
    let reader = reader(home.path());
    fs::write(home.path().join("fails"), "echo S3CRET; echo S3CRET >&2; exit 3\n").unwrap();
    refuses(&read(&reader, "cmd:sh fails").await, "status 3");
    fs::write(home.path().join("fails"), "kill -9 $$\n").unwrap();
    refuses(&read(&reader, "cmd:sh fails").await, "signal");
    refuses(&read(&reader, "cmd:no-such-program-S3CRET").await, "cannot be started");
    refuses(&read(&reader, "cmd:true").await, "empty");
    fs::write(home.path().join("fails"), "while echo S3CRET; do :; done\n").unwrap();
    refuses(&read(&reader, "cmd:sh fails").await, "larger than");
}

#[tokio::test]
async fn read_stops_a_command_that_takes_too_long() {
    let home = tempfile::tempdir().unwrap();
    let reader = SecretReader {
        home: home.path().to_owned(),
        environment: std::collections::HashMap::new(),
        command_timeout: Duration::from_millis(50),
        answers: std::sync::Mutex::default(),
    };
    // The command's own child holds the pipe open, so only stopping the whole group ends the read.
    fs::write(home.path().join("hangs"), "sleep 3600 &\nwait\n").unwrap();
    refuses(&read(&reader, "cmd:sh hangs").await, "longer than it may");
}

#[tokio::test]
async fn select_gives_nothing_but_what_was_selected() {
    let home = tempfile::tempdir().unwrap();
    let secrets =
        reader(home.path()).select(BTreeMap::from([("hook".to_owned(), SecretRef("env:TOKEN".to_owned()))]));
    assert_eq!(secrets.resolve("hook").await.unwrap().expose(), VALUE);
    assert!(secrets.resolve("other").await.unwrap_err().reason.contains("not among"));
    assert_eq!(format!("{secrets:?}"), "{\"hook\"}");
    assert!(!format!("{:?}", secrets.reader).contains("S3CRET"));
}
