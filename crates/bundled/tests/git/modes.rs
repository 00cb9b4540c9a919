//! What each mode gives a run, and what becomes of it.

use std::fs;
use std::path::Path;

use extension::{AcquireError, ExecutionId, KeptState, Timestamp, WorkspaceEnded, WorkspaceProvider as _};

use super::fixture::{END, Site, git, head};

#[tokio::test]
async fn shared_goes_forward_when_nobody_has_it_and_it_is_clean() {
    let site = Site::new();
    let newest = site.push("second");
    let first = site.acquire(1, 1, "shared").await;
    assert_eq!((first.dir.as_str(), head(&site.main())), (site.main().to_str().unwrap(), newest.clone()));
    assert_eq!(first.summary, format!("main checkout at origin/main {}", &newest[..7]));
    assert_eq!((first.kind.as_str(), first.reference.as_deref()), ("git", Some("main")));

    site.push("third");
    let second = site.acquire(2, 2, "shared").await;
    let why = "main checkout, 1 commit(s) behind origin/main: another execution is using the checkout";
    assert_eq!((second.summary.as_str(), head(&site.main())), (why, newest.clone()));

    site.release(1, true).await;
    site.release(2, false).await;
    fs::write(site.main().join("first"), "changed").unwrap();
    let dirty = site.acquire(3, 3, "shared").await.summary;
    assert!(dirty.contains("1 commit(s) behind") && dirty.contains("not committed"), "{dirty}");
    assert_eq!(head(&site.main()), newest);
    assert_eq!(fs::read_to_string(site.main().join("first")).unwrap(), "changed");
    site.release(3, true).await;
    assert_eq!(site.kept().await, []);
}

#[tokio::test]
async fn shared_tells_when_the_remote_cannot_be_asked() {
    let site = Site::new();
    fs::rename(site.root().join("remote.git"), site.root().join("away")).unwrap();
    let told = site.acquire(1, 1, "shared").await.summary;
    assert!(told.contains("the remote could not be asked"), "{told}");
}

#[tokio::test]
async fn fresh_is_at_the_remotes_head_and_removed_after_success() {
    let site = Site::new();
    let newest = site.push("second");
    let facts = site.acquire(1, 1, "fresh").await;
    let dir = Path::new(&facts.dir);
    assert_eq!(
        (head(dir), facts.summary),
        (newest.clone(), format!("fresh worktree at origin/main {}", &newest[..7]))
    );
    assert_ne!(head(&site.main()), newest, "the main checkout stays as it is");
    assert_eq!(site.kept().await, [(1, KeptState::InUse)]);
    let beside = site.acquire(2, 1, "fresh").await;
    assert_ne!(beside.dir, facts.dir);

    assert_eq!(site.release(1, true).await, None);
    assert!(!dir.exists() && Path::new(&beside.dir).exists());
    assert_eq!(site.kept().await, [(2, KeptState::InUse)]);
    assert!(!git(&site.main(), &["worktree", "list"]).contains(facts.dir.as_str()));
    assert_eq!(site.release(1, true).await, None, "again is fine");
}

#[tokio::test]
async fn fresh_is_kept_after_a_failure_until_its_time_is_over() {
    let site = Site::new();
    let facts = site.acquire(1, 1, "fresh").await;
    let told = site.release(1, false).await.unwrap();
    let until = Timestamp::from_micros(END.as_micros() + 24 * 3_600_000_000);
    assert!(told.contains(&until.to_string()), "{told}");
    assert_eq!(site.kept().await, [(1, KeptState::Until(until))]);
    let run = ExecutionId::from_number(1);
    site.provider.remove(run, Timestamp::from_micros(until.as_micros() - 1)).await.unwrap();
    assert!(Path::new(&facts.dir).exists(), "its time is not over");
    assert_eq!(site.provider.remove(run, until).await.unwrap(), None);
    assert!(!Path::new(&facts.dir).exists());
    assert_eq!(site.kept().await, []);
}

