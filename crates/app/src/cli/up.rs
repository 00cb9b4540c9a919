//! `up`: the first command anyone types. In an empty home it makes everything that is needed and shows a whole
//! turn, from an Event to the output of its run; later it just starts the daemon.

use std::net::{Ipv4Addr, TcpListener};

use clap::Args;
use serde::Serialize;

use super::Context;
use super::changes::Changes;
use super::events::outcome::{Awaited, Came, KINDS};
use super::exit::Exit;
use super::failure::{Failure, Stop};
use super::hosting::{self, Hosted, Places, TakesWebhooks};
use super::open;
use crate::api::wire::{AcceptedBody, EmitBody, KeyBody, RunBody, StatusBody};
use crate::client::{Client, ClientError, Route};
use crate::config::{Format, STARTER};
use crate::env;
use crate::error_code::ErrorCode;
use crate::home::Home;
use crate::view::{Word, run, time};

/// The addresses that the starter configuration names.
const STARTER_PORTS: [u16; 2] = [7717, 7718];
/// The most of a first run's output that is shown.
const OUTPUT_BYTES_MAX: usize = 2000;

/// An Event that the starter configuration takes.
const EMIT: &str =
    "events emit --scope main --type say.hello --key-source demo --key-external-id second --wait";

/// Start the daemon; in an empty home, set everything up and run a first job
#[derive(Debug, Args)]
pub(super) struct UpArgs {}

/// What was started, and in a new home what the first Event led to.
#[derive(Debug, Serialize)]
struct Up<'a> {
    #[serde(flatten)]
    places: &'a Places,
    /// A link that logs a browser in to the page, once.
    page_url: &'a str,
    first: Option<&'a First>,
}

/// The first turn.
#[derive(Debug, Serialize)]
struct First {
    event: String,
    run: RunBody,
    output: String,
}

pub(super) async fn up(_args: UpArgs, context: &Context) -> Result<Exit, Stop> {
    let home = context.home()?;
    let client = Client::new(home.clone());
    if let Some(exit) = is_up(&client, context).await? {
        return Ok(exit);
    }
    hosting::log("warn")?;
    let is_new = home.config()?.is_none();
    if is_new {
        home.create()?;
        home.write_private(&home.root().join(Format::Toml.file_name()), starter().as_bytes())?;
    }
    let mut hosted = Hosted::start(&home, TakesWebhooks::AsConfigured).await?;
    let (places, out) = (hosted.places(), &context.out);
    let page = match hosted.unless_signalled(open::link(&client)).await {
        Some(Ok(link)) => link.url,
        Some(Err(error)) => {
            drop(hosted.stop().await);
            return Err(error.into());
        }
        None => return hosted.stop().await,
    };
    if !out.is_json() {
        out.heading("Open Conduit is up.")?;
        places.print(out)?;
        out.line(format!("  page      {page}  (logs one browser in, within 10 minutes)"))?;
        out.line(format!("  config    {}", config_file(&home)?))?;
    }
    let mut first = None;
    if is_new {
        first = match hosted.unless_signalled(first_turn(&client)).await {
            Some(Ok(first)) => Some(first),
            Some(Err(stop)) => {
                // Why there was no first run is what has to be told, however the stop goes.
                drop(hosted.stop().await);
                return Err(stop);
            }
            None => return hosted.stop().await,
        };
    }
    if out.is_json() {
        out.object(&Up { places: &places, page_url: &page, first: first.as_ref() })?;
    } else {
        print_rest(first.as_ref(), context)?;
    }
    hosted.wait().await
}

