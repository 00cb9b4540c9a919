//! An entry's configuration, and what it reads from a request that was verified.

use extension::{
    ConfigProblem, DeliveryId, EventType, ExternalId, HttpDelivery, IngressEntry, IngressRefusal, Key,
    SourceName,
};
use serde_json::Value;

use super::standard;
use super::verify::Verify;
use crate::table::Table;

/// Headers by which senders name a request, the best first.
const ID_HEADERS: &[&str] = &["idempotency-key", "x-request-id"];

/// A prepared entry.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) namespace: SourceName,
    pub(super) verify: Verify,
    event_type: TypeSource,
    delivery_id: Option<Place>,
    key: Option<KeyField>,
}

/// Where an event's type comes from.
#[derive(Debug)]
enum TypeSource {
    Fixed(EventType),
    Read { place: Place, prefix: String },
}

/// A place in a request.
#[derive(Debug)]
enum Place {
    /// A header, in lower case.
    Header(String),
    /// A JSON pointer into the body.
    Field(String),
}

#[derive(Debug)]
struct KeyField {
    pointer: String,
    prefix: String,
}

impl Entry {
    /// Reads a configuration.
    ///
    /// # Errors
    /// Every problem found.
    pub(super) fn read(entry: &IngressEntry) -> Result<Self, Vec<ConfigProblem>> {
        let mut problems = Vec::new();
        let known = ["namespace", "verify", "type", "delivery_id", "key"];
        let table = Table::root(&entry.config, &known, &mut problems);
        let namespace = table.namespace("namespace", &mut problems);
        let verify = Verify::read(&table, &entry.secret_names, &mut problems);
        let is_standard = matches!(verify, Some(Verify::Standard(_)));
        let event_type = if is_standard && table.get("type").is_none() {
            // Where the bodies that Standard Webhooks recommends have it.
            Some(TypeSource::Read { place: Place::Field("/type".to_owned()), prefix: String::new() })
        } else {
            TypeSource::read(&table, &mut problems)
        };
        let id = table.table("delivery_id", &["header", "field"], &mut problems);
        let mut delivery_id = id.and_then(|id| Place::read(&id, &mut problems));
        if is_standard {
            if table.get("delivery_id").is_some() {
                let message = "must be left out: the id is `webhook-id`, which is signed";
                problems.push(ConfigProblem::at(table.path("delivery_id"), message));
            }
            delivery_id = Some(Place::Header(standard::ID.to_owned()));
        }
        let key = table.table("key", &["field", "prefix"], &mut problems);
        let key = key.and_then(|key| KeyField::read(&key, &mut problems));
        match (namespace, verify, event_type) {
            (Some(namespace), Some(verify), Some(event_type)) if problems.is_empty() => {
                Ok(Self { namespace, verify, event_type, delivery_id, key })
            }
            (_namespace, _verify, _event_type) => Err(problems),
        }
    }

    pub(super) fn event_type(
        &self,
        request: &HttpDelivery,
        body: &Value,
    ) -> Result<EventType, IngressRefusal> {
        let (place, prefix) = match &self.event_type {
            TypeSource::Fixed(event_type) => return Ok(event_type.clone()),
            TypeSource::Read { place, prefix } => (place, prefix),
        };
        let named = place.get(request, body).ok_or_else(|| malformed("the event's type is missing"))?;
        // Senders write `Push Hook` and `push:tag`; a type here is lower-case words.
        let event_type = EventType::of_sender(&format!("{prefix}{}", named.trim()))
            .map_err(|error| malformed(&error.to_string()))?;
        if event_type.is_core() {
            return Err(malformed("the event's type belongs to the runtime"));
        }
        Ok(event_type)
    }

