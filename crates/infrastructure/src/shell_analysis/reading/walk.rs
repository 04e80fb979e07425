//! Walk over the syntax tree, without recursion and without access to parent nodes. Every supported node kind is listed
//! here; any other kind makes the text opaque.

use super::{
    findings::Findings,
    here_document::literal_text,
    redirections::{self, is_here_string},
    simple_command::{CommandParts, assignments, command, declaration, further_words, loop_variable, test},
    step::{NodeNesting, WalkStep},
    syntax::{self, MISREAD, is_redirection, is_word},
};
use crate::shell_analysis::{
    analysis::Analysis, folders::WorkingFolders, judging::classified_command::ShellAnalyser, limits::AnalysisBudget,
};
use toolstead_domain::BuiltInAllowRule;
use tree_sitter::Node;

/// Maximum number of simple commands. A text with more is opaque.
const MAX_COMMANDS: usize = 1_000;

/// Maximum nesting depth. Deeper nodes are opaque.
const MAX_DEPTH: usize = 300;

pub(crate) struct Walk<'t> {
    found: Findings<'t>,
    /// Working folders after the left side of each `&&` or `||` that is not finished.
    saved: Vec<WorkingFolders>,
    /// Offsets of words that may change the working folder.
    moves: Vec<usize>,
    /// `true` if the text contains a loop that may not end.
    may_loop: bool,
}

impl<'t> Walk<'t> {
    pub(crate) fn new(text: &'t str, folders: WorkingFolders, limits: AnalysisBudget, analyse: ShellAnalyser) -> Self {
        let moves = moving_words(text);
        Self { found: Findings::new(text, folders, limits, analyse), saved: Vec::new(), moves, may_loop: false }
    }

    pub(crate) fn run(mut self, root: Node<'t>) -> Analysis {
        if !self.is_well_formed(root) {
            self.found.opaque(root, "it cannot be parsed unambiguously as bash");
        }
        let mut steps = vec![WalkStep::Enter(root, NodeNesting { depth: 0, substituted: false, backticks: false })];
        while let Some(step) = steps.pop() {
            if self.found.result.commands.len() > MAX_COMMANDS {
                self.found.limits.mark_exceeded();
                self.found.opaque(root, "it holds more than 1,000 commands");
                break;
            }
            match step {
                WalkStep::Enter(node, place) if place.depth > MAX_DEPTH => {
                    self.found.limits.mark_exceeded();
                    self.found.opaque(node, "it is nested too deeply");
                }
                WalkStep::Enter(node, place) => self.enter(node, place, &mut steps),
                WalkStep::Restore(folders) => {
                    self.found.folders = folders;
                    self.found.folders.record_unchanged();
                }
                WalkStep::RightSide(and) => {
                    self.saved.push(self.found.folders.clone());
                    self.found.folders = self.found.folders.right_side(and);
                }
                WalkStep::Join(and) => {
                    if let Some(left) = self.saved.pop() {
                        self.found.folders = WorkingFolders::join(left, self.found.folders.clone(), and);
                    }
                }
                WalkStep::Settle => self.found.folders.record_unchanged(),
                WalkStep::Redirected(node, redirections, place) if redirections.is_empty() => {
                    steps.push(WalkStep::Enter(node, place));
                }
                WalkStep::Redirected(node, redirections, place) => {
                    self.with_redirections(node, redirections, place, &mut steps);
                }
            }
        }
        // A part that is not understood may redefine any program.
        if self.found.result.is_opaque() {
            self.found.result.commands.iter_mut().for_each(|command| command.built_in_rule = None);
        }
        // These commands would print names or states of files, as `select` does by itself.
        if self.found.looks_at_files {
            for command in &mut self.found.result.commands {
                command.built_in_rule = command.built_in_rule.filter(|rule| *rule == BuiltInAllowRule::PipeFilter);
            }
        }
        let commands = &mut self.found.result.commands;
        // An endless loop would use the processor until the session ends.
        if self.may_loop && commands.iter().all(|command| command.built_in_rule.is_some()) {
            commands.iter_mut().for_each(|command| command.built_in_rule = None);
        }
        self.found.result
    }

