//! Scopes that an operator has paused.

use crate::id::Generation;
use crate::pause::Pause;
use crate::store::StoreError;
use crate::text::ScopeName;

/// Which rules hold for a start, in one statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InForce {
    /// The newest generation; none before the first apply.
    pub generation: Option<Generation>,
    /// Whether any scope is paused. Which ones is only asked then.
    pub any_pause: bool,
}

/// Reading pauses.
pub trait PauseReads {
    /// The generation in force, and whether there is any pause beside it.
    fn in_force(&mut self) -> Result<InForce, StoreError>;

    /// Every pause, by the name of its scope.
    fn pauses(&mut self) -> Result<Vec<Pause>, StoreError>;
}

/// Writing pauses.
pub trait PauseWrites {
    /// Notes a pause. False when the scope is paused already; then the earlier one stands.
    fn insert_pause(&mut self, pause: &Pause) -> Result<bool, StoreError>;

    /// Takes a pause back. False when there was none.
    fn delete_pause(&mut self, scope: &ScopeName) -> Result<bool, StoreError>;
}
