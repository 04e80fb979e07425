//! Searches and reads configuration files.

use crate::config::{
    layers::{LayerKind, folders::StandardFolders},
    tree::{format::ConfigFormat, origin::Origin, ownership::check_owned, problem::Problem},
};
use std::{
    fs,
    io::{self, Read},
    os::{fd::AsRawFd, unix::fs::OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

/// Name of a project's file, without its extension.
const STEM: &str = "toolstead";
/// Name of the user's own file in a project, without its extension.
pub(in crate::config) const LOCAL_STEM: &str = "toolstead.local";
/// Folders of a project in which other clients store their settings.
const CLIENT_FOLDERS: [&str; 6] = [".claude", ".codex", ".cursor", ".gemini", ".vscode", ".zed"];
/// Maximum size of a configuration file in bytes.
pub(in crate::config) const MAX_BYTES: u64 = 1 << 20;

/// A configuration file with its content.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::config) struct SourceFile {
    pub(in crate::config) kind: LayerKind,
    /// Absolute path. For a file of a project, the path within the project; for any other file, the path with symbolic
    /// links resolved.
    pub(in crate::config) path: Arc<Path>,
    pub(in crate::config) text: String,
    /// Target that was read instead, if the path is a symbolic link in a project or is behind one. Such a file cannot
    /// be trusted.
    pub(in crate::config) leads_to: Option<PathBuf>,
}

impl SourceFile {
    /// Reads a file; `None` if it does not exist. Files of the user or the administrator may be symbolic links, if no
    /// other user can change the target.
    pub(in crate::config) fn read(kind: LayerKind, path: &Path) -> Result<Option<Self>, Problem> {
        let wrong = |reason: String| Problem::new(Origin::file(path), reason);
        let (bytes, real) = match read_with_place(path) {
            Ok(read) => read,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(None);
            }
            Err(error) => return Err(wrong(format!("cannot be read: {error}"))),
        };
        let text = String::from_utf8(bytes).map_err(|_| wrong("is not UTF-8".into()))?;
        if kind.is_of_project() {
            let leads_to = (real != path).then_some(real);
            return Ok(Some(Self { kind, path: path.into(), text, leads_to }));
        }
        if real != path && matches!(kind, LayerKind::Administrator | LayerKind::User) {
            check_owned(path, &real).map_err(|reason| wrong(format!("is a link that is not followed: {reason}")))?;
        }
        Ok(Some(Self { kind, path: real.into(), text, leads_to: None }))
    }

    /// Reads the only file of the folder with the name `stem` and the extension `.toml`, `.json`, `.yaml` or `.yml`;
    /// `None` if there is none. Two such files are an error.
    fn in_folder(kind: LayerKind, folder: &Path, stem: &str) -> Result<Option<Self>, Problem> {
        let mut found: Option<Self> = None;
        for (ending, _) in ConfigFormat::ENDINGS {
            let path = folder.join(format!("{stem}.{ending}"));
            let Some(file) = Self::read(kind, &path)? else { continue };
            if let Some(first) = &found {
                let reason = format!("{} is there, too: keep one of them", first.path.display());
                return Err(Problem::new(Origin::file(file.path), reason));
            }
            found = Some(file);
        }
        Ok(found)
    }
}

/// Reads a regular file of at most [`MAX_BYTES`]. Pipes and devices are rejected without blocking.
pub(in crate::config) fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    read_with_place(path).map(|(bytes, _)| bytes)
}

/// Reads a file like [`read_bounded`], and also returns the resolved path of the file that was read. It differs from
/// `path` if that contains a symbolic link.
pub(in crate::config) fn read_with_place(path: &Path) -> io::Result<(Vec<u8>, PathBuf)> {
    read_up_to(path, MAX_BYTES)
}

/// Reads a file like [`read_with_place`], with this maximum size in bytes.
pub(in crate::config) fn read_up_to(path: &Path, max_bytes: u64) -> io::Result<(Vec<u8>, PathBuf)> {
    let file = fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let too_large = || io::Error::other(format!("it is larger than {max_bytes} bytes"));
    if metadata.len() > max_bytes {
        return Err(too_large());
    }
    // Read from the open descriptor, because resolving the path again could lead to a different file.
    let place = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    let mut bytes = Vec::new();
    file.take(max_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes { Err(too_large()) } else { Ok((bytes, place)) }
}

/// Returns the folder of the project that a file belongs to: the file's own folder, or its parent if clients store
/// their settings in that folder.
pub(in crate::config) fn project_of(file: &Path) -> &Path {
    let folder = file.parent().unwrap_or(Path::new("/"));
    let is_clients = folder.file_name().is_some_and(|name| CLIENT_FOLDERS.iter().any(|one| name == *one));
    if is_clients { folder.parent().unwrap_or(folder) } else { folder }
}

/// Returns the existing files of administrator, user and project, and the errors. An unreadable user's file in the
/// project is only a note: commands can write it, and must not be able to prevent a start.
pub(in crate::config) fn discover(
    folders: &StandardFolders,
    notes: &mut Vec<Problem>,
) -> (Vec<SourceFile>, Vec<Problem>) {
    let mut files = Vec::new();
    let mut problems = Vec::new();
    let mut look = |kind, folder: &Path, stem| match SourceFile::in_folder(kind, folder, stem) {
        Ok(found) => {
            let there = found.is_some();
            files.extend(found);
            there
        }
        Err(problem) if kind == LayerKind::Local => {
            notes.push(left_out(problem));
            true
        }
        Err(problem) => {
            problems.push(problem);
            true
        }
    };
    look(LayerKind::Administrator, &folders.administrator, "config");
    if let Some(config) = &folders.config {
        look(LayerKind::User, config, "config");
    }
    // The nearest file applies.
    project_folders(folders).iter().any(|folder| look(LayerKind::Project, folder, STEM));
    project_folders(folders).iter().any(|folder| look(LayerKind::Local, folder, LOCAL_STEM));
    (files, problems)
}

/// Converts a problem of an untrusted user's file in the project to a note.
pub(in crate::config) fn left_out(problem: Problem) -> Problem {
    let Problem { origin, message } = problem;
    let note = format!("this file is ignored: {message}; correct or remove it");
    Problem::new(origin, note)
}

/// Returns `true` if this resolved path is one at which a configuration file of the project is looked for.
pub(in crate::config) fn is_looked_for(folders: &StandardFolders, path: &Path) -> bool {
    let is_named = path.file_stem().is_some_and(|stem| stem == STEM || stem == LOCAL_STEM);
    is_named && project_folders(folders).iter().any(|folder| path.parent() == Some(folder))
}

/// Returns the folders that may contain files of the project, the nearest first: from the start folder up to the root
/// of its version control, or else up to the home folder. Outside of both, only the start folder, so that a file of
/// another user in `/tmp` has no effect.
pub(in crate::config) fn project_folders(folders: &StandardFolders) -> Vec<PathBuf> {
    let upwards: Vec<&Path> = folders.start.ancestors().collect();
    let is_home = |folder: &&Path| folders.home.as_deref() == Some(*folder);
    let is_versioned =
        |folder: &&Path| [".git", ".hg", ".jj", ".svn"].iter().any(|name| folder.join(name).symlink_metadata().is_ok());
    let home = upwards.iter().position(is_home);
    let versioned = upwards.iter().position(is_versioned).filter(|at| home.is_none_or(|home| *at <= home));
    let last = versioned.or(home).unwrap_or(0);
    upwards[..=last].iter().map(|folder| folder.to_path_buf()).collect()
}
