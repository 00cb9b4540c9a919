//! What Open Conduit costs, each figure beside the limit of the machine, measured in the same run.
//!
//! Disks of shared machines swing by a factor of twenty from one minute to the next, so an absolute figure says
//! little. The raw limit is therefore measured right before and after what it is compared with, and the
//! ratio is the result. Run it with `cargo xtask bench`.

#![expect(clippy::print_stdout, reason = "a benchmark reports to standard output")]
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock and starts processes")]
#![expect(clippy::cast_precision_loss, reason = "counts of a few million are exact in a double")]

mod accepts;
mod cycles;
mod figure;
mod http;
mod lone;
mod machine;
mod node;
mod page;
mod past;
mod postgres;
mod raw;
mod shell;
mod startup;
mod waits;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use figure::Report;

/// How the benchmark was asked to run.
struct Arguments {
    json: Option<PathBuf>,
    only: Vec<String>,
    seconds: u64,
    directory: PathBuf,
    without_postgres: bool,
    statements: bool,
}

impl Arguments {
    fn read() -> Result<Self, String> {
        let mut arguments = Self {
            json: None,
            only: Vec::new(),
            seconds: 4,
            directory: PathBuf::from(env!("CARGO_TARGET_TMPDIR")),
            without_postgres: false,
            statements: false,
        };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} needs a value"));
            match word.as_str() {
                "--json" => arguments.json = Some(value()?.into()),
                "--only" => arguments.only.push(value()?),
                "--seconds" => {
                    arguments.seconds = value()?.parse().map_err(|_| "--seconds needs a number")?;
                }
                "--dir" => arguments.directory = value()?.into(),
                "--without" if value()? == "postgres" => arguments.without_postgres = true,
                "--statements" => arguments.statements = true,
                // Cargo says this to every benchmark.
                "--bench" => {}
                other => return Err(format!("unknown argument {other}; see docs/performance.md")),
            }
        }
        Ok(arguments)
    }

    fn wants(&self, part: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == part)
    }
}

/// What every part needs.
struct Setting {
    directory: PathBuf,
    seconds: Duration,
    /// Whether to print what a cycle says to the store, statement by statement.
    statements: bool,
}

impl Setting {
    /// A fresh, empty directory on the file system under test. None is deleted before the end: a file system
    /// may avoid what was deleted a moment ago, and looking past it would be measured as ours.
    fn fresh(&self, name: &str) -> PathBuf {
        let path = (0..1_000_000)
            .map(|number| self.directory.join(format!("{name}-{number}")))
            .find(|path| !path.exists())
            .expect("there are numbers enough");
        std::fs::create_dir_all(&path).expect("the benchmark's directory can be made");
        path
    }
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> ExitCode {
    match run().await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(problem) => {
            println!("bench: {problem}");
            ExitCode::from(2)
        }
    }
}

async fn run() -> Result<bool, String> {
    let arguments = Arguments::read()?;
    let directory = arguments.directory.join(format!("bench-{}", std::process::id()));
    let setting = Setting {
        directory,
        seconds: Duration::from_secs(arguments.seconds),
        statements: arguments.statements,
    };
    std::fs::create_dir_all(&setting.directory).map_err(|error| error.to_string())?;
    let mut report = Report::default();
    machine::describe(&setting, &mut report)?;
    if arguments.wants("accept") {
        accepts::run(&setting, &mut report).await;
    }
    if arguments.wants("cycle") {
        cycles::run(&setting, &mut report).await;
    }
    if arguments.wants("lone") {
        lone::run(&setting, &mut report).await;
    }
    if arguments.wants("wait") {
        waits::run(&setting, &mut report).await;
    }
    if arguments.wants("http") {
        http::run(&setting, &mut report).await;
    }
    if arguments.wants("shell") {
        shell::run(&setting, &mut report).await;
    }
    if arguments.wants("page") {
        page::run(&setting, &mut report).await;
    }
    if arguments.wants("start") {
        startup::run(&setting, &mut report).await;
    }
    if arguments.wants("postgres") && !arguments.without_postgres {
        let location = std::env::var("OPEN_CONDUIT_TEST_POSTGRES").map_err(|_unset| {
            "no PostgreSQL: run it with `cargo xtask bench`, or say `--without postgres`".to_owned()
        })?;
        postgres::run(&setting, &location, &mut report).await;
    }
    report.print();
    std::fs::remove_dir_all(&setting.directory).map_err(|error| error.to_string())?;
    if let Some(path) = &arguments.json {
        report.write(path).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(report.all_good())
}
