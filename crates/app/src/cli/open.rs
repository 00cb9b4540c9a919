//! `open`: a link that logs a browser in to the page.

use std::path::Path;
use std::process::{Command, Stdio};

use clap::Args;

use super::Context;
use super::exit::Exit;
use super::failure::{Failure, Stop};
use crate::api::wire::LoginCodeBody;
use crate::client::{Client, ClientError, Route};
use crate::error_code::ErrorCode;
use crate::home::Home;

/// What opens a file the way the user's desktop does.
const OPENER: &str = "xdg-open";

/// Print a link that logs a browser in to the page, once, within 10 minutes
#[derive(Debug, Args)]
pub(super) struct OpenArgs {
    /// Open it in this machine's browser, too
    #[arg(long)]
    browser: bool,
}

pub(super) async fn open(args: &OpenArgs, context: &Context) -> Result<Exit, Stop> {
    let home = context.home()?;
    let link = link(&Client::new(home.clone())).await?;
    let out = &context.out;
    if out.is_json() {
        out.object(&link)?;
    } else {
        out.line(&link.url)?;
        out.note("The link logs one browser in, once, within 10 minutes.");
    }
    if args.browser {
        in_browser(&home, &link.url)?;
    }
    Ok(Exit::DONE)
}

/// A new link to the page.
pub(super) async fn link(client: &Client) -> Result<LoginCodeBody, ClientError> {
    client.order(&Route::new(&["sessions", "codes"])).await
}

/// Opens a link. A file of this user's leads to it, since everybody on a machine can read the words of a command
/// line, and a browser keeps them for as long as it runs.
fn in_browser(home: &Home, url: &str) -> Result<(), Stop> {
    let path = home.open_page();
    home.write_private(&path, leading_to(url).as_bytes())?;
    start(&path).map_err(|error| {
        Failure::new(Exit::FAILED, ErrorCode::System, format!("cannot start {OPENER}: {error}"))
            .hint("the link above can be opened by hand")
            .into()
    })
}

#[expect(clippy::disallowed_methods, reason = "the command line opens the user's browser")]
fn start(path: &Path) -> std::io::Result<()> {
    let mut command = Command::new(OPENER);
    command.arg(path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let status = command.status()?;
    if status.success() { Ok(()) } else { Err(std::io::Error::other(status.to_string())) }
}

/// A page that leads to an address of ours, which needs no escaping.
fn leading_to(url: &str) -> String {
    format!(
        "<!doctype html>\n<meta charset=\"utf-8\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta http-equiv=\"refresh\" content=\"0;url={url}\">\n<title>Open Conduit</title>\n\
         <p><a href=\"{url}\">Go to Open Conduit</a></p>\n"
    )
}
