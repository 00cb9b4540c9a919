//! Browsers: logging in by a one-time link, what a session may do, and how it ends. Asked with real requests.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::time::{Clock, Timestamp};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{CONFIG, Reply, SOON, TestDaemon, home_in, options, request};
use crate::daemon::{Options, start};

const DAY: Duration = Duration::from_hours(24);
const MINUTE: Duration = Duration::from_mins(1);

/// A clock in the test's hand.
#[derive(Debug)]
struct Hand(Mutex<Duration>);

impl Hand {
    fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(DAY * 20_000)))
    }

    fn advance(&self, by: Duration) {
        *self.0.lock().unwrap() += by;
    }
}

impl Clock for Hand {
    fn wall(&self) -> Timestamp {
        Timestamp::EPOCH.after(*self.0.lock().unwrap())
    }

    fn boot(&self) -> Duration {
        *self.0.lock().unwrap()
    }
}

async fn start_by(clock: &Arc<Hand>) -> TestDaemon {
    let directory = tempfile::tempdir().unwrap();
    let home = home_in(directory.path());
    home.create().unwrap();
    std::fs::write(home.root().join("conduit.toml"), CONFIG).unwrap();
    let (options, fake) = options(directory.path());
    let clock = Arc::clone(clock) as Arc<dyn Clock>;
    let options = Options { store: store::Options { clock, ..options.store.clone() }, ..options };
    let running = start(home.clone(), options).await.unwrap();
    let token = std::fs::read_to_string(home.token()).unwrap();
    TestDaemon { directory, running, token, fake }
}

/// A browser at the page's own name.
#[derive(Debug)]
pub(crate) struct Browser {
    pub(crate) host: String,
    pub(crate) cookie: Option<String>,
}

impl Browser {
    /// One that is not logged in.
    pub(crate) fn new(daemon: &TestDaemon) -> Self {
        let name = std::fs::read_to_string(daemon.home().page_name()).unwrap();
        Self { host: format!("{name}:{}", daemon.api().port()), cookie: None }
    }

    /// One that is.
    pub(crate) async fn logged_in(daemon: &TestDaemon) -> Self {
        let mut browser = Self::new(daemon);
        let code = code(daemon).await;
        let reply = browser.log_in(daemon, &code, "").await;
        assert_eq!(reply.status, 303, "{}", reply.text());
        browser
    }

    pub(crate) fn origin(&self) -> String {
        format!("http://{}", self.host)
    }

    fn shown(&self) -> String {
        format!("conduit-session={}", self.cookie.as_deref().expect("it is logged in"))
    }

    /// A request with the cookie and these headers, and nothing that a browser would add.
    pub(crate) async fn ask(
        &self,
        daemon: &TestDaemon,
        (method, path): (&str, &str),
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Reply {
        let cookie = self.cookie.as_ref().map(|_cookie| self.shown());
        let mut all = vec![("Host", self.host.as_str())];
        all.extend(cookie.as_deref().map(|cookie| ("Cookie", cookie)));
        all.extend_from_slice(headers);
        daemon.tcp(method, path, &all, body).await
    }

    pub(crate) async fn get(&self, daemon: &TestDaemon, path: &str) -> Reply {
        let headers =
            [("Sec-Fetch-Site", "none"), ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "document")];
        self.ask(daemon, ("GET", path), &headers, b"").await
    }

    /// A form of our own page.
    pub(crate) async fn submit(&self, daemon: &TestDaemon, path: &str, form: &str) -> Reply {
        let origin = self.origin();
        let headers = [
            ("Origin", origin.as_str()),
            ("Sec-Fetch-Site", "same-origin"),
            ("Content-Type", "application/x-www-form-urlencoded"),
            ("User-Agent", "Mozilla/5.0 (X11; Linux x86_64) HeadlessChrome/130.0 <script>"),
        ];
        self.ask(daemon, ("POST", path), &headers, form.as_bytes()).await
    }

    async fn log_in(&mut self, daemon: &TestDaemon, code: &str, next: &str) -> Reply {
        let form = format!("code={code}&next={next}");
        let reply = self.submit(daemon, "/login", &form).await;
        let set = reply.header("set-cookie").strip_prefix("conduit-session=");
        if let Some(value) = set.and_then(|set| set.split(';').next()) {
            self.cookie = Some(value.to_owned());
        }
        reply
    }
}

