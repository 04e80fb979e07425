//! Why a path could not be used, as a model has to hear it.

use crate::sandbox::workspace::facts::FileKind;
use std::{
    io,
    path::{Path, PathBuf},
};
use toolstead_domain::{
    access::Access, descriptor_limit::DescriptorLimit, error_kind::ErrorKind, tool_failure::ToolFailure,
};

/// A path that could not be used.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    /// The text is no path.
    #[error("`{text}` cannot be used as a path: {reason}")]
    Unusable {
        /// The beginning of the text.
        text: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// There is no root at all.
    #[error("the workspace has no root, so no path can be used")]
    NoRoot,
    /// The root was removed. A folder that bears its name now is another one, which nobody has made a root.
    #[error("the root `{}` was removed since Toolstead was started", root.display())]
    RootGone {
        /// The root.
        root: PathBuf,
    },
    /// It lies outside, or a link leads there.
    #[error("`{}` is outside of the workspace{}", path.display(), led(path, real))]
    Outside {
        /// The path as asked for.
        path: PathBuf,
        /// Where it leads.
        real: PathBuf,
    },
    /// No rule permits what only showed while the call ran.
    #[error("no rule lets this call {0}")]
    Refused(Box<Access>),
    /// Nothing is there.
    #[error("`{}` does not exist", path.display())]
    NotFound {
        /// The path as asked for.
        path: PathBuf,
        /// The deepest of its folders that exists, if it is not the nearest one.
        nearest_folder: Option<PathBuf>,
        /// Names in that folder that are like the missing one, best first.
        similar: Vec<String>,
    },
    /// A file was wanted, and something else is there.
    #[error("`{}` is {kind}, not a file", path.display())]
    NotAFile {
        /// The path as asked for.
        path: PathBuf,
        /// What it is.
        kind: FileKind,
    },
    /// A folder was wanted, and something else is there.
    #[error("`{}` is {kind}, not a folder", path.display())]
    NotAFolder {
        /// The path as asked for.
        path: PathBuf,
        /// What it is.
        kind: FileKind,
    },
    /// A file was to be removed, and its name is a link.
    #[error("`{}` is a symbolic link (it leads to `{}`), and only files are deleted", path.display(), real.display())]
    ThroughLink {
        /// The path as asked for.
        path: PathBuf,
        /// Where it leads.
        real: PathBuf,
    },
    /// More bytes than are taken.
    #[error("`{}` has {bytes} bytes, and at most {limit} are taken", path.display())]
    TooLarge {
        /// The path as asked for.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// Something is there already.
    #[error("`{}` exists already", path.display())]
    Exists {
        /// The path as asked for.
        path: PathBuf,
    },
    /// The folder for a new file is missing.
    #[error("the folder `{}` does not exist", folder.display())]
    FolderMissing {
        /// The folder.
        folder: PathBuf,
    },
    /// More folders are missing than are made for one file.
    #[error("{count} folders on the way to `{}` are missing, and at most {limit} are made at once", path.display())]
    TooManyFolders {
        /// The path as asked for.
        path: PathBuf,
        /// The missing ones.
        count: usize,
        /// The limit.
        limit: usize,
    },
    /// The file's own permissions forbid changing it.
    #[error("`{}` is write-protected", path.display())]
    WriteProtected {
        /// The path as asked for.
        path: PathBuf,
    },
    /// Somebody changed it in between. Nothing was written.
    #[error("`{}` was changed by somebody else in between, and was left alone", path.display())]
    Changed {
        /// The path as asked for.
        path: PathBuf,
    },
    /// Somebody replaced it in the very moment of the change, and what they put there could not be given its name back.
    #[error(
        "`{}` was replaced by somebody else in the very moment of the change, and what they put there could not be \
         given its name back ({source}): it lies beside it as `{leftover}`",
        path.display()
    )]
    Misplaced {
        /// The path as asked for.
        path: PathBuf,
        /// The name that their file bears now, in the same folder.
        leftover: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Another call holds the file until the time is over.
    #[error("another call is changing `{}`", path.display())]
    Busy {
        /// The path as asked for.
        path: PathBuf,
    },
    /// Too many files are being changed at once, until the time is over.
    #[error("too many files are being changed at once")]
    Crowded,
    /// The time was over, or nobody waits any more. Nothing was written.
    #[error("the time was over before `{}` was written, and it was left as it is", path.display())]
    OutOfTime {
        /// The path as asked for.
        path: PathBuf,
    },
    /// The operating system said no.
    #[error("could not {operation} `{}`: {source}", path.display())]
    Io {
        /// What was tried: "read".
        operation: &'static str,
        /// The path as asked for.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl PathError {
    /// A refusal by the system.
    pub fn io(operation: &'static str, path: &Path, source: impl Into<io::Error>) -> Self {
        Self::Io { operation, path: path.to_path_buf(), source: source.into() }
    }

    /// Nothing is there, and nothing more is known.
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

    fn next(&self) -> Option<String> {
        let next = match self {
            Self::NoRoot | Self::Outside { .. } => {
                "Only paths inside the workspace's roots can be used; `working_directory` names them."
            }
            Self::RootGone { .. } => {
                "Commands still run where a new folder bears its name; tell the user to restart Toolstead for the tools for \
                 files."
            }
            Self::NotFound { nearest_folder, similar, .. } => {
                return not_found_next(nearest_folder.as_deref(), similar);
            }
            Self::NotAFile { kind: FileKind::Folder, .. } => "Use `list_directory` to see what it holds.",
            Self::NotAFolder { kind: FileKind::File, .. } => "Use `read_file` to read it.",
            Self::ThroughLink { real, .. } => {
                return Some(format!("Give `{}` to delete the file itself; the link stays.", real.display()));
            }
            Self::FolderMissing { .. } => "Leave `create_dirs` at true to have it made.",
            Self::TooManyFolders { .. } => "Give a path with fewer folders; nothing was made.",
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
        let failure = match error.next() {
            Some(next) => failure.next(next),
            None => failure,
        };
        match error {
            PathError::Io { source, .. } => failure.of_descriptors(DescriptorLimit::of(&source)).caused_by(source),
            PathError::Misplaced { source, .. } => failure.caused_by(source),
            _ => failure,
        }
    }
}

fn led(path: &Path, real: &Path) -> String {
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
