//! `jobs next`.

use clap::Args;
use domain::time::Timestamp;
use schedule::cron::Cron;
use schedule::slot::{Pattern, Slot};
use schedule::zone::Zone;
use serde::Serialize;

use crate::cli::Context;
use crate::cli::exit::Exit;
use crate::cli::failure::{Failure, Stop};
use crate::cli::output::Table;

/// The most slots that are printed at once.
const COUNT_MAX: i64 = 100_000;

/// Show the next slots of a cron expression; no daemon is needed
///
/// A time that the clocks skip has no slot. One that they repeat has two, with one name, and a job runs at the first.
#[derive(Debug, Args)]
pub(crate) struct NextArgs {
    /// The expression: minute, hour, day of the month, month, day of the week
    #[arg(long, value_name = "EXPR")]
    cron: String,
    /// The IANA time zone it is read in [default: UTC]
    #[arg(long, value_name = "ZONE", default_value = "", hide_default_value = true)]
    time_zone: String,
    /// The moment after which to look, as RFC 3339 writes it [default: now]
    #[arg(long, value_name = "INSTANT")]
    from: Option<String>,
    /// How many
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=COUNT_MAX))]
    count: u32,
}

/// Slots, and what the wall clock shows at each.
#[derive(Debug, Serialize)]
struct Next {
    slots: Vec<String>,
    names: Vec<String>,
}

pub(super) fn next(args: &NextArgs, context: &Context) -> Result<Exit, Stop> {
    let refuse = |what: &str, error: &dyn std::fmt::Display| Failure::usage(format!("{what}: {error}"));
    let cron = Cron::parse(&args.cron).map_err(|error| refuse("--cron", &error))?;
    let zone = Zone::named(&args.time_zone).map_err(|error| refuse("--time-zone", &error))?;
    let from = match &args.from {
        Some(text) => Timestamp::parse(text).map_err(|error| refuse("--from", &error))?,
        None => context.now,
    };
    let pattern = Pattern::Cron(cron);
    let count = usize::try_from(args.count).expect("a 32-bit number is an index");
    let slots: Vec<Slot> = pattern.slots(&zone, from).take(count).collect();
    if context.out.is_json() {
        let names = slots.iter().map(Slot::time).collect();
        let slots = slots.iter().map(|slot| slot.at.to_string()).collect();
        context.out.object(&Next { slots, names })?;
    } else if slots.is_empty() {
        context.out.sentence("It never fires: there is no such time in the next 20 years.")?;
    } else {
        let mut table = Table::new(&["slot", "name"]);
        for slot in slots {
            table.row([slot.at.to_string().into(), slot.name(&zone).to_string().into()]);
        }
        context.out.table(&table)?;
    }
    Ok(Exit::DONE)
}
