//! Configuration: from a file in the home to something the runtime can run, or to a list of what is wrong.
//!
//! The way is always the same. [`source`] reads the text, [`schema`] checks keys and types, [`lower`] and
//! [`domain::config::resolve`] decide what it means, and [`registry`] asks the extensions about their parts.
//! What is applied is the [`canonical`] text, and that is also what a start reads; the file only proposes.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::config::resolve;
use domain::scope::EffectiveScope;
use domain::text::ScopeName;

pub(crate) mod problem;
pub(crate) mod source;
pub(crate) mod model;
pub(crate) mod schema;
pub(crate) mod listen;
pub(crate) mod lower;
pub(crate) mod registry;
pub(crate) mod outside;
mod control;
pub(crate) mod canonical;
pub(crate) mod plan;
pub(crate) mod secrets;
#[cfg(test)]
mod sample;
#[cfg(test)]
mod tests;

pub(crate) use listen::Listeners;
pub(crate) use model::Model;
pub(crate) use problem::Problem;
pub(crate) use registry::Registered;
pub(crate) use source::Format;

use source::Lines;

/// What `up` writes into an empty home.
pub(crate) const STARTER: &str = include_str!("config/starter.toml");

/// A valid configuration in every form it is needed in.
#[derive(Debug, Clone)]
pub(crate) struct Loaded {
    /// As it is written.
    pub(crate) model: Model,
    /// What holds in each scope.
    pub(crate) scopes: BTreeMap<ScopeName, Arc<EffectiveScope>>,
}

/// Reads a file's text and checks it whole.
///
/// # Errors
/// Every problem found, each with its line, sorted by line. Syntax hides what comes after it, and so do wrong
/// keys and types.
pub(crate) fn load(text: &str, format: Format, registry: &dyn Registered) -> Result<Loaded, Vec<Problem>> {
    let (model, lines) = read(text, format)?;
    load_model(model, registry).map_err(|problems| lines.locate(problems))
}

/// Reads a file's text as far as keys and types go.
///
/// # Errors
/// Every problem of syntax; if there is none, every unknown key and wrong type.
pub(crate) fn read(text: &str, format: Format) -> Result<(Model, Lines), Vec<Problem>> {
    let source = source::parse(text, format)?;
    let problems = schema::check(&source.value);
    if !problems.is_empty() {
        return Err(source.lines.locate(problems));
    }
    let model = serde_json::from_value(schema::without_reference(source.value)).map_err(|_source| {
        // The cause may quote a value.
        vec![Problem::new(
            "",
            "wrong_type",
            "the file does not have the form that `open-conduit schema` prints",
        )]
    })?;
    Ok((model, source.lines))
}

/// Checks a model whole: one that was read, or the content of a stored generation.
///
/// # Errors
/// Every problem found. References are only followed once every name is one.
pub(crate) fn load_model(model: Model, registry: &dyn Registered) -> Result<Loaded, Vec<Problem>> {
    let mut problems = outside::check(&model);
    problems.extend(registry::check(&model, registry));
    if let Err(found) = Listeners::of(&model.daemon) {
        problems.extend(found);
    }
    let configuration = lower::lower(&model).map_err(|found| problems.extend(found)).ok();
    let scopes = configuration.as_ref().and_then(|configuration| {
        let found =
            |found: Vec<domain::config::Problem>| problems.extend(found.into_iter().map(Problem::from));
        resolve(configuration).map_err(found).ok()
    });
    if let Some(scopes) = &scopes {
        problems.extend(control::check(&model, scopes, registry));
    }
    match scopes {
        Some(scopes) if problems.is_empty() => Ok(Loaded { model, scopes }),
        Some(_) | None => Err(problems),
    }
}
