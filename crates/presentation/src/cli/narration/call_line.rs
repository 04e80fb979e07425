//! Short description of a tool call: the tool, its subject and its changes.

use crate::cli::output::visible;
use serde_json::Value;

/// Maximum number of characters of a tool's name. Models make names up.
const NAME_CHARACTERS: usize = 80;
/// Maximum number of characters of a subject.
const SUBJECT_CHARACTERS: usize = 160;
/// Arguments that best describe the subject of a call, the best ones first. Other systems use different names for the
/// same argument.
const SUBJECTS: [&str; 14] = [
    "command",
    "cmd",
    "code",
    "pattern",
    "query",
    "path",
    "file_path",
    "notebook_path",
    "paths",
    "url",
    "description",
    "prompt",
    "task_id",
    "name",
];

/// Returns the name that a model wrote for a tool, on one line, with visible control characters, cut to
/// [`NAME_CHARACTERS`] characters.
pub(super) fn name(tool: &str) -> String {
    one_line(tool, NAME_CHARACTERS)
}

/// Returns the tool and the subject of a call on one line: `bash make test`. If no argument is in [`SUBJECTS`], the
/// subject is the JSON of all arguments; a call without arguments has no subject.
pub(super) fn call_line(tool: &str, arguments: &Value) -> String {
    let known = SUBJECTS.iter().find_map(|name| match arguments.get(name)? {
        Value::String(text) if !text.trim().is_empty() => Some(text.clone()),
        Value::Array(items) if !items.is_empty() => Some(items.iter().map(text_of).collect::<Vec<_>>().join(" ")),
        _ => None,
    });
    let subject = known.or_else(|| match arguments {
        Value::Object(members) if !members.is_empty() => Some(arguments.to_string()),
        _ => None,
    });
    match subject {
        Some(subject) => format!("{} {}", name(tool), one_line(&subject, SUBJECT_CHARACTERS)),
        None => name(tool),
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns the text on one line, with single blanks and visible control characters, cut to this number of characters.
pub(super) fn one_line(text: &str, characters: usize) -> String {
    // Only the beginning of a long text is processed.
    let beginning: String = text.chars().take(characters * 8).collect();
    let line = visible(&beginning.split_whitespace().collect::<Vec<_>>().join(" "));
    match line.chars().count() > characters {
        true => line.chars().take(characters - 1).chain(['…']).collect(),
        false => line,
    }
}

/// Returns the unified diffs in the structured content of a result, one a file.
pub(super) fn diffs(structured: Option<&Value>) -> Vec<&str> {
    let Some(structured) = structured else { return Vec::new() };
    let files = structured.get("files").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let diffs = std::iter::once(structured).chain(files).filter_map(|part| part.get("diff")?.as_str());
    diffs.map(str::trim_end).filter(|diff| !diff.is_empty()).collect()
}

/// Returns the number of added and removed lines, as `+3 -1`, of a result with diffs or with a created file; `None` for
/// any other result.
pub(super) fn changed_lines(structured: Option<&Value>) -> Option<String> {
    let diffs = diffs(structured);
    if diffs.is_empty() {
        let structured = structured?;
        let is_new = structured.get("created") == Some(&Value::Bool(true));
        let lines = structured.get("lines").and_then(Value::as_u64).filter(|_| is_new)?;
        return Some(format!("+{lines} -0"));
    }
    let (mut added, mut removed) = (0, 0);
    for diff in diffs {
        let mut is_hunk = false;
        for line in diff.lines() {
            is_hunk |= line.starts_with("@@");
            match line.as_bytes().first() {
                Some(b'+') if is_hunk => added += 1,
                Some(b'-') if is_hunk => removed += 1,
                _ => {}
            }
        }
    }
    Some(format!("+{added} -{removed}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_call_line_shows_the_tool_and_its_subject() {
        for (tool, arguments, expected) in [
            ("bash", json!({"description": "Test", "command": "python3 -m pytest -q"}), "bash python3 -m pytest -q"),
            ("bash", json!({"command": "cd d &&\n  make"}), "bash cd d && make"),
            ("Edit", json!({"file_path": "/w/a.py", "old_string": "x"}), "Edit /w/a.py"),
            ("grep", json!({"path": "src", "pattern": "fn main"}), "grep fn main"),
            ("read_file", json!({"paths": ["a", "b"]}), "read_file a b"),
            ("mcp__git__log", json!({"n": 3}), "mcp__git__log {\"n\":3}"),
            ("current_time", json!({}), "current_time"),
            ("current_time", Value::Null, "current_time"),
            (
                "x\nMay it run?\u{1b}[2J",
                json!({"command": "a\u{1b}]0;t\u{7}b"}),
                "x May it run?\\u{1b}[2J a\\u{1b}]0;t\\u{7}b",
            ),
        ] {
            assert_eq!(call_line(tool, &arguments), expected);
        }
        let long = call_line("bash", &json!({"command": "ä".repeat(10_000_000)}));
        assert_eq!((long.chars().count(), long.chars().last()), (5 + SUBJECT_CHARACTERS, Some('…')));
    }

    #[test]
    fn added_and_removed_lines_are_counted_over_all_diffs() {
        let diff = "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n one\n-two\n+++ plus\n+three\n";
        for (structured, expected) in [
            (json!({"diff": diff}), Some("+2 -1")),
            (json!({"files": [{"diff": diff}, {"path": "b"}, {"diff": diff}]}), Some("+4 -2")),
            (json!({"created": true, "lines": 12}), Some("+12 -0")),
            (json!({"created": false, "lines": 12}), None),
            (json!({"diff": 7}), None),
            (json!({"exit_code": 0}), None),
        ] {
            assert_eq!(changed_lines(Some(&structured)).as_deref(), expected, "{structured}");
        }
        assert_eq!(changed_lines(None), None);
    }
}
