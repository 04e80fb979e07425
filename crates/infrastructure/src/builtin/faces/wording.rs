//! What the faces of several systems say in the same way.

use serde_json::Value;
use toolstead_domain::{
    alias::face::{Answered, Said},
    error_kind::ErrorKind,
};

/// JSON with two blanks for each level.
pub(super) fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// The remarks at the end of what a tool said, each a line in brackets; `None` where there are none.
pub(super) fn remarks(text: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let is_remark = |line: &&&str| line.starts_with('[') && line.ends_with(']');
    let count = lines.iter().rev().take_while(is_remark).count();
    (count > 0).then(|| lines[lines.len() - count..].join("\n"))
}

/// An error about the first of these parameters that was not given, where the call failed for what it was given.
pub(super) fn missing(answered: &Answered<'_>, parameters: &[&str]) -> Option<Said> {
    if answered.error_kind() != Some(ErrorKind::InvalidInput) {
        return None;
    }
    let is_given = |name: &str| match answered.arguments.get(name) {
        None | Some(Value::Null) => false,
        Some(value) => value.as_str() != Some(""),
    };
    let missing = parameters.iter().find(|name| !is_given(name))?;
    Some(Said::error(format!("{missing} is required")))
}

/// A path below another one, as it is written there: without `./` before it.
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

    #[test]
    fn remarks_stand_at_the_end_of_a_text() {
        assert_eq!(remarks("a\n[b]\n[c]").as_deref(), Some("[b]\n[c]"));
        assert_eq!(remarks("[a]\nb"), None);
        assert_eq!(remarks(""), None);
    }

    #[test]
    fn a_path_is_written_as_the_folder_was_given() {
        for (folder, expected) in
            [(".", "a/b"), ("./", "a/b"), ("src", "src/a/b"), ("./src/", "src/a/b"), ("/x", "/x/a/b")]
        {
            assert_eq!(below(folder, "a/b"), expected, "{folder}");
        }
    }
}
