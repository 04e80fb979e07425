//! Which files of projects a person has said yes to, by their content.

use crate::config::{
    folders::{Existing, Folders, write_private},
    origin::Origin,
    problem::Problem,
    source_file::read_bounded,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
};

/// The files that are trusted: path, links resolved, and SHA-256 in lower-case hex. A file that changed is a stranger
/// again.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TrustedFiles {
    files: BTreeMap<PathBuf, String>,
    /// Those that held a gate when a person said yes to them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    gates: BTreeSet<PathBuf>,
    /// Folders of clients that a person let tools into, links resolved.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    roots: BTreeSet<PathBuf>,
}

impl TrustedFiles {
    /// What is trusted. An unreadable list trusts nothing, and the problem says so.
    pub(super) fn load(folders: &Folders) -> (Self, Option<Problem>) {
        let Some(data) = &folders.data else { return (Self::default(), None) };
        let path = list(data);
        let read = read_bounded(&path).and_then(|bytes| serde_json::from_slice(&bytes).map_err(io::Error::other));
        match read {
            Ok(trusted) => (trusted, None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => (Self::default(), None),
            Err(error) => {
                let message = format!("cannot be read, so no project file is trusted: {error}");
                (Self::default(), Some(Problem::new(Origin::file(path), message)))
            }
        }
    }

    /// Whether a person said yes to this content at this path.
    pub(super) fn trusts(&self, path: &Path, text: &str) -> bool {
        self.files.get(path).is_some_and(|digest| *digest == digest_of(text))
    }

    /// Whether a person said yes to some content at this path.
    pub(super) fn knows(&self, path: &Path) -> bool {
        self.files.contains_key(path)
    }

    /// Whether a person let tools into this folder of a client.
    pub(super) fn is_root(&self, folder: &Path) -> bool {
        self.roots.contains(folder)
    }

    /// Whether the content that a person said yes to at this path, now there or not, held a gate.
    pub(super) fn held_gate(&self, path: &Path) -> bool {
        self.gates.contains(path)
    }

    /// The files that held a gate when a person said yes to them.
    pub(super) fn gates(&self) -> impl Iterator<Item = &Path> {
        self.gates.iter().map(PathBuf::as_path)
    }
}

/// Trusts this content of a file, whose gates are those of the content before, or no longer trusts the file.
///
/// # Errors
/// A [`Problem`] when the list cannot be written; then it is as it was.
pub(super) fn set(folders: &Folders, path: &Path, text: Option<&str>) -> Result<(), Problem> {
    change(folders, |trusted| match text {
        Some(text) => drop(trusted.files.insert(path.to_path_buf(), digest_of(text))),
        None => {
            trusted.files.remove(path);
            trusted.gates.remove(path);
        }
    })
}

/// Trusts this content of a file, with or without gates in it.
///
/// # Errors
/// As [`set`].
pub(super) fn set_with_gates(folders: &Folders, path: &Path, text: &str, holds_gate: bool) -> Result<(), Problem> {
    change(folders, |trusted| {
        trusted.files.insert(path.to_path_buf(), digest_of(text));
        match holds_gate {
            true => trusted.gates.insert(path.to_path_buf()),
            false => trusted.gates.remove(path),
        };
    })
}

/// Lets tools into a folder where a client works in it, or no longer.
///
/// # Errors
/// As [`set`].
pub(super) fn set_root(folders: &Folders, folder: &Path, trusted: bool) -> Result<(), Problem> {
    change(folders, |all| {
        match trusted {
            true => all.roots.insert(folder.to_path_buf()),
            false => all.roots.remove(folder),
        };
    })
}

/// Changes the list of trusted files, under a lock that holds across processes.
fn change(folders: &Folders, change: impl FnOnce(&mut TrustedFiles)) -> Result<(), Problem> {
    let data = folders.prepare_data()?;
    let failed =
        |error: io::Error| Problem::new(Origin::file(list(data)), format!("the trust cannot be kept: {error}"));
    let lock = fs::OpenOptions::new().write(true).create(true).truncate(false).open(data.join("trusted.lock"));
    let lock = lock.map_err(failed)?;
    lock.lock().map_err(failed)?;
    let (mut trusted, _) = TrustedFiles::load(folders);
    change(&mut trusted);
    let content = serde_json::to_vec_pretty(&trusted).map_err(|error| failed(error.into()))?;
    write_private(&list(data), &content, Existing::Replaced).map_err(failed)
}

fn list(data: &Path) -> PathBuf {
    data.join("trusted.json")
}

fn digest_of(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}
