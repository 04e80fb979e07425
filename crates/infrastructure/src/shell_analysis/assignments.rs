//! Assignments and declarations of variables.

use super::{
    builtins::{self, Variable},
    command::{Scope, Understood},
    simple_command::Parts,
    syntax,
    walk::{MISREAD, Place, Step, Walk, is_word},
    word::{Dynamic, Word},
    wrappers,
};
use tree_sitter::Node;

/// `name=value` in front of a command, or alone.
pub(super) struct Assignment {
    pub(super) name: String,
    /// As it was written.
    pub(super) text: String,
    /// What it is set to, if that can be told.
    pub(super) value: Option<String>,
}

impl Assignment {
    /// As a word of a declaration.
    fn into_word(self) -> Word {
        match self.value {
            Some(value) => Word { text: format!("{}={value}", self.name), ..Word::default() },
            None => Word { text: self.text, dynamic: Some(Dynamic::Quoted), ..Word::default() },
        }
    }

    /// Whether it changes how programs speak, and nothing that they do.
    pub(super) fn is_harmless(&self) -> bool {
        self.value.as_ref().is_some_and(|value| builtins::is_harmless(&self.name, value))
    }
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
        if assignment.is_harmless() || builtins::stays_in_the_shell(&assignment.name) {
            return;
        }
        let scope = Scope { folders: &self.folders, limits: self.limits.clone() };
        let mut understood = Understood::new(&[Word { text: assignment.text.clone(), ..Word::default() }]);
        wrappers::assigned(&assignment.name, assignment.value.as_deref(), &scope, &mut understood);
        self.add(understood, assignment.text.as_str().into());
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
        let (mut set_to, mut appends) = (Some(String::new()), false);
        for value in &children[1..] {
            match value.kind() {
                "array" => {
                    set_to = None;
                    for element in self.parts(*value) {
                        let word = self.word(element, place, steps);
                        if word.is_some_and(|word| word.text.contains('[')) {
                            self.opaque(*value, "the index of an array is computed, which may run commands");
                        }
                    }
                }
                kind if is_word(kind) => {
                    let word = self.word(*value, place, steps);
                    // No names of files take the place of a pattern here.
                    set_to = word.filter(|word| word.dynamic.is_none()).map(|word| word.text);
                }
                "+=" => appends = true,
                _ if !value.is_named() => {}
                _ => self.opaque(*value, MISREAD),
            }
        }
        let value = set_to.filter(|_| !appends);
        Some(Assignment { name: self.slice(*name).to_owned(), text: self.slice(node).to_owned(), value })
    }

    /// The variable of a loop.
    pub(super) fn loop_variable(&mut self, node: Node<'t>) {
        let name = self.slice(node).to_owned();
        if !builtins::stays_in_the_shell(&name) {
            let text = format!("{name}=...");
            self.lone_assignment(&Assignment { name, text, value: None });
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
                        parts.words.push(assignment.into_word());
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

/// What `export`, `declare` and their like make of variables.
pub(super) fn declared(words: &[Word], scope: &Scope<'_>, result: &mut Understood) {
    let Some((declares, arguments)) = words.split_first() else { return };
    let exports = declares.text == "export";
    for word in arguments {
        let (name, value) = word.text.split_once('=').unwrap_or((&word.text, ""));
        let (name, appends) = name.strip_suffix('+').map_or((name, false), |name| (name, true));
        let stays = !exports && builtins::stays_in_the_shell(name);
        if word.text.len() == name.len() {
            // Its value was judged when it was set, unless it was meant for the shell alone.
            match builtins::variable(name) {
                Variable::ChangesTheShell => result.opaque(format!("{name} changes what the shell runs")),
                Variable::ChangesPrograms if exports => result.exact(format!("{name} may change what programs do")),
                Variable::ChangesPrograms | Variable::Harmless => {}
            }
        } else if builtins::variable(name) == Variable::Harmless || !stays {
            let value = Some(value).filter(|_| word.dynamic.is_none() && !appends);
            wrappers::assigned(name, value, scope, result);
        }
    }
}
