//! Works that wait: how a drill has them, and what holds of each once its Wait is over.

use serde_json::Value;

use super::api::{Api, has_ended};
use super::config;
use super::site::{SOON, Site, check};
use crate::error::Error;

/// The type that opens a Work whose first attempt ends in a Wait.
pub(super) const PARKS: &str = "drill.parks";
/// The type that such a Work waits for.
pub(super) const GO: &str = "drill.go";

/// A binding whose first attempt ends in a Wait for [`GO`], with these arguments besides.
pub(super) fn binding(site: &Site, arguments: &[&str]) -> Value {
    config::job(site, "parks", &[&["--parks", GO], arguments].concat())
}

/// The routes that lead to it: the opening Event makes a Work, and what follows with its key is its input.
pub(super) fn routes() -> [Value; 2] {
    [config::fresh(PARKS, "parks"), config::keyed(GO, "parks")]
}

/// A Wait that is over, and the run that went on from it.
#[derive(Debug)]
pub(super) struct Woken {
    pub(super) wait: Value,
    pub(super) run: Value,
}

impl Woken {
    /// The Event that ended the Wait.
    pub(super) fn winner(&self) -> &str {
        self.wait["winner"].as_str().unwrap_or_default()
    }
}

/// Waits until the Work of a key went on from its Wait, and checks that it did so once: one Wait, with one
/// winner; one bridge from it; one run that it triggered.
pub(super) fn woken_once(site: &Site, api: &Api, key: &str) -> Result<Woken, Error> {
    let runs = site.wait(&format!("{key} goes on from its Wait"), SOON * 2, || {
        api.runs_of(key).ok().filter(|runs| runs.len() > 1 && runs.iter().all(has_ended))
    })?;
    let mut waits = api.waits_of(key)?;
    check(waits.len() == 1 && waits[0]["state"] == "woken", || format!("{key} waited so: {waits:?}"))?;
    let wait = waits.remove(0);
    let (work, winner) =
        (wait["work"].as_str().unwrap_or_default(), wait["winner"].as_str().unwrap_or_default());
    let of_winner: Vec<&Value> = runs.iter().filter(|run| run["trigger"]["event"] == winner).collect();
    check(of_winner.len() == 1, || format!("{winner} triggered {} runs of {key}", of_winner.len()))?;
    let run = of_winner[0].clone();
    check(run["attempt"] == 2 && run["state"] == "completed", || format!("{key} went on so: {run}"))?;
    let first = runs.last().expect("there are several");
    check(first["attempt"] == 1 && first["state"] == "waiting", || format!("{key} parked so: {first}"))?;
    let bridges = api.list(&format!("/v1/events?type=core.wait.woken&work={work}"))?;
    let is_right = bridges.len() == 1 && bridges[0]["parent"] == winner;
    check(is_right, || format!("from the Wait of {key} lead {bridges:?}"))?;
    Ok(Woken { wait, run })
}
