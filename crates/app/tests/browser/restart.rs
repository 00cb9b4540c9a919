//! A page outlives the daemon that made it.

use std::net::{Ipv4Addr, TcpListener};

use super::chromium::{Scripts, is_left_out};
use super::home::Home;
use super::site::{Site, assert_not_loaded_again, mark, row};

/// A port that is free, and that the kernel gives to nobody who asks for any.
fn own_port() -> u16 {
    let first = 20_000 + u16::try_from(std::process::id() % 8_000).expect("it is small");
    let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    (first..32_000).find(is_free).expect("some port is free")
}

#[test]
fn a_page_goes_on_after_the_daemon_was_killed_and_started() {
    if is_left_out() {
        return;
    }
    let home = Home::usual();
    let listen = format!("api_listen = \"127.0.0.1:{}\"", own_port());
    home.configure(&home.usual_config().replace("api_listen = \"127.0.0.1:0\"", &listen));
    let mut site = Site::open(home, Scripts::On);
    let run = site.begin("do.slow", "1");
    site.page.wait_for_text(&row(&run), "Running");
    mark(&site.page);

    site.page.expect_in_console("net::ERR_");
    site.kill();
    site.page.wait_for_text("#away", "Reconnecting");
    site.home.open_gate();
    site.serve();
    site.page.wait_for_text(&row(&run), "Completed");
    site.page.wait_for(
        "the end of the banner",
        "return !document.querySelector('#away').checkVisibility()",
        &[],
    );

    // What comes later is seen, too.
    let next = site.begin("say.hello", "2");
    site.page.wait_for_text(&row(&next), "Completed");
    assert_not_loaded_again(&site.page);
}
