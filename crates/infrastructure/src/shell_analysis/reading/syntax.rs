//! The syntax tree, and the checks that bash parses the text in the same way. The grammar is made for syntax
//! highlighting: it accepts more than bash and splits some texts differently, so a tree without errors proves nothing
//! by itself.

use crate::shell_analysis::{limits::AnalysisBudget, processor_time::processor_time};
use std::ops::ControlFlow;
use tree_sitter::{Node, ParseOptions, Parser, Tree};

/// Parses a text. Returns `None` if that would take more processor time than remains.
pub(crate) fn parse(text: &str, limits: &AnalysisBudget) -> Option<Tree> {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
    let start = processor_time();
    let end = start + limits.parsing();
    let mut in_time = |_: &tree_sitter::ParseState| {
        if processor_time() < end { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let bytes = text.as_bytes();
    let mut read = |offset: usize, _| bytes.get(offset..).unwrap_or_default();
    let tree = parser.parse_with_options(&mut read, None, Some(ParseOptions::new().progress_callback(&mut in_time)));
    limits.take_parsing(processor_time().saturating_sub(start));
    if tree.is_none() {
        limits.mark_exceeded();
    }
    tree
}

/// Returns the children of a node, operators included.
pub(super) fn children<'t>(node: Node<'t>) -> Vec<Node<'t>> {
    node.children(&mut node.walk()).collect()
}

/// Reason given if the tree differs from what bash would parse.
pub(super) const MISREAD: &str = "bash may read it differently";

/// Nodes whose children may be separated by line ends.
const HOLD_STATEMENTS: &[&str] = &[
    "array",
    "command_substitution",
    "compound_statement",
    "do_group",
    "elif_clause",
    "else_clause",
    "if_statement",
    "process_substitution",
    "program",
    "subshell",
    "while_statement",
];

/// Tokens that may begin a line that continues a statement.
const CLOSERS: &[&str] =
    &["}", ")", "))", "`", "fi", "done", "esac", "then", "do", "else", "elif", "in", ";;", ";&", ";;&", "{"];

/// Returns `true` if operators and descriptors contain nothing else. The tree takes `-delete<<` for an operator and
/// `-2` for a descriptor.
pub(super) fn operators_are_whole(text: &str, children: &[Node<'_>]) -> bool {
    children.iter().all(|child| {
        let written = text.get(child.byte_range()).unwrap_or_default();
        match child.kind() {
            "file_descriptor" => written.bytes().all(|byte| byte.is_ascii_digit()),
            kind => child.is_named() || written == kind,
        }
    })
}

/// Returns `true` if the children of a node are separated only by blanks, comments and line ends that bash ignores.
pub(super) fn only_blanks_between(text: &str, node: Node<'_>, children: &[Node<'_>]) -> bool {
    if !operators_are_whole(text, children) {
        return false;
    }
    let bytes = text.as_bytes();
    let mut end = node.start_byte();
    let mut previous: Option<Node<'_>> = None;
    for child in children.iter().copied().map(Some).chain([None]) {
        let start = child.map_or(node.end_byte(), |child| child.start_byte());
        // The body of a here-document is part of its redirection, which ends far after the rest of the line.
        let Some(gap) = bytes.get(end..start) else { return false };
        let is_dash = || previous.zip(child).is_some_and(|(command, redirect)| loses_a_dash(text, command, redirect));
        if !blank(bytes, end, gap, || line_may_end(node, previous, child)) && !is_dash() {
            return false;
        }
        if let Some(child) = child {
            if child.kind() == "comment" && !starts_token(bytes, child.start_byte()) {
                return false;
            }
            end = child.end_byte();
            previous = Some(child);
        }
    }
    true
}

/// Returns `true` if the command that ends a statement has the word `-` at its end. The tree omits that word before a
/// here-document.
pub(super) fn loses_a_dash(text: &str, statement: Node<'_>, redirect: Node<'_>) -> bool {
    let gap = text.get(statement.end_byte()..redirect.start_byte()).unwrap_or_default();
    if redirect.kind() != "heredoc_redirect" || !gap.starts_with([' ', '\t']) || gap.trim_matches([' ', '\t']) != "-" {
        return false;
    }
    let mut last = Some(statement);
    while let Some(node) = last.filter(|node| matches!(node.kind(), "list" | "pipeline")) {
        last = children(node).pop();
    }
    last.is_some_and(|last| last.kind() == "command")
}

