//! Rules that the reference can be told to break. A case that no fault fails has not been shown to notice
//! anything.

/// One broken rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A delivery that comes again is a new Event.
    DedupForgotten,
    /// A Work that runs is claimed again.
    ClaimsTwice,
    /// An Event that cannot be routed holds up every later one.
    OrderIsGlobal,
    /// A key goes to whoever wants it.
    KeysAreStolen,
    /// A late Event brings a Work back that had ended.
    EndsAreRevived,
    /// A route that replaces another goes to the end of the list.
    OverridesAreAppended,
    /// A policy that the executor cannot do is taken for `queue`.
    QueueIsInferred,
    /// A key that contradicts the Work it is delivered with is believed.
    ContradictionIsResolved,
    /// A Wait is never looked at again.
    WakeIsSuppressed,
    /// What stands behind an Event that is dropped is not looked at again.
    DroppedHidesLater,
    /// At its deadline a timeout wins over what was accepted before.
    DeadlineWins,
    /// A watermark includes the Event it names.
    WatermarkIsInclusive,
    /// A cancellation leaves the Wait as it is.
    CancelKeepsWaits,
    /// A cancellation leaves timers armed.
    CancelKeepsTimers,
    /// An alias has another identity each time it is translated.
    AliasIsRenamed,
    /// What was delivered to an attempt counts as consumed.
    ConsumedWithoutProof,
    /// The epoch of a report is not looked at.
    EpochIsSkipped,
    /// A lease holds at the moment it ends.
    ExpiryIsInclusive,
    /// Input ends the wait after a failure.
    InputEndsBackoff,
    /// Chains have no bounds.
    BoundsAreBypassed,
    /// What chains have used is forgotten when the process ends.
    CountersInMemory,
}

impl Fault {
    /// Every one.
    pub const ALL: [Self; 21] = [
        Self::DedupForgotten,
        Self::ClaimsTwice,
        Self::OrderIsGlobal,
        Self::KeysAreStolen,
        Self::EndsAreRevived,
        Self::OverridesAreAppended,
        Self::QueueIsInferred,
        Self::ContradictionIsResolved,
        Self::WakeIsSuppressed,
        Self::DroppedHidesLater,
        Self::DeadlineWins,
        Self::WatermarkIsInclusive,
        Self::CancelKeepsWaits,
        Self::CancelKeepsTimers,
        Self::AliasIsRenamed,
        Self::ConsumedWithoutProof,
        Self::EpochIsSkipped,
        Self::ExpiryIsInclusive,
        Self::InputEndsBackoff,
        Self::BoundsAreBypassed,
        Self::CountersInMemory,
    ];
}
