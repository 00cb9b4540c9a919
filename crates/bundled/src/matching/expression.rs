//! CEL expressions over an Event, compiled once and bounded in advance.
//!
//! The language always ends, but it may take long, and the library bounds nothing that matters: nested
//! comprehensions multiply, `+` makes a list longer than any that came in, `matches` compiles its pattern at
//! every call, and a deep expression recurses until the stack is gone. So an expression is measured when it
//! is prepared and refused when it could be expensive, and what it sees of an Event is cut to size. The same
//! Event gives the same answer on every machine, as long as the expression does not ask for the order of a
//! map's keys, which the language leaves open.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use cel::common::ast::{Expr, IdedExpr};
use cel::common::types::{
    CelBool, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelString, CelUInt,
};
use cel::common::value::Val;
use cel::{Context, Env, ExecutionError, Value as CelValue};
use extension::{Code, EventView, HandlerError, RouteInput};
use regex::{Regex, RegexBuilder};
use serde_json::Value;

use super::measure;

/// The most bytes of an expression's text.
pub(crate) const TEXT_BYTES_MAX: usize = 4 << 10;
/// Items of a list or entries of a map that an expression sees; the rest is cut.
pub(crate) const ITEMS_MAX: usize = 200;
/// Bytes of one text that an expression sees; the rest is cut.
pub(crate) const STRING_BYTES_MAX: usize = 64 << 10;
/// Bytes that `matches` may look at in one evaluation.
const MATCHED_BYTES_MAX: usize = 16 << 20;
/// Bytes that one pattern may take when compiled.
const PATTERN_BYTES_MAX: usize = 256 << 10;
/// The parser recurses as deep as the text nests. This is enough for the deepest text of
/// [`TEXT_BYTES_MAX`], unoptimised too; the system lends only the part that is used.
const PARSE_STACK_BYTES: usize = 128 << 20;

/// The standard library. Optional values are left out: `has()` asks the same in the language every CEL has.
static ENVIRONMENT: LazyLock<Arc<Env>> =
    LazyLock::new(|| Arc::new(Env::stdlib().with_optional_support(false)));

/// What an expression gave, as far as a route can use it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// `true` or `false`.
    Bool(bool),
    /// A text, or a whole number as one.
    Text(String),
    /// Anything else.
    Other,
}

/// A compiled expression.
pub(crate) struct Expression {
    source: String,
    root: IdedExpr,
    patterns: Arc<HashMap<String, Regex>>,
    reads_event: bool,
    reads_payload: bool,
    /// Whether it goes over lists or matches patterns, which may take more than a moment.
    iterates: bool,
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Expression").field(&self.source).finish()
    }
}

impl Expression {
    /// Compiles and measures an expression.
    ///
    /// # Errors
    /// What is wrong with it, in words that do not repeat it.
    pub(crate) fn compile(source: &str) -> Result<Self, String> {
        if source.len() > TEXT_BYTES_MAX {
            return Err(format!("must not be longer than {TEXT_BYTES_MAX} bytes"));
        }
        let text = source.to_owned();
        let parser = std::thread::Builder::new().name("cel-parser".to_owned()).stack_size(PARSE_STACK_BYTES);
        // An expression that is refused for its depth must also be dropped where there is room for it.
        let parsed =
            parser.spawn(move || parse(&text)).map_err(|_source| "cannot be parsed now".to_owned())?;
        let root = parsed.join().map_err(|_panic| "is not a CEL expression".to_owned())??;
        let measured = measure::measure(&root, is_declared)?;
        let mut patterns = HashMap::new();
        for pattern in measured.patterns {
            let compiled = RegexBuilder::new(&pattern).size_limit(PATTERN_BYTES_MAX).build();
            let compiled = compiled.map_err(
                |_source| "has a pattern for `matches` that is no regular expression, or is too large",
            )?;
            patterns.insert(pattern, compiled);
        }
        let iterates = measured.comprehensions > 0 || !patterns.is_empty();
        Ok(Self {
            source: source.to_owned(),
            root,
            patterns: Arc::new(patterns),
            reads_event: measured.reads_event,
            reads_payload: measured.reads_payload,
            iterates,
        })
    }

