//! Whether the extensions that run in processes of their own answer.

use protocol::Standing;
use protocol::wire::Software;

use super::Checks;
use crate::daemon::Daemon;

/// One check for each.
pub(super) fn check(daemon: &Daemon, checks: &mut Checks) {
    for (name, standing) in daemon.extensions().outside.standings() {
        let (level, sentence) = match standing {
            Standing::Ready { pid, software } => {
                let Software { name: called, version } = software;
                ("ok", format!("extension `{name}` answers: {called} {version}, process {pid}"))
            }
            Standing::Starting => ("note", format!("extension `{name}` is being started")),
            Standing::Down { reason, ends } => {
                let times = if ends > 1 { format!(", {ends} times in a row") } else { String::new() };
                let sentence = format!(
                    "extension `{name}` does not answer, so what its routes would take waits: {reason}{times}; it is \
                     started again by itself, and its standard error is in the log"
                );
                ("error", sentence)
            }
            Standing::Stopped => ("error", format!("extension `{name}` was stopped")),
        };
        checks.add("extensions", level, sentence);
    }
}
