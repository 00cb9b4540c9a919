//! `runs log`.

use std::time::Duration;

use clap::Args;
use serde::Serialize;

use crate::cli::Context;
use crate::cli::exit::Exit;
use crate::cli::failure::Stop;
use crate::cli::output;
use crate::client::Route;

/// How often a run that goes on is asked for more output. Output is no change of state, so no stream tells.
const FOLLOW_EVERY: Duration = Duration::from_millis(200);

/// Print what a run wrote to its standard streams
#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    /// Its id, or the beginning of it
    #[arg(value_name = "RUN")]
    id: String,
    /// Go on printing until the run has ended
    #[arg(long, short)]
    follow: bool,
}

/// A piece of output.
#[derive(Debug, Serialize)]
struct Piece<'a> {
    run: &'a str,
    /// Where it begins, in bytes.
    from: u64,
    text: &'a str,
}

pub(crate) async fn log(args: &LogArgs, context: &Context) -> Result<Exit, Stop> {
    let client = context.client()?;
    let mut again = tokio::time::interval(FOLLOW_EVERY);
    let mut from = 0;
    loop {
        let route = Route::new(&["runs", &args.id, "log"]).with("from", from.to_string());
        let mut answer = client.stream(&route).await?;
        let size = answer.header("x-log-size").and_then(|size| size.parse().ok()).unwrap_or(0);
        // The state was read before the output was, so the output of a run that had ended is whole.
        let ended = answer.header("x-run-state") == Some("ended");
        let before = from;
        while let Some(bytes) = answer.next().await? {
            print(&args.id, from, &bytes, context)?;
            from += bytes.len() as u64;
        }
        let rest_is_there = from < size && from > before;
        if rest_is_there {
            continue;
        }
        if ended || !args.follow {
            return Ok(Exit::DONE);
        }
        again.tick().await;
    }
}

fn print(run: &str, from: u64, bytes: &[u8], context: &Context) -> Result<(), Stop> {
    if context.out.is_json() {
        return context.out.object(&Piece { run, from, text: &String::from_utf8_lossy(bytes) });
    }
    output::bytes(bytes)
}
