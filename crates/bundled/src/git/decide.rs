//! What is to be done, as functions of what was found. Nothing here looks or acts.

use std::path::Path;
use std::time::Duration;

use extension::{ExecutionId, Timestamp, WorkId, WorkspaceEnded};

use super::config::Mode;
use super::record::{Record, State};

/// How soon what could not be removed without loss is looked at again.
pub(super) const LOOK_AGAIN_AFTER: Duration = Duration::from_hours(24);

/// How an acquisition begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Begin {
    /// The attempt has its workspace already.
    Again,
    /// The attempt began to get one and did not come to the end: what is half made goes first.
    Repair,
    /// It has none yet.
    Anew,
    /// Another attempt has it.
    Busy(ExecutionId),
}

/// How an attempt at `work` begins to get a workspace, with `records` of what is there. (WSP-5, WSP-7)
pub(super) fn begin(mode: Mode, execution: ExecutionId, work: WorkId, records: &[Record]) -> Begin {
    if let Some(own) = records.iter().find(|record| record.execution() == execution) {
        return match own.state {
            State::Making => Begin::Repair,
            State::Held | State::ForWork | State::Until { .. } => Begin::Again,
        };
    }
    let takes = |record: &&Record| mode == Mode::Worktree && record.mode == mode && record.work() == work;
    let other = records.iter().filter(takes).find(|record| record.is_in_use());
    other.map_or(Begin::Anew, |record| Begin::Busy(record.execution()))
}

/// Who else works in a main checkout, besides `execution`.
pub(super) fn sharer(checkout: &Path, execution: ExecutionId, records: &[Record]) -> Option<ExecutionId> {
    let shares = |record: &&Record| {
        record.mode == Mode::Shared
            && record.checkout == checkout
            && record.is_in_use()
            && record.execution() != execution
    };
    records.iter().find(shares).map(Record::execution)
}

/// What a main checkout looks like beside the branch of the remote.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Checkout {
    /// Whether another run works in it.
    pub(super) shared: bool,
    /// Whether files that git follows were changed.
    pub(super) dirty: bool,
    /// The branch it is on; none when it is on a commit.
    pub(super) branch: Option<String>,
    /// The branch it is wanted on.
    pub(super) wanted: String,
    /// How many commits it has that the remote does not.
    pub(super) ahead: u64,
    /// How many commits the remote has that it does not.
    pub(super) behind: u64,
    /// Why the remote could not be asked.
    pub(super) not_fetched: Option<String>,
}

/// What becomes of a main checkout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Forward {
    /// It is where the remote is.
    UpToDate,
    /// It goes to where the remote is.
    Go,
    /// It stays, for this reason.
    Stay(String),
}

/// Whether a main checkout is brought to where the remote is. (WSP-2)
pub(super) fn forward(checkout: &Checkout) -> Forward {
    let Checkout { shared, dirty, branch, wanted, ahead, behind, not_fetched } = checkout;
    let stay = |why: &str| Forward::Stay(why.to_owned());
    if let Some(why) = not_fetched {
        return Forward::Stay(format!("the remote could not be asked: {why}"));
    }
    match branch {
        None => return stay("the checkout is on no branch"),
        Some(branch) if branch != wanted => {
            return Forward::Stay(format!("the checkout is on branch {branch}"));
        }
        Some(_wanted) => {}
    }
    if *behind == 0 {
        Forward::UpToDate
    } else if *shared {
        stay("another execution is using the checkout")
    } else if *ahead > 0 {
        Forward::Stay(format!("the checkout has {ahead} commit(s) that the remote has not"))
    } else if *dirty {
        stay("the checkout has changes that are not committed")
    } else {
        Forward::Go
    }
}

/// What becomes of a workspace that is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GiveBack {
    /// Nothing of it is ours to remove.
    Forget,
    /// It was never begun in, so all of it goes.
    Discard,
    /// It goes, unless something would be lost.
    Remove,
    /// Later attempts at the Work go on in it.
    ForWork,
    /// It is kept until then.
    Until(Timestamp),
}

/// What becomes of a workspace when its attempt has ended. (WSP-3, WSP-4, WSP-6)
pub(super) fn give_back(record: &Record, ended: WorkspaceEnded) -> GiveBack {
    match (record.mode, record.state) {
        (Mode::Shared, _) => GiveBack::Forget,
        (Mode::Fresh | Mode::Worktree, State::Making) => GiveBack::Discard,
        (Mode::Fresh | Mode::Worktree, State::Until { at }) => GiveBack::Until(Timestamp::from_micros(at)),
        (Mode::Fresh, State::Held | State::ForWork) if ended.well => GiveBack::Remove,
        (Mode::Fresh, State::Held | State::ForWork) => {
            GiveBack::Until(ended.at.after(Duration::from_secs(record.retain_failed_seconds)))
        }
        (Mode::Worktree, State::Held | State::ForWork) if ended.work_ended => GiveBack::Remove,
        (Mode::Worktree, State::Held | State::ForWork) => GiveBack::ForWork,
    }
}

/// What a worktree looks like whose removal is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Tree {
    /// Files that are changed, or that git does not know and was not told to ignore.
    pub(super) dirty: u64,
    /// Commits that no branch, tag or remote has.
    pub(super) unreachable: u64,
}

/// Why a worktree must stay; none when nothing is lost with it. (WSP-4)
pub(super) fn keep(tree: Tree) -> Option<String> {
    let mut reasons = Vec::new();
    if tree.dirty > 0 {
        reasons.push(format!("{} file(s) that are not committed", tree.dirty));
    }
    if tree.unreachable > 0 {
        reasons.push(format!("{} commit(s) that no branch and no remote has", tree.unreachable));
    }
    (!reasons.is_empty()).then(|| format!("it has {}", reasons.join(" and ")))
}

#[cfg(test)]
mod tests;
