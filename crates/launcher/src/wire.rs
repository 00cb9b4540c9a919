//! What passes between daemon, launcher and the held stage: one plan in a frame, and single bytes.
//!
//! A plan holds the environment, so it holds secrets. It travels over an inherited socket and never stands in
//! a file or in arguments, which every user of the machine can read.

use std::fmt;
use std::io::{self, Read, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The private sub-command of the launcher.
pub const LAUNCH: &str = "__launch";
/// The private sub-command of the stage that becomes the command.
pub const EXEC: &str = "__exec";
/// The argument to which the launcher's binary answers by ending well: it can be run here.
pub const PROBE: &str = "__probe";
/// The byte that says: begin.
pub const GO: u8 = b'g';
/// The most bytes of a frame; the kernel takes no larger environment.
const FRAME_BYTES_MAX: usize = 8 << 20;

/// What a launcher is to do. It is not shown: it holds secrets.
#[derive(Serialize, Deserialize)]
pub struct Plan {
    /// The mark of the Execution.
    pub mark: String,
    /// How long the command is held for the daemon's word, in milliseconds.
    pub hold_ms: u64,
    /// After how long the tree is ended, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// How long the tree has between being asked to end and being killed, in milliseconds.
    pub stop_grace_ms: u64,
    /// The values to keep out of the output. When there are none the command writes its output itself.
    pub redact: Vec<String>,
    /// The working directory.
    pub dir: String,
    /// What the held stage becomes.
    pub command: Command,
}

/// What the held stage becomes. It is not shown: its environment holds secrets.
#[derive(Serialize, Deserialize)]
pub struct Command {
    /// The program and its arguments; at least the program.
    pub argv: Vec<String>,
    /// The whole environment.
    pub env: Vec<(String, String)>,
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan").field("mark", &self.mark).finish_non_exhaustive()
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command").finish_non_exhaustive()
    }
}

/// Writes a value as one frame.
///
/// # Errors
/// When it is too large for one, or the other side does not take it.
pub fn write_frame(to: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    let body = serde_json::to_vec(value)?;
    let length = u32::try_from(body.len()).ok().filter(|_| body.len() <= FRAME_BYTES_MAX);
    let length = length.ok_or_else(|| io::Error::other("the environment is too large"))?;
    let mut frame = length.to_le_bytes().to_vec();
    frame.extend_from_slice(&body);
    to.write_all(&frame)
}

/// Reads a frame.
///
/// # Errors
/// When the other side has gone, or has sent something else.
pub fn read_frame<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<T> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > FRAME_BYTES_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    Ok(serde_json::from_slice(&body)?)
}

/// What a launcher answers once the command is held.
#[derive(Debug, Serialize, Deserialize)]
pub enum Hello {
    /// Launcher and held command.
    Held {
        /// The launcher.
        launcher: super::process::Identity,
        /// What becomes the command.
        command: super::process::Identity,
    },
    /// It could not be prepared; nothing was started.
    Failed {
        /// Why, in words.
        reason: String,
    },
}
