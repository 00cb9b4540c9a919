//! `jobs match`.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use bundled::github;
use bundled::github::facts::Facts;
use clap::Args;
use schedule::delivery::{self, Delivery};
use serde::Serialize;

use super::declared;
use crate::cli::Context;
use crate::cli::exit::Exit;
use crate::cli::failure::{Failure, Stop};

/// Say whether a GitHub delivery would start a job, and why; nothing is sent and nothing happens
///
/// The job is read from the configuration file, applied or not.
#[derive(Debug, Args)]
pub(crate) struct MatchArgs {
    /// The name of the job
    #[arg(value_name = "JOB")]
    job: String,
    /// GitHub's name for the event, as X-GitHub-Event has it, such as `push`
    #[arg(long, value_name = "TYPE")]
    event: String,
    /// A file with the body as GitHub sends it; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    payload: PathBuf,
    /// The branch that GitHub would confirm for a check, which names none itself
    #[arg(long, value_name = "BRANCH")]
    branch: Option<String>,
    /// The scope of the job, where several have one of that name
    #[arg(long, value_name = "SCOPE")]
    scope: Option<String>,
    /// The configuration file [default: conduit.toml or conduit.json in the home]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// The answer.
#[derive(Debug, Serialize)]
struct Matched {
    #[serde(rename = "match")]
    matches: bool,
    reason: String,
}

pub(super) fn matches(args: &MatchArgs, context: &Context) -> Result<Exit, Stop> {
    let declared = declared::find(&args.job, args.scope.as_deref(), args.config.as_deref(), context)?;
    let body = read(&args.payload)?;
    let facts = github::facts(&args.event, &body).map_err(|why| {
        Failure::usage(format!("that is no delivery of GitHub's: {why}"))
            .hint("`--event` is the header X-GitHub-Event, and `--payload` the body as it was sent")
    })?;
    let mut delivery = of(&facts);
    if let Some(branch) = &args.branch {
        delivery.name = Some(format!("refs/heads/{branch}"));
    }
    let answer = delivery::answer(&declared.job, &delivery);
    let is_dropped = answer.matches && declared.ignores_forks && facts.fork != Some(false);
    let reason = if is_dropped {
        "it comes from a fork, or may, and the scope's `github` entry ignores forks".to_owned()
    } else {
        answer.reason.to_string()
    };
    let matched = Matched { matches: answer.matches && !is_dropped, reason };
    if context.out.is_json() {
        context.out.object(&matched)?;
    } else {
        let word = if matched.matches { "yes" } else { "no" };
        context.out.sentence(&format!("{word}: {}", matched.reason))?;
    }
    Ok(Exit::DONE)
}

/// What a job's rules look at.
fn of(facts: &Facts) -> Delivery {
    Delivery {
        event: facts.event.clone(),
        action: facts.action.clone(),
        name: facts.name.clone(),
        commit: facts.after.clone(),
        conclusion: facts.conclusion.clone(),
        changed_files: facts.files.clone(),
        files_complete: facts.files_complete,
        deleted: facts.deleted,
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Stop> {
    let unreadable = |error: &std::io::Error| Failure::usage(format!("cannot read the payload: {error}"));
    let bytes_max = u64::try_from(github::BODY_BYTES_MAX).expect("25 MiB is a number");
    let mut body = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin().lock().take(bytes_max + 1).read_to_end(&mut body)
    } else {
        let file = std::fs::File::open(path).map_err(|error| unreadable(&error))?;
        file.take(bytes_max + 1).read_to_end(&mut body)
    };
    read.map_err(|error| unreadable(&error))?;
    if body.len() > github::BODY_BYTES_MAX {
        return Err(
            Failure::usage("the payload is larger than 25 MiB, which is the most GitHub sends").into()
        );
    }
    Ok(body)
}
