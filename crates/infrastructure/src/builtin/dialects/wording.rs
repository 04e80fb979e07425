//! Formatting that several dialects share.

use serde_json::Value;
use toolstead_domain::{AdaptedResult, AdapterInput, error_kind::ErrorKind};

/// Returns JSON indented by two spaces.
pub(super) fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// Returns the remarks at the end of a tool's text, each a line of several words in brackets; `None` if there are none.
pub(super) fn remarks(text: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let is_remark = |line: &&&str| line.starts_with('[') && line.ends_with(']') && line.contains(' ');
    let count = lines.iter().rev().take_while(is_remark).count();
    (count > 0).then(|| lines[lines.len() - count..].join("\n"))
}

/// Appends the remarks of the tool to a text: what was cut, refused, or could not be read.
pub(super) fn with_remarks(text: String, answered: &AdapterInput<'_>) -> String {
    match remarks(&answered.text()) {
        Some(remarks) if text.is_empty() => remarks,
        Some(remarks) => format!("{text}\n{remarks}"),
        None => text,
    }
}

/// Returns `true` if the call was a dry run.
pub(super) fn is_dry_run(answered: &AdapterInput<'_>) -> bool {
    answered.member("dry_run") == Some(&Value::Bool(true))
}

/// Returns the remarks that follow the first sentence of a tool that changes a file; `None` if there are none.
pub(super) fn notes(answered: &AdapterInput<'_>) -> Option<String> {
    let (text, path) = (answered.text(), answered.member("path")?.as_str()?);
    let (_, behind) = text.lines().next()?.split_once(&format!("`{path}`"))?;
    let (_, notes) = behind.split_once(". ")?;
    Some(notes.to_owned()).filter(|notes| !notes.is_empty())
}

/// Returns the error that the first missing or empty one of `parameters` is required; `None` if there is none, or if
/// the call did not fail with `invalid_input`.
pub(super) fn missing(answered: &AdapterInput<'_>, parameters: &[&str]) -> Option<AdaptedResult> {
    if answered.error_kind() != Some(ErrorKind::InvalidInput) {
        return None;
    }
    let is_given = |name: &str| match answered.arguments.get(name) {
        None | Some(Value::Null) => false,
        Some(value) => value.as_str() != Some(""),
    };
    let missing = parameters.iter().find(|name| !is_given(name))?;
    Some(AdaptedResult::error(format!("{missing} is required")))
}

/// Returns a path below a folder, without a leading `./`.
pub(super) fn below(folder: &str, path: &str) -> String {
    let folder = folder.trim_end_matches('/');
    let folder = folder.strip_prefix("./").unwrap_or(folder);
    match folder {
        "" | "." => path.to_owned(),
        folder => format!("{folder}/{path}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, json};
    use toolstead_domain::ToolResult;

    #[test]
    fn extracts_bracketed_remarks_from_the_end_of_a_text() {
        assert_eq!(remarks("a\n[b b]\n[c c]").as_deref(), Some("[b b]\n[c c]"));
        assert_eq!(remarks("[a b]\nb"), None);
        assert_eq!(remarks("[id]"), None);
        assert_eq!(remarks(""), None);
    }

    #[test]
    fn extracts_file_notes_that_follow_the_description_of_the_change() {
        for (text, expected) in [
            ("Replaced `a.txt`: 1 line, 2 bytes.", None),
            ("Replaced `a.txt`: 1 line, 2 bytes. The file had 1 other name.", Some("The file had 1 other name.")),
            ("Replaced 1 place in `a.txt`. It was changed. Read it.\n  1\tx. y", Some("It was changed. Read it.")),
            ("Replaced 1 place in `a.txt`.\n  1\tx. y", None),
        ] {
            let result = ToolResult::text(text).with_structured_content(json!({"path": "a.txt"}));
            let arguments = Map::new();
            let answered = AdapterInput { arguments: &arguments, characters: 99, in_tags: false, outcome: Ok(&result) };
            assert_eq!(notes(&answered).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn paths_are_prefixed_with_the_folder_as_it_was_given() {
        for (folder, expected) in
            [(".", "a/b"), ("./", "a/b"), ("src", "src/a/b"), ("./src/", "src/a/b"), ("/x", "/x/a/b")]
        {
            assert_eq!(below(folder, "a/b"), expected, "{folder}");
        }
    }
}
