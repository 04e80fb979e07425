//! Parses a unified diff, as `diff -u` and `git diff` write it.

use super::{
    FilePatch, Hunk, HunkLine, PatchAction, PatchError, PatchLines, cut, is_empty, numbers, quoted_name::unquoted,
};

const NOWHERE: &str = "/dev/null";

/// Returns `true` if a patch that begins with this line is a unified diff.
pub(super) fn begins(line: &str) -> bool {
    line.starts_with("--- ") || line.starts_with("diff --git ")
}

pub(super) fn parse(lines: &mut PatchLines<'_>) -> Result<Vec<FilePatch>, PatchError> {
    let mut files = Vec::new();
    while let Some(first) = lines.peek() {
        if first.trim().is_empty() {
            lines.next();
        } else {
            files.push(file(lines)?);
        }
    }
    Ok(files)
}

/// Parses the part of one file: git's header, the names and the hunks, of which some may be missing.
fn file(lines: &mut PatchLines<'_>) -> Result<FilePatch, PatchError> {
    let header = GitHeader::read(lines)?;
    let line = lines.number();
    let names = match lines.after("--- ") {
        Some(old) => match lines.after("+++ ") {
            Some(new) => Some((name(old, line)?, name(new, line + 1)?)),
            None => return Err(PatchError::new(lines.number(), "`+++ path` was expected after `--- path`")),
        },
        None => None,
    };
    let file = match (header.rename, names) {
        (Some((line, from, to)), names) => {
            let hunks = if names.is_some() { hunks(lines)? } else { Vec::new() };
            FilePatch { path: from, line, executable: None, action: PatchAction::Update { to: Some(to), hunks } }
        }
        (None, Some((old, new))) => changed(lines, line, &old, &new)?,
        (None, None) => {
            if let Some(other) = lines.peek().filter(|next| !next.starts_with("diff --git ") && !next.trim().is_empty())
            {
                return Err(PatchError::new(line, unexpected(other)));
            }
            // Without hunks, the file is empty before and after, or only its mode changes.
            let action = match (header.is_new, header.is_deleted, header.executable) {
                (true, ..) => PatchAction::Add(String::new()),
                (_, true, _) => PatchAction::Delete { was: Some(Vec::new()) },
                (.., Some(_)) => PatchAction::Update { to: None, hunks: Vec::new() },
                _ => return Err(PatchError::new(header.line, "the patch does not say what changes in the file")),
            };
            FilePatch { path: git_name(header.names, header.line)?, line: header.line, executable: None, action }
        }
    };
    Ok(FilePatch { executable: header.executable, ..file })
}

/// Header of a file in a `git diff`, before its names.
#[derive(Default)]
struct GitHeader<'a> {
    /// First line of the header, from 1.
    line: usize,
    /// Both names, as they follow `diff --git`.
    names: Option<&'a str>,
    /// Line of the rename (from 1), the old name and the new one.
    rename: Option<(usize, String, String)>,
    is_new: bool,
    is_deleted: bool,
    /// New execute permission; `None` if it does not change.
    executable: Option<bool>,
}

impl<'a> GitHeader<'a> {
    fn read(lines: &mut PatchLines<'a>) -> Result<Self, PatchError> {
        let mut header = Self { line: lines.number(), names: lines.after("diff --git "), ..Self::default() };
        loop {
            let line = lines.number();
            if let Some(mode) = lines.after("new file mode ") {
                // A new file that is not executable gets the usual mode of new files.
                (header.is_new, header.executable) = (true, executable(mode, line)?.then_some(true));
            } else if let Some(mode) = lines.after("deleted file mode ") {
                executable(mode, line)?;
                header.is_deleted = true;
            } else if let Some(mode) = lines.after("old mode ") {
                executable(mode, line)?;
            } else if let Some(mode) = lines.after("new mode ") {
                header.executable = Some(executable(mode, line)?);
            } else if let Some(ids) = lines.after("index ") {
                if let Some((_, mode)) = ids.trim().split_once(' ') {
                    executable(mode, line)?;
                }
            } else if let Some(from) = lines.after("rename from ") {
                let to = lines.after("rename to ");
                let to = to.ok_or_else(|| PatchError::new(lines.number(), "`rename to` is missing"))?;
                header.rename = Some((line, whole_name(from, line)?, whole_name(to, line + 1)?));
            } else if lines.after("similarity index ").or_else(|| lines.after("dissimilarity index ")).is_none() {
                return Ok(header);
            }
        }
    }
}

