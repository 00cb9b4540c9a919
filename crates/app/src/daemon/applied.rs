//! The configuration in force, as the daemon remembers it, and applying another.

use std::sync::{Arc, PoisonError};

use runtime::ApplyError;

use super::Daemon;
use crate::config::canonical::{Canonical, canonical, parse};
use crate::config::plan::{Plan, plan};
use crate::config::{Format, Model, Problem, load, read};
use crate::home::ConfigFile;
use crate::listener::ingress::Table;

/// A configuration in force.
#[derive(Debug, Default)]
pub(crate) struct Applied {
    /// Its generation; zero before the first apply.
    pub(crate) number: i64,
    /// The digest of its canonical text.
    pub(crate) digest: Option<String>,
    /// What it says; none before the first apply.
    pub(crate) model: Option<Model>,
}

/// What an apply did.
#[derive(Debug)]
pub(crate) struct Done {
    /// The generation in force now.
    pub(crate) number: i64,
    /// Whether that is a new one.
    pub(crate) changed: bool,
    /// What was changed.
    pub(crate) plan: Plan,
}

/// What somebody who looked at a plan expects of its apply.
#[derive(Debug, Default)]
pub(crate) struct Expected {
    /// The digest of the canonical text.
    pub(crate) digest: Option<String>,
    /// The generation that the plan was compared with.
    pub(crate) generation: Option<i64>,
}

/// Why an apply changed nothing.
#[derive(Debug)]
pub(crate) enum ApplyFailure {
    /// The text, or what is in force, is not what was planned.
    NotPlanned,
    /// The text is not valid.
    Problems(Vec<Problem>),
    /// It could not be put in force.
    Apply(ApplyError),
}

impl Daemon {
    /// Whether the home's file says something else than what is in force. One that cannot be read does.
    pub(crate) fn is_edited(&self, file: Option<&ConfigFile>) -> bool {
        let Some(file) = file else { return false };
        let written = read(&file.text, file.format).ok().map(|(model, _lines)| canonical(&model).digest);
        written != self.applied().digest
    }

    /// What applying a model would change.
    pub(crate) fn plan(&self, proposed: &Model) -> Plan {
        plan(self.applied().model.as_ref(), proposed, self.extensions())
    }

    /// Applies a text as the next generation, unless it says what is in force already.
    ///
    /// # Errors
    /// [`ApplyFailure`]; then nothing has changed.
    pub(crate) async fn apply(
        &self,
        written: &str,
        format: Format,
        expected: &Expected,
    ) -> Result<Done, ApplyFailure> {
        let _one_at_a_time = self.applying.lock().await;
        let loaded = load(written, format, self.extensions()).map_err(ApplyFailure::Problems)?;
        let Canonical { text, digest } = canonical(&loaded.model);
        let before = self.applied();
        if expected.digest.as_ref().is_some_and(|planned| *planned != digest)
            || expected.generation.is_some_and(|planned| planned != before.number)
        {
            return Err(ApplyFailure::NotPlanned);
        }
        let plan = self.plan(&loaded.model);
        if before.digest.as_ref() == Some(&digest) {
            return Ok(Done { number: before.number, changed: false, plan });
        }
        let outside = &self.extensions.outside;
        let running = outside.declare(&loaded.model.extensions);
        let problems = outside.ask(&loaded.model).await;
        if !problems.is_empty() {
            outside.take_back(running).await;
            let lines = read(written, format).map_err(ApplyFailure::Problems)?.1;
            return Err(ApplyFailure::Problems(lines.locate(problems)));
        }
        let applied = self.runtime.apply(text, digest).await;
        match &applied {
            Ok(_) => outside.keep(running).await,
            Err(_) => outside.take_back(running).await,
        }
        // What follows a stored apply may fail, and then it is in force all the same.
        let reloaded = self.remember().await;
        let number = applied.map_err(ApplyFailure::Apply)?.number();
        reloaded.map_err(ApplyFailure::Apply)?;
        tracing::info!(generation = number, "a configuration was applied");
        Ok(Done { number, changed: true, plan })
    }

    /// Runs the extensions that the stored configuration declares, and asks them about their parts.
    ///
    /// # Errors
    /// [`ApplyError`] when the store fails, or holds a text that cannot be read.
    pub(super) async fn declare(&self) -> Result<(), ApplyError> {
        let row = self.store().read("config", |tx| tx.current_generation()).await?;
        let Some(row) = row else { return Ok(()) };
        let model = parse(&row.body).map_err(|error| ApplyError::Text(error.to_string()))?;
        let running = self.extensions.outside.declare(&model.extensions);
        self.extensions.outside.keep(running).await;
        self.extensions.outside.ask_at_start(&model).await;
        Ok(())
    }

    /// Takes note of the stored configuration and of the webhooks it takes.
    ///
    /// # Errors
    /// [`ApplyError`] when the store fails, or holds a text that cannot be read.
    pub(super) async fn remember(&self) -> Result<(), ApplyError> {
        let row = self.store().read("config", |tx| tx.current_generation()).await?;
        let applied = match row {
            None => Applied::default(),
            Some(row) if row.number.number() == self.applied().number => return Ok(()),
            Some(row) => Applied {
                number: row.number.number(),
                model: Some(parse(&row.body).map_err(|error| ApplyError::Text(error.to_string()))?),
                digest: Some(row.digest),
            },
        };
        let active = self.runtime.generations().active();
        let table = Table::build(&active, &self.extensions, &self.secrets, &self.ingress());
        *self.ingress.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(table);
        *self.applied.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(applied);
        Ok(())
    }
}
