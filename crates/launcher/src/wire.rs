//! What passes between daemon, launcher and the held stage: one plan in a frame, and single bytes.
//!
//! A plan holds the environment, so it holds secrets. It travels over an inherited socket and never stands in
//! a file or in arguments, which every user of the machine can read.
//!
//! Both sides are of one build, so a frame is a JSON array whose fields stand in the order of the struct's.
//! Nothing here is derived: the launcher is built anew with every product, and the packages that derive took
//! longer to compile than all of it.

use std::fmt;
use std::io::{self, Read, Write};

use crate::process::Identity;

/// The private sub-command of the launcher. After it stands for how many milliseconds it waits to be told what
/// to do.
pub const LAUNCH: &str = "__launch";
/// The private sub-command of the stage that becomes the command.
pub const EXEC: &str = "__exec";
/// The argument to which the launcher's binary answers by ending well: it can be run here.
pub const PROBE: &str = "__probe";
/// The byte that says: begin.
pub const GO: u8 = b'g';
/// The most bytes of a frame; the kernel takes no larger environment.
const FRAME_BYTES_MAX: usize = 8 << 20;

/// What a launcher is to do. Its content is not shown: it holds secrets.
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

impl Plan {
    /// Sends it.
    ///
    /// # Errors
    /// When it is too large for a frame, or the other side does not take it.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let Self { mark, hold_ms, timeout_ms, stop_grace_ms, redact, dir, command } = self;
        let command = (&command.argv, &command.env);
        let fields = (mark, hold_ms, timeout_ms, stop_grace_ms, redact, dir, command);
        write_frame(to, &serde_json::to_vec(&fields)?)
    }

    /// Waits for one.
    ///
    /// # Errors
    /// When the other side has gone, or sent something else.
    pub fn read(from: &mut impl Read) -> io::Result<Self> {
        let (mark, hold_ms, timeout_ms, stop_grace_ms, redact, dir, (argv, env)) =
            serde_json::from_slice(&read_frame(from)?)?;
        let command = Command { argv, env };
        Ok(Self { mark, hold_ms, timeout_ms, stop_grace_ms, redact, dir, command })
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan").field("mark", &self.mark).finish_non_exhaustive()
    }
}

/// What the held stage becomes. Its content is not shown: the environment holds secrets.
pub struct Command {
    /// The program and its arguments; at least the program.
    pub argv: Vec<String>,
    /// The whole environment.
    pub env: Vec<(String, String)>,
}

/// What the held stage is to prepare, while nothing of it may begin.
#[derive(Debug)]
pub struct Stage {
    /// Whether it writes its output itself, and not through its launcher.
    pub writes_output: bool,
    /// The working directory.
    pub dir: String,
    /// What it becomes.
    pub command: Command,
}

impl Stage {
    /// Sends it.
    ///
    /// # Errors
    /// When it is too large for a frame, or the other side does not take it.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let Self { writes_output, dir, command } = self;
        write_frame(to, &serde_json::to_vec(&(writes_output, dir, &command.argv, &command.env))?)
    }

    /// Waits for one.
    ///
    /// # Errors
    /// When the other side has gone, or sent something else.
    pub fn read(from: &mut impl Read) -> io::Result<Self> {
        let (writes_output, dir, argv, env) = serde_json::from_slice(&read_frame(from)?)?;
        Ok(Self { writes_output, dir, command: Command { argv, env } })
    }
}

/// What the held stage answers: it is ready, or why it cannot become the command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prepared {
    /// It waits for the word.
    Ready,
    /// It has ended.
    Failed {
        /// Why, in words.
        reason: String,
    },
}

impl Prepared {
    /// Sends it.
    ///
    /// # Errors
    /// When the other side does not take it.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let reason = match self {
            Self::Ready => None,
            Self::Failed { reason } => Some(reason),
        };
        write_frame(to, &serde_json::to_vec(&reason)?)
    }

    /// Waits for one.
    ///
    /// # Errors
    /// When the other side has gone, or sent something else.
    pub fn read(from: &mut impl Read) -> io::Result<Self> {
        let reason: Option<String> = serde_json::from_slice(&read_frame(from)?)?;
        Ok(reason.map_or(Self::Ready, |reason| Self::Failed { reason }))
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command").finish_non_exhaustive()
    }
}

/// What a launcher answers once the command is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hello {
    /// Launcher and held command.
    Held {
        /// The launcher.
        launcher: Identity,
        /// What becomes the command.
        command: Identity,
    },
    /// It could not be prepared; nothing was started.
    Failed {
        /// Why, in words.
        reason: String,
    },
}

