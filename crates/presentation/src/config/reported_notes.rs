//! Records which notes were reported to the user. A note is reported once for each content of its file, and not at
//! every call.

use crate::config::{
    Config,
    layers::folders::{ExistingFileTreatment, write_private},
    tree::{origin::Origin, problem::Problem, source_file::read_bounded},
    trust::digest_of,
};
use std::{collections::BTreeMap, path::Path};

/// Maximum number of recorded origins. If it is exceeded, all are discarded.
const MAX_PLACES: usize = 1_000;

/// Returns the notes that were not reported yet for the current content of their file, and records them. If they cannot
/// be recorded, they are reported again next time.
pub fn unreported(config: &Config, notes: Vec<Problem>) -> Vec<Problem> {
    let mut by_place: BTreeMap<String, Vec<Problem>> = BTreeMap::new();
    for note in notes {
        let place = match &note.origin {
            Origin::File(path, _) => path.display().to_string(),
            Origin::Environment(_) | Origin::Flag(_) | Origin::Default => String::new(),
        };
        by_place.entry(place).or_default().push(note);
    }
    let list = config.folders.data.as_ref().map(|data| data.join("told-notes.json"));
    let mut reported: BTreeMap<String, String> =
        list.as_ref().and_then(|list| serde_json::from_slice(&read_bounded(list).ok()?).ok()).unwrap_or_default();
    let before = reported.clone();
    // Notes about a file that has none now are reported again if they recur.
    let is_silent = |place: &String| !by_place.contains_key(place);
    let read: Vec<String> = config.files.iter().map(|file| file.path.display().to_string()).collect();
    reported.retain(|place, _| !(is_silent(place) && (place.is_empty() || read.contains(place))));
    let unreported = by_place.into_iter().filter_map(|(place, notes)| {
        let digest = digest_of(&content(config, &place, &notes));
        let is_new = reported.get(&place) != Some(&digest);
        reported.insert(place, digest);
        is_new.then_some(notes)
    });
    let unreported = unreported.flatten().collect();
    if reported.len() > MAX_PLACES {
        reported.clear();
    }
    if let (true, Some(list), Ok(content)) = (reported != before, list, serde_json::to_vec(&reported)) {
        // If writing fails, the notes are reported again, which is harmless.
        let _ = config.folders.prepare_data().map(|_| write_private(&list, &content, ExistingFileTreatment::Replaced));
    }
    unreported
}

/// Returns the text of a file together with its notes.
fn content(config: &Config, place: &str, notes: &[Problem]) -> String {
    let file = config.files.iter().find(|file| *file.path == *Path::new(place));
    let text = file.map(|file| file.text.as_str()).unwrap_or_default();
    let notes: Vec<String> = notes.iter().map(ToString::to_string).collect();
    format!("{text}\0{}", notes.join("\n"))
}
