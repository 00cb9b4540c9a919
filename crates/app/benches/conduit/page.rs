//! Pages with a long past: what a person waits for, and how much is sent.

use std::path::Path;
use std::time::Instant;

use domain::id::ExecutionId;

use crate::Setting;
use crate::figure::{Goal, Report, Times};
use crate::http::Daemon;
use crate::past;

const RUNS: i64 = 10_000;
/// Bytes of the longest log.
const LOG_BYTES: usize = 100_000_000;
/// Runs for each Work, so that the timeline has rows with very many bars.
const RUNS_OF_A_WORK: i64 = 100;
/// How often each page is asked for.
const ASKED: usize = 40;

pub(crate) async fn run(setting: &Setting, report: &mut Report) {
    let home = setting.fresh("page");
    drop(Daemon::start(&home, "[[scopes]]\nname = \"bench\"\n").await);
    past::runs(&home.join("conduit.db"), RUNS, RUNS_OF_A_WORK);
    let run = ExecutionId::from_number(past::FIRST + RUNS);
    long_log(&home, run);
    let daemon = Daemon::again(&home).await;
    let (shown, log) = (format!("/runs/{run}"), format!("/runs/{run}/log"));
    for (name, path, goal) in [
        ("page: run list with 10,000 runs", "/", 100.0),
        ("page: the same, past 7 days", "/?span=7d", 100.0),
        ("page: the same, a search that finds nothing", "/?q=no+such+run", 100.0),
        ("page: the same, failed runs only", "/?state=failed", 100.0),
        ("page: the list of Events, 10,000 in the store", "/events", 100.0),
        ("page: the list of Works, each with 100 runs", "/work", 100.0),
        ("page: a run with a log of 100 MB", shown.as_str(), 300.0),
        ("page: the end of a log of 100 MB", log.as_str(), 300.0),
    ] {
        let (mut times, mut heaviest) = (Times::default(), 0);
        let mut pages = daemon.pages().await;
        for _ in 0..ASKED {
            let before = Instant::now();
            heaviest = heaviest.max(pages.weight(path).await);
            times.push(before.elapsed());
        }
        report.add(name, times.at(0.5), "ms", None, Goal::AtMost(goal));
        let weight = heaviest as f64 / 1000.0;
        report.add(&format!("{name}, weight"), weight, "kB", None, Goal::AtMost(150.0));
    }
}

/// Gives a run a log of 100 MB, as its command would have written it.
fn long_log(home: &Path, run: ExecutionId) {
    let folder = home.join("runs").join(run.to_string()).join("e1");
    std::fs::create_dir_all(&folder).expect("the run's folder");
    let line =
        "\u{1b}[32mok\u{1b}[0m one of very many lines, each of a usual length, as a build writes them\n";
    let piece = line.repeat(LOG_BYTES / 100 / line.len());
    let mut file = std::fs::File::create(folder.join("output.log")).expect("the log");
    for _ in 0..100 {
        std::io::Write::write_all(&mut file, piece.as_bytes()).expect("room for the log");
    }
}
