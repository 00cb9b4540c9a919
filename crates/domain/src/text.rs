//! Validated text: every name and identifier that comes from outside passes through one door.
//!
//! A database rejects some strings another accepts (NUL in PostgreSQL), a log line breaks on a newline, and
//! an index has a size. So each kind of text has its own type, checked once, and is cheap to clone.

use std::fmt;
use std::sync::Arc;

use thiserror::Error;

/// Why a text was refused. It never repeats the text: it may be a secret in the wrong field.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TextError {
    /// The text is empty.
    #[error("{what} must not be empty")]
    Empty {
        /// What the text was meant to be.
        what: &'static str,
    },
    /// The text is longer than its kind allows.
    #[error("{what} is longer than {bytes_max} bytes")]
    TooLong {
        /// What the text was meant to be.
        what: &'static str,
        /// The most bytes this kind of text may have.
        bytes_max: usize,
    },
    /// The text holds a control character.
    #[error("{what} holds a control character")]
    Control {
        /// What the text was meant to be.
        what: &'static str,
    },
    /// The text does not have the form its kind demands.
    #[error("{what} must be {form}")]
    Form {
        /// What the text was meant to be.
        what: &'static str,
        /// The form, in words.
        form: &'static str,
    },
}

/// Checks `text` against the rules that hold for every kind.
///
/// # Errors
/// [`TextError`] when the text is empty, longer than `bytes_max`, or holds a control character.
pub fn check(what: &'static str, text: &str, bytes_max: usize) -> Result<(), TextError> {
    if text.is_empty() {
        return Err(TextError::Empty { what });
    }
    if text.len() > bytes_max {
        return Err(TextError::TooLong { what, bytes_max });
    }
    if text.chars().any(char::is_control) {
        return Err(TextError::Control { what });
    }
    Ok(())
}

/// `text` as one line that any database, log or page can take: control characters become spaces, and what
/// is longer than `bytes_max` is cut between two characters.
pub fn plain(text: &str, bytes_max: usize) -> String {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

/// Whether `text` is a name as people type it: `a-z`, then `a-z`, `0-9`, `_`, `-`, `.` and `/`.
fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c.is_ascii_lowercase())
        && chars.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-' | '.' | '/'))
}

