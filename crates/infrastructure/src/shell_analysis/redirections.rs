//! Redirections and here-documents: the files that the shell itself opens.

use super::{
    Touch,
    TouchOrigin::{self, Redirection},
    folders::Folders,
    simple_command::Parts,
    syntax,
    walk::{MISREAD, Place, Step, Walk, is_redirection, is_word},
    word::Dynamic,
};
use std::path::Path;
use tree_sitter::Node;

/// More files that one text names are not judged one by one.
const MAX_FILES: usize = 1_000;

/// What is said then.
pub(super) const TOO_MANY_FILES: &str = "it names more than 1,000 files";

/// Said where standard output or standard error may turn out to be a file that was only to be read. Whoever opens
/// `/dev/stdout` would write into it.
const OUTPUT_MAY_BE_READ: &str = "its output may go where something is read from";

/// Why a file was not added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Untold {
    /// It is relative, and the folder is not known.
    NoFolder,
    /// There are too many.
    TooMany,
}

impl<'t> Walk<'t> {
    pub(super) fn redirected(&mut self, node: Node<'t>, place: Place, steps: &mut Vec<Step<'t>>) {
        let mut parts = self.parts(node);
        for at in (1..parts.len()).rev() {
            if self.is_here_string(parts[at]) && parts[at - 1].is_error() {
                parts.remove(at - 1);
            }
        }
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
    pub(super) fn with_redirections(
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
    pub(super) fn only_redirects(&mut self, redirections: &[Node<'t>], place: Place, steps: &mut Vec<Step<'t>>) {
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

    /// Judges a redirection. Its words belong to the command and were read before.
    pub(super) fn redirection(&mut self, node: Node<'t>, folders: &Folders, place: Place, steps: &mut Vec<Step<'t>>) {
        match node.kind() {
            "file_redirect" if self.is_here_string(node) => {
                self.parts(node);
                // Further words belong to the command.
                if let Some(text) = syntax::children(node).into_iter().find(|child| is_word(child.kind())) {
                    self.word(text, place, steps);
                }
            }
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

    /// Whether this is what the tree makes of a here-string behind a redirection: an error `<<`, and `<`.
    pub(super) fn is_here_string(&self, node: Node<'t>) -> bool {
        let before = self.text[..node.start_byte()].strip_suffix("<<");
        node.kind() == "file_redirect"
            && before.is_some_and(|before| before.ends_with([' ', '\t']))
            && syntax::children(node).first().is_some_and(|operator| operator.kind() == "<")
    }

    pub(super) fn file_redirection(
        &mut self,
        node: Node<'t>,
        folders: &Folders,
        place: Place,
        steps: &mut Vec<Step<'t>>,
    ) {
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
        if operator == "<" && word.dynamic == Some(Dynamic::Pipe) {
            return;
        }
        let Some(path) = word.literal() else {
            return self.opaque(node, "the file that it redirects to is known only when it runs");
        };
        let writes = operator.contains('>');
        let written = children.iter().find(|child| child.kind() == "file_descriptor").map(|child| self.slice(*child));
        let descriptor = written.map_or(Some(u32::from(!operator.starts_with('<'))), |number| number.parse().ok());
        let duplicated: Option<u32> = path.strip_suffix('-').unwrap_or(path).parse().ok();
        let duplicates = path == "-" || path.trim_end_matches('-').bytes().all(|byte| byte.is_ascii_digit());
        if matches!(operator, ">&" | "<&") && duplicates && !path.is_empty() {
            if is_output(descriptor) && path != "-" && !is_output(duplicated) && !self.copies_outputs_only(duplicated) {
                self.opaque(node, OUTPUT_MAY_BE_READ);
            }
            return;
        }
        if !writes && is_output(descriptor) {
            self.opaque(node, OUTPUT_MAY_BE_READ);
        }
        if path == "/dev/null" {
            return;
        }
        // Opened by these names, what is open already is opened anew.
        if let Some(opened) = stream(path) {
            if writes && !is_output(Some(opened)) {
                self.opaque(node, "a file that is open for reading may be opened for writing");
            }
            return;
        }
        if path.is_empty() || path.starts_with("/dev/tcp") || path.starts_with("/dev/udp") {
            return self.opaque(node, "the shell opens a connection");
        }
        let origin = Redirection { command: self.result.commands.len() };
        match self.touch((path, writes, false), origin, folders) {
            Ok(()) => {}
            Err(Untold::NoFolder) => self.opaque(node, "the folder that it redirects in cannot be told"),
            Err(Untold::TooMany) => self.opaque(node, TOO_MANY_FILES),
        }
    }

    /// Whether this descriptor can only be a copy of an output: no other text, and nothing in this one, opens files for
    /// reading under a number.
    fn copies_outputs_only(&self, descriptor: Option<u32>) -> bool {
        let opens_for_reading = |pair: &[u8]| pair[0].is_ascii_digit() && pair[1] == b'<';
        descriptor.is_some_and(|number| number > 2)
            && !self.limits.is_within()
            && !self.text.as_bytes().windows(2).any(opens_for_reading)
    }

    /// Adds a path in each folder that is possible.
    pub(super) fn touch(
        &mut self,
        (path, writes, tree): (&str, bool, bool),
        origin: TouchOrigin,
        folders: &Folders,
    ) -> Result<(), Untold> {
        let path = Path::new(path);
        let paths = match folders.known() {
            _ if path.is_absolute() => vec![path.to_owned()],
            Some(folders) => folders.iter().map(|folder| folder.join(path)).collect(),
            None => return Err(Untold::NoFolder),
        };
        for path in paths {
            if !self.add_touch(Touch { path, writes, tree, origin }) {
                return Err(Untold::TooMany);
            }
        }
        Ok(())
    }

    /// Adds a file; false if there are too many already.
    pub(super) fn add_touch(&mut self, touch: Touch) -> bool {
        let is_known = |known: &Touch| {
            let redirections = matches!((known.origin, touch.origin), (Redirection { .. }, Redirection { .. }));
            // A redirection is judged as such, at whatever command it stands.
            *known == touch || redirections && *known == Touch { origin: known.origin, ..touch.clone() }
        };
        // The last ones are where repetitions are.
        if self.result.touches.iter().rev().take(16).any(is_known) {
            return true;
        }
        let fits = self.result.touches.len() < MAX_FILES;
        if fits {
            self.result.touches.push(touch);
        }
        fits
    }

    /// Whether the body ends where bash ends it, and what it holds.
    pub(super) fn here_document(&mut self, node: Node<'t>, folders: &Folders, place: Place, steps: &mut Vec<Step<'t>>) {
        if place.substituted {
            self.opaque(node, "a here-document stands within a substitution");
        }
        let children = syntax::children(node);
        if !syntax::operators_are_whole(self.text, &children) {
            self.opaque(node, MISREAD);
        }
        let part = |kind: &str| children.iter().copied().find(|child| child.kind() == kind);
        let body = part("heredoc_body");
        let (Some(start), Some(end)) = (part("heredoc_start"), part("heredoc_end")) else {
            return self.opaque(node, "a here-document does not end");
        };
        let Some((delimiter, quoted)) = end_word(self.slice(start)) else {
            return self.opaque(node, "a here-document's end is not understood");
        };
        let tabs = children.iter().any(|child| child.kind() == "<<-");
        let Some(body_start) = self.text[start.end_byte()..].find('\n').map(|at| start.end_byte() + at + 1) else {
            return self.opaque(node, "a here-document does not end");
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
}

/// Whether this is standard output or standard error, neither of which is ever a file that is open for reading alone.
fn is_output(descriptor: Option<u32>) -> bool {
    matches!(descriptor, Some(1 | 2))
}

/// The number of the open file that this path names.
fn stream(path: &str) -> Option<u32> {
    match path {
        "/dev/stdin" => Some(0),
        "/dev/stdout" => Some(1),
        "/dev/stderr" => Some(2),
        _ => path.strip_prefix("/dev/fd/").filter(|number| number.bytes().all(|b| b.is_ascii_digit()))?.parse().ok(),
    }
}

/// The word that ends a here-document, if bash takes what is written for it and for nothing else, and whether it is
/// quoted.
fn end_word(written: &str) -> Option<(&str, bool)> {
    let unquoted = ['\'', '"'].iter().find_map(|quote| written.strip_prefix(*quote)?.strip_suffix(*quote));
    let word = unquoted.unwrap_or(written);
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'+');
    (!word.is_empty() && word.bytes().all(is_plain)).then_some((word, unquoted.is_some()))
}

/// What a command substitution becomes that holds nothing but `cat` and a here-document without expansions.
pub(super) fn literal_text(substitution: &str) -> Option<String> {
    const BLANKS: [char; 2] = [' ', '\t'];
    let inside = substitution.strip_prefix("$(")?.strip_suffix(')')?;
    let behind =
        inside.trim_start_matches(BLANKS).strip_prefix("cat")?.trim_start_matches(BLANKS).strip_prefix("<<")?;
    let (written, rest) = behind.split_once('\n')?;
    let (delimiter, quoted) = end_word(written.trim_matches(BLANKS)).filter(|_| !written.starts_with('-'))?;
    let end = format!("{delimiter}\n");
    let mut at = 0;
    let last = rest.split_inclusive('\n').find(|line| {
        let is_end = **line == end;
        at += if is_end { 0 } else { line.len() };
        is_end
    })?;
    let (body, behind) = (&rest[..at], &rest[at + last.len()..]);
    let is_literal = quoted || !body.contains(['$', '`', '\\']);
    (is_literal && behind.trim_matches(['\n', ' ', '\t']).is_empty()).then(|| body.trim_end_matches('\n').to_owned())
}

/// Whether a text holds more than plain variables.
fn has_computed_dollar(text: &str) -> bool {
    text.split('$').skip(1).any(|behind| behind.starts_with(['(', '{', '[']))
}
