//! The home: the one directory that a daemon and its commands agree on.
//!
//! Everything in it belongs to one user, so it is made for that user alone. Files that hold a secret are whole
//! or absent at every moment.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::config::Format;
use crate::config::source::CONFIG_BYTES_MAX;

/// The directory's name in the user's own home.
const DIRECTORY: &str = ".open-conduit";
/// The most bytes of a Unix socket's path: the kernel's 108, less the terminating zero.
const SOCKET_PATH_BYTES_MAX: usize = 107;
/// The most bytes of a private file that is read back.
const PRIVATE_BYTES_MAX: u64 = 64 * 1024;

/// Why a home cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HomeError {
    /// Nothing says where it is.
    #[error("there is no home directory to put it in; name one with --home or OPEN_CONDUIT_HOME")]
    Nowhere,
    /// The socket's path does not fit into a socket address.
    #[error(
        "the home's path is {bytes_over} bytes too long for the socket in it; choose a shorter one with --home or \
         OPEN_CONDUIT_HOME"
    )]
    TooLong {
        /// How many bytes the path has to lose.
        bytes_over: usize,
    },
    /// Others may enter it.
    #[error("the home {} is open to other users; make its mode 0700", path.display())]
    OpenToOthers {
        /// The home.
        path: PathBuf,
    },
    /// Both configuration files are there.
    #[error("there are both conduit.toml and conduit.json; remove one")]
    TwoConfigs,
    /// The configuration is too large to be one.
    #[error("{name} is larger than {CONFIG_BYTES_MAX} bytes")]
    ConfigTooLarge {
        /// The file.
        name: &'static str,
    },
    /// The file system refuses.
    #[error("cannot {doing} {}", path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To which path.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

impl HomeError {
    fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { doing, path, source }
    }
}

/// A home, by its path. Nothing is touched before [`Home::create`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Home {
    root: PathBuf,
}

/// A configuration file of a home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigFile {
    /// Its path.
    pub(crate) path: PathBuf,
    /// How it is written.
    pub(crate) format: Format,
    /// Its text.
    pub(crate) text: String,
}

impl Home {
    /// The home that a flag names, else the environment's `OPEN_CONDUIT_HOME`, else `.open-conduit` in the user's
    /// home. A relative path begins at `current`.
    ///
    /// # Errors
    /// [`HomeError::Nowhere`] and [`HomeError::TooLong`].
    pub(crate) fn find(
        flag: Option<PathBuf>,
        variable: Option<OsString>,
        user_home: Option<PathBuf>,
        current: &Path,
    ) -> Result<Self, HomeError> {
        let variable = variable.filter(|value| !value.is_empty()).map(PathBuf::from);
        let default = || user_home.map(|home| home.join(DIRECTORY));
        let root = flag.or(variable).or_else(default).ok_or(HomeError::Nowhere)?;
        let home = Self { root: current.join(root) };
        match home.socket().as_os_str().as_bytes().len().checked_sub(SOCKET_PATH_BYTES_MAX) {
            Some(bytes_over) if bytes_over > 0 => Err(HomeError::TooLong { bytes_over }),
            Some(_) | None => Ok(home),
        }
    }

    /// The directory itself.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The embedded database.
    pub(crate) fn database(&self) -> PathBuf {
        self.root.join("conduit.db")
    }

    /// The daemon's socket.
    pub(crate) fn socket(&self) -> PathBuf {
        self.root.join("conduit.sock")
    }

    /// The socket on which running attempts make their calls.
    pub(crate) fn toolbelt_socket(&self) -> PathBuf {
        self.root.join("os.sock")
    }

    /// What jobs find in their `PATH`.
    pub(crate) fn bin(&self) -> PathBuf {
        self.root.join("bin")
    }

    /// The operator's token, for the command line.
    pub(crate) fn token(&self) -> PathBuf {
        self.root.join("token")
    }

    /// What tells this home from every other, for a database that several share.
    pub(crate) fn host(&self) -> PathBuf {
        self.root.join("host")
    }

