//! Finding the files: names and times alone, so that it is cheap to look whether anything changed.

use super::places::{Kind, Place};
use crate::config::{layers::LayerKind, origin::Origin, ownership::check_owned, problem::Problem};
use std::{
    collections::BTreeSet,
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// So many entries of a place are looked at.
const MOST_ENTRIES: usize = 4_000;
/// So many files of a place count.
const MOST_FILES: usize = 500;
/// So deep folders are looked into.
const MOST_DEPTH: usize = 8;
/// The file of a skill.
const SKILL: &str = "SKILL.md";

/// The files in the places.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Found {
    /// The files, in the order of precedence.
    pub(super) files: Vec<FoundFile>,
    /// The places that were not looked at, and why.
    pub(super) problems: Vec<Problem>,
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundFile {
    /// The place it was found in, by its number.
    pub(super) place: usize,
    pub(super) path: PathBuf,
    /// Its name by where it lies, with `:` between folders.
    pub(super) name: String,
    pub(super) stamp: Stamp,
}

/// Differs where a file differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Stamp {
    file: (u64, u64),
    size: u64,
    changed: (i64, i64),
    status_changed: (i64, i64),
}

impl Stamp {
    pub(super) fn of(path: &Path) -> Option<Self> {
        let facts = path.metadata().ok()?;
        Some(Self {
            file: (facts.dev(), facts.ino()),
            size: facts.size(),
            changed: (facts.mtime(), facts.mtime_nsec()),
            status_changed: (facts.ctime(), facts.ctime_nsec()),
        })
    }
}

/// Looks into all places.
pub(super) fn search(places: &[Place]) -> Found {
    let mut found = Found::default();
    for (number, place) in places.iter().enumerate() {
        let mut search = Search {
            number,
            place,
            left: MOST_ENTRIES,
            entered: BTreeSet::new(),
            files: Vec::new(),
            problems: &mut found.problems,
        };
        search.folder(&place.folder, &mut Vec::new());
        found.files.append(&mut search.files);
    }
    found
}

struct Search<'a> {
    number: usize,
    place: &'a Place,
    left: usize,
    /// The folders that were entered, so that links which lead in a circle end.
    entered: BTreeSet<(u64, u64)>,
    files: Vec<FoundFile>,
    problems: &'a mut Vec<Problem>,
}

impl Search<'_> {
    fn wrong(&mut self, path: &Path, message: impl Into<String>) {
        self.problems.push(Problem::new(Origin::file(path), message));
    }

    fn folder(&mut self, folder: &Path, names: &mut Vec<String>) {
        let read = match fs::read_dir(folder) {
            Ok(read) => read,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return,
            Err(error) => return self.wrong(folder, format!("cannot be looked into: {error}")),
        };
        let is_new = folder.metadata().is_ok_and(|facts| self.entered.insert((facts.dev(), facts.ino())));
        if !is_new {
            return;
        }
        let mut entries: Vec<PathBuf> = read.filter_map(|entry| Some(entry.ok()?.path())).take(self.left + 1).collect();
        entries.sort_unstable();
        for path in entries {
            if self.left == 0 || self.files.len() == MOST_FILES {
                let message = format!(
                    "more lies here than is looked at ({MOST_ENTRIES} entries, {MOST_FILES} files), and the \
                             rest does not count"
                );
                // Once for each place.
                if !self.problems.iter().any(|problem| {
                    problem.message == message && problem.origin == Origin::file(self.place.folder.as_path())
                }) {
                    let folder = self.place.folder.clone();
                    self.wrong(&folder, message);
                }
                return;
            }
            self.left -= 1;
            self.entry(path, names);
        }
    }

    fn entry(&mut self, path: PathBuf, names: &mut Vec<String>) {
        let Some(name) = path.file_name().and_then(|name| name.to_str()).map(str::to_owned) else { return };
        if name.starts_with('.') {
            return;
        }
        let Ok(facts) = path.symlink_metadata() else { return };
        let is_skill = self.place.kind == Kind::Skill;
        if facts.is_symlink() && path.is_dir() {
            // A project's link may lead anywhere; a person's own is followed as those of configuration files are.
            let followed = match self.place.owner {
                LayerKind::Project => Err("what it leads to is a stranger's here".to_owned()),
                _ => path.canonicalize().map_err(|error| error.to_string()).and_then(|real| check_owned(&path, &real)),
            };
            if let Err(reason) = followed {
                return self.wrong(&path, format!("is a link that is not followed: {reason}"));
            }
        }
        if path.is_dir() {
            if is_skill {
                let file = path.join(SKILL);
                if file.symlink_metadata().is_ok() {
                    self.file(file, name);
                }
            } else if names.len() < MOST_DEPTH {
                names.push(name);
                self.folder(&path, names);
                names.pop();
            } else {
                self.wrong(&path, format!("lies deeper than {MOST_DEPTH} folders, and is not looked into"));
            }
        } else if let Some(stem) = name.strip_suffix(".md").filter(|_| !is_skill) {
            let whole = names.iter().map(String::as_str).chain([stem]).collect::<Vec<_>>().join(":");
            // The folders of agents are for their people alone.
            let name = if self.place.kind == Kind::Agent { stem.to_owned() } else { whole };
            self.file(path, name);
        }
    }

    fn file(&mut self, path: PathBuf, name: String) {
        // One that is gone by now is none.
        let Some(stamp) = Stamp::of(&path) else { return };
        self.files.push(FoundFile { place: self.number, path, name, stamp });
    }
}
