//! A unified diff, as `diff -u` and `git diff` write it.

use super::{Action, FilePatch, Hunk, HunkLine, Lines, PatchError, cut, numbers, path};

/// What stands between the files of a `git diff` and says nothing that is needed.
const PASSED_OVER: &[&str] =
    &["diff --git ", "index ", "new file mode ", "deleted file mode ", "similarity index ", "dissimilarity index "];
const NOWHERE: &str = "/dev/null";

/// Whether a patch that begins with this line is a unified diff.
pub(super) fn begins(line: &str) -> bool {
    line.starts_with("--- ") || line.starts_with("diff --git ")
}

pub(super) fn parse(lines: &mut Lines<'_>) -> Result<Vec<FilePatch>, PatchError> {
    let mut files = Vec::new();
    while let Some(first) = lines.peek() {
        let line = lines.number();
        if let Some(from) = lines.after("rename from ") {
            let to =
                lines.after("rename to ").ok_or_else(|| PatchError::new(lines.number(), "`rename to` is missing"))?;
            let (from, to) = (path(from, line)?, path(to, line + 1)?);
            while lines.peek().is_some_and(is_passed_over) {
                lines.next();
            }
            let hunks = match lines.peek() {
                Some(next) if next.starts_with("--- ") => {
                    lines.next();
                    lines.next();
                    hunks(lines)?
                }
                _ => Vec::new(),
            };
            files.push(FilePatch { path: from, line, action: Action::Update { to: Some(to), hunks } });
        } else if let Some(old) = lines.after("--- ") {
            let Some(new) = lines.after("+++ ") else {
                return Err(PatchError::new(lines.number(), "`+++ path` was expected after `--- path`"));
            };
            files.push(changed(lines, line, name(old), name(new))?);
        } else if is_passed_over(first) || first.trim().is_empty() {
            lines.next();
        } else {
            let what = format!("`--- path` was expected, not `{}`", cut(first));
            return Err(PatchError::new(line, what));
        }
    }
    Ok(files)
}

fn is_passed_over(line: &str) -> bool {
    PASSED_OVER.iter().any(|beginning| line.starts_with(beginning))
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
    let file = |name: &str, action| Ok(FilePatch { path: path(name, line)?, line, action });
    match (old, new) {
        (NOWHERE, new) => {
            let mut content = hunks.iter().flat_map(Hunk::new_lines).flat_map(|line| [line, "\n"]).collect::<String>();
            if hunks.last().is_some_and(|hunk| hunk.ends_in_break == Some(false)) {
                content.pop();
            }
            file(new, Action::Add(content))
        }
        (old, NOWHERE) => file(old, Action::Delete),
        (old, new) if hunks.is_empty() => {
            Err(PatchError::new(line, format!("there is no hunk (`@@ -1,3 +1,4 @@`) between `{old}` and `{new}`")))
        }
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
        hunk.at = Some(if old == 0 { at + 1 } else { at });
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
