//! Reads instruction files with the files that they include, within all limits.

use super::{includes::included_paths, shown_name::shown_name};
use crate::escaping_writer::on_one_line;
use std::{
    collections::BTreeSet,
    io::Read,
    path::{Path, PathBuf},
};
use toolstead_domain::{
    InstructionFile,
    invisible_characters::{is_removable, removal_note},
    permission::decision::in_shell,
    workspace_roots::lexical,
};
use toolstead_infrastructure::sandbox::workspace::{
    facts::FileKind, file_handle::FileHandle, granted_workspace::GrantedWorkspace, path_error::PathError,
};

/// Maximum size of one file in bytes.
const MOST_BYTES: usize = 32 << 10;
/// Maximum size of all instructions of a conversation in bytes.
pub(super) const MOST_BYTES_OF_ALL: usize = 64 << 10;
/// Maximum number of notes.
const MOST_NOTES: usize = 100;
/// Maximum depth of included files.
const MOST_DEPTH: usize = 4;

/// Finds the instruction files of some roots that agents may read.
pub(super) struct InstructionFileFinder<'a> {
    /// The roots, with the permissions of a tool that reads.
    pub(super) granted: GrantedWorkspace,
    /// Returns `true` if the file at a real path is in a trusted folder.
    pub(super) is_trusted: &'a dyn Fn(&Path) -> bool,
    /// Returns the path as it is shown.
    pub(super) shown: &'a dyn Fn(&Path) -> String,
    /// Home folder, for paths that begin with `~/`.
    pub(super) home: Option<&'a Path>,
}

/// Reader of instruction files, with the sections that were read so far and their total size.
#[derive(Debug, Default)]
pub(super) struct InstructionReader {
    /// Files read so far, one section each.
    pub(super) sections: Vec<InstructionFile>,
    /// Files that were not read, or only in part.
    pub(super) notes: Vec<String>,
    /// Real paths of the files read so far.
    pub(super) read: BTreeSet<PathBuf>,
    /// Total size of all instructions in bytes, including earlier ones.
    pub(super) bytes: usize,
}

impl InstructionFileFinder<'_> {
    /// Finds a file without reading it; `None` if there is none.
    ///
    /// # Errors
    /// The reason why the file may not be read.
    pub(super) fn find(&self, path: &Path) -> Result<Option<FileHandle>, String> {
        match self.granted.find_lexical(path) {
            Ok(found) if found.path().real != path => Err("it is a symbolic link or below one".into()),
            Ok(found) if found.facts().kind == FileKind::Folder => Ok(None),
            Ok(found) => Ok(Some(found)),
            Err(PathError::NotFound { .. }) => Ok(None),
            Err(PathError::Refused(_)) => Err("the rules do not permit reading it".into()),
            Err(PathError::Outside { .. } | PathError::NoRoot) => Err("it is outside of the roots".into()),
            Err(error) => Err(on_one_line(&error.to_string())),
        }
    }

    /// Finds the instruction file of a folder: the first of these names that exists and may be read. Also returns the
    /// reasons why those before it may not be read.
    pub(super) fn find_in(&self, folder: &Path, names: &[&str]) -> (Option<FileHandle>, Vec<(PathBuf, String)>) {
        let mut refused = Vec::new();
        for name in names {
            let path = folder.join(name);
            match self.find(&path) {
                Ok(Some(found)) => return (Some(found), refused),
                Ok(None) => {}
                Err(reason) => refused.push((path, reason)),
            }
        }
        (None, refused)
    }
}

/// Returns the command that trusts the instruction files of a folder.
pub(super) fn trusting(folder: &Path) -> String {
    format!("toolstead config trust {}", shown_name(&in_shell(&folder.to_string_lossy())))
}

impl InstructionReader {
    /// Reads the instruction file of a folder with the files that it includes, unless it was read before or `is_known`
    /// returns `true` for its shown path. Files that are untrusted or may not be read are noted.
    pub(super) fn read_folder(
        &mut self,
        source: &InstructionFileFinder<'_>,
        folder: &Path,
        names: &[&str],
        is_known: impl Fn(&str) -> bool,
    ) {
        let (found, refused) = source.find_in(folder, names);
        for (path, reason) in refused {
            self.not_read(&(source.shown)(&path), &reason);
        }
        let Some(found) = found else { return };
        let shown = (source.shown)(&found.path().real);
        if is_known(&shown) {
            return;
        }
        if !(source.is_trusted)(&found.path().real) {
            return self
                .not_read(&shown, &format!("its folder is not trusted; to trust it, run `{}`", trusting(folder)));
        }
        self.read_file(source, &found, &mut Vec::new());
    }

