//! `os`: what a running job types to make calls. It is this program under another name, see [`crate::toolbelt`].
//!
//! Every command prints one JSON object, or says on standard error, as one JSON object too, why it did nothing. A
//! call has a name, and repeats itself under it while no daemon answers or the run is being taken over: then the
//! daemon that comes next answers, and nothing is done twice.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::{Args, Command, CommandFactory as _, Parser, Subcommand};
use hyper::Method;
use serde::Serialize;
use serde_json::value::RawValue;

use super::exit::Exit;
use super::failure::{Failure, Stop};
use super::output::{Form, Output};
use super::{misread, one_thread};
use crate::api::wire::KeyBody;
use crate::auth;
use crate::env;
use crate::error_code::ErrorCode;
use crate::toolbelt::COMMAND;
use crate::toolbelt::wire::{AckBody, ChildBody, EmitBody, ProgressBody, UsageBody, WaitBody, WatchBody};

mod door;

use door::Door;

/// Make calls from a running job: emit Events, say what to wait for, create Works, tell progress and usage, and
/// acknowledge input. It works inside of a run only, and speaks for that run alone.
#[derive(Debug, Parser)]
#[command(name = COMMAND, version, propagate_version = true, max_term_width = 100)]
struct Os {
    /// For how many seconds to repeat a call while no daemon answers or the run is being taken over
    #[arg(long, global = true, value_name = "SECONDS", default_value_t = 60, display_order = 900)]
    patience: u64,
    #[command(subcommand)]
    command: OsCommand,
}

#[derive(Debug, Subcommand)]
enum OsCommand {
    /// Show the run, its Work and keys, what triggered it, and how long it has
    Context,
    Emit(EmitArgs),
    Wait(WaitArgs),
    Child(ChildArgs),
    Progress(ProgressArgs),
    Usage(UsageArgs),
    /// Input that reaches the run while it goes on
    #[command(subcommand)]
    Input(InputCommand),
}

#[derive(Debug, Subcommand)]
enum InputCommand {
    /// List what was given to the run while it goes on, with its payload
    List,
    Ack(AckArgs),
}

/// The name of a call.
#[derive(Debug, Args)]
struct Named {
    /// The name of this call; made again under it, it does nothing more [default: a fresh one]
    #[arg(long, value_name = "ID")]
    call: Option<String>,
}

impl Named {
    fn id(&self) -> Result<String, Stop> {
        match &self.call {
            Some(id) => Ok(id.clone()),
            None => auth::random_text().map_err(|error| {
                Failure::new(Exit::FAILED, ErrorCode::NoRandomness, error.to_string()).into()
            }),
        }
    }
}

/// Accept an Event of the run's own scope, caused by what the run follows from. Routes decide where it goes
#[derive(Debug, Args)]
struct EmitArgs {
    /// What happened, such as `report.made`
    #[arg(long = "type", value_name = "TYPE")]
    event_type: String,
    /// The key to correlate by: its namespace
    #[arg(long, value_name = "NS", requires = "key_external_id")]
    key_source: Option<String>,
    /// The key to correlate by: its identifier
    #[arg(long, value_name = "ID", requires = "key_source")]
    key_external_id: Option<String>,
    /// The Event that it follows from, when that is another one: of the same scope, with a key in a namespace in
    /// which the run's Work has one
    #[arg(long, value_name = "EVENT")]
    cause: Option<String>,
    /// The payload
    #[arg(long, value_name = "JSON")]
    payload_json: Option<String>,
    #[command(flatten)]
    named: Named,
}

/// Have the turn end in a Wait, if it ends well: for news of the Work's keys, or for a time
#[derive(Debug, Args)]
struct WaitArgs {
    /// A key of the run's Work, may be repeated [default: all of them]
    #[arg(long, num_args = 2, value_names = ["NS", "ID"], action = clap::ArgAction::Append)]
    key: Vec<String>,
    /// A type of Event, may be repeated [default: any]
    #[arg(long = "type", value_name = "TYPE")]
    types: Vec<String>,
    /// Wake by itself after so many seconds
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
    /// Only for what was accepted after this sequence [default: what the run was given]
    #[arg(long, value_name = "SEQUENCE")]
    after: Option<i64>,
    /// A key of another Work whose news are to wake the run's Work, may be repeated
    #[arg(long, num_args = 2, value_names = ["NS", "ID"], action = clap::ArgAction::Append)]
    watch: Vec<String>,
    /// The type of the Event that tells of a watched key [default: watch.changed]
    #[arg(long, value_name = "TYPE", requires = "watch")]
    watch_as: Option<String>,
    /// Take back what was declared: the turn ends as it says itself
    #[arg(long, conflicts_with_all = ["key", "types", "timeout", "after", "watch"])]
    withdraw: bool,
    #[command(flatten)]
    named: Named,
}

