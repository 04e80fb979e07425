//! Simple commands in the tree: their parts are gathered, and what is understood of them becomes an access.

use super::{
    Touch, TouchOrigin,
    assignments::Assignment,
    command::{Scope, Understood, understand},
    folders::{Folders, Move},
    redirections::{TOO_MANY_FILES, Untold},
    syntax,
    walk::{MISREAD, Place, Step, Walk, is_redirection, is_word},
    word::Word,
    wrappers,
};
use std::{ops::Range, sync::Arc};
use toolstead_domain::access::{Clarity, CommandAccess};
use tree_sitter::Node;

/// More words in further readings than these are opaque together.
const MAX_READING_WORDS: usize = 200_000;

/// The parts of a simple command.
#[derive(Default)]
pub(super) struct Parts<'t> {
    pub(super) words: Vec<Word>,
    pub(super) assignments: Vec<Assignment>,
    redirections: Vec<Node<'t>>,
}

impl<'t> Walk<'t> {
    pub(super) fn command(
        &mut self,
        node: Node<'t>,
        redirections: &[Node<'t>],
        place: Place,
        steps: &mut Vec<Step<'t>>,
    ) {
        let mut parts = Parts::default();
        let children = syntax::children(node);
        if !syntax::only_blanks_between(self.text, node, &children) {
            self.opaque(node, MISREAD);
        }
        for child in children {
            match child.kind() {
                "variable_assignment" if parts.words.is_empty() => {
                    if let Some(assignment) = self.assignment(child, place, steps) {
                        parts.assignments.push(assignment);
                    }
                }
                "command_name" => {
                    if !parts.words.is_empty() {
                        self.opaque(node, MISREAD);
                    }
                    for name in syntax::children(child) {
                        self.push_word(name, &mut parts, place, steps);
                    }
                }
                kind if is_redirection(kind) => {
                    let before = parts.words.len();
                    parts.redirections.push(child);
                    self.further_words(child, &mut parts, place, steps);
                    if before == 0 && !parts.words.is_empty() {
                        self.opaque(node, MISREAD);
                    }
                }
                "==" | "=~" | "$" => self.push_word(child, &mut parts, place, steps),
                kind if is_word(kind) => self.push_word(child, &mut parts, place, steps),
                "comment" => {}
                _ => {
                    self.opaque(child, MISREAD);
                    steps.push(Step::Enter(child, place));
                }
            }
        }
        let mut end = node.end_byte();
        if let Some(redirect) = redirections.first().filter(|next| syntax::loses_a_dash(self.text, node, **next)) {
            parts.words.push(Word { text: "-".into(), ..Word::default() });
            end = redirect.start_byte();
        }
        for redirection in redirections {
            parts.redirections.push(*redirection);
            self.further_words(*redirection, &mut parts, place, steps);
        }
        // The text of the command with its redirections, as far as they stand in its line.
        let ends = redirections.iter().filter(|node| node.kind() != "heredoc_redirect").map(Node::end_byte);
        let range = node.start_byte()..ends.max().unwrap_or(0).max(end);
        let folders = self.folders.clone();
        for redirection in std::mem::take(&mut parts.redirections) {
            self.redirection(redirection, &folders, place, steps);
        }
        self.simple_command(&parts, range);
    }

    /// A word among the parts of a command.
    pub(super) fn push_word(&mut self, node: Node<'t>, parts: &mut Parts<'t>, place: Place, steps: &mut Vec<Step<'t>>) {
        if let Some(word) = self.word(node, place, steps) {
            parts.words.push(word);
        }
    }

    /// Words that the tree hangs below a redirection and that bash gives to the command.
    pub(super) fn further_words(
        &mut self,
        node: Node<'t>,
        parts: &mut Parts<'t>,
        place: Place,
        steps: &mut Vec<Step<'t>>,
    ) {
        match node.kind() {
            "file_redirect" => {
                let destinations: Vec<_> =
                    syntax::children(node).into_iter().filter(|child| is_word(child.kind())).collect();
                for word in destinations.iter().skip(1) {
                    self.push_word(*word, parts, place, steps);
                }
            }
            "heredoc_redirect" => {
                for word in syntax::children(node).into_iter().filter(|child| is_word(child.kind())) {
                    self.push_word(word, parts, place, steps);
                }
            }
            _ => {}
        }
    }

    /// Adds a simple command.
    pub(super) fn simple_command(&mut self, parts: &Parts<'t>, range: Range<usize>) {
        let text: Arc<str> = self.text.get(range).unwrap_or_default().trim_end().into();
        if parts.words.is_empty() {
            for assignment in &parts.assignments {
                self.lone_assignment(assignment);
            }
            return;
        }
        let scope = Scope { folders: &self.folders, limits: self.limits.clone() };
        let mut understood = understand(&parts.words, &scope);
        let harmful: Vec<_> = parts.assignments.iter().filter(|one| !one.is_harmless()).collect();
        let reads_lines = &*parts.words[0].text == "read" && harmful.iter().all(|one| one.name == "IFS");
        if !harmful.is_empty() && !reads_lines {
            let plain = understood.words.clone();
            let assigned = harmful.iter().map(|one| one.text.as_str().into());
            understood.words = assigned.chain(plain.iter().cloned()).collect();
            understood.reading(plain);
            for one in &harmful {
                wrappers::assigned(&one.name, one.value.as_deref(), &scope, &mut understood);
            }
        }
        self.add(understood, text);
    }

    /// Adds what is understood of a command, and the files that it names.
    pub(super) fn add(&mut self, mut understood: Understood, text: Arc<str>) {
        let folders = self.folders.clone();
        let command = self.result.commands.len();
        let origin = TouchOrigin::Operand { command };
        let mut counted = true;
        for operand in std::mem::take(&mut understood.operands) {
            let path = (operand.path.as_str(), operand.writes, operand.tree);
            match self.touch(path, origin, &folders) {
                Ok(()) => {}
                Err(Untold::NoFolder) => understood.exact("the folder that it runs in cannot be told"),
                Err(Untold::TooMany) => counted = false,
            }
        }
        for touch in understood.inner.iter().flat_map(|inner| &inner.touches) {
            let origin = match touch.origin {
                TouchOrigin::Redirection { .. } => TouchOrigin::Redirection { command },
                TouchOrigin::Operand { .. } => origin,
            };
            counted &= self.add_touch(Touch { origin, ..touch.clone() });
        }
        if !counted {
            self.limits.spend();
            understood.opaque(TOO_MANY_FILES);
        }
        self.reading_words += understood.readings.iter().map(Vec::len).sum::<usize>();
        if self.reading_words > MAX_READING_WORDS {
            self.limits.spend();
            understood.readings.clear();
            understood.opaque("it has too many arguments to tell which of them it starts");
        }
        match &understood.moves {
            Some(Move::Somewhere) => self.folders = Folders::anywhere(),
            Some(to) => self.folders.go(to),
            None => self.folders.settle(),
        }
        let opaque = matches!(understood.clarity, Clarity::Opaque(_));
        let words = if opaque {
            // What it says is no proof, but what deny rules look for may well stand in it.
            let words = std::mem::take(&mut understood.words);
            understood.reading(words);
            Arc::default()
        } else {
            understood.words.into()
        };
        self.result.commands.push(CommandAccess {
            whole: self.whole.clone(),
            text,
            words,
            readings: understood.readings.into_iter().map(Arc::from).collect(),
            operands: Arc::default(),
            free: Arc::default(),
            clarity: understood.clarity,
        });
    }

    pub(super) fn test(&mut self, node: Node<'t>, place: Place, steps: &mut Vec<Step<'t>>) {
        let written = self.slice(node);
        let expansions = self.enter_expansions(node, place, steps);
        if written.starts_with("[[") {
            if let Some(reason) = double_brackets(written) {
                self.opaque(node, reason);
            }
            self.folders.settle();
            return;
        }
        match Word::read_all(self.text, node.byte_range(), &expansions) {
            Ok(words) => self.simple_command(&Parts { words, ..Parts::default() }, node.byte_range()),
            Err(reason) => self.misread(node, reason),
        }
    }
}

/// What `[[ ... ]]` may evaluate: operands of number comparisons, and names that are tested.
fn double_brackets(written: &str) -> Option<&'static str> {
    let words: Vec<&str> = written.split_ascii_whitespace().collect();
    let number = |word: Option<&&str>| {
        word.is_some_and(|word| {
            matches!(*word, "$#" | "$?") || !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    // Operators need no blanks around them but behind them: `[[ (-v $x) ]]`, `[[ a||-v $x ]]`.
    let part = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let stands_alone = |(at, operator): (usize, &str)| {
        let bytes = written.as_bytes();
        let before = at.checked_sub(1).and_then(|before| bytes.get(before));
        !part(before) && !matches!(before, Some(b'"' | b'\'')) && !part(bytes.get(at + operator.len()))
    };
    if ["-v", "-R"].iter().flat_map(|operator| written.match_indices(operator)).any(stands_alone) {
        return Some("`[[` evaluates what it takes for a variable's name");
    }
    for (at, word) in words.iter().enumerate() {
        match *word {
            "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" => {
                let before = at.checked_sub(1).and_then(|before| words.get(before));
                if !number(before) || !number(words.get(at + 1)) {
                    return Some("`[[` computes what it compares, which may run commands");
                }
            }
            _ => {}
        }
    }
    // Commands in patterns are not always nodes of the tree.
    let hidden = written.contains(['`', '\\']) || ["$(", "<(", ">(", "$["].iter().any(|open| written.contains(open));
    hidden.then_some("`[[` holds another command")
}
