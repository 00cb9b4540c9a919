//! `import crontab`.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Args;
use domain::text::ScopeName;
use schedule::crontab::{self, Form, Imported, Remark};
use schedule::zone::Zone;
use serde::Serialize;
use serde_json::Value;

use crate::cli::Context;
use crate::cli::exit::Exit;
use crate::cli::failure::{Failure, Stop};
use crate::cli::output;
use crate::env;
use crate::view::count;

/// The most bytes of a crontab.
const BYTES_MAX: u64 = 1 << 20;

/// Write the jobs of a crontab as configuration, and say what could not be translated
///
/// Prints a `schedule` entry with a binding and a route for each job, to stand below `[[scopes]]` in conduit.toml.
#[derive(Debug, Args)]
pub(crate) struct CrontabArgs {
    /// The crontab; `-` reads standard input, as in `crontab -l | open-conduit import crontab -`
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// It is the system's, with a user before each command
    #[arg(long)]
    system: bool,
    /// The IANA time zone of its times, where it names none [default: this machine's]
    #[arg(long, value_name = "ZONE")]
    time_zone: Option<String>,
    /// The scope that will hold the jobs
    #[arg(long, value_name = "SCOPE", default_value = "main")]
    scope: String,
}

/// What was translated and what was not.
#[derive(Debug, Serialize)]
struct Written<'a> {
    time_zone: &'a str,
    #[serde(flatten)]
    part: Value,
    untranslated: &'a [Remark],
    notes: &'a [Remark],
}

pub(super) fn crontab(args: &CrontabArgs, context: &Context) -> Result<Exit, Stop> {
    let zone = zone(args.time_zone.as_deref())?;
    let scope = args.scope.parse::<ScopeName>();
    let scope = scope.map_err(|error| Failure::usage(format!("--scope: {error}")))?;
    let text = read(&args.file)?;
    let form = if args.system { Form::System } else { Form::User };
    let imported = crontab::import(&text, form, &zone);
    if context.out.is_json() {
        let (untranslated, notes) = (&imported.untranslated, &imported.notes);
        let part = crontab::value(&imported, &scope);
        context.out.object(&Written { time_zone: zone.name(), part, untranslated, notes })?;
        return Ok(Exit::DONE);
    }
    let mut text = String::new();
    for remark in remarks(&imported, &zone) {
        text.extend(["# ", remark.as_str(), "\n"]);
        context.out.note(&remark);
    }
    if !imported.jobs.is_empty() {
        text.push('\n');
        text.push_str(&crontab::toml(&imported, &scope));
    }
    output::bytes(text.as_bytes())?;
    Ok(Exit::DONE)
}

/// What there is to know, a sentence each.
fn remarks(imported: &Imported, zone: &Zone) -> Vec<String> {
    let number =
        |number: usize, one: &str, more: &str| count(i64::try_from(number).unwrap_or(i64::MAX), one, more);
    let mut remarks = vec![format!(
        "{}, read in {} where the crontab names no zone; {} not translated.",
        number(imported.jobs.len(), "job", "jobs"),
        zone.name(),
        number(imported.untranslated.len(), "line is", "lines are"),
    )];
    if !imported.jobs.is_empty() {
        let text = "A job runs in a directory of its own, with the environment that the daemon gives it.";
        remarks.push(text.to_owned());
    }
    let left_out = imported.untranslated.iter();
    remarks
        .extend(left_out.map(|remark| format!("Line {} is not translated: {}.", remark.line, remark.reason)));
    remarks.extend(imported.notes.iter().map(|note| format!("Line {}: it {}.", note.line, note.reason)));
    remarks
}

fn zone(typed: Option<&str>) -> Result<Zone, Stop> {
    let named = match typed {
        Some(name) => Zone::named(name),
        None => Zone::named(&env::time_zone().unwrap_or_default()),
    };
    named.map_err(|error| {
        let failure = Failure::usage(format!("--time-zone: {error}"));
        if typed.is_none() {
            failure.hint("this machine's own zone is not known; name one").into()
        } else {
            failure.into()
        }
    })
}

fn read(path: &Path) -> Result<String, Stop> {
    let unreadable = |error: &std::io::Error| Failure::usage(format!("cannot read the crontab: {error}"));
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin().lock().take(BYTES_MAX + 1).read_to_end(&mut bytes)
    } else {
        let file = std::fs::File::open(path).map_err(|error| unreadable(&error))?;
        file.take(BYTES_MAX + 1).read_to_end(&mut bytes)
    };
    let length = read.map_err(|error| unreadable(&error))?;
    if length as u64 > BYTES_MAX {
        return Err(Failure::usage(format!("the crontab is larger than {BYTES_MAX} bytes")).into());
    }
    String::from_utf8(bytes).map_err(|_source| Failure::usage("the crontab is not UTF-8").into())
}
