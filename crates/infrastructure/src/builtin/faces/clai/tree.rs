//! A folder as the program `tree` draws it.

use super::{is_whole, items};
use crate::builtin::faces::wording::with_remarks;
use serde_json::Value;
use toolstead_domain::alias::face::Answered;

/// The tree, and how many folders and files it shows. `None` where not all of it is there.
pub(super) fn drawn(answered: &Answered<'_>) -> Option<String> {
    let entries = items(answered, "entries").filter(|_| is_whole(answered))?;
    let mut text = answered.text_argument("directory").unwrap_or(".").to_owned();
    // Of each folder above an entry: whether more comes below it.
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

/// Of each entry, whether it is the last one of its folder. Each folder stands before what it holds.
fn last_ones(entries: &[Value]) -> Vec<bool> {
    // By depth: whether an entry of the same folder comes later.
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
