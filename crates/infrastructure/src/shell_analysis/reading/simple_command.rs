//! Simple commands in the syntax tree: collects their parts and adds the classified command.

use super::{
    assignments::{Assignment, assignment},
    findings::Findings,
    redirections,
    step::{NodeNesting, WalkStep},
    syntax::{self, MISREAD, is_redirection, is_word},
};
use crate::shell_analysis::{
    catalogue::variables,
    judging::{
        assigned_variables,
        built_in_rules::{BuiltInRuleContext, built_in_rule},
        classified_command::ClassifiedCommand,
        command::understand,
    },
    word::Word,
};
use std::{ops::Range, sync::Arc};
use tree_sitter::Node;

#[derive(Default)]
pub(super) struct CommandParts<'t> {
    pub(super) words: Vec<Word>,
    assignments: Vec<Assignment>,
    redirections: Vec<Node<'t>>,
    /// `true` if standard input is a pipe that the shell created for this command.
    reads_pipe: bool,
}

pub(super) fn command<'t>(
    found: &mut Findings<'t>,
    node: Node<'t>,
    redirections: &[Node<'t>],
    place: NodeNesting,
    steps: &mut Vec<WalkStep<'t>>,
) {
    let mut parts = CommandParts::default();
    let children = syntax::children(node);
    if !syntax::only_blanks_between(found.text, node, &children) {
        found.opaque(node, MISREAD);
    }
    for child in children {
        match child.kind() {
            "variable_assignment" if parts.words.is_empty() => {
                if let Some(assignment) = assignment(found, child, place, steps) {
                    parts.assignments.push(assignment);
                }
            }
            "command_name" => {
                if !parts.words.is_empty() {
                    found.opaque(node, MISREAD);
                }
                for name in syntax::children(child) {
                    push_word(found, name, &mut parts, place, steps);
                }
            }
            kind if is_redirection(kind) => {
                let before = parts.words.len();
                parts.redirections.push(child);
                further_words(found, child, &mut parts, place, steps);
                if before == 0 && !parts.words.is_empty() {
                    found.opaque(node, MISREAD);
                }
            }
            "==" | "=~" | "$" => push_word(found, child, &mut parts, place, steps),
            kind if is_word(kind) => push_word(found, child, &mut parts, place, steps),
            "comment" => {}
            _ => {
                found.opaque(child, MISREAD);
                steps.push(WalkStep::Enter(child, place));
            }
        }
    }
    let mut end = node.end_byte();
    if let Some(redirect) = redirections.first().filter(|next| syntax::loses_a_dash(found.text, node, **next)) {
        parts.words.push(Word { text: "-".into(), ..Word::default() });
        end = redirect.start_byte();
    }
    for redirection in redirections {
        parts.redirections.push(*redirection);
        further_words(found, *redirection, &mut parts, place, steps);
    }
    // Text of the command, with the redirections on the same line.
    let ends = redirections.iter().filter(|node| node.kind() != "heredoc_redirect").map(Node::end_byte);
    let range = node.start_byte()..ends.max().unwrap_or(0).max(end);
    let folders = found.folders.clone();
    parts.reads_pipe = found.behind_pipes.contains(&node.id())
        && !parts.redirections.iter().any(|redirection| redirections::may_replace_input(found, *redirection));
    for redirection in std::mem::take(&mut parts.redirections) {
        redirections::judge(found, redirection, &folders, place, steps);
    }
    simple_command(found, &parts, range);
}

/// Parses a word and adds it to the parts of a command.
pub(super) fn push_word<'t>(
    found: &mut Findings<'t>,
    node: Node<'t>,
    parts: &mut CommandParts<'t>,
    place: NodeNesting,
    steps: &mut Vec<WalkStep<'t>>,
) {
    if let Some(word) = found.word(node, place, steps) {
        parts.words.push(word);
    }
}

/// Adds words that the tree attaches to a redirection but that belong to the command.
pub(super) fn further_words<'t>(
    found: &mut Findings<'t>,
    node: Node<'t>,
    parts: &mut CommandParts<'t>,
    place: NodeNesting,
    steps: &mut Vec<WalkStep<'t>>,
) {
    match node.kind() {
        "file_redirect" => {
            let destinations: Vec<_> =
                syntax::children(node).into_iter().filter(|child| is_word(child.kind())).collect();
            for word in destinations.iter().skip(1) {
                push_word(found, *word, parts, place, steps);
            }
        }
        "heredoc_redirect" => {
            for word in syntax::children(node).into_iter().filter(|child| is_word(child.kind())) {
                push_word(found, word, parts, place, steps);
            }
        }
        _ => {}
    }
}

pub(super) fn simple_command<'t>(found: &mut Findings<'t>, parts: &CommandParts<'t>, range: Range<usize>) {
    let text: Arc<str> = found.text.get(range).unwrap_or_default().trim_end().into();
    if parts.words.is_empty() {
        for assignment in &parts.assignments {
            lone_assignment(found, assignment);
        }
        return;
    }
    let scope = found.scope();
    let mut understood = understand(&parts.words, &scope);
    let harmful: Vec<_> = parts.assignments.iter().filter(|one| !one.is_harmless()).collect();
    let reads_lines = &*parts.words[0].text == "read" && harmful.iter().all(|one| one.name == "IFS");
    if !harmful.is_empty() && !reads_lines {
        let plain = understood.words.clone();
        let assigned = harmful.iter().map(|one| one.text.as_str().into());
        understood.words = assigned.chain(plain.iter().cloned()).collect();
        understood.add_reading(plain);
        for one in &harmful {
            assigned_variables::classify_assignment(&one.name, one.value.as_deref(), &scope, &mut understood);
        }
    }
    if harmful.is_empty() {
        let around = BuiltInRuleContext { reads_pipe: parts.reads_pipe, text: found.text };
        understood.built_in_rule = built_in_rule(&parts.words, around);
    }
    found.add(understood, text);
}