macro_rules! text_type {
    ($(#[$doc:meta])* $name:ident, $what:literal, $max:literal) => {
        text_type!($(#[$doc])* $name, $what, $max, |_text: &str| true, "");
    };
    ($(#[$doc:meta])* $name:ident, $what:literal, $max:literal, name) => {
        text_type!(
            $(#[$doc])* $name, $what, $max, is_name,
            "lower-case letters, digits, `_`, `-`, `.` and `/`, beginning with a letter"
        );
    };
    ($(#[$doc:meta])* $name:ident, $what:literal, $max:literal, $form:expr, $words:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// The most bytes it may have.
            pub const BYTES_MAX: usize = $max;

            /// Checks and wraps a text.
            ///
            /// # Errors
            /// [`TextError`] when the text is empty, too long, or not of the right form.
            pub fn new(text: impl AsRef<str>) -> Result<Self, TextError> {
                let text = text.as_ref();
                check($what, text, Self::BYTES_MAX)?;
                if !($form)(text) {
                    return Err(TextError::Form { what: $what, form: $words });
                }
                Ok(Self(Arc::from(text)))
            }

            /// Wraps a text that is known to be valid, such as a constant.
            ///
            /// # Panics
            /// When the text is not valid.
            pub fn known(text: &str) -> Self {
                Self::new(text).expect("a constant of the program is valid text")
            }

            /// The text itself.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }

        impl TryFrom<String> for $name {
            type Error = TextError;

            fn try_from(text: String) -> Result<Self, TextError> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(text: $name) -> Self {
                (*text.0).to_owned()
            }
        }

        impl std::str::FromStr for $name {
            type Err = TextError;

            fn from_str(text: &str) -> Result<Self, TextError> {
                Self::new(text)
            }
        }
    };
}

text_type!(
    /// The namespace a source delivers in, such as `hook/acme`. Deliveries and keys are unique within one.
    SourceName, "a source", 200
);
text_type!(
    /// A source's own name for one delivery; with the source it is the idempotency key.
    DeliveryId, "a delivery id", 512
);
text_type!(
    /// What happened, in dotted words: `core.turn.ended`, `build.finished`.
    EventType, "an event type", 128, is_name,
    "lower-case words joined by dots, such as `build.finished`"
);
text_type!(
    /// An identifier of the world outside, the second half of a [`crate::event::Key`].
    ExternalId, "an external id", 512
);
text_type!(
    /// The name of a subscription, for ever; with an Event's id it is the identity of that Event's alias.
    SubscriptionId, "a subscription id", 200
);
text_type!(
    /// A caller's own name for one call of the toolbelt, unique within its attempt.
    CallId, "a call id", 100
);
text_type!(
    /// A run's own name for one report of what it uses; with the run it is the identity of that report.
    ReportId, "a report id", 200
);
text_type!(
    /// The name of a scope.
    ScopeName, "a scope name", 128, name
);
text_type!(
    /// The name of a route, unique within its scope.
    RouteName, "a route name", 128, name
);
text_type!(
    /// The name of a binding, unique within its scope.
    BindingName, "a binding name", 128, name
);
text_type!(
    /// What a binding calls the account that its executor uses, the same in every scope.
    CredentialName, "a credential name", 128, name
);
text_type!(
    /// The name of an extension entry, unique within its scope.
    EntryName, "an extension entry name", 128, name
);
text_type!(
    /// The registered name of a handler.
    HandlerName, "a handler name", 64, name
);
text_type!(
    /// The registered name of an executor.
    ExecutorName, "an executor name", 64, name
);
text_type!(
    /// The kind of a Work, which decides its lifecycle: `manual.work`, `schedule.job`.
    WorkKind, "a work kind", 64, name
);
text_type!(
    /// What Works of one scope share that must not run at the same time: `deploy`, `worktree/site`.
    ConcurrencyKey, "a concurrency key", 256
);
text_type!(
    /// A stable word for a reason or an error: `key_conflict`, `lease_lost`.
    Code, "a code", 64, name
);
text_type!(
    /// The unit of a budget: `usd`, `tokens`, `turns`, or an executor's own.
    Unit, "a unit", 64, name
);

impl EventType {
    /// The type for what a sender calls it, such as `Push Hook` or `com.example.someEvent`: in lower case, with
    /// `_` for what a type cannot hold.
    ///
    /// # Errors
    /// [`TextError`] when it is empty, too long, or does not begin with a letter.
    pub fn of_sender(word: &str) -> Result<Self, TextError> {
        let letters = word.chars().map(|letter| match letter.to_ascii_lowercase() {
            letter @ ('a'..='z' | '0'..='9' | '.' | '-' | '/') => letter,
            _other => '_',
        });
        Self::new(letters.collect::<String>())
    }

    /// Whether the type belongs to the runtime itself. No client, extension or execution may send one.
    pub fn is_core(&self) -> bool {
        self.as_str() == "core" || self.as_str().starts_with("core.")
    }
}

impl SourceName {
    /// What the namespaces of CloudEvents begin with.
    const CLOUD_EVENTS: &str = "cloudevents:";

    /// The namespace of a CloudEvent's `source`. Two sources never share one.
    ///
    /// # Errors
    /// [`TextError`] when it is too long or holds a control character.
    pub fn of_cloud_event(source: &str) -> Result<Self, TextError> {
        Self::new(format!("{}{source}", Self::CLOUD_EVENTS))
    }

    /// Whether CloudEvents are delivered in the namespace. Nobody else may deliver there.
    pub fn is_of_cloud_events(&self) -> bool {
        self.as_str().starts_with(Self::CLOUD_EVENTS)
    }

    /// Whether the namespace belongs to the runtime itself.
    pub fn is_core(&self) -> bool {
        self.as_str() == "core" || self.as_str().starts_with("core.")
    }
}

#[cfg(test)]
mod tests {
    use super::{DeliveryId, EventType, ScopeName, SourceName, TextError, plain};

    #[test]
    fn new_refuses_what_a_database_or_a_log_would_trip_over() {
        assert_eq!(DeliveryId::new(""), Err(TextError::Empty { what: "a delivery id" }));
        assert_eq!(DeliveryId::new("a\0b"), Err(TextError::Control { what: "a delivery id" }));
        assert_eq!(DeliveryId::new("a\nb"), Err(TextError::Control { what: "a delivery id" }));
        assert_eq!(
            DeliveryId::new("x".repeat(513)),
            Err(TextError::TooLong { what: "a delivery id", bytes_max: 512 })
        );
        assert!(DeliveryId::new("x".repeat(512)).is_ok());
        assert!(DeliveryId::new("é 🦀").is_ok());
    }

    #[test]
    fn new_demands_the_form_of_a_name() {
        for good in ["main", "team/eng", "a1_b-c.d"] {
            assert!(ScopeName::new(good).is_ok(), "{good}");
        }
        for bad in ["Main", "1st", "-x", "a b", "a:b"] {
            assert!(ScopeName::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn is_core_does_not_take_a_neighbor_for_the_family() {
        assert!(EventType::known("core.retry.due").is_core());
        assert!(!EventType::known("corelation.found").is_core());
        assert!(SourceName::known("core.manual").is_core());
    }

    #[test]
    fn of_sender_makes_a_type_of_a_foreign_word() {
        let of = |word: &str| EventType::of_sender(word).map(String::from);
        assert_eq!(of("com.example.someEvent"), Ok("com.example.someevent".to_owned()));
        assert_eq!(of("Push Hook:tag/é"), Ok("push_hook_tag/_".to_owned()));
        assert!(of("1st").is_err() && of("").is_err() && of(&"x".repeat(129)).is_err());
        assert!(EventType::of_sender("CORE.retry.due").unwrap().is_core());
    }

    #[test]
    fn of_cloud_event_keeps_the_source_as_it_is_or_refuses_it() {
        let of = |source: &str| SourceName::of_cloud_event(source);
        assert_eq!(of("/a").unwrap().as_str(), "cloudevents:/a");
        assert!(of("core.manual").unwrap().is_of_cloud_events() && !of("core").unwrap().is_core());
        assert!(!SourceName::known("cloudevents").is_of_cloud_events());
        assert!(of(&"x".repeat(188)).is_ok());
        assert!(of(&"x".repeat(189)).is_err() && of("a\n").is_err());
    }

    #[test]
    fn plain_takes_what_a_database_would_refuse_and_cuts_between_letters() {
        assert_eq!(plain("a\0b\nc", 99), "a b c");
        assert_eq!(plain("aé", 2), "a");
        assert_eq!(plain("aé", 3), "aé");
    }

    #[test]
    fn errors_never_repeat_the_text() {
        let error = ScopeName::new("S3CRET").unwrap_err().to_string();
        assert!(!error.contains("S3CRET"), "{error}");
    }
}
