//! A PostgreSQL server of the check's own: made before the tests, gone after them.
//!
//! It lives in a folder of its own below `/var/tmp`, not in `target`: the server refuses to run as root,
//! and the user it then runs as can't be expected to enter the folder that holds the checkout. It is a
//! child that the kernel stops when this process ends in whatever way, so no server is left behind.
//! Writes are flushed as in production (`fsync` stays on), for the tests are about durability.

use std::fs::{self, File};
use std::io::Read;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::component;
use crate::error::Error;
use crate::machine::{self, file_error};

/// The variable that holds the server's address for the tests, as a URL.
pub(crate) const VARIABLE: &str = "OPEN_CONDUIT_TEST_POSTGRES";

/// The variable that holds its address for a role that the server lets in encrypted and not otherwise.
pub(crate) const TLS_VARIABLE: &str = "OPEN_CONDUIT_TEST_POSTGRES_TLS";
/// The variable that names the file with the issuer of the server's certificate.
pub(crate) const CA_VARIABLE: &str = "OPEN_CONDUIT_TEST_POSTGRES_CA";

const PARENT: &str = "/var/tmp";
const PREFIX: &str = "open-conduit-postgres-";
/// Debian's user for the server, which this process becomes when it is root.
const SERVER_USER: &str = "postgres";
/// The database role of the tests.
const ROLE: &str = "conduit";
/// The role whose connections must be encrypted.
const TLS_ROLE: &str = "conduit_tls";
/// How long the server's certificate holds, in days. The server lives for minutes.
const CERTIFICATE_DAYS: &str = "2";
const START_LIMIT: Duration = Duration::from_mins(1);
const STOP_LIMIT: Duration = Duration::from_secs(30);
/// Between finding a free port and taking it somebody else can; so it is tried again.
const START_TRIES: usize = 3;
/// How much of the server's log is shown when it does not start, in lines.
const LOG_LINES: usize = 20;
/// Servers that this process has made.
static SERVERS: AtomicUsize = AtomicUsize::new(0);

/// How a server is stopped.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stop {
    /// It ends its sessions and writes everything down.
    InOrder,
    /// It drops everything at once, as when it crashes, and recovers at its next start.
    AtOnce,
}

impl Stop {
    /// The signal that asks for it.
    const fn signal(self) -> &'static str {
        match self {
            Self::InOrder => "-INT",
            Self::AtOnce => "-QUIT",
        }
    }
}

/// A running server. Dropping it stops the server and removes its files.
#[derive(Debug)]
pub(crate) struct Server {
    folder: Folder,
    child: Child,
    port: u16,
    url: String,
    tls_url: String,
}

impl Server {
    /// Makes a cluster and starts a server on it; it accepts connections when this returns.
    pub(crate) fn start() -> Result<Self, Error> {
        remove_left_over();
        let programs = component::postgres_programs()
            .ok_or_else(|| Error::Postgres { reason: "its programs are not installed".to_owned() })?;
        let folder = Folder::create()?;
        let password = password()?;
        folder.initialize(&programs, &password)?;
        folder.certify()?;
        let mut reason = String::new();
        for _ in 0..START_TRIES {
            let port = free_port()?;
            let mut child = folder.spawn(&programs, port)?;
            match folder.wait_until_ready(&programs, &mut child, port) {
                Ok(()) => {
                    let url =
                        |role: &str| format!("postgresql://{role}:{password}@127.0.0.1:{port}/postgres");
                    let tls_url = format!("{}?sslmode=require", url(TLS_ROLE));
                    let server = Self { url: url(ROLE), tls_url, folder, child, port };
                    server.folder.create_tls_role(&programs, port, &password)?;
                    return Ok(server);
                }
                Err(why) => {
                    stop(&mut child, Stop::InOrder);
                    reason = why;
                }
            }
        }
        Err(Error::Postgres { reason })
    }

