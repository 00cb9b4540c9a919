//! A text with the tone it is said in. What a tone looks like is up to whoever shows it; the words alone must
//! be enough.

/// How something is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Nothing special.
    Plain,
    /// It went well.
    Good,
    /// Somebody should look at it.
    Bad,
    /// It goes on.
    Active,
    /// It needs no attention.
    Quiet,
}

/// A text with its tone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    /// The text.
    pub(crate) text: String,
    /// The tone.
    pub(crate) tone: Tone,
}

impl Word {
    pub(crate) fn new(text: impl Into<String>, tone: Tone) -> Self {
        Self { text: text.into(), tone }
    }

    pub(crate) fn quiet(text: impl Into<String>) -> Self {
        Self::new(text, Tone::Quiet)
    }
}

impl From<String> for Word {
    fn from(text: String) -> Self {
        Self::new(text, Tone::Plain)
    }
}

impl From<&str> for Word {
    fn from(text: &str) -> Self {
        Self::new(text, Tone::Plain)
    }
}

/// The state of a run or a Work, or what became of an Event, in its tone.
pub(crate) fn state(word: &str) -> Word {
    let tone = match word {
        "completed" | "routed" | "handoff" => Tone::Good,
        "failed" | "quarantined" => Tone::Bad,
        "running" | "launching" => Tone::Active,
        "cancelled" | "unmatched" | "dropped" | "terminal" => Tone::Quiet,
        // A later daemon may know more words.
        _other => Tone::Plain,
    };
    Word::new(word, tone)
}
