//! Durable accepts over HTTP on the Unix socket, by the real binary, with the clients on the same machine.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

use crate::Setting;
use crate::figure::{Goal, Report, Times};

/// Connections, each a closed loop.
const CLIENTS: u64 = 64;

pub(crate) async fn run(setting: &Setting, report: &mut Report) {
    let daemon = Daemon::start(&setting.fresh("http"), "[[scopes]]\nname = \"bench\"\n").await;
    let next = Arc::new(AtomicU64::new(0));
    let start = Instant::now();
    let mut tasks = Vec::new();
    for _ in 0..CLIENTS {
        let (next, time) = (Arc::clone(&next), setting.seconds);
        let mut client = daemon.client().await;
        tasks.push(tokio::spawn(async move {
            let mut times = Times::default();
            while start.elapsed() < time {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let before = Instant::now();
                let status = client.emit(&format!("http-{number}")).await;
                assert_eq!(status, 202, "the delivery is accepted");
                times.push(before.elapsed());
            }
            times
        }));
    }
    let mut times = Times::default();
    for task in tasks {
        times.extend(task.await.expect("a client"));
    }
    let rate = times.count() as f64 / start.elapsed().as_secs_f64();
    report.add("accept: over HTTP, 64 connections", rate, "/s", None, Goal::AtLeast(15_000.0));
    report.note("accept: over HTTP, p50", times.at(0.5), "ms");
    report.note("accept: over HTTP, p99", times.at(0.99), "ms");
}

/// The real binary, over a home of its own.
pub(crate) struct Daemon {
    process: Child,
    home: PathBuf,
    token: String,
}

impl Daemon {
    /// Starts it and waits until it answers.
    pub(crate) async fn start(home: &Path, config: &str) -> Self {
        std::fs::create_dir_all(home).expect("a home");
        // A home that others may enter is refused.
        std::fs::set_permissions(home, PermissionsExt::from_mode(0o700)).expect("a home of our own");
        // No port is fixed, so that nothing else on the machine is in the way.
        let ports = "[daemon]\napi_listen = \"127.0.0.1:0\"\nwebhook_listen = \"off\"\n\n";
        std::fs::write(home.join("conduit.toml"), format!("{ports}{config}")).expect("a configuration");
        Self::again(home).await
    }

    /// Starts it over a home that has a configuration.
    pub(crate) async fn again(home: &Path) -> Self {
        let log = std::fs::File::create(home.join("bench.log")).expect("a log");
        let process = Command::new(env!("CARGO_BIN_EXE_open-conduit"))
            .args(["serve", "--home"])
            .arg(home)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("the daemon starts");
        let mut daemon = Self { process, home: home.to_owned(), token: String::new() };
        daemon.ready(Duration::from_mins(1)).await;
        daemon
    }

    async fn ready(&mut self, within: Duration) {
        let start = Instant::now();
        loop {
            if let Ok(token) = std::fs::read_to_string(self.home.join("token"))
                && let Ok(stream) = UnixStream::connect(self.home.join("conduit.sock")).await
            {
                token.trim().clone_into(&mut self.token);
                let mut client = Client { stream, token: self.token.clone() };
                if client.status("GET", "/healthz", "").await == Some(200) {
                    return;
                }
            }
            assert!(start.elapsed() < within, "the daemon does not get ready: {}", self.home.display());
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    pub(crate) async fn client(&self) -> Client {
        let stream = UnixStream::connect(self.home.join("conduit.sock")).await.expect("a connection");
        Client { stream, token: self.token.clone() }
    }

    /// A connection to its pages.
    pub(crate) async fn pages(&self) -> Pages {
        let status = self.client().await.get("/v1/status").await;
        let address = status.split("\"api_address\":\"").nth(1).and_then(|rest| rest.split('"').next());
        let address = address.expect("the daemon says where it listens");
        let name = std::fs::read_to_string(self.home.join("page-name")).expect("the pages have a name");
        let port = address.rsplit(':').next().expect("an address ends in a port");
        let stream = TcpStream::connect(address).await.expect("a connection");
        Pages { stream, host: format!("{}:{port}", name.trim()), token: self.token.clone() }
    }

    /// How many attempts it has claimed.
    pub(crate) async fn claimed(&self) -> u64 {
        let metrics = self.client().await.get("/metrics").await;
        let line = metrics.lines().find_map(|line| line.strip_prefix("open_conduit_runs_claimed_total "));
        line.and_then(|count| count.trim().parse().ok()).expect("the daemon counts its claims")
    }

    /// How long its threads have run, in kernel and out of it.
    pub(crate) fn cpu(&self) -> Duration {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.process.id())).expect("it lives");
        let of_one = |task: std::fs::DirEntry| {
            // A thread that has just ended says nothing.
            let line = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
            line.split(' ').next()?.parse().ok().map(Duration::from_nanos)
        };
        tasks.flatten().filter_map(of_one).sum()
    }

