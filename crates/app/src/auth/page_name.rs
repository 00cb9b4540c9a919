//! The name that the page is served under: a random one below `localhost` for each home.
//!
//! Cookies ignore ports, so whatever else listens on `localhost` (the dev server that an agent started, for
//! instance) would be sent the session's cookie, and could set one. A name that nobody else has keeps them apart.

use std::sync::OnceLock;

use super::{TokenError, letters};
use crate::home::Home;

/// What it begins with.
const BEGIN: &str = "conduit-";
/// What it ends with. Browsers take every name below it for this machine.
const END: &str = ".localhost";
/// Random bytes in it.
const BYTES: usize = 10;
/// Letters that these make.
const LETTERS: usize = 16;

/// The name of a home's page, and where a browser finds it.
#[derive(Debug)]
pub(crate) struct PageName {
    name: String,
    origin: OnceLock<String>,
}

impl PageName {
    /// The name of a home's page. The first call makes it, and it stays.
    ///
    /// # Errors
    /// [`TokenError`] when it can neither be read nor made.
    pub(crate) fn of_home(home: &Home) -> Result<Self, TokenError> {
        let path = home.page_name();
        let written = home.read_private(&path)?.map(|text| text.trim().to_owned());
        let name = if let Some(name) = written.filter(|name| is_page_name(name)) {
            name
        } else {
            let name = format!("{BEGIN}{}{END}", letters::<BYTES>()?);
            home.write_private(&path, name.as_bytes())?;
            name
        };
        Ok(Self { name, origin: OnceLock::new() })
    }

    /// The name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Notes where a browser finds the page, once the daemon listens.
    pub(crate) fn is_at(&self, origin: String) {
        self.origin.set(origin).expect("a daemon listens once");
    }

    /// Scheme, name and port of the page; none before the daemon listens.
    pub(crate) fn origin(&self) -> Option<&str> {
        self.origin.get().map(String::as_str)
    }
}

fn is_page_name(name: &str) -> bool {
    let letters = name.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(END));
    letters.is_some_and(|letters| {
        letters.len() == LETTERS
            && letters.bytes().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{PageName, is_page_name};
    use crate::home::Home;

    #[test]
    fn a_home_keeps_its_name_and_another_home_has_another() {
        let directory = tempfile::tempdir().unwrap();
        let home = |name: &str| {
            let home = Home::find(Some(directory.path().join(name)), None, None, Path::new("/")).unwrap();
            home.create().unwrap();
            home
        };
        let (one, two) = (home("one"), home("two"));
        let name_of = |home: &Home| PageName::of_home(home).unwrap().name().to_owned();
        let name = name_of(&one);
        assert!(is_page_name(&name), "{name}");
        assert_eq!(name_of(&one), name);
        assert_ne!(name_of(&two), name);
        std::fs::write(one.page_name(), "localhost").unwrap();
        assert!(is_page_name(&name_of(&one)), "a name that is not random is not kept");
    }
}
