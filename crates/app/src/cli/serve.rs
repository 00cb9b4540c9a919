//! `serve`: the daemon and nothing else, for a service manager.

use clap::Args;

use super::Context;
use super::exit::Exit;
use super::failure::Stop;
use super::hosting::{self, Hosted};

/// Start the daemon and stay, until SIGTERM or Ctrl-C; runs outlive it
#[derive(Debug, Args)]
pub(super) struct ServeArgs {}

pub(super) async fn serve(_args: ServeArgs, context: &Context) -> Result<Exit, Stop> {
    let home = context.home()?;
    hosting::log("info")?;
    let hosted = Hosted::start(&home).await?;
    let places = hosted.places();
    if context.out.is_json() {
        context.out.object(&places)?;
    } else {
        context.out.heading("Open Conduit is up.")?;
        places.print(&context.out)?;
    }
    hosted.wait().await
}
