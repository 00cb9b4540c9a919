//! What a session is called: the browser in words, so that its owner knows it again in a list.
//!
//! Nothing of the header itself is kept. It is text from outside, and it is long.

/// What tells a browser, and its name. Many carry the names of others too, so the order matters.
const BROWSERS: [(&str, &str); 9] = [
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("Vivaldi/", "Vivaldi"),
    ("Firefox/", "Firefox"),
    ("HeadlessChrome/", "Chromium"),
    ("Chromium/", "Chromium"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
    ("curl/", "curl"),
];
/// What tells a system, and its name.
const SYSTEMS: [(&str, &str); 7] = [
    ("Android", "Android"),
    ("iPhone", "iOS"),
    ("iPad", "iPadOS"),
    ("CrOS", "ChromeOS"),
    ("Windows", "Windows"),
    ("Mac", "macOS"),
    ("Linux", "Linux"),
];

/// The browser that a `User-Agent` tells of, such as `Firefox on Linux`.
pub(crate) fn label(user_agent: &str) -> String {
    let named = |table: &[(&str, &'static str)]| {
        table.iter().find(|(sign, _name)| user_agent.contains(sign)).map(|(_sign, name)| *name)
    };
    let browser = named(&BROWSERS).unwrap_or("A browser");
    match named(&SYSTEMS) {
        Some(system) => format!("{browser} on {system}"),
        None => browser.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::label;

    #[track_caller]
    fn check(user_agent: &str, expected: &str) {
        assert_eq!(label(user_agent), expected, "{user_agent}");
    }

    #[test]
    fn label_knows_browsers_by_what_they_alone_say() {
        let chrome = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36";
        check(chrome, "Chrome on Linux");
        check(&chrome.replace("Chrome/", "HeadlessChrome/"), "Chromium on Linux");
        check(&format!("{chrome} Edg/130.0.0.0"), "Edge on Linux");
        check(&format!("{chrome} OPR/115.0.0.0"), "Opera on Linux");
        check("Mozilla/5.0 (X11; Linux x86_64; rv:131.0) Gecko/20100101 Firefox/131.0", "Firefox on Linux");
        check(
            "Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) AppleWebKit/605.1.15 Version/17.0 Mobile/15E148 Safari/604.1",
            "Safari on iOS",
        );
        check("curl/8.5.0", "curl");
    }

    #[test]
    fn label_repeats_nothing_of_the_header() {
        check("", "A browser");
        check("<script>alert(1)</script>\u{1b}[31m", "A browser");
        check(&"x".repeat(100_000), "A browser");
    }
}
