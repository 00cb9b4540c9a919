//! Successors: what goes on with a key whose Work has ended, where a route allows it.
//!
//! What has ended stays as it is, with its keys. A successor is a Work of its own, with the same keys of the next
//! generation: `42` becomes `42/generation/2`, then `42/generation/3`. Whoever names the plain key on a route that
//! reopens is led to the newest generation, always the same way: from the owner of the plain key to the first of its
//! line, and from there to the newest.

use thiserror::Error;

use crate::event::Key;
use crate::id::WorkId;
use crate::text::ExternalId;

/// The type of the Event that tells of a new Work which succeeds another one.
pub const WORK_CREATED: &str = "core.work.created";
/// What stands between a key and the number of its generation.
const QUALIFIER: &str = "/generation/";

/// A Work's place in a line of successors. The first of a line has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Succession {
    /// The Work.
    pub work: WorkId,
    /// The one before it.
    pub predecessor: WorkId,
    /// The first of the line.
    pub first: WorkId,
    /// Its number in the line, from 2.
    pub generation: i64,
}

impl Succession {
    /// The place after a Work, which is the first of its line when it has no place of its own.
    pub fn after(predecessor: WorkId, place: Option<Self>, work: WorkId) -> Self {
        match place {
            Some(place) => {
                Self { work, predecessor, first: place.first, generation: place.generation.saturating_add(1) }
            }
            None => Self { work, predecessor, first: predecessor, generation: 2 },
        }
    }
}

/// The key of the next generation would be too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a key is too long for the number of a generation behind it")]
pub struct TooLong;

/// A key as the generation `generation` of a line has it, whichever generation it is named by.
///
/// # Errors
/// [`TooLong`].
pub fn qualified(key: &Key, generation: i64) -> Result<Key, TooLong> {
    let plain = plain(key.external_id.as_str());
    let external_id = ExternalId::new(format!("{plain}{QUALIFIER}{generation}")).map_err(|_long| TooLong)?;
    Ok(Key { source: key.source.clone(), external_id })
}

/// The plain keys of those that name a generation. Events carry them.
pub fn plain_keys(keys: &[Key]) -> Vec<Key> {
    let named = |key: &Key| {
        let plain = plain(key.external_id.as_str());
        (plain != key.external_id.as_str())
            .then(|| Key { source: key.source.clone(), external_id: ExternalId::known(plain) })
    };
    keys.iter().filter_map(named).collect()
}

/// An identifier without the generation at its end.
fn plain(id: &str) -> &str {
    match id.rsplit_once(QUALIFIER) {
        Some((plain, number))
            if !plain.is_empty() && number.parse::<u32>().is_ok_and(|number| number > 1) =>
        {
            plain
        }
        Some(_) | None => id,
    }
}

#[cfg(test)]
mod tests {
    use super::{Succession, plain_keys, qualified};
    use crate::event::Key;
    use crate::id::WorkId;
    use crate::text::{ExternalId, SourceName};

    fn key(id: &str) -> Key {
        Key { source: SourceName::known("ci"), external_id: ExternalId::known(id) }
    }

    #[test]
    fn a_key_is_qualified_by_one_generation_only() {
        assert_eq!(qualified(&key("42"), 2), Ok(key("42/generation/2")));
        assert_eq!(qualified(&key("42/generation/2"), 3), Ok(key("42/generation/3")));
        for plain in ["42/generation/", "42/generation/x", "42/generation/1", "/generation/2"] {
            assert_eq!(qualified(&key(plain), 2), Ok(key(&format!("{plain}/generation/2"))), "{plain}");
        }
        let longest = key(&"x".repeat(ExternalId::BYTES_MAX));
        assert!(qualified(&longest, 2).is_err());
    }

    #[test]
    fn plain_keys_are_those_that_events_carry() {
        assert_eq!(plain_keys(&[key("a"), key("b/generation/7")]), [key("b")]);
    }

    #[test]
    fn a_line_is_counted_from_its_first() {
        let [first, second, third] = [1, 2, 3].map(WorkId::from_number);
        let place = Succession::after(first, None, second);
        assert_eq!((place.predecessor, place.first, place.generation), (first, first, 2));
        let next = Succession::after(second, Some(place), third);
        assert_eq!((next.predecessor, next.first, next.generation), (second, first, 3));
    }
}
