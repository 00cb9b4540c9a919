//! Browsers: the link that logs one in, and the list of those that are.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use super::home::{Home, text};
use super::normal;

/// Presses the button of a link's page, and gives the status of the answer.
fn log_in(link: &str) -> u16 {
    let (origin, code) = link.split_once("/login?").unwrap();
    let host = origin.strip_prefix("http://").unwrap();
    let (_name, port) = host.rsplit_once(':').unwrap();
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    write!(
        stream,
        "POST /login HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\nConnection: close\r\n\
         User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:131.0) Gecko/20100101 Firefox/131.0\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{code}",
        code.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn open_prints_a_link_that_logs_a_browser_in() {
    let home = Home::usual();
    let _served = home.serve();
    assert!(home.run(&["sessions", "list"]).code(0).out.starts_with("No browser is logged in."));
    let ran = home.run(&["open"]).code(0);
    assert_eq!(ran.out.lines().count(), 1, "a pipe gets the link and nothing else: {}", ran.out);
    assert_eq!(log_in(ran.out.trim_end()), 303);
    assert_eq!(log_in(ran.out.trim_end()), 401, "once");
    let link = home.json(&["open"]);
    assert_eq!(log_in(text(&link, "/url")), 303);

    let shown = home.run(&["sessions", "list"]).code(0).out;
    assert_eq!(shown.matches("Firefox on Linux").count(), 2, "{shown}");
    let listed = home.json(&["sessions", "list"]);
    insta::assert_snapshot!(normal::shape_text(&serde_json::json!({ "open": link, "list": listed })));
    let id = text(&listed, "/items/0/id").to_owned();
    let ran = home.run(&["sessions", "revoke", &id]).code(0);
    assert_eq!(ran.out, "1 browser was logged out.\n");
    home.run(&["sessions", "revoke", &id]).code(3);
    let revoked = home.json(&["sessions", "revoke", "--all"]);
    assert_eq!(revoked["sessions"].as_array().map(Vec::len), Some(1));
    assert_eq!(home.json(&["sessions", "list"])["items"], Value::Array(Vec::new()));
    home.run(&["sessions", "revoke"]).code(2);
    home.run(&["sessions", "revoke", "--all", &id]).code(2);
}

#[test]
fn open_tells_the_browser_by_a_file_and_not_by_its_command_line() {
    let home = Home::usual();
    let _served = home.serve();
    let programs = tempfile::tempdir().unwrap();
    let (opener, told) = (programs.path().join("xdg-open"), programs.path().join("told"));
    std::fs::write(&opener, format!("#!/bin/sh\nprintf '%s\\n' \"$@\" > {}\n", told.display())).unwrap();
    std::fs::set_permissions(&opener, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", programs.path().display());
    let output = home.command(&["open", "--browser"]).env("PATH", path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let link = String::from_utf8(output.stdout).unwrap().trim_end().to_owned();
    let told = std::fs::read_to_string(told).unwrap();
    assert!(!told.contains("code=") && !told.contains("http"), "{told}");
    let page = std::fs::read_to_string(told.trim_end()).unwrap();
    assert!(page.contains(&format!("content=\"0;url={link}\"")), "{page}");
    let mode = std::fs::metadata(told.trim_end()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(log_in(&link), 303);

    let nothing = tempfile::tempdir().unwrap();
    let output = home.command(&["open", "--browser"]).env("PATH", nothing.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let link = String::from_utf8(output.stdout).unwrap();
    assert_eq!(log_in(link.trim_end()), 303, "the link is there all the same");
}
