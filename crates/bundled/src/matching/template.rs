//! Texts with `${...}` in them: an expression's answer in the middle of words.

use extension::{Code, HandlerError, RouteInput};

use super::expression::{Answer, Expression};

/// Expressions in one template.
const EXPRESSIONS_MAX: usize = 8;

/// A prepared template.
#[derive(Debug)]
pub(crate) struct Template(Vec<Part>);

#[derive(Debug)]
enum Part {
    Text(String),
    Expression(Box<Expression>),
}

impl Template {
    /// Prepares a template. `$` without a brace stands for itself.
    ///
    /// # Errors
    /// What is wrong with it, in words that do not repeat it.
    pub(crate) fn compile(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find("${") {
            let (words, opened) = (&rest[..at], &rest[at + 2..]);
            let end = closing(opened).ok_or("has a `${` without its `}`")?;
            if !words.is_empty() {
                parts.push(Part::Text(words.to_owned()));
            }
            let expression = Expression::compile(&opened[..end])
                .map_err(|problem| format!("has an expression that {problem}"))?;
            parts.push(Part::Expression(Box::new(expression)));
            if parts.len() > 2 * EXPRESSIONS_MAX {
                return Err(format!("has more than {EXPRESSIONS_MAX} expressions"));
            }
            rest = &opened[end + 1..];
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        if parts.is_empty() {
            return Err("must not be empty".to_owned());
        }
        Ok(Self(parts))
    }

    /// The text, when it has no expression.
    pub(crate) fn literal(&self) -> Option<&str> {
        match self.0.as_slice() {
            [Part::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Fills the template in for an Event.
    ///
    /// # Errors
    /// [`HandlerError`] when an expression fails, or gives nothing that belongs in a key: two things that
    /// both lack a number must not share a Work.
    pub(crate) fn fill(&self, input: &RouteInput) -> Result<String, HandlerError> {
        let mut filled = String::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => filled.push_str(text),
                Part::Expression(expression) => match expression.evaluate(input)? {
                    Answer::Text(text) if !text.is_empty() => filled.push_str(&text),
                    Answer::Bool(_) | Answer::Text(_) | Answer::Other => {
                        return Err(bad_key("an expression in it gives no text and no whole number"));
                    }
                },
            }
        }
        Ok(filled)
    }
}

/// The error of a template that gives no key.
pub(crate) fn bad_key(why: &str) -> HandlerError {
    let reason = format!("the key cannot be made: {why}");
    HandlerError { code: Code::known("bad_key"), reason, is_final: true }
}

/// Where the brace closes that was opened before `text`, past braces and quoted texts inside.
fn closing(text: &str) -> Option<usize> {
    let mut open = 0_usize;
    let mut quote: Option<char> = None;
    let mut escaped = false;
    for (at, letter) in text.char_indices() {
        if let Some(mark) = quote {
            if !escaped && letter == mark {
                quote = None;
            }
            escaped = !escaped && letter == '\\';
            continue;
        }
        match letter {
            '"' | '\'' => quote = Some(letter),
            '{' => open += 1,
            '}' if open == 0 => return Some(at),
            '}' => open -= 1,
            _ => {}
        }
    }
    None
}
