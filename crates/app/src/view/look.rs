//! How a state is shown: a word, a shape and a family of colours, from one table. The word alone must be enough.

use super::{Tone, Word};

/// What kind of thing a state is. A family has one colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    /// It goes on.
    Run,
    /// It goes on by itself at a time.
    Wait,
    /// It went well.
    Done,
    /// It went wrong.
    Fail,
    /// It is a person's turn.
    Need,
    /// It has no effect, or none yet.
    Idle,
    /// Its end was not seen.
    Odd,
}

/// How a state is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Look {
    /// In lower case.
    pub(crate) word: String,
    /// Its family.
    pub(crate) family: Family,
    /// The name of its shape in the sprite.
    pub(crate) icon: &'static str,
}

impl Look {
    fn new(word: &str, family: Family, icon: &'static str) -> Self {
        Self { word: word.to_owned(), family, icon }
    }

    /// The same with something said after a comma.
    pub(crate) fn but(mut self, addition: &str) -> Self {
        self.word = format!("{}, {addition}", self.word);
        self
    }

    /// The same in another family.
    pub(crate) const fn of(mut self, family: Family, icon: &'static str) -> Self {
        self.family = family;
        self.icon = icon;
        self
    }

    /// The word as it begins a cell.
    pub(crate) fn title(&self) -> String {
        let mut letters = self.word.chars();
        letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
    }

    /// Its style class.
    pub(crate) const fn class(&self) -> &'static str {
        match self.family {
            Family::Run => "run live",
            Family::Wait => "wait",
            Family::Done => "done",
            Family::Fail => "fail",
            Family::Need => "need",
            Family::Idle => "idle",
            Family::Odd => "odd",
        }
    }

    /// The word in its tone.
    pub(crate) fn word(&self) -> Word {
        let tone = match self.family {
            Family::Run | Family::Wait => Tone::Active,
            Family::Done => Tone::Good,
            Family::Fail | Family::Need | Family::Odd => Tone::Bad,
            Family::Idle => Tone::Quiet,
        };
        Word::new(self.word.as_str(), tone)
    }
}

/// A state of a run or a Work, or what became of an Event, by its word on the wire.
pub(crate) fn state(word: &str) -> Look {
    match word {
        "launching" => Look::new("launching", Family::Run, "i-run"),
        "running" => Look::new("running", Family::Run, "i-run"),
        "completed" => Look::new("completed", Family::Done, "i-done"),
        "parked" => Look::new("parked", Family::Wait, "i-wait"),
        "waiting" => Look::new("waiting", Family::Wait, "i-wait"),
        "handoff" => Look::new("handed off", Family::Done, "i-handoff"),
        "failed" => Look::new("failed", Family::Fail, "i-fail"),
        "cancelled" => Look::new("cancelled", Family::Idle, "i-cancel"),
        "ready" => Look::new("ready", Family::Idle, "i-ready"),
        "routed" => Look::new("routed", Family::Done, "i-route"),
        "unmatched" => Look::new("unmatched", Family::Idle, "i-unmatched"),
        "dropped" => Look::new("dropped", Family::Idle, "i-drop"),
        "terminal" => Look::new("too late", Family::Idle, "i-skip"),
        "quarantined" => Look::new("quarantined", Family::Need, "i-quarantine"),
        "waits" => Look::new("waits", Family::Idle, "i-wait"),
        "held" => Look::new("held", Family::Need, "i-held"),
        "refused" => Look::new("refused", Family::Need, "i-refused"),
        // A later daemon may know more words.
        other => Look::new(other, Family::Odd, "i-unknown"),
    }
}

/// What a route says to an Event, by its word on the wire.
pub(crate) fn answer(word: &str) -> Look {
    match word {
        "matched" => Look::new("matches", Family::Done, "i-route"),
        "no_match" => Look::new("does not match", Family::Idle, "i-unmatched"),
        "failed" => Look::new("fails", Family::Fail, "i-fail"),
        "not_asked" => Look::new("not asked", Family::Idle, "i-skip"),
        // A later daemon may know more words.
        other => Look::new(other, Family::Odd, "i-unknown"),
    }
}

/// Another delivery of an Event that was accepted before.
pub(crate) fn duplicate() -> Look {
    Look::new("duplicate", Family::Idle, "i-dup")
}

/// What the runtime says about a run, and no route asked for.
pub(crate) fn announced() -> Look {
    Look::new("announced", Family::Idle, "i-bell")
}

/// An Event that waits to be routed.
pub(crate) fn unrouted() -> Look {
    Look::new("waiting", Family::Idle, "i-ready")
}

/// A lane that stands still.
pub(crate) fn blocked() -> Look {
    Look::new("blocked", Family::Need, "i-held")
}

/// How bad it is what a check found, by its word on the wire.
pub(crate) fn level(word: &str) -> Look {
    match word {
        "ok" => Look::new("ok", Family::Done, "i-done"),
        "note" => Look::new("note", Family::Idle, "i-comment"),
        "warning" => Look::new("warning", Family::Need, "i-need"),
        "error" => Look::new("error", Family::Fail, "i-fail"),
        // A later daemon may know more words.
        other => Look::new(other, Family::Odd, "i-unknown"),
    }
}

#[cfg(test)]
mod tests {
    use domain::execution::ExecutionState;

    use super::{Family, state};

    #[test]
    fn every_state_of_a_run_is_known() {
        for known in ExecutionState::ALL {
            assert_ne!(state(known.as_str()).family, Family::Odd, "{known:?}");
        }
        assert_eq!(state("handoff").title(), "Handed off");
        assert_eq!(state("moonlit").family, Family::Odd);
    }
}
