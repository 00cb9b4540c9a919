//! One line of a crontab, as cron reads it.

use std::collections::BTreeSet;

use super::Form;
use crate::cron::Cron;

/// What a line is.
pub(super) enum Line {
    /// Blank, or a comment.
    Nothing,
    /// A variable and its value.
    Setting(String, String),
    /// A job.
    Job {
        /// When.
        schedule: Schedule,
        /// As whom, in the system's form.
        user: Option<String>,
        /// What, for a shell.
        command: String,
    },
}

/// When a line runs, in this grammar.
pub(super) struct Schedule {
    pub(super) cron: String,
}

/// Reads a line; the error says why it cannot be translated.
pub(super) fn read(text: &str, form: Form) -> Result<Line, String> {
    let text = text.trim_start_matches([' ', '\t']);
    if text.trim().is_empty() || text.starts_with('#') {
        return Ok(Line::Nothing);
    }
    if let Some((name, value)) = setting(text) {
        return Ok(Line::Setting(name, value));
    }
    let fields = if text.starts_with('@') { 1 } else { 5 };
    let (when, rest) = split(text, fields).ok_or("is neither a setting nor a schedule with a command")?;
    let schedule = schedule(&when)?;
    let (user, rest) = match form {
        Form::User => (None, rest),
        Form::System => {
            let (user, rest) = split(rest, 1).ok_or("has no user and command after its schedule")?;
            (user.into_iter().next(), rest)
        }
    };
    Ok(Line::Job { schedule, user, command: command(rest)? })
}

/// `NAME = value`, the value perhaps in quotes.
fn setting(text: &str) -> Option<(String, String)> {
    let (name, value) = text.split_once('=')?;
    let name = name.trim_end();
    let name = name.strip_prefix(['"', '\'']).and_then(|name| name.strip_suffix(['"', '\''])).unwrap_or(name);
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if name.is_empty() || name.as_bytes()[0].is_ascii_digit() || !name.bytes().all(is_letter) {
        return None;
    }
    let value = value.trim();
    let quoted = ['"', '\''].into_iter().find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote));
    Some((name.to_owned(), quoted.unwrap_or(value).to_owned()))
}

/// So many words, and what follows them, which is not empty.
fn split(text: &str, count: usize) -> Option<(Vec<String>, &str)> {
    let mut words = Vec::with_capacity(count);
    let mut rest = text;
    for _word in 0..count {
        let (word, behind) = rest.split_once([' ', '\t'])?;
        words.push(word.to_owned());
        rest = behind.trim_start_matches([' ', '\t']);
    }
    (!rest.trim().is_empty()).then_some((words, rest))
}

fn schedule(when: &[String]) -> Result<Schedule, String> {
    let [minute, hour, day, month, weekday] = when else {
        let text = when.join(" ");
        let read = Cron::parse(&text).map_err(|error| error.to_string())?;
        return Ok(Schedule { cron: read.as_str().to_owned() });
    };
    if when.iter().any(|field| field.contains('~')) {
        return Err("has a random time (`~`); choose one".to_owned());
    }
    let written = format!("{minute} {hour} {day} {month} {}", without_seven(weekday)?);
    let cron = Cron::parse(&written).map_err(|error| error.to_string())?;
    // There, one star at the beginning of a day field makes both count; here, any star without a step does.
    let both_there = day.starts_with('*') || weekday.starts_with('*');
    if both_there != cron.needs_both_days() && !cron.has_every_day() {
        return Err(
            "combines the day of the month and the day of the week in a way that means other days here; write two jobs"
                .to_owned(),
        );
    }
    Ok(Schedule { cron: written })
}

/// The days of the week with 0 in place of 7. A field that has no 7 stays as it is written.
fn without_seven(field: &str) -> Result<String, String> {
    if !field.split([',', '-']).any(|value| value.split('/').next() == Some("7")) {
        return Ok(field.to_owned());
    }
    let mut days = BTreeSet::new();
    for item in field.split(',') {
        let (range, step) = item.split_once('/').unwrap_or((item, "1"));
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |text: &str| {
            let found = text.parse::<u32>().ok().or_else(|| weekday(text));
            found.filter(|day| *day <= 7).ok_or("has a day of the week that is none")
        };
        let (first, last) = (number(first)?, number(last)?);
        let step =
            step.parse::<usize>().ok().filter(|step| *step > 0).ok_or("has a step that is no number")?;
        if first > last {
            return Err("has days of the week that end before they begin".to_owned());
        }
        days.extend((first..=last).step_by(step).map(|day| day % 7));
    }
    Ok(days.iter().map(u32::to_string).collect::<Vec<_>>().join(","))
}

fn weekday(name: &str) -> Option<u32> {
    ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
        .iter()
        .zip(0..)
        .find(|(known, _number)| known.eq_ignore_ascii_case(name))
        .map(|(_known, number)| number)
}

/// A command as a shell gets it. A `%` ends it there, and what follows is its input.
fn command(text: &str) -> Result<String, String> {
    let mut command = String::with_capacity(text.len());
    let mut letters = text.trim_end().chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if letters.next_if_eq(&'%').is_some() => command.push('%'),
            '%' => {
                return Err(
                    "has a `%`, which gives its command an input; write that into a script".to_owned()
                );
            }
            other if other.is_control() && other != '\t' => {
                return Err("has a control character in its command".to_owned());
            }
            other => command.push(other),
        }
    }
    Ok(command)
}
