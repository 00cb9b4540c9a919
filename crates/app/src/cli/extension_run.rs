//! `extension-run`: an extension that comes with the program, in a process of its own.

use std::os::fd::OwnedFd;

use clap::Args;
use protocol::Guest;
use protocol::wire::Software;
use tokio::net::unix::pipe;

use super::exit::Exit;
use super::failure::{Failure, Stop};
use crate::error_code::ErrorCode;

/// Serve an extension that comes with the program over standard streams; the daemon runs this
#[derive(Debug, Args)]
pub(super) struct ExtensionRunArgs {
    /// Which one
    #[arg(value_name = "NAME", value_parser = bundled::PACKAGES)]
    name: String,
}

pub(super) async fn extension_run(args: ExtensionRunArgs) -> Result<Exit, Stop> {
    let package = bundled::package(&args.name).expect("the command line takes no other name");
    let guest = Guest {
        software: Software { name: args.name, version: env!("CARGO_PKG_VERSION").to_owned() },
        handlers: package.handlers,
        ingresses: package.ingresses,
    };
    let (input, output) = streams().map_err(|error| {
        let detail = format!("standard input and output are not pipes to a daemon: {error}");
        let hint = "declare the extension in the configuration, and the daemon runs it";
        Failure::new(Exit::USAGE, ErrorCode::Usage, detail).hint(hint)
    })?;
    guest
        .serve(input, output)
        .await
        .map_err(|error| Failure::new(Exit::FAILED, ErrorCode::System, format!("cannot go on: {error}")))?;
    Ok(Exit::DONE)
}

fn streams() -> std::io::Result<(pipe::Receiver, pipe::Sender)> {
    let input: OwnedFd = rustix::stdio::stdin().try_clone_to_owned()?;
    let output: OwnedFd = rustix::stdio::stdout().try_clone_to_owned()?;
    Ok((pipe::Receiver::from_owned_fd(input)?, pipe::Sender::from_owned_fd(output)?))
}
