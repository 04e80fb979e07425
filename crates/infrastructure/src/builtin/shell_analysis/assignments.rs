//! Assignments and declarations of variables.

use super::{
    builtins::{self, Variable},
    simple_command::Parts,
    syntax,
    walk::{MISREAD, Place, Step, Walk, is_word},
    word::Word,
};
use std::sync::Arc;
use toolstead_domain::access::{Clarity, CommandAccess};
use tree_sitter::Node;

/// `name=value` in front of a command, or alone.
pub(super) struct Assignment {
    pub(super) name: String,
    /// As it was written.
    pub(super) text: String,
}

impl<'t> Walk<'t> {
    pub(super) fn assignments(&mut self, node: Node<'t>, place: Place, steps: &mut Vec<Step<'t>>) {
        let parts = if node.kind() == "variable_assignments" { self.parts(node) } else { vec![node] };
        for part in parts {
            if let Some(assignment) = self.assignment(part, place, steps) {
                self.lone_assignment(&assignment);
            }
        }
        self.folders.settle();
    }

    /// An assignment for the shell itself, and for what it starts later if the variable was in the environment before.
    pub(super) fn lone_assignment(&mut self, assignment: &Assignment) {
        let clarity = match builtins::variable(&assignment.name) {
            Variable::Harmless => return,
            Variable::ChangesPrograms if builtins::stays_in_the_shell(&assignment.name) => return,
            Variable::ChangesPrograms => {
                Clarity::Exact(format!("{} may change what later programs do", assignment.name).into())
            }
            Variable::ChangesTheShell => {
                Clarity::Opaque(format!("{} changes what the shell runs", assignment.name).into())
            }
        };
        let text: Arc<str> = assignment.text.as_str().into();
        let words = if matches!(clarity, Clarity::Exact(_)) { Arc::from([text.clone()]) } else { Arc::default() };
        let readings = Arc::default();
        self.result.commands.push(CommandAccess {
            whole: self.whole.clone(),
            text,
            words,
            readings,
            operands: Arc::default(),
            clarity,
        });
    }

    /// Reads an assignment, and enters what its value holds.
    pub(super) fn assignment(&mut self, node: Node<'t>, place: Place, steps: &mut Vec<Step<'t>>) -> Option<Assignment> {
        let children = syntax::children(node);
        let mut end = node.start_byte();
        let joined = children.iter().all(|child| std::mem::replace(&mut end, child.end_byte()) == child.start_byte());
        if !joined {
            self.opaque(node, MISREAD);
        }
        let Some(name) = children.first().filter(|name| name.kind() == "variable_name") else {
            self.opaque(node, "the index of an array is computed, which may run commands");
            self.below(node, place, steps);
            return None;
        };
        for value in &children[1..] {
            match value.kind() {
                "array" => {
                    for element in self.parts(*value) {
                        let word = self.word(element, place, steps);
                        if word.is_some_and(|word| word.text.contains('[')) {
                            self.opaque(*value, "the index of an array is computed, which may run commands");
                        }
                    }
                }
                kind if is_word(kind) => {
                    self.word(*value, place, steps);
                }
                _ if !value.is_named() => {}
                _ => self.opaque(*value, MISREAD),
            }
        }
        Some(Assignment { name: self.slice(*name).to_owned(), text: self.slice(node).to_owned() })
    }

    /// The variable of a loop.
    pub(super) fn loop_variable(&mut self, node: Node<'t>) {
        let name = self.slice(node).to_owned();
        if !builtins::stays_in_the_shell(&name) {
            let text = format!("{name}=...");
            self.lone_assignment(&Assignment { name, text });
        }
    }

    pub(super) fn declaration(&mut self, node: Node<'t>, place: Place, steps: &mut Vec<Step<'t>>) {
        let mut parts = Parts::default();
        let children = syntax::children(node);
        if !syntax::only_blanks_between(self.text, node, &children) {
            self.opaque(node, MISREAD);
        }
        for (at, child) in children.into_iter().enumerate() {
            match child.kind() {
                "variable_assignment" => {
                    if let Some(assignment) = self.assignment(child, place, steps) {
                        let array = self.slice(child).contains("=(");
                        let exports = parts.words.first().is_some_and(|word| word.text == "export");
                        match builtins::variable(&assignment.name) {
                            Variable::Harmless => {}
                            Variable::ChangesPrograms if !exports && builtins::stays_in_the_shell(&assignment.name) => {
                            }
                            _ => self.lone_assignment(&assignment),
                        }
                        let text = if array { format!("{}=()", assignment.name) } else { assignment.text };
                        parts.words.push(Word { text, ..Word::default() });
                    }
                }
                "variable_name" => parts.words.push(Word { text: self.slice(child).to_owned(), ..Word::default() }),
                kind if is_word(kind) => self.push_word(child, &mut parts, place, steps),
                _ if at == 0 => parts.words.push(Word { text: self.slice(child).to_owned(), ..Word::default() }),
                "comment" => {}
                _ => self.opaque(child, MISREAD),
            }
        }
        self.simple_command(&parts, node.byte_range());
    }
}
