//! Which notes a person has been told: each is told at the first use of its file as it is now, and not at every call.

use crate::config::{
    Config,
    folders::{Existing, write_private},
    origin::Origin,
    problem::Problem,
    source_file::read_bounded,
    trust::digest_of,
};
use std::{collections::BTreeMap, path::Path};

/// As many places are remembered; beyond that all are forgotten.
const MAX_PLACES: usize = 1_000;

/// The notes that were not told yet, or not of this content of their file, and remembers them as told. Where that cannot be
/// kept, they are told again.
pub fn untold(config: &Config, notes: Vec<Problem>) -> Vec<Problem> {
    let mut by_place: BTreeMap<String, Vec<Problem>> = BTreeMap::new();
    for note in notes {
        let place = match &note.origin {
            Origin::File(path, _) => path.display().to_string(),
            Origin::Environment(_) | Origin::Flag(_) | Origin::Default => String::new(),
        };
        by_place.entry(place).or_default().push(note);
    }
    let list = config.folders.data.as_ref().map(|data| data.join("told-notes.json"));
    let mut told: BTreeMap<String, String> =
        list.as_ref().and_then(|list| serde_json::from_slice(&read_bounded(list).ok()?).ok()).unwrap_or_default();
    let before = told.clone();
    // What there was to tell of a file is new when it comes back.
    let is_silent = |place: &String| !by_place.contains_key(place);
    let read: Vec<String> = config.files.iter().map(|file| file.path.display().to_string()).collect();
    told.retain(|place, _| !(is_silent(place) && (place.is_empty() || read.contains(place))));
    let untold = by_place.into_iter().filter_map(|(place, notes)| {
        let digest = digest_of(&content(config, &place, &notes));
        let is_new = told.get(&place) != Some(&digest);
        told.insert(place, digest);
        is_new.then_some(notes)
    });
    let untold = untold.flatten().collect();
    if told.len() > MAX_PLACES {
        told.clear();
    }
    if let (true, Some(list), Ok(content)) = (told != before, list, serde_json::to_vec(&told)) {
        // Whoever reads them twice loses nothing.
        let _ = config.folders.prepare_data().map(|_| write_private(&list, &content, Existing::Replaced));
    }
    untold
}

/// What a file holds and what is told of it.
fn content(config: &Config, place: &str, notes: &[Problem]) -> String {
    let file = config.files.iter().find(|file| *file.path == *Path::new(place));
    let text = file.map(|file| file.text.as_str()).unwrap_or_default();
    let notes: Vec<String> = notes.iter().map(ToString::to_string).collect();
    format!("{text}\0{}", notes.join("\n"))
}