/// Create a Work below the run's own. It is started with the Event that tells of it
#[derive(Debug, Args)]
struct ChildArgs {
    /// Its kind [default: child.work]
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// Its scope, one of the `write_scopes` of the run's [default: the run's own]
    #[arg(long, value_name = "SCOPE")]
    scope: Option<String>,
    /// The binding that runs it [default: that of the run's own name]
    #[arg(long, value_name = "NAME")]
    binding: Option<String>,
    /// A key that it owns, may be repeated
    #[arg(long, num_args = 2, value_names = ["NS", "ID"], action = clap::ArgAction::Append)]
    key: Vec<String>,
    /// What it is to work on
    #[arg(long, value_name = "JSON")]
    input_json: Option<String>,
    #[command(flatten)]
    named: Named,
}

/// Say in a line how far the run has come
#[derive(Debug, Args)]
struct ProgressArgs {
    /// The line
    #[arg(value_name = "TEXT")]
    text: String,
    /// How much of it is done, from 0 to 100
    #[arg(long, value_name = "PERCENT")]
    percent: Option<u8>,
    #[command(flatten)]
    named: Named,
}

/// Add to what the run used, such as `usd=0.25 tokens=1200`
#[derive(Debug, Args)]
struct UsageArgs {
    /// A unit and an amount
    #[arg(value_name = "UNIT=AMOUNT", required = true, value_parser = amount)]
    amounts: Vec<(String, f64)>,
    #[command(flatten)]
    named: Named,
}

/// Say that the run took in what it was given while it goes on. It is consumed with the run's result
#[derive(Debug, Args)]
struct AckArgs {
    /// The Event's id, as `os input list` shows it
    #[arg(value_name = "EVENT", required = true)]
    events: Vec<String>,
}

fn amount(text: &str) -> Result<(String, f64), String> {
    let (unit, amount) = text.split_once('=').ok_or("write a unit and an amount, such as usd=0.25")?;
    let amount = amount.parse().map_err(|_error| "the amount is no number".to_owned())?;
    Ok((unit.to_owned(), amount))
}

/// The keys of an option that takes two words each time.
fn keys(words: &[String]) -> Vec<KeyBody> {
    let (pairs, _rest) = words.as_chunks::<2>();
    pairs.iter().map(|[source, id]| KeyBody { source: source.clone(), external_id: id.clone() }).collect()
}

fn raw(option: &'static str, text: Option<&String>) -> Result<Option<Box<RawValue>>, Stop> {
    let Some(text) = text else { return Ok(None) };
    RawValue::from_string(text.clone()).map(Some).map_err(|error| {
        Failure::usage(format!("what is in --{option} is not JSON, at line {}", error.line())).into()
    })
}

/// Whether the words of a command line call this program by the toolbelt's name.
pub(super) fn is_called(arguments: &[OsString]) -> bool {
    let program = arguments.first().map(Path::new).and_then(Path::file_name);
    program.is_some_and(|name| name == COMMAND)
}

/// Whether it ends with this code. It waits for no run, and so has no code for how one ended.
pub(super) fn exits_with(exit: Exit) -> bool {
    ![Exit::TIMED_OUT, Exit::PENDING].contains(&exit)
}

/// The command line, for its reference.
pub(super) fn command() -> Command {
    Os::command()
}

/// Reads the words, does what they say, and tells how that went.
pub(super) fn main(arguments: &[OsString]) -> ExitCode {
    let os = match Os::try_parse_from(arguments) {
        Ok(os) => os,
        Err(error) => return misread(&error, true).into(),
    };
    let out = Output::new(Form::Json);
    let done = one_thread().and_then(|runtime| runtime.block_on(run(os, out)));
    match done {
        Ok(exit) => exit.into(),
        Err(Stop::PipeClosed) => Exit::DONE.into(),
        Err(Stop::Failure(failure)) => {
            out.failure(&failure);
            failure.exit.into()
        }
    }
}

async fn run(os: Os, out: Output) -> Result<Exit, Stop> {
    let place = env::toolbelt().ok_or_else(|| {
        Failure::usage(
            "this is no run: `os` works where OS_SOCKET and OS_TOKEN_FILE are set, which is in a job",
        )
    })?;
    let door = Door::new(place, os.patience);
    let answer = match os.command {
        OsCommand::Context => door.ask(Method::GET, "/v1/context", Vec::new()).await?,
        OsCommand::Input(InputCommand::List) => door.ask(Method::GET, "/v1/input", Vec::new()).await?,
        OsCommand::Input(InputCommand::Ack(args)) => return acknowledge(&door, &args, out).await,
        OsCommand::Emit(args) => post(&door, "/v1/emit", &emission(&args)?).await?,
        OsCommand::Wait(args) => post(&door, "/v1/wait", &awaited(&args)?).await?,
        OsCommand::Child(args) => post(&door, "/v1/child", &birth(&args)?).await?,
        OsCommand::Progress(args) => {
            let ProgressArgs { text, percent, named } = args;
            post(&door, "/v1/progress", &ProgressBody { call: named.id()?, text, percent }).await?
        }
        OsCommand::Usage(args) => {
            let call = args.named.id()?;
            let usage = args.amounts.into_iter().collect();
            post(&door, "/v1/usage", &UsageBody { call, usage }).await?
        }
    };
    out.object(&answer)?;
    Ok(exit_of(&answer))
}

