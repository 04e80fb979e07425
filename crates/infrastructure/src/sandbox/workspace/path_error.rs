//! Reasons why a path could not be used, worded for a model.

use crate::sandbox::workspace::facts::FileKind;
use std::{
    io,
    path::{Path, PathBuf},
};
use toolstead_domain::{Access, FileDescriptorExhaustion, ToolFailure, error_kind::ErrorKind};

/// Reason why a path could not be used.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    /// The text is not a valid path.
    #[error("`{text}` cannot be used as a path: {reason}")]
    Unusable {
        /// Beginning of the text.
        text: String,
        /// Reason why it is invalid.
        reason: &'static str,
    },
    /// The workspace has no root.
    #[error("the workspace has no root, so no path can be used")]
    NoRoot,
    /// The root was removed. A folder that has its name now is a different one, and not a root.
    #[error("the root `{}` was removed since Toolstead was started", root.display())]
    RootGone {
        /// Path of the root.
        root: PathBuf,
    },
    /// The path is outside of the workspace, or a link leads there.
    #[error("`{}` is outside of the workspace{}", path.display(), real_path_note(path, real))]
    Outside {
        /// Path as requested.
        path: PathBuf,
        /// Real path.
        real: PathBuf,
    },
    /// No rule permits an access that became known only while the call ran.
    #[error("no rule lets this call {0}")]
    Refused(Box<Access>),
    /// There is no file at the path.
    #[error("`{}` does not exist", path.display())]
    NotFound {
        /// Path as requested.
        path: PathBuf,
        /// Deepest existing folder of the path, unless that is the direct parent.
        nearest_folder: Option<PathBuf>,
        /// Names in the deepest existing folder of the path that are similar to the missing one, best first.
        similar: Vec<String>,
    },
    /// A file was expected, and there is something else.
    #[error("`{}` is {kind}, not a file", path.display())]
    NotAFile {
        /// Path as requested.
        path: PathBuf,
        /// Type of what is at the path.
        kind: FileKind,
    },
    /// A folder was expected, and there is something else.
    #[error("`{}` is {kind}, not a folder", path.display())]
    NotAFolder {
        /// Path as requested.
        path: PathBuf,
        /// Type of what is at the path.
        kind: FileKind,
    },
    /// A file was to be removed, and the path is a link.
    #[error("`{}` is a symbolic link (it leads to `{}`), and only files are deleted", path.display(), real.display())]
    ThroughLink {
        /// Path as requested.
        path: PathBuf,
        /// Target of the link.
        real: PathBuf,
    },
    /// The file is larger than the limit.
    #[error("`{}` has {bytes} bytes, and at most {limit} are allowed", path.display())]
    TooLarge {
        /// Path as requested.
        path: PathBuf,
        /// Size in bytes.
        bytes: u64,
        /// Limit in bytes.
        limit: u64,
    },
    /// There is a file already.
    #[error("`{}` exists already", path.display())]
    Exists {
        /// Path as requested.
        path: PathBuf,
    },
    /// The folder for a new file is missing.
    #[error("the folder `{}` does not exist", folder.display())]
    FolderMissing {
        /// Path of the folder.
        folder: PathBuf,
    },
    /// More folders are missing than are created for one file.
    #[error("{count} folders on the way to `{}` are missing, and at most {limit} are created at once", path.display())]
    TooManyFolders {
        /// Path as requested.
        path: PathBuf,
        /// Number of missing folders.
        count: usize,
        /// Maximum number of folders.
        limit: usize,
    },
    /// The permissions of the file forbid changing it.
    #[error("`{}` is write-protected", path.display())]
    WriteProtected {
        /// Path as requested.
        path: PathBuf,
    },
    /// Another process changed the file meanwhile. Nothing was written.
    #[error("`{}` was changed by another process in the meantime, so this call did not change it", path.display())]
    Changed {
        /// Path as requested.
        path: PathBuf,
    },
    /// Another process replaced the file at the moment of the change, and its file could not be moved back.
    #[error(
        "`{}` was replaced by another process during the change, and the file of that process could not be moved \
         back ({source}): it is now `{leftover}` in the same folder",
        path.display()
    )]
    Misplaced {
        /// Path as requested.
        path: PathBuf,
        /// Current name of the other process's file, in the same folder.
        leftover: String,
        /// Error of the system.
        #[source]
        source: io::Error,
    },
    /// Another call held the file until the deadline.
    #[error("another call is changing `{}`", path.display())]
    Busy {
        /// Path as requested.
        path: PathBuf,
    },
    /// Too many files were being changed until the deadline.
    #[error("too many files are being changed at once")]
    Crowded,
    /// The deadline passed, or the caller no longer waits. Nothing was written.
    #[error("the time limit was reached before `{}` was written, so it is unchanged", path.display())]
    OutOfTime {
        /// Path as requested.
        path: PathBuf,
    },
    /// The operating system returned an error.
    #[error("could not {operation} `{}`: {source}", path.display())]
    Io {
        /// Operation that failed, such as "read".
        operation: &'static str,
        /// Path as requested.
        path: PathBuf,
        /// Error of the system.
        #[source]
        source: io::Error,
    },
}

