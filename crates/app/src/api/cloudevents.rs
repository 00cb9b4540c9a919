//! CloudEvents 1.0: what a request on `POST /v1/events` carries when it is one, in structured or binary mode.
//!
//! Either way the payload of the Event is the CloudEvent as its JSON format writes it, with every attribute, so
//! that nothing a sender said is lost and the two modes look the same to whoever reads it. In structured mode
//! that is the body as it came. In binary mode it is written here: JSON data as it came, under `data`; other
//! text as a string, under `data`; all else in base64, under `data_base64`.
//!
//! Neither mode can be sent by a form of another site, as [`super::server::require_json`] sees to for the rest:
//! the one has a media type and the other a header that a browser asks for first.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use domain::causal::Origin;
use domain::delivery::Delivery;
use domain::event::{Key, PAYLOAD_BYTES_MAX};
use domain::id::IdMaker;
use domain::text::{DeliveryId, EventType, ExternalId, ScopeName, SourceName};
use domain::time::Timestamp;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::http::request::Parts;
use percent_encoding::percent_decode;
use serde::Deserialize as _;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::body;
use super::events;
use super::failure::Failure;
use super::server::{Asked, not_that};
use crate::daemon::Daemon;
use crate::error_code::ErrorCode;

mod members;

use members::Members;

/// The version of the specification that is understood.
const SPECVERSION: &str = "1.0";
/// What the media types of all CloudEvents begin with.
const FAMILY: &str = "application/cloudevents";
/// The media type of one in its JSON format.
pub(crate) const STRUCTURED: &str = "application/cloudevents+json";
/// What the headers of binary mode begin with.
const HEADER_PREFIX: &str = "ce-";
/// The extension attribute that names the scope.
const SCOPE: &str = "conduitscope";
/// The headers of binary mode. Extension attributes have one each, too.
pub(crate) const HEADERS: &[&str] = &[
    "ce-specversion",
    "ce-id",
    "ce-source",
    "ce-type",
    "ce-subject",
    "ce-time",
    "ce-dataschema",
    "ce-conduitscope",
];
/// What an attribute may be when the specification does not say.
const SCALAR: &str = "an attribute is a text, a whole number, `true` or `false`";

/// How a request carries its CloudEvent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The body is all of it.
    Structured,
    /// The body is its data, and headers are its attributes.
    Binary,
}

/// How a request carries a CloudEvent; none when it carries none.
///
/// # Errors
/// `unsupported_media_type` for a batch and for a format that is not JSON.
pub(crate) fn mode(parts: &Parts) -> Result<Option<Mode>, Failure> {
    let written = parts.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    let kind = media_type(&String::from_utf8_lossy(written));
    let refused = |detail: &str| Err(Failure::new(ErrorCode::UnsupportedMediaType, detail).closing());
    if kind == STRUCTURED {
        Ok(Some(Mode::Structured))
    } else if kind.starts_with("application/cloudevents-batch") {
        refused(
            "batches of CloudEvents are not taken, since an answer is about one Event; send each in a request of its own",
        )
    } else if kind.starts_with(FAMILY) {
        refused("CloudEvents are taken as `application/cloudevents+json`, or in binary mode")
    } else if parts.headers.keys().any(|name| name.as_str().starts_with(HEADER_PREFIX)) {
        Ok(Some(Mode::Binary))
    } else {
        Ok(None)
    }
}

/// The schema of a CloudEvent in its JSON format, as far as it is looked at here.
pub(crate) fn schema() -> Value {
    let text = json!({ "type": "string", "minLength": 1 });
    json!({
        "type": "object",
        "required": ["specversion", "id", "source", "type"],
        "properties": {
            "specversion": { "const": SPECVERSION },
            "id": text,
            "source": { "type": "string", "minLength": 1, "format": "uri-reference" },
            "type": text,
            "subject": text,
            "time": { "type": "string", "format": "date-time" },
            "datacontenttype": text,
            "dataschema": { "type": "string", "minLength": 1, "format": "uri" },
            SCOPE: text,
            "data": {},
            "data_base64": { "type": "string", "contentEncoding": "base64" },
        },
        "additionalProperties": { "type": ["string", "boolean", "integer", "null"] },
    })
}