/// How a command ends whose call was answered: a gate may have it wait.
fn exit_of(answer: &RawValue) -> Exit {
    #[derive(serde::Deserialize)]
    struct Answer {
        #[serde(default)]
        held: bool,
    }
    let held = serde_json::from_str::<Answer>(answer.get()).is_ok_and(|answer| answer.held);
    if held { Exit::HELD } else { Exit::DONE }
}

async fn post(door: &Door, path: &str, body: &impl Serialize) -> Result<Box<RawValue>, Stop> {
    let body = serde_json::to_vec(body).expect("a body of a call is JSON");
    door.ask(Method::POST, path, body).await
}

fn emission(args: &EmitArgs) -> Result<EmitBody, Stop> {
    let key = args.key_source.clone().zip(args.key_external_id.clone());
    Ok(EmitBody {
        call: args.named.id()?,
        event_type: args.event_type.clone(),
        key: key.map(|(source, external_id)| KeyBody { source, external_id }),
        cause: args.cause.clone(),
        occurred_at: None,
        payload: raw("payload-json", args.payload_json.as_ref())?,
    })
}

fn awaited(args: &WaitArgs) -> Result<WaitBody, Stop> {
    let watch = |key| WatchBody { key, types: Vec::new(), becomes: args.watch_as.clone() };
    Ok(WaitBody {
        call: args.named.id()?,
        keys: (!args.key.is_empty()).then(|| keys(&args.key)),
        types: args.types.clone(),
        timeout_seconds: args.timeout,
        after_sequence: args.after,
        watch: keys(&args.watch).into_iter().map(watch).collect(),
        withdraw: args.withdraw,
    })
}

fn birth(args: &ChildArgs) -> Result<ChildBody, Stop> {
    Ok(ChildBody {
        call: args.named.id()?,
        scope: args.scope.clone(),
        kind: args.kind.clone(),
        binding: args.binding.clone(),
        keys: keys(&args.key),
        input: raw("input-json", args.input_json.as_ref())?,
    })
}

/// Acknowledges each Event by a call that is named after it, and takes its file out of the inbox.
async fn acknowledge(door: &Door, args: &AckArgs, out: Output) -> Result<Exit, Stop> {
    for event in &args.events {
        let body = AckBody { call: format!("ack/{event}"), event: event.clone() };
        let answer = post(door, "/v1/input/ack", &body).await?;
        let exit = exit_of(&answer);
        if exit == Exit::DONE {
            door.clear_inbox(event);
        }
        out.object(&answer)?;
        if exit != Exit::DONE {
            return Ok(exit);
        }
    }
    Ok(Exit::DONE)
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::{amount, command, exit_of, is_called, keys};
    use crate::cli::exit::Exit;

    #[test]
    fn the_command_line_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn a_call_that_a_gate_holds_ends_the_command_as_held() {
        for (answer, exit) in [
            (r#"{"held":true,"gate":"review"}"#, Exit::HELD),
            (r#"{"held":false}"#, Exit::DONE),
            (r#"{"event":"ev_1"}"#, Exit::DONE),
            ("[]", Exit::DONE),
        ] {
            let answer = RawValue::from_string(answer.to_owned()).unwrap();
            assert_eq!(exit_of(&answer), exit, "{answer}");
        }
    }

    #[test]
    fn only_the_name_decides_who_is_called() {
        for (program, called) in [
            ("/home/u/.open-conduit/bin/os", true),
            ("os", true),
            ("open-conduit", false),
            ("/os/conduit", false),
        ] {
            assert_eq!(is_called(&[program.into(), "os".into()]), called, "{program}");
        }
        assert!(!is_called(&[]));
    }

    #[test]
    fn amounts_and_keys_are_read_in_pairs() {
        assert_eq!(amount("usd=0.25"), Ok(("usd".to_owned(), 0.25)));
        assert!(amount("usd").is_err() && amount("usd=much").is_err());
        let words = ["ci", "42", "docs", "a b"].map(str::to_owned);
        let read: Vec<(String, String)> =
            keys(&words).into_iter().map(|key| (key.source, key.external_id)).collect();
        assert_eq!(read, [("ci".to_owned(), "42".to_owned()), ("docs".to_owned(), "a b".to_owned())]);
    }
}