fn blank(bytes: &[u8], offset: usize, gap: &[u8], line_may_end: impl Fn() -> bool) -> bool {
    let mut at = 0;
    while at < gap.len() {
        match gap[at] {
            b' ' | b'\t' => {}
            b'\n' if line_may_end() => {}
            b'\\' if gap.get(at + 1) == Some(&b'\n') => {
                // Bash removes both characters. The text before and after them must not join to one word.
                let before = (offset + at).checked_sub(1).and_then(|before| bytes.get(before));
                let behind = bytes.get(offset + at + 2);
                if ![before, behind].iter().any(|byte| matches!(byte, None | Some(b' ' | b'\t' | b'\n'))) {
                    return false;
                }
                at += 1;
            }
            _ => return false,
        }
        at += 1;
    }
    true
}

fn line_may_end(parent: Node<'_>, previous: Option<Node<'_>>, next: Option<Node<'_>>) -> bool {
    let operator = |node: Node<'_>| !node.is_named() || node.kind() == "comment";
    match parent.kind() {
        // Within these nodes a line end may be what separates two parts.
        "list" | "pipeline" | "for_statement" | "case_statement" | "case_item" | "function_definition" => {
            previous.is_none_or(|node| operator(node) || node.kind() == "case_item")
                || next.is_none_or(|next| operator(next) && CLOSERS.contains(&next.kind()) || next.kind() == "do_group")
        }
        kind => HOLD_STATEMENTS.contains(&kind),
    }
}

fn starts_token(bytes: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| bytes.get(before));
    matches!(before, None | Some(b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')'))
}

/// Returns `true` if `${...}` only reads a variable, optionally with a fixed default, or with a fixed part removed or
/// replaced. All other forms compute: they may run commands, assign, or follow names in variables.
pub(super) fn reads_a_variable(expansion: &str) -> bool {
    let Some(body) = expansion.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')) else { return false };
    let (body, length) = match body.strip_prefix('#') {
        Some(rest) if !rest.is_empty() => (rest, true),
        _ => (body, false),
    };
    let name = body.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
    let name = if name == 0 && body.starts_with(['@', '*', '#', '?', '$', '-']) { 1 } else { name };
    if name == 0 {
        return false;
    }
    let mut rest = &body[name..];
    if let Some(subscript) = rest.strip_prefix('[') {
        let Some((index, behind)) = subscript.split_once(']') else { return false };
        let fixed = matches!(index, "@" | "*") || (!index.is_empty() && index.bytes().all(|b| b.is_ascii_digit()));
        if !fixed {
            return false;
        }
        rest = behind;
    }
    if rest.is_empty() {
        return true;
    }
    let operators = [":-", ":+", ":?", "-", "+", "?", "##", "#", "%%", "%", "//", "/", "^^", "^", ",,", ","];
    let Some(operand) = operators.iter().find_map(|operator| rest.strip_prefix(operator)) else { return false };
    !length && operand.chars().all(|c| c.is_alphanumeric() || " _./:=@%+,*?#^[]-/|;&".contains(c))
}

/// Returns `true` if an arithmetic text contains only numbers. Names in it are evaluated again and may thereby run
/// commands.
pub(super) fn only_numbers(arithmetic: &str) -> bool {
    let Some(body) = ["$((", "(("].iter().find_map(|open| arithmetic.strip_prefix(open)) else { return false };
    let Some(body) = body.strip_suffix("))") else { return false };
    let mut depth = 0usize;
    for byte in body.bytes() {
        match byte {
            b'(' => depth += 1,
            b')' if depth == 0 => return false,
            b')' => depth -= 1,
            b'0'..=b'9' | b' ' | b'+' | b'-' | b'*' | b'/' | b'%' | b'<' | b'>' | b'=' | b'!' | b'&' | b'|' | b'^' => {}
            _ => return false,
        }
    }
    depth == 0
}

/// Returns `true` for nodes that are words or parts of words.
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

/// Returns `true` for nodes that are redirections.
pub(super) fn is_redirection(kind: &str) -> bool {
    matches!(kind, "file_redirect" | "herestring_redirect" | "heredoc_redirect")
}