/// Reads a CloudEvent as a delivery in the namespace of its `source`.
///
/// # Errors
/// `bad_request`, `unsupported_specversion` and `payload_too_large`.
pub(crate) async fn delivery(daemon: &Arc<Daemon>, asked: Asked, mode: Mode) -> Result<Delivery, Failure> {
    let in_query = asked.query.text("scope").map(str::to_owned);
    let bytes = body::read(asked.body, PAYLOAD_BYTES_MAX).await?;
    let (attributes, payload) = match mode {
        Mode::Structured => (structured(&bytes)?, bytes.trim_ascii().to_vec()),
        Mode::Binary => {
            let attributes = Attributes::of_headers(&asked.parts)?;
            let payload = attributes.with_data(&bytes)?;
            (attributes, payload)
        }
    };
    let version = attributes.need("specversion")?;
    if version != SPECVERSION {
        let detail = "`specversion` is not 1.0, the one that is understood; send it as that";
        return Err(Failure::new(ErrorCode::UnsupportedSpecversion, detail));
    }
    let source = source(attributes.need("source")?)?;
    let key = match attributes.text("subject")? {
        Some(subject) => {
            Some(Key { source: source.clone(), external_id: named("subject", ExternalId::new(subject))? })
        }
        None => None,
    };
    for optional in ["datacontenttype", "dataschema"] {
        attributes.text(optional)?;
    }
    Ok(Delivery {
        id: daemon.store().ids(IdMaker::event),
        delivery_id: named("id", DeliveryId::new(attributes.need("id")?))?,
        event_type: named("type", EventType::of_sender(attributes.need("type")?))?,
        scope: scope(daemon, attributes.text(SCOPE)?, in_query.as_deref())?,
        source,
        key,
        work: None,
        occurred_at: attributes.text("time")?.map(moment).transpose()?,
        payload: events::checked(&payload)?,
        origin: Origin::Root,
    })
}

/// An error that says which attribute it is about.
fn named<T>(name: &str, read: Result<T, impl std::fmt::Display>) -> Result<T, Failure> {
    read.map_err(|error| Failure::bad(format!("`{name}`: {error}")))
}

fn moment(text: &str) -> Result<Timestamp, Failure> {
    named("time", Timestamp::parse(text))
}

/// The namespace of a `source`, which has to be a URI reference: other letters are percent-encoded there, and
/// two spellings of one source would be two namespaces.
fn source(text: &str) -> Result<SourceName, Failure> {
    let is_uri = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=%".contains(&byte);
    if !text.bytes().all(is_uri) {
        return Err(Failure::bad("`source` is not a URI reference; percent-encode what a URI cannot hold"));
    }
    named("source", SourceName::of_cloud_event(text))
}

/// The scope that the sender or the address names, or the only one there is.
fn scope(daemon: &Daemon, attribute: Option<&str>, in_query: Option<&str>) -> Result<ScopeName, Failure> {
    match (attribute, in_query) {
        (Some(attribute), Some(in_query)) if attribute != in_query => {
            Err(Failure::bad("the attribute `conduitscope` and the query parameter `scope` name two scopes"))
        }
        (Some(name), _) | (None, Some(name)) => named("scope", ScopeName::new(name)),
        (None, None) => {
            let active = daemon.runtime().generations().active();
            let mut names = active.scopes.keys();
            if let (Some(only), None) = (names.next(), names.next()) {
                return Ok(only.clone());
            }
            let detail = "there are several scopes; name one by the query parameter `scope` or the extension \
                          attribute `conduitscope`";
            Err(Failure::bad(detail))
        }
    }
}

/// The attributes of a CloudEvent, those that are unset left out.
#[derive(Debug)]
struct Attributes(BTreeMap<String, Value>);

impl Attributes {
    /// The text of an attribute, when it is there.
    fn text(&self, name: &str) -> Result<Option<&str>, Failure> {
        let Some(value) = self.0.get(name) else { return Ok(None) };
        let text = value.as_str().ok_or_else(|| Failure::bad(format!("`{name}` is not a text")))?;
        if text.is_empty() {
            return Err(Failure::bad(format!("`{name}` is empty")));
        }
        Ok(Some(text))
    }

    /// The text of an attribute that every CloudEvent has.
    fn need(&self, name: &str) -> Result<&str, Failure> {
        self.text(name)?.ok_or_else(|| Failure::bad(format!("the CloudEvent has no `{name}`")))
    }

    /// Adds an attribute. A value of `null` leaves it unset.
    fn add(&mut self, name: &str, value: Value) -> Result<(), Failure> {
        let letters = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        if name.is_empty() || !letters {
            let detail = "the name of an attribute holds something else than lower-case letters and digits; correct it";
            return Err(Failure::bad(detail));
        }
        match &value {
            Value::Null => return Ok(()),
            Value::Bool(_) | Value::String(_) => {}
            Value::Number(number) if number.is_i64() => {}
            Value::Number(_) | Value::Array(_) | Value::Object(_) => return Err(Failure::bad(SCALAR)),
        }
        if self.0.insert(name.to_owned(), value).is_some() {
            return Err(Failure::bad("an attribute is given twice"));
        }
        Ok(())
    }

