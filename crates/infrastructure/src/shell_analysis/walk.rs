//! The walk over the syntax tree: no recursion, no look at parents. Every kind of node is on a list here; a kind that is
//! not makes the text opaque.

use super::{
    Analysis, Limits,
    folders::Folders,
    redirections::literal_text,
    syntax,
    word::{Expansion, Expansions, Misread, Word},
};
use std::sync::Arc;
use toolstead_domain::access::CommandAccess;
use tree_sitter::Node;

/// More simple commands than these are opaque together.
const MAX_COMMANDS: usize = 1_000;

/// Deeper nesting than this is opaque.
const MAX_DEPTH: usize = 300;

/// Opaque parts that are listed; they all say the same to a rule.
const MAX_OPAQUE: usize = 20;

/// The tree is not what bash would read.
pub(super) const MISREAD: &str = "bash may read it differently";

/// The walk's state.
pub(super) struct Walk<'t> {
    pub(super) text: &'t str,
    pub(super) whole: Arc<str>,
    pub(super) limits: Limits,
    pub(super) result: Analysis,
    opaque: usize,
    pub(super) reading_words: usize,
    pub(super) folders: Folders,
    /// The folders at the beginning of what is not finished yet.
    saved: Vec<Folders>,
    /// Where the text may move to another folder.
    moves: Vec<usize>,
}

pub(super) enum Step<'t> {
    Enter(Node<'t>, Place),
    /// A subshell ended: its folder is forgotten.
    Restore(Folders),
    /// Between the two sides of `&&` (true) or `||`.
    RightSide(bool),
    /// Behind both sides.
    Join(bool),
    /// Behind a statement whose success says nothing about its last `cd`.
    Settle,
    /// A statement with redirections that stand outside of it in the tree.
    Redirected(Node<'t>, Vec<Node<'t>>, Place),
}

/// Where in the tree a node stands.
#[derive(Clone, Copy)]
pub(super) struct Place {
    depth: usize,
    /// Within `$(...)` or backticks.
    pub(super) substituted: bool,
    /// Within backticks.
    backticks: bool,
}

impl<'t> Walk<'t> {
    pub(super) fn new(text: &'t str, folders: Folders, limits: Limits) -> Self {
        let result = Analysis { commands: Vec::new(), touches: Vec::new() };
        let moves = moving_words(text);
        let saved = Vec::new();
        Self { text, whole: text.into(), limits, result, opaque: 0, reading_words: 0, folders, saved, moves }
    }

    pub(super) fn run(mut self, root: Node<'t>) -> Analysis {
        if !self.is_well_formed(root) {
            self.opaque(root, "it is no bash that can be read without doubt");
        }
        let mut steps = vec![Step::Enter(root, Place { depth: 0, substituted: false, backticks: false })];
        while let Some(step) = steps.pop() {
            if self.result.commands.len() > MAX_COMMANDS {
                self.limits.spend();
                self.opaque(root, "it holds more than 1,000 commands");
                break;
            }
            match step {
                Step::Enter(node, place) if place.depth > MAX_DEPTH => {
                    self.limits.spend();
                    self.opaque(node, "it is nested too deeply");
                }
                Step::Enter(node, place) => self.enter(node, place, &mut steps),
                Step::Restore(folders) => {
                    self.folders = folders;
                    self.folders.settle();
                }
                Step::RightSide(and) => {
                    self.saved.push(self.folders.clone());
                    self.folders = self.folders.right_side(and);
                }
                Step::Join(and) => {
                    if let Some(left) = self.saved.pop() {
                        self.folders = Folders::join(left, self.folders.clone(), and);
                    }
                }
                Step::Settle => self.folders.settle(),
                Step::Redirected(node, redirections, place) if redirections.is_empty() => {
                    steps.push(Step::Enter(node, place));
                }
                Step::Redirected(node, redirections, place) => {
                    self.with_redirections(node, redirections, place, &mut steps);
                }
            }
        }
        self.result
    }

