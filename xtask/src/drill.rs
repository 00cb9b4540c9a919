//! `cargo xtask drill`: real daemons with real jobs, killed, suspended, starved and doubled.
//!
//! Each drill has a temporary home of its own below `target/drill`, which stays there when it fails. What ran,
//! and how often, is what the jobs themselves appended to a file; the daemon's own rows are compared with it.
//! To add a drill, write a module with a `run` and give it a row in [`DRILLS`].

mod adopt;
mod api;
mod cancel_race;
mod config;
mod daemon;
mod delivery;
mod disk_full;
mod finished_unrecorded;
mod http;
mod hung_tree;
pub(crate) mod job;
mod ledger;
mod parked;
mod poison;
mod postgres_restart;
mod process;
mod random;
mod random_kill;
mod redeliver;
mod samples;
mod signature;
mod site;
mod slow_reader;
mod start_record;
mod stop_past_lease;
mod time;
mod trespass;
mod two_daemons;
mod wake_crash;
mod wake_race;
mod workspace;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::builder::PossibleValuesParser;

use self::site::{Programs, Site};
use crate::component::{self, Component};
use crate::error::Error;
use crate::machine::{self, file_error};
use crate::postgres::Server;
use crate::{metadata, output};

/// What a drill counted, by name.
type Counts = Vec<(&'static str, u64)>;

/// One drill.
struct Drill {
    name: &'static str,
    /// How often it repeats what it does, unless `--rounds` says otherwise.
    rounds: u32,
    /// What it uses besides the daemon.
    needs: Option<Component>,
    /// Whether it takes place a second time, on PostgreSQL.
    on_both: bool,
    run: fn(&Site) -> Result<Counts, Error>,
}

impl Drill {
    const fn new(name: &'static str, rounds: u32, run: fn(&Site) -> Result<Counts, Error>) -> Self {
        Self { name, rounds, needs: None, on_both: false, run }
    }

    const fn needs(self, component: Component) -> Self {
        Self { needs: Some(component), ..self }
    }

    const fn on_both(self) -> Self {
        Self { on_both: true, ..self }
    }

    /// Where it takes place, in order.
    const fn engines(&self) -> &'static [Engine] {
        if self.on_both { &[Engine::Sqlite, Engine::Postgres] } else { &[Engine::Sqlite] }
    }
}

/// Where the daemons of a drill keep their rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Engine {
    /// Each in its home.
    Sqlite,
    /// All in one database on a server of the drills' own.
    Postgres,
}

/// The drills, in order.
const DRILLS: &[Drill] = &[
    Drill::new("two-daemons", 2, two_daemons::run),
    Drill::new("trespass", 1, trespass::run),
    Drill::new("redeliver", 3, redeliver::run),
    Drill::new("adopt", 6, adopt::run),
    Drill::new("finished-unrecorded", 15, finished_unrecorded::run),
    Drill::new("hung-tree", 4, hung_tree::run),
    Drill::new("workspace", 2, workspace::run),
    Drill::new("start-record", 60, start_record::run),
    Drill::new("poison", 1, poison::run),
    Drill::new("samples", 1, samples::run).needs(Component::Npm),
    Drill::new("disk-full", 1, disk_full::run).needs(Component::Mount),
    Drill::new("wake-crash", 12, wake_crash::run).on_both(),
    Drill::new("wake-race", 3, wake_race::run).on_both(),
    Drill::new("cancel-race", 3, cancel_race::run).on_both(),
    Drill::new("postgres-restart", 4, postgres_restart::run).needs(Component::Postgres),
    Drill::new("stop-past-lease", 1, stop_past_lease::run).on_both(),
    Drill::new("slow-reader", 3, slow_reader::run),
    Drill::new("random-kill", 200, random_kill::run),
];

