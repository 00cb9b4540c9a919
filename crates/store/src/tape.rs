//! A tape of the statements that transactions run, for whoever wants to run the same ones bare.
//!
//! The benchmark compares the store with its own statements on a plain connection; a list of them written by
//! hand would soon be another list. A store without a tape pays a null check.

use std::sync::{Mutex, PoisonError};

use crate::db::Value;

/// A parameter as it was bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// Nothing.
    Null,
    /// A number.
    Int(i64),
    /// A text.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
}

/// A statement as it was run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spoken {
    /// Its text, with `$n` for its parameters.
    pub text: &'static str,
    /// Its parameters.
    pub values: Vec<Said>,
}

/// Takes down the statements of transactions, in order. Reads outside a transaction are not on it.
#[derive(Debug, Default)]
pub struct Tape(Mutex<Vec<Spoken>>);

impl Tape {
    /// What was said since the last time, removed from the tape.
    pub fn take(&self) -> Vec<Spoken> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn note(&self, text: &'static str, values: &[Value<'_>]) {
        let values = values.iter().map(|value| match value {
            Value::Int(number) => Said::Int(*number),
            Value::Text(text) => Said::Text((*text).to_owned()),
            Value::Blob(blob) => Said::Blob((*blob).to_owned()),
            Value::NullInt | Value::NullText | Value::NullBlob => Said::Null,
        });
        let spoken = Spoken { text, values: values.collect() };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(spoken);
    }
}
