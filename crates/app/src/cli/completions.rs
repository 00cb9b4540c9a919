//! `completions`: a script that makes a shell complete commands and options.

use clap::{Args, Command};
use clap_complete::Shell;

use super::exit::Exit;
use super::failure::Stop;
use super::output;

/// Print a script that teaches a shell the commands and options
#[derive(Debug, Args)]
pub(super) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

pub(super) fn completions(args: &CompletionsArgs, mut command: Command) -> Result<Exit, Stop> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "open-conduit", &mut script);
    output::bytes(&script)?;
    Ok(Exit::DONE)
}
