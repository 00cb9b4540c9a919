//! Names with a wildcard for their last words: `build.*`.

/// A name, a family of names, or all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// Exactly this one.
    Exact(String),
    /// Every name that begins with this and goes on. It ends with a separator.
    Family(String),
    /// Every name.
    Any,
}

impl Pattern {
    /// Reads a pattern. Words are separated by one of `separators`, and `*` stands for one or more whole
    /// words at the end.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub(crate) fn parse(text: &str, separators: &[char]) -> Result<Self, &'static str> {
        if text == "*" {
            return Ok(Self::Any);
        }
        let Some(family) = text.strip_suffix('*') else {
            if text.contains('*') {
                return Err("may have a `*` only as its whole last word");
            }
            return Ok(Self::Exact(text.to_owned()));
        };
        if family.contains('*')
            || !family.ends_with(separators)
            || family.trim_end_matches(separators).is_empty()
        {
            return Err("may have a `*` only as its whole last word");
        }
        Ok(Self::Family(family.to_owned()))
    }

    /// Whether it takes this name.
    pub(crate) fn takes(&self, name: &str) -> bool {
        match self {
            Self::Exact(exact) => exact == name,
            Self::Family(family) => name.len() > family.len() && name.starts_with(family.as_str()),
            Self::Any => true,
        }
    }

    /// Whether it names exactly this.
    pub(crate) fn names(&self, name: &str) -> bool {
        match self {
            Self::Exact(exact) => exact == name,
            Self::Family(_) | Self::Any => false,
        }
    }

    /// As it is written.
    pub(crate) fn as_written(&self) -> String {
        match self {
            Self::Exact(exact) => exact.clone(),
            Self::Family(family) => format!("{family}*"),
            Self::Any => "*".to_owned(),
        }
    }
}
