//! Hints between stages: "look again". They carry nothing and promise nothing.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// One bell for each stage. A ring that comes while a stage works is heard when it is done.
#[derive(Debug, Default)]
pub struct Hints {
    /// An Event may be routed.
    pub route: Notify,
    /// A Work may start.
    pub schedule: Notify,
    /// A claimed attempt may be launched.
    pub execute: Notify,
    /// A running attempt was ordered to do something.
    pub dispatch: Notify,
    /// A result may be settled.
    pub complete: Notify,
    /// A timer was armed.
    pub wake: Notify,
    /// A configuration came into force.
    pub recur: Notify,
    /// An Event was accepted, or somebody subscribed.
    pub alias: Notify,
    /// Whether somebody may subscribe to something, so that it is worth ringing there.
    pub(crate) subscribed: AtomicBool,
    /// An attempt may have lost its authority.
    pub recover: Notify,
    /// A run ended, or less is to be kept.
    pub retain: Notify,
    /// A run ended that has a workspace, or a Work that one is kept for.
    pub workspace: Notify,
    /// Something ended that may still run.
    pub stop: Notify,
    /// Something was committed: for streams over the change feed.
    pub feed: tokio::sync::watch::Sender<()>,
}

impl Hints {
    /// Rings for whoever goes on from an accepted Event.
    pub(crate) fn accepted(&self) {
        self.route.notify_one();
        if self.subscribed.load(Ordering::SeqCst) {
            self.alias.notify_one();
        }
    }

    /// Rings for everyone who follows the change feed.
    pub fn committed(&self) {
        self.feed.send_replace(());
    }
}
