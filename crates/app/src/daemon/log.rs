//! The daemon's log: for people on a terminal, a JSON object a line otherwise. Always on standard error, where
//! a service manager picks it up.

use tracing_subscriber::EnvFilter;

/// What is logged where nothing else is said.
const DEFAULT: &str = "info";

/// The filter cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("OPEN_CONDUIT_LOG is a level such as `debug`, or a list such as `info,runtime=debug`")]
pub(crate) struct LogError;

/// Begins to log. `filter` is a level, or levels by module; `terminal` is whether a person reads along. Where
/// something logs already, as in tests, that goes on.
///
/// # Errors
/// [`LogError`] when the filter cannot be read.
pub(crate) fn start(filter: Option<&str>, terminal: bool) -> Result<(), LogError> {
    let filter = filter.filter(|filter| !filter.is_empty()).unwrap_or(DEFAULT);
    let filter = EnvFilter::builder().parse(filter).map_err(|_source| LogError)?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let started = if terminal {
        builder.with_target(false).try_init()
    } else {
        builder.json().flatten_event(true).with_current_span(false).try_init()
    };
    if started.is_err() {
        tracing::debug!("the log was started before");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::start;

    #[test]
    fn a_filter_that_cannot_be_read_is_refused() {
        assert!(start(Some("runtime=loudly"), false).is_err());
    }
}
