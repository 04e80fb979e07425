//! The walk over the syntax tree: no recursion, no look at parents. Every kind of node is on a list here; a kind that is
//! not makes the text opaque.

use super::{
    Analysis, Limits, Touch, TouchOrigin,
    builtins::{self, Variable},
    command::{Scope, understand},
    folders::{Folders, Move},
    syntax,
    word::{Expansions, Misread, Word},
};
use std::{ops::Range, path::Path, sync::Arc};
use toolstead_domain::access::{Clarity, CommandAccess};
use tree_sitter::Node;

/// More simple commands than these are opaque together.
const MAX_COMMANDS: usize = 1_000;

/// Deeper nesting than this is opaque.
const MAX_DEPTH: usize = 300;

/// More words in further readings than these are opaque together.
const MAX_READING_WORDS: usize = 200_000;

/// Opaque parts that are listed; they all say the same to a rule.
const MAX_OPAQUE: usize = 20;

const MISREAD: &str = "bash may read it differently";

/// The walk's state.
pub(super) struct Walk<'t> {
    text: &'t str,
    whole: Arc<str>,
    limits: Limits,
    result: Analysis,
    opaque: usize,
    reading_words: usize,
    folders: Folders,
    /// The folders at the beginning of what is not finished yet.
    saved: Vec<Folders>,
    /// Where the text may move to another folder.
    moves: Vec<usize>,
}

enum Step<'t> {
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
struct Place {
    depth: usize,
    /// Within `$(...)` or backticks.
    substituted: bool,
    /// Within backticks.
    backticks: bool,
}

/// The parts of a simple command.
#[derive(Default)]
struct Parts<'t> {
    words: Vec<Word>,
    assignments: Vec<Assignment>,
    redirections: Vec<Node<'t>>,
}

/// `name=value` in front of a command, or alone.
struct Assignment {
    name: String,
    /// As it was written.
    text: String,
}

impl<'t> Walk<'t> {
    pub(super) fn new(text: &'t str, folders: Folders, limits: Limits) -> Self {
        let result = Analysis { commands: Vec::new(), touches: Vec::new() };
        let moves = moving_words(text);
        let saved = Vec::new();
        Self { text, whole: text.into(), limits, result, opaque: 0, reading_words: 0, folders, saved, moves }
    }

