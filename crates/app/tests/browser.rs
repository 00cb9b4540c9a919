//! The pages in a real browser: headless Chromium, driven through its driver, against a real daemon.
//!
//! `cargo xtask test` runs this binary as a part of its own; nothing else does unless it is named (`cargo nextest
//! run -p open-conduit --test browser`). Where Chromium is not installed the tests fail, unless
//! `OPEN_CONDUIT_TEST_WITHOUT` names `chromium`.

#[cfg(test)]
mod browser {
    #[path = "../runner/home.rs"]
    #[expect(dead_code, reason = "the tests of the command line use more of it")]
    mod home;

    mod webdriver;
    mod chromium;
    mod page;
    mod checks;
    mod site;
    mod sample;

    mod harness;
    mod login;
    mod live;
    mod restart;
    mod trace;
    mod cancel;
    mod retry;
    mod operate;
    mod emit;
    mod config;
    mod settings;
    mod long_log;
    mod injection;
    mod keyboard;
    mod looks;
}
