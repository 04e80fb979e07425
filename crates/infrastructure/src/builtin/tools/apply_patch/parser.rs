//! The text of a patch: the envelope (`*** Begin Patch`), or a unified diff.

mod envelope;
mod quoted;
mod unified;

use crate::builtin::files::change_set::MAX_FILES;

/// The largest patch, in bytes.
const MAX_PATCH_BYTES: usize = 8 << 20;
/// As many hunks one patch has, over all files.
const MAX_HUNKS: usize = 5000;

/// What is to be done to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FilePatch {
    pub(super) path: String,
    /// The line of the patch that says so, from 1.
    pub(super) line: usize,
    /// Whether it is to be executable; `None`: as it is, or as new files are.
    pub(super) executable: Option<bool>,
    pub(super) action: Action,
}

/// What is done to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    /// It is new, with this content.
    Add(String),
    /// It goes; where hunks say what it was, only if it is just that.
    Delete { was: Option<Vec<Hunk>> },
    /// It changes, and perhaps its name or mode does; not all three are missing.
    Update { to: Option<String>, hunks: Vec<Hunk> },
}

/// One place of a file, before and after.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Hunk {
    /// The line of the patch where it begins, from 1.
    pub(super) line: usize,
    /// Lines that stand before it, from the outside in: `class X`, `def f`.
    pub(super) anchors: Vec<String>,
    /// The line of the file (from 1) where it stood when the patch was made.
    pub(super) at: Option<usize>,
    pub(super) lines: Vec<HunkLine>,
    /// Whether it stands at the end of the file.
    pub(super) is_at_end: bool,
    /// Whether the file ends in a line break afterwards; `None`: as before.
    pub(super) ends_in_break: Option<bool>,
}

/// A line of a hunk, without its sign and line feed. A carriage return before that is a part of it, where the patch tells
/// line endings at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HunkLine {
    Kept(String),
    Removed(String),
    Added(String),
}

impl HunkLine {
    /// What it says, whatever becomes of it.
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Kept(text) | Self::Removed(text) | Self::Added(text) => text,
        }
    }
}

impl Hunk {
    /// The lines as they stand in the file.
    pub(super) fn old_lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter_map(|line| match line {
            HunkLine::Kept(text) | HunkLine::Removed(text) => Some(&**text),
            HunkLine::Added(_) => None,
        })
    }

    /// The lines as they are to stand in the file.
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

/// A text that is no patch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the patch: {what}")]
pub(super) struct PatchError {
    /// From 1.
    pub(super) line: usize,
    pub(super) what: String,
}

impl PatchError {
    fn new(line: usize, what: impl Into<String>) -> Self {
        Self { line, what: what.into() }
    }
}

/// Reads a patch. Never without a file.
pub(super) fn parse(text: &str) -> Result<Vec<FilePatch>, PatchError> {
    if text.len() > MAX_PATCH_BYTES {
        let what = format!("a patch has at most {MAX_PATCH_BYTES} bytes, and this one has {}", text.len());
        return Err(PatchError::new(1, what));
    }
    let mut lines = Lines::of(text);
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
        many => Err(PatchError::new(1, format!("a patch changes at most {MAX_FILES} files, and this one {many}"))),
    }
}

/// The lines of a patch with their numbers, without line feeds and without what models wrap patches in. Where the first
/// one ends in a carriage return, the patch itself was written so, and none of them says anything of the files.
struct Lines<'a> {
    lines: Vec<&'a str>,
    /// How many lines stand before the first of them.
    before: usize,
    next: usize,
    hunks: usize,
}

impl<'a> Lines<'a> {
    fn of(text: &'a str) -> Self {
        let mut all: Vec<&str> = text.split('\n').collect();
        // A line with a space is an empty line of a hunk; one without anything is nobody's.
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

    /// The next line if it begins so: what follows. It is a line of the patch's own, and none of a file.
    fn after(&mut self, beginning: &str) -> Option<&'a str> {
        let rest = self.peek()?.strip_prefix(beginning)?;
        self.next += 1;
        Some(bare(rest))
    }

    /// The number of the line that comes next, from 1.
    fn number(&self) -> usize {
        self.before + self.next + 1
    }

    /// The number of the line that came last, from 1.
    fn last_number(&self) -> usize {
        self.before + self.next.max(1)
    }

    /// A hunk that begins at the line that came last.
    fn hunk(&mut self) -> Result<Hunk, PatchError> {
        self.hunks += 1;
        if self.hunks > MAX_HUNKS {
            return Err(PatchError::new(self.last_number(), format!("a patch has at most {MAX_HUNKS} hunks")));
        }
        Ok(Hunk { line: self.last_number(), ..Hunk::default() })
    }
}

/// A line without a carriage return at its end.
fn bare(line: &str) -> &str {
    line.strip_suffix('\r').unwrap_or(line)
}

/// Whether a line holds nothing but its end.
fn is_empty(line: &str) -> bool {
    bare(line).is_empty()
}

/// Whether the first and the last line are a heredoc's or a code block's.
fn is_wrapping(first: &str, last: &str) -> bool {
    if first.starts_with("```") {
        return bare(last) == "```";
    }
    let Some((_, word)) = first.split_once("<<") else { return false };
    let word = word.trim_start_matches('-').trim().trim_matches(['\'', '"']);
    !word.is_empty() && last.trim() == word && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// A path of a patch, checked.
fn path(text: &str, line: usize) -> Result<String, PatchError> {
    match text.trim() {
        "" => Err(PatchError::new(line, "the path is missing")),
        path => Ok(path.to_owned()),
    }
}

/// The beginning of a line, for a message.
fn cut(line: &str) -> String {
    const SHOWN_CHARS: usize = 60;
    let more = if line.chars().count() > SHOWN_CHARS { "…" } else { "" };
    format!("{}{more}", line.chars().take(SHOWN_CHARS).collect::<String>())
}

/// The numbers of a hunk's header, `-1,3 +1,4 @@`: where it begins in the old file, and how many lines it has there and
/// in the new one. `None` if the text is something else.
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
