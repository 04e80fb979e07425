//! Parses the envelope: files and hunks between `*** Begin Patch` and `*** End Patch`.

use super::{FilePatch, Hunk, HunkLine, PatchAction, PatchError, PatchLines, cut, is_empty, numbers, path};

pub(super) const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ADD: &str = "*** Add File:";
const DELETE: &str = "*** Delete File:";
const UPDATE: &str = "*** Update File:";
const MOVE: &str = "*** Move to:";
/// First characters of the lines that begin a file or a hunk.
const HEADERS: [char; 2] = ['*', '@'];
const END_OF_FILE: &str = "*** End of File";
/// Maximum number of anchors of a hunk. Readable code is not nested deeper.
const MAX_ANCHORS: usize = 8;

pub(super) fn parse(lines: &mut PatchLines<'_>) -> Result<Vec<FilePatch>, PatchError> {
    lines.next();
    let mut files = Vec::new();
    loop {
        let line = lines.number();
        let file = |text: &str, action| Ok(FilePatch { path: path(text, line)?, line, executable: None, action });
        if let Some(text) = lines.after(ADD) {
            files.push(file(text, added(lines)?)?);
        } else if let Some(text) = lines.after(DELETE) {
            files.push(file(text, PatchAction::Delete { was: None })?);
        } else if let Some(text) = lines.after(UPDATE) {
            files.push(file(text, updated(lines, line)?)?);
        } else {
            return match lines.next() {
                Some(last) if last.trim_end() == END => match lines.peek() {
                    None => Ok(files),
                    Some(more) => {
                        let what = format!("nothing may follow `{END}`, and there is `{}`", cut(more));
                        Err(PatchError::new(lines.number(), what))
                    }
                },
                Some(blank) if blank.trim().is_empty() => continue,
                Some(other) => {
                    let what = format!(
                        "`{ADD} path`, `{DELETE} path`, `{UPDATE} path` or `{END}` was expected, not `{}`",
                        cut(other)
                    );
                    Err(PatchError::new(line, what))
                }
                None => Err(PatchError::new(line, format!("the patch ends without `{END}`"))),
            };
        }
    }
}

/// Parses the content of a new file, in which every line begins with `+`.
fn added(lines: &mut PatchLines<'_>) -> Result<PatchAction, PatchError> {
    let mut content = String::new();
    while let Some(line) = lines.peek().filter(|line| !line.starts_with("***")) {
        let Some(text) = line.strip_prefix('+') else {
            if line.trim().is_empty() {
                break;
            }
            let what = format!("every line of a new file begins with `+`, and this is `{}`", cut(line));
            return Err(PatchError::new(lines.number(), what));
        };
        content.push_str(text);
        content.push('\n');
        lines.next();
    }
    Ok(PatchAction::Add(content))
}

fn updated(lines: &mut PatchLines<'_>, line: usize) -> Result<PatchAction, PatchError> {
    let to_line = lines.number();
    let to = lines.after(MOVE).map(|text| path(text, to_line)).transpose()?;
    let mut hunks = Vec::new();
    while let Some(first) = lines.peek().filter(|line| !line.starts_with("*** ")) {
        // An empty line before a header or the next file is not part of a hunk.
        if is_empty(first) && lines.lines.get(lines.next + 1).is_none_or(|next| next.starts_with(HEADERS)) {
            lines.next();
        } else {
            hunks.push(hunk(lines, hunks.is_empty())?);
        }
    }
    if hunks.is_empty() && to.is_none() {
        return Err(PatchError::new(line, "the file has neither a hunk nor a new name: begin a hunk with `@@`"));
    }
    Ok(PatchAction::Update { to, hunks })
}

/// Parses a hunk: its headers, then its lines. The first hunk of a file may have no header.
fn hunk(lines: &mut PatchLines<'_>, is_first: bool) -> Result<Hunk, PatchError> {
    let mut hunk = None;
    while let Some(header) = lines.after("@@") {
        let hunk = match &mut hunk {
            Some(hunk) => hunk,
            none => none.insert(lines.hunk()?),
        };
        match numbers(header) {
            Some((at, ..)) => hunk.at = Some(at),
            None => match header.trim_end().strip_prefix(' ').unwrap_or(header.trim_end()) {
                "" => {}
                _ if hunk.anchors.len() >= MAX_ANCHORS => {
                    let what = format!("a hunk has at most {MAX_ANCHORS} lines with `@@`");
                    return Err(PatchError::new(lines.last_number(), what));
                }
                anchor => hunk.anchors.push(anchor.trim_end_matches(" @@").to_owned()),
            },
        }
    }
    let mut hunk = match hunk {
        Some(hunk) => hunk,
        None if is_first => Hunk { line: lines.number(), ..lines.hunk()? },
        None => {
            let what = format!("`@@` was expected, not `{}`", cut(lines.peek().unwrap_or_default()));
            return Err(PatchError::new(lines.number(), what));
        }
    };
    while let Some(line) = lines.peek() {
        if line.trim_end() == END_OF_FILE {
            lines.next();
            hunk.is_at_end = true;
            break;
        }
        if line.starts_with("@@") || line.starts_with("*** ") {
            break;
        }
        hunk.lines.push(match line.split_at_checked(1) {
            Some((" ", text)) => HunkLine::Kept(text.to_owned()),
            Some(("-", text)) => HunkLine::Removed(text.to_owned()),
            Some(("+", text)) => HunkLine::Added(text.to_owned()),
            // Editors remove the space from an empty line.
            _ if is_empty(line) => HunkLine::Kept(line.to_owned()),
            _ => {
                let what = format!(
                    "a line of a hunk begins with ` ` (kept), `-` (removed) or `+` (added), and this is `{}`",
                    cut(line)
                );
                return Err(PatchError::new(lines.number(), what));
            }
        });
        lines.next();
    }
    // An empty line before the next file is not part of the hunk.
    let is_last = lines.peek().is_none_or(|line| line.starts_with("*** "));
    if is_last && is_empty(lines.lines[lines.next - 1]) {
        hunk.lines.pop();
    }
    if !hunk.changes_something() {
        return Err(PatchError::new(hunk.line, "the hunk changes nothing: it has no line with `-` or `+`"));
    }
    Ok(hunk)
}
