//! Attempts that stand still: whose output does not grow for as long as their binding allows.
//!
//! What an attempt writes is its sign of life. How much that is gets looked at ten times within the time it may be
//! quiet, by the runtime's own clock, so that neither a wall clock that jumps nor a file's time can end a run. Each
//! active segment is watched by itself: parked time does not count, and a run that is adopted begins anew.

use std::time::Duration;

use domain::execution::Execution;
use extension::LogRequest;

use crate::execute::Equipment;
use crate::stage;

/// How often it is looked within the time that an attempt may be quiet.
const LOOKS: u32 = 10;
/// The shortest pause between two looks.
const PAUSE_MIN: Duration = Duration::from_secs(1);

/// Comes back when an attempt has written nothing for as long as its binding allows, with that time. Never, where
/// it allows any.
pub(super) async fn too_long(execution: &Execution, equipment: &Equipment) -> Duration {
    let Some(seconds) = equipment.binding.inactivity_seconds else { return std::future::pending().await };
    let limit = Duration::from_secs(u64::from(seconds));
    let pause = (limit / LOOKS).max(PAUSE_MIN);
    let mut written = size(execution, equipment).await;
    let mut quiet = Duration::ZERO;
    while quiet < limit {
        stage::pause(pause).await;
        quiet += pause;
        let now = size(execution, equipment).await;
        // What cannot be told is no silence.
        if now.is_none() || now != written {
            (written, quiet) = (now, Duration::ZERO);
        }
    }
    limit
}

/// How many bytes it has written.
async fn size(execution: &Execution, equipment: &Equipment) -> Option<u64> {
    let request = LogRequest { execution: execution.id, from: 0, bytes_max: 0 };
    match equipment.executor.log(request).await {
        Ok(log) => Some(log.size),
        Err(error) => {
            tracing::debug!(execution = %execution.id, %error, "the output of a run could not be looked at");
            None
        }
    }
}
