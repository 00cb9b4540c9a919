//! What git is called for: bringing checkouts to where the remote is, making worktrees, and removing them.

use std::fs;
use std::io;
use std::path::Path;

use extension::WorkspaceFacts;
use serde_json::json;

use super::Trouble;
use super::config::Config;
use super::decide::{self, Checkout, Forward, Tree};
use super::program::{Git, GitError, Lock};
use super::record::private_directory;

/// That a path is a main checkout and not something below one.
pub(super) fn check(git: &Git, lock: &mut Lock, checkout: &Path) -> Result<(), Trouble> {
    let no = |why: &str| {
        Trouble::Lasting(format!("{} is no main checkout of a repository: {why}", checkout.display()))
    };
    let answer = match git.ask(lock, checkout, &["rev-parse", "--show-toplevel", "--git-dir"]) {
        Ok(answer) => answer,
        Err(GitError::Refused { said, .. }) => return Err(no(&said)),
        Err(error) => return Err(error.into()),
    };
    let top = answer.lines().next().unwrap_or_default();
    if Path::new(top) == checkout { Ok(()) } else { Err(no("the repository begins elsewhere")) }
}

/// The remote's branch, as it is known here after this: its name, and why the remote could not be asked.
fn fetch(git: &Git, lock: &mut Lock, config: &Config, checkout: &Path) -> Result<(), GitError> {
    let plain = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", config.remote.as_str()];
    match &config.branch {
        None => git.work(lock, checkout, &plain).map(drop),
        Some(branch) => {
            let refs = format!("+refs/heads/{branch}:refs/remotes/{}/{branch}", config.remote);
            git.work(lock, checkout, &[&plain[..], &[&refs]].concat()).map(drop)
        }
    }
}

/// The name of the remote's branch that counts.
fn branch(git: &Git, lock: &mut Lock, config: &Config, checkout: &Path) -> Result<String, GitError> {
    if let Some(branch) = &config.branch {
        return Ok(branch.clone());
    }
    let head = format!("refs/remotes/{}/HEAD", config.remote);
    let ask = ["symbolic-ref", "--quiet", head.as_str()];
    let known = match git.ask(lock, checkout, &ask) {
        Ok(known) => known,
        Err(GitError::Refused { .. }) => {
            // A clone knows it; a repository that was given its remote later does not.
            git.work(lock, checkout, &["remote", "set-head", &config.remote, "--auto"])?;
            git.ask(lock, checkout, &ask)?
        }
        Err(error) => return Err(error),
    };
    let prefix = format!("refs/remotes/{}/", config.remote);
    Ok(known.trim().strip_prefix(&prefix).unwrap_or_default().to_owned())
}

/// Where the remote is, and what its branch is called here.
struct Head {
    name: String,
    commit: String,
}

impl Head {
    fn read(git: &Git, lock: &mut Lock, config: &Config, checkout: &Path) -> Result<Self, GitError> {
        let branch = branch(git, lock, config, checkout)?;
        let full = format!("refs/remotes/{}/{branch}^{{commit}}", config.remote);
        let commit = git.ask(lock, checkout, &["rev-parse", "--verify", "--quiet", &full])?;
        Ok(Self { name: format!("{}/{branch}", config.remote), commit: commit.trim().to_owned() })
    }

    fn short(&self) -> &str {
        self.commit.get(..7).unwrap_or(&self.commit)
    }
}

fn facts(
    config: &Config,
    dir: &Path,
    reference: &str,
    commit: &str,
    summary: String,
) -> Result<WorkspaceFacts, Trouble> {
    let dir = dir.to_str().ok_or_else(|| {
        Trouble::Lasting("the path of the checkout or of the home is not valid UTF-8".to_owned())
    })?;
    Ok(WorkspaceFacts {
        kind: "git".to_owned(),
        reference: Some(reference.to_owned()),
        dir: dir.to_owned(),
        summary,
        data: json!({ "mode": config.mode.as_str(), "commit": commit }),
    })
}

