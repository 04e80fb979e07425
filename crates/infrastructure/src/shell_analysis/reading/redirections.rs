//! Redirections and here-documents: the files that the shell itself opens.

use super::{
    findings::{AddFileError, Findings, TOO_MANY_FILES},
    here_document::end_word,
    step::{NodeNesting, WalkStep},
    syntax::{self, MISREAD, is_redirection, is_word},
};
use crate::shell_analysis::{analysis::FileAccessOrigin::Redirection, folders::WorkingFolders, word::DynamicReason};
use tree_sitter::Node;

/// Reason given if standard output or standard error may be a file that was opened for reading. A program that opens
/// `/dev/stdout` would write to it.
const OUTPUT_MAY_BE_READ: &str = "its output may overwrite a file that was opened for reading";

/// Analyses a redirection. Its additional words belong to the command and are already parsed.
pub(super) fn judge<'t>(
    found: &mut Findings<'t>,
    node: Node<'t>,
    folders: &WorkingFolders,
    place: NodeNesting,
    steps: &mut Vec<WalkStep<'t>>,
) {
    match node.kind() {
        "file_redirect" if is_here_string(found, node) => {
            found.parts(node);
            // The other words belong to the command.
            if let Some(text) = syntax::children(node).into_iter().find(|child| is_word(child.kind())) {
                found.word(text, place, steps);
            }
        }
        "file_redirect" => file_redirection(found, node, folders, place, steps),
        "heredoc_redirect" => here_document(found, node, folders, place, steps),
        _ => {
            for child in found.parts(node) {
                if is_word(child.kind()) {
                    found.word(child, place, steps);
                }
            }
        }
    }
}

/// Returns `true` unless a redirection can only redirect an output.
pub(super) fn may_replace_input<'t>(found: &Findings<'t>, node: Node<'t>) -> bool {
    let children = syntax::children(node);
    let operator = children.iter().find(|child| !child.is_named()).map_or("", |child| child.kind());
    let descriptor = children.iter().find(|child| child.kind() == "file_descriptor").map(|child| found.slice(*child));
    let is_of_output = node.kind() == "file_redirect"
        && operator.contains('>')
        && !operator.contains('<')
        && matches!(descriptor, None | Some("1" | "2"));
    !is_of_output
}

/// Returns `true` if this is how the tree represents a here-string after a redirection: an error `<<`, then `<`.
pub(super) fn is_here_string<'t>(found: &Findings<'t>, node: Node<'t>) -> bool {
    let before = found.text[..node.start_byte()].strip_suffix("<<");
    node.kind() == "file_redirect"
        && before.is_some_and(|before| before.ends_with([' ', '\t']))
        && syntax::children(node).first().is_some_and(|operator| operator.kind() == "<")
}

fn file_redirection<'t>(
    found: &mut Findings<'t>,
    node: Node<'t>,
    folders: &WorkingFolders,
    place: NodeNesting,
    steps: &mut Vec<WalkStep<'t>>,
) {
    found.parts(node);
    let children = syntax::children(node);
    let operator = children.iter().find(|child| !child.is_named()).map_or("", |child| child.kind());
    let destination = children.iter().find(|child| is_word(child.kind()));
    let Some(destination) = destination else {
        if !operator.ends_with('-') {
            found.opaque(node, MISREAD);
        }
        return;
    };
    if operator.ends_with('-') {
        return found.opaque(node, MISREAD);
    }
    let Some(word) = found.word(*destination, place, steps) else { return };
    if operator == "<" && word.dynamic == Some(DynamicReason::Pipe) {
        return;
    }
    let Some(path) = word.literal() else {
        return found.opaque(node, "the file that it redirects to is known only when it runs");
    };
    let writes = operator.contains('>');
    let written = children.iter().find(|child| child.kind() == "file_descriptor").map(|child| found.slice(*child));
    let descriptor = written.map_or(Some(u32::from(!operator.starts_with('<'))), |number| number.parse().ok());
    let duplicated: Option<u32> = path.strip_suffix('-').unwrap_or(path).parse().ok();
    let duplicates = path == "-" || path.trim_end_matches('-').bytes().all(|byte| byte.is_ascii_digit());
    if matches!(operator, ">&" | "<&") && duplicates && !path.is_empty() {
        if is_output(descriptor) && path != "-" && !is_output(duplicated) && !copies_outputs_only(found, duplicated) {
            found.opaque(node, OUTPUT_MAY_BE_READ);
        }
        return;
    }
    if !writes && is_output(descriptor) {
        found.opaque(node, OUTPUT_MAY_BE_READ);
    }
    if path == "/dev/null" {
        return;
    }
    // Opening these names opens the file of an open descriptor again.
    if let Some(opened) = stream(path) {
        if writes && !is_output(Some(opened)) {
            found.opaque(node, "a file that is open for reading may be opened for writing");
        }
        return;
    }
    if path.is_empty() || path.starts_with("/dev/tcp") || path.starts_with("/dev/udp") {
        return found.opaque(node, "the shell opens a connection");
    }
    let origin = Redirection { command: found.result.commands.len() };
    match found.add_file_access((path, writes, false), origin, folders) {
        Ok(()) => {}
        Err(AddFileError::NoFolder) => found.opaque(node, "the folder that it redirects in is unknown"),
        Err(AddFileError::TooMany) => found.opaque(node, TOO_MANY_FILES),
    }
}

