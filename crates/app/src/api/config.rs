//! The configuration in force, what an apply would change, and applying.

use std::sync::Arc;

use super::failure::{Chain, Failure};
use super::pause;
use super::scopes;
use super::server::{Answer, Asked, json};
use super::wire::{AppliedBody, ApplyBody, ConfigBody, PlanBody, PlanChangeBody};
use crate::config::Format;
use crate::config::canonical::canonical;
use crate::config::plan::Plan;
use crate::daemon::Daemon;
use crate::daemon::applied::{ApplyFailure, Expected};
use crate::error_code::ErrorCode;
use crate::home::{ConfigFile, HomeError};

/// Shows the configuration in force.
pub(crate) async fn show(daemon: &Arc<Daemon>) -> Answer {
    Ok(json(&in_force(daemon).await?))
}

/// The configuration in force.
///
/// # Errors
/// What reading the store or the home answers.
pub(crate) async fn in_force(daemon: &Daemon) -> Result<ConfigBody, Failure> {
    let row = daemon.store().read("config", |tx| tx.current_generation()).await.map_err(Failure::from)?;
    let file = daemon.home().config().map_err(unreadable)?;
    let mut tree = daemon.applied().model.as_ref().map(scopes::tree).unwrap_or_default();
    pause::standing(daemon).await?.mark(&mut tree);
    let config = row.as_ref().and_then(|row| serde_json::from_str(&row.body).ok());
    Ok(ConfigBody {
        generation: row.as_ref().map_or(0, |row| row.number.number()),
        digest: row.as_ref().map(|row| row.digest.clone()),
        applied_at: row.as_ref().map(|row| row.applied_at.to_string()),
        config,
        tree,
        edited: daemon.is_edited(file.as_ref()),
        file: file.map(|file| file.path.display().to_string()),
    })
}

/// Compares the home's file with the configuration in force.
pub(crate) fn plan(daemon: &Daemon) -> Answer {
    Ok(json(&proposed(daemon)?))
}

/// What applying the home's file would change.
///
/// # Errors
/// `no_config_file`, `home_unreadable`, and `invalid_config` with every problem.
pub(crate) fn proposed(daemon: &Daemon) -> Result<PlanBody, Failure> {
    let file = home_file(daemon)?;
    let loaded =
        crate::config::load(&file.text, file.format, daemon.extensions()).map_err(Failure::config)?;
    let applied = daemon.applied();
    let plan = daemon.plan(&loaded.model);
    Ok(PlanBody {
        generation: applied.number,
        digest: canonical(&loaded.model).digest,
        changes: changes(&plan),
        restart_required: plan.restart_required,
    })
}

/// Applies the home's file, or the text that was sent. A bad one changes nothing.
pub(crate) async fn apply(daemon: &Arc<Daemon>, asked: Asked) -> Answer {
    let body: ApplyBody = asked.json_or_empty().await?;
    Ok(json(&put_in_force(daemon, body).await?))
}

/// Applies the home's file, or the text that was sent.
///
/// # Errors
/// `invalid_config` with every problem, `config_conflict` when it is not what was planned; then nothing has
/// changed.
pub(crate) async fn put_in_force(daemon: &Arc<Daemon>, body: ApplyBody) -> Result<AppliedBody, Failure> {
    let (text, format) = if let Some(text) = body.config {
        (text, format(body.format.as_deref())?)
    } else {
        let file = home_file(daemon)?;
        (file.text, file.format)
    };
    let expected = Expected { digest: body.digest, generation: body.generation };
    match daemon.apply(&text, format, &expected).await {
        Ok(done) => Ok(AppliedBody {
            generation: done.number,
            changed: done.changed,
            changes: changes(&done.plan),
            restart_required: done.plan.restart_required,
        }),
        Err(ApplyFailure::NotPlanned) => {
            let detail = "the file or what is in force is not what was planned; nothing was changed. Look at the \
                          plan again";
            Err(Failure::new(ErrorCode::ConfigConflict, detail))
        }
        Err(ApplyFailure::Problems(problems)) => Err(Failure::config(problems)),
        Err(ApplyFailure::Apply(error)) => Err(error.into()),
    }
}

/// How a text that is sent is written.
///
/// # Errors
/// `bad_request` for another word than the two.
pub(crate) fn format(word: Option<&str>) -> Result<Format, Failure> {
    match word {
        None | Some("toml") => Ok(Format::Toml),
        Some("json") => Ok(Format::Json),
        Some(_) => Err(Failure::bad("`format` is `toml` or `json`")),
    }
}

/// The configuration file in the home.
///
/// # Errors
/// `no_config_file` and `home_unreadable`.
pub(crate) fn home_file(daemon: &Daemon) -> Result<ConfigFile, Failure> {
    let file = daemon.home().config().map_err(unreadable)?;
    file.ok_or_else(|| {
        let detail = "there is no conduit.toml or conduit.json in the home; `open-conduit up` writes one to begin with";
        Failure::new(ErrorCode::NoConfigFile, detail)
    })
}

#[expect(clippy::needless_pass_by_value, reason = "it stands in map_err")]
fn unreadable(error: HomeError) -> Failure {
    tracing::warn!(error = %Chain(&error), "the home cannot be read");
    Failure::new(ErrorCode::HomeUnreadable, error.to_string())
}

fn changes(plan: &Plan) -> Vec<PlanChangeBody> {
    let change = |change: &crate::config::plan::Change| PlanChangeBody {
        path: change.path.clone(),
        what: change.what.to_string(),
        sentence: change.sentence.clone(),
    };
    plan.changes.iter().map(change).collect()
}
