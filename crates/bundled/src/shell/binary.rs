//! Which binary launchers are started from: the small one that this one carries, straight from memory, or the
//! one that the executor was given, where nothing may be run from memory.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use launcher::wire::PROBE;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::Errno;

/// The launcher's own binary, as `build.rs` has built it.
static EMBEDDED: &[u8] = include_bytes!(env!("LAUNCHER_BINARY"));
/// What the kernel calls it in `/proc/PID/exe`.
const NAME: &str = "open-conduit-launcher";

/// Which binary an executor starts its launchers from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LauncherBinary {
    /// The small one that this binary carries.
    Embedded,
    /// The one that the executor was given. It takes longer to start.
    Given {
        /// Why not the small one.
        reason: String,
    },
}

/// Where an executor's launchers come from.
#[derive(Debug, Clone)]
pub(super) struct Source {
    given: PathBuf,
    from_memory: bool,
}

impl Source {
    /// From memory, and from a given binary where that is not possible.
    pub(super) const fn new(given: PathBuf) -> Self {
        Self { given, from_memory: true }
    }

    /// From the given binary alone.
    pub(super) fn without_memory(self) -> Self {
        Self { from_memory: false, ..self }
    }

    /// What is to be started. It may block as [`Image::of_launcher`] does.
    pub(super) fn path(&self) -> &Path {
        self.image().map_or(&self.given, Image::path)
    }

    /// What that is, and why.
    pub(super) fn which(&self) -> LauncherBinary {
        match self.image() {
            Ok(_) => LauncherBinary::Embedded,
            Err(reason) => LauncherBinary::Given { reason: reason.to_owned() },
        }
    }

    fn image(&self) -> Result<&'static Image, &'static str> {
        if self.from_memory { Image::of_launcher() } else { Err("the executor was told to use it") }
    }
}

/// A program in memory that nothing can change any more.
#[derive(Debug)]
struct Image {
    _file: OwnedFd,
    path: PathBuf,
}

impl Image {
    /// The launcher's, made once in a process; or why there is none. It blocks for the time a small program
    /// takes to run.
    fn of_launcher() -> Result<&'static Self, &'static str> {
        static LAUNCHER: OnceLock<Result<Image, String>> = OnceLock::new();
        let image = LAUNCHER.get_or_init(|| Self::load(EMBEDDED).map_err(|error| error.to_string()));
        image.as_ref().map_err(String::as_str)
    }

    /// Where this process and what it starts find it. The descriptor is closed in what is started, but only
    /// once that has begun.
    fn path(&self) -> &Path {
        &self.path
    }

    /// Puts a program into memory and has it run once: whether that is possible depends on the kernel, its
    /// settings and the sandbox around us, and only an attempt tells.
    fn load(bytes: &[u8]) -> io::Result<Self> {
        let mut file = File::from(create()?);
        file.write_all(bytes)?;
        // Whatever happens to this process, each launcher is the program that was built.
        fcntl_add_seals(&file, SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        let image = Self { _file: file.into(), path };
        image.probe()?;
        Ok(image)
    }

    #[expect(clippy::disallowed_methods, reason = "the shell executor is what starts launchers")]
    fn probe(&self) -> io::Result<()> {
        let mut probe = Command::new(&self.path);
        probe.arg(PROBE).env_clear().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let status = probe.status()?;
        if status.success() { Ok(()) } else { Err(io::Error::other(format!("it ended at once: {status}"))) }
    }
}

fn create() -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    match memfd_create(NAME, flags | MemfdFlags::EXEC) {
        // A kernel that doesn't know the flag needs none.
        Err(Errno::INVAL) => Ok(memfd_create(NAME, flags)?),
        created => Ok(created?),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write;

    use super::{EMBEDDED, Image};

    #[test]
    fn load_refuses_what_does_not_run_here() {
        assert!(Image::load(b"this is no program").is_err());
        let fails = std::fs::read("/bin/false").unwrap();
        assert!(Image::load(&fails).unwrap_err().to_string().contains("exit status: 1"));
    }

    #[test]
    fn the_launcher_runs_from_memory_and_cannot_be_changed() {
        let image = Image::load(EMBEDDED).unwrap();
        let write = |append: bool| {
            let file = OpenOptions::new().write(true).append(append).open(image.path());
            file.and_then(|mut file| file.write_all(b"x"))
        };
        assert!(write(false).is_err() && write(true).is_err());
        assert!(OpenOptions::new().write(true).truncate(true).open(image.path()).is_err());
        assert_eq!(std::fs::read(image.path()).unwrap(), EMBEDDED);
    }
}