    /// Whether evaluating it may take more than a moment.
    pub(crate) const fn iterates(&self) -> bool {
        self.iterates
    }

    /// The text it was compiled from.
    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    /// Evaluates it for an Event.
    ///
    /// # Errors
    /// [`HandlerError`] with the code `cel_error`; the reason tells the kind of mistake and no value.
    pub(crate) fn evaluate(&self, input: &RouteInput) -> Result<Answer, HandlerError> {
        let mut context = Context::with_env(Arc::clone(&ENVIRONMENT));
        self.add_matches(&mut context);
        if self.reads_event {
            context.add_variable_as_val("event", event(&input.event));
        }
        if self.reads_payload {
            context.add_variable_as_val("payload", value(input.payload()));
        }
        let answer = context.resolve(&self.root).map_err(|error| failure(&error))?;
        Ok(match &answer {
            CelValue::Bool(answer) => Answer::Bool(*answer),
            CelValue::String(text) => Answer::Text(text.as_str().to_owned()),
            CelValue::Int(number) => Answer::Text(number.to_string()),
            CelValue::UInt(number) => Answer::Text(number.to_string()),
            CelValue::Null
            | CelValue::Float(_)
            | CelValue::Bytes(_)
            | CelValue::List(_)
            | CelValue::Map(_)
            | CelValue::Struct(_)
            | CelValue::Function(..)
            | CelValue::Opaque(_) => Answer::Other,
        })
    }

    /// Declares `matches`, whose patterns are literals and compiled already.
    fn add_matches(&self, context: &mut Context<'_, '_>) {
        if self.patterns.is_empty() {
            return;
        }
        let patterns = Arc::clone(&self.patterns);
        let matched_bytes = AtomicUsize::new(0);
        let matches = move |text: cel::extractors::This<Arc<String>>, pattern: Arc<String>| {
            let text = text.0;
            let before = matched_bytes.fetch_add(text.len(), Ordering::Relaxed);
            if before.saturating_add(text.len()) > MATCHED_BYTES_MAX {
                return Err(ExecutionError::function_error("matches", "too much text"));
            }
            let pattern = patterns.get(pattern.as_str()).ok_or(ExecutionError::MissingArgumentOrTarget)?;
            Ok(pattern.is_match(&text))
        };
        context.add_function("matches", matches).expect("the library is built without its own `matches`");
    }
}

fn parse(text: &str) -> Result<IdedExpr, String> {
    let program = ENVIRONMENT.compile(text).map_err(|errors| {
        let place = errors.errors.first().map(|error| error.pos).filter(|(line, _column)| *line > 0);
        place.map_or_else(
            || "is not a CEL expression".to_owned(),
            |(line, column)| format!("is not a CEL expression; see line {line}, column {column}"),
        )
    })?;
    measure::depth(program.expression())?;
    Ok(program.expression().clone())
}

/// Whether the standard library declares what this expression, one name or one call, refers to. The library
/// offers no list, but says of a call whether it knows no such function or only not such arguments.
fn is_declared(probe: &IdedExpr) -> bool {
    if let Expr::Call(call) = &probe.expr
        && call.func_name == "matches"
    {
        return true;
    }
    let answer = Context::with_env(Arc::clone(&ENVIRONMENT)).resolve(probe);
    !matches!(answer, Err(ExecutionError::UndeclaredReference(_)))
}

