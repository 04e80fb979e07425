//! Which entries of a folder a search passes over: version control's own, hidden ones, ignored ones.

use crate::sandbox::workspace::{
    facts::FileKind,
    found::Found,
    granted::GrantedWorkspace,
    walk::{Entry, Folder},
};
use ignore::{
    Match,
    gitignore::{Gitignore, GitignoreBuilder},
};
use std::{os::unix::ffi::OsStrExt, path::Path, rc::Rc};

/// What version control keeps beside the files.
const VERSION_CONTROL: &[&str] = &[".git", ".hg", ".svn", ".bzr", ".jj", ".sl"];
/// Files with ignore patterns, the weaker first.
const IGNORE_FILES: &[&str] = &[".gitignore", ".ignore"];
/// As much of an ignore file is taken: every pattern costs time in every folder below.
const MAX_IGNORE_FILE_BYTES: u64 = 64 << 10;
/// As many patterns of an ignore file are taken.
const MAX_PATTERNS: usize = 2000;

/// What to pass over.
#[derive(Debug, Clone, Copy)]
pub(super) struct FileFilter {
    pub(super) show_hidden: bool,
    pub(super) respect_ignore_files: bool,
}

/// Why an entry is passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PassedOver {
    VersionControl,
    Hidden,
    Ignored,
}

/// The ignore patterns of a folder and of those above it.
#[derive(Debug)]
pub(super) struct IgnoreRules {
    patterns: Gitignore,
    above: Option<Rc<IgnoreRules>>,
}

/// The ignore patterns that hold in a folder, if there are any.
pub(super) type Ignoring = Option<Rc<IgnoreRules>>;

impl FileFilter {
    /// The patterns of the folders above the one where a search begins, up to its root.
    pub(super) fn above(&self, files: &GrantedWorkspace, start: &Found) -> Ignoring {
        let real = &start.path().real;
        let root = files.root_of(real).filter(|_| self.respect_ignore_files)?;
        let mut folders: Vec<&Path> = real.ancestors().skip(1).take_while(|folder| folder.starts_with(root)).collect();
        folders.reverse();
        folders.into_iter().fold(None, |above, folder| {
            let read = |name: &str| {
                let found = files.find(folder.join(name).to_str()?).ok()?;
                found.read(MAX_IGNORE_FILE_BYTES).ok()
            };
            with_patterns(folder, read, above)
        })
    }

    /// The patterns that hold in a folder.
    pub(super) fn enter(&self, folder: &Folder<'_>, above: &Ignoring) -> Ignoring {
        if !self.respect_ignore_files {
            return None;
        }
        with_patterns(&folder.path().real, |name| folder.read(name, MAX_IGNORE_FILE_BYTES), above.clone())
    }

    /// Whether an entry is passed over.
    pub(super) fn passes_over(&self, entry: &Entry<'_>, ignoring: &Ignoring) -> Option<PassedOver> {
        let name = entry.name().as_bytes();
        if VERSION_CONTROL.iter().any(|other| other.as_bytes() == name) {
            return Some(PassedOver::VersionControl);
        }
        if !self.show_hidden && name.starts_with(b".") {
            return Some(PassedOver::Hidden);
        }
        let is_folder = entry.kind() == FileKind::Folder;
        is_ignored(&entry.path().real, is_folder, ignoring).then_some(PassedOver::Ignored)
    }
}

/// The patterns in a folder's own files, before those of the folders above.
fn with_patterns(folder: &Path, read: impl Fn(&str) -> Option<Vec<u8>>, above: Ignoring) -> Ignoring {
    let mut builder = GitignoreBuilder::new(folder);
    let mut is_empty = true;
    for content in IGNORE_FILES.iter().filter_map(|name| read(name)) {
        for line in String::from_utf8_lossy(&content).trim_start_matches('\u{feff}').lines().take(MAX_PATTERNS) {
            // A line that is no pattern ignores nothing, as git has it.
            is_empty &= builder.add_line(None, line).is_err();
        }
    }
    if is_empty {
        return above;
    }
    match builder.build() {
        Ok(patterns) => Some(Rc::new(IgnoreRules { patterns, above })),
        Err(_) => above,
    }
}

/// The nearest pattern decides.
fn is_ignored(path: &Path, is_folder: bool, ignoring: &Ignoring) -> bool {
    let mut next = ignoring;
    while let Some(rules) = next {
        match rules.patterns.matched(path, is_folder) {
            Match::Ignore(_) => return true,
            Match::Whitelist(_) => return false,
            Match::None => next = &rules.above,
        }
    }
    false
}
