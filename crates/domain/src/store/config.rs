//! Applied configurations.

use crate::id::Generation;
use crate::store::StoreError;
use crate::time::Timestamp;

/// An applied configuration, as text. What it means is for whoever parses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GenerationRow {
    /// Its number.
    pub number: Generation,
    /// The canonical text, with secrets as references only.
    pub body: String,
    /// SHA-256 of the text, in hex.
    pub digest: String,
    /// When it was applied.
    pub applied_at: Timestamp,
}

/// Reading configurations.
pub trait ConfigReads {
    /// The newest generation: the one in force.
    fn current_generation(&mut self) -> Result<Option<GenerationRow>, StoreError>;

    /// The number of the newest generation, without its text.
    fn current_generation_number(&mut self) -> Result<Option<Generation>, StoreError>;

    /// One generation.
    fn generation(&mut self, number: Generation) -> Result<Option<GenerationRow>, StoreError>;
}

/// Writing configurations.
pub trait ConfigWrites {
    /// Adds the next generation.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when its number is taken.
    fn insert_generation(&mut self, row: &GenerationRow) -> Result<(), StoreError>;
}