    fn note(&mut self, note: String) {
        if self.notes.len() < MOST_NOTES {
            self.notes.push(note);
        }
    }

    fn not_read(&mut self, shown: &str, reason: &str) {
        self.note(format!("`{shown}` is not read: {reason}"));
    }

    /// Reads a file and those that it includes. `chain` contains the files that include it.
    fn read_file(&mut self, source: &InstructionFileFinder<'_>, found: &FileHandle, chain: &mut Vec<PathBuf>) {
        let real = &found.path().real;
        if !self.read.insert(real.clone()) {
            return;
        }
        let shown = (source.shown)(real);
        let left = MOST_BYTES_OF_ALL.saturating_sub(self.bytes);
        if left == 0 {
            let reason = format!("all instructions together have at most {} KiB", MOST_BYTES_OF_ALL >> 10);
            return self.not_read(&shown, &reason);
        }
        let FileText { text, notes } = match read_text(found, left) {
            Ok(text) => text,
            Err(reason) => return self.not_read(&shown, &reason),
        };
        notes.into_iter().for_each(|note| self.note(format!("`{shown}`: {note}")));
        let included = included_paths(&text);
        let section = InstructionFile { file: shown.clone(), text };
        self.bytes += section.to_text().len();
        self.sections.push(section);
        chain.push(real.clone());
        for path in included {
            if let Err(reason) = self.include(source, &path, chain) {
                self.note(format!("`{shown}` does not include `{}`: {reason}", shown_name(&path)));
            }
        }
        chain.pop();
    }

    fn include(
        &mut self,
        source: &InstructionFileFinder<'_>,
        named: &str,
        chain: &mut Vec<PathBuf>,
    ) -> Result<(), String> {
        let folder = chain.last().and_then(|file| file.parent()).unwrap_or(Path::new("/"));
        let path = match (named.strip_prefix("~/"), source.home) {
            (Some(rest), Some(home)) => lexical(home, Path::new(rest)),
            _ => lexical(folder, Path::new(named)),
        };
        if chain.contains(&path) {
            return Err("it includes itself that way".into());
        }
        if self.read.contains(&path) {
            return Ok(());
        }
        if source.granted.root_of(&path).is_none() {
            return Err("it is outside of the roots".into());
        }
        if chain.len() > MOST_DEPTH {
            return Err(format!("files are included at most {MOST_DEPTH} levels deep"));
        }
        match source.find(&path)? {
            Some(found) if (source.is_trusted)(&found.path().real) => self.read_file(source, &found, chain),
            Some(_) => return Err("its folder is not trusted".into()),
            // A word such as `@scope/package` need not be meant as a path.
            None if path.extension().is_none() => {}
            None => return Err("there is no such file".into()),
        }
        Ok(())
    }
}

/// Text of a file.
struct FileText {
    text: String,
    /// Notes on changes to the text.
    notes: Vec<String>,
}

/// Reads at most `left` bytes and [`MOST_BYTES`] of a file. Removes invisible characters, and marks the end of a
/// truncated text.
///
/// # Errors
/// The reason why the file cannot be read.
fn read_text(found: &FileHandle, left: usize) -> Result<FileText, String> {
    let limit = MOST_BYTES.min(left);
    let mut bytes = Vec::new();
    let file = found.open_file().map_err(|error| on_one_line(&error.to_string()))?;
    file.take(limit as u64 + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    let is_cut = bytes.len() > limit;
    bytes.truncate(limit);
    let text = match std::str::from_utf8(&bytes) {
        Ok(text) => text,
        // The limit may be within a character.
        Err(error) if is_cut && error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return Err("it is not UTF-8".into()),
    };
    let (text, mut notes) = (text.replace("\r\n", "\n"), Vec::new());
    let mut visible: String = text.chars().filter(|c| !is_removable(*c)).collect();
    notes.extend(removal_note(text.chars().count() - visible.chars().count()));
    if is_cut {
        let reason = if limit == MOST_BYTES { "one file has" } else { "all instructions together have" };
        let most = if limit == MOST_BYTES { MOST_BYTES } else { MOST_BYTES_OF_ALL };
        let note = format!("only the first {limit} bytes are read: {reason} at most {} KiB", most >> 10);
        visible.push_str(&format!("\n[{note}]"));
        notes.push(note);
    }
    Ok(FileText { text: visible, notes })
}
