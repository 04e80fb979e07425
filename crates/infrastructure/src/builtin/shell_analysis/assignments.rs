//! Assignments and declarations of variables.

use super::{
    builtins::{self, Variable},
    command::{Scope, Understood},
    simple_command::Parts,
    syntax,
    walk::{MISREAD, Place, Step, Walk, is_word},
    word::Word,
    wrappers,
};
use toolstead_domain::access::Clarity;
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
    /// Whether it changes how programs speak, and nothing that they do.
    pub(super) fn is_harmless(&self) -> bool {
        let harmless = |value: &String| builtins::is_harmless_value(&self.name, value);
        builtins::variable(&self.name) == Variable::Harmless && self.value.as_ref().is_some_and(harmless)
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
        if builtins::variable(&assignment.name) == Variable::Harmless || !builtins::stays_in_the_shell(&assignment.name)
        {
            self.later_programs_get(assignment);
        }
    }

    /// A variable that later programs find in their environment.
    fn later_programs_get(&mut self, assignment: &Assignment) {
        let scope = Scope { folders: &self.folders, limits: self.limits.clone() };
        let mut understood = Understood::new(&[Word { text: assignment.text.clone(), ..Word::default() }]);
        wrappers::assigned(&assignment.name, assignment.value.as_deref(), &scope, &mut understood);
        if understood.clarity != Clarity::Plain {
            self.add(understood, assignment.text.as_str().into());
        }
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
            let exports = parts.words.first().is_some_and(|word| word.text == "export");
            match child.kind() {
                "variable_assignment" => {
                    if let Some(assignment) = self.assignment(child, place, steps) {
                        let array = self.slice(child).contains("=(");
                        self.declared(&assignment, exports);
                        let text = if array { format!("{}=()", assignment.name) } else { assignment.text };
                        parts.words.push(Word { text, ..Word::default() });
                    }
                }
                "variable_name" => {
                    let name = self.slice(child).to_owned();
                    if exports && builtins::variable(&name) == Variable::ChangesPrograms {
                        self.exported_as_it_is(&name);
                    }
                    parts.words.push(Word { text: name, ..Word::default() });
                }
                kind if is_word(kind) => {
                    if let Some(word) = self.word(child, place, steps) {
                        if let Some(assignment) = quoted_assignment(&word).filter(|_| at > 0) {
                            self.declared(&assignment, exports);
                        }
                        parts.words.push(word);
                    }
                }
                _ if at == 0 => parts.words.push(Word { text: self.slice(child).to_owned(), ..Word::default() }),
                "comment" => {}
                _ => self.opaque(child, MISREAD),
            }
        }
        self.simple_command(&parts, node.byte_range());
    }

    fn declared(&mut self, assignment: &Assignment, exports: bool) {
        if exports { self.later_programs_get(assignment) } else { self.lone_assignment(assignment) }
    }

    /// A variable is handed on whose value was judged when it was set, unless it was meant for the shell alone.
    fn exported_as_it_is(&mut self, name: &str) {
        let mut understood = Understood::new(&[Word { text: name.to_owned(), ..Word::default() }]);
        understood.exact(format!("{name} may change what programs do"));
        self.add(understood, name.into());
    }
}

/// `export "A=b"`: quotes hide the assignment from the tree.
fn quoted_assignment(word: &Word) -> Option<Assignment> {
    let (name, value) = word.text.split_once('=')?;
    let (name, appends) = name.strip_suffix('+').map_or((name, false), |name| (name, true));
    let value = Some(value.to_owned()).filter(|_| word.dynamic.is_none() && !appends);
    builtins::is_name(name).then(|| Assignment { name: name.to_owned(), text: word.text.clone(), value })
}