/// Brings the main checkout to where the remote is, unless something is in the way. (WSP-2)
pub(super) fn shared(
    git: &Git,
    lock: &mut Lock,
    config: &Config,
    checkout: &Path,
    is_shared: bool,
) -> Result<WorkspaceFacts, Trouble> {
    let not_fetched = fetch(git, lock, config, checkout).err().map(|error| error.to_string());
    let own = git.ask(lock, checkout, &["rev-parse", "--verify", "HEAD"])?.trim().to_owned();
    let head = match Head::read(git, lock, config, checkout) {
        Ok(head) => head,
        Err(error) => {
            let why = not_fetched.unwrap_or_else(|| error.to_string());
            let summary = format!("main checkout, not compared with {}: {why}", config.remote);
            return facts(config, checkout, &own, &own, summary);
        }
    };
    let (ahead, behind) = distance(git, lock, checkout, &head)?;
    let status = git.ask(lock, checkout, &["status", "--porcelain", "--untracked-files=no"])?;
    let wanted = head.name.strip_prefix(&format!("{}/", config.remote)).unwrap_or_default().to_owned();
    let found = Checkout {
        shared: is_shared,
        dirty: !status.trim().is_empty(),
        branch: on_branch(git, lock, checkout)?,
        wanted,
        ahead,
        behind,
        not_fetched,
    };
    let mut told = decide::forward(&found);
    let mut at = own;
    if told == Forward::Go {
        match git.work(lock, checkout, &["merge", "--quiet", "--ff-only", &head.commit]) {
            Ok(_) => at.clone_from(&head.commit),
            Err(error) => told = Forward::Stay(error.to_string()),
        }
    }
    let summary = match told {
        Forward::UpToDate | Forward::Go if ahead > 0 => {
            format!("main checkout, {ahead} commit(s) ahead of {} {}", head.name, head.short())
        }
        Forward::UpToDate | Forward::Go => format!("main checkout at {} {}", head.name, head.short()),
        Forward::Stay(why) => format!("main checkout, {behind} commit(s) behind {}: {why}", head.name),
    };
    facts(config, checkout, found.branch.as_deref().unwrap_or(&at), &at, summary)
}

