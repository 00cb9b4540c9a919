//! What stands around every page: where one can go, and how the daemon is.

use super::asset::{self, Paths};
use super::{Visit, needs};
use crate::api::doctor;
use crate::api::failure::Failure;
use crate::view::needs::Need;
use crate::view::time;

/// A place in the navigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Runs,
    Events,
    Work,
    Config,
    Health,
    Settings,
    /// None of them.
    Elsewhere,
}

impl Place {
    /// Those one goes to most.
    pub(super) const FIRST: [Self; 3] = [Self::Runs, Self::Events, Self::Work];
    /// The others.
    pub(super) const SECOND: [Self; 3] = [Self::Config, Self::Health, Self::Settings];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Runs => "Runs",
            Self::Events => "Events",
            Self::Work => "Work",
            Self::Config => "Config",
            Self::Health => "Health",
            Self::Settings => "Settings",
            Self::Elsewhere => "",
        }
    }

    pub(super) const fn path(self) -> &'static str {
        match self {
            Self::Runs | Self::Elsewhere => "/",
            Self::Events => "/events",
            Self::Work => "/work",
            Self::Config => "/config",
            Self::Health => "/health",
            Self::Settings => "/settings",
        }
    }

    pub(super) const fn icon(self) -> &'static str {
        match self {
            Self::Runs | Self::Elsewhere => "i-runs",
            Self::Events => "i-events",
            Self::Work => "i-work",
            Self::Config => "i-config",
            Self::Health => "i-health",
            Self::Settings => "i-key",
        }
    }

    pub(super) const fn is_runs(self) -> bool {
        matches!(self, Self::Runs)
    }
}

/// What stands around a page.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) assets: Paths,
    pub(super) theme: Option<&'static str>,
    place: Place,
    /// How many things wait for a person.
    pub(super) needs: usize,
    /// What they are.
    pub(super) asks: Vec<Need>,
    /// Attempts that this daemon speaks for.
    pub(super) running: usize,
    /// How long the daemon has run.
    pub(super) up: String,
    pub(super) generation: i64,
    /// Whether the configuration file says something else than what is in force.
    pub(super) edited: bool,
    /// The reader's zone in words.
    pub(super) zone: String,
    /// When the page was made.
    pub(super) now: String,
    /// From where the change feed goes on behind it.
    pub(super) cursor: Option<String>,
}

impl Frame {
    /// Reads what stands around a page.
    ///
    /// # Errors
    /// When the store does not answer.
    pub(super) async fn read(visit: &Visit, place: Place) -> Result<Self, Failure> {
        let status = doctor::glance(&visit.daemon).await?;
        let asks = needs::read(visit).await?;
        let up = time::between(Some(&status.started_at), Some(&status.now)).unwrap_or_default();
        Ok(Self {
            needs: asks.len(),
            asks,
            running: status.running,
            up: time::span(up),
            generation: status.generation,
            edited: status.config_edited,
            ..Self::bare(visit, place)
        })
    }

    /// What stands around a page that nothing can be read for.
    pub(super) fn bare(visit: &Visit, place: Place) -> Self {
        Self {
            assets: asset::paths(),
            theme: visit.reader.theme,
            place,
            needs: 0,
            asks: Vec::new(),
            running: 0,
            up: "for some time".to_owned(),
            generation: visit.daemon.applied().number,
            edited: false,
            zone: visit.reader.clock.zone(),
            now: visit.reader.clock.now().to_string(),
            cursor: visit.cursor.clone(),
        }
    }

    pub(super) fn is_at(&self, place: Place) -> bool {
        self.place == place
    }
}