    fn enter(&mut self, node: Node<'t>, place: NodeNesting, steps: &mut Vec<WalkStep<'t>>) {
        let below = NodeNesting { depth: place.depth + 1, ..place };
        if node.is_error() || node.is_missing() {
            self.found.opaque(node, "it cannot be parsed unambiguously as bash");
        }
        match node.kind() {
            "comment" if place.backticks => self.found.opaque(node, "it has a comment within backticks"),
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
                steps.push(WalkStep::Settle);
                self.statements(node, below, steps);
            }
            "while_statement" | "for_statement" => {
                self.may_loop |= node.kind() == "while_statement";
                self.forget_folders_that_a_loop_changes(node);
                self.statements(node, below, steps);
            }
            "case_statement" | "case_item" => self.statements(node, below, steps),
            "function_definition" => {
                self.found.opaque(node, "it defines a function, whose name then means something else");
                if !self.moves.is_empty() {
                    self.found.folders = WorkingFolders::anywhere();
                }
                self.statements(node, below, steps);
            }
            "list" => self.list(node, Vec::new(), place, steps),
            "pipeline" => self.pipeline(node, Vec::new(), below, steps),
            "subshell" => {
                steps.push(WalkStep::Restore(self.found.folders.clone()));
                self.statements(node, below, steps);
            }
            "command_substitution" => {
                let written = self.found.slice(node);
                if written.starts_with("$`") || written.starts_with('`') && written.contains('\\') {
                    self.found.opaque(node, "backslashes within backticks mean something else");
                }
                let inside = NodeNesting {
                    substituted: place.substituted || literal_text(written).is_none(),
                    backticks: place.backticks || written.starts_with('`'),
                    ..below
                };
                steps.push(WalkStep::Restore(self.found.folders.clone()));
                self.statements(node, inside, steps);
            }
            "process_substitution" => {
                if !self.found.slice(node).starts_with("<(") {
                    self.found.opaque(node, "another command runs at the same time and is passed as a file");
                }
                steps.push(WalkStep::Restore(self.found.folders.clone()));
                self.statements(node, NodeNesting { substituted: true, ..below }, steps);
            }
            "redirected_statement" => self.redirected(node, below, steps),
            "command" => command(&mut self.found, node, &[], below, steps),
            "variable_assignment" | "variable_assignments" => assignments(&mut self.found, node, below, steps),
            "declaration_command" | "unset_command" => declaration(&mut self.found, node, below, steps),
            "test_command" => test(&mut self.found, node, below, steps),
            "file_redirect" | "herestring_redirect" | "heredoc_redirect" => {
                let folders = self.found.folders.clone();
                redirections::judge(&mut self.found, node, &folders, below, steps);
            }
            "expansion" | "simple_expansion" | "arithmetic_expansion" => self.expansion(node, below, steps),
            "string" | "concatenation" | "brace_expression" | "array" => self.found.below(node, below, steps),
            "heredoc_body" | "command_name" => self.found.below(node, below, steps),
            _ => {
                if node.is_named() && !node.is_error() {
                    self.found.opaque(node, "this part of bash's grammar is not supported");
                }
                self.found.below(node, below, steps);
            }
        }
    }

    /// Returns `true` if the tree contains no errors, except those that represent the first half of `<<<`.
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
                        && children.get(at + 1).is_some_and(|next| is_here_string(&self.found, *next));
                    (!is_half).then_some(*child)
                }));
            }
        }
        true
    }

    /// Schedules statements in order, and parses the words between them.
    fn statements(&mut self, node: Node<'t>, place: NodeNesting, steps: &mut Vec<WalkStep<'t>>) {
        if node.kind() == "compound_statement" && self.found.slice(node).starts_with("((") {
            return self.arithmetic(node, place, steps);
        }
        let parts = self.found.parts(node);
        let mut entered = Vec::new();
        for part in parts {
            match part.kind() {
                "variable_name" => loop_variable(&mut self.found, part),
                "extglob_pattern" => {
                    self.found.looks_at_files |= node.kind() == "for_statement";
                    let safe = |byte: u8| byte.is_ascii_alphanumeric() || b"_.*?^+/-".contains(&byte);
                    if !self.found.slice(part).bytes().all(safe) {
                        self.found.opaque(part, "this pattern cannot be parsed");
                    }
                }
                kind if is_word(kind) => {
                    if node.kind() != "function_definition" {
                        let word = self.found.word(part, place, &mut entered);
                        let is_of_loop = node.kind() == "for_statement";
                        self.found.looks_at_files |=
                            is_of_loop && word.is_some_and(|word| word.may_become_file_names());
                    }
                }
                _ => entered.push(WalkStep::Enter(part, place)),
            }
        }
        steps.extend(entered.into_iter().rev());
    }

    fn list(&mut self, node: Node<'t>, redirections: Vec<Node<'t>>, place: NodeNesting, steps: &mut Vec<WalkStep<'t>>) {
        let and = syntax::children(node).iter().any(|child| child.kind() == "&&");
        let parts = self.found.parts(node);
        let mut operands = parts.iter().copied().filter(|part| part.kind() != "comment");
        let (Some(left), Some(right), None) = (operands.next(), operands.next(), operands.next()) else {
            self.found.opaque(node, MISREAD);
            self.only_redirects(&redirections, place, steps);
            return self.found.below(node, NodeNesting { depth: place.depth + 1, ..place }, steps);
        };
        // A long chain is deep only on the left side of the tree, and not deeply nested in the text.
        let depth = if left.kind() == "list" { place.depth } else { place.depth + 1 };
        steps.push(WalkStep::Join(and));
        steps.push(WalkStep::Redirected(right, redirections, NodeNesting { depth: place.depth + 1, ..place }));
        steps.push(WalkStep::RightSide(and));
        steps.push(WalkStep::Enter(left, NodeNesting { depth, ..place }));
    }

    fn pipeline(
        &mut self,
        node: Node<'t>,
        redirections: Vec<Node<'t>>,
        place: NodeNesting,
        steps: &mut Vec<WalkStep<'t>>,
    ) {
        let parts = self.found.parts(node);
        let last = parts.len().saturating_sub(1);
        let mut redirections = Some(redirections);
        for (at, part) in parts.into_iter().enumerate().rev() {
            if at > 0 {
                self.reads_pipe(part, at == last && redirections.as_ref().is_some_and(|outer| !outer.is_empty()));
            }
            steps.push(WalkStep::Restore(self.found.folders.clone()));
            match redirections.take() {
                Some(redirections) if at == last && !redirections.is_empty() => {
                    steps.push(WalkStep::Redirected(part, redirections, place));
                }
                _ => steps.push(WalkStep::Enter(part, place)),
            }
        }
    }

    /// Records that a pipeline part reads a pipe, if it is a simple command that follows a `|`. `is_redirected`: the
    /// redirections around the pipeline belong to this part.
    fn reads_pipe(&mut self, part: Node<'t>, is_redirected: bool) {
        let before = self.found.text[..part.start_byte()].trim_end_matches([' ', '\t', '\n']);
        let before = before.strip_suffix('&').unwrap_or(before);
        if !before.ends_with('|') || before.ends_with("||") {
            return;
        }
        let command = match part.kind() {
            "command" => Some(part),
            "redirected_statement" if !is_redirected => {
                let body: Vec<_> =
                    syntax::children(part).into_iter().filter(|child| !is_redirection(child.kind())).collect();
                body.first().copied().filter(|child| body.len() == 1 && child.kind() == "command")
            }
            _ => None,
        };
        self.found.behind_pipes.extend(command.map(|command| command.id()));
    }

    fn redirected(&mut self, node: Node<'t>, place: NodeNesting, steps: &mut Vec<WalkStep<'t>>) {
        let mut parts = self.found.parts(node);
        for at in (1..parts.len()).rev() {
            if is_here_string(&self.found, parts[at]) && parts[at - 1].is_error() {
                parts.remove(at - 1);
            }
        }
        let (redirections, body): (Vec<_>, Vec<_>) = parts.into_iter().partition(|part| is_redirection(part.kind()));
        match body.as_slice() {
            [body] => self.with_redirections(*body, redirections, place, steps),
            body => {
                self.only_redirects(&redirections, place, steps);
                if !body.is_empty() {
                    self.found.opaque(node, MISREAD);
                }
                steps.extend(body.iter().map(|body| WalkStep::Enter(*body, place)));
            }
        }
    }

    /// Schedules a statement whose redirections are attached around it in the tree. Bash applies those after a list to
    /// its last command.
    fn with_redirections(
        &mut self,
        body: Node<'t>,
        redirections: Vec<Node<'t>>,
        place: NodeNesting,
        steps: &mut Vec<WalkStep<'t>>,
    ) {
        match body.kind() {
            "command" => command(&mut self.found, body, &redirections, place, steps),
            "list" => self.list(body, redirections, place, steps),
            "pipeline" => self.pipeline(body, redirections, place, steps),
            _ => {
                self.only_redirects(&redirections, place, steps);
                steps.push(WalkStep::Enter(body, place));
            }
        }
    }

    /// Analyses redirections of a statement that is not a simple command and cannot take additional words from them.
    fn only_redirects(&mut self, redirections: &[Node<'t>], place: NodeNesting, steps: &mut Vec<WalkStep<'t>>) {
        let folders = self.found.folders.clone();
        for redirection in redirections {
            let mut parts = CommandParts::default();
            further_words(&mut self.found, *redirection, &mut parts, place, steps);
            if !parts.words.is_empty() {
                self.found.opaque(*redirection, MISREAD);
            }
            redirections::judge(&mut self.found, *redirection, &folders, place, steps);
        }
    }

    fn expansion(&mut self, node: Node<'t>, place: NodeNesting, steps: &mut Vec<WalkStep<'t>>) {
        let written = self.found.slice(node);
        match node.kind() {
            "arithmetic_expansion" => return self.arithmetic(node, place, steps),
            "expansion" if !syntax::reads_a_variable(written) => {
                self.found.opaque(node, "an expansion computes its value, which may run commands");
            }
            "simple_expansion" => {
                let name = written.strip_prefix('$').unwrap_or_default();
                let plain = matches!(name, "*" | "@" | "?" | "!" | "#" | "-" | "$" | "_")
                    || !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
                if !plain {
                    self.found.opaque(node, MISREAD);
                }
                return;
            }
            _ => return,
        }
        self.found.below(node, place, steps);
    }

    fn arithmetic(&mut self, node: Node<'t>, place: NodeNesting, steps: &mut Vec<WalkStep<'t>>) {
        if !syntax::only_numbers(self.found.slice(node)) {
            self.found.opaque(node, "arithmetic evaluates its variables, which may run commands");
            self.found.below(node, place, steps);
        }
    }

    /// Forgets the folders before a loop that may change them, because a `cd` at its end applies to its next iteration.
    fn forget_folders_that_a_loop_changes(&mut self, node: Node<'t>) {
        let from = self.moves.partition_point(|at| *at < node.start_byte());
        if self.moves.get(from).is_some_and(|at| *at < node.end_byte()) {
            self.found.folders = WorkingFolders::anywhere();
        }
    }
}

/// Returns the offsets of words that may change the working folder, in ascending order and in bytes.
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
