//! The names and references of secrets. A value never gets here, and what might be one is never repeated.

use std::collections::BTreeMap;

use super::{Problem, ProblemCode};
use crate::scope::SecretRef;

/// The most bytes of a secret's name or of an environment variable's.
const NAME_BYTES_MAX: usize = 128;
/// The most bytes of a reference.
const REF_BYTES_MAX: usize = 4096;
/// What a reference may begin with.
const FORMS: [&str; 3] = ["env:", "file:", "cmd:"];
/// Variables that the runtime sets itself, after the secrets.
const RESERVED_PREFIX: &str = "OS_";

/// Checks a scope's own secrets.
pub(super) fn check_declared(path: &str, secrets: &BTreeMap<String, SecretRef>, problems: &mut Vec<Problem>) {
    for (index, (name, reference)) in secrets.iter().enumerate() {
        let at = place(path, index, name);
        if !is_secret_name(name) {
            let message = "a secret's name is letters, digits, `_`, `-` and `.`, beginning with a letter";
            problems.push(Problem::new(at.clone(), ProblemCode::InvalidName, message));
        }
        if !is_secret_ref(&reference.0) {
            let message = "must be a reference to a secret: `env:NAME`, `file:PATH` or `cmd:PROGRAM ARGS`";
            problems.push(Problem::new(at, ProblemCode::NotASecretRef, message));
        }
    }
}

/// Checks the variables a binding puts its secrets into.
pub(super) fn check_variables(path: &str, secrets: &BTreeMap<String, String>, problems: &mut Vec<Problem>) {
    for (index, variable) in secrets.keys().enumerate() {
        let message = if !is_variable(variable) {
            "an environment variable is letters, digits and `_`, and does not begin with a digit"
        } else if variable.starts_with(RESERVED_PREFIX) {
            "variables that begin with `OS_` are set by the runtime"
        } else {
            continue;
        };
        problems.push(Problem::new(place(path, index, variable), ProblemCode::InvalidName, message));
    }
}

/// The path of one entry of a map. The key is left out when it does not look like a name: it may be a value.
pub(super) fn place(path: &str, index: usize, key: &str) -> String {
    if is_secret_name(key) || is_variable(key) { format!("{path}.{key}") } else { format!("{path}[{index}]") }
}

fn is_secret_name(text: &str) -> bool {
    text.len() <= NAME_BYTES_MAX
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

fn is_variable(text: &str) -> bool {
    text.len() <= NAME_BYTES_MAX
        && text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn is_secret_ref(text: &str) -> bool {
    let rest = FORMS.iter().find_map(|form| text.strip_prefix(form));
    text.len() <= REF_BYTES_MAX
        && !text.chars().any(char::is_control)
        && rest.is_some_and(|rest| !rest.trim().is_empty())
}
