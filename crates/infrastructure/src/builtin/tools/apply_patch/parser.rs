//! Parses a patch: the envelope (`*** Begin Patch`), or a unified diff.

mod envelope;
mod quoted_name;
mod unified;

use crate::builtin::files::change_set::MAX_FILES;

/// Maximum size of a patch, in bytes.
const MAX_PATCH_BYTES: usize = 8 << 20;
/// Maximum number of hunks in a patch, over all files.
const MAX_HUNKS: usize = 5000;

/// Requested change of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FilePatch {
    pub(super) path: String,
    /// Line of the patch that requests the change, from 1.
    pub(super) line: usize,
    /// `true` makes the file executable, `false` removes that; `None` leaves the mode as it is, or as usual for new
    /// files.
    pub(super) executable: Option<bool>,
    pub(super) action: PatchAction,
}

/// Kind of change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PatchAction {
    /// Creation of a file with this content.
    Add(String),
    /// Deletion. If there are hunks, the file is deleted only if they remove all of its content.
    Delete { was: Option<Vec<Hunk>> },
    /// Change of content, name or mode; at least one of them changes.
    Update { to: Option<String>, hunks: Vec<Hunk> },
}

/// One changed region of a file, before and after.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Hunk {
    /// First line of the hunk in the patch, from 1.
    pub(super) line: usize,
    /// Lines of the file before the hunk, from the outermost to the innermost: `class X`, `def f`.
    pub(super) anchors: Vec<String>,
    /// Line of the file (from 1) at which the hunk was when the patch was made.
    pub(super) at: Option<usize>,
    pub(super) lines: Vec<HunkLine>,
    /// `true` if the hunk is at the end of the file.
    pub(super) is_at_end: bool,
    /// `true` if the file must end in a line break, `false` if it must not; `None` leaves its end as it was.
    pub(super) ends_in_break: Option<bool>,
}

/// A line of a hunk, without its sign and line feed. A carriage return before the line feed is part of it, if the patch
/// specifies line endings at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HunkLine {
    Kept(String),
    Removed(String),
    Added(String),
}

impl HunkLine {
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Kept(text) | Self::Removed(text) | Self::Added(text) => text,
        }
    }
}

impl Hunk {
    /// Returns the lines that the file must contain: context and removed lines.
    pub(super) fn old_lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter_map(|line| match line {
            HunkLine::Kept(text) | HunkLine::Removed(text) => Some(&**text),
            HunkLine::Added(_) => None,
        })
    }

    /// Returns the lines that the file contains after the hunk: context and added lines.
    pub(super) fn new_lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter_map(|line| match line {
            HunkLine::Kept(text) | HunkLine::Added(text) => Some(&**text),
            HunkLine::Removed(_) => None,
        })
    }

    fn changes_something(&self) -> bool {
        self.lines.iter().any(|line| !matches!(line, HunkLine::Kept(_)))
    }
}

/// Syntax error in a patch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the patch: {what}")]
pub(super) struct PatchError {
    /// Line of the patch, from 1.
    pub(super) line: usize,
    pub(super) what: String,
}

impl PatchError {
    fn new(line: usize, what: impl Into<String>) -> Self {
        Self { line, what: what.into() }
    }
}

/// Parses a patch. The result has at least one file.
pub(super) fn parse(text: &str) -> Result<Vec<FilePatch>, PatchError> {
    if text.len() > MAX_PATCH_BYTES {
        let what = format!("a patch has at most {MAX_PATCH_BYTES} bytes, and this one has {}", text.len());
        return Err(PatchError::new(1, what));
    }
    let mut lines = PatchLines::of(text);
    let files = match lines.peek() {
        Some(first) if first.trim_end() == envelope::BEGIN => envelope::parse(&mut lines)?,
        Some(first) if unified::begins(first) => unified::parse(&mut lines)?,
        first => {
            let found =
                first.map_or_else(|| "it is empty".to_owned(), |first| format!("it begins with `{}`", cut(first)));
            let what = format!("a patch begins with `{}` (or `---`, as a unified diff), and {found}", envelope::BEGIN);
            return Err(PatchError::new(lines.number(), what));
        }
    };
    match files.len() {
        0 => Err(PatchError::new(lines.number(), "the patch names no file")),
        1..=MAX_FILES => Ok(files),
        many => {
            Err(PatchError::new(1, format!("a patch changes at most {MAX_FILES} files, and this one changes {many}")))
        }
    }
}

