//! Extensions that run in processes of their own, as they are declared.
//!
//! Checking a file never starts what the file names: a file may come from anybody. Their own parts of a configuration
//! are asked of them by an apply.

use domain::text::HandlerName;

use super::model::{Extension, Model};
use super::problem::Problem;

/// The most bytes of a name, which begins those of its handlers.
const NAME_BYTES_MAX: usize = 32;

/// The declared extension that whatever has this name belongs to.
pub(crate) fn owner<'a>(declared: &'a [Extension], name: &str) -> Option<&'a Extension> {
    declared.iter().find(|extension| protocol::host::owns(&extension.name, name))
}

/// How many routes and entries belong to one of the declared extensions.
pub(crate) fn parts(model: &Model) -> usize {
    let names = model.scopes.iter().flat_map(|scope| {
        let routes = scope.routes.iter().filter_map(|route| route.handler.as_deref());
        routes.chain(scope.extensions.iter().filter_map(|entry| entry.kind.as_deref()))
    });
    names.filter(|name| owner(&model.extensions, name).is_some()).count()
}

/// Every declaration that cannot be one.
pub(crate) fn check(model: &Model) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (index, extension) in model.extensions.iter().enumerate() {
        let path = format!("extensions[{index}]");
        let earlier = &model.extensions[..index];
        one(&path, extension, earlier, &mut problems);
    }
    problems
}

fn one(path: &str, extension: &Extension, earlier: &[Extension], problems: &mut Vec<Problem>) {
    let mut wrong = |key: &str, code, message: &str| {
        problems.push(Problem::new(format!("{path}.{key}"), code, message));
    };
    let name = &extension.name;
    let is_name = name.len() <= NAME_BYTES_MAX && !name.contains(['.', '/']);
    if !is_name || HandlerName::new(name).is_err() {
        let message = "must be up to 32 lower-case letters, digits, `_` and `-`, beginning with a letter";
        wrong("name", "invalid_name", message);
    } else if earlier.iter().any(|other| other.name == *name) {
        wrong("name", "duplicate_name", "is the name of another extension; each needs one of its own");
    } else if extension.command.is_empty() && bundled::package(name).is_none() {
        let known = bundled::PACKAGES.map(|name| format!("`{name}`")).join(", ");
        let message = format!("is missing; only those that come with the program do without: {known}");
        wrong("command", "missing_key", &message);
    }
    let is_runnable = |word: &String| !word.contains('\0');
    if extension.command.first().is_some_and(String::is_empty) || !extension.command.iter().all(is_runnable) {
        wrong("command", "invalid_command", "must begin with a program, and hold no NUL character");
    }
    for (at, variable) in extension.pass_env.iter().enumerate() {
        if !is_variable(variable) {
            wrong(&format!("pass_env[{at}]"), "invalid_variable", "is not the name of a variable");
        }
    }
    for (at, (variable, reference)) in extension.secrets.iter().enumerate() {
        let place =
            if is_variable(variable) { format!("secrets.{variable}") } else { format!("secrets[{at}]") };
        if !is_variable(variable) {
            wrong(&place, "invalid_variable", "is not the name of a variable");
        }
        let is_reference = ["env:", "file:", "cmd:"].iter().any(|form| {
            reference.strip_prefix(form).is_some_and(|what| !what.trim().is_empty() && !what.contains('\0'))
        });
        if !is_reference {
            wrong(
                &place,
                "invalid_secret",
                "must be a reference: `env:NAME`, `file:PATH` or `cmd:PROGRAM ARGS`",
            );
        }
    }
}

/// Whether it is a name that every shell takes for a variable's.
fn is_variable(name: &str) -> bool {
    let mut letters = name.bytes();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(extensions: &str) -> Vec<(String, &'static str)> {
        let model: Model = toml::from_str(extensions).unwrap();
        check(&model).into_iter().map(|problem| (problem.path, problem.code)).collect()
    }

    #[track_caller]
    fn refuses(extension: &str, path: &str, code: &'static str) {
        assert_eq!(found(&format!("[[extensions]]\n{extension}")), [(path.to_owned(), code)]);
    }

    #[test]
    fn check_finds_every_declaration_that_cannot_be_one() {
        assert_eq!(
            found("[[extensions]]\nname = \"match\"\n[[extensions]]\nname = \"mine\"\ncommand = [\"x\"]"),
            []
        );
        refuses("name = \"a.b\"\ncommand = [\"x\"]", "extensions[0].name", "invalid_name");
        refuses("name = \"mine\"", "extensions[0].command", "missing_key");
        refuses("name = \"mine\"\ncommand = [\"\"]", "extensions[0].command", "invalid_command");
        refuses("name = \"match\"\npass_env = [\"A B\"]", "extensions[0].pass_env[0]", "invalid_variable");
        refuses("name = \"match\"\nsecrets = { A = \"text\" }", "extensions[0].secrets.A", "invalid_secret");
        let twice = "[[extensions]]\nname = \"match\"\n[[extensions]]\nname = \"match\"";
        assert_eq!(found(twice), [("extensions[1].name".to_owned(), "duplicate_name")]);
    }

    #[test]
    fn owner_is_whoever_has_the_name_or_its_beginning() {
        let declared = [Extension { name: "mine".to_owned(), ..Extension::default() }];
        for name in ["mine", "mine.two"] {
            assert!(owner(&declared, name).is_some(), "{name}");
        }
        for name in ["miner", "min", "other.mine"] {
            assert!(owner(&declared, name).is_none(), "{name}");
        }
    }
}
