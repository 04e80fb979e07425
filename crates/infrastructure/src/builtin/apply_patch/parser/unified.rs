//! A unified diff, as `diff -u` and `git diff` write it.

use super::{Action, FilePatch, Hunk, HunkLine, Lines, PatchError, cut, numbers, path};

const NOWHERE: &str = "/dev/null";

/// Whether a patch that begins with this line is a unified diff.
pub(super) fn begins(line: &str) -> bool {
    line.starts_with("--- ") || line.starts_with("diff --git ")
}

pub(super) fn parse(lines: &mut Lines<'_>) -> Result<Vec<FilePatch>, PatchError> {
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

/// One file: what git says of it, its names, and its hunks; or some of these.
fn file(lines: &mut Lines<'_>) -> Result<FilePatch, PatchError> {
    let header = GitHeader::read(lines)?;
    let line = lines.number();
    let names = match lines.after("--- ").map(name) {
        Some(old) => match lines.after("+++ ").map(name) {
            Some(new) => Some((old, new)),
            None => return Err(PatchError::new(lines.number(), "`+++ path` was expected after `--- path`")),
        },
        None => None,
    };
    let file = match (header.rename, names) {
        (Some((line, from, to)), names) => {
            let hunks = if names.is_some() { hunks(lines)? } else { Vec::new() };
            FilePatch { path: from, line, executable: None, action: Action::Update { to: Some(to), hunks } }
        }
        (None, Some((old, new))) => changed(lines, line, old, new)?,
        (None, None) => {
            if let Some(other) = lines.peek().filter(|next| !next.starts_with("diff --git ") && !next.trim().is_empty())
            {
                return Err(PatchError::new(line, format!("`--- path` was expected, not `{}`", cut(other))));
            }
            // Without hunks the file is empty, before and after; or only its mode changes.
            let action = match (header.is_new, header.is_deleted, header.executable) {
                (true, ..) => Action::Add(String::new()),
                (_, true, _) => Action::Delete { was: Some(Vec::new()) },
                (.., Some(_)) => Action::Update { to: None, hunks: Vec::new() },
                _ => return Err(PatchError::new(header.line, "nothing is said of what changes in the file")),
            };
            FilePatch { path: git_name(header.names, header.line)?, line: header.line, executable: None, action }
        }
    };
    Ok(FilePatch { executable: header.executable, ..file })
}

/// What `git diff` says of a file before its names.
#[derive(Default)]
struct GitHeader<'a> {
    /// Where it begins.
    line: usize,
    /// Both names, behind `diff --git`.
    names: Option<&'a str>,
    /// The line that says so, the old name and the new one.
    rename: Option<(usize, String, String)>,
    is_new: bool,
    is_deleted: bool,
    /// Whether the file is to be executable; `None` where nothing changes.
    executable: Option<bool>,
}

impl<'a> GitHeader<'a> {
    fn read(lines: &mut Lines<'a>) -> Result<Self, PatchError> {
        let mut header = Self { line: lines.number(), names: lines.after("diff --git "), ..Self::default() };
        loop {
            let line = lines.number();
            if let Some(mode) = lines.after("new file mode ") {
                // Without execution a new file gets the bits that new files get.
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
                header.rename = Some((line, path(from, line)?, path(to, line + 1)?));
            } else if lines.after("similarity index ").or_else(|| lines.after("dissimilarity index ")).is_none() {
                return Ok(header);
            }
        }
    }
}

/// Whether git's mode is that of a file that is executed.
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

/// The name of a file that has only one, from the line in which git says it twice.
fn git_name(names: Option<&str>, line: usize) -> Result<String, PatchError> {
    let halves = names.map(str::trim_end).and_then(|names| {
        let (old, new) = names.split_at_checked(names.len() / 2)?;
        Some((old, new.strip_prefix(' ')?))
    });
    match halves {
        Some((old, new)) if !old.starts_with('"') => match (old.strip_prefix("a/"), new.strip_prefix("b/")) {
            (Some(old), Some(new)) if old == new => return path(old, line),
            _ if old == new => return path(old, line),
            _ => {}
        },
        _ => {}
    }
    Err(PatchError::new(line, "which file is meant does not show: `diff --git a/path b/path` was expected"))
}

/// A file's name, without the time that `diff -u` writes after it.
fn name(text: &str) -> &str {
    text.split('\t').next().unwrap_or(text).trim()
}

fn changed(lines: &mut Lines<'_>, line: usize, old: &str, new: &str) -> Result<FilePatch, PatchError> {
    let hunks = hunks(lines)?;
    // Git puts `a/` and `b/` before the names, and only both together are that.
    let (old, new) = match (old.strip_prefix("a/"), new.strip_prefix("b/")) {
        (Some(old), Some(new)) => (old, new),
        (Some(old), None) if new == NOWHERE => (old, new),
        (None, Some(new)) if old == NOWHERE => (old, new),
        _ => (old, new),
    };
    let file = |name: &str, action| Ok(FilePatch { path: path(name, line)?, line, executable: None, action });
    match (old, new) {
        (NOWHERE, new) => {
            let mut content = hunks.iter().flat_map(Hunk::new_lines).flat_map(|line| [line, "\n"]).collect::<String>();
            if hunks.last().is_some_and(|hunk| hunk.ends_in_break == Some(false)) {
                content.pop();
            }
            file(new, Action::Add(content))
        }
        (old, new) if hunks.is_empty() => {
            Err(PatchError::new(line, format!("there is no hunk (`@@ -1,3 +1,4 @@`) between `{old}` and `{new}`")))
        }
        (old, NOWHERE) => file(old, Action::Delete { was: Some(hunks) }),
        (old, new) => file(old, Action::Update { to: (old != new).then(|| new.to_owned()), hunks }),
    }
}

fn hunks(lines: &mut Lines<'_>) -> Result<Vec<Hunk>, PatchError> {
    let mut hunks = Vec::new();
    while let Some(header) = lines.after("@@") {
        let mut hunk = lines.hunk()?;
        let Some((at, mut old, mut new)) = numbers(header) else {
            let what = format!("`@@ -line,count +line,count @@` was expected, not `@@{}`", cut(header));
            return Err(PatchError::new(hunk.line, what));
        };
        // `-0,0` stands before the first line, and `-5,0` behind the fifth.
        hunk.at = Some(if old == 0 { at.saturating_add(1) } else { at });
        while old > 0 || new > 0 || lines.peek().is_some_and(|line| line.starts_with('\\')) {
            let number = lines.number();
            let line = lines.next().unwrap_or("\n");
            let (sign, text) = line.split_at_checked(1).unwrap_or((" ", ""));
            let wrong = |what: String| Err(PatchError::new(number, what));
            let counts = match sign {
                " " => (1, 1),
                "-" => (1, 0),
                "+" => (0, 1),
                "\\" => {
                    // It speaks of the line before it. Behind a removed line the new end may follow, which has a break.
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
