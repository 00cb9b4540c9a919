//! The manual pages and the completions: every command is in them, and what reads them can.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::home::Home;

/// Every command that the help shows, by its words, with the options of its own.
fn commands(home: &Home) -> BTreeMap<String, BTreeSet<String>> {
    let mut found = BTreeMap::new();
    let mut unseen = vec![String::new()];
    while let Some(command) = unseen.pop() {
        let words: Vec<&str> = command.split_whitespace().chain(["-h"]).collect();
        let help = home.run(&words).code(0).out;
        let mut lines = help.lines();
        let below: Vec<&str> = lines
            .by_ref()
            .skip_while(|line| *line != "Commands:")
            .skip(1)
            .take_while(|line| !line.is_empty())
            .filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')))
            .filter_map(|line| line.split_whitespace().next())
            .filter(|name| *name != "help")
            .collect();
        unseen.extend(below.iter().map(|name| format!("{command} {name}").trim_start().to_owned()));
        let options = help.lines().filter_map(|line| line.trim_start().strip_prefix("--"));
        let options = options.map(|line| line.split([' ', '=']).next().unwrap_or(line).to_owned());
        found.insert(command, options.collect());
    }
    assert!(found.len() > 25, "{found:?}");
    found
}

/// Whether a person has left a component of the check out; the test says so.
fn is_left_out(component: &str) -> bool {
    let without = std::env::var("OPEN_CONDUIT_TEST_WITHOUT").unwrap_or_default();
    let left_out = without.split(',').any(|name| name == component);
    if left_out {
        println!("left out: OPEN_CONDUIT_TEST_WITHOUT={without}");
    }
    left_out
}

#[expect(clippy::disallowed_methods, reason = "what reads pages and scripts are programs")]
fn run(program: &str, arguments: &[&str], input: &[u8]) -> Output {
    let mut command = Command::new(program);
    command.args(arguments).env("LC_ALL", "C.UTF-8");
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = piped.unwrap_or_else(|error| {
        panic!(
            "{program}: {error}; install it with `apt-get install bash fish zsh groff-base`, or set \
             OPEN_CONDUIT_TEST_WITHOUT=shells,groff to leave these tests out"
        )
    });
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap()
}

#[track_caller]
fn is_quiet(program: &str, output: &Output) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{program}: {said}");
}

/// Rendered text without what makes it bold on paper.
fn plain(rendered: &[u8]) -> String {
    let mut text = String::new();
    for letter in String::from_utf8(rendered.to_vec()).unwrap().chars() {
        match letter {
            '\u{8}' => text.truncate(text.char_indices().last().map_or(0, |(at, _letter)| at)),
            letter => text.push(letter),
        }
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn pages(home: &Home) -> (tempfile::TempDir, BTreeMap<String, Vec<u8>>) {
    let directory = tempfile::tempdir().unwrap();
    let inner = directory.path().join("share/man1");
    let ran = home.run(&["man", inner.to_str().unwrap()]).code(0);
    let read =
        |entry: fs::DirEntry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap());
    let pages: BTreeMap<_, _> = fs::read_dir(&inner).unwrap().map(|entry| read(entry.unwrap())).collect();
    assert!(ran.out.starts_with(&format!("wrote {} pages into ", pages.len())), "{}", ran.out);
    (directory, pages)
}

#[test]
fn every_command_has_a_page_with_its_options() {
    let home = Home::empty();
    let (_directory, pages) = pages(&home);
    let commands = commands(&home);
    let expected: BTreeSet<String> = commands
        .keys()
        .map(|command| format!("open-conduit {command}").trim().replace(' ', "-") + ".1")
        .collect();
    let of_os = |name: &String| name == "os.1" || name.starts_with("os-");
    let (os, own): (BTreeSet<_>, BTreeSet<_>) = pages.keys().cloned().partition(of_os);
    assert_eq!(own, expected);
    let calls = ["child", "context", "emit", "input", "input-ack", "input-list", "progress", "usage", "wait"];
    let calls = calls.map(|call| format!("os-{call}.1")).into_iter().chain(["os.1".to_owned()]);
    assert_eq!(os, calls.collect());
    let top = String::from_utf8(pages["os.1"].clone()).unwrap();
    assert!(top.contains("EXIT STATUS") && top.contains("no daemon answers"), "{top}");
    assert!(!top.contains("was over before the run"), "it waits for no run: {top}");
    for (command, options) in commands {
        let name = format!("open-conduit {command}").trim().replace(' ', "-");
        let page = String::from_utf8(pages[&format!("{name}.1")].clone()).unwrap().replace("\\-", "-");
        assert!(page.contains(&format!("\n.TH {} 1 ", name.to_uppercase())), "{name}: {page}");
        for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "SEE ALSO"] {
            assert!(page.contains(section), "{name} has no {section}");
        }
        for option in options {
            assert!(page.contains(&format!("--{option}")), "{name} lacks --{option}");
        }
    }
    let top = home.run(&["man"]).code(0).out;
    assert_eq!(top.as_bytes(), pages["open-conduit.1"]);
    assert!(top.contains("EXIT STATUS"), "{top}");
}

