//! What a browser can be made to send, by a page of another site or by one that another program serves on this
//! machine. Asked with real requests of a browser that is logged in.

use std::io;
use std::sync::{Arc, LazyLock, Mutex};

use serde_json::json;
use tokio::net::UnixStream;

use super::sessions::{Browser, code, sessions};
use super::{CONFIG, Reply, TestDaemon, exchange, request};

fn event() -> Vec<u8> {
    json!({ "scope": "main", "type": "say.hello" }).to_string().into_bytes()
}

#[tokio::test]
async fn a_cookie_counts_only_under_the_pages_own_name() {
    let daemon = TestDaemon::start().await;
    let browser = Browser::logged_in(&daemon).await;
    let port = daemon.api().port();
    for host in [format!("localhost:{port}"), format!("127.0.0.1:{port}"), format!("[::1]:{port}")] {
        let other = Browser { host: host.clone(), cookie: browser.cookie.clone() };
        let reply = other.get(&daemon, "/v1/status").await;
        assert_eq!((reply.status, reply.code().as_str()), (401, "unauthorized"), "{host}");
        for path in ["/", "/login", "/runs/x", "/assets/app.css", "/nowhere"] {
            let reply = other.get(&daemon, path).await;
            assert_eq!((reply.status, reply.code().as_str()), (421, "not_the_page"), "{host}{path}");
            assert!(reply.text().contains("open-conduit open"));
        }
    }
    let name = browser.host.rsplit_once(':').unwrap().0.to_owned();
    for host in [
        name.clone(),
        format!("{name}:1"),
        format!("x.{name}:{port}"),
        format!("{name}.evil.test:{port}"),
        format!("conduit-0000000000000000.localhost:{port}"),
        format!("evil.test:{port}"),
    ] {
        let other = Browser { host: host.clone(), cookie: browser.cookie.clone() };
        for path in ["/", "/v1/status", "/login"] {
            let reply = other.get(&daemon, path).await;
            assert_eq!((reply.status, reply.code().as_str()), (403, "foreign_host"), "{host}{path}");
        }
    }
    let cookie = format!("conduit-session={}", browser.cookie.as_deref().unwrap());
    let headers = [("Host", "localhost"), ("Cookie", &cookie)];
    for (path, expected) in [("/v1/status", "unauthorized"), ("/", "not_the_page")] {
        let socket = UnixStream::connect(daemon.home().socket()).await.unwrap();
        assert_eq!(exchange(socket, &request("GET", path, &headers, b"")).await.code(), expected);
    }
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn what_a_session_changes_comes_from_its_own_page() {
    let daemon = TestDaemon::start().await;
    let browser = Browser::logged_in(&daemon).await;
    let own = browser.origin();
    let loopback = format!("http://{}", daemon.api());
    let secure = own.replace("http:", "https:");
    let wrong: [&[(&str, &str)]; 13] = [
        &[],
        &[("Origin", "null")],
        &[("Origin", "")],
        &[("Origin", "http://evil.test")],
        &[("Origin", "http://localhost:3000")],
        &[("Origin", &loopback)],
        &[("Origin", &secure)],
        &[("Origin", &own), ("Origin", "http://evil.test")],
        &[("Origin", &own), ("Origin", &own)],
        &[("Origin", &own), ("Sec-Fetch-Site", "cross-site")],
        &[("Origin", &own), ("Sec-Fetch-Site", "same-site")],
        &[("Origin", &own), ("Sec-Fetch-Site", "none")],
        &[("Sec-Fetch-Site", "same-origin")],
    ];
    for headers in wrong {
        let sent = [headers, &[("Content-Type", "application/json")]].concat();
        let reply = browser.ask(&daemon, ("POST", "/v1/events"), &sent, &event()).await;
        assert_eq!((reply.status, reply.code().as_str()), (403, "foreign_origin"), "{headers:?}");
        let reply = browser.ask(&daemon, ("DELETE", "/v1/sessions"), headers, b"").await;
        assert_eq!((reply.status, reply.code().as_str()), (403, "foreign_origin"), "{headers:?}");
        let form = [headers, &[("Content-Type", "application/x-www-form-urlencoded")]].concat();
        for path in ["/logout", "/login"] {
            let reply = browser.ask(&daemon, ("POST", path), &form, b"code=x").await;
            assert_eq!((reply.status, reply.code().as_str()), (403, "foreign_origin"), "{path} {headers:?}");
            assert!(!reply.headers.keys().any(|name| name.starts_with("access-control")));
        }
    }
    assert_eq!(daemon.count("/v1/events").await, 0, "nothing was stored");
    assert_eq!(sessions(&daemon).await.len(), 1, "nobody was logged out");
    let sent = [("Origin", own.as_str()), ("Content-Type", "application/json")];
    let reply = browser.ask(&daemon, ("POST", "/v1/events"), &sent, &event()).await;
    assert_eq!(reply.status, 202, "{}", reply.text());
    let form = [("Origin", own.as_str()), ("Content-Type", "text/plain")];
    let reply = browser.ask(&daemon, ("POST", "/v1/events"), &form, &event()).await;
    assert_eq!(reply.code(), "unsupported_media_type");
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_token_decides_and_one_cookie_is_needed() {
    let daemon = TestDaemon::start().await;
    let browser = Browser::logged_in(&daemon).await;
    let (good, bad) = (format!("Bearer {}", daemon.token), "Bearer wrong");
    let cookie = browser.cookie.clone().unwrap();
    for (token, status) in [(good.as_str(), 200), (bad, 401), ("", 401), ("Basic eDp5", 401)] {
        let reply = browser.ask(&daemon, ("GET", "/v1/status"), &[("Authorization", token)], b"").await;
        assert_eq!(reply.status, status, "{token}");
        let page = browser.ask(&daemon, ("GET", "/"), &[("Authorization", token)], b"").await;
        assert_eq!(page.status, if status == 200 { 200 } else { 303 }, "{token}");
    }
    let (stale, own) = ("0".repeat(64), format!("conduit-session={cookie}"));
    let bare = Browser { cookie: None, ..browser };
    for cookies in [
        vec![own.clone(), own.clone()],
        vec![own.clone(), format!("conduit-session={stale}")],
        vec![format!("{own}; conduit-session={stale}")],
        vec![format!("conduit-session={stale}")],
        vec!["conduit-session=".to_owned()],
        vec![format!("{own}x")],
        vec![format!("Conduit-Session={cookie}")],
    ] {
        let headers: Vec<(&str, &str)> = cookies.iter().map(|cookie| ("Cookie", cookie.as_str())).collect();
        let reply = bare.ask(&daemon, ("GET", "/v1/status"), &headers, b"").await;
        assert_eq!((reply.status, reply.code().as_str()), (401, "unauthorized"), "{cookies:?}");
    }
    let beside = format!("conduit-theme=dark; {own}");
    assert_eq!(bare.ask(&daemon, ("GET", "/v1/status"), &[("Cookie", &beside)], b"").await.status, 200);
    let as_token = format!("Bearer {cookie}");
    let reply = bare.ask(&daemon, ("GET", "/v1/status"), &[("Authorization", &as_token)], b"").await;
    assert_eq!(reply.status, 401, "a cookie is no token");
    let as_cookie = format!("conduit-session={}", daemon.token);
    assert_eq!(bare.ask(&daemon, ("GET", "/v1/status"), &[("Cookie", &as_cookie)], b"").await.status, 401);
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn who_is_not_logged_in_sees_the_login_page_and_nothing_else() {
    let daemon = TestDaemon::start().await;
    let browser = Browser::new(&daemon);
    for path in ["/", "/nowhere", "/runs/run_1", "/logout"] {
        let reply = browser.get(&daemon, path).await;
        assert_eq!(reply.status, 303, "{path}");
        assert!(reply.header("location").starts_with("/login"), "{path}");
        assert!(reply.body.is_empty(), "{path}");
    }
    for path in ["/", "/logout", "/nowhere"] {
        assert_eq!(browser.submit(&daemon, path, "").await.code(), "unauthorized", "{path}");
    }
    let page = browser.get(&daemon, "/login").await;
    assert_eq!(page.status, 200);
    let style = page
        .text()
        .split("href=\"")
        .find_map(|rest| rest.split('"').next().filter(|path| path.contains(".css")).map(str::to_owned));
    let style = browser.get(&daemon, &style.expect("the page has a style sheet")).await;
    assert_eq!((style.status, style.header("content-type")), (200, "text/css; charset=utf-8"));
    // Nothing that is open says how the daemon is, also not when it fails.
    let failed = browser.submit(&daemon, "/login", "moon=1").await;
    assert_eq!((failed.status, failed.code().as_str()), (400, "bad_request"));
    let large = browser.submit(&daemon, "/login", &"x".repeat(1 << 20)).await;
    assert_eq!((large.status, large.code().as_str()), (413, "payload_too_large"));
    for reply in [page, failed, large] {
        assert!(!reply.text().contains("Generation"), "{}", reply.text());
    }
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn another_site_can_link_here_and_learns_and_does_nothing() {
    let daemon = TestDaemon::start().await;
    let browser = Browser::logged_in(&daemon).await;
    for site in ["cross-site", "same-site"] {
        let followed = |dest: &'static str, mode: &'static str| {
            [("Sec-Fetch-Site", site), ("Sec-Fetch-Mode", mode), ("Sec-Fetch-Dest", dest)]
        };
        // A link: the browser asks once more, then from here.
        for path in ["/", "/runs/run_1?a=b", "/login?code=x"] {
            let reply = browser.ask(&daemon, ("GET", path), &followed("document", "navigate"), b"").await;
            assert_eq!(reply.status, 200);
            assert!(reply.text().contains(&format!("content=\"0;url={path}\"")), "{}", reply.text());
            assert!(!reply.text().contains("Generation"), "{}", reply.text());
        }
        let odd = browser.ask(&daemon, ("GET", "//evil.test"), &followed("document", "navigate"), b"").await;
        assert!(odd.text().contains("content=\"0;url=/\""), "{}", odd.text());
        // A frame, an image, a script, a request of theirs.
        for (dest, mode) in
            [("iframe", "navigate"), ("image", "no-cors"), ("script", "no-cors"), ("empty", "cors")]
        {
            for path in ["/", "/v1/status", "/login", "/assets/x"] {
                let reply = browser.ask(&daemon, ("GET", path), &followed(dest, mode), b"").await;
                assert_eq!((reply.status, reply.code().as_str()), (403, "foreign_origin"), "{dest} {path}");
            }
        }
        let reply = browser.ask(&daemon, ("GET", "/v1/status"), &followed("document", "navigate"), b"").await;
        assert_eq!(reply.code(), "foreign_origin", "the interface is no page");
    }
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn every_page_is_hardened() {
    let daemon = TestDaemon::start().await;
    let browser = Browser::logged_in(&daemon).await;
    let elsewhere =
        [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "document")];
    let replies = [
        browser.get(&daemon, "/").await,
        browser.get(&daemon, "/login").await,
        browser.get(&daemon, "/nowhere").await,
        Browser::new(&daemon).get(&daemon, "/").await,
        browser.submit(&daemon, "/login", "code=wrong").await,
        browser.ask(&daemon, ("GET", "/"), &elsewhere, b"").await,
    ];
    for reply in replies {
        assert_eq!(
            reply.header("content-security-policy"),
            "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'; object-src 'none'"
        );
        assert_eq!(reply.header("x-frame-options"), "DENY");
        assert_eq!(reply.header("x-content-type-options"), "nosniff");
        // `no-referrer` would make a browser send `Origin: null` with our own forms.
        assert_eq!(reply.header("referrer-policy"), "same-origin");
        assert_eq!(reply.header("cross-origin-resource-policy"), "same-origin");
        assert_eq!(reply.header("cross-origin-opener-policy"), "same-origin");
        assert_eq!(reply.header("cache-control"), "no-store");
        assert!(!reply.headers.keys().any(|name| name.starts_with("access-control")));
        let text = reply.text();
        assert!(!text.contains(" style=") && !text.contains("<style") && !text.contains(" onclick="));
    }
    daemon.running.stop().await.unwrap();
}

/// A form that a browser sends through a proxy of the public host.
async fn through_proxy(daemon: &TestDaemon, origin: &str, path: &str, form: &str) -> Reply {
    let address = format!("127.0.0.1:{}", daemon.api().port()).parse().unwrap();
    let headers = [
        ("Host", "hooks.example.com"),
        ("Origin", origin),
        ("Content-Type", "application/x-www-form-urlencoded"),
    ];
    super::send(address, &request("POST", path, &headers, form.as_bytes())).await
}

/// Logs in through a proxy, which is before a listener at this address.
async fn logs_in_through_a_proxy(listen: &str) {
    let config = CONFIG.replace(
        "api_listen = \"127.0.0.1:0\"",
        &format!("api_listen = \"{listen}:0\"\nbehind_proxy = true"),
    );
    let daemon = TestDaemon::start_with(&config).await;
    let link = daemon.post("/v1/sessions/codes", &json!({})).await.json();
    let code = link["code"].as_str().unwrap();
    assert_eq!(link["url"], format!("https://hooks.example.com/login?code={code}"));
    let form = format!("code={code}");
    let plain = through_proxy(&daemon, "http://hooks.example.com", "/login", &form).await;
    assert_eq!((plain.status, plain.code().as_str()), (403, "foreign_origin"));
    let reply = through_proxy(&daemon, "https://hooks.example.com", "/login", &form).await;
    assert_eq!(reply.status, 303, "{}", reply.text());
    let cookie = reply.header("set-cookie");
    assert!(cookie.ends_with("; Secure"), "{cookie}");

    // The page is there, with its cookie and under that name alone.
    let address = format!("127.0.0.1:{}", daemon.api().port()).parse().unwrap();
    let shown = async |host: &str| {
        let headers = [("Host", host), ("Cookie", cookie.split(';').next().unwrap())];
        super::send(address, &request("GET", "/", &headers, b"")).await
    };
    let page = shown("hooks.example.com").await;
    assert!(page.status == 200 && page.text().contains("<h1>Runs</h1>"), "{}", page.text());
    assert_eq!(shown("other.example.com").await.code(), "foreign_host");
    assert_eq!(shown(&address.to_string()).await.code(), "not_the_page");
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn behind_a_proxy_the_cookie_is_for_tls() {
    logs_in_through_a_proxy("0.0.0.0").await;
}

#[tokio::test]
async fn a_proxy_on_the_same_machine_serves_the_page() {
    logs_in_through_a_proxy("127.0.0.1").await;
}

#[tokio::test]
async fn a_host_for_webhooks_alone_leads_to_no_page() {
    let daemon = TestDaemon::start().await;
    let link = daemon.post("/v1/sessions/codes", &json!({})).await.json();
    assert!(link["url"].as_str().unwrap().starts_with("http://conduit-"), "{link}");
    let form = format!("code={}", link["code"].as_str().unwrap());
    let reply = through_proxy(&daemon, "https://hooks.example.com", "/login", &form).await;
    assert_eq!((reply.status, reply.code().as_str()), (403, "foreign_host"));
    assert!(reply.text().contains("behind_proxy"), "it says what to do: {}", reply.text());
    daemon.running.stop().await.unwrap();
}

/// Everything that the tests of this process log. It is one log for all of them: what is logged on a thread that has
/// none is switched off for every thread.
static LOG: LazyLock<Log> = LazyLock::new(|| {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    tracing::subscriber::set_global_default(subscriber).expect("no other test takes the log");
    log
});

/// Where a log goes.
#[derive(Debug, Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn no_secret_is_logged_or_told() {
    let log = LOG.clone();
    let daemon = TestDaemon::start().await;
    let used = code(&daemon).await;
    let mut told = Vec::new();
    let browser = Browser::new(&daemon);
    let logged_in = browser.submit(&daemon, "/login", &format!("code={used}")).await;
    let cookie = logged_in.header("set-cookie").split(['=', ';']).nth(1).unwrap().to_owned();
    assert_eq!(cookie.len(), 64);
    told.push(browser.submit(&daemon, "/login", &format!("code={used}")).await);
    told.push(browser.submit(&daemon, "/login", &format!("{used}={cookie}")).await);
    told.push(browser.get(&daemon, &format!("/v1/status?code={used}")).await);
    let browser = Browser { cookie: Some(cookie.clone()), ..browser };
    told.push(browser.ask(&daemon, ("POST", "/v1/events"), &[("Origin", "null")], b"").await);
    told.push(browser.get(&daemon, &format!("/v1/status?{cookie}")).await);
    told.push(browser.get(&daemon, "/v1/sessions").await);
    told.push(browser.submit(&daemon, "/logout", "").await);
    told.push(browser.get(&daemon, "/v1/status").await);
    let twice = [("Cookie", "conduit-session=x")];
    told.push(browser.ask(&daemon, ("GET", "/v1/status"), &twice, b"").await);
    let token = daemon.token.clone();
    daemon.running.stop().await.unwrap();
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("a browser logged in") && log.contains("a request was refused"), "{log}");
    for secret in [used, cookie, token] {
        assert!(!log.contains(&secret), "{log}");
        for reply in &told {
            assert!(!reply.text().contains(&secret), "{}", reply.text());
            assert!(!reply.headers.values().any(|value| value.contains(&secret)));
        }
    }
}