    fn enter(&mut self, node: Node<'t>, place: Place, steps: &mut Vec<Step<'t>>) {
        let below = Place { depth: place.depth + 1, ..place };
        if node.is_error() || node.is_missing() {
            self.opaque(node, "it is no bash that can be read without doubt");
        }
        match node.kind() {
            "comment" if place.backticks => self.opaque(node, "a comment stands within backticks"),
            "comment"
            | "word"
            | "raw_string"
            | "string_content"
            | "number"
            | "variable_name"
            | "ansi_c_string"
            | "special_variable_name"
            | "file_descriptor"
            | "heredoc_start"
            | "heredoc_end"
            | "heredoc_content"
            | "test_operator" => {}
            "program" | "compound_statement" | "do_group" | "if_statement" | "elif_clause" | "else_clause" => {
                self.statements(node, below, steps);
            }
            "negated_command" => {
                steps.push(Step::Settle);
                self.statements(node, below, steps);
            }
            "while_statement" | "for_statement" => {
                self.forget_folders_that_a_loop_changes(node);
                self.statements(node, below, steps);
            }
            "case_statement" | "case_item" => self.statements(node, below, steps),
            "function_definition" => {
                self.opaque(node, "it defines a function, whose name then means something else");
                if !self.moves.is_empty() {
                    self.folders = Folders::anywhere();
                }
                self.statements(node, below, steps);
            }
            "list" => self.list(node, Vec::new(), place, steps),
            "pipeline" => self.pipeline(node, Vec::new(), below, steps),
            "subshell" => {
                steps.push(Step::Restore(self.folders.clone()));
                self.statements(node, below, steps);
            }
            "command_substitution" => {
                let written = self.slice(node);
                if written.starts_with("$`") || written.starts_with('`') && written.contains('\\') {
                    self.opaque(node, "backslashes within backticks mean something else");
                }
                let inside = Place {
                    substituted: place.substituted || literal_text(written).is_none(),
                    backticks: place.backticks || written.starts_with('`'),
                    ..below
                };
                steps.push(Step::Restore(self.folders.clone()));
                self.statements(node, inside, steps);
            }
            "process_substitution" => {
                if !self.slice(node).starts_with("<(") {
                    self.opaque(node, "another command runs beside it and is passed as a file");
                }
                steps.push(Step::Restore(self.folders.clone()));
                self.statements(node, Place { substituted: true, ..below }, steps);
            }
            "redirected_statement" => self.redirected(node, below, steps),
            "command" => self.command(node, &[], below, steps),
            "variable_assignment" | "variable_assignments" => self.assignments(node, below, steps),
            "declaration_command" | "unset_command" => self.declaration(node, below, steps),
            "test_command" => self.test(node, below, steps),
            "file_redirect" | "herestring_redirect" | "heredoc_redirect" => {
                let folders = self.folders.clone();
                self.redirection(node, &folders, below, steps);
            }
            "expansion" | "simple_expansion" | "arithmetic_expansion" => self.expansion(node, below, steps),
            "string" | "concatenation" | "brace_expression" | "array" => self.below(node, below, steps),
            "heredoc_body" | "command_name" => self.below(node, below, steps),
            _ => {
                if node.is_named() && !node.is_error() {
                    self.opaque(node, "this part of bash's grammar is not understood");
                }
                self.below(node, below, steps);
            }
        }
    }

    /// Whether the tree holds no errors, but for those that stand for the first half of `<<<`.
    fn is_well_formed(&self, root: Node<'t>) -> bool {
        let mut stack = vec![root];
        while let Some(node) = stack.pop() {
            if node.is_error() || node.is_missing() {
                return false;
            }
            if node.has_error() {
                let children = syntax::children(node);
                stack.extend(children.iter().enumerate().filter_map(|(at, child)| {
                    let is_half = node.kind() == "redirected_statement"
                        && child.is_error()
                        && children.get(at + 1).is_some_and(|next| self.is_here_string(*next));
                    (!is_half).then_some(*child)
                }));
            }
        }
        true
    }