#[test]
fn pages_are_rendered_without_a_complaint() {
    if is_left_out("groff") {
        return;
    }
    let home = Home::empty();
    let (_directory, pages) = pages(&home);
    for (file, page) in pages {
        let rendered = run("groff", &["-man", "-Tutf8", "-ww", "-P-c"], &page);
        is_quiet(&file, &rendered);
        let text = plain(&rendered.stdout);
        let words = file.trim_end_matches(".1").to_owned();
        assert!(text.contains(&format!("NAME {words} - ")), "{file}: {text}");
        assert!(text.ends_with(&format!("{}(1)", words.to_uppercase())), "{file}: {text}");
        let head = text.split(" NAME ").next().unwrap();
        assert!(head.ends_with(&format!("Open Conduit {}(1)", words.to_uppercase())), "{file}: {text}");
    }
}

#[test]
fn pages_that_cannot_be_written_are_a_failure() {
    let home = Home::empty();
    let directory = tempfile::tempdir().unwrap();
    let taken = directory.path().join("taken");
    fs::write(&taken, "mine").unwrap();
    let ran = home.run(&["--json", "man", taken.join("man1").to_str().unwrap()]).code(1);
    assert_eq!(ran.problem()["code"], "output");
    assert_eq!(fs::read(&taken).unwrap(), b"mine");
    let written = home.json(&["man", directory.path().join("man1").to_str().unwrap()]);
    assert!(written["pages"].as_array().unwrap().contains(&"open-conduit-runs-list.1".into()), "{written}");
}

#[test]
fn completions_have_every_command_and_option_that_the_help_shows() {
    let home = Home::empty();
    let commands = commands(&home);
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = home.run(&["completions", shell]).code(0).out;
        for (command, options) in &commands {
            let words = command.split_whitespace().map(str::to_owned);
            let options = options.iter().map(|option| match shell {
                "fish" => format!("-l {option}"),
                _ => format!("--{option}"),
            });
            for word in words.chain(options) {
                assert!(script.contains(&word), "{shell} lacks {word} of `{command}`");
            }
        }
        assert!(!script.contains("The JSON Schema of the configuration\""), "{shell} shows what is hidden");
        assert!(!script.contains("open-conduit reference"), "{shell} shows what is hidden");
    }
}

#[test]
fn shells_can_read_their_completions() {
    if is_left_out("shells") {
        return;
    }
    let home = Home::empty();
    let checks: [(&str, &[&str]); 3] =
        [("bash", &["-n", "/dev/stdin"]), ("zsh", &["-n", "/dev/stdin"]), ("fish", &["--no-execute"])];
    for (shell, arguments) in checks {
        let script = home.run(&["completions", shell]).code(0).out;
        is_quiet(shell, &run(shell, arguments, script.as_bytes()));
    }
}

#[test]
fn bash_completes_verbs_and_options() {
    if is_left_out("shells") {
        return;
    }
    let home = Home::empty();
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("script");
    fs::write(&script, home.run(&["completions", "bash"]).code(0).out).unwrap();
    assert_eq!(completed(&script, &["runs", "l"]), ["list", "log"]);
    assert_eq!(completed(&script, &["events", "emit", "--deliv"]), ["--delivery-id"]);
    assert_eq!(completed(&script, &["ref"]), [""; 0], "it is hidden");
    fs::write(&script, home.run(&["completions", "bash", "--for", "os"]).code(0).out).unwrap();
    assert_eq!(completed_of("os", &script, &["input", "a"]), ["ack"]);
    assert_eq!(completed_of("os", &script, &["wait", "--watch-"]), ["--watch-as"]);
}

/// What bash offers for the last of these words.
fn completed(script: &Path, words: &[&str]) -> Vec<String> {
    completed_of("open-conduit", script, words)
}

fn completed_of(program: &str, script: &Path, words: &[&str]) -> Vec<String> {
    let ask = format!(
        ". {}; f=$(complete -p {program}); f=${{f#*-F }}; f=${{f%% *}}; \
         COMP_WORDS=({program} {}); COMP_CWORD={}; $f {program} {} {}; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        script.display(),
        words.join(" "),
        words.len(),
        words.last().unwrap(),
        words.iter().rev().nth(1).unwrap_or(&program),
    );
    let ran = run("bash", &["--norc", "-c", &ask], b"");
    is_quiet("bash", &ran);
    let offered = String::from_utf8(ran.stdout).unwrap();
    offered.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}