impl Hello {
    /// Sends it.
    ///
    /// # Errors
    /// When the other side does not take it.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let fields = match self {
            Self::Held { launcher, command } => {
                (Some([(launcher.pid, launcher.start), (command.pid, command.start)]), None)
            }
            Self::Failed { reason } => (None, Some(reason)),
        };
        write_frame(to, &serde_json::to_vec(&fields)?)
    }

    /// Waits for one.
    ///
    /// # Errors
    /// When the other side has gone, or sent something else.
    pub fn read(from: &mut impl Read) -> io::Result<Self> {
        let (held, reason): (Option<[(i32, u64); 2]>, Option<String>) =
            serde_json::from_slice(&read_frame(from)?)?;
        match (held.map(|held| held.map(|(pid, start)| Identity { pid, start })), reason) {
            (Some([launcher, command]), None) => Ok(Self::Held { launcher, command }),
            (None, Some(reason)) => Ok(Self::Failed { reason }),
            (Some(_), Some(_)) | (None, None) => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// Writes its length and a body, at once: the other side then wakes up once.
fn write_frame(to: &mut impl Write, body: &[u8]) -> io::Result<()> {
    let length = u32::try_from(body.len()).ok().filter(|_| body.len() <= FRAME_BYTES_MAX);
    let length = length.ok_or_else(|| io::Error::other("the environment is too large"))?;
    let mut frame = length.to_le_bytes().to_vec();
    frame.extend_from_slice(body);
    to.write_all(&frame)
}

fn read_frame(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > FRAME_BYTES_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::{Command, FRAME_BYTES_MAX, Hello, Plan, Prepared, Stage, read_frame, write_frame};
    use crate::process::Identity;

    fn plan() -> Plan {
        let env = vec![("TOKEN".to_owned(), "hunter22\n\"\u{e9}".to_owned())];
        let command = Command { argv: vec!["echo".to_owned(), "a b".to_owned()], env };
        Plan {
            mark: "/home/runs/7".to_owned(),
            hold_ms: 1,
            timeout_ms: Some(2),
            stop_grace_ms: 3,
            redact: vec!["hunter22".to_owned()],
            dir: "/tmp".to_owned(),
            command,
        }
    }

    #[test]
    fn a_plan_arrives_as_it_was_sent() {
        let mut sent = Vec::new();
        plan().write(&mut sent).unwrap();
        Plan { timeout_ms: None, ..plan() }.write(&mut sent).unwrap();
        let mut from = sent.as_slice();
        let first = Plan::read(&mut from).unwrap();
        assert_eq!((first.mark, first.dir), (plan().mark, plan().dir));
        assert_eq!((first.hold_ms, first.timeout_ms, first.stop_grace_ms), (1, Some(2), 3));
        assert_eq!(first.redact, plan().redact);
        assert_eq!((first.command.argv, first.command.env), (plan().command.argv, plan().command.env));
        assert_eq!(Plan::read(&mut from).unwrap().timeout_ms, None);
        assert!(Plan::read(&mut from).is_err());
    }

    #[test]
    fn a_stage_arrives_as_it_was_sent() {
        for writes_output in [false, true] {
            let stage = Stage { writes_output, dir: plan().dir, command: plan().command };
            let mut sent = Vec::new();
            stage.write(&mut sent).unwrap();
            let read = Stage::read(&mut sent.as_slice()).unwrap();
            assert_eq!((read.writes_output, read.dir), (stage.writes_output, stage.dir));
            assert_eq!((read.command.argv, read.command.env), (stage.command.argv, stage.command.env));
        }
        for prepared in [Prepared::Ready, Prepared::Failed { reason: "no".to_owned() }] {
            let mut sent = Vec::new();
            prepared.write(&mut sent).unwrap();
            assert_eq!(Prepared::read(&mut sent.as_slice()).unwrap(), prepared);
        }
    }

    #[test]
    fn an_answer_arrives_as_it_was_sent() {
        let (launcher, command) = (Identity { pid: 1, start: 2 }, Identity { pid: 3, start: 4 });
        let failed = Hello::Failed { reason: "no".to_owned() };
        for hello in [Hello::Held { launcher, command }, failed] {
            let mut sent = Vec::new();
            hello.write(&mut sent).unwrap();
            assert_eq!(Hello::read(&mut sent.as_slice()).unwrap(), hello);
        }
    }

    #[test]
    fn a_frame_has_a_limit_on_both_sides() {
        let mut sent = Vec::new();
        write_frame(&mut sent, &vec![b' '; FRAME_BYTES_MAX]).unwrap();
        assert_eq!(read_frame(&mut sent.as_slice()).unwrap().len(), FRAME_BYTES_MAX);
        let mut sent = Vec::new();
        assert!(write_frame(&mut sent, &vec![b' '; FRAME_BYTES_MAX + 1]).is_err());
        assert!(sent.is_empty());
        assert!(read_frame(&mut [255; 8].as_slice()).is_err());
    }

    #[test]
    fn a_plan_does_not_show_its_secrets() {
        let shown = format!("{:?} {:?}", plan(), plan().command);
        assert!(shown.contains("/home/runs/7") && !shown.contains("hunter22"), "{shown}");
    }
}