pub(super) fn test<'t>(found: &mut Findings<'t>, node: Node<'t>, place: NodeNesting, steps: &mut Vec<WalkStep<'t>>) {
    let written = found.slice(node);
    let expansions = found.enter_expansions(node, place, steps);
    if written.starts_with("[[") {
        if let Some(reason) = double_brackets(written) {
            found.opaque(node, reason);
        }
        found.looks_at_files |= tests_files(written);
        found.folders.record_unchanged();
        return;
    }
    match Word::read_all(found.text, node.byte_range(), &expansions) {
        Ok(words) => simple_command(found, &CommandParts { words, ..CommandParts::default() }, node.byte_range()),
        Err(reason) => found.misread(node, reason),
    }
}

pub(super) fn assignments<'t>(
    found: &mut Findings<'t>,
    node: Node<'t>,
    place: NodeNesting,
    steps: &mut Vec<WalkStep<'t>>,
) {
    let parts = if node.kind() == "variable_assignments" { found.parts(node) } else { vec![node] };
    for part in parts {
        if let Some(assignment) = assignment(found, part, place, steps) {
            lone_assignment(found, &assignment);
        }
    }
    found.folders.record_unchanged();
}

/// Adds an assignment without a command, unless it is harmless or its variable stays in the shell. It affects the shell
/// itself, and programs started later if the variable was already in the environment.
pub(super) fn lone_assignment<'t>(found: &mut Findings<'t>, assignment: &Assignment) {
    if assignment.is_harmless() || variables::stays_in_the_shell(&assignment.name) {
        return;
    }
    let scope = found.scope();
    let mut understood = ClassifiedCommand::new(&[Word { text: assignment.text.clone(), ..Word::default() }]);
    assigned_variables::classify_assignment(&assignment.name, assignment.value.as_deref(), &scope, &mut understood);
    found.add(understood, assignment.text.as_str().into());
}

/// Adds the variable of a loop as an assignment of an unknown value, unless it stays in the shell.
pub(super) fn loop_variable<'t>(found: &mut Findings<'t>, node: Node<'t>) {
    let name = found.slice(node).to_owned();
    if !variables::stays_in_the_shell(&name) {
        let text = format!("{name}=...");
        lone_assignment(found, &Assignment { name, text, value: None });
    }
}

pub(super) fn declaration<'t>(
    found: &mut Findings<'t>,
    node: Node<'t>,
    place: NodeNesting,
    steps: &mut Vec<WalkStep<'t>>,
) {
    let mut parts = CommandParts::default();
    let children = syntax::children(node);
    if !syntax::only_blanks_between(found.text, node, &children) {
        found.opaque(node, MISREAD);
    }
    for (at, child) in children.into_iter().enumerate() {
        match child.kind() {
            "variable_assignment" => {
                if let Some(assignment) = assignment(found, child, place, steps) {
                    parts.words.push(assignment.into_word());
                }
            }
            "variable_name" => parts.words.push(Word { text: found.slice(child).to_owned(), ..Word::default() }),
            kind if is_word(kind) => push_word(found, child, &mut parts, place, steps),
            _ if at == 0 => parts.words.push(Word { text: found.slice(child).to_owned(), ..Word::default() }),
            "comment" => {}
            _ => found.opaque(child, MISREAD),
        }
    }
    simple_command(found, &parts, node.byte_range());
}

/// Returns `true` if `[[ ... ]]` may contain an operator that looks at a file.
fn tests_files(written: &str) -> bool {
    const OPERATORS: &[&str] = &[
        "a", "b", "c", "d", "e", "f", "g", "h", "k", "p", "r", "s", "t", "u", "w", "x", "G", "L", "N", "O", "S", "nt",
        "ot", "ef",
    ];
    written.split('-').skip(1).any(|behind| {
        let end = behind.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(behind.len());
        OPERATORS.contains(&&behind[..end])
    })
}

/// Returns the reason why `[[ ... ]]` may evaluate something: operands of numeric comparisons, tests of variable names,
/// and hidden commands. Returns `None` if it cannot.
fn double_brackets(written: &str) -> Option<&'static str> {
    let words: Vec<&str> = written.split_ascii_whitespace().collect();
    let number = |word: Option<&&str>| {
        word.is_some_and(|word| {
            matches!(*word, "$#" | "$?") || !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    // Operators need a blank after them, but not around them: `[[ (-v $x) ]]`, `[[ a
    //
    // -v $x ]]`.
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
    // Commands in patterns do not always have a node in the tree.
    let hidden = written.contains(['`', '\\']) || ["$(", "<(", ">(", "$["].iter().any(|open| written.contains(open));
    hidden.then_some("`[[` holds another command")
}
