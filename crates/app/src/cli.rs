//! The command line: nouns, then verbs. A noun is a folder, a verb is a file with its arguments beside its
//! function, and the doc comments of the arguments are the help.
//!
//! Commands never open the database. They ask the daemon, or read the configuration file, or are the daemon.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};
use domain::time::Timestamp;

use crate::client::Client;
use crate::env;
use crate::error_code::ErrorCode;
use crate::home::Home;

mod exit;
mod failure;
mod output;
mod paging;
mod keyed;
mod changes;
mod hosting;
mod up;
mod open;
mod serve;
mod status;
mod doctor;
mod config;
mod scope;
mod events;
mod work;
mod runs;
mod waits;
mod timers;
mod jobs;
mod import;
mod sessions;
mod completions;
mod man;
mod schema;
mod reference;
mod os;

use exit::Exit;
use failure::{Failure, Stop};
use output::{Form, Output};

/// A durable runtime for coding agents and jobs: Events come in, routes turn them into Work, executors run it,
/// and nothing accepted is lost or runs twice.
#[derive(Debug, Parser)]
#[command(name = "open-conduit", version, propagate_version = true, max_term_width = 100)]
#[command(after_help = "Begin with `open-conduit up`. Ids may be shortened wherever they stay unique.")]
struct Cli {
    /// Print one JSON object, or one per line where a command keeps printing
    #[arg(long, global = true, display_order = 900)]
    json: bool,
    // Clap would name the flag in every usage line where it read the variable; `env::home` reads that.
    #[arg(long, global = true, value_name = "DIR", display_order = 901)]
    #[arg(
        help = "The directory with the database, the configuration and the socket [default: ~/.open-conduit] [env: OPEN_CONDUIT_HOME]"
    )]
    home: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Up(up::UpArgs),
    Open(open::OpenArgs),
    Serve(serve::ServeArgs),
    Status(status::StatusArgs),
    Doctor(doctor::DoctorArgs),
    /// The configuration: check the file, see what it would change, apply it
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// The scopes that own routes, bindings and settings
    #[command(subcommand)]
    Scope(scope::ScopeCommand),
    /// Events: what arrived, from where, and what became of it
    #[command(subcommand)]
    Events(events::EventsCommand),
    /// Work: what is to be done, and where it is
    #[command(subcommand)]
    Work(work::WorkCommand),
    /// Runs: each attempt at a Work
    #[command(subcommand)]
    Runs(runs::RunsCommand),
    /// Waits: what Works wait for
    #[command(subcommand)]
    Waits(waits::WaitsCommand),
    /// Timers: what will happen by time
    #[command(subcommand)]
    Timers(timers::TimersCommand),
    /// Jobs: when they run, and what starts them
    #[command(subcommand)]
    Jobs(jobs::JobsCommand),
    /// Import what other schedulers have
    #[command(subcommand)]
    Import(import::ImportCommand),
    /// Sessions: the browsers that are logged in to the page
    #[command(subcommand)]
    Sessions(sessions::SessionsCommand),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
    Schema(schema::SchemaArgs),
    #[command(subcommand, hide = true)]
    Reference(reference::ReferenceCommand),
}

/// What every command gets.
#[derive(Debug)]
struct Context {
    home: Option<PathBuf>,
    out: Output,
    now: Timestamp,
}

impl Context {
    fn home(&self) -> Result<Home, Stop> {
        Ok(env::home(self.home.clone())?)
    }

    fn client(&self) -> Result<Client, Stop> {
        Ok(Client::new(self.home()?))
    }
}

/// Reads the command line, does what it says, and tells how that went.
pub(crate) fn main() -> ExitCode {
    let arguments = env::arguments();
    if os::is_called(&arguments) {
        return os::main(&arguments);
    }
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => return misread(&error, arguments.iter().any(|argument| argument == "--json")).into(),
    };
    let out = Output::new(if cli.json { Form::Json } else { Form::Text });
    let context = Context { home: cli.home.or_else(env::named_home), out, now: env::now() };
    match run(cli.command, &context) {
        Ok(exit) => exit.into(),
        Err(Stop::PipeClosed) => Exit::DONE.into(),
        Err(Stop::Failure(failure)) => {
            out.failure(&failure);
            failure.exit.into()
        }
    }
}

/// Prints the help that was asked for, or what is wrong with the command line.
fn misread(error: &clap::Error, json: bool) -> Exit {
    if error.use_stderr() && json {
        let text = error.render().to_string();
        let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
        Output::new(Form::Json).failure(&Failure::usage(first));
        return Exit::USAGE;
    }
    // A reader that went away has read enough.
    drop(error.print());
    if error.use_stderr() { Exit::USAGE } else { Exit::DONE }
}

fn run(command: Command, context: &Context) -> Result<Exit, Stop> {
    match command {
        Command::Completions(args) => completions::completions(&args, &Cli::command()),
        Command::Man(args) => man::man(&args, context, Cli::command()),
        Command::Schema(args) => schema::schema(&args, context),
        Command::Reference(command) => reference::reference(&command, Cli::command()),
        Command::Config(config::ConfigCommand::Check(args)) => config::check::check(&args, context),
        Command::Jobs(command) => jobs::run(command, context),
        Command::Import(command) => import::run(command, context),
        Command::Up(args) => on_many_threads(up::up(args, context)),
        Command::Serve(args) => on_many_threads(serve::serve(args, context)),
        Command::Open(args) => one_thread()?.block_on(open::open(&args, context)),
        Command::Status(args) => one_thread()?.block_on(status::status(&args, context)),
        Command::Doctor(args) => one_thread()?.block_on(doctor::doctor(&args, context)),
        Command::Config(command) => one_thread()?.block_on(config::run(command, context)),
        Command::Scope(command) => one_thread()?.block_on(scope::run(command, context)),
        Command::Events(command) => one_thread()?.block_on(events::run(command, context)),
        Command::Work(command) => one_thread()?.block_on(work::run(command, context)),
        Command::Runs(command) => one_thread()?.block_on(runs::run(command, context)),
        Command::Waits(command) => one_thread()?.block_on(waits::run(command, context)),
        Command::Timers(command) => one_thread()?.block_on(timers::run(command, context)),
        Command::Sessions(command) => one_thread()?.block_on(sessions::run(command, context)),
    }
}

/// For commands that wait for one answer at a time.
fn one_thread() -> Result<tokio::runtime::Runtime, Stop> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| no_runtime(&error))
}

/// For the daemon. What a second signal cut short is not waited for.
fn on_many_threads(command: impl Future<Output = Result<Exit, Stop>>) -> Result<Exit, Stop> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| no_runtime(&error))?;
    let ended = runtime.block_on(command);
    runtime.shutdown_background();
    ended
}

fn no_runtime(error: &std::io::Error) -> Stop {
    let detail = format!("the system gives no threads or no event queue: {error}");
    Failure::new(Exit::FAILED, ErrorCode::System, detail)
        .hint("look at the limits on processes and open files")
        .into()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_sound() {
        super::Cli::command().debug_assert();
    }
}
