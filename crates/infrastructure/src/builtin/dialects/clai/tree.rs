//! A folder in the format of the program `tree`.

use super::{is_complete, items};
use crate::builtin::dialects::wording::with_remarks;
use serde_json::Value;
use toolstead_domain::AdapterInput;

/// Returns the tree with the number of its folders and files; `None` if the result is not complete.
pub(super) fn drawn(answered: &AdapterInput<'_>) -> Option<String> {
    let entries = items(answered, "entries").filter(|_| is_complete(answered))?;
    let mut text = answered.text_argument("directory").unwrap_or(".").to_owned();
    // For each folder above an entry: `true` if more entries follow in it.
    let mut goes_on: Vec<bool> = Vec::new();
    let lasts = last_ones(entries);
    for (entry, is_last) in entries.iter().zip(lasts) {
        goes_on.truncate(depth(entry));
        text.push('\n');
        goes_on.iter().for_each(|more| text.push_str(if *more { "│   " } else { "    " }));
        text.push_str(if is_last { "└── " } else { "├── " });
        text.push_str(entry["name"].as_str().unwrap_or_default());
        goes_on.push(!is_last);
    }
    let folders = entries.iter().filter(|entry| entry["type"] == "directory").count();
    let files = entries.len() - folders;
    let count = |number, one, several| format!("{number} {}", if number == 1 { one } else { several });
    let counted = [count(folders, "directory", "directories"), count(files, "file", "files")];
    Some(with_remarks(format!("{text}\n\n{}", counted.join(", ")), answered))
}

fn depth(entry: &Value) -> usize {
    entry["path"].as_str().unwrap_or_default().matches('/').count()
}

/// Returns for each entry `true` if it is the last one of its folder. In `entries`, each folder precedes its contents.
fn last_ones(entries: &[Value]) -> Vec<bool> {
    // By depth: `true` if a later entry belongs to the same folder.
    let mut later: Vec<bool> = Vec::new();
    let mut lasts: Vec<bool> = entries
        .iter()
        .rev()
        .map(|entry| {
            let depth = depth(entry);
            later.resize(depth + 1, false);
            !std::mem::replace(&mut later[depth], true)
        })
        .collect();
    lasts.reverse();
    lasts
}
