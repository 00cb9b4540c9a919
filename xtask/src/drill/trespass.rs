//! `trespass`: a job tries what only an operator may. Everything it can show for itself is refused, the refusals
//! are on record, and nothing has changed.

use std::env;
use std::fs;
use std::path::Path;

use super::Counts;
use super::config::{self, Parts};
use super::daemon::Daemon;
use super::http::{self, Endpoint, Request};
use super::site::{SOON, Site, check};
use crate::error::Error;
use crate::output;

/// What an operator may and a job may not.
const TRIES: [(&str, &str); 5] = [
    ("POST", "/v1/config/apply"),
    ("POST", "/v1/events"),
    ("GET", "/v1/runs"),
    ("GET", "/v1/config"),
    ("GET", "/metrics"),
];

/// The job's part: it tries, as nobody and with all it was given, and prints what it was answered.
pub(super) fn try_everything(socket: &Path) -> Result<(), Error> {
    let socket = Endpoint::Unix(socket.to_owned());
    // Whatever the job was given could have been meant as a token.
    let given: Vec<String> = env::vars().map(|(_name, value)| value).collect();
    let cancel = format!("/v1/work/{}/cancel", env::var("OS_WORK_ID").unwrap_or_default());
    let tries = TRIES.iter().copied().chain([("POST", cancel.as_str())]);
    for (method, path) in tries {
        let mut answers = vec![answer(&socket, method, path, None)?];
        for value in given.iter().filter(|value| value.is_ascii() && !value.contains(char::is_control)) {
            answers.push(answer(&socket, method, path, Some(value))?);
        }
        let refused = answers.iter().filter(|status| **status == 401).count();
        output::line(&format!("{method} {path}: {refused} of {} refused", answers.len()));
        if refused != answers.len() {
            return Err(Error::Drill(format!("{method} {path} was let in: {answers:?}")));
        }
    }
    Ok(())
}

fn answer(socket: &Endpoint, method: &str, path: &str, token: Option<&str>) -> Result<u16, Error> {
    let authorization = token.map(|token| format!("Bearer {token}"));
    let headers: Vec<(&str, &str)> =
        authorization.iter().map(|value| ("Authorization", value.as_str())).collect();
    let request = Request { method, path, headers: &headers, body: b"{}" };
    let response = http::exchange(socket, request);
    response
        .map(|response| response.status)
        .map_err(|error| Error::Drill(format!("{method} {path}: {error}")))
}

pub(super) fn run(site: &Site) -> Result<Counts, Error> {
    let socket = site.home().join("conduit.sock");
    let parts = Parts {
        concurrency: 2,
        bindings: vec![config::job(site, "trespass", &["--trespass", &socket.to_string_lossy()])],
        routes: vec![config::fresh("drill.trespass", "trespass")],
        webhooks: false,
    };
    site.configure(&parts.config())?;
    let (daemon, api) = Daemon::start(site)?;
    let before = api.get("/v1/config")?;
    api.accept("drill.trespass", "trespass")?;
    let run = site.wait("the job has tried everything", SOON, || {
        api.run_of("trespass").filter(|run| run["ended_at"].is_string())
    })?;
    check(run["state"] == "completed", || format!("the job was let in somewhere: {run}"))?;
    let id = run["id"].as_str().unwrap_or_default();
    let log = api.text(&format!("/v1/runs/{id}/log"))?;
    let tried = log.lines().filter(|line| line.ends_with("refused")).count();
    check(tried == TRIES.len() + 1, || format!("not everything was tried: {log}"))?;

    let after = api.get("/v1/config")?;
    check(before == after, || "the configuration changed".to_owned())?;
    let events = api.list("/v1/events?type=drill.trespass")?;
    check(events.len() == 1, || format!("the job posted an Event: {events:?}"))?;
    let recorded = fs::read_to_string(site.log()).unwrap_or_default();
    let recorded = recorded.lines().filter(|line| line.contains("a request was refused")).count();
    check(recorded >= tried, || format!("only {recorded} refusals are on record"))?;
    daemon.stop()?;
    Ok(vec![("tried", tried as u64), ("on record", recorded as u64)])
}