    /// Where the server listens, with the role and its password.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The same for the role whose connections must be encrypted, and the file that says whom to trust.
    pub(crate) fn tls(&self) -> (&str, PathBuf) {
        (&self.tls_url, self.folder.authority())
    }

    /// The address of a database that is made anew, and is empty.
    pub(crate) fn fresh_database(&self, name: &str) -> Result<String, Error> {
        let psql = component::postgres_programs()
            .ok_or_else(|| Error::Postgres { reason: "its programs are not installed".to_owned() })?
            .join("psql");
        for statement in
            [format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"), format!("CREATE DATABASE {name}")]
        {
            let mut command = machine::command(&psql);
            command.args(["--no-psqlrc", "--quiet", "--command", &statement, &self.url]);
            machine::read(command.env("PGOPTIONS", "-c client_min_messages=warning"))?;
        }
        let base = self.url.rsplit_once('/').map_or(self.url.as_str(), |(base, _database)| base);
        Ok(format!("{base}/{name}"))
    }

    /// Stops the server and starts it again at the same address. It accepts connections when this returns.
    pub(crate) fn restart(&mut self, how: Stop) -> Result<(), Error> {
        stop(&mut self.child, how);
        let programs = component::postgres_programs()
            .ok_or_else(|| Error::Postgres { reason: "its programs are not installed".to_owned() })?;
        self.child = self.folder.spawn(&programs, self.port)?;
        let ready = self.folder.wait_until_ready(&programs, &mut self.child, self.port);
        ready.map_err(|reason| Error::Postgres { reason })
    }

    /// The same by its socket, the short way for whoever is on this machine.
    pub(crate) fn socket_url(&self) -> String {
        let folder = self.folder.path.to_string_lossy().replace('/', "%2F");
        self.url.replace("127.0.0.1", &folder)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        stop(&mut self.child, Stop::InOrder);
        self.folder.remove();
    }
}

/// The server's folder, named after this process and numbered within it.
#[derive(Debug)]
struct Folder {
    path: PathBuf,
}

impl Folder {
    fn create() -> Result<Self, Error> {
        let number = SERVERS.fetch_add(1, Ordering::Relaxed);
        let path = Path::new(PARENT).join(format!("{PREFIX}{}-{number}", process::id()));
        fs::DirBuilder::new().mode(0o700).create(&path).map_err(file_error("create", &path))?;
        let folder = Self { path };
        folder.give_to_server(&folder.path)?;
        Ok(folder)
    }

    fn data(&self) -> PathBuf {
        self.path.join("data")
    }

    fn log(&self) -> PathBuf {
        self.path.join("log")
    }

    /// Makes the server's user the owner of a path, when that is another user than ours.
    fn give_to_server(&self, path: &Path) -> Result<(), Error> {
        if !machine::is_root() {
            return Ok(());
        }
        let id = |flag: &str| -> Result<u32, Error> {
            let printed = machine::read(machine::command("id").args([flag, SERVER_USER]))?;
            printed.trim().parse().map_err(|_| Error::Postgres {
                reason: format!("`id` does not know the user {SERVER_USER} (folder {})", self.path.display()),
            })
        };
        chown(path, Some(id("-u")?), Some(id("-g")?)).map_err(file_error("change the owner of", path))
    }

    /// A command that runs as the server's user, in the server's folder, and does not outlive us.
    fn as_server_user(&self) -> Command {
        let mut command = machine::command("setpriv");
        if machine::is_root() {
            command.args(["--reuid", SERVER_USER, "--regid", SERVER_USER, "--init-groups"]);
        }
        command.args(["--pdeathsig", "INT"]).current_dir(&self.path);
        command
    }

    fn initialize(&self, programs: &Path, password: &str) -> Result<(), Error> {
        let password_file = self.path.join("password");
        fs::write(&password_file, password).map_err(file_error("write", &password_file))?;
        self.give_to_server(&password_file)?;
        machine::read(
            self.as_server_user()
                .arg(programs.join("initdb"))
                .arg("--pgdata")
                .arg(self.data())
                .args(["--username", ROLE, "--encoding", "UTF8", "--locale", "C.UTF-8"])
                .args(["--auth-local", "trust", "--auth-host", "scram-sha-256", "--pwfile"])
                .arg(&password_file),
        )?;
        Ok(())
    }

