//! How expensive an expression can get, from its tree alone.
//!
//! A list that is iterated over is at most [`ITEMS_MAX`] long: those of a payload are cut, literals are
//! counted, the results of comprehensions are no longer than their ranges, and a range may not be made with
//! `+`. With the bounds on nesting and number, that bounds the steps of an evaluation; that only one level
//! may collect bounds what it holds at a time.

use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue};

use super::expression::ITEMS_MAX;

/// Levels of an expression's tree. Evaluation recurses over them on an ordinary thread's stack.
pub(crate) const DEPTH_MAX: usize = 48;
/// Comprehensions (`all`, `exists`, `exists_one`, `map`, `filter`) inside one another.
pub(crate) const NESTED_MAX: usize = 2;
/// Comprehensions in one expression.
pub(crate) const COMPREHENSIONS_MAX: usize = 8;

/// What measuring found.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    /// The patterns given to `matches`.
    pub(crate) patterns: Vec<String>,
    /// Whether it reads `event`.
    pub(crate) reads_event: bool,
    /// Whether it reads `payload`.
    pub(crate) reads_payload: bool,
    /// How many comprehensions it has.
    pub(crate) comprehensions: usize,
}

/// Refuses a tree deeper than [`DEPTH_MAX`]. It recurses no deeper itself.
///
/// # Errors
/// What is wrong, in words.
pub(crate) fn depth(root: &IdedExpr) -> Result<(), String> {
    let mut level = vec![root];
    for _level in 0..DEPTH_MAX {
        level = level.into_iter().flat_map(children).collect();
        if level.is_empty() {
            return Ok(());
        }
    }
    Err("is nested too deeply; split it over several routes".to_owned())
}

/// Checks names and bounds of a tree that is no deeper than [`DEPTH_MAX`].
///
/// # Errors
/// What is wrong, in words that repeat nothing of the expression.
pub(crate) fn measure(root: &IdedExpr, is_declared: fn(&IdedExpr) -> bool) -> Result<Measured, String> {
    let mut walk = Walk { measured: Measured::default(), names: Vec::new(), is_declared };
    walk.visit(root, Place { nested: 0, in_range: false, collected: false })?;
    Ok(walk.measured)
}

#[derive(Clone, Copy)]
struct Place {
    /// How many comprehensions run the expression for each of their items.
    nested: usize,
    /// Whether what it gives may be iterated over.
    in_range: bool,
    /// Whether the comprehension around it is a `map` or `filter`, which keeps what each step gives.
    collected: bool,
}

struct Walk {
    measured: Measured,
    /// Variables of the comprehensions around.
    names: Vec<String>,
    is_declared: fn(&IdedExpr) -> bool,
}

impl Walk {
    fn visit(&mut self, node: &IdedExpr, place: Place) -> Result<(), String> {
        match &node.expr {
            Expr::Unspecified => Err("is not a CEL expression".to_owned()),
            Expr::List(_) | Expr::Map(_) if children(node).len() > ITEMS_MAX => {
                Err(format!("has a list of more than {ITEMS_MAX} items, or a map of half as many"))
            }
            Expr::Literal(_) | Expr::Select(_) | Expr::List(_) | Expr::Map(_) | Expr::Struct(_) => {
                self.descend(node, place)
            }
            Expr::Ident(name) => self.name(node, name),
            Expr::Call(call) => {
                self.call(call, place)?;
                self.descend(node, place)
            }
            Expr::Comprehension(comprehension) => self.comprehension(comprehension, place),
        }
    }

