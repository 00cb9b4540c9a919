//! Shell jobs through the whole runtime, eight at a time, beside plain spawning of the same command.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bundled::shell::{ShellExecutor, ShellOptions};
use extension::Executor;
use serde_json::json;
use store::{Location, Options};

use crate::Setting;
use crate::cycles::in_flight;
use crate::figure::{Goal, Report};
use crate::node;

/// Jobs at a time.
const WIDTH: u32 = 8;

pub(crate) async fn run(setting: &Setting, report: &mut Report) {
    let plain = plain(&["true"], setting.seconds / 2);
    let jobs = jobs(setting, &["true"]).await;
    report.note("shell: plain spawning of nothing, 8 at a time", plain, "/s");
    report.add_absolute("shell: jobs that do nothing, absolute", jobs, "/s", Goal::AtLeast(250.0));
    report.add("shell: jobs that do nothing", jobs, "/s", Some(plain), Goal::RatioAtLeast(0.15));

    let command = ["sleep", "0.1"];
    let plain = self::plain(&command, setting.seconds / 2);
    let jobs = self::jobs(setting, &command).await;
    report.note("shell: plain spawning of 0.1 s, 8 at a time", plain, "/s");
    report.add("shell: jobs of 0.1 s", jobs, "/s", Some(plain), Goal::RatioAtLeast(0.9));
}

/// Spawns and waits, on as many threads.
fn plain(command: &[&str], time: Duration) -> f64 {
    let start = Instant::now();
    let counts: Vec<u64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..WIDTH)
            .map(|_| {
                scope.spawn(|| {
                    let mut count = 0;
                    while start.elapsed() < time {
                        let status = Command::new(command[0])
                            .args(&command[1..])
                            .stdin(Stdio::null())
                            .stdout(Stdio::null())
                            .status();
                        assert!(status.expect("the command starts").success());
                        count += 1;
                    }
                    count
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("a spawner")).collect()
    });
    counts.iter().sum::<u64>() as f64 / start.elapsed().as_secs_f64()
}

async fn jobs(setting: &Setting, command: &[&str]) -> f64 {
    let directory = setting.fresh("shell");
    let binary = env!("CARGO_BIN_EXE_open-conduit").into();
    let shell = ShellExecutor::new(&directory.join("runs"), binary, ShellOptions::from_process());
    let shell: Arc<dyn Executor> = Arc::new(shell.expect("the executor's directory"));
    let options = Options { rehearse: false, ..Options::default() };
    let store = store::open(&Location::Sqlite(directory.join("conduit.db")), options).await.expect("a store");
    let scope = node::scope("shell", json!({"argv": command}), WIDTH);
    let (runtime, stages) = node::runtime(store, vec![shell], scope).await;
    runtime.start(stages);
    let start = Instant::now();
    in_flight(&runtime, u64::from(WIDTH) * 2, start, setting.seconds).await;
    let rate = node::ended(&runtime) as f64 / start.elapsed().as_secs_f64();
    let failed =
        runtime.metrics().ended.get_or_create(&runtime::metrics::Outcome { outcome: "failed" }).get();
    assert_eq!(failed, 0, "every job ends well");
    runtime.shutdown().await.expect("the runtime ends");
    runtime.store().close().await.expect("the store closes");
    rate
}
