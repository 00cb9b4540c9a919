//! `completions`: a script that makes a shell complete commands and options.

use clap::{Args, Command, ValueEnum};
use clap_complete::Shell;

use super::exit::Exit;
use super::failure::Stop;
use super::{os, output};
use crate::toolbelt::COMMAND;

/// What to type once, for the shells that look in a directory of the user's.
const INSTALL: &str = "\
To have them in every new shell:
  bash  open-conduit completions bash > ~/.local/share/bash-completion/completions/open-conduit
  zsh   open-conduit completions zsh > ~/.zfunc/_open-conduit, with `fpath+=~/.zfunc` before `compinit` in ~/.zshrc
  fish  open-conduit completions fish > ~/.config/fish/completions/open-conduit.fish
`--for os` prints those of the command that jobs have, for a file named after it.
The directory has to be there. In this shell only: `source <(open-conduit completions bash)`.";

/// Print a script that teaches a shell the commands and options
#[derive(Debug, Args)]
#[command(after_help = INSTALL)]
pub(super) struct CompletionsArgs {
    /// The shell
    shell: Shell,
    /// The command that is completed
    #[arg(long = "for", value_enum, value_name = "COMMAND", default_value_t = Program::OpenConduit)]
    program: Program,
}

/// A name that is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Program {
    /// This command
    OpenConduit,
    /// The command of running jobs
    Os,
}

/// The name that is typed.
const NAME: &str = "open-conduit";

pub(super) fn completions(args: &CompletionsArgs, command: &Command) -> Result<Exit, Stop> {
    let script = match args.program {
        Program::OpenConduit if args.shell == Shell::Bash => for_bash(command),
        Program::OpenConduit => script(args.shell, shown(command, NAME), NAME),
        Program::Os => script(args.shell, shown(&os::command(), COMMAND), COMMAND),
    };
    output::bytes(&script)?;
    Ok(Exit::DONE)
}

fn script(shell: Shell, mut command: Command, name: &str) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut script);
    script
}

/// The generator spells a hyphen in the program's name in two ways, and then bash finds nothing below the first
/// word (<https://github.com/clap-rs/clap/issues/6421>). So the script is made for a name without one, and told
/// at its end which command it is for.
fn for_bash(command: &Command) -> Vec<u8> {
    let script = script(Shell::Bash, shown(command, NAME), "open_conduit");
    let script = String::from_utf8(script).expect("the words of the help are text");
    script.replace("default open_conduit\n", &format!("default {NAME}\n")).into_bytes()
}

/// The command line without what its help does not show either.
fn shown(cli: &Command, name: &'static str) -> Command {
    Command::new(name)
        .version(env!("CARGO_PKG_VERSION"))
        .propagate_version(true)
        .args(cli.get_arguments().cloned())
        .subcommands(cli.get_subcommands().filter(|command| !command.is_hide_set()).cloned())
}