/// What is typed after `cargo xtask drill`.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Arguments {
    /// Run only these drills
    #[arg(value_name = "DRILL",
          value_parser = PossibleValuesParser::new(DRILLS.iter().map(|drill| drill.name)))]
    named: Vec<String>,
    /// Run only these drills
    #[arg(long, value_name = "DRILL", value_delimiter = ',',
          value_parser = PossibleValuesParser::new(DRILLS.iter().map(|drill| drill.name)))]
    only: Vec<String>,
    /// How often each drill repeats what it does
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
    /// Choose the same moments as a run that printed this seed
    #[arg(long)]
    seed: Option<u64>,
    /// Drill the release build
    #[arg(long)]
    release: bool,
    /// Leave out the drills that need a component
    #[arg(long, value_name = "COMPONENT", value_delimiter = ',')]
    without: Vec<Component>,
    /// Give up after so many minutes
    #[arg(long, default_value_t = MINUTES_MAX)]
    minutes: u32,
}

/// How long all drills may take unless `--minutes` says otherwise. They take about half of it.
const MINUTES_MAX: u32 = 20;

impl Arguments {
    /// Every drill, but those that need what was left out.
    pub(crate) fn whole(without: &[Component]) -> Self {
        Self { without: without.to_vec(), minutes: MINUTES_MAX, ..Self::default() }
    }

    fn wants(&self, drill: &Drill) -> bool {
        let mut asked = self.named.iter().chain(&self.only).peekable();
        asked.peek().is_none() || asked.any(|name| name == drill.name)
    }

    /// Whether a drill can't take place there, because what it needs was left out.
    fn leaves_out(&self, drill: &Drill, engine: Engine) -> bool {
        let server = (engine == Engine::Postgres).then_some(Component::Postgres);
        drill.needs.iter().chain(&server).any(|component| self.without.contains(component))
    }
}

/// How one drill went.
struct Outcome {
    drill: &'static str,
    engine: Engine,
    took: Duration,
    /// None where it was left out.
    result: Option<Result<Counts, Error>>,
}

/// Builds the daemon once, runs the drills, and prints how each went.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    let target = metadata::members()?.target_directory;
    let folder = target.join("drill");
    let programs = programs(&target, &folder, arguments.release)?;
    let seed = arguments.seed.map_or_else(random::fresh_seed, Ok)?;
    output::line(&format!("seed {seed}"));
    let deadline = machine::now() + Duration::from_mins(arguments.minutes.into());
    let samples = component::samples_folder(&target);
    let samples = samples.is_dir().then_some(samples);

    let mut outcomes = Vec::new();
    let mut server = None;
    for drill in DRILLS.iter().filter(|drill| arguments.wants(drill)) {
        for engine in drill.engines() {
            if arguments.leaves_out(drill, *engine) {
                let (took, result) = (Duration::ZERO, None);
                outcomes.push(Outcome { drill: drill.name, engine: *engine, took, result });
                continue;
            }
            let database = database(drill, *engine, &mut server)?;
            let site = Site {
                name: drill.name,
                folder: folder.join(title(drill.name, *engine)),
                database,
                programs: programs.clone(),
                rounds: arguments.rounds.unwrap_or(drill.rounds),
                seed,
                samples: samples.clone(),
                deadline,
            };
            outcomes.push(run_one(drill, *engine, &site));
        }
    }
    output::line(&table(&outcomes));
    let mut failed: Vec<&str> = outcomes
        .iter()
        .filter(|outcome| matches!(outcome.result, Some(Err(_))))
        .map(|outcome| outcome.drill)
        .collect();
    failed.dedup();
    if failed.is_empty() {
        return Ok(());
    }
    output::line(&format!("repeat with `cargo xtask drill --seed {seed} --only {}`", failed.join(",")));
    Err(Error::Drills { names: failed.join(", ") })
}

/// What a drill is called where it takes place.
fn title(drill: &str, engine: Engine) -> String {
    match engine {
        Engine::Sqlite => drill.to_owned(),
        Engine::Postgres => format!("{drill}.postgres"),
    }
}

/// An empty database for a drill on PostgreSQL. The first one starts the server.
fn database(drill: &Drill, engine: Engine, server: &mut Option<Server>) -> Result<Option<String>, Error> {
    if engine == Engine::Sqlite {
        return Ok(None);
    }
    if server.is_none() {
        *server = Some(Server::start()?);
    }
    let server = server.as_ref().expect("it was started");
    server.fresh_database(&format!("drill_{}", drill.name.replace('-', "_"))).map(Some)
}

