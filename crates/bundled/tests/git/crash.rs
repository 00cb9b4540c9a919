//! What a crash leaves, and what the next acquisition or the end of the run makes of it.

use std::fs;
use std::path::Path;

use extension::{KeptState, WorkspaceProvider as _};
use serde_json::json;

use super::fixture::{Site, git, provider};

#[tokio::test]
async fn the_same_run_gets_the_same_workspace_again_with_all_that_is_in_it() {
    let mut site = Site::new();
    for (run, mode) in [(1, "shared"), (2, "fresh"), (3, "worktree")] {
        let facts = site.acquire(run, run, mode).await;
        let file = Path::new(&facts.dir).join(format!("notes-{run}"));
        fs::write(&file, "x").unwrap();
        // As the next daemon does: with a provider that remembers nothing.
        site.provider = provider(&site.root().join("workspaces"));
        assert_eq!(site.acquire(run, run, mode).await, facts);
        assert!(file.exists());
    }
}

#[tokio::test]
async fn one_that_was_being_made_is_made_anew() {
    let site = Site::new();
    for (run, mode) in [(1, "fresh"), (2, "worktree")] {
        let facts = site.acquire(run, run, mode).await;
        // Before the record said that it is there, and in the middle of git's own work.
        site.edit_record(run, |record| {
            record["state"] = json!("making");
            record["facts"] = json!(null);
        });
        fs::remove_file(Path::new(&facts.dir).join("first")).unwrap();
        git(&site.main(), &["worktree", "lock", "--reason", "initializing", &facts.dir]);
        let again = site.acquire(run, run, mode).await;
        assert_eq!(again.dir, facts.dir);
        assert!(Path::new(&again.dir).join("first").exists(), "{mode}");
    }
    // With no trace in git, and without the directory.
    let facts = site.acquire(3, 3, "fresh").await;
    site.edit_record(3, |record| record["state"] = json!("making"));
    fs::remove_dir_all(&facts.dir).unwrap();
    assert!(Path::new(&site.acquire(3, 3, "fresh").await.dir).join("first").exists());
}

#[tokio::test]
async fn one_that_was_being_made_for_a_run_that_ended_is_removed() {
    let site = Site::new();
    for (run, mode) in [(1, "fresh"), (2, "worktree")] {
        let facts = site.acquire(run, run, mode).await;
        site.edit_record(run, |record| record["state"] = json!("making"));
        assert_eq!(site.release(run, false).await, None);
        assert!(!Path::new(&facts.dir).exists());
    }
    assert_eq!(site.kept().await, []);
}

#[tokio::test]
async fn a_removal_that_was_cut_short_is_finished() {
    let site = Site::new();
    let facts = site.acquire(1, 1, "fresh").await;
    fs::remove_dir_all(&facts.dir).unwrap();
    assert_eq!(site.kept().await, [(1, KeptState::InUse)]);
    assert_eq!(site.release(1, true).await, None);
    assert_eq!(site.kept().await, []);
    assert!(!git(&site.main(), &["worktree", "list", "--porcelain"]).contains(&facts.dir));
}

#[tokio::test]
async fn a_record_never_leads_out_of_the_root() {
    let site = Site::new();
    let elsewhere = site.root().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    site.acquire(1, 1, "fresh").await;
    site.edit_record(1, |record| {
        record["state"] = json!("making");
        record["dir"] = json!(elsewhere);
    });
    assert_eq!(site.provider.release(extension::ExecutionId::from_number(1), ended()).await, Ok(None));
    assert!(elsewhere.exists());
}

const fn ended() -> extension::WorkspaceEnded {
    extension::WorkspaceEnded { well: false, work_ended: false, at: super::fixture::END }
}