    fn comprehension(&mut self, part: &ComprehensionExpr, place: Place) -> Result<(), String> {
        self.measured.comprehensions += 1;
        if self.measured.comprehensions > COMPREHENSIONS_MAX {
            return Err(format!("has more than {COMPREHENSIONS_MAX} comprehensions"));
        }
        if place.nested == NESTED_MAX {
            return Err(format!("nests more than {NESTED_MAX} comprehensions"));
        }
        let collected = collects(&part.loop_step);
        if collected && place.collected {
            return Err("has a `map` or `filter` inside another".to_owned());
        }
        // A macro may bind a variable to the start of an accumulator, and then iterate over it.
        for range in [&part.iter_range, &part.accu_init] {
            self.visit(range, Place { in_range: true, ..place })?;
        }
        let known = self.names.len();
        self.names.push(part.iter_var.clone());
        self.names.extend(part.iter_var2.clone());
        self.names.push(part.accu_var.clone());
        let inside = Place { nested: place.nested + 1, collected: place.collected || collected, ..place };
        for step in [&part.loop_cond, &part.loop_step, &part.result] {
            self.visit(step, inside)?;
        }
        self.names.truncate(known);
        Ok(())
    }

    fn descend(&mut self, node: &IdedExpr, place: Place) -> Result<(), String> {
        children(node).into_iter().try_for_each(|child| self.visit(child, place))
    }

    fn name(&mut self, node: &IdedExpr, name: &str) -> Result<(), String> {
        if self.names.iter().any(|known| known == name) {
            return Ok(());
        }
        match name {
            "event" => self.measured.reads_event = true,
            "payload" => self.measured.reads_payload = true,
            _ if (self.is_declared)(node) => {}
            _ => return Err("uses an unknown name; there are `event` and `payload`".to_owned()),
        }
        Ok(())
    }

    fn call(&mut self, call: &CallExpr, place: Place) -> Result<(), String> {
        if call.func_name == "matches" {
            let pattern = call.args.last().map(|pattern| &pattern.expr);
            let Some(Expr::Literal(LiteralValue::String(pattern))) = pattern else {
                return Err("calls `matches` with a pattern that is not written out".to_owned());
            };
            self.measured.patterns.push(pattern.inner().to_owned());
            return Ok(());
        }
        if place.in_range && call.func_name == "_+_" && !adds_to_result(call) {
            return Err("iterates over something made with `+`; write two comprehensions".to_owned());
        }
        let probe = CallExpr {
            func_name: call.func_name.clone(),
            target: call.target.as_ref().map(|_target| Box::new(literal())),
            args: call.args.iter().map(|_argument| literal()).collect(),
        };
        if !(self.is_declared)(&IdedExpr { id: 0, expr: Expr::Call(probe) }) {
            return Err("calls an unknown function".to_owned());
        }
        Ok(())
    }
}

/// Whether this is the step by which `map`, `filter` and `exists_one` collect. Its `@` can't be written.
fn adds_to_result(call: &CallExpr) -> bool {
    matches!(call.args.first().map(|first| &first.expr), Some(Expr::Ident(name)) if name.starts_with('@'))
}

/// Whether a step of a comprehension appends to a list.
fn collects(step: &IdedExpr) -> bool {
    let Expr::Call(call) = &step.expr else { return false };
    let appends =
        adds_to_result(call) && matches!(call.args.last().map(|last| &last.expr), Some(Expr::List(_)));
    // `filter`, and `map` with a condition, append or leave the list as it is.
    appends || (call.func_name == "_?_:_" && call.args.iter().any(collects))
}

fn literal() -> IdedExpr {
    IdedExpr { id: 0, expr: Expr::Literal(LiteralValue::Null) }
}

fn children(node: &IdedExpr) -> Vec<&IdedExpr> {
    match &node.expr {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => Vec::new(),
        Expr::Call(call) => call.target.as_deref().into_iter().chain(&call.args).collect(),
        Expr::Comprehension(part) => {
            vec![&part.iter_range, &part.accu_init, &part.loop_cond, &part.loop_step, &part.result]
        }
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Select(select) => vec![&select.operand],
        Expr::Map(map) => map.entries.iter().flat_map(|entry| entry_children(&entry.expr)).collect(),
        Expr::Struct(made) => made.entries.iter().flat_map(|entry| entry_children(&entry.expr)).collect(),
    }
}

fn entry_children(entry: &EntryExpr) -> Vec<&IdedExpr> {
    match entry {
        EntryExpr::StructField(field) => vec![&field.value],
        EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
    }
}