    /// Its resident memory, in MB.
    pub(crate) fn resident_mb(&self) -> f64 {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0");
        let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse().unwrap_or(f64::NAN);
        kilobytes / 1000.0
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// One connection that is kept.
pub(crate) struct Client {
    stream: UnixStream,
    token: String,
}

impl Client {
    /// Sends an Event of half a kilobyte and returns the status of the answer.
    pub(crate) async fn emit(&mut self, delivery: &str) -> u16 {
        let filler = "x".repeat(crate::node::PAYLOAD_BYTES - 2);
        let body = format!(
            "{{\"scope\":\"bench\",\"type\":\"bench.happened\",\"delivery_id\":\"{delivery}\",\
             \"payload\":\"{filler}\"}}"
        );
        self.status("POST", "/v1/events", &body).await.expect("an answer")
    }

    /// Asks for something and returns the answer, its head included.
    pub(crate) async fn get(&mut self, path: &str) -> String {
        let (status, answer) = self.exchange("GET", path, "").await.expect("an answer");
        assert_eq!(status, 200, "{path}");
        String::from_utf8(answer).expect("the interface answers in UTF-8")
    }

    /// Sends a request and returns the status of the answer.
    pub(crate) async fn status(&mut self, method: &str, path: &str, body: &str) -> Option<u16> {
        Some(self.exchange(method, path, body).await?.0)
    }

    /// Sends a request and returns the status of the answer and the answer.
    async fn exchange(&mut self, method: &str, path: &str, body: &str) -> Option<(u16, Vec<u8>)> {
        let token = &self.token;
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        exchange(&mut self.stream, &request).await
    }
}

/// Writes a request and reads the answer to it.
async fn exchange(
    stream: &mut (impl AsyncReadExt + AsyncWriteExt + Unpin),
    request: &str,
) -> Option<(u16, Vec<u8>)> {
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = Vec::with_capacity(1024);
    let mut part = vec![0; 16 << 10];
    loop {
        let read = stream.read(&mut part).await.ok()?;
        if read == 0 {
            return None;
        }
        answer.extend_from_slice(&part[..read]);
        if let Some(status) = whole(&answer) {
            return Some((status, answer));
        }
    }
}

/// A connection to the pages, which have a name of their own.
pub(crate) struct Pages {
    stream: TcpStream,
    host: String,
    token: String,
}

impl Pages {
    /// Asks for a page and returns how many bytes the answer has, its head included.
    pub(crate) async fn weight(&mut self, path: &str) -> usize {
        let Self { stream, host, token } = self;
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\ncontent-length: 0\r\n\r\n"
        );
        let (status, answer) = exchange(stream, &request).await.expect("an answer");
        assert_eq!(status, 200, "{path}");
        answer.len()
    }
}

/// The status of an answer, once all of it is there.
fn whole(answer: &[u8]) -> Option<u16> {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&answer[..end]).ok()?.to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length: usize = length.map_or(Some(0), |length| length.trim().parse().ok())?;
    if answer.len() < end + 4 + length {
        return None;
    }
    head.split(' ').nth(1)?.parse().ok()
}