    /// The name that the page is served under.
    pub(crate) fn page_name(&self) -> PathBuf {
        self.root.join("page-name")
    }

    /// When a daemon was last seen alive in it.
    pub(crate) fn alive(&self) -> PathBuf {
        self.root.join("alive")
    }

    /// A file that leads this user's browser to the page.
    pub(crate) fn open_page(&self) -> PathBuf {
        self.root.join("open.html")
    }

    /// Where attempts have their files.
    pub(crate) fn runs(&self) -> PathBuf {
        self.root.join("runs")
    }

    /// Where providers keep the workspaces of runs.
    pub(crate) fn workspaces(&self) -> PathBuf {
        self.root.join("workspaces")
    }

    /// The daemon's own logs.
    pub(crate) fn logs(&self) -> PathBuf {
        self.root.join("logs")
    }

    /// Makes what is missing of the directory, for this user alone.
    ///
    /// # Errors
    /// [`HomeError::OpenToOthers`] when it is there with a mode that lets others in; [`HomeError::Io`].
    pub(crate) fn create(&self) -> Result<(), HomeError> {
        for path in [self.root.clone(), self.runs(), self.logs()] {
            let mut directory = DirBuilder::new();
            directory.recursive(true).mode(0o700).create(&path).map_err(HomeError::io("create", &path))?;
        }
        let mode = fs::metadata(&self.root).map_err(HomeError::io("read", &self.root))?.mode();
        if mode & 0o077 != 0 {
            return Err(HomeError::OpenToOthers { path: self.root.clone() });
        }
        Ok(())
    }

    /// The configuration file, when there is one.
    ///
    /// # Errors
    /// [`HomeError::TwoConfigs`], [`HomeError::ConfigTooLarge`], and [`HomeError::Io`] when it is not text.
    pub(crate) fn config(&self) -> Result<Option<ConfigFile>, HomeError> {
        let mut found = None;
        for format in [Format::Toml, Format::Json] {
            let path = self.root.join(format.file_name());
            if !path.try_exists().map_err(HomeError::io("look for", &path))? {
                continue;
            }
            if found.is_some() {
                return Err(HomeError::TwoConfigs);
            }
            found = Some((path, format));
        }
        let Some((path, format)) = found else { return Ok(None) };
        let file = fs::File::open(&path).map_err(HomeError::io("open", &path))?;
        let mut text = String::new();
        let bytes_max = CONFIG_BYTES_MAX as u64 + 1;
        file.take(bytes_max).read_to_string(&mut text).map_err(HomeError::io("read", &path))?;
        if text.len() > CONFIG_BYTES_MAX {
            return Err(HomeError::ConfigTooLarge { name: format.file_name() });
        }
        Ok(Some(ConfigFile { path, format, text }))
    }