#[tokio::test]
async fn what_nobody_committed_or_pushed_is_never_removed() {
    let site = Site::new();
    let dirty = site.acquire(1, 1, "fresh").await;
    fs::write(Path::new(&dirty.dir).join("notes"), "x").unwrap();
    let told = site.release(1, true).await.unwrap();
    assert!(told.contains("1 file(s) that are not committed"), "{told}");
    let unpushed = site.acquire(2, 2, "fresh").await;
    Site::commit(Path::new(&unpushed.dir), "mine");
    let told = site.release(2, true).await.unwrap();
    assert!(told.contains("1 commit(s) that no branch and no remote has"), "{told}");
    let run = ExecutionId::from_number(2);
    let later = Timestamp::from_micros(i64::MAX / 2);
    assert!(site.provider.remove(run, later).await.unwrap().is_some());
    assert!(Path::new(&dirty.dir).join("notes").exists() && Path::new(&unpushed.dir).join("mine").exists());

    git(Path::new(&unpushed.dir), &["push", "--quiet", "origin", "HEAD:refs/heads/topic"]);
    let much_later = Timestamp::from_micros(i64::MAX / 2 + 100 * 3_600_000_000);
    assert_eq!(site.provider.remove(run, much_later).await.unwrap(), None);
    assert!(!Path::new(&unpushed.dir).exists(), "now that it was pushed nothing is lost");
}

#[tokio::test]
async fn worktree_is_the_works_and_later_turns_go_on_in_it() {
    let site = Site::new();
    let first = site.acquire(1, 7, "worktree").await;
    let branch = first.reference.clone().unwrap();
    assert!(branch.starts_with("agent/") && first.summary.contains("new at origin/main"), "{first:?}");
    let dir = Path::new(&first.dir);
    Site::commit(dir, "mine");
    fs::write(dir.join("notes"), "x").unwrap();
    let busy = site.try_acquire(2, 7, "worktree").await;
    assert_eq!(busy, Err(AcquireError::Busy { by: ExecutionId::from_number(1) }));
    assert_ne!(site.acquire(3, 8, "worktree").await.dir, first.dir, "another Work has its own");

    site.release(1, false).await;
    assert_eq!(site.kept().await[0], (1, KeptState::ForWork));
    let second = site.acquire(2, 7, "worktree").await;
    assert_eq!((second.dir.as_str(), second.reference.as_ref()), (first.dir.as_str(), Some(&branch)));
    assert_eq!(second.summary, format!("worktree on branch {branch}, reused"));
    assert!(dir.join("notes").exists() && dir.join("mine").exists());

    let end = WorkspaceEnded { well: true, work_ended: true, at: END };
    assert!(site.release_as(2, end).await.unwrap().contains("not committed"));
    assert!(dir.join("notes").exists());
    fs::remove_file(dir.join("notes")).unwrap();
    let later = Timestamp::from_micros(END.as_micros() + 24 * 3_600_000_000);
    assert_eq!(site.provider.remove(ExecutionId::from_number(2), later).await.unwrap(), None);
    assert!(!dir.exists());
    git(&site.main(), &["rev-parse", "--verify", &format!("refs/heads/{branch}")]);
    let again = site.acquire(4, 7, "worktree").await;
    assert!(again.summary.contains("made again") && dir.join("mine").exists(), "{again:?}");
}

#[tokio::test]
async fn what_cannot_be_made_leaves_nothing_and_says_why() {
    let site = Site::new();
    fs::rename(site.root().join("remote.git"), site.root().join("away")).unwrap();
    let refused = site.try_acquire(1, 1, "fresh").await;
    let Err(AcquireError::Unavailable { reason }) = refused else { panic!("{refused:?}") };
    assert!(reason.contains("`git fetch` failed"), "{reason}");
    assert_eq!(site.kept().await, []);
    fs::create_dir(site.main().join("below")).unwrap();
    for checkout in ["below", "none"].map(|name| site.main().join(name)) {
        let config = serde_json::json!({ "checkout": checkout, "mode": "fresh" });
        let (execution, work) = (ExecutionId::from_number(1), extension::WorkId::from_number(1));
        let asked = extension::WorkspaceRequest { execution, work, config };
        let refused = site.provider.acquire(asked).await;
        assert!(matches!(refused, Err(AcquireError::Failed { .. })), "{refused:?}");
    }
    assert_eq!(site.kept().await, []);
}

#[tokio::test]
async fn nothing_of_the_repositorys_own_is_run() {
    let site = Site::new();
    let hooks = site.main().join(".git/hooks");
    fs::create_dir_all(&hooks).unwrap();
    for hook in ["post-checkout", "post-merge"] {
        let text = format!("#!/bin/sh\ntouch {}/ran\n", site.root().display());
        fs::write(hooks.join(hook), text).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(hooks.join(hook), mode).unwrap();
    }
    site.push("second");
    site.acquire(1, 1, "shared").await;
    site.acquire(2, 2, "fresh").await;
    assert!(!site.root().join("ran").exists());
    git(&site.main(), &["checkout", "--quiet", "-b", "topic"]);
    assert!(site.root().join("ran").exists(), "the hook works when somebody else calls git");
}
