//! Found files and lines in the format of Claude Code.

use crate::builtin::dialects::wording::with_remarks;
use serde_json::{Value, json};
use toolstead_domain::{AdaptedResult, AdapterInput};

pub(super) fn globbed(answered: &AdapterInput<'_>) -> Option<AdaptedResult> {
    if answered.error_kind().is_some() {
        return None;
    }
    let files = answered.member("files")?.as_array()?;
    let names: Vec<&Value> = files.iter().map(|file| &file["path"]).collect();
    let shape = json!({"numFiles": names.len(), "filenames": names, "truncated": answered.member("truncated")?});
    let text =
        if names.is_empty() { with_remarks("No files found".into(), answered) } else { answered.text().into_owned() };
    Some(AdaptedResult::text(text).with_structured(shape))
}

pub(super) fn grepped(answered: &AdapterInput<'_>) -> Option<AdaptedResult> {
    if answered.error_kind().is_some() {
        return None;
    }
    let mode = answered.member("mode")?.as_str()?;
    let files = answered.member("files")?.as_array()?;
    let total = answered.member("total_matches")?;
    let count = files.len();
    let text = answered.text();
    let said = match mode {
        // There are matches, but `offset` skips them all.
        _ if count == 0 && total.as_u64() != Some(0) => text.clone().into_owned(),
        "files_with_matches" if count == 0 => with_remarks("No files found".to_owned(), answered),
        _ if count == 0 => with_remarks("No matches found".to_owned(), answered),
        "files_with_matches" => format!("Found {}\n{text}", pluralize(count, "file")),
        "count" if answered.member("truncated") == Some(&Value::Bool(false)) => {
            let counts = answered.member("counts")?.as_array()?.iter();
            let lines = counts.map(|one| format!("{}:{}\n", one["path"].as_str().unwrap_or_default(), one["count"]));
            let lines = lines.collect::<String>();
            let text = format!("{lines}\nFound {total} total occurrences across {}.", pluralize(count, "file"));
            with_remarks(text, answered)
        }
        _ => text.clone().into_owned(),
    };
    let mut shape = json!({"mode": mode, "numFiles": count, "filenames": files, "numMatches": total});
    if mode == "content" {
        let lines = if count == 0 { "" } else { &*text };
        shape["content"] = lines.into();
        shape["numLines"] = lines.lines().count().into();
    }
    Some(AdaptedResult::text(said).with_structured(shape))
}

fn pluralize(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
