//! `man`: the manual pages, made from the same words as the help.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use serde::Serialize;

use crate::error_code::ErrorCode;
use crate::toolbelt::COMMAND;

use super::Context;
use super::exit::Exit;
use super::failure::{Failure, Stop};
use super::{os, output};

/// The section of commands that anybody may use.
const SECTION: &str = "1";

/// Print the manual page, or write the pages of all commands
#[derive(Debug, Args)]
#[command(after_help = "`open-conduit man ~/.local/share/man/man1`, then `man open-conduit-runs-list`. \
                        To read it at once: `open-conduit man | man -l -`. Those of `os`, the command of running \
                        jobs, are written with them: `man os`.")]
pub(super) struct ManArgs {
    /// Write one page for each command into this directory, which is made when it is not there
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

/// What was written.
#[derive(Serialize)]
struct Written<'a> {
    directory: &'a Path,
    pages: Vec<String>,
}

pub(super) fn man(args: &ManArgs, context: &Context, cli: Command) -> Result<Exit, Stop> {
    let mut cli = prepared(cli);
    cli.build();
    let Some(directory) = &args.directory else {
        output::bytes(&page(&cli, None))?;
        return Ok(Exit::DONE);
    };
    fs::create_dir_all(directory).map_err(|error| unwritten(&error))?;
    let mut pages = Vec::new();
    write(directory, &cli, None, &mut pages).map_err(|error| unwritten(&error))?;
    let mut os = prepared(os::command());
    os.build();
    write(directory, &os, None, &mut pages).map_err(|error| unwritten(&error))?;
    if context.out.is_json() {
        context.out.object(&Written { directory, pages })?;
    } else {
        context.out.line(format!("wrote {} pages into {}", pages.len(), directory.display()))?;
    }
    Ok(Exit::DONE)
}

fn unwritten(error: &io::Error) -> Stop {
    let detail = format!("the manual pages cannot be written: {error}");
    Failure::new(Exit::FAILED, ErrorCode::Output, detail)
        .hint("name a directory that you may write to, or leave it out to have the page printed")
        .into()
}

/// The command line as its pages show it: without the `help` commands, whose pages would say nothing.
fn prepared(command: Command) -> Command {
    command
        .disable_help_subcommand(true)
        .subcommand_help_heading("COMMANDS")
        .subcommand_value_name("COMMAND")
        .mut_subcommands(prepared)
}

/// Writes the page of a command and of those below it.
fn write(
    directory: &Path,
    command: &Command,
    parent: Option<&Command>,
    pages: &mut Vec<String>,
) -> io::Result<()> {
    let file = format!("{}.{SECTION}", name(command));
    fs::write(directory.join(&file), page(command, parent))?;
    pages.push(file);
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        write(directory, below, Some(command), pages)?;
    }
    Ok(())
}

/// The name of a command's page: `open-conduit-runs-list`.
fn name(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

/// A page.
fn page(command: &Command, parent: Option<&Command>) -> Vec<u8> {
    let man = Man::new(command.clone());
    let mut page = Vec::new();
    let rendered =
        title(command)
            .to_writer(&mut page)
            .and_then(|()| man.render_name_section(&mut page))
            .and_then(|()| man.render_synopsis_section(&mut page))
            .and_then(|()| description(command).to_writer(&mut page))
            .and_then(|()| man.render_options_section(&mut page))
            .and_then(|()| {
                if below(command).is_empty() { Ok(()) } else { man.render_subcommands_section(&mut page) }
            })
            .and_then(|()| ending(command, parent).to_writer(&mut page));
    rendered.expect("a buffer in memory takes whatever is written");
    page
}

/// What stands above and below each sheet. The date is a blank: a page is as old as its version.
fn title(command: &Command) -> Roff {
    let (name, version) = (name(command).to_uppercase(), concat!("Open Conduit ", env!("CARGO_PKG_VERSION")));
    let mut roff = Roff::default();
    roff.control("TH", [name.as_str(), SECTION, " ", version, "Open Conduit"]);
    roff
}

/// What the command does, as a sentence, and what its help ends with.
fn description(command: &Command) -> Roff {
    let mut roff = Roff::default();
    roff.control("SH", ["DESCRIPTION"]);
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string);
    let mut paragraphs: Vec<String> =
        about.iter().flat_map(|about| about.split("\n\n")).map(str::to_owned).collect();
    if let Some(first) = paragraphs.first_mut().filter(|first| !first.ends_with('.')) {
        first.push('.');
    }
    paragraphs.extend(command.get_after_help().map(ToString::to_string));
    for (number, paragraph) in paragraphs.iter().enumerate() {
        if number > 0 {
            roff.control("PP", []);
        }
        // Several lines are to be typed, or a table; either stays as it is.
        let as_it_is = paragraph.contains('\n');
        if as_it_is {
            roff.control("nf", []);
        }
        for line in paragraph.lines() {
            roff.text([roman(line)]);
        }
        if as_it_is {
            roff.control("fi", []);
        }
    }
    roff
}

/// The names of the pages of the commands below one.
fn below(command: &Command) -> Vec<&str> {
    command.get_subcommands().filter(|below| !below.is_hide_set()).map(name).collect()
}

/// What the page of every command ends with: the exit codes on the first one, and where to read on.
fn ending(command: &Command, parent: Option<&Command>) -> Roff {
    let mut roff = Roff::default();
    if parent.is_none() {
        roff.control("SH", ["EXIT STATUS"]);
        let of_os = name(command) == COMMAND;
        for (exit, meaning) in Exit::MEANINGS.into_iter().filter(|(exit, _)| !of_os || os::exits_with(*exit))
        {
            roff.control("TP", []);
            roff.text([bold(exit.number().to_string())]);
            roff.text([roman(meaning)]);
        }
    }
    let mut others = below(command);
    if let Some(parent) = parent {
        others.insert(0, name(parent));
    }
    roff.control("SH", ["SEE ALSO"]);
    let mut line = Vec::new();
    for (number, other) in others.into_iter().enumerate() {
        if number > 0 {
            line.push(roman(", "));
        }
        line.extend([bold(other), roman(format!("({SECTION})"))]);
    }
    roff.text(line);
    roff
}