/// An evaluation's mistake without anything that was evaluated: the library's messages show values.
fn failure(error: &ExecutionError) -> HandlerError {
    HandlerError {
        code: Code::known("cel_error"),
        reason: format!("the expression failed: {}", mistake(error)),
        is_final: true,
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the library may add kinds of mistakes")]
fn mistake(error: &ExecutionError) -> &'static str {
    match error {
        ExecutionError::NoSuchKey(_) => "a field that it reads is missing; test with `has()` first",
        ExecutionError::NoSuchOverload(_)
        | ExecutionError::UnexpectedType { .. }
        | ExecutionError::UnsupportedTargetType { .. }
        | ExecutionError::NotSupportedAsMethod { .. }
        | ExecutionError::UnsupportedBinaryOperator(..)
        | ExecutionError::UnsupportedIndex(..)
        | ExecutionError::UnsupportedKeyType(_)
        | ExecutionError::ValuesNotComparable(..) => {
            "an operator or a function does not take the types it was given"
        }
        ExecutionError::IndexOutOfBounds(_) => "an index lies outside its list",
        ExecutionError::DivisionByZero(_)
        | ExecutionError::RemainderByZero(_)
        | ExecutionError::Overflow(..) => "a calculation has no result",
        ExecutionError::FunctionError { .. } => {
            "a function refused its arguments, or `matches` was given too much text"
        }
        _ => "it cannot be evaluated",
    }
}

/// The envelope as expressions see it. Times are RFC 3339 texts.
fn event(event: &EventView) -> Box<dyn Val + '_> {
    let key = event.key.as_ref().map(|key| {
        map([("source", text(key.source.as_str())), ("external_id", text(key.external_id.as_str()))])
    });
    let or_null = |value: Option<Box<dyn Val>>| value.unwrap_or_else(|| Box::new(CelNull));
    map([
        ("id", owned(event.id)),
        ("source", text(event.source.as_str())),
        ("delivery_id", text(event.delivery_id.as_str())),
        ("type", text(event.event_type.as_str())),
        ("scope", text(event.scope.as_str())),
        ("key", key.unwrap_or_else(|| Box::new(CelNull))),
        ("work", or_null(event.work.map(owned))),
        ("parent", or_null(event.parent.map(owned))),
        ("root", owned(event.root)),
        ("depth", Box::new(CelInt::from(event.depth))),
        ("emitted_by", or_null(event.emitted_by.map(owned))),
        ("occurred_at", or_null(event.occurred_at.map(owned))),
        ("accepted_at", owned(event.accepted_at)),
    ])
}

fn owned<'v>(value: impl fmt::Display) -> Box<dyn Val + 'v> {
    Box::new(CelString::from(value.to_string()))
}

/// A text that is borrowed, since a comprehension clones what it iterates over.
fn text(text: &str) -> Box<dyn Val + '_> {
    Box::new(CelString::from(&text[..text.floor_char_boundary(STRING_BYTES_MAX)]))
}

fn map<'v>(entries: impl IntoIterator<Item = (&'v str, Box<dyn Val + 'v>)>) -> Box<dyn Val + 'v> {
    let entries = entries.into_iter().map(|(name, value)| (CelMapKey::from(name), value));
    Box::new(CelMap::from(entries.collect::<HashMap<_, _>>()))
}

/// A payload as expressions see it, cut to size.
fn value(json: &Value) -> Box<dyn Val + '_> {
    match json {
        Value::Null => Box::new(CelNull),
        Value::Bool(answer) => Box::new(CelBool::from(*answer)),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => Box::new(CelInt::from(number)),
            (None, Some(number)) => Box::new(CelUInt::from(number)),
            (None, None) => Box::new(CelDouble::from(number.as_f64().unwrap_or(f64::NAN))),
        },
        Value::String(whole) => text(whole),
        Value::Array(items) => {
            Box::new(CelList::from(items.iter().take(ITEMS_MAX).map(value).collect::<Vec<_>>()))
        }
        Value::Object(entries) => {
            map(entries.iter().take(ITEMS_MAX).map(|(name, item)| (name.as_str(), value(item))))
        }
    }
}
