//! The checks themselves: each finds what it is for, in a page that has nothing else wrong.

use super::checks;
use super::chromium::{Scripts, is_left_out};
use super::page::{Page, Theme};

const GOOD: &str = "<!doctype html><html lang=en><meta name=viewport content='width=device-width'><title>A</title>\
                    <style>a:focus{outline:2px solid blue}</style>\
                    <body><a href='%23main'>Skip</a><main id=main><h1>A</h1>BODY</main>";

fn with_body(body: &str) -> String {
    format!("data:text/html,{}", GOOD.replace("BODY", &body.replace('#', "%23")))
}

#[test]
fn the_checks_find_what_they_are_for() {
    if is_left_out() {
        return;
    }
    let page = Page::open(Scripts::On);
    let found = |body: &str| {
        page.goto(&with_body(body));
        checks::problems(&page)
    };
    assert_eq!(found("<p>fine <button>Go</button></p>"), [""; 0]);
    for (body, expected) in [
        ("<h1>B</h1>", "2 elements h1 instead of one"),
        ("<h3>B</h3>", "a heading h3 follows h1: B"),
        ("<p id=a></p><p id=a></p>", "two elements have the id a"),
        ("<a href='#gone'>B</a>", "a leads to gone, which is not there"),
        (
            "<input aria-label=B aria-describedby=gone>",
            "aria-describedby of input names gone, which is not there",
        ),
        ("<p style='margin:0'>B</p>", "p has a style of its own"),
        ("<style>.b{display:flex}</style><p hidden class=b>B</p>", "p.b is hidden and is seen all the same"),
        ("<button tabindex=1>B</button>", "button jumps the queue of the tab key"),
        ("<button></button>", "a button has no name"),
        ("<a href='/b'><svg></svg></a>", "a link has no name"),
        ("<input>", "a textbox has no name"),
        ("<style>p{color:#777}</style><p>B</p>", "contrast 4.48 of \"B\" in p"),
        ("<style>p{opacity:.5}</style><p>B</p>", "contrast 3.98 of \"B\" in p"),
        ("<style>div{background:#333}</style><div><p>B</p></div>", "contrast 1.66 of \"B\" in p"),
        ("<style>text{fill:#bbb}</style><svg><text y=20>B</text></svg>", "contrast 1.92 of \"B\" in text"),
        ("<style>p{color:oklch(0.6 0 0)}</style><p>B</p>", "contrast"),
        ("<style>p{width:1400px}</style><p>B</p>", "1408px of content in 1280px: p"),
    ] {
        let problems = found(body);
        assert!(problems.len() == 1 && problems[0].starts_with(expected), "{body}: {problems:?}");
    }
    assert_eq!(found("<style>p{color:#777;font-size:24px}</style><p>B</p>"), [""; 0]);

    page.goto(&with_body("<style>@media (prefers-color-scheme:dark){p{color:#eee}}</style><p>B</p>"));
    assert_eq!(checks::problems(&page), [""; 0]);
    page.look(360, Theme::Dark);
    let problems = checks::problems(&page);
    assert!(problems.len() == 1 && problems[0].contains("of \"B\" in p"), "{problems:?}");
}

#[test]
fn the_walk_with_the_tab_key_finds_what_it_is_for() {
    if is_left_out() {
        return;
    }
    let page = Page::open(Scripts::On);
    let found = |body: &str| {
        page.goto(&with_body(body));
        checks::tab_problems(&page)
    };
    assert_eq!(found("<a href='/b'>B</a><a href='/c'>C</a>"), [""; 0]);
    for (body, expected) in [
        ("<style>a.b{outline:none!important}</style><a class=b href='/b'>B</a>", "a /b B shows no ring"),
        ("<a href='/b'>B</a><a href='/c' tabindex=1>C</a>", "a /c C is the first stop"),
        (
            "<style>.b{position:absolute;top:-99px}</style><a class=b href='/b'>B</a>",
            "a /b B is out of sight",
        ),
    ] {
        assert!(found(body).contains(&expected.to_owned()), "{body}: {:?}", found(body));
    }
}

#[test]
fn what_the_console_says_fails_the_test() {
    if is_left_out() {
        return;
    }
    for (body, expected) in [
        ("<script>throw new Error('B')</script>", "Uncaught Error: B"),
        (
            "<meta http-equiv=Content-Security-Policy content=\"img-src 'none'\"><img alt=B src='/b'>",
            "Content Security Policy",
        ),
    ] {
        let ended = std::panic::catch_unwind(|| Page::open(Scripts::On).goto(&with_body(body)));
        let said = ended.expect_err("a page that goes looks at its console");
        let said = said.downcast_ref::<String>().expect("an assertion says what it saw");
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn scripts_can_be_off_and_a_dialog_is_seen() {
    if is_left_out() {
        return;
    }
    let body = "<script>document.title = 'ran'; alert('B')</script><noscript>none</noscript>";
    let page = Page::open(Scripts::Off);
    page.goto(&with_body(body));
    assert!(!page.has_alert());
    assert_eq!(page.text("noscript"), "none");
    let page = Page::open(Scripts::On);
    page.goto(&with_body(body));
    assert!(page.has_alert());
}
