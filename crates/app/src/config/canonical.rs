//! The one text of a configuration that is stored and compared.
//!
//! Two files that mean the same have the same canonical text, whatever their format, order of keys or comments.
//! It is what a generation is made of, so what runs is always read back from it, never from the file.

use std::fmt::Write as _;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::model::Model;

/// A configuration's canonical text and its digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Canonical {
    /// JSON with sorted keys and no spaces; lists keep their order. Secrets are references, as they are written.
    pub(crate) text: String,
    /// SHA-256 of the text, in lower-case hex.
    pub(crate) digest: String,
}

/// The canonical text of a model.
pub(crate) fn canonical(model: &Model) -> Canonical {
    let value = serde_json::to_value(model).expect("a model is made of texts, numbers, lists and tables");
    let text = sorted(value).to_string();
    let mut digest = String::with_capacity(64);
    for byte in Sha256::digest(text.as_bytes()) {
        write!(digest, "{byte:02x}").expect("a string takes whatever is written");
    }
    Canonical { text, digest }
}

/// Reads a canonical text back.
///
/// # Errors
/// When the text was not made by [`canonical`], or by a release that knew other keys. The error may quote the
/// text; it is for a log of the store's own content, which holds no secret values.
pub(crate) fn parse(text: &str) -> Result<Model, serde_json::Error> {
    serde_json::from_str(text)
}

/// A copy in which every table's keys are sorted. `serde_json` keeps the order of insertion here.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<(String, Value)> = members.into_iter().collect();
            members.sort_by(|(one, _), (other, _)| one.cmp(other));
            Value::Object(members.into_iter().map(|(key, value)| (key, sorted(value))).collect())
        }
        Value::Array(elements) => Value::Array(elements.into_iter().map(sorted).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}
