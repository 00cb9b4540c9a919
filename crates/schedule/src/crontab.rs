//! A crontab as jobs: what can be said the same way is translated, and everything else is told by its line.
//!
//! Nothing is guessed. A line that would run at other times here, or run something else, is left out with the reason.

mod line;
mod write;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use line::{Line, Schedule};
use serde::Serialize;
pub use write::{toml, value};

use crate::job::{JOBS_MAX, JobName, NAME_BYTES_MAX};
use crate::zone::Zone;

/// Whose crontab it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A user's: five fields and a command.
    User,
    /// The system's: a user stands before the command.
    System,
}

/// What came of a crontab.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Imported {
    /// Its jobs, in the order of their lines.
    pub jobs: Vec<ImportedJob>,
    /// Lines that were left out, and settings that have no equal here.
    pub untranslated: Vec<Remark>,
    /// What is translated and still differs.
    pub notes: Vec<Remark>,
}

/// Something to know about a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Remark {
    /// The line, from 1; 0 for all of them.
    pub line: usize,
    /// What there is to know. It does not repeat the line.
    pub reason: String,
}

/// A line that is a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedJob {
    /// Its line, from 1.
    pub line: usize,
    /// A name made from its command.
    pub name: JobName,
    /// Its expression.
    pub cron: String,
    /// The zone it is read in.
    pub zone: Zone,
    /// What runs it.
    pub shell: Option<String>,
    /// The command, for a shell.
    pub command: String,
    /// Variables that the crontab sets for it.
    pub env: BTreeMap<String, String>,
}

/// Translates a crontab whose times are read in `zone` where it names none itself.
pub fn import(text: &str, form: Form, zone: &Zone) -> Imported {
    let mut reading = Reading {
        form,
        zone: Ok(zone.clone()),
        shell: None,
        env: BTreeMap::new(),
        names: BTreeSet::new(),
        imported: Imported::default(),
    };
    for (index, text) in text.lines().enumerate() {
        reading.line(index + 1, text);
    }
    reading.imported
}

struct Reading {
    form: Form,
    /// The zone in force, or that the crontab names one which is not known.
    zone: Result<Zone, ()>,
    shell: Option<String>,
    env: BTreeMap<String, String>,
    names: BTreeSet<JobName>,
    imported: Imported,
}

impl Reading {
    fn line(&mut self, number: usize, text: &str) {
        match line::read(text, self.form) {
            Ok(Line::Nothing) => {}
            Ok(Line::Setting(name, value)) => self.setting(number, name, value),
            Ok(Line::Job { schedule, user, command }) => self.job(number, schedule, user.as_deref(), command),
            Err(reason) => self.leave_out(number, reason),
        }
    }

    fn setting(&mut self, number: usize, name: String, value: String) {
        match name.as_str() {
            "CRON_TZ" => {
                self.zone = Zone::named(&value).map_err(|error| {
                    self.leave_out(number, format!("`CRON_TZ` {error}"));
                });
            }
            "SHELL" => self.shell = Some(value).filter(|shell| shell != "/bin/sh"),
            "MAILTO" | "MAILFROM" => {
                let reason =
                    format!("`{name}` has no equal; a run keeps its output, and `runs log` shows it");
                self.leave_out(number, reason);
            }
            "RANDOM_DELAY" | "CRON_WITHIN" | "START_HOURS_RANGE" => {
                self.leave_out(number, format!("`{name}` has no equal; a slot runs at its moment"));
            }
            _variable => {
                self.env.insert(name, value);
            }
        }
    }

    fn job(&mut self, number: usize, schedule: Schedule, user: Option<&str>, command: String) {
        let Ok(zone) = self.zone.clone() else {
            return self.leave_out(number, "the `CRON_TZ` above it is not known".to_owned());
        };
        if self.imported.jobs.len() == JOBS_MAX {
            return self.leave_out(number, format!("an entry has at most {JOBS_MAX} jobs"));
        }
        if user.is_some() {
            let reason = "names a user; here it runs as the user of the daemon".to_owned();
            self.imported.notes.push(Remark { line: number, reason });
        }
        let name = self.name(&command, number);
        let (shell, env) = (self.shell.clone(), self.env.clone());
        let cron = schedule.cron;
        self.imported.jobs.push(ImportedJob { line: number, name, cron, zone, shell, command, env });
    }

    fn leave_out(&mut self, line: usize, reason: String) {
        self.imported.untranslated.push(Remark { line, reason });
    }

    /// A name from the program that a command begins with, made different from the names before it.
    fn name(&mut self, command: &str, number: usize) -> JobName {
        let program = command.split_whitespace().find(|word| !word.contains('=')).unwrap_or_default();
        let file = program.rsplit('/').next().unwrap_or_default();
        let stem = file.split('.').next().unwrap_or_default();
        let letters = stem.chars().map(|letter| letter.to_ascii_lowercase());
        let slug: String = letters
            .filter(|letter| {
                letter.is_ascii_lowercase() || letter.is_ascii_digit() || matches!(letter, '_' | '-')
            })
            .skip_while(|letter| !letter.is_ascii_lowercase())
            .take(NAME_BYTES_MAX - 8)
            .collect();
        let base = if slug.is_empty() { format!("line-{number}") } else { slug };
        let numbered = (2..).map(|n| format!("{base}-{n}"));
        let mut free =
            std::iter::once(base.clone()).chain(numbered).filter_map(|text| JobName::new(&text).ok());
        let name = free.find(|name| !self.names.contains(name)).expect("there are more numbers than jobs");
        self.names.insert(name.clone());
        name
    }
}