impl PathError {
    /// Creates the error for an operation that the system refused.
    pub fn io(operation: &'static str, path: &Path, source: impl Into<io::Error>) -> Self {
        Self::Io { operation, path: path.to_path_buf(), source: source.into() }
    }

    /// Creates the error for a missing path, without suggestions.
    pub(super) fn not_found(path: &Path) -> Self {
        Self::NotFound { path: path.to_path_buf(), nearest_folder: None, similar: Vec::new() }
    }

    fn kind(&self) -> ErrorKind {
        match self {
            Self::Unusable { .. } | Self::Exists { .. } => ErrorKind::InvalidInput,
            Self::NoRoot | Self::Outside { .. } | Self::Refused(_) => ErrorKind::PermissionDenied,
            Self::RootGone { .. } | Self::NotFound { .. } | Self::FolderMissing { .. } => ErrorKind::NotFound,
            Self::NotAFile { .. } | Self::NotAFolder { .. } | Self::ThroughLink { .. } => ErrorKind::UnsupportedType,
            Self::TooLarge { .. } | Self::TooManyFolders { .. } => ErrorKind::TooLarge,
            Self::Changed { .. } => ErrorKind::StaleFile,
            Self::Busy { .. } | Self::Crowded | Self::OutOfTime { .. } => ErrorKind::Timeout,
            Self::WriteProtected { .. } | Self::Misplaced { .. } | Self::Io { .. } => ErrorKind::Io,
        }
    }

    fn suggestion(&self) -> Option<String> {
        let next = match self {
            Self::NoRoot | Self::Outside { .. } => {
                "Only paths inside the workspace's roots can be used; `working_directory` names them."
            }
            Self::RootGone { .. } => {
                "Commands still run in a new folder of that name; tell the user to restart Toolstead for the file \
                 tools."
            }
            Self::NotFound { nearest_folder, similar, .. } => {
                return not_found_next(nearest_folder.as_deref(), similar);
            }
            Self::NotAFile { kind: FileKind::Folder, .. } => "Use `list_directory` to see what it holds.",
            Self::NotAFolder { kind: FileKind::File, .. } => "Use `read_file` to read it.",
            Self::ThroughLink { real, .. } => {
                return Some(format!("Give `{}` to delete the file itself; the link stays.", real.display()));
            }
            Self::FolderMissing { .. } => "Leave `create_dirs` at true to create it.",
            Self::TooManyFolders { .. } => "Give a path with fewer folders; nothing was created.",
            Self::Exists { .. } => "Leave `if_exists` at \"overwrite\" to replace it, or use `edit_file` to change it.",
            Self::Changed { .. } => "Read it again, then repeat the change.",
            Self::Misplaced { .. } => "Look at both files, and tell the user.",
            Self::Busy { .. } | Self::Crowded => "Try again.",
            _ => return None,
        };
        Some(next.into())
    }
}

impl From<PathError> for ToolFailure {
    fn from(error: PathError) -> Self {
        let failure = Self::new(error.kind(), error.to_string());
        let failure = match error.suggestion() {
            Some(next) => failure.next(next),
            None => failure,
        };
        match error {
            PathError::Io { source, .. } => {
                failure.of_descriptors(FileDescriptorExhaustion::of(&source)).caused_by(source)
            }
            PathError::Misplaced { source, .. } => failure.caused_by(source),
            _ => failure,
        }
    }
}

fn real_path_note(path: &Path, real: &Path) -> String {
    if path == real { String::new() } else { format!(" (it leads to `{}`)", real.display()) }
}

fn not_found_next(nearest_folder: Option<&Path>, similar: &[String]) -> Option<String> {
    let names = similar.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    match (nearest_folder, similar.is_empty()) {
        (None, true) => Some("Use `glob` or `list_directory` to find it.".into()),
        (None, false) => Some(format!("In the same folder there is {names}.")),
        (Some(folder), true) => Some(format!("The path exists up to `{}`.", folder.display())),
        (Some(folder), false) => Some(format!("The path exists up to `{}`, which holds {names}.", folder.display())),
    }
}