/// Returns `true` if git's mode is that of an executable file. Fails for any mode that is not that of a file, such as
/// that of a link.
fn executable(mode: &str, line: usize) -> Result<bool, PatchError> {
    match mode.trim() {
        "100755" => Ok(true),
        "100644" | "100664" => Ok(false),
        other => {
            let what = format!(
                "a file of the mode `{}` (a link, or a repository in this one) cannot be changed by a patch",
                cut(other)
            );
            Err(PatchError::new(line, what))
        }
    }
}

/// Returns the message about a line where the part of the next file should begin.
fn unexpected(line: &str) -> String {
    let reason = match line {
        _ if line.starts_with("copy from ") => ". Copies are not supported: add the file with its whole content",
        _ if line.starts_with("Binary files ") || line.starts_with("GIT binary patch") => {
            ". Patches cannot change binary files"
        }
        _ => "",
    };
    format!("`--- path` was expected, not `{}`{reason}", cut(line.trim_end()))
}

/// Returns the name of a file from its `diff --git` line, which states the same name twice.
fn git_name(names: Option<&str>, line: usize) -> Result<String, PatchError> {
    let names = names.unwrap_or_default();
    let both = match quoted(names, line)? {
        Some((old, rest)) => {
            let rest = rest.strip_prefix(' ').unwrap_or(rest);
            Some((old, quoted(rest, line)?.map_or_else(|| rest.trim_end().to_owned(), |(new, _)| new)))
        }
        None => halves(names).or_else(|| halves(names.trim_end())).map(|(old, new)| (old.to_owned(), new.to_owned())),
    };
    let only = both.and_then(|(old, new)| match (old.strip_prefix("a/"), new.strip_prefix("b/")) {
        (Some(old), Some(new)) if old == new => Some(old.to_owned()),
        _ => (old == new).then_some(old),
    });
    let unclear = || PatchError::new(line, "the file name is ambiguous: `diff --git a/path b/path` was expected");
    some(below(&only.ok_or_else(unclear)?), line)
}

/// Splits a text into two names of the same length with a space between them.
fn halves(names: &str) -> Option<(&str, &str)> {
    let (old, new) = names.split_at_checked(names.len() / 2)?;
    Some((old, new.strip_prefix(' ')?))
}

/// Parses the name of a file. `diff -u` writes the time after it, separated by a tab. Git adds a tab to a name with
/// spaces, so that all of them belong to the name; without a tab, spaces at the ends are a mistake and are trimmed.
fn name(text: &str, line: usize) -> Result<String, PatchError> {
    Ok(match (quoted(text, line)?, text.split_once('\t')) {
        (Some((name, _)), _) => name,
        (None, Some((name, _))) => name.to_owned(),
        (None, None) => text.trim().to_owned(),
    })
}

/// Parses a name that extends to the end of its line.
fn whole_name(text: &str, line: usize) -> Result<String, PatchError> {
    let name = quoted(text, line)?.map_or_else(|| text.to_owned(), |(name, _)| name);
    some(below(&name), line)
}

/// Parses the quoted name at the beginning of a text, and returns it with the rest of the text.
fn quoted(text: &str, line: usize) -> Result<Option<(String, &str)>, PatchError> {
    let wrong = |what| PatchError::new(line, format!("the name `{}` {what}", cut(text)));
    unquoted(text).transpose().map_err(wrong)
}

/// Returns the name as a path below the folder of the patch: a leading `~` does not mean the home folder.
fn below(name: &str) -> String {
    if name.starts_with('~') { format!("./{name}") } else { name.to_owned() }
}