/// The lines of a patch with their numbers, without line feeds and without the wrappers that models put around a patch.
/// If the first line ends in a carriage return, the patch itself uses such line endings: they are removed everywhere,
/// and the patch does not specify the line endings of the files.
struct PatchLines<'a> {
    lines: Vec<&'a str>,
    /// Number of lines before the first of `lines`.
    before: usize,
    next: usize,
    hunks: usize,
}

impl<'a> PatchLines<'a> {
    fn of(text: &'a str) -> Self {
        let mut all: Vec<&str> = text.split('\n').collect();
        // A line with a space is an empty line of a hunk; a line without anything belongs to no hunk.
        let start = all.iter().position(|line| !is_empty(line)).unwrap_or(0);
        let end = all.iter().rposition(|line| !is_empty(line)).map_or(0, |last| last + 1);
        if all[start].ends_with('\r') {
            all.iter_mut().for_each(|line| *line = bare(line));
        }
        let mut lines = Self { lines: all[start..end].to_vec(), before: start, next: 0, hunks: 0 };
        if let [first, .., last] = &lines.lines[..]
            && is_wrapping(first, last)
        {
            lines.lines.pop();
            lines.lines.remove(0);
            lines.before += 1;
        }
        lines
    }

    fn peek(&self) -> Option<&'a str> {
        self.lines.get(self.next).copied()
    }

    fn next(&mut self) -> Option<&'a str> {
        let line = self.peek()?;
        self.next += 1;
        Some(line)
    }

    /// Consumes the next line if it begins with this text, and returns the rest of it. Such a line belongs to the patch
    /// itself, not to a file.
    fn after(&mut self, beginning: &str) -> Option<&'a str> {
        let rest = self.peek()?.strip_prefix(beginning)?;
        self.next += 1;
        Some(bare(rest))
    }

    /// Returns the number of the next line, from 1.
    fn number(&self) -> usize {
        self.before + self.next + 1
    }

    /// Returns the number of the last line read, from 1.
    fn last_number(&self) -> usize {
        self.before + self.next.max(1)
    }

    /// Counts and creates a hunk that begins at the last line read; fails after [`MAX_HUNKS`] hunks.
    fn hunk(&mut self) -> Result<Hunk, PatchError> {
        self.hunks += 1;
        if self.hunks > MAX_HUNKS {
            return Err(PatchError::new(self.last_number(), format!("a patch has at most {MAX_HUNKS} hunks")));
        }
        Ok(Hunk { line: self.last_number(), ..Hunk::default() })
    }
}

/// Removes a carriage return from the end of a line.
fn bare(line: &str) -> &str {
    line.strip_suffix('\r').unwrap_or(line)
}

/// Returns `true` if a line is empty except for its line ending.
fn is_empty(line: &str) -> bool {
    bare(line).is_empty()
}

/// Returns `true` if the first and the last line delimit a heredoc or a code block.
fn is_wrapping(first: &str, last: &str) -> bool {
    if first.starts_with("```") {
        return bare(last) == "```";
    }
    let Some((_, word)) = first.split_once("<<") else { return false };
    let word = word.trim_start_matches('-').trim().trim_matches(['\'', '"']);
    !word.is_empty() && last.trim() == word && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Trims a path, and rejects an empty one.
fn path(text: &str, line: usize) -> Result<String, PatchError> {
    match text.trim() {
        "" => Err(PatchError::new(line, "the path is missing")),
        path => Ok(path.to_owned()),
    }
}

/// Returns the beginning of a line, for a message.
fn cut(line: &str) -> String {
    const SHOWN_CHARS: usize = 60;
    let more = if line.chars().count() > SHOWN_CHARS { "…" } else { "" };
    format!("{}{more}", line.chars().take(SHOWN_CHARS).collect::<String>())
}

/// Parses the header of a hunk, `-1,3 +1,4 @@`: its first line in the old file, and its number of lines in the old and
/// in the new file. Returns `None` for any other text.
fn numbers(header: &str) -> Option<(usize, usize, usize)> {
    let header = header.trim_start().strip_prefix('-')?;
    let (ranges, _) = header.split_once("@@").unwrap_or((header, ""));
    let (old, new) = ranges.trim().split_once(" +")?;
    let range = |text: &str| -> Option<(usize, usize)> {
        let (start, count) = text.trim().split_once(',').unwrap_or((text.trim(), "1"));
        Some((start.parse().ok()?, count.parse().ok()?))
    };
    let ((start, old), (_, new)) = (range(old)?, range(new)?);
    Some((start, old, new))
}

#[cfg(test)]
mod tests;