    /// The certificate of the authority that the server's own is signed by.
    fn authority(&self) -> PathBuf {
        self.path.join("ca.pem")
    }

    /// Makes an authority, and a certificate for the loopback address that it signs. openssl comes along with
    /// Debian's package of the server.
    fn certify(&self) -> Result<(), Error> {
        let openssl = || {
            let mut command = self.as_server_user();
            command.arg("openssl");
            command
        };
        let new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
        machine::read(
            openssl()
                .args(["req", "-x509", "-days", CERTIFICATE_DAYS, "-subj", "/CN=Open Conduit tests"])
                .args(new)
                .args(["-keyout", "ca.key", "-out", "ca.pem"]),
        )?;
        machine::read(
            openssl()
                .args(["req", "-x509", "-days", CERTIFICATE_DAYS, "-subj", "/CN=127.0.0.1"])
                .args(["-CA", "ca.pem", "-CAkey", "ca.key", "-addext", "subjectAltName=IP:127.0.0.1"])
                .args(["-addext", "basicConstraints=critical,CA:FALSE"])
                .args(new)
                .args(["-keyout", "server.key", "-out", "server.pem"]),
        )?;
        // Before the lines that let everybody in.
        let rules = self.data().join("pg_hba.conf");
        let others = fs::read_to_string(&rules).map_err(file_error("read", &rules))?;
        let own = format!("hostnossl all {TLS_ROLE} 127.0.0.1/32 reject\n");
        fs::write(&rules, own + &others).map_err(file_error("write", &rules))
    }

    fn create_tls_role(&self, programs: &Path, port: u16, password: &str) -> Result<(), Error> {
        let statement = format!("CREATE ROLE {TLS_ROLE} SUPERUSER LOGIN PASSWORD '{password}'");
        machine::read(
            self.as_server_user()
                .arg(programs.join("psql"))
                .args(["--quiet", "--no-psqlrc", "--set", "ON_ERROR_STOP=1", "--username", ROLE])
                .args(["--port", &port.to_string(), "--dbname", "postgres", "--host"])
                .arg(&self.path)
                .args(["--command", &statement]),
        )?;
        Ok(())
    }

    fn spawn(&self, programs: &Path, port: u16) -> Result<Child, Error> {
        let log = File::create(self.log()).map_err(file_error("create", &self.log()))?;
        let errors = log.try_clone().map_err(file_error("open", &self.log()))?;
        let mut command = self.as_server_user();
        command
            .arg(programs.join("postgres"))
            .arg("-D")
            .arg(self.data())
            .args(["-p", &port.to_string(), "-h", "127.0.0.1", "-k"])
            .arg(&self.path)
            .args(["-c", "fsync=on", "-c", "max_connections=200", "-c", "ssl=on"])
            .args(["-c", "ssl_cert_file=../server.pem", "-c", "ssl_key_file=../server.key"])
            .stdout(log)
            .stderr(errors);
        command.spawn().map_err(|source| machine::start_error(&command, source))
    }

    fn wait_until_ready(&self, programs: &Path, child: &mut Child, port: u16) -> Result<(), String> {
        let answer = machine::until(START_LIMIT, || {
            if !matches!(child.try_wait(), Ok(None)) {
                return Some(Err(self.last_log_lines()));
            }
            let asked = machine::succeeds(machine::command(programs.join("pg_isready")).args([
                "--host",
                "127.0.0.1",
                "--port",
                &port.to_string(),
            ]));
            asked.then_some(Ok(()))
        });
        answer.unwrap_or_else(|| Err(format!("not ready in {START_LIMIT:?}; {}", self.last_log_lines())))
    }

