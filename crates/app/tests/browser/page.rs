//! What a person does with a page: look, click, type, wait until something is there.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::chromium::{Chromium, Scripts};
use super::webdriver::Refused;

/// How long a page may take to show a fact. It is long: the machine may be busy.
const DEADLINE: Duration = Duration::from_secs(30);
/// How long to pause between two looks at a page.
const LOOK_EVERY: Duration = Duration::from_millis(25);
/// The protocol's name of a field that holds an element.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// What makes a picture small.
const PALETTE: &str = include_str!("palette.js");

/// The tab key, as the protocol writes it.
pub(super) const TAB: char = '\u{e004}';
pub(super) const ENTER: char = '\u{e007}';
pub(super) const ESCAPE: char = '\u{e00c}';

/// A color scheme that a person has chosen for their system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Theme {
    Light,
    Dark,
}

impl Theme {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }
}

/// A window with a page in it. When it goes, its console must not have said anything that nobody expected.
pub(super) struct Page {
    chromium: Chromium,
    /// Parts of what the console may say.
    expected: Vec<String>,
}

impl Page {
    /// A wide window in light colors, in which nothing moves by itself.
    pub(super) fn open(scripts: Scripts) -> Self {
        let page = Self { chromium: Chromium::start(scripts), expected: Vec::new() };
        page.look(1280, Theme::Light);
        page
    }

