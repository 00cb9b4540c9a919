//! `postgres-restart`: the database server is restarted in the middle of a load, in order and as by a crash. The
//! daemon stays, finds its way back by itself, and nothing that it accepted is lost or runs twice.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use super::Counts;
use super::daemon::Daemon;
use super::random_kill::{self, CLIENTS, Load};
use super::site::{SOON, Site, check};
use crate::error::Error;
use crate::postgres::{Server, Stop};

/// The longest load before the next restart.
const LOAD_MAX: Duration = Duration::from_millis(1500);
/// Deliveries that must be accepted between two restarts.
const BETWEEN: usize = 20;

pub(super) fn run(site: &Site) -> Result<Counts, Error> {
    let mut server = Server::start()?;
    let site = &site.on(server.fresh_database("drill_restart")?);
    site.configure(&random_kill::parts(site).config())?;
    let (mut daemon, api) = Daemon::start(site)?;
    let load = Load::new(site, api.clone());
    load.direct_webhooks()?;
    let restarted = thread::scope(|scope| {
        for client in 0..CLIENTS {
            let load = &load;
            scope.spawn(move || load.send_until_stopped(client));
        }
        let restarted = restart_again_and_again(site, &load, &mut server);
        load.stop.store(true, Ordering::Relaxed);
        if restarted.is_err() {
            load.give_up.store(true, Ordering::Relaxed);
        }
        restarted
    });
    let mut counts = restarted?;
    check(daemon.is_running(), || "the daemon did not outlive its database".to_owned())?;
    load.check()?;
    let accepted = load.accepted.into_inner().unwrap_or_else(PoisonError::into_inner);
    counts.push(("sent again", load.sent_again.into_inner()));
    counts.extend(random_kill::settle(site, &api, &accepted)?);
    daemon.stop()?;
    Ok(counts)
}

fn restart_again_and_again(site: &Site, load: &Load<'_>, server: &mut Server) -> Result<Counts, Error> {
    let mut random = site.random();
    let (mut in_order, mut at_once) = (0, 0);
    for round in 0..site.rounds {
        site.pass(random.up_to(LOAD_MAX));
        if round % 2 == 0 {
            server.restart(Stop::AtOnce)?;
            at_once += 1;
        } else {
            server.restart(Stop::InOrder)?;
            in_order += 1;
        }
        let before = load.count();
        site.wait("the daemon accepts again", SOON, || {
            (load.count() >= before + BETWEEN).then_some(()).or_else(|| load.check().err().map(|_| ()))
        })?;
        load.check()?;
    }
    Ok(vec![("restarts in order", in_order), ("as by a crash", at_once)])
}