/// Returns `true` if this descriptor can only be a copy of an output, because neither an enclosing text nor this one
/// opens a file for reading under a number.
fn copies_outputs_only<'t>(found: &Findings<'t>, descriptor: Option<u32>) -> bool {
    let opens_for_reading = |pair: &[u8]| pair[0].is_ascii_digit() && pair[1] == b'<';
    descriptor.is_some_and(|number| number > 2)
        && !found.limits.is_within()
        && !found.text.as_bytes().windows(2).any(opens_for_reading)
}

/// Analyses a here-document. It is opaque unless bash ends its body at the same place as the tree.
fn here_document<'t>(
    found: &mut Findings<'t>,
    node: Node<'t>,
    folders: &WorkingFolders,
    place: NodeNesting,
    steps: &mut Vec<WalkStep<'t>>,
) {
    if place.substituted {
        found.opaque(node, "it has a here-document within a substitution");
    }
    let children = syntax::children(node);
    if !syntax::operators_are_whole(found.text, &children) {
        found.opaque(node, MISREAD);
    }
    let part = |kind: &str| children.iter().copied().find(|child| child.kind() == kind);
    let body = part("heredoc_body");
    let (Some(start), Some(end)) = (part("heredoc_start"), part("heredoc_end")) else {
        return found.opaque(node, "a here-document does not end");
    };
    let Some((delimiter, quoted)) = end_word(found.slice(start)) else {
        return found.opaque(node, "the end of a here-document cannot be parsed");
    };
    let tabs = children.iter().any(|child| child.kind() == "<<-");
    let Some(body_start) = found.text[start.end_byte()..].find('\n').map(|at| start.end_byte() + at + 1) else {
        return found.opaque(node, "a here-document does not end");
    };
    let rest_of_line = &found.text[start.end_byte()..body_start];
    let mut at = body_start;
    let last = found.text[body_start..].split_inclusive('\n').find(|line| {
        let candidate = line.strip_suffix('\n').unwrap_or(line);
        let candidate = if tabs { candidate.trim_start_matches('\t') } else { candidate };
        let is_end = candidate == delimiter;
        at += if is_end { 0 } else { line.len() };
        is_end
    });
    let body_text = &found.text[body_start..at];
    let ends = last.is_some()
        && (at..=at + last.map_or(0, str::len)).contains(&end.start_byte())
        && found.slice(end).trim() == delimiter;
    let begins = body.is_none_or(|body| {
        body.byte_range().is_empty() || (body_start..=at).contains(&body.start_byte()) && body.end_byte() <= at
    });
    if !ends
        || !begins
        || rest_of_line.contains("<<")
        || rest_of_line.contains(['\'', '"', '`', '\\', '(', '#', '$', '{'])
    {
        found.opaque(node, "a here-document may end elsewhere for bash");
    }
    if !quoted && (body_text.contains(['`', '\\']) || has_computed_dollar(body_text)) {
        found.opaque(node, "a here-document holds expansions");
    }
    for child in children {
        match child.kind() {
            "heredoc_body" if !quoted => steps.push(WalkStep::Enter(child, place)),
            "heredoc_body" | "heredoc_start" | "heredoc_end" | "file_descriptor" => {}
            kind if is_redirection(kind) => judge(found, child, folders, place, steps),
            kind if is_word(kind) => {}
            "pipeline" => {
                steps.push(WalkStep::Restore(found.folders.clone()));
                steps.extend(
                    syntax::children(child).into_iter().filter(Node::is_named).map(|part| WalkStep::Enter(part, place)),
                );
            }
            _ if child.is_named() => steps.push(WalkStep::Enter(child, place)),
            _ => {}
        }
    }
}

/// Returns `true` for standard output and standard error. Neither is ever a file that is open for reading only.
fn is_output(descriptor: Option<u32>) -> bool {
    matches!(descriptor, Some(1 | 2))
}

/// Returns the descriptor number that this path names.
fn stream(path: &str) -> Option<u32> {
    match path {
        "/dev/stdin" => Some(0),
        "/dev/stdout" => Some(1),
        "/dev/stderr" => Some(2),
        _ => path.strip_prefix("/dev/fd/").filter(|number| number.bytes().all(|b| b.is_ascii_digit()))?.parse().ok(),
    }
}

/// Returns `true` if a text contains expansions other than plain variables.
fn has_computed_dollar(text: &str) -> bool {
    text.split('$').skip(1).any(|behind| behind.starts_with(['(', '{', '[']))
}
