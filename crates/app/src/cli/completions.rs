//! `completions`: a script that makes a shell complete commands and options.

use clap::{Args, Command};
use clap_complete::Shell;

use super::exit::Exit;
use super::failure::Stop;
use super::output;

/// What to type once, for the shells that look in a directory of the user's.
const INSTALL: &str = "\
To have them in every new shell:
  bash  open-conduit completions bash > ~/.local/share/bash-completion/completions/open-conduit
  zsh   open-conduit completions zsh > ~/.zfunc/_open-conduit, with `fpath+=~/.zfunc` before `compinit` in ~/.zshrc
  fish  open-conduit completions fish > ~/.config/fish/completions/open-conduit.fish
The directory has to be there. In this shell only: `source <(open-conduit completions bash)`.";

/// Print a script that teaches a shell the commands and options
#[derive(Debug, Args)]
#[command(after_help = INSTALL)]
pub(super) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// The name that is typed.
const NAME: &str = "open-conduit";

pub(super) fn completions(args: &CompletionsArgs, command: &Command) -> Result<Exit, Stop> {
    let is_bash = args.shell == Shell::Bash;
    let script = if is_bash { for_bash(command) } else { script(args.shell, command, NAME) };
    output::bytes(&script)?;
    Ok(Exit::DONE)
}

fn script(shell: Shell, command: &Command, name: &str) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut shown(command), name, &mut script);
    script
}

/// The generator spells a hyphen in the program's name in two ways, and then bash finds nothing below the first
/// word (<https://github.com/clap-rs/clap/issues/6421>). So the script is made for a name without one, and told
/// at its end which command it is for.
fn for_bash(command: &Command) -> Vec<u8> {
    let script = script(Shell::Bash, command, "open_conduit");
    let script = String::from_utf8(script).expect("the words of the help are text");
    script.replace("default open_conduit\n", &format!("default {NAME}\n")).into_bytes()
}

/// The command line without what its help does not show either.
fn shown(cli: &Command) -> Command {
    Command::new(NAME)
        .version(env!("CARGO_PKG_VERSION"))
        .propagate_version(true)
        .args(cli.get_arguments().cloned())
        .subcommands(cli.get_subcommands().filter(|command| !command.is_hide_set()).cloned())
}