/// Whether a daemon answers already. Then there is nothing to start, and that is said.
async fn is_up(client: &Client, context: &Context) -> Result<Option<Exit>, Stop> {
    match client.get::<StatusBody>(&Route::new(&["status"])).await {
        Ok(status) => {
            if context.out.is_json() {
                context.out.object(&status)?;
            } else {
                let since = time::ago(&status.started_at, context.now);
                context
                    .out
                    .sentence(&format!("Open Conduit is up already in {}, started {since}.", status.home))?;
                context.out.sentence(
                    "`open-conduit open` prints a link to its page, `open-conduit status` shows more.",
                )?;
            }
            Ok(Some(Exit::DONE))
        }
        Err(ClientError::Unreachable { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The starter configuration. Where another program has one of its ports, another port is written down.
fn starter() -> String {
    let mut text = STARTER.to_owned();
    for port in STARTER_PORTS {
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            continue;
        }
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
        if let Ok(free) = free {
            text = text.replace(&format!("127.0.0.1:{port}"), &free.to_string());
        }
    }
    text
}

fn config_file(home: &Home) -> Result<String, Stop> {
    Ok(home.config()?.map_or("none".to_owned(), |file| file.path.display().to_string()))
}

/// Sends a first Event, waits for its run and reads what that wrote.
async fn first_turn(client: &Client) -> Result<First, Stop> {
    let mut changes = Changes::follow(client, KINDS).await?;
    let body = EmitBody {
        scope: "main".to_owned(),
        event_type: "say.hello".to_owned(),
        delivery_id: Some("up/first".to_owned()),
        key: Some(KeyBody { source: "demo".to_owned(), external_id: "first".to_owned() }),
        work: None,
        occurred_at: None,
        payload: Some(serde_json::json!({ "from": "open-conduit up" })),
    };
    let accepted: AcceptedBody = client.post(&Route::new(&["events"]), &body).await?;
    let came = Awaited::new(client, &accepted.event).ended(&mut changes).await?;
    let Came::Run(run) = came else {
        came.exit()?;
        return Err(Failure::new(Exit::FAILED, ErrorCode::NoRun, "no run came of the first Event").into());
    };
    let mut output = Vec::new();
    let mut log = client.stream(&Route::new(&["runs", &run.id, "log"])).await?;
    while let Some(bytes) = log.next().await? {
        output.extend_from_slice(&bytes);
    }
    output.truncate(OUTPUT_BYTES_MAX);
    Ok(First { event: accepted.event, run: *run, output: String::from_utf8_lossy(&output).into_owned() })
}

fn print_rest(first: Option<&First>, context: &Context) -> Result<(), Stop> {
    let out = &context.out;
    out.line("")?;
    if let Some(first) = first {
        print_first(first, context)?;
    }
    out.heading("Worth typing next, in another terminal:")?;
    out.line("")?;
    match first {
        Some(first) => print_commands(
            context,
            &[
                ("why this run started", &format!("runs why {}", first.run.id)),
                ("an Event of your own, and what comes of it", EMIT),
                ("what the daemon has to do", "status"),
            ],
        )?,
        None => print_commands(
            context,
            &[
                ("what the daemon has to do", "status"),
                ("every run, newest first", "runs list"),
                ("what arrives, as it arrives", "events tail"),
            ],
        )?,
    }
    out.line("Ctrl-C stops the daemon. Runs go on, and the next start finds them again.")
}

fn print_first(first: &First, context: &Context) -> Result<(), Stop> {
    let (out, run) = (&context.out, &first.run);
    let took =
        run::took(run, context.now).map(|took| format!(" in {}", time::span(took))).unwrap_or_default();
    out.heading("A first Event went all the way:")?;
    out.line("")?;
    let width = run.work.len();
    out.line(format!(
        "  {:width$}  {} arrived from {}",
        first.event, run.trigger.event_type, run.trigger.source
    ))?;
    out.line(format!("  {:width$}  {}, the Work it became input of", run.work, run.work_kind))?;
    out.line(format!("  {:width$}  {}{took}, by binding {}", run.id, run.state, run.binding))?;
    out.line("")?;
    first.output.lines().try_for_each(|line| out.line(format!("  | {line}")))?;
    out.line("")
}

/// Commands as they can be typed: with this program's path and, where it is not the usual one, the home.
fn print_commands(context: &Context, commands: &[(&str, &str)]) -> Result<(), Stop> {
    let (out, program) = (&context.out, env::program());
    let home = context.home.as_ref().map(|home| format!(" --home {}", home.display())).unwrap_or_default();
    for (meaning, command) in commands {
        out.words(&[Word::quiet(format!("  # {meaning}"))])?;
        out.line(format!("  {program} {command}{home}"))?;
        out.line("")?;
    }
    Ok(())
}