    /// Writes a file that only this user may read. It is whole or as it was before, also after a crash. A relative
    /// path begins at the home.
    ///
    /// # Errors
    /// [`HomeError::Io`].
    pub(crate) fn write_private(&self, path: &Path, bytes: &[u8]) -> Result<(), HomeError> {
        let path = &self.root.join(path);
        let mut unfinished = path.as_os_str().to_owned();
        unfinished.push(".new");
        let unfinished = PathBuf::from(unfinished);
        // A file that a crash left behind may have another mode; it is replaced, not reused.
        match fs::remove_file(&unfinished) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(HomeError::io("remove", &unfinished)(error));
            }
            Ok(()) | Err(_) => {}
        }
        let write = || -> io::Result<()> {
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            fs::rename(&unfinished, path)?;
            fs::File::open(path.parent().unwrap_or(&self.root))?.sync_all()
        };
        write().map_err(HomeError::io("write", path))
    }

    /// Reads a file that [`Home::write_private`] wrote, and closes it to others when somebody opened it.
    ///
    /// # Errors
    /// [`HomeError::Io`]; a file that is not there is none.
    pub(crate) fn read_private(&self, path: &Path) -> Result<Option<String>, HomeError> {
        let path = &self.root.join(path);
        let file = match fs::File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(HomeError::io("open", path)(error)),
        };
        let mode = file.metadata().map_err(HomeError::io("read", path))?.mode();
        if mode & 0o077 != 0 {
            let closed = fs::Permissions::from_mode(0o600);
            file.set_permissions(closed).map_err(HomeError::io("change the mode of", path))?;
        }
        let mut text = String::new();
        file.take(PRIVATE_BYTES_MAX).read_to_string(&mut text).map_err(HomeError::io("read", path))?;
        Ok(Some(text))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    use std::path::{Path, PathBuf};

    use super::{Home, HomeError};
    use crate::config::Format;
    use crate::config::source::CONFIG_BYTES_MAX;

    fn home() -> (tempfile::TempDir, Home) {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::find(Some(directory.path().join("home")), None, None, Path::new("/")).unwrap();
        home.create().unwrap();
        (directory, home)
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn find_prefers_the_flag_then_the_variable_then_the_default() {
        let find = |flag: Option<&str>, variable: Option<&str>| {
            let user_home = Some(PathBuf::from("/home/ann"));
            Home::find(flag.map(PathBuf::from), variable.map(Into::into), user_home, Path::new("/here"))
                .unwrap()
        };
        assert_eq!(find(Some("a"), Some("/b")).root(), Path::new("/here/a"));
        assert_eq!(find(None, Some("/b")).root(), Path::new("/b"));
        assert_eq!(find(None, Some("")).root(), Path::new("/home/ann/.open-conduit"));
        assert!(matches!(Home::find(None, None, None, Path::new("/")), Err(HomeError::Nowhere)));
    }

    #[test]
    fn find_refuses_a_path_that_a_socket_address_cannot_hold() {
        let of_length = |bytes: usize| {
            let root = format!("/{}", "x".repeat(bytes - 1));
            Home::find(Some(PathBuf::from(root)), None, None, Path::new("/"))
        };
        let longest = 107 - "/conduit.sock".len();
        assert!(of_length(longest).is_ok());
        assert!(matches!(of_length(longest + 3), Err(HomeError::TooLong { bytes_over: 3 })));
    }

    #[test]
    fn create_makes_it_private_and_refuses_one_that_is_open() {
        let (_directory, home) = home();
        home.create().unwrap();
        for path in [home.root().to_owned(), home.runs(), home.logs()] {
            assert_eq!(mode(&path), 0o700, "{}", path.display());
        }
        fs::set_permissions(home.root(), fs::Permissions::from_mode(0o750)).unwrap();
        assert!(matches!(home.create(), Err(HomeError::OpenToOthers { .. })));
    }

    #[test]
    fn config_finds_either_file_and_refuses_both() {
        let (_directory, home) = home();
        assert_eq!(home.config().unwrap(), None);
        fs::write(home.root().join("conduit.json"), "{}").unwrap();
        let found = home.config().unwrap().unwrap();
        assert_eq!((found.format, found.text.as_str()), (Format::Json, "{}"));
        fs::write(home.root().join("conduit.toml"), "").unwrap();
        assert!(matches!(home.config(), Err(HomeError::TwoConfigs)));
        fs::remove_file(home.root().join("conduit.json")).unwrap();
        assert_eq!(home.config().unwrap().unwrap().format, Format::Toml);
        fs::write(home.root().join("conduit.toml"), " ".repeat(CONFIG_BYTES_MAX + 1)).unwrap();
        assert!(matches!(home.config(), Err(HomeError::ConfigTooLarge { name: "conduit.toml" })));
    }

    #[test]
    fn private_files_are_closed_to_others_and_replaced_whole() {
        let (_directory, home) = home();
        let path = home.token();
        assert_eq!(home.read_private(&path).unwrap(), None);
        fs::write(home.root().join("token.new"), "left behind").unwrap();
        home.write_private(&path, b"one").unwrap();
        assert_eq!(mode(&path), 0o600);
        home.write_private(&path, b"two").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(home.read_private(&path).unwrap().as_deref(), Some("two"));
        assert_eq!(mode(&path), 0o600);
        assert!(!home.root().join("token.new").exists());
    }
}
