//! Orders to a run, in sentences.

use super::event::because;
use super::time;
use crate::api::wire::OrderBody;

/// What became of an order, as it is told of its run.
pub(crate) fn sentence(order: &OrderBody) -> String {
    let event = &order.event;
    let why = because(order.reason.as_deref(), None);
    let again = order.due_at.as_deref().map(|at| format!(" at {}", time::absolute(at))).unwrap_or_default();
    match (order.order.as_str(), order.state.as_str()) {
        ("inject", "pending" | "dispatched") => format!("{event} is being given to it."),
        ("inject", "ambiguous") => {
            format!("Whether {event} reached it is not known{why}; it is given to it again{again}.")
        }
        ("inject", "accepted") => {
            format!(
                "{event} was given to it. Until it proves that it took it in, it is input of the next run."
            )
        }
        ("inject", "not_accepting") => format!("{event} was not taken{why}; it is input of the next run."),
        ("inject", "fell_back") => {
            format!("{event} could not be given to it{why}; its route falls back to queue, for the next run.")
        }
        ("inject", "consumed") => format!("It took in {event} while it ran."),
        ("inject", "stale") => {
            format!("It ended before {event} was given to it; that is left to the next run.")
        }
        ("interrupt", "pending" | "dispatched") => format!("It is to end for {event}."),
        ("interrupt", "ambiguous") => {
            format!("It could not be ended for {event} yet{why}; that is tried again{again}.")
        }
        ("interrupt", "accepted") => format!("It was interrupted for {event} and is being stopped."),
        ("interrupt", "delivered") => format!("It was interrupted for {event} and has stopped."),
        ("interrupt", "not_accepting") => format!("It was not ended for {event}{why}."),
        ("interrupt", "fell_back") => {
            format!(
                "It could not be ended for {event}{why}; its route falls back to queue, for the next run."
            )
        }
        ("interrupt", "stale") => format!("It had ended before it could be interrupted for {event}."),
        // A later daemon may know more words.
        (order, state) => format!("Its order to {order} {event} is `{state}`{why}."),
    }
}

/// Whether a run, by what may be ordered of it, can be interrupted.
pub(crate) fn can_interrupt(controls: &[String]) -> bool {
    controls.iter().any(|control| control == "interrupt")
}

/// Whether something can be given to it while it goes on.
pub(crate) fn can_inject(controls: &[String]) -> bool {
    controls.iter().any(|control| control == "inject")
}

#[cfg(test)]
mod tests {
    use super::sentence;
    use crate::api::wire::OrderBody;

    #[test]
    fn every_state_of_an_order_is_told() {
        let states = [
            "pending",
            "dispatched",
            "ambiguous",
            "accepted",
            "not_accepting",
            "fell_back",
            "consumed",
            "delivered",
            "stale",
        ];
        let mut told = Vec::new();
        for kind in ["inject", "interrupt"] {
            for state in states {
                let waits = matches!(state, "pending" | "dispatched" | "ambiguous");
                let said = matches!(state, "ambiguous" | "not_accepting" | "fell_back");
                told.push(sentence(&OrderBody {
                    event: "ev_1".to_owned(),
                    order: kind.to_owned(),
                    state: state.to_owned(),
                    tries: 1,
                    created_at: "2026-03-01T12:00:00Z".to_owned(),
                    due_at: waits.then(|| "2026-03-01T12:00:01Z".to_owned()),
                    reason: said.then(|| "the command has ended".to_owned()),
                }));
            }
        }
        insta::assert_snapshot!(told.join("\n"));
    }
}