/// Rejects an empty name.
fn some(name: String, line: usize) -> Result<String, PatchError> {
    if name.is_empty() { Err(PatchError::new(line, "the path is missing")) } else { Ok(name) }
}

fn changed(lines: &mut PatchLines<'_>, line: usize, old: &str, new: &str) -> Result<FilePatch, PatchError> {
    let hunks = hunks(lines)?;
    // Git puts `a/` and `b/` before the names. Only both together are such prefixes, unless the other name is
    // `/dev/null`.
    let (old, new) = match (old.strip_prefix("a/"), new.strip_prefix("b/")) {
        (Some(old), Some(new)) => (&*below(old), &*below(new)),
        (Some(old), None) if new == NOWHERE => (&*below(old), new),
        (None, Some(new)) if old == NOWHERE => (old, &*below(new)),
        _ => (old, new),
    };
    let file = |name: &str, action| Ok(FilePatch { path: some(name.into(), line)?, line, executable: None, action });
    match (old, new) {
        (NOWHERE, new) => {
            let mut content = hunks.iter().flat_map(Hunk::new_lines).flat_map(|line| [line, "\n"]).collect::<String>();
            if hunks.last().is_some_and(|hunk| hunk.ends_in_break == Some(false)) {
                content.pop();
            }
            file(new, PatchAction::Add(content))
        }
        (old, new) if hunks.is_empty() => {
            Err(PatchError::new(line, format!("there is no hunk (`@@ -1,3 +1,4 @@`) between `{old}` and `{new}`")))
        }
        (old, NOWHERE) => file(old, PatchAction::Delete { was: Some(hunks) }),
        (old, new) => file(old, PatchAction::Update { to: (old != new).then(|| new.to_owned()), hunks }),
    }
}

fn hunks(lines: &mut PatchLines<'_>) -> Result<Vec<Hunk>, PatchError> {
    let mut hunks = Vec::new();
    while let Some(header) = lines.after("@@") {
        let mut hunk = lines.hunk()?;
        let Some((at, mut old, mut new)) = numbers(header) else {
            let what = format!("`@@ -line,count +line,count @@` was expected, not `@@{}`", cut(header));
            return Err(PatchError::new(hunk.line, what));
        };
        // `-0,0` is before the first line, and `-5,0` after the fifth.
        hunk.at = Some(if old == 0 { at.saturating_add(1) } else { at });
        while old > 0 || new > 0 || lines.peek().is_some_and(|line| line.starts_with('\\')) {
            let number = lines.number();
            let line = lines.next().unwrap_or("\n");
            // Editors remove the space from an empty line.
            let (sign, text) =
                if is_empty(line) { (" ", line) } else { line.split_at_checked(1).unwrap_or((line, "")) };
            let wrong = |what: String| Err(PatchError::new(number, what));
            let counts = match sign {
                " " => (1, 1),
                "-" => (1, 0),
                "+" => (0, 1),
                "\\" => {
                    // The marker refers to the line before it. After a removed line the new last line may follow, which
                    // has a line break.
                    hunk.ends_in_break = Some(matches!(hunk.lines.last(), Some(HunkLine::Removed(_))));
                    continue;
                }
                "\n" => return wrong(format!("the hunk ends too early: {old} old and {new} new lines are missing")),
                _ => {
                    return wrong(format!("a line of a hunk begins with ` `, `-` or `+`, and this is `{}`", cut(line)));
                }
            };
            let (Some(old_left), Some(new_left)) = (old.checked_sub(counts.0), new.checked_sub(counts.1)) else {
                return wrong(format!("the hunk has more lines than its header (line {}) says", hunk.line));
            };
            (old, new) = (old_left, new_left);
            hunk.lines.push(match sign {
                "-" => HunkLine::Removed(text.to_owned()),
                "+" => HunkLine::Added(text.to_owned()),
                _ => HunkLine::Kept(text.to_owned()),
            });
        }
        if !hunk.changes_something() {
            return Err(PatchError::new(hunk.line, "the hunk changes nothing: it has no line with `-` or `+`"));
        }
        hunks.push(hunk);
    }
    Ok(hunks)
}
