//! What was found.

use serde_json::{Value, json};
use toolstead_domain::alias::face::{Answered, Said};

pub(super) fn globbed(answered: &Answered<'_>) -> Option<Said> {
    if answered.error_kind().is_some() {
        return None;
    }
    let files = answered.member("files")?.as_array()?;
    let names: Vec<&Value> = files.iter().map(|file| &file["path"]).collect();
    let shape = json!({"numFiles": names.len(), "filenames": names, "truncated": answered.member("truncated")?});
    let text = if names.is_empty() { "No files found".into() } else { answered.text() };
    Some(Said::text(text).with_structured(shape))
}

pub(super) fn grepped(answered: &Answered<'_>) -> Option<Said> {
    if answered.error_kind().is_some() {
        return None;
    }
    let mode = answered.member("mode")?.as_str()?;
    let files = answered.member("files")?.as_array()?;
    let total = answered.member("total_matches")?;
    let count = files.len();
    let text = answered.text();
    let said = match mode {
        "files_with_matches" if count == 0 => "No files found".to_owned(),
        _ if count == 0 => "No matches found".to_owned(),
        "files_with_matches" => format!("Found {}\n{text}", told(count, "file")),
        "count" if answered.member("truncated") == Some(&Value::Bool(false)) => {
            let counts = answered.member("counts")?.as_array()?.iter();
            let lines = counts.map(|one| format!("{}:{}\n", one["path"].as_str().unwrap_or_default(), one["count"]));
            format!("{}\nFound {total} total occurrences across {}.", lines.collect::<String>(), told(count, "file"))
        }
        _ => text.clone().into_owned(),
    };
    let mut shape = json!({"mode": mode, "numFiles": count, "filenames": files, "numMatches": total});
    if mode == "content" {
        let lines = if count == 0 { "" } else { &*text };
        shape["content"] = lines.into();
        shape["numLines"] = lines.lines().count().into();
    }
    Some(Said::text(said).with_structured(shape))
}

fn told(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
