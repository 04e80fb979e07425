//! Selects the entries of a folder that a search skips: folders of version control, ignored entries, hidden entries.
//!
//! Ignore files apply as in ripgrep: `.rgignore` over `.ignore` over `.gitignore` over `.git/info/exclude`, and of each
//! kind the nearest. In contrast to ripgrep, `.gitignore` also applies outside of a repository, an ignore file that is
//! a link is ignored, and nothing outside of the workspace is read: neither ignore files above its root nor the user's
//! own.

use crate::sandbox::workspace::{
    facts::FileKind,
    file_handle::FileHandle,
    granted_workspace::GrantedWorkspace,
    walk::{WalkEntry, WalkFolder},
};
use ignore::{
    Match,
    gitignore::{Gitignore, GitignoreBuilder},
};
use std::{os::unix::ffi::OsStrExt, path::Path, sync::Arc};

/// Folders of version control systems.
const VERSION_CONTROL: &[&str] = &[".git", ".hg", ".svn", ".bzr", ".jj", ".sl"];
/// Entry that marks a folder as a repository. Patterns of outer repositories do not apply in it.
const REPOSITORY: &str = ".git";
/// Files with ignore patterns, in order of precedence.
const IGNORE_FILES: [&str; 4] = [".rgignore", ".ignore", ".gitignore", ".git/info/exclude"];
/// Index in [`IGNORE_FILES`] of the first file that belongs to git. Its patterns, and those of the files after it, do
/// not apply in a repository further below.
const FIRST_OF_GIT: usize = 2;
/// Maximum number of bytes read of an ignore file, because every pattern costs time in every folder below.
const MAX_IGNORE_FILE_BYTES: u64 = 64 << 10;
/// Maximum number of lines used of an ignore file.
const MAX_PATTERNS: usize = 2000;

/// Kinds of entries to skip.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IgnoreOptions {
    pub(crate) show_hidden: bool,
    pub(crate) respect_ignore_files: bool,
}

/// Reason why an entry is skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SkipReason {
    VersionControl,
    Hidden,
    Ignored,
}

/// Ignore patterns of a folder and of those above it.
#[derive(Debug)]
pub(crate) struct IgnoreRules {
    /// Patterns of each ignore file, in the order of [`IGNORE_FILES`]; `None` for a file without patterns.
    patterns: [Option<Gitignore>; IGNORE_FILES.len()],
    is_repository: bool,
    above: Option<Arc<IgnoreRules>>,
}

/// Ignore patterns that apply in a folder, if there are any.
pub(crate) type ActiveIgnoreRules = Option<Arc<IgnoreRules>>;

impl IgnoreOptions {
    /// Returns the ignore patterns of the folders above the start of a search, up to the root of the workspace; `None`
    /// if there are none, or ignore files are not respected.
    pub(crate) fn above(&self, files: &GrantedWorkspace, start: &FileHandle) -> ActiveIgnoreRules {
        let real = &start.path().real;
        let root = files.root_of(real).filter(|_| self.respect_ignore_files)?;
        let mut folders: Vec<&Path> = real.ancestors().skip(1).take_while(|folder| folder.starts_with(root)).collect();
        folders.reverse();
        folders.into_iter().fold(None, |above, folder| {
            let is_repository = files.holds(&folder.join(REPOSITORY));
            let read = |name: &str| files.beginning_of(&folder.join(name), MAX_IGNORE_FILE_BYTES);
            with_patterns(folder, is_repository, read, above)
        })
    }

    /// Adds a folder's own ignore patterns to those of the folders above it; `None` if there are none, or ignore files
    /// are not respected.
    pub(crate) fn enter(&self, folder: &WalkFolder<'_>, above: &ActiveIgnoreRules) -> ActiveIgnoreRules {
        if !self.respect_ignore_files {
            return None;
        }
        let is_there = |name: &str| folder.holds(name.split('/').next().unwrap_or(name));
        let read = |name: &str| is_there(name).then(|| folder.read(name, MAX_IGNORE_FILE_BYTES)).flatten();
        with_patterns(&folder.path().real, folder.holds(REPOSITORY), read, above.clone())
    }

    /// Returns the reason to skip an entry, if there is one.
    pub(crate) fn skip_reason(&self, entry: &WalkEntry<'_>, ignoring: &ActiveIgnoreRules) -> Option<SkipReason> {
        let name = entry.name().as_bytes();
        let is_hidden = name.starts_with(b".");
        if is_hidden && VERSION_CONTROL.iter().any(|other| other.as_bytes() == name) {
            return Some(SkipReason::VersionControl);
        }
        match matched(&entry.path().real, entry.kind() == FileKind::Folder, ignoring) {
            Match::Ignore(()) => Some(SkipReason::Ignored),
            // An entry that a pattern includes again is wanted, even if it is hidden.
            Match::Whitelist(()) => None,
            Match::None => (is_hidden && !self.show_hidden).then_some(SkipReason::Hidden),
        }
    }
}

/// Adds the patterns in a folder's own files to those of the folders above.
fn with_patterns(
    folder: &Path,
    is_repository: bool,
    read: impl Fn(&str) -> Option<Vec<u8>>,
    above: ActiveIgnoreRules,
) -> ActiveIgnoreRules {
    let patterns = IGNORE_FILES.map(|name| compiled(folder, &read(name)?));
    let matters = patterns.iter().any(Option::is_some) || (is_repository && above.is_some());
    if matters { Some(Arc::new(IgnoreRules { patterns, is_repository, above })) } else { above }
}

fn compiled(folder: &Path, content: &[u8]) -> Option<Gitignore> {
    // A part of a pattern could exclude more than the whole one.
    let is_whole = (content.len() as u64) < MAX_IGNORE_FILE_BYTES;
    let end = if is_whole { content.len() } else { content.iter().rposition(|byte| *byte == b'\n')? };
    let text = String::from_utf8_lossy(&content[..end]);
    let mut builder = GitignoreBuilder::new(folder);
    for line in text.trim_start_matches('\u{feff}').lines().take(MAX_PATTERNS) {
        // An invalid line ignores nothing, as in git.
        let _ = builder.add_line(None, line);
    }
    builder.build().ok().filter(|patterns| !patterns.is_empty())
}

/// Returns the match of the kind with the highest precedence, and of each kind the nearest.
fn matched(path: &Path, is_folder: bool, ignoring: &ActiveIgnoreRules) -> Match<()> {
    let mut found = [const { Match::None }; IGNORE_FILES.len()];
    let mut is_outside_repository = false;
    let mut next = ignoring;
    while let Some(rules) = next {
        for (kind, patterns) in rules.patterns.iter().enumerate() {
            if let Some(patterns) = patterns
                && found[kind].is_none()
                && (kind < FIRST_OF_GIT || !is_outside_repository)
            {
                found[kind] = patterns.matched(path, is_folder).map(|_| ());
            }
        }
        is_outside_repository |= rules.is_repository;
        next = &rules.above;
    }
    found.into_iter().find(|found| !found.is_none()).unwrap_or(Match::None)
}