fn on_branch(git: &Git, lock: &mut Lock, dir: &Path) -> Result<Option<String>, GitError> {
    match git.ask(lock, dir, &["symbolic-ref", "--quiet", "--short", "HEAD"]) {
        Ok(branch) => Ok(Some(branch.trim().to_owned())),
        Err(GitError::Refused { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// How many commits `dir` has that the remote has not, and the other way round.
fn distance(git: &Git, lock: &mut Lock, dir: &Path, head: &Head) -> Result<(u64, u64), GitError> {
    let range = format!("HEAD...{}", head.commit);
    let counted = git.ask(lock, dir, &["rev-list", "--left-right", "--count", &range])?;
    let mut counts = counted.split_whitespace().map(|count| count.parse().unwrap_or_default());
    Ok((counts.next().unwrap_or_default(), counts.next().unwrap_or_default()))
}

/// Makes the fresh checkout of a run at the remote's head. (WSP-3)
pub(super) fn fresh(
    git: &Git,
    lock: &mut Lock,
    config: &Config,
    checkout: &Path,
    dir: &Path,
) -> Result<WorkspaceFacts, Trouble> {
    fetch(git, lock, config, checkout)?;
    let head = Head::read(git, lock, config, checkout)?;
    let path = below(dir)?;
    git.work(lock, checkout, &["worktree", "add", "--quiet", "--detach", path, &head.commit])?;
    facts(
        config,
        dir,
        &head.commit,
        &head.commit,
        format!("fresh worktree at {} {}", head.name, head.short()),
    )
}

/// Makes the worktree of a Work on the Work's branch, or goes on in the one that is there. (WSP-5)
pub(super) fn of_work(
    git: &Git,
    lock: &mut Lock,
    config: &Config,
    checkout: &Path,
    (dir, work): (&Path, &str),
) -> Result<WorkspaceFacts, Trouble> {
    let name = format!("agent/{work}");
    let fetched = fetch(git, lock, config, checkout);
    if dir.exists() {
        return reused(git, lock, config, dir, fetched.err());
    }
    let path = below(dir)?;
    let full = format!("refs/heads/{name}");
    if git.ask(lock, checkout, &["rev-parse", "--verify", "--quiet", &full]).is_ok() {
        git.work(lock, checkout, &["worktree", "add", "--quiet", path, &name])?;
        let commit = git.ask(lock, dir, &["rev-parse", "HEAD"])?.trim().to_owned();
        return facts(config, dir, &name, &commit, format!("worktree on branch {name}, made again"));
    }
    fetched?;
    let head = Head::read(git, lock, config, checkout)?;
    git.work(lock, checkout, &["worktree", "add", "--quiet", "--no-track", "-b", &name, path, &head.commit])?;
    let summary = format!("worktree on branch {name}, new at {} {}", head.name, head.short());
    facts(config, dir, &name, &head.commit, summary)
}

fn reused(
    git: &Git,
    lock: &mut Lock,
    config: &Config,
    dir: &Path,
    not_fetched: Option<GitError>,
) -> Result<WorkspaceFacts, Trouble> {
    let top = git.ask(lock, dir, &["rev-parse", "--show-toplevel"]).unwrap_or_default();
    if Path::new(top.trim()) != dir {
        let what =
            format!("{} is no worktree any more; move it away, and the next run makes one", dir.display());
        return Err(Trouble::Lasting(what));
    }
    let commit = git.ask(lock, dir, &["rev-parse", "HEAD"])?.trim().to_owned();
    let branch = on_branch(git, lock, dir)?;
    let on = branch.as_deref().map_or_else(|| "no branch".to_owned(), |name| format!("branch {name}"));
    let told =
        not_fetched.map(|error| format!("; the remote could not be asked: {error}")).unwrap_or_default();
    let reference = branch.as_deref().unwrap_or(&commit);
    facts(config, dir, reference, &commit, format!("worktree on {on}, reused{told}"))
}

/// The path as text, its parent made.
fn below(dir: &Path) -> Result<&str, Trouble> {
    let parent = dir.parent().expect("a worktree lies below the root");
    private_directory(parent)?;
    dir.to_str().ok_or_else(|| Trouble::Lasting("the path of the home is not valid UTF-8".to_owned()))
}

/// Removes what was begun and never used.
pub(super) fn discard(git: &Git, lock: &mut Lock, checkout: &Path, dir: &Path) -> Result<(), Trouble> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        done => done?,
    }
    if let Some(path) = dir.to_str() {
        // One that a crash left half made is locked, and only such a one.
        let _was_not = git.ask(lock, checkout, &["worktree", "unlock", path]);
    }
    git.ask(lock, checkout, &["worktree", "prune"])?;
    Ok(())
}

/// Removes a worktree, unless something would be lost with it: then it says what. (WSP-4)
pub(super) fn remove(git: &Git, lock: &mut Lock, checkout: &Path, dir: &Path) -> Result<(), String> {
    let in_words = |error: GitError| error.to_string();
    if dir.exists() {
        let status =
            git.ask(lock, dir, &["status", "--porcelain", "--untracked-files=normal"]).map_err(in_words)?;
        let only_here = ["rev-list", "--count", "HEAD", "--not", "--branches", "--tags", "--remotes"];
        let commits = git.ask(lock, dir, &only_here).map_err(in_words)?;
        let unreachable =
            commits.trim().parse().map_err(|_error| "git did not count its commits".to_owned())?;
        let tree = Tree { dirty: status.lines().count() as u64, unreachable };
        if let Some(why) = decide::keep(tree) {
            return Err(why);
        }
        let path = dir.to_str().ok_or("its path is not valid UTF-8")?;
        // Without --force: git looks once more by itself.
        git.work(lock, checkout, &["worktree", "remove", path]).map_err(in_words)?;
    }
    git.ask(lock, checkout, &["worktree", "prune"]).map(drop).map_err(in_words)
}
