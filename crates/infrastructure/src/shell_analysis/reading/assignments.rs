//! Assignments of variables.

use super::{
    findings::Findings,
    step::{NodeNesting, WalkStep},
    syntax::{self, MISREAD, is_word},
};
use crate::shell_analysis::{
    catalogue::variables,
    word::{DynamicReason, Word},
};
use tree_sitter::Node;

/// `name=value` before a command, or on its own.
pub(super) struct Assignment {
    pub(super) name: String,
    /// Whole assignment as it was written.
    pub(super) text: String,
    /// Value, if it is known before the command runs.
    pub(super) value: Option<String>,
}

impl Assignment {
    /// Converts the assignment to an argument of a declaration (`export a=b`).
    pub(super) fn into_word(self) -> Word {
        match self.value {
            Some(value) => Word { text: format!("{}={value}", self.name), ..Word::default() },
            None => Word { text: self.text, dynamic: Some(DynamicReason::Quoted), ..Word::default() },
        }
    }

    /// Returns `true` if the assignment only changes how programs print, not what they do.
    pub(super) fn is_harmless(&self) -> bool {
        self.value.as_ref().is_some_and(|value| variables::is_harmless(&self.name, value))
    }
}

/// Parses an assignment, and schedules the expansions in its value. An assignment to an array element is opaque and
/// returns `None`.
pub(super) fn assignment<'t>(
    found: &mut Findings<'t>,
    node: Node<'t>,
    place: NodeNesting,
    steps: &mut Vec<WalkStep<'t>>,
) -> Option<Assignment> {
    let children = syntax::children(node);
    let mut end = node.start_byte();
    let joined = children.iter().all(|child| std::mem::replace(&mut end, child.end_byte()) == child.start_byte());
    if !joined {
        found.opaque(node, MISREAD);
    }
    let Some(name) = children.first().filter(|name| name.kind() == "variable_name") else {
        found.opaque(node, "the index of an array is computed, which may run commands");
        found.below(node, place, steps);
        return None;
    };
    let (mut set_to, mut appends) = (Some(String::new()), false);
    for value in &children[1..] {
        match value.kind() {
            "array" => {
                set_to = None;
                for element in found.parts(*value) {
                    let word = found.word(element, place, steps);
                    found.looks_at_files |= word.as_ref().is_some_and(Word::may_become_file_names);
                    if word.is_some_and(|word| word.text.contains('[')) {
                        found.opaque(*value, "the index of an array is computed, which may run commands");
                    }
                }
            }
            kind if is_word(kind) => {
                let word = found.word(*value, place, steps);
                // Bash does not replace a pattern by file names here.
                set_to = word.filter(|word| word.dynamic.is_none()).map(|word| word.text);
            }
            "+=" => appends = true,
            _ if !value.is_named() => {}
            _ => found.opaque(*value, MISREAD),
        }
    }
    let value = set_to.filter(|_| !appends);
    Some(Assignment { name: found.slice(*name).to_owned(), text: found.slice(node).to_owned(), value })
}
