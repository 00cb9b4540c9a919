//! The tree that scopes make by naming their parents: who descends from whom, root first.

use std::collections::BTreeMap;

use super::limits::SCOPE_DEPTH_MAX;
use super::{Configuration, Problem, ProblemCode};
use crate::text::ScopeName;

/// The tree of a configuration.
pub(super) struct Tree {
    /// The first scope of each name.
    pub(super) by_name: BTreeMap<ScopeName, usize>,
    /// Scopes whose ancestry is sound, parents before their children.
    pub(super) order: Vec<usize>,
    /// The parent of each scope, when it has one that exists.
    pub(super) parents: Vec<Option<usize>>,
}

/// Builds the tree. A scope that is wrong, or descends from one that is, is left out of the order, so that
/// what is wrong with it is said once.
pub(super) fn tree(configuration: &Configuration, problems: &mut Vec<Problem>) -> Tree {
    let mut by_name = BTreeMap::new();
    let mut is_sound = vec![true; configuration.scopes.len()];
    for (index, scope) in configuration.scopes.iter().enumerate() {
        if let Some(first) = by_name.get(&scope.name) {
            let message = format!("scopes[{first}] has the same name; a scope's name is unique");
            problems.push(Problem::new(format!("scopes[{index}].name"), ProblemCode::DuplicateName, message));
            is_sound[index] = false;
        } else {
            by_name.insert(scope.name.clone(), index);
        }
    }
    let mut parents = vec![None; configuration.scopes.len()];
    for (index, scope) in configuration.scopes.iter().enumerate() {
        let Some(parent) = &scope.parent else { continue };
        parents[index] = by_name.get(parent).copied();
        if parents[index].is_none() {
            let message = "no scope of that name is declared";
            problems.push(Problem::new(
                format!("scopes[{index}].parent"),
                ProblemCode::UnknownParent,
                message,
            ));
            is_sound[index] = false;
        }
    }
    let mut order: Vec<(usize, usize)> = Vec::new();
    for (index, sound) in is_sound.iter_mut().enumerate() {
        match depth(index, &parents) {
            Depth::Cycle { member } => {
                *sound = false;
                if member {
                    let message = "the scope is its own ancestor";
                    problems.push(Problem::new(
                        format!("scopes[{index}].parent"),
                        ProblemCode::ParentCycle,
                        message,
                    ));
                }
            }
            Depth::Of(depth) => {
                if depth == SCOPE_DEPTH_MAX + 1 {
                    let message = format!("a line of descent has at most {SCOPE_DEPTH_MAX} scopes");
                    problems.push(Problem::new(
                        format!("scopes[{index}].parent"),
                        ProblemCode::TooDeep,
                        message,
                    ));
                }
                *sound &= depth <= SCOPE_DEPTH_MAX;
                order.push((depth, index));
            }
        }
    }
    order.sort_unstable();
    let mut sound_order = Vec::new();
    for (_depth, index) in order {
        is_sound[index] &= parents[index].is_none_or(|parent| is_sound[parent]);
        if is_sound[index] {
            sound_order.push(index);
        }
    }
    Tree { by_name, order: sound_order, parents }
}

enum Depth {
    /// How many scopes the line of descent has, this one included.
    Of(usize),
    /// The line never ends; `member` when the scope itself comes up in it again.
    Cycle { member: bool },
}

fn depth(index: usize, parents: &[Option<usize>]) -> Depth {
    let mut depth = 1;
    let mut at = index;
    while let Some(parent) = parents[at] {
        if parent == index {
            return Depth::Cycle { member: true };
        }
        // More steps than scopes: the line entered a cycle that this scope is not part of.
        if depth > parents.len() {
            return Depth::Cycle { member: false };
        }
        depth += 1;
        at = parent;
    }
    Depth::Of(depth)
}
