//! Lines of successors: what has ended stays, and another Work goes on with its keys.

use std::collections::BTreeSet;

use domain::event::Key;
use domain::id::WorkId;
use domain::text::ExternalId;

use super::{Place, Reference};

/// What stands between a key and the number of its generation.
const GENERATION: &str = "/generation/";

/// A key without the number of a generation.
pub(crate) fn plain(key: &Key) -> Key {
    let id = key.external_id.as_str();
    let plain = id.rsplit_once(GENERATION).map_or(id, |(plain, _number)| plain);
    Key { source: key.source.clone(), external_id: ExternalId::known(plain) }
}

/// A key as a later generation has it.
fn qualified(key: &Key, generation: i64) -> Key {
    let id = format!("{}{GENERATION}{generation}", plain(key).external_id);
    Key { source: key.source.clone(), external_id: ExternalId::known(&id) }
}

impl Reference {
    /// The newest Work of the line that a Work is of.
    pub(super) fn newest(&self, id: WorkId) -> WorkId {
        let first = self.work(id).place.map_or(id, |place| place.first);
        let later = self.works.iter().filter_map(|work| Some((work.place?, work.record.id)));
        let of_line = later.filter(|(place, _id)| place.first == first);
        of_line.max_by_key(|(place, _id)| place.generation).map_or(first, |(_place, id)| id)
    }

    /// Where the successor of a Work stands.
    pub(super) fn place_after(&self, id: WorkId) -> Place {
        match self.work(id).place {
            Some(place) => Place { generation: place.generation + 1, ..place },
            None => Place { first: id, generation: 2 },
        }
    }

    /// The keys of the successor of a Work that an Event of this key reopens.
    pub(super) fn keys_after(&self, id: WorkId, key: &Key) -> BTreeSet<Key> {
        let generation = self.place_after(id).generation;
        let keys = self.work(id).record.keys.iter().chain([key]);
        keys.map(|key| qualified(key, generation)).collect()
    }

    /// The keys of a Work, and those that Events carry which lead to it.
    pub(super) fn keys_to(&self, id: WorkId) -> BTreeSet<Key> {
        let keys = &self.work(id).record.keys;
        keys.iter().cloned().chain(keys.iter().map(plain)).collect()
    }
}