    pub(super) fn run(mut self, root: Node<'t>) -> Analysis {
        if root.has_error() {
            self.opaque(root, "it is no bash that can be read without doubt");
        }
        let mut steps = vec![Step::Enter(root, Place { depth: 0, substituted: false, backticks: false })];
        while let Some(step) = steps.pop() {
            if self.result.commands.len() > MAX_COMMANDS {
                self.opaque(root, "it holds more than 1,000 commands");
                break;
            }
            match step {
                Step::Enter(node, place) if place.depth > MAX_DEPTH => self.opaque(node, "it is nested too deeply"),
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
                let inside =
                    Place { substituted: true, backticks: place.backticks || written.starts_with('`'), ..below };
                steps.push(Step::Restore(self.folders.clone()));
                self.statements(node, inside, steps);
            }
            "process_substitution" => {
                self.opaque(node, "another command runs beside it and is passed as a file");
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

    /// Enters everything below a node whose own text was judged before.
    fn below(&mut self, node: Node<'t>, place: Place, steps: &mut Vec<Step<'t>>) {
        steps.extend(
            syntax::children(node).into_iter().rev().filter(Node::is_named).map(|child| Step::Enter(child, place)),
        );
    }

    /// The parts of a node, if nothing but blanks lies between them.
    fn parts(&mut self, node: Node<'t>) -> Vec<Node<'t>> {
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

    fn list(&mut self, node: Node<'t>, redirections: Vec<Node<'t>>, place: Place, steps: &mut Vec<Step<'t>>) {
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

    fn redirected(&mut self, node: Node<'t>, place: Place, steps: &mut Vec<Step<'t>>) {
        let parts = self.parts(node);
        let (redirections, body): (Vec<_>, Vec<_>) = parts.into_iter().partition(|part| is_redirection(part.kind()));
        match body.as_slice() {
            [body] => self.with_redirections(*body, redirections, place, steps),
            body => {
                self.only_redirects(&redirections, place, steps);
                if !body.is_empty() {
                    self.opaque(node, MISREAD);
                }
                steps.extend(body.iter().map(|body| Step::Enter(*body, place)));
            }
        }
    }

    /// A statement whose redirections the tree hangs around it. Bash gives those behind a list to its last command.
    fn with_redirections(
        &mut self,
        body: Node<'t>,
        redirections: Vec<Node<'t>>,
        place: Place,
        steps: &mut Vec<Step<'t>>,
    ) {
        match body.kind() {
            "command" => self.command(body, &redirections, place, steps),
            "list" => self.list(body, redirections, place, steps),
            "pipeline" => self.pipeline(body, redirections, place, steps),
            _ => {
                self.only_redirects(&redirections, place, steps);
                steps.push(Step::Enter(body, place));
            }
        }
    }

    /// Redirections without a simple command that could take further words from them.
    fn only_redirects(&mut self, redirections: &[Node<'t>], place: Place, steps: &mut Vec<Step<'t>>) {
        let folders = self.folders.clone();
        for redirection in redirections {
            let mut parts = Parts::default();
            self.further_words(*redirection, &mut parts, place, steps);
            if !parts.words.is_empty() {
                self.opaque(*redirection, MISREAD);
            }
            self.redirection(*redirection, &folders, place, steps);
        }
    }

    fn pipeline(&mut self, node: Node<'t>, redirections: Vec<Node<'t>>, place: Place, steps: &mut Vec<Step<'t>>) {
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

    fn command(&mut self, node: Node<'t>, redirections: &[Node<'t>], place: Place, steps: &mut Vec<Step<'t>>) {
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
        for redirection in redirections {
            parts.redirections.push(*redirection);
            self.further_words(*redirection, &mut parts, place, steps);
        }
        // The text of the command with its redirections, as far as they stand in its line.
        let end = redirections.iter().filter(|node| node.kind() != "heredoc_redirect").map(Node::end_byte).max();
        let range = node.start_byte()..end.unwrap_or(0).max(node.end_byte());
        let folders = self.folders.clone();
        for redirection in std::mem::take(&mut parts.redirections) {
            self.redirection(redirection, &folders, place, steps);
        }
        self.simple_command(&parts, range);
    }

    /// A word among the parts of a command.
    fn push_word(&mut self, node: Node<'t>, parts: &mut Parts<'t>, place: Place, steps: &mut Vec<Step<'t>>) {
        if let Some(word) = self.word(node, place, steps) {
            parts.words.push(word);
        }
    }

    /// Words that the tree hangs below a redirection and that bash gives to the command.
    fn further_words(&mut self, node: Node<'t>, parts: &mut Parts<'t>, place: Place, steps: &mut Vec<Step<'t>>) {
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
    fn simple_command(&mut self, parts: &Parts<'t>, range: Range<usize>) {
        let text: Arc<str> = self.text.get(range).unwrap_or_default().trim_end().into();
        if parts.words.is_empty() {
            for assignment in &parts.assignments {
                self.lone_assignment(assignment);
            }
            return;
        }
        let scope = Scope { folders: &self.folders, limits: self.limits };
        let mut understood = understand(&parts.words, &scope);
        let harmful: Vec<_> =
            parts.assignments.iter().filter(|one| builtins::variable(&one.name) != Variable::Harmless).collect();
        let reads_lines = &*parts.words[0].text == "read" && harmful.iter().all(|one| one.name == "IFS");
        if !harmful.is_empty() && !reads_lines {
            let plain = understood.words.clone();
            let assigned = harmful.iter().map(|one| one.text.as_str().into());
            understood.words = assigned.chain(plain.iter().cloned()).collect();
            understood.reading(plain);
            for one in &harmful {
                // Many of them hold the name of a program that another one starts.
                let value = one.text.split_once('=').map_or("", |(_, value)| value.trim_matches(['\'', '"']));
                understood.reading(value.split_ascii_whitespace().map(Arc::from).collect());
                if builtins::variable(&one.name) == Variable::ChangesTheShell {
                    understood.opaque(format!("{} changes what the shell runs", one.name));
                } else {
                    understood.exact(format!("{} may change what the program does", one.name));
                }
            }
        }
        let folders = self.folders.clone();
        for operand in std::mem::take(&mut understood.operands) {
            let path = (operand.path.as_str(), operand.writes, operand.tree);
            if !self.touch(path, TouchOrigin::Operand, &folders) {
                understood.exact("the folder that it runs in cannot be told");
            }
        }
        for inner in &understood.inner {
            self.result.touches.extend(inner.touches.iter().cloned());
        }
        self.reading_words += understood.readings.iter().map(Vec::len).sum::<usize>();
        if self.reading_words > MAX_READING_WORDS {
            understood.readings.clear();
            understood.opaque("it has too many arguments to tell which of them it starts");
        }
        match &understood.moves {
            Some(to) => self.folders.go(to),
            None => self.folders.settle(),
        }
        if matches!(understood.moves, Some(Move::Somewhere)) {
            self.folders = Folders::anywhere();
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
            clarity: understood.clarity,
        });
    }

    fn assignments(&mut self, node: Node<'t>, place: Place, steps: &mut Vec<Step<'t>>) {
        let parts = if node.kind() == "variable_assignments" { self.parts(node) } else { vec![node] };
        for part in parts {
            if let Some(assignment) = self.assignment(part, place, steps) {
                self.lone_assignment(&assignment);
            }
        }
        self.folders.settle();
    }

    /// An assignment for the shell itself, and for what it starts later if the variable was in the environment before.
    fn lone_assignment(&mut self, assignment: &Assignment) {
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
        self.result.commands.push(CommandAccess { whole: self.whole.clone(), text, words, readings, clarity });
    }

    /// Reads an assignment, and enters what its value holds.
    fn assignment(&mut self, node: Node<'t>, place: Place, steps: &mut Vec<Step<'t>>) -> Option<Assignment> {
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
    fn loop_variable(&mut self, node: Node<'t>) {
        let name = self.slice(node).to_owned();
        if !builtins::stays_in_the_shell(&name) {
            let text = format!("{name}=...");
            self.lone_assignment(&Assignment { name, text });
        }
    }

    fn declaration(&mut self, node: Node<'t>, place: Place, steps: &mut Vec<Step<'t>>) {
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

    fn test(&mut self, node: Node<'t>, place: Place, steps: &mut Vec<Step<'t>>) {
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

    /// Judges a redirection. Its words belong to the command and were read before.
    fn redirection(&mut self, node: Node<'t>, folders: &Folders, place: Place, steps: &mut Vec<Step<'t>>) {
        match node.kind() {
            "file_redirect" => self.file_redirection(node, folders, place, steps),
            "heredoc_redirect" => self.here_document(node, folders, place, steps),
            _ => {
                for child in self.parts(node) {
                    if is_word(child.kind()) {
                        self.word(child, place, steps);
                    }
                }
            }
        }
    }

    fn file_redirection(&mut self, node: Node<'t>, folders: &Folders, place: Place, steps: &mut Vec<Step<'t>>) {
        self.parts(node);
        let children = syntax::children(node);
        let operator = children.iter().find(|child| !child.is_named()).map_or("", |child| child.kind());
        let destination = children.iter().find(|child| is_word(child.kind()));
        let Some(destination) = destination else {
            if !operator.ends_with('-') {
                self.opaque(node, MISREAD);
            }
            return;
        };
        if operator.ends_with('-') {
            return self.opaque(node, MISREAD);
        }
        let Some(word) = self.word(*destination, place, steps) else { return };
        let Some(path) = word.literal() else {
            return self.opaque(node, "the file that it redirects to is known only when it runs");
        };
        let duplicates = path == "-" || path.trim_end_matches('-').bytes().all(|byte| byte.is_ascii_digit());
        if matches!(operator, ">&" | "<&") && duplicates && !path.is_empty() {
            return;
        }
        if matches!(path, "/dev/null" | "/dev/stdin" | "/dev/stdout" | "/dev/stderr") {
            return;
        }
        if path.is_empty() || path.starts_with("/dev/tcp") || path.starts_with("/dev/udp") {
            return self.opaque(node, "the shell opens a connection");
        }
        let writes = operator.contains('>');
        if !self.touch((path, writes, false), TouchOrigin::Redirection, folders) {
            self.opaque(node, "the folder that it redirects in cannot be told");
        }
    }

    /// Adds a path in each folder that is possible; false if none is known.
    fn touch(&mut self, (path, writes, tree): (&str, bool, bool), origin: TouchOrigin, folders: &Folders) -> bool {
        let path = Path::new(path);
        let paths = match folders.known() {
            _ if path.is_absolute() => vec![path.to_owned()],
            Some(folders) => folders.iter().map(|folder| folder.join(path)).collect(),
            None => return false,
        };
        for path in paths {
            let touch = Touch { path, writes, tree, origin };
            // The last ones are where repetitions are.
            if !self.result.touches.iter().rev().take(16).any(|known| *known == touch) {
                self.result.touches.push(touch);
            }
        }
        true
    }

    /// Whether the body ends where bash ends it, and what it holds.
    fn here_document(&mut self, node: Node<'t>, folders: &Folders, place: Place, steps: &mut Vec<Step<'t>>) {
        if place.substituted {
            self.opaque(node, "a here-document stands within a substitution");
        }
        let children = syntax::children(node);
        let part = |kind: &str| children.iter().copied().find(|child| child.kind() == kind);
        let body = part("heredoc_body");
        let (Some(start), Some(end)) = (part("heredoc_start"), part("heredoc_end")) else {
            return self.opaque(node, "a here-document does not end");
        };
        let written = self.slice(start);
        let quoted = written.contains(['\'', '"', '\\']);
        let delimiter = match (written.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')))
            .or_else(|| written.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')))
        {
            Some(inner) => inner,
            None => written,
        };
        let plain = !delimiter.is_empty()
            && delimiter.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'+'));
        let tabs = children.iter().any(|child| child.kind() == "<<-");
        let line_end = self.text[start.end_byte()..].find('\n').map(|at| start.end_byte() + at + 1);
        let Some(body_start) = line_end.filter(|_| plain) else {
            return self.opaque(node, "a here-document's end is not understood");
        };
        let rest_of_line = &self.text[start.end_byte()..body_start];
        let mut at = body_start;
        let found = self.text[body_start..].split_inclusive('\n').find(|line| {
            let candidate = line.strip_suffix('\n').unwrap_or(line);
            let candidate = if tabs { candidate.trim_start_matches('\t') } else { candidate };
            let is_end = candidate == delimiter;
            at += if is_end { 0 } else { line.len() };
            is_end
        });
        let body_text = &self.text[body_start..at];
        let ends = found.is_some()
            && (at..=at + found.map_or(0, str::len)).contains(&end.start_byte())
            && self.slice(end).trim() == delimiter;
        let begins = body.is_none_or(|body| {
            body.byte_range().is_empty() || (body_start..=at).contains(&body.start_byte()) && body.end_byte() <= at
        });
        if !ends
            || !begins
            || rest_of_line.contains("<<")
            || rest_of_line.contains(['\'', '"', '`', '\\', '(', '#', '$', '{'])
        {
            self.opaque(node, "a here-document may end elsewhere for bash");
        }
        if !quoted && (body_text.contains(['`', '\\']) || has_computed_dollar(body_text)) {
            self.opaque(node, "a here-document holds expansions");
        }
        for child in children {
            match child.kind() {
                "heredoc_body" if !quoted => steps.push(Step::Enter(child, place)),
                "heredoc_body" | "heredoc_start" | "heredoc_end" | "file_descriptor" => {}
                kind if is_redirection(kind) => self.redirection(child, folders, place, steps),
                kind if is_word(kind) => {}
                "pipeline" => {
                    steps.push(Step::Restore(self.folders.clone()));
                    steps.extend(
                        syntax::children(child).into_iter().filter(Node::is_named).map(|part| Step::Enter(part, place)),
                    );
                }
                _ if child.is_named() => steps.push(Step::Enter(child, place)),
                _ => {}
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
    fn word(&mut self, node: Node<'t>, place: Place, steps: &mut Vec<Step<'t>>) -> Option<Word> {
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
    fn enter_expansions(&mut self, node: Node<'t>, place: Place, steps: &mut Vec<Step<'t>>) -> Expansions {
        let mut expansions = Expansions::new();
        let mut stack = vec![node];
        while let Some(node) = stack.pop() {
            match node.kind() {
                "expansion"
                | "simple_expansion"
                | "arithmetic_expansion"
                | "command_substitution"
                | "process_substitution" => {
                    expansions.insert(node.start_byte(), node.end_byte());
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

    fn slice(&self, node: Node<'t>) -> &'t str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    fn misread(&mut self, node: Node<'t>, reason: Misread) {
        self.opaque(node, reason);
    }

    /// Says that this part cannot be told.
    fn opaque(&mut self, node: Node<'t>, reason: &str) {
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
fn is_word(kind: &str) -> bool {
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

fn is_redirection(kind: &str) -> bool {
    matches!(kind, "file_redirect" | "herestring_redirect" | "heredoc_redirect")
}

/// What `[[ ... ]]` may evaluate: operands of number comparisons, and names that are tested.
fn double_brackets(written: &str) -> Option<&'static str> {
    let words: Vec<&str> = written.split_ascii_whitespace().collect();
    let number = |word: Option<&&str>| {
        word.is_some_and(|word| {
            matches!(*word, "$#" | "$?") || !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    for (at, word) in words.iter().enumerate() {
        match *word {
            "-v" | "-R" => return Some("`[[` evaluates what it takes for a variable's name"),
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

/// Whether a text holds more than plain variables.
fn has_computed_dollar(text: &str) -> bool {
    text.split('$').skip(1).any(|behind| behind.starts_with(['(', '{', '[']))
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
