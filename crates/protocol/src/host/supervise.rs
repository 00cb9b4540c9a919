//! Looking after a process: started, introduced, watched, ended, and started again.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use super::backoff::Backoff;
use super::connection::{CallError, Connection};
use super::launch::{Launch, Launched};
use super::{CALL_WITHIN, Process, Ready, State, owns, said};
use crate::wire::{InitializeParams, InitializeResult, Limits, Software, VERSION_MAX, VERSION_MIN, method};

/// How long a process may take to end once nobody asks it any more, before it is killed.
const ENDED_WITHIN: Duration = Duration::from_secs(2);
/// How long the last words of a process that has ended are waited for.
const HEARD_WITHIN: Duration = Duration::from_secs(1);

/// How one start came to its end.
struct End {
    reason: String,
    /// How long it had answered.
    answered: Duration,
}

/// Starts a process again and again, until the end.
pub(super) async fn run(
    process: &Process,
    launch: &dyn Launch,
    runtime: &Software,
    on_ready: &(dyn Fn() + Send + Sync),
) {
    let mut backoff = Backoff::default();
    for start in 1.. {
        let Some(end) = once(process, launch, (start, runtime), on_ready).await else { break };
        let wait = backoff.ended(end.answered);
        let (extension, reason, ends) = (&process.name, end.reason, backoff.ends());
        tracing::warn!(extension, reason, ends, again_in_ms = wait.as_millis(), "an extension has ended");
        process.state.send_replace(State::Down { reason, ends });
        // A due time, or the end.
        if tokio::time::timeout(wait, process.ending.cancelled()).await.is_ok() {
            break;
        }
    }
    process.state.send_replace(State::Stopped);
}

/// One start, to its end. None when it is the last one.
async fn once(
    process: &Process,
    launch: &dyn Launch,
    (start, runtime): (u64, &Software),
    on_ready: &(dyn Fn() + Send + Sync),
) -> Option<End> {
    let launched = tokio::select! {
        () = process.ending.cancelled() => return None,
        launched = launch.launch() => launched,
    };
    let never = |reason| Some(End { reason, answered: Duration::ZERO });
    let launched = match launched {
        Ok(launched) => launched,
        Err(reason) => return never(reason),
    };
    let Launched { pid, input, output, errors, secrets, kill, mut ended } = launched;
    let (connection, work) = Connection::open(start, input, output);
    let (mut talk, mut hear) = (JoinSet::new(), JoinSet::new());
    talk.spawn(work);
    let name = process.name.clone();
    hear.spawn(async move { said::copy(&name, errors, &secrets).await });

    let mut ready_at = None;
    let serving = async {
        let ready = introduce(process, &connection, pid, runtime).await?;
        ready_at = Some(Instant::now());
        tracing::info!(
            extension = process.name,
            pid,
            version = ready.software.version,
            "an extension answers"
        );
        process.state.send_replace(State::Ready(Arc::new(ready)));
        on_ready();
        Err::<(), String>(connection.broken().await)
    };
    let mut how = None;
    let why = tokio::select! {
        biased;
        () = process.ending.cancelled() => None,
        end = &mut ended => {
            how = Some(end.unwrap_or_default());
            // What it did before it ended says more.
            connection.said().filter(|said| !has_closed(said)).or_else(|| how.clone())
        }
        broken = serving => broken.err(),
    };
    let answered = ready_at.map_or(Duration::ZERO, |at| at.elapsed());
    // From here on it is not asked any more; what waits fails with the reason.
    let reason = why.clone().unwrap_or_else(|| "the daemon stops".to_owned());
    process.state.send_replace(State::Down { reason: reason.clone(), ends: 0 });
    connection.give_up(&reason);
    // To its end, since whoever waits for an answer learns it there; it closes the process's input, too.
    drop(talk.join_next().await);
    if how.is_none() {
        // One that was told to end, or has closed its output, may end by itself; what is broken may not.
        let patience = if why.is_none() || has_closed(&reason) { ENDED_WITHIN } else { Duration::ZERO };
        how = tokio::time::timeout(patience, &mut ended).await.ok().map(Result::unwrap_or_default);
        kill();
        if how.is_none() {
            drop(tokio::time::timeout(ENDED_WITHIN, &mut ended).await);
        }
    }
    drop(tokio::time::timeout(HEARD_WITHIN, hear.join_next()).await);
    why?;
    // How it ended says more than that its output has.
    let reason = if has_closed(&reason) { how.unwrap_or(reason) } else { reason };
    Some(End { reason, answered })
}

fn has_closed(reason: &str) -> bool {
    reason == super::connection::CLOSED
}

/// Introduces both sides. The version is the newest that both speak.
async fn introduce(
    process: &Process,
    connection: &Arc<Connection>,
    pid: u32,
    runtime: &Software,
) -> Result<Ready, String> {
    let params = InitializeParams {
        protocol_min: VERSION_MIN,
        protocol_max: VERSION_MAX,
        runtime: runtime.clone(),
        limits: Limits::OURS,
    };
    let asked = connection.call::<InitializeResult>(method::INITIALIZE, &params, CALL_WITHIN).await;
    let InitializeResult { protocol, extension: software, capabilities: offers } =
        asked.map_err(|error| match error {
            CallError::Refused(body) => format!("it refuses `initialize`: {}", body.message),
            CallError::Unavailable(_) | CallError::Unreadable { .. } | CallError::TooLong => {
                error.to_string()
            }
        })?;
    if !(VERSION_MIN..=VERSION_MAX).contains(&protocol) {
        return Err(format!(
            "it speaks version {protocol} of the protocol, and this daemon {VERSION_MIN} to {VERSION_MAX}"
        ));
    }
    let names = offers.handlers.iter().chain(&offers.ingresses);
    if names.into_iter().any(|offered| !owns(&process.name, offered)) {
        let name = &process.name;
        return Err(format!("it offers what is called neither `{name}` nor `{name}.` and more"));
    }
    Ok(Ready { connection: Arc::clone(connection), pid, software, offers })
}
