//! Sessions, themes and where things are, as a page.

use super::{ask, has, page};
use crate::api::tests::TestDaemon;
use crate::api::tests::sessions::{Browser, sessions};

#[tokio::test]
async fn a_theme_is_kept_in_a_cookie_of_this_page_alone() {
    let daemon = TestDaemon::start().await;
    let browser = Browser::logged_in(&daemon).await;
    let kept = browser.submit(&daemon, "/settings/theme", "theme=dark").await;
    assert_eq!((kept.status, kept.header("location")), (303, "/settings"));
    let cookie = kept.header("set-cookie");
    assert_eq!(cookie, "conduit-theme=dark; SameSite=Strict; Path=/; Max-Age=31536000");
    let dark =
        browser.ask(&daemon, ("GET", "/settings"), &[("Cookie", "conduit-theme=dark")], b"").await.text();
    assert!(dark.contains("data-theme=\"dark\"") && dark.contains("value=\"dark\" checked"), "{dark}");
    let system = browser.get(&daemon, "/settings").await.text();
    assert!(!system.contains("data-theme") && system.contains("value=\"system\" checked"), "{system}");
    let back = browser.submit(&daemon, "/settings/theme", "theme=system").await;
    assert_eq!(back.header("set-cookie"), "conduit-theme=; SameSite=Strict; Path=/; Max-Age=0");
    for wrong in ["theme=moon", "theme=dark%0d%0aX-Y:%20z", "theme=", "", "theme=dark&theme=light", "x=1"] {
        let reply = browser.submit(&daemon, "/settings/theme", wrong).await;
        assert_eq!((reply.status, reply.header("set-cookie")), (400, ""), "{wrong}");
    }
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn other_browsers_are_logged_out_and_this_one_stays() {
    let daemon = TestDaemon::start().await;
    let (one, two, three) = (
        Browser::logged_in(&daemon).await,
        Browser::logged_in(&daemon).await,
        Browser::logged_in(&daemon).await,
    );
    let known = sessions(&daemon).await;
    let id = |index: usize| known[index]["id"].as_str().unwrap().to_owned();
    let text = one.get(&daemon, "/settings").await.text();
    assert_eq!(
        text.matches("Chromium on Linux <span class=\"tag\">this browser</span>").count(),
        1,
        "{text}"
    );
    assert_eq!(text.matches("/revoke\"").count(), 2, "this one logs out by its own button: {text}");
    assert!(text.contains("action=\"/logout\"") && text.contains("Log out all others"), "{text}");

    let gone = one.submit(&daemon, &format!("/settings/sessions/{}/revoke", id(1)), "").await;
    assert_eq!((gone.status, gone.header("location")), (303, "/settings"), "{}", gone.text());
    assert_eq!(two.get(&daemon, "/settings").await.status, 303, "it is sent to the login");
    assert_eq!(three.get(&daemon, "/settings").await.status, 200);
    let again = one.submit(&daemon, &format!("/settings/sessions/{}/revoke", id(1)), "").await;
    assert_eq!(again.status, 404);

    assert_eq!(one.submit(&daemon, "/settings/sessions/revoke-others", "").await.status, 303);
    assert_eq!(three.get(&daemon, "/settings").await.status, 303);
    let text = one.get(&daemon, "/settings").await.text();
    assert!(text.contains("this browser") && !text.contains("Log out all others"), "{text}");
    daemon.running.stop().await.unwrap();
}

#[tokio::test]
async fn the_page_says_where_things_are() {
    let daemon = TestDaemon::start().await;
    let text = page(&daemon, "/settings").await;
    let home = daemon.home().root().display().to_string();
    has(
        &text,
        &[home.as_str(), env!("CARGO_PKG_VERSION"), "<dt>Zone</dt><dd>UTC</dd>", "None. A browser is let in"],
    );
    assert!(!text.contains("action=\"/logout\""), "the operator's token has no session to end");
    let browser = Browser::logged_in(&daemon).await;
    let berlin = [("Cookie", "conduit-zone=Europe/Berlin")];
    let zone = browser.ask(&daemon, ("GET", "/settings"), &berlin, b"").await.text();
    assert!(zone.contains("<dt>Zone</dt><dd>Europe/Berlin, UTC+"), "{zone}");
    assert_eq!(ask(&daemon, "/settings?moon=1").await.status, 400);
    daemon.running.stop().await.unwrap();
}