    /// The attributes that stand in headers, and `Content-Type` as `datacontenttype`.
    fn of_headers(parts: &Parts) -> Result<Self, Failure> {
        let mut attributes = Self(BTreeMap::new());
        for (name, value) in &parts.headers {
            let Some(name) = name.as_str().strip_prefix(HEADER_PREFIX) else { continue };
            if matches!(name, "data" | "datacontenttype") {
                let detail = "in binary mode the body is the data and `Content-Type` its type, and no header \
                              repeats them";
                return Err(Failure::bad(detail));
            }
            attributes.add(name, Value::String(unescaped(value)?))?;
        }
        for value in parts.headers.get_all(CONTENT_TYPE) {
            let text = value.to_str().map_err(|_source| Failure::bad("`Content-Type` is not plain text"))?;
            attributes.add("datacontenttype", Value::String(text.to_owned()))?;
        }
        Ok(attributes)
    }

    /// The CloudEvent in its JSON format.
    fn with_data(&self, data: &[u8]) -> Result<Vec<u8>, Failure> {
        let attributes: Map<String, Value> =
            self.0.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        let mut event = serde_json::to_vec(&attributes).expect("texts are JSON");
        if data.is_empty() {
            return Ok(event);
        }
        let content_type = self.text("datacontenttype")?.unwrap_or_default();
        let mut member = |name: &[u8], value: &[u8]| {
            event.pop();
            event.extend_from_slice(b",\"");
            event.extend_from_slice(name);
            event.extend_from_slice(b"\":");
            event.extend_from_slice(value);
            event.push(b'}');
        };
        match Data::read(content_type, data)? {
            Data::Json(json) => member(b"data", json.get().as_bytes()),
            Data::Text(text) => member(b"data", Value::from(text).to_string().as_bytes()),
            Data::Bytes => member(b"data_base64", Value::from(BASE64.encode(data)).to_string().as_bytes()),
        }
        Ok(event)
    }
}

/// The data of a CloudEvent in binary mode, by its media type.
enum Data<'a> {
    /// JSON, as it is written.
    Json(&'a RawValue),
    /// Text that is not JSON.
    Text(&'a str),
    /// Anything else.
    Bytes,
}

impl<'a> Data<'a> {
    fn read(content_type: &str, data: &'a [u8]) -> Result<Self, Failure> {
        let kind = media_type(content_type);
        if kind.ends_with("/json") || kind.ends_with("+json") {
            return serde_json::from_slice(data).map(Self::Json).map_err(|error| not_that(&error));
        }
        let is_text = kind.starts_with("text/") || kind.ends_with("/xml") || kind.ends_with("+xml");
        match std::str::from_utf8(data) {
            Ok(text) if is_text && is_utf8(content_type) => Ok(Self::Text(text)),
            Ok(_) | Err(_) => Ok(Self::Bytes),
        }
    }
}

/// The media type without its parameters, in lower case.
fn media_type(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Whether a media type names no other charset than UTF-8, or its part that is ASCII.
fn is_utf8(content_type: &str) -> bool {
    content_type.to_ascii_lowercase().split(';').skip(1).all(|parameter| {
        let charset = parameter.trim().strip_prefix("charset=");
        charset.is_none_or(|charset| matches!(charset.trim_matches('"'), "utf-8" | "us-ascii"))
    })
}

/// The value of a header: unquoted as older senders write it, then percent-decoded once.
fn unescaped(value: &HeaderValue) -> Result<String, Failure> {
    let bytes = value.as_bytes();
    let quoted = bytes.strip_prefix(b"\"").and_then(|bytes| bytes.strip_suffix(b"\""));
    let unquoted = quoted.map(|quoted| {
        let mut escaped = false;
        let kept = quoted.iter().copied().filter(|byte| {
            escaped = *byte == b'\\' && !escaped;
            !escaped
        });
        kept.collect::<Vec<u8>>()
    });
    let decoded = percent_decode(unquoted.as_deref().unwrap_or(bytes)).decode_utf8();
    let decoded =
        decoded.map_err(|_source| Failure::bad("an attribute's header is not UTF-8 once decoded"))?;
    Ok(decoded.into_owned())
}

/// The attributes of a CloudEvent in its JSON format, whose data was looked at too.
fn structured(bytes: &[u8]) -> Result<Attributes, Failure> {
    let mut attributes = Attributes(BTreeMap::new());
    let mut has_data = [false; 2];
    let members: Members<'_> = serde_json::from_slice(bytes).map_err(|error| not_that(&error))?;
    for (name, value) in members.0 {
        let seen = match name.as_str() {
            "data" => &mut has_data[0],
            "data_base64" => {
                let text = String::deserialize(value).map_err(|_source| ());
                if text.and_then(|text| BASE64.decode(text).map_err(|_source| ())).is_err() {
                    return Err(Failure::bad("`data_base64` is not base64"));
                }
                &mut has_data[1]
            }
            _ => {
                let value = Value::deserialize(value).map_err(|_source| Failure::bad(SCALAR))?;
                attributes.add(&name, value)?;
                continue;
            }
        };
        if std::mem::replace(seen, true) {
            return Err(Failure::bad("an attribute is given twice"));
        }
    }
    if has_data == [true; 2] {
        return Err(Failure::bad("a CloudEvent has either `data` or `data_base64`"));
    }
    Ok(attributes)
}
