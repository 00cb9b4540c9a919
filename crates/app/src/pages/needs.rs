//! What waits for a person: the panel on the first page, and the number beside its name on every other.

use super::Visit;
use crate::api::failure::Failure;
use crate::api::needs;
use crate::view::needs::{Need, needs as told};

/// Everything that waits, in the reader's words. The number beside the first page's name is how many there are.
///
/// # Errors
/// When the store does not answer.
pub(super) async fn read(visit: &Visit) -> Result<Vec<Need>, Failure> {
    Ok(told(&needs::find(&visit.daemon).await?, &visit.reader.clock))
}
