//! `serve`: the daemon and nothing else, for a service manager.

use clap::Args;

use super::Context;
use super::exit::Exit;
use super::failure::Stop;
use super::hosting::{self, Hosted, TakesWebhooks};

/// Start the daemon and stay, until SIGTERM or Ctrl-C; runs outlive it
#[derive(Debug, Args)]
pub(super) struct ServeArgs {
    /// Take no webhooks; everything else goes on
    #[arg(long)]
    no_tunnel: bool,
}

pub(super) async fn serve(args: ServeArgs, context: &Context) -> Result<Exit, Stop> {
    let home = context.home()?;
    hosting::log("info")?;
    let webhooks = if args.no_tunnel { TakesWebhooks::No } else { TakesWebhooks::AsConfigured };
    let hosted = Hosted::start(&home, webhooks).await?;
    let places = hosted.places();
    if context.out.is_json() {
        context.out.object(&places)?;
    } else {
        context.out.heading("Open Conduit is up.")?;
        places.print(&context.out)?;
    }
    hosted.wait().await
}
