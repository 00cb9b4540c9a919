//! `samples`: GitHub's own examples of its webhooks, signed and posted as GitHub does. Each that is verified is
//! accepted once and runs once; a wrong signature and an altered byte have no effect.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::thread;

use serde_json::Value;

use super::Counts;
use super::api::accepted;
use super::config::{self, Parts};
use super::daemon::Daemon;
use super::delivery::{SECRET, send_github};
use super::signature::sign;
use super::site::{SOON, Site, check};
use crate::error::Error;
use crate::machine::file_error;

/// The examples, by the name of the event.
const INDEX: &str = "api.github.com/index.json";
/// Connections at once.
const SENDERS: usize = 4;

struct Sample {
    event: String,
    delivery: String,
    body: Vec<u8>,
}

pub(super) fn run(site: &Site) -> Result<Counts, Error> {
    let samples = read(site)?;
    let parts = Parts {
        concurrency: 8,
        bindings: vec![config::job(site, "append", &[])],
        routes: vec![config::keyless("github.delivery", "append")],
        webhooks: true,
    };
    site.configure(&parts.config())?;
    let (daemon, api) = Daemon::start(site)?;
    let address = api.webhooks()?;
    thread::scope(|scope| {
        let share = samples.len().div_ceil(SENDERS);
        let senders: Vec<_> = samples
            .chunks(share)
            .map(|chunk| scope.spawn(move || chunk.iter().try_for_each(|sample| post(address, sample))))
            .collect();
        senders.into_iter().try_for_each(|sender| sender.join().expect("a sender does not panic"))
    })?;

    let expected: BTreeSet<String> = samples.iter().map(|sample| sample.delivery.clone()).collect();
    site.wait("every sample runs", SOON * 4, || site.ledger().has_all(&expected).then_some(()))?;
    site.ledger().check(&expected)?;
    let events = api.list("/v1/events?type=github.delivery")?;
    let known: BTreeSet<&str> = events.iter().filter_map(|event| event["delivery_id"].as_str()).collect();
    check(events.len() == samples.len() && known.len() == samples.len(), || {
        format!("{} samples became {} Events with {} delivery ids", samples.len(), events.len(), known.len())
    })?;
    daemon.stop()?;
    Ok(vec![("samples", samples.len() as u64), ("refused", 3 * samples.len() as u64)])
}

fn read(site: &Site) -> Result<Vec<Sample>, Error> {
    let folder = site.samples.as_ref().ok_or_else(|| {
        Error::Drill(
            "GitHub's samples are not there: `cargo xtask test --install` installs them, or type \
                      `--without npm`"
                .to_owned(),
        )
    })?;
    let path = folder.join(INDEX);
    let text = fs::read(&path).map_err(file_error("read", &path))?;
    let index: Vec<Value> =
        serde_json::from_slice(&text).map_err(|error| Error::Drill(format!("{INDEX}: {error}")))?;
    let mut samples = Vec::new();
    for entry in &index {
        let event = entry["name"].as_str().unwrap_or_default();
        for body in entry["examples"].as_array().into_iter().flatten() {
            let number = samples.len();
            samples.push(Sample {
                event: event.to_owned(),
                delivery: format!("00000000-0000-4000-8000-{number:012}"),
                body: body.to_string().into_bytes(),
            });
        }
    }
    check(samples.len() > 100, || format!("{INDEX} has only {} samples", samples.len()))?;
    Ok(samples)
}

/// Posts a sample with wrong signatures first, then twice with the right one.
fn post(address: SocketAddr, sample: &Sample) -> Result<(), Error> {
    let Sample { event, delivery, body } = sample;
    let right = sign(SECRET, body);
    let mut altered = body.clone();
    let middle = altered.len() / 2;
    altered[middle] ^= 1;
    for (what, body, signature) in [
        ("a foreign secret", body, sign("another secret", body)),
        ("an altered byte", &altered, right.clone()),
        ("no signature", body, String::new()),
    ] {
        let answer = send_github(address, event, delivery, body, &signature)
            .map_err(|error| Error::Drill(format!("{event} with {what}: {error}")))?;
        check(answer.status == 401, || format!("{event} with {what} was answered {}", answer.status))?;
    }
    for _ in 0..2 {
        accepted(send_github(address, event, delivery, body, &right))
            .map_err(|error| Error::Drill(format!("{event} {delivery}: {error}")))?;
    }
    Ok(())
}