    /// Makes the window this wide, as for a phone where it is narrow, with the system's colors.
    pub(super) fn look(&self, width: u32, theme: Theme) {
        let (height, mobile) = if width < 720 { (800, true) } else { (900, false) };
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile});
        self.chromium.devtools("Emulation.setDeviceMetricsOverride", &metrics);
        let features = json!([
            {"name": "prefers-color-scheme", "value": theme.name()},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]);
        self.chromium.devtools("Emulation.setEmulatedMedia", &json!({"features": features}));
    }

    /// Goes to an address and waits until the page has loaded.
    #[track_caller]
    pub(super) fn goto(&self, url: &str) {
        done("goto", self.chromium.post("/url", &json!({"url": url})));
    }

    /// Presses the browser's own button.
    #[track_caller]
    pub(super) fn reload(&self) {
        done("reload", self.chromium.post("/refresh", &json!({})));
    }

    #[track_caller]
    pub(super) fn url(&self) -> String {
        let url = done("url", self.chromium.get("/url"));
        url.as_str().expect("an address is text").to_owned()
    }

    /// What the function body returns, which runs in the page even where the page's own scripts may not.
    #[track_caller]
    pub(super) fn script(&self, body: &str, arguments: &[Value]) -> Value {
        done(body, self.chromium.post("/execute/sync", &json!({"script": body, "args": arguments})))
    }

    /// The text of the first element, as it is seen.
    #[track_caller]
    pub(super) fn text(&self, css: &str) -> String {
        let body = "return document.querySelector(arguments[0])?.innerText";
        let text = self.script(body, &[css.into()]);
        text.as_str().unwrap_or_else(|| panic!("no {css}\n{}", self.state())).to_owned()
    }

    #[track_caller]
    pub(super) fn count(&self, css: &str) -> u64 {
        let count = self.script("return document.querySelectorAll(arguments[0]).length", &[css.into()]);
        count.as_u64().expect("a count is a number")
    }

    /// Clicks the first element as a pointer does: it has to be seen, and nothing may be over it.
    #[track_caller]
    pub(super) fn click(&self, css: &str) {
        // A part of the page that is live may be replaced between the look and the click.
        const TIMES_REPLACED_MAX: usize = 20;
        for _ in 0..TIMES_REPLACED_MAX {
            let element = self.element(css);
            match self.chromium.post(&format!("/element/{element}/click"), &json!({})) {
                Err(refused) if refused.error == "stale element reference" => {}
                answer => {
                    done(css, answer);
                    return;
                }
            }
        }
        panic!("{css} was replaced {TIMES_REPLACED_MAX} times\n{}", self.state());
    }

    /// Empties a field and types into it.
    #[track_caller]
    pub(super) fn fill(&self, css: &str, text: &str) {
        let element = self.element(css);
        done(css, self.chromium.post(&format!("/element/{element}/clear"), &json!({})));
        done(css, self.chromium.post(&format!("/element/{element}/value"), &json!({"text": text})));
    }

    /// Presses a key and lets go of it, wherever the focus is.
    #[track_caller]
    pub(super) fn press(&self, key: char) {
        let actions = json!([{"type": "key", "id": "keyboard", "actions": [
            {"type": "keyDown", "value": key}, {"type": "keyUp", "value": key},
        ]}]);
        done("press", self.chromium.post("/actions", &json!({"actions": actions})));
    }

    #[track_caller]
    fn element(&self, css: &str) -> String {
        let query = json!({"using": "css selector", "value": css});
        let found = self.chromium.post("/element", &query);
        let found = found.unwrap_or_else(|refused| panic!("no {css}: {}\n{}", refused.error, self.state()));
        found[ELEMENT].as_str().expect("an element has an id").to_owned()
    }

    /// Looks until the function body returns something that counts as true, and gives it. A page that changes
    /// under the look is looked at again.
    #[track_caller]
    #[expect(clippy::disallowed_methods, reason = "a page of another process can only be looked at")]
    pub(super) fn wait_for(&self, what: &str, body: &str, arguments: &[Value]) -> Value {
        let begun = Instant::now();
        let order = json!({"script": body, "args": arguments});
        loop {
            let answer = self.chromium.post("/execute/sync", &order);
            let is_there = |value: &Value| !matches!(value, Value::Null | Value::Bool(false));
            match answer {
                Ok(value) if is_there(&value) => return value,
                Ok(_) => {}
                Err(refused) => assert_ne!(refused.error, "javascript error", "{}", refused.message),
            }
            assert!(begun.elapsed() < DEADLINE, "{what} did not happen\n{}", self.state());
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Looks until an element with this text in it is seen.
    #[track_caller]
    pub(super) fn wait_for_text(&self, css: &str, text: &str) {
        let body = "return [...document.querySelectorAll(arguments[0])]\
                    .some(one => one.innerText.includes(arguments[1]))";
        self.wait_for(&format!("{text:?} in {css}"), body, &[css.into(), text.into()]);
    }

    /// Writes a picture of what the window shows.
    #[track_caller]
    pub(super) fn screenshot(&self, path: &Path) {
        let mut picture = self.chromium.devtools("Page.captureScreenshot", &json!({"format": "png"}));
        let picture = self.script(PALETTE, &[picture["data"].take()]);
        std::fs::write(path, base64(picture.as_str().expect("a picture is text in base64"))).unwrap();
    }

    /// The nodes that a screen reader meets.
    pub(super) fn accessibility_nodes(&self) -> Vec<Value> {
        let tree = self.chromium.devtools("Accessibility.getFullAXTree", &json!({}));
        tree["nodes"].as_array().expect("nodes are a list").clone()
    }

    /// Whether a dialog of a script is open, such as `alert` opens.
    pub(super) fn has_alert(&self) -> bool {
        self.chromium.get("/alert/text").is_ok()
    }

    /// Lets the console say something that has this text in it.
    pub(super) fn expect_in_console(&mut self, part: &str) {
        self.expected.push(part.to_owned());
    }

    /// What the console has said that nobody expected, since the last time this was asked.
    pub(super) fn unexpected(&self) -> Vec<String> {
        let entries = done("log", self.chromium.post("/se/log", &json!({"type": "browser"})));
        let entries = entries.as_array().expect("a log is a list");
        let lines = entries.iter().map(|entry| {
            format!("{} {}", entry["level"].as_str().unwrap_or("?"), entry["message"].as_str().unwrap_or("?"))
        });
        lines.filter(|line| !self.expected.iter().any(|part| line.contains(part.as_str()))).collect()
    }

    /// What there is to know about a page on which a test failed.
    fn state(&self) -> String {
        let body = "return location.href + '\\n' + document.body?.innerText";
        let page = self.chromium.post("/execute/sync", &json!({"script": body, "args": []}));
        let page = match page {
            Ok(page) => page.as_str().unwrap_or("nothing").to_owned(),
            Err(refused) => format!("{}: {}", refused.error, refused.message),
        };
        format!("--- the page\n{page}\n---")
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let said = self.unexpected();
        assert!(said.is_empty(), "the console said:\n{}", said.join("\n"));
    }
}

#[track_caller]
fn done(what: &str, answer: Result<Value, Refused>) -> Value {
    answer.unwrap_or_else(|refused| panic!("{what}: {}: {}", refused.error, refused.message))
}

/// The bytes of a text in base64.
fn base64(text: &str) -> Vec<u8> {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits: Vec<u32> = text
        .bytes()
        .filter_map(|byte| ALPHABET.iter().position(|digit| *digit == byte))
        .map(|digit| u32::try_from(digit).expect("there are 64 digits"))
        .collect();
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3);
    for group in digits.chunks(4) {
        let bits = group.iter().fold(0, |bits, digit| bits << 6 | digit) << (6 * (4 - group.len()));
        bytes.extend_from_slice(&bits.to_be_bytes()[1..group.len()]);
    }
    bytes
}
