//! Searches for files. Reads only names and time stamps, so that checking for changes is cheap.

use super::search_folders::{AgentFileKind, SearchFolder};
use crate::config::{
    layers::LayerKind,
    tree::{origin::Origin, ownership::check_owned, problem::Problem},
};
use std::{
    collections::BTreeSet,
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// Maximum number of directory entries read per folder to search.
const MOST_ENTRIES: usize = 4_000;
/// Maximum number of files used per folder to search.
const MOST_FILES: usize = 500;
/// Maximum depth of subfolders.
const MOST_DEPTH: usize = 8;
/// File name of a skill.
const SKILL: &str = "SKILL.md";

/// Result of a search.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct AgentFileSearchResult {
    /// Files in order of precedence.
    pub(super) files: Vec<FoundFile>,
    /// Folders that could not be searched, with the reasons.
    pub(super) problems: Vec<Problem>,
}

/// A file that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundFile {
    /// Index of the [`SearchFolder`] in which the file was found.
    pub(super) place: usize,
    pub(super) path: PathBuf,
    /// Name derived from the path: the file name of an agent, the folder name of a skill, and for a command all names
    /// below the search folder with `:` between them.
    pub(super) name: String,
    pub(super) stamp: FileStamp,
}

/// Identity of a file's state. Two stamps differ if the file was changed or replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct FileStamp {
    file: (u64, u64),
    size: u64,
    changed: (i64, i64),
    status_changed: (i64, i64),
}

impl FileStamp {
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

/// Searches all folders.
pub(super) fn search(places: &[SearchFolder]) -> AgentFileSearchResult {
    let mut found = AgentFileSearchResult::default();
    for (number, place) in places.iter().enumerate() {
        let mut search = FolderSearch {
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

struct FolderSearch<'a> {
    number: usize,
    place: &'a SearchFolder,
    left: usize,
    /// Folders that were already entered (device and inode), so that cyclic symbolic links do not cause an endless
    /// search.
    entered: BTreeSet<(u64, u64)>,
    files: Vec<FoundFile>,
    problems: &'a mut Vec<Problem>,
}

impl FolderSearch<'_> {
    fn wrong(&mut self, path: &Path, message: impl Into<String>) {
        self.problems.push(Problem::new(Origin::file(path), message));
    }

    fn folder(&mut self, folder: &Path, names: &mut Vec<String>) {
        let read = match fs::read_dir(folder) {
            Ok(read) => read,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return,
            Err(error) => return self.wrong(folder, format!("cannot be read: {error}")),
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
                    "the folder exceeds the limits ({MOST_ENTRIES} entries, {MOST_FILES} files), and the rest is \
                     ignored"
                );
                // Reported once per folder to search.
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
        let is_skill = self.place.kind == AgentFileKind::Skill;
        if facts.is_symlink() && path.is_dir() {
            // A symbolic link in a project may point anywhere and is not followed. The user's own links are followed if
            // the target passes the ownership check, like those of configuration files.
            let followed = match self.place.owner {
                LayerKind::Project => Err("its target is not trusted".to_owned()),
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
                self.wrong(&path, format!("is deeper than {MOST_DEPTH} folders, and is ignored"));
            }
        } else if let Some(stem) = name.strip_suffix(".md").filter(|_| !is_skill) {
            let whole = names.iter().map(String::as_str).chain([stem]).collect::<Vec<_>>().join(":");
            // Subfolders of agents serve only to organise them and are not part of the name.
            let name = if self.place.kind == AgentFileKind::Agent { stem.to_owned() } else { whole };
            self.file(path, name);
        }
    }

    fn file(&mut self, path: PathBuf, name: String) {
        // The file was deleted in the meantime.
        let Some(stamp) = FileStamp::of(&path) else { return };
        self.files.push(FoundFile { place: self.number, path, name, stamp });
    }
}