    fn last_log_lines(&self) -> String {
        let log = fs::read_to_string(self.log()).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
    }

    fn remove(&self) {
        // Whatever is left is found by the next run's `remove_left_over`.
        fs::remove_dir_all(&self.path).ok();
    }
}

/// Asks the server to stop and waits for it; then it is killed.
fn stop(child: &mut Child, how: Stop) {
    let asked = machine::succeeds(machine::command("kill").args([how.signal(), &child.id().to_string()]));
    let stopped = asked && machine::until(STOP_LIMIT, || child.try_wait().ok().flatten()).is_some();
    if !stopped {
        child.kill().ok();
        child.wait().ok();
    }
}

/// Removes the folders of runs that were killed. The kernel stopped their servers.
fn remove_left_over() {
    let Ok(entries) = fs::read_dir(PARENT) else { return };
    let is_mine =
        |owner: u32| machine::is_root() || fs::metadata("/proc/self").is_ok_and(|own| own.uid() == owner);
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else {
            continue;
        };
        let owner = rest.split_once('-').map_or(rest, |(owner, _number)| owner);
        let is_left_over = owner.parse::<u32>().is_ok() && !Path::new("/proc").join(owner).exists();
        if is_left_over && entry.metadata().is_ok_and(|folder| folder.is_dir() && is_mine(folder.uid())) {
            fs::remove_dir_all(entry.path()).ok();
        }
    }
}

fn free_port() -> Result<u16, Error> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(|source| Error::Postgres {
            reason: format!("no free port on the loopback address: {source}"),
        })
}

/// Sixteen random bytes as hexadecimal digits.
fn password() -> Result<String, Error> {
    let source = Path::new("/dev/urandom");
    let mut bytes = [0_u8; 16];
    File::open(source)
        .and_then(|mut random| random.read_exact(&mut bytes))
        .map_err(file_error("read", source))?;
    Ok(bytes.iter().fold(String::new(), |mut text, byte| {
        text.push(char::from_digit(u32::from(byte >> 4), 16).expect("four bits are one digit"));
        text.push(char::from_digit(u32::from(byte & 15), 16).expect("four bits are one digit"));
        text
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn password_is_hexadecimal_and_new_each_time() {
        let (first, second) = (password().expect("random"), password().expect("random"));
        assert_ne!(first, second);
        assert!(first.len() == 32 && first.chars().all(|c| c.is_ascii_hexdigit()), "{first}");
    }

    #[test]
    fn server_answers_while_it_is_held_and_is_gone_after() {
        let left_out = std::env::var(component::WITHOUT_VARIABLE).unwrap_or_default();
        if left_out.split(',').any(|name| name == component::Component::Postgres.name()) {
            println!("left out: {}={left_out}", component::WITHOUT_VARIABLE);
            return;
        }
        let server = Server::start().expect("the server starts");
        let folder = server.folder.path.clone();
        let programs = component::postgres_programs().expect("the server has started");
        let ask = |url: &str, question: &str| {
            let mut psql = machine::command(programs.join("psql"));
            machine::read(psql.args([
                "--no-psqlrc",
                "--tuples-only",
                "--no-align",
                "--command",
                question,
                url,
            ]))
        };
        assert_eq!(ask(server.url(), "SHOW fsync").expect("it answers").trim(), "on");
        assert_eq!(ask(server.url(), "SHOW listen_addresses").expect("it answers").trim(), "127.0.0.1");
        let without_password = server.url().replace(&password_of(server.url()), "wrong");
        ask(&without_password, "SELECT 1").expect_err("it wants its password");

        let url = server.url().to_owned();
        drop(server);
        assert!(!folder.exists(), "{} is left over", folder.display());
        ask(&url, "SELECT 1").expect_err("nobody listens any more");
    }

    fn password_of(url: &str) -> String {
        let (_, after_role) = url.split_once(&format!("{ROLE}:")).expect("the URL names the role");
        after_role.split_once('@').expect("the URL names the host").0.to_owned()
    }
}