fn run_one(drill: &Drill, engine: Engine, site: &Site) -> Outcome {
    output::heading(&title(drill.name, engine));
    let start: Instant = machine::now();
    let result = site.prepare().and_then(|()| (drill.run)(site));
    match &result {
        Ok(_) => site.clear(),
        Err(error) => {
            site.end_runs();
            output::error(error);
            output::line(&format!("its files are in {}", site.folder.display()));
        }
    }
    Outcome { drill: drill.name, engine, took: start.elapsed(), result: Some(result) }
}

/// Builds the daemon, and copies it and this program to where no build changes them.
fn programs(target: &Path, folder: &Path, release: bool) -> Result<Programs, Error> {
    let mut build = machine::cargo();
    build.args(["build", "--package", "open-conduit"]);
    let profile = if release {
        build.arg("--release");
        "release"
    } else {
        "debug"
    };
    machine::run(&mut build)?;
    let copies = folder.join("programs");
    fs::create_dir_all(&copies).map_err(file_error("create", &copies))?;
    let copy = |from: PathBuf, name: &str| -> Result<PathBuf, Error> {
        let to = copies.join(name);
        // A copy that an earlier run left behind may still be running, and then can't be written to.
        fs::remove_file(&to).ok();
        fs::copy(&from, &to).map_err(file_error("copy", &from))?;
        Ok(to)
    };
    let own = env::current_exe().map_err(file_error("find", Path::new("/proc/self/exe")))?;
    Ok(Programs {
        daemon: copy(target.join(profile).join("open-conduit"), "open-conduit")?,
        job: copy(own, "xtask")?,
    })
}

/// The drills with their times and counts, one a line.
fn table(outcomes: &[Outcome]) -> String {
    let mut lines = vec![String::new(), "drill                        seconds  result".to_owned()];
    for outcome in outcomes {
        let result = match &outcome.result {
            Some(Ok(counts)) => {
                let counts: Vec<String> =
                    counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
                format!("passed  {}", counts.join(", "))
            }
            Some(Err(_)) => "FAILED".to_owned(),
            None => "left out".to_owned(),
        };
        let title = title(outcome.drill, outcome.engine);
        lines.push(format!("{title:<27} {:>8.1}  {result}", outcome.took.as_secs_f64()));
    }
    let total: Duration = outcomes.iter().map(|outcome| outcome.took).sum();
    lines.push(format!("{:<27} {:>8.1}", "all", total.as_secs_f64()));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_tells_passed_failed_and_left_out() {
        let outcome = |drill, engine, millis, result| Outcome {
            drill,
            engine,
            took: Duration::from_millis(millis),
            result,
        };
        let shown = table(&[
            outcome("adopt", Engine::Sqlite, 1_500, Some(Ok(vec![("stopped", 3), ("killed", 2)]))),
            outcome("poison", Engine::Postgres, 16_000, Some(Err(Error::Drill("lost".to_owned())))),
            outcome("disk-full", Engine::Sqlite, 0, None),
        ]);
        assert_eq!(
            shown.lines().collect::<Vec<_>>(),
            [
                "",
                "drill                        seconds  result",
                "adopt                            1.5  passed  stopped 3, killed 2",
                "poison.postgres                 16.0  FAILED",
                "disk-full                        0.0  left out",
                "all                             17.5",
            ]
        );
    }

    #[test]
    fn a_drill_on_both_engines_is_left_out_where_its_server_is() {
        let drill = |name: &str| DRILLS.iter().find(|drill| drill.name == name).expect("it is a drill");
        let arguments = Arguments { without: vec![Component::Postgres], ..Arguments::default() };
        for (name, engine, expected) in [
            ("wake-race", Engine::Sqlite, false),
            ("wake-race", Engine::Postgres, true),
            ("postgres-restart", Engine::Sqlite, true),
            ("adopt", Engine::Sqlite, false),
        ] {
            assert_eq!(arguments.leaves_out(drill(name), engine), expected, "{name} {engine:?}");
        }
        let asked =
            Arguments { named: vec!["adopt".to_owned()], only: vec!["poison".to_owned()], ..arguments };
        let wanted = |name| asked.wants(drill(name));
        assert!(wanted("adopt") && wanted("poison") && !wanted("samples"));
    }

    #[test]
    fn drills_have_distinct_names() {
        let mut names: Vec<&str> = DRILLS.iter().map(|drill| drill.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), DRILLS.len());
    }
}
