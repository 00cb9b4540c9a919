//! The handle: what the runtime keeps for us so that a later daemon finds the segment again.

use extension::Epoch;
use launcher::process::{Identity, Machine};
use serde::{Deserialize, Serialize};

/// Everything adoption needs. Paths are not among it: they follow from the Execution and the epoch, and a
/// home may be moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Handle {
    version: u32,
    /// Where the pids mean something.
    #[serde(with = "MachineFields")]
    pub(super) machine: Machine,
    /// The launcher.
    #[serde(with = "IdentityFields")]
    pub(super) launcher: Identity,
    /// The command; held at the time the handle is made.
    #[serde(with = "IdentityFields")]
    pub(super) command: Identity,
    /// The epoch it was launched under.
    pub(super) epoch: Epoch,
}

/// How a handle says where pids mean something.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Machine")]
struct MachineFields {
    boot: String,
    pid_namespace: u64,
}

/// How a handle names a process.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Identity")]
struct IdentityFields {
    pid: i32,
    start: u64,
}

impl Handle {
    const VERSION: u32 = 1;

    /// A handle for a held launch.
    pub(super) const fn new(machine: Machine, launcher: Identity, command: Identity, epoch: Epoch) -> Self {
        Self { version: Self::VERSION, machine, launcher, command, epoch }
    }

    /// The bytes the runtime keeps; a few hundred.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a struct of texts and numbers becomes JSON")
    }

    /// Reads what the runtime kept. `None` when another version of this program wrote it.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok().filter(|handle: &Self| handle.version == Self::VERSION)
    }
}

#[cfg(test)]
mod tests {
    use extension::Epoch;

    use super::{Handle, Identity, Machine};

    #[test]
    fn bytes_round_trip_and_other_versions_are_refused() {
        let machine = Machine { boot: "boot".to_owned(), pid_namespace: 4 };
        let identity = Identity { pid: 3, start: 9 };
        let handle = Handle::new(machine, identity, identity, Epoch::FIRST);
        assert_eq!(Handle::from_bytes(&handle.to_bytes()), Some(handle.clone()));
        let later = Handle { version: 2, ..handle };
        assert_eq!(Handle::from_bytes(&later.to_bytes()), None);
        assert_eq!(Handle::from_bytes(b"{}"), None);
    }
}
