//! Figures, the limits beside them, and what is asked of them.

use std::path::Path;

use serde::Serialize;

/// What is asked of a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Goal {
    /// The value itself, at least.
    AtLeast(f64),
    /// The value itself, at most.
    AtMost(f64),
    /// Its ratio to the limit, at least.
    RatioAtLeast(f64),
    /// Nothing; it is context.
    None,
}

/// One figure.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Figure {
    pub(crate) name: String,
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
    /// The raw limit that was measured beside it.
    pub(crate) limit: Option<f64>,
    pub(crate) ratio: Option<f64>,
    /// What is asked, in words.
    pub(crate) goal: Option<String>,
    /// Whether the goal is met, or does not bind on this machine.
    pub(crate) ok: bool,
    /// Whether the goal binds. Absolute ones do where commits are fast.
    pub(crate) binds: bool,
}

/// Every figure of a run.
#[derive(Debug, Default)]
pub(crate) struct Report {
    figures: Vec<Figure>,
    /// Whether a commit is fast enough here for absolute figures to bind.
    pub(crate) absolute_binds: bool,
}

impl Report {
    /// Adds context.
    pub(crate) fn note(&mut self, name: &str, value: f64, unit: &'static str) {
        self.add(name, value, unit, None, Goal::None);
    }

    /// Adds a figure. `limit` is the raw rate or time it is compared with.
    pub(crate) fn add(&mut self, name: &str, value: f64, unit: &'static str, limit: Option<f64>, goal: Goal) {
        self.push(name, (value, unit), limit, goal, true);
    }

    /// Adds a figure whose goal is absolute: it binds only where commits are fast.
    pub(crate) fn add_absolute(&mut self, name: &str, value: f64, unit: &'static str, goal: Goal) {
        self.push(name, (value, unit), None, goal, self.absolute_binds);
    }

    fn push(
        &mut self,
        name: &str,
        (value, unit): (f64, &'static str),
        limit: Option<f64>,
        goal: Goal,
        binds: bool,
    ) {
        let ratio = limit.map(|limit| value / limit);
        let (words, ok) = match goal {
            Goal::AtLeast(least) => (Some(format!("≥ {least}")), value >= least),
            Goal::AtMost(most) => (Some(format!("≤ {most}")), value <= most),
            Goal::RatioAtLeast(least) => {
                (Some(format!("≥ {least} of the limit")), ratio.is_some_and(|ratio| ratio >= least))
            }
            Goal::None => (None, true),
        };
        let ok = ok || !binds;
        let figure = Figure { name: name.to_owned(), value, unit, limit, ratio, goal: words, ok, binds };
        println!("{}", line(&figure));
        self.figures.push(figure);
    }

    pub(crate) fn all_good(&self) -> bool {
        self.figures.iter().all(|figure| figure.ok)
    }

    pub(crate) fn print(&self) {
        let missed: Vec<_> = self.figures.iter().filter(|figure| !figure.ok).collect();
        println!();
        if missed.is_empty() {
            println!("every goal is met ({} figures)", self.figures.len());
        } else {
            println!("{} of {} goals missed:", missed.len(), self.figures.len());
            for figure in missed {
                println!("{}", line(figure));
            }
        }
    }

    pub(crate) fn write(&self, path: &Path) -> std::io::Result<()> {
        let json = serde_json::to_vec_pretty(&self.figures).map_err(std::io::Error::other)?;
        std::fs::write(path, json)
    }
}

fn line(figure: &Figure) -> String {
    let limit = figure.limit.map_or(String::new(), |limit| format!("  limit {}", short(limit)));
    let ratio = figure.ratio.map_or(String::new(), |ratio| format!("  ratio {ratio:.2}"));
    let goal =
        figure.goal.as_ref().map_or(String::new(), |goal| format!("  goal {goal} {}", verdict(figure)));
    format!("{:<52} {:>12} {}{limit}{ratio}{goal}", figure.name, short(figure.value), figure.unit)
}

const fn verdict(figure: &Figure) -> &'static str {
    match (figure.ok, figure.binds) {
        (true, true) => "met",
        (true, false) => "(does not bind here)",
        (false, _) => "MISSED",
    }
}

fn short(value: f64) -> String {
    if value.abs() >= 100.0 { format!("{value:.0}") } else { format!("{value:.3}") }
}

/// Percentiles of a set of times, in milliseconds.
#[derive(Debug, Default)]
pub(crate) struct Times(Vec<f64>);

impl Times {
    pub(crate) fn push(&mut self, time: std::time::Duration) {
        self.0.push(time.as_secs_f64() * 1000.0);
    }

    pub(crate) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    pub(crate) const fn count(&self) -> usize {
        self.0.len()
    }

    /// The time that this share of all stayed within, in milliseconds.
    pub(crate) fn at(&mut self, share: f64) -> f64 {
        self.0.sort_by(f64::total_cmp);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a length is an index"
        )]
        let index = ((self.0.len().saturating_sub(1)) as f64 * share) as usize;
        self.0.get(index).copied().unwrap_or(f64::NAN)
    }
}
