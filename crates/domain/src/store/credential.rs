//! What holds credentials. A row is gone when everybody who waited for it has come back.

use crate::credential::CredentialHold;
use crate::store::StoreError;
use crate::text::CredentialName;
use crate::time::Timestamp;

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
}

/// Writing what holds credentials.
pub trait CredentialWrites {
    /// Writes or replaces what holds a credential.
    fn put_credential_hold(&mut self, hold: &CredentialHold) -> Result<(), StoreError>;

    /// Removes what held a credential. False when it is gone.
    fn delete_credential_hold(&mut self, credential: &CredentialName) -> Result<bool, StoreError>;
}