pub(crate) async fn code(daemon: &TestDaemon) -> String {
    let reply = daemon.post("/v1/sessions/codes", &json!({})).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.json()["code"].as_str().unwrap().to_owned()
}

pub(crate) async fn sessions(daemon: &TestDaemon) -> Vec<Value> {
    daemon.get_json("/v1/sessions").await["items"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_link_logs_a_browser_in_once() {
    let daemon = TestDaemon::start().await;
    let mut browser = Browser::new(&daemon);
    let link = daemon.post("/v1/sessions/codes", &json!({})).await.json();
    let url = link["url"].as_str().unwrap();
    let path = url.strip_prefix(&browser.origin()).unwrap();
    let code = link["code"].as_str().unwrap();
    assert_eq!(path, format!("/login?code={code}"));
    // Whoever previews the link sees a page, and uses nothing up.
    for _ in 0..2 {
        let page = browser.get(&daemon, path).await;
        assert_eq!(page.status, 200);
        assert!(page.text().contains(&format!("name=\"code\" value=\"{code}\"")), "{}", page.text());
    }
    assert!(sessions(&daemon).await.is_empty());

    let reply = browser.log_in(&daemon, code, "").await;
    assert_eq!((reply.status, reply.header("location")), (303, "/"));
    let cookie = browser.cookie.clone().unwrap();
    assert_eq!(cookie.len(), 64);
    assert_eq!(
        reply.header("set-cookie"),
        format!("conduit-session={cookie}; HttpOnly; SameSite=Strict; Path=/; Max-Age=7776000")
    );
    assert_eq!(browser.get(&daemon, "/").await.status, 200);
    let listed = browser.get(&daemon, "/v1/sessions").await.json();
    assert_eq!(listed["items"][0]["label"], "Chromium on Linux");
    assert_eq!(listed["items"][0]["current"], true);
    assert_eq!(sessions(&daemon).await[0]["current"], false, "the command line is not that browser");

    let mut second = Browser::new(&daemon);
    let again = second.log_in(&daemon, code, "").await;
    assert_eq!((again.status, second.cookie.is_none()), (401, true));
    assert!(again.text().contains("open-conduit open"), "{}", again.text());
    assert!(again.text().contains("wrong_code") && !again.text().contains(code));
    // Logging in again leaves nothing behind.
    let renewed = self::code(&daemon).await;
    assert_eq!(browser.log_in(&daemon, &renewed, "").await.status, 303);
    assert_ne!(browser.cookie.as_ref(), Some(&cookie));
    assert_eq!(sessions(&daemon).await.len(), 1);
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_code_expires_and_wrong_ones_are_limited() {
    let clock = Hand::new();
    let daemon = start_by(&clock).await;
    let mut browser = Browser::new(&daemon);
    let stale = code(&daemon).await;
    clock.advance(MINUTE * 10);
    assert_eq!(browser.log_in(&daemon, &stale, "").await.status, 401);
    let right = code(&daemon).await;
    for _ in 0..9 {
        assert_eq!(browser.log_in(&daemon, "wrong", "").await.status, 401);
    }
    for shown in ["wrong", right.as_str()] {
        let reply = browser.log_in(&daemon, shown, "").await;
        assert_eq!((reply.status, reply.header("retry-after")), (429, "60"));
        assert!(reply.text().contains("too_many_tries"));
    }
    clock.advance(MINUTE);
    assert_eq!(browser.log_in(&daemon, &right, "").await.status, 303);
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_session_ends_when_it_is_not_used_and_after_ninety_days() {
    let clock = Hand::new();
    let daemon = start_by(&clock).await;
    let (used, unused) = (Browser::logged_in(&daemon).await, Browser::logged_in(&daemon).await);
    let seen = async |index: usize| sessions(&daemon).await[index]["last_seen_at"].clone();
    let first = seen(0).await;
    clock.advance(MINUTE * 59);
    assert_eq!(used.get(&daemon, "/v1/status").await.status, 200);
    clock.advance(MINUTE);
    for (days, expected) in [(0, 2), (29, 2), (1, 1), (29, 1), (29, 1), (1, 1)] {
        clock.advance(DAY * days);
        let before = seen(0).await;
        assert_eq!(used.get(&daemon, "/").await.status, 200);
        // That is written beside the request.
        daemon.until("/v1/sessions", |page| page["items"][0]["last_seen_at"] != before).await;
        assert_eq!(sessions(&daemon).await.len(), expected, "{days} days later");
        if expected == 2 {
            assert_eq!(seen(1).await, first);
        }
    }
    assert_eq!(unused.get(&daemon, "/v1/status").await.code(), "unauthorized");
    clock.advance(DAY);
    assert_eq!(used.get(&daemon, "/v1/status").await.code(), "unauthorized");
    assert!(sessions(&daemon).await.is_empty());
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn the_sixty_fifth_session_ends_the_one_that_was_unused_for_longest() {
    let daemon = TestDaemon::start().await;
    let mut browsers = Vec::new();
    for _ in 0..65 {
        browsers.push(Browser::logged_in(&daemon).await);
    }
    assert_eq!(sessions(&daemon).await.len(), 64);
    assert_eq!(browsers[0].get(&daemon, "/v1/status").await.status, 401);
    for browser in [&browsers[1], &browsers[64]] {
        assert_eq!(browser.get(&daemon, "/v1/status").await.status, 200);
    }
    daemon.running.stop().await.unwrap();
}

/// Opens a stream and waits until it has begun.
pub(super) async fn stream(daemon: &TestDaemon, browser: &Browser) -> TcpStream {
    let mut stream = TcpStream::connect(daemon.api()).await.unwrap();
    let cookie = browser.shown();
    let headers = [("Host", browser.host.as_str()), ("Cookie", &cookie), ("Sec-Fetch-Site", "same-origin")];
    stream.write_all(&request("GET", "/v1/stream", &headers, b"")).await.unwrap();
    let mut begun = Vec::new();
    while !String::from_utf8_lossy(&begun).contains(": open") {
        assert_ne!(stream.read_buf(&mut begun).await.unwrap(), 0, "{}", String::from_utf8_lossy(&begun));
    }
    stream
}

/// Waits until a stream has ended.
pub(super) async fn ends(mut stream: TcpStream) {
    let mut rest = Vec::new();
    tokio::time::timeout(SOON, stream.read_to_end(&mut rest)).await.expect("the stream ends").unwrap();
}

#[tokio::test]
async fn a_revoked_session_is_refused_and_its_stream_ends() {
    let daemon = TestDaemon::start().await;
    let (one, two) = (Browser::logged_in(&daemon).await, Browser::logged_in(&daemon).await);
    let three = Browser::logged_in(&daemon).await;
    let (first, second, third) =
        (stream(&daemon, &one).await, stream(&daemon, &two).await, stream(&daemon, &three).await);

    // By its id, from another session.
    let id = sessions(&daemon).await[0]["id"].as_str().unwrap().to_owned();
    let (path, origin) = (format!("/v1/sessions/{id}"), two.origin());
    let reply = two.ask(&daemon, ("DELETE", &path), &[("Origin", &origin)], b"").await;
    assert_eq!((reply.status, &reply.json()["sessions"]), (200, &json!([id])));
    assert_eq!(one.get(&daemon, "/v1/status").await.code(), "unauthorized");
    ends(first).await;
    assert_eq!(daemon.unix("DELETE", &path, &[], b"").await.code(), "not_found");

    // By its own browser.
    let reply = two.submit(&daemon, "/logout", "").await;
    assert_eq!((reply.status, reply.header("location")), (303, "/login"));
    assert!(
        reply.header("set-cookie").starts_with("conduit-session=; ")
            && reply.header("set-cookie").contains("Max-Age=0")
    );
    assert_eq!(two.get(&daemon, "/v1/status").await.status, 401);
    ends(second).await;

    // All of them. What is answered is durable.
    assert_eq!(three.get(&daemon, "/v1/status").await.status, 200, "it was not meant so far");
    let reply = daemon.unix("DELETE", "/v1/sessions", &[], b"").await;
    assert_eq!(reply.json()["sessions"].as_array().unwrap().len(), 1);
    ends(third).await;
    let daemon = daemon.restart().await;
    let back = Browser { cookie: three.cookie, ..Browser::new(&daemon) };
    assert_eq!(back.get(&daemon, "/v1/status").await.status, 401);
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_stream_ends_when_its_session_runs_out() {
    let clock = Hand::new();
    let daemon = start_by(&clock).await;
    let stream = stream(&daemon, &Browser::logged_in(&daemon).await).await;
    clock.advance(DAY * 30);
    daemon.emit(&json!({ "scope": "main", "type": "build.finished" })).await;
    ends(stream).await;
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_session_outlives_a_restart_and_is_stored_hashed() {
    let daemon = TestDaemon::start().await;
    let browser = Browser::logged_in(&daemon).await;
    let (cookie, left) = (browser.cookie.clone().unwrap(), code(&daemon).await);
    let name = browser.host.rsplit_once(':').unwrap().0.to_owned();
    let directory = daemon.stop().await;
    let home = home_in(directory.path());
    for entry in std::fs::read_dir(home.root()).unwrap() {
        let path = entry.unwrap().path();
        let bytes = if path.is_file() { std::fs::read(&path).unwrap() } else { continue };
        for secret in [&cookie, &left] {
            let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!found, "{} holds a secret", path.display());
        }
    }
    let daemon = TestDaemon::start_in(directory).await;
    let back = Browser { cookie: Some(cookie), ..Browser::new(&daemon) };
    assert!(back.host.starts_with(&name), "the name stays");
    assert_eq!(back.get(&daemon, "/").await.status, 200);
    let mut late = Browser::new(&daemon);
    assert_eq!(late.log_in(&daemon, &left, "").await.status, 401, "codes end with the daemon");
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_session_cannot_let_another_browser_in() {
    let daemon = TestDaemon::start().await;
    let browser = Browser::logged_in(&daemon).await;
    let origin = browser.origin();
    let headers = [("Origin", origin.as_str()), ("Content-Type", "application/json")];
    let reply = browser.ask(&daemon, ("POST", "/v1/sessions/codes"), &headers, b"{}").await;
    assert_eq!((reply.status, reply.code().as_str()), (403, "operator_only"));
    let host = daemon.api().to_string();
    let reply = daemon.tcp("POST", "/v1/sessions/codes", &[("Host", &host)], b"").await;
    assert_eq!(reply.code(), "unauthorized");
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_login_leads_back_and_never_to_another_site() {
    let daemon = TestDaemon::start().await;
    let browser = Browser::new(&daemon);
    let sent = browser.get(&daemon, "/runs/run_1?q=a%20b").await;
    assert_eq!(sent.status, 303);
    let location = sent.header("location").to_owned();
    assert!(location.starts_with("/login?next=%2Fruns%2Frun%5F1"), "{location}");
    let page = browser.get(&daemon, &location).await;
    assert_eq!(page.status, 200);
    assert!(page.text().contains("name=\"next\" value=\"/runs/run_1?q=a%20b\""), "{}", page.text());

    for (next, expected) in [
        ("%2Fruns%2Frun_1%3Fq%3Da%2520b", "/runs/run_1?q=a%20b"),
        ("%2F%2Fevil.test", "/"),
        ("%2F%5Cevil.test", "/"),
        ("%5C%5Cevil.test", "/"),
        ("https%3A%2F%2Fevil.test%2F", "/"),
        ("https%3Aevil.test", "/"),
        ("javascript%3Aalert(1)", "/"),
        ("%2F%09%2Fevil.test", "/"),
        ("%2Fa%0D%0ASet-Cookie%3A%20x%3Dy", "/"),
        ("runs", "/"),
    ] {
        let page = browser.get(&daemon, &format!("/login?next={next}")).await;
        assert!(!page.text().contains("evil.test"), "{next}: {}", page.text());
        let code = code(&daemon).await;
        let reply = Browser::new(&daemon).log_in(&daemon, &code, next).await;
        assert_eq!((reply.status, reply.header("location")), (303, expected), "{next}");
    }
    // A path that reads like another server.
    let reply = browser.get(&daemon, "//evil.test/x").await;
    assert_eq!((reply.status, reply.header("location")), (303, "/login"));
    daemon.running.stop().await.unwrap();
}