    /// Enters everything below a node whose own text was judged before.
    pub(super) fn below(&mut self, node: Node<'t>, place: Place, steps: &mut Vec<Step<'t>>) {
        steps.extend(
            syntax::children(node).into_iter().rev().filter(Node::is_named).map(|child| Step::Enter(child, place)),
        );
    }

    /// The parts of a node, if nothing but blanks lies between them.
    pub(super) fn parts(&mut self, node: Node<'t>) -> Vec<Node<'t>> {
        let children = syntax::children(node);
        if !syntax::only_blanks_between(self.text, node, &children) {
            self.opaque(node, MISREAD);
        }
        children.into_iter().filter(Node::is_named).collect()
    }

    /// Enters statements one after the other; words that stand between them are read.
    fn statements(&mut self, node: Node<'t>, place: Place, steps: &mut Vec<Step<'t>>) {
        if node.kind() == "compound_statement" && self.slice(node).starts_with("((") {
            return self.arithmetic(node, place, steps);
        }
        let parts = self.parts(node);
        let mut entered = Vec::new();
        for part in parts {
            match part.kind() {
                "variable_name" => self.loop_variable(part),
                "extglob_pattern" => {
                    let safe = |byte: u8| byte.is_ascii_alphanumeric() || b"_.*?^+/-".contains(&byte);
                    if !self.slice(part).bytes().all(safe) {
                        self.opaque(part, "this pattern is not understood");
                    }
                }
                kind if is_word(kind) => {
                    if node.kind() != "function_definition" {
                        self.word(part, place, &mut entered);
                    }
                }
                _ => entered.push(Step::Enter(part, place)),
            }
        }
        steps.extend(entered.into_iter().rev());
    }

    pub(super) fn list(
        &mut self,
        node: Node<'t>,
        redirections: Vec<Node<'t>>,
        place: Place,
        steps: &mut Vec<Step<'t>>,
    ) {
        let and = syntax::children(node).iter().any(|child| child.kind() == "&&");
        let parts = self.parts(node);
        let mut operands = parts.iter().copied().filter(|part| part.kind() != "comment");
        let (Some(left), Some(right), None) = (operands.next(), operands.next(), operands.next()) else {
            self.opaque(node, MISREAD);
            self.only_redirects(&redirections, place, steps);
            return self.below(node, Place { depth: place.depth + 1, ..place }, steps);
        };
        // A long chain is deep in the tree on its left side only, and not nested for a reader.
        let depth = if left.kind() == "list" { place.depth } else { place.depth + 1 };
        steps.push(Step::Join(and));
        steps.push(Step::Redirected(right, redirections, Place { depth: place.depth + 1, ..place }));
        steps.push(Step::RightSide(and));
        steps.push(Step::Enter(left, Place { depth, ..place }));
    }

    pub(super) fn pipeline(
        &mut self,
        node: Node<'t>,
        redirections: Vec<Node<'t>>,
        place: Place,
        steps: &mut Vec<Step<'t>>,
    ) {
        let parts = self.parts(node);
        let last = parts.len().saturating_sub(1);
        let mut redirections = Some(redirections);
        for (at, part) in parts.into_iter().enumerate().rev() {
            steps.push(Step::Restore(self.folders.clone()));
            match redirections.take() {
                Some(redirections) if at == last && !redirections.is_empty() => {
                    steps.push(Step::Redirected(part, redirections, place));
                }
                _ => steps.push(Step::Enter(part, place)),
            }
        }
    }

    fn expansion(&mut self, node: Node<'t>, place: Place, steps: &mut Vec<Step<'t>>) {
        let written = self.slice(node);
        match node.kind() {
            "arithmetic_expansion" => return self.arithmetic(node, place, steps),
            "expansion" if !syntax::reads_a_variable(written) => {
                self.opaque(node, "an expansion computes its value, which may run commands");
            }
            "simple_expansion" => {
                let name = written.strip_prefix('$').unwrap_or_default();
                let plain = matches!(name, "*" | "@" | "?" | "!" | "#" | "-" | "$" | "_")
                    || !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
                if !plain {
                    self.opaque(node, MISREAD);
                }
                return;
            }
            _ => return,
        }
        self.below(node, place, steps);
    }

    fn arithmetic(&mut self, node: Node<'t>, place: Place, steps: &mut Vec<Step<'t>>) {
        if !syntax::only_numbers(self.slice(node)) {
            self.opaque(node, "arithmetic evaluates its variables, which may run commands");
            self.below(node, place, steps);
        }
    }

    /// Reads a node as one word, and enters its expansions.
    pub(super) fn word(&mut self, node: Node<'t>, place: Place, steps: &mut Vec<Step<'t>>) -> Option<Word> {
        let expansions = self.enter_expansions(node, place, steps);
        match Word::read(self.text, node.byte_range(), &expansions) {
            Ok(word) => Some(word),
            Err(reason) => {
                self.misread(node, reason);
                None
            }
        }
    }

    /// Enters the expansions below a node; says where they lie.
    pub(super) fn enter_expansions(&mut self, node: Node<'t>, place: Place, steps: &mut Vec<Step<'t>>) -> Expansions {
        let mut expansions = Expansions::new();
        let mut stack = vec![node];
        while let Some(node) = stack.pop() {
            match node.kind() {
                "expansion"
                | "simple_expansion"
                | "arithmetic_expansion"
                | "command_substitution"
                | "process_substitution" => {
                    let text =
                        Some(node).filter(|_| !place.substituted).and_then(|node| literal_text(self.slice(node)));
                    expansions.insert(node.start_byte(), Expansion { end: node.end_byte(), text });
                    steps.push(Step::Enter(node, place));
                }
                "translated_string" => self.opaque(node, "a translated text is not understood"),
                _ => stack.extend(syntax::children(node)),
            }
        }
        expansions
    }

    /// Within a loop a `cd` at its end decides where its beginning runs.
    fn forget_folders_that_a_loop_changes(&mut self, node: Node<'t>) {
        let from = self.moves.partition_point(|at| *at < node.start_byte());
        if self.moves.get(from).is_some_and(|at| *at < node.end_byte()) {
            self.folders = Folders::anywhere();
        }
    }

    pub(super) fn slice(&self, node: Node<'t>) -> &'t str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    pub(super) fn misread(&mut self, node: Node<'t>, reason: Misread) {
        self.opaque(node, reason);
    }

    /// Says that this part cannot be told.
    pub(super) fn opaque(&mut self, node: Node<'t>, reason: &str) {
        self.opaque += 1;
        if self.opaque <= MAX_OPAQUE {
            let text = self.slice(node).trim();
            let text = if text.is_empty() { self.text } else { text };
            let command = CommandAccess::opaque(self.whole.clone(), reason);
            self.result.commands.push(CommandAccess { text: super::shown(text).into(), ..command });
        }
    }
}

/// Nodes that are words or parts of words.
pub(super) fn is_word(kind: &str) -> bool {
    matches!(
        kind,
        "word"
            | "string"
            | "raw_string"
            | "ansi_c_string"
            | "translated_string"
            | "number"
            | "concatenation"
            | "expansion"
            | "simple_expansion"
            | "command_substitution"
            | "process_substitution"
            | "arithmetic_expansion"
            | "brace_expression"
    )
}

pub(super) fn is_redirection(kind: &str) -> bool {
    matches!(kind, "file_redirect" | "herestring_redirect" | "heredoc_redirect")
}

/// Where words stand that may move to another folder.
fn moving_words(text: &str) -> Vec<usize> {
    let inside = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let whole = |(at, word): (usize, &str)| {
        let before = at.checked_sub(1).and_then(|before| text.as_bytes().get(before));
        (!inside(before) && !inside(text.as_bytes().get(at + word.len()))).then_some(at)
    };
    let mut found: Vec<usize> =
        ["cd", "pushd", "popd"].iter().flat_map(|word| text.match_indices(word)).filter_map(whole).collect();
    found.sort_unstable();
    found
}
