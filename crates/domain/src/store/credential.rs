//! What holds credentials. A row is gone when everybody who waited for it has come back.

use crate::credential::{CredentialHold, CredentialWait};
use crate::id::WorkId;
use crate::store::StoreError;
use crate::text::CredentialName;
use crate::time::Timestamp;
use crate::work::Work;

/// Reading what holds credentials.
pub trait CredentialReads {
    /// What holds a credential, or held it until lately.
    fn credential_hold(&mut self, credential: &CredentialName) -> Result<Option<CredentialHold>, StoreError>;

    /// Every hold behind `after`, by name, at most `limit`.
    fn credential_holds(
        &mut self,
        after: Option<&CredentialName>,
        limit: u32,
    ) -> Result<Vec<CredentialHold>, StoreError>;

    /// Holds that are over at `now`, inclusive, earliest first, at most `limit`.
    fn due_credential_holds(&mut self, now: Timestamp, limit: u32)
    -> Result<Vec<CredentialHold>, StoreError>;

    /// When the next hold is over.
    fn next_credential_due(&mut self) -> Result<Option<Timestamp>, StoreError>;

    /// The starts of an attempt of a Work that had to wait for credentials, by turn, at most `limit`.
    fn credential_waits(
        &mut self,
        work: WorkId,
        attempt: i64,
        limit: u32,
    ) -> Result<Vec<CredentialWait>, StoreError>;
}

/// Writing what holds credentials.
pub trait CredentialWrites {
    /// Writes or replaces what holds a credential.
    fn put_credential_hold(&mut self, hold: &CredentialHold) -> Result<(), StoreError>;

    /// Notes that a start waits for a credential. Again is fine, and it then waits since the first time.
    fn put_credential_wait(&mut self, wait: &CredentialWait) -> Result<(), StoreError>;

    /// Notes that what waits for a credential of a Work waits no longer: of its newest attempt, or of the next.
    fn end_credential_wait(
        &mut self,
        work: &Work,
        credential: &CredentialName,
        at: Timestamp,
    ) -> Result<(), StoreError>;

    /// Removes what held a credential. False when it is gone.
    fn delete_credential_hold(&mut self, credential: &CredentialName) -> Result<bool, StoreError>;
}