    pub(super) fn delivery_id(
        &self,
        request: &HttpDelivery,
        body: &Value,
    ) -> Result<DeliveryId, IngressRefusal> {
        let id = if let Some(place) = &self.delivery_id {
            place.get(request, body).ok_or_else(|| malformed("the delivery's id is missing"))?
        } else {
            let named = ID_HEADERS.iter().find_map(|header| request.header(header));
            named.unwrap_or(&request.fresh_id).to_owned()
        };
        DeliveryId::new(id).map_err(|error| malformed(&error.to_string()))
    }

    /// The key, when the body has its field. An Event of another shape is keyless, not refused.
    pub(super) fn key(&self, body: &Value) -> Result<Option<Key>, IngressRefusal> {
        let Some(key) = &self.key else { return Ok(None) };
        let Some(value) = body.pointer(&key.pointer).filter(|value| !value.is_null()) else {
            return Ok(None);
        };
        let id = plain_text(value).ok_or_else(|| malformed("the key's field holds no text and no number"))?;
        let external_id = ExternalId::new(format!("{}{id}", key.prefix));
        let external_id = external_id.map_err(|error| malformed(&error.to_string()))?;
        Ok(Some(Key { source: self.namespace.clone(), external_id }))
    }
}

impl TypeSource {
    fn read(table: &Table<'_>, problems: &mut Vec<ConfigProblem>) -> Option<Self> {
        let Some(value) = table.get("type") else {
            problems.push(ConfigProblem::at(table.path("type"), "is required"));
            return None;
        };
        let reserved = "`core` and `core.*` belong to the runtime";
        if value.is_string() {
            let event_type: EventType = table.parsed("type", problems)?;
            if event_type.is_core() {
                problems.push(ConfigProblem::at(table.path("type"), reserved));
            }
            return Some(Self::Fixed(event_type));
        }
        let read = table.table("type", &["header", "field", "prefix"], problems)?;
        let prefix = read.text("prefix", problems).unwrap_or_default().to_owned();
        if !prefix.is_empty()
            && let Err(error) = EventType::new(&prefix)
        {
            problems.push(ConfigProblem::at(read.path("prefix"), error.to_string()));
        }
        if prefix.starts_with("core.") {
            problems.push(ConfigProblem::at(read.path("prefix"), reserved));
        }
        Some(Self::Read { place: Place::read(&read, problems)?, prefix })
    }
}

impl Place {
    fn read(table: &Table<'_>, problems: &mut Vec<ConfigProblem>) -> Option<Self> {
        let header = table.text("header", problems);
        let field = table.text("field", problems);
        match (header, field) {
            (Some(header), None) if !header.is_empty() => Some(Self::Header(header.to_ascii_lowercase())),
            (None, Some(_field)) => pointer(table, problems).map(Self::Field),
            (_header, _field) => {
                let message = "must have either a `header` or a `field`";
                problems.push(ConfigProblem::at(table.own_path(), message));
                None
            }
        }
    }

    fn get(&self, request: &HttpDelivery, body: &Value) -> Option<String> {
        match self {
            Self::Header(name) => request.header(name).map(str::to_owned),
            Self::Field(pointer) => body.pointer(pointer).and_then(plain_text),
        }
    }
}

impl KeyField {
    fn read(table: &Table<'_>, problems: &mut Vec<ConfigProblem>) -> Option<Self> {
        table.need_text("field", problems)?;
        let pointer = pointer(table, problems);
        let prefix = table.text("prefix", problems).unwrap_or_default().to_owned();
        Some(Self { pointer: pointer?, prefix })
    }
}

fn pointer(table: &Table<'_>, problems: &mut Vec<ConfigProblem>) -> Option<String> {
    let pointer = table.text("field", problems)?;
    if pointer.starts_with('/') {
        return Some(pointer.to_owned());
    }
    problems.push(ConfigProblem::at(table.path("field"), "must be a JSON pointer, such as `/build/id`"));
    None
}

/// A text that is not empty, or a whole number as one.
fn plain_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) if number.is_i64() || number.is_u64() => Some(number.to_string()),
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => None,
    }
}

fn malformed(why: &str) -> IngressRefusal {
    IngressRefusal::Malformed(why.to_owned())
}
