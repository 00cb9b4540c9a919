//! A trigger as an agent reads it. What came from outside is data: it stands in fenced blocks and inline code that it
//! cannot leave.

use std::fmt::Write as _;

use super::Trigger;

/// Changed files that are shown.
pub const FILES_MAX: usize = 20;
/// Bytes of a posted body that are shown.
pub const WEBHOOK_BYTES_MAX: usize = 2000;

/// The trigger as Markdown: the job and what started it, then the facts.
pub fn render(trigger: &Trigger) -> String {
    let mut text = format!("# {}: {}\n", trigger.job, line(&trigger.label));
    if let Some(delivery) = &trigger.delivery {
        let facts = [
            ("event", Some(delivery.event_and_action())),
            ("branch", delivery.branch().map(str::to_owned)),
            ("commit", delivery.commit.clone()),
            ("conclusion", delivery.conclusion.clone()),
        ];
        text.push('\n');
        for (name, value) in facts {
            if let Some(value) = value {
                add(&mut text, format_args!("- {name}: {}\n", code(&value)));
            }
        }
        if let Some(files) = &delivery.changed_files {
            let whole = if delivery.files_complete == Some(true) { "" } else { " (perhaps not all)" };
            add(&mut text, format_args!("\nChanged files{whole}:\n\n"));
            for file in files.iter().take(FILES_MAX) {
                add(&mut text, format_args!("- {}\n", code(file)));
            }
            if files.len() > FILES_MAX {
                add(&mut text, format_args!("- and {} more\n", files.len() - FILES_MAX));
            }
        }
    }
    let json = trigger.body.as_ref().map(|body| serde_json::to_string_pretty(body).expect("a value is JSON"));
    if let Some(body) = json.as_ref().or(trigger.text.as_ref()) {
        let shown = clip(body, WEBHOOK_BYTES_MAX);
        let fence = fence(shown, 3);
        let info = if trigger.body.is_some() { "json" } else { "" };
        add(&mut text, format_args!("\n{fence}{info}\n{shown}\n{fence}\n"));
        if shown.len() < body.len() {
            add(&mut text, format_args!("\nThese are the first {} of {} bytes.\n", shown.len(), body.len()));
        }
    }
    text
}

/// The beginning of a text, cut between two characters.
fn clip(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

/// Backquotes, more than the text has in a row.
fn fence(text: &str, least: usize) -> String {
    let longest = text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(least.max(longest + 1))
}

/// A text as inline code on one line.
fn code(text: &str) -> String {
    let text = line(text);
    let fence = fence(&text, 1);
    let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{space}{text}{space}{fence}")
}

/// A text whose control characters are spelled out, so that it stays on its line.
fn line(text: &str) -> String {
    let spell = |letter: char| {
        if letter.is_control() { letter.escape_default().to_string() } else { letter.to_string() }
    };
    text.chars().map(spell).collect()
}

fn add(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("a string takes whatever is written");
}
