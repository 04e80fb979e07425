//! The trust list: files of projects that the user trusted, by path and content; programs of servers; and folders whose
//! instruction files agents may read.

pub(crate) mod instruction_folders;
pub mod programs;

use crate::config::{
    Config, ConfigFile,
    layers::folders::{self, ExistingFileTreatment, StandardFolders, write_private},
    tree::{
        origin::Origin,
        ownership::{WRITABLE_BY_OTHERS, user},
        problem::Problem,
        source_file::read_bounded,
    },
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, Read},
    os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

/// Version of the list's format. Version 1 trusted a content at any path that a symbolic link led to.
const VERSION: u32 = 2;

/// Trust of the user. `files` maps a resolved folder with the file name to the SHA-256 of the file in lower-case hex. A
/// changed file is no longer trusted, and neither is the same content at another path.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TrustList {
    #[serde(default)]
    version: u32,
    files: BTreeMap<PathBuf, String>,
    /// Files that contained a hook with `gate = true` when the user trusted them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    gates: BTreeSet<PathBuf>,
    /// Digests of files that servers run from locations that tools can write to; `None`: the file did not exist when it
    /// was recorded.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    programs: BTreeMap<PathBuf, Option<String>>,
    /// Folders that MCP clients named as their roots and the user trusted, with symbolic links resolved.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    roots: BTreeSet<PathBuf>,
    /// Folders whose instruction files agents read, with symbolic links resolved.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    instructions: BTreeSet<PathBuf>,
}

impl Config {
    /// Trusts a file with the content that this configuration read, or revokes the trust.
    ///
    /// # Errors
    /// A [`Problem`] if the list of trusted files cannot be written.
    pub fn set_trust(&self, file: &ConfigFile, trusted: bool) -> Result<(), Problem> {
        match trusted {
            true => set_with_gates(&self.folders, &file.path, &file.text, self.hooks.hold_gate(&file.path)),
            false => set(&self.folders, &file.path, None),
        }
    }

    /// Revokes the trust in the file, or in the root of an MCP client, at this path. A file need not exist anymore.
    /// Returns `true` if it was trusted.
    ///
    /// # Errors
    /// A [`Problem`] if the list of trusted files cannot be written.
    pub fn forget_trust(&self, path: &Path) -> Result<bool, Problem> {
        if let Ok(root) = path.canonicalize()
            && TrustList::load(&self.folders).0.is_root(&root)
        {
            return set_root(&self.folders, &root, false).map(|()| true);
        }
        // The path may by now be a symbolic link to another file, so only its folder is resolved.
        let folder = path.parent().map(folders::real).unwrap_or_default();
        let path = folder.join(path.file_name().unwrap_or_default());
        let trusted = TrustList::load(&self.folders).0;
        if !trusted.knows(&path) && !trusted.held_gate(&path) {
            return Ok(false);
        }
        set(&self.folders, &path, None).map(|()| true)
    }
}

impl TrustList {
    /// Loads the trust list, which is empty if it does not exist. If it is unreadable or could have been changed by
    /// another user, nothing is trusted, and a problem is returned; its gates stay in force if it can be read.
    pub(super) fn load(folders: &StandardFolders) -> (Self, Option<Problem>) {
        let Some(data) = &folders.data else { return (Self::default(), None) };
        let path = list(data);
        let read = read_bounded(&path).and_then(|bytes| serde_json::from_slice(&bytes).map_err(io::Error::other));
        let trusted: Self = match read {
            Ok(trusted) => trusted,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return (Self::default(), None),
            Err(error) => {
                let message = format!("cannot be read, so no project file is trusted: {error}");
                return (Self::default(), Some(Problem::new(Origin::file(path), message)));
            }
        };
        let doubt = match path.symlink_metadata() {
            _ if trusted.version < VERSION => Some("it was written when places did not count".to_owned()),
            Ok(facts) if facts.is_symlink() => Some("it is a link".to_owned()),
            Ok(facts) if facts.uid() != user() => Some(format!("it belongs to the user {}", facts.uid())),
            Ok(facts) if facts.permissions().mode() & WRITABLE_BY_OTHERS != 0 => {
                Some("others could write to it".to_owned())
            }
            Ok(_) => None,
            Err(error) => Some(error.to_string()),
        };
        let Some(doubt) = doubt else { return (trusted, None) };
        let named: Vec<String> = trusted.files.keys().map(|file| file.display().to_string()).collect();
        let again = match named.as_slice() {
            [] => String::new(),
            named => format!("; `toolstead config trust FILE` trusts one again of: {}", named.join(", ")),
        };
        let message = format!("no project file is trusted by it, because {doubt}{again}");
        // Gates stay required in any case of doubt.
        let gates = Self { gates: trusted.gates, ..Self::default() };
        (gates, Some(Problem::new(Origin::file(path), message)))
    }

    /// Returns `true` if the user trusted this content at this path.
    pub(super) fn trusts(&self, path: &Path, text: &str) -> bool {
        self.files.get(path).is_some_and(|digest| *digest == digest_of(text))
    }

    /// Returns `true` if the user trusted any content at this path.
    pub(super) fn knows(&self, path: &Path) -> bool {
        self.files.contains_key(path)
    }

    /// Returns `true` if the user trusted this folder, which an MCP client named as its root.
    pub(super) fn is_root(&self, folder: &Path) -> bool {
        self.roots.contains(folder)
    }

    /// Returns the folders whose instruction files agents read, together with those of all folders below.
    pub(super) fn instruction_folders(&self) -> &BTreeSet<PathBuf> {
        &self.instructions
    }

    /// Returns `true` if the content that the user trusted at this path contained a gate, even if the file no longer
    /// exists.
    pub(super) fn held_gate(&self, path: &Path) -> bool {
        self.gates.contains(path)
    }

    /// Returns the files that contained a gate when the user trusted them.
    pub(super) fn gates(&self) -> impl Iterator<Item = &Path> {
        self.gates.iter().map(PathBuf::as_path)
    }

    /// Returns the recorded digest of a program, or `Some(None)` if it did not exist; `None` if it is not recorded.
    pub(super) fn program(&self, path: &Path) -> Option<Option<&str>> {
        self.programs.get(path).map(Option::as_deref)
    }

    /// Returns `true` if a file did not exist when it was recorded. A command may have created it since then.
    pub(super) fn was_missing(&self, path: &Path) -> bool {
        self.program(path) == Some(None)
    }
}

/// Trusts this content of a file without changing the record of its gate; `None` revokes the trust and removes the
/// record.
///
/// # Errors
/// A [`Problem`] if the list cannot be written. The list is unchanged then.
pub(super) fn set(folders: &StandardFolders, path: &Path, text: Option<&str>) -> Result<(), Problem> {
    change(folders, |trusted| match text {
        Some(text) => trusted.trust(path, text),
        None => {
            trusted.files.remove(path);
            trusted.gates.remove(path);
        }
    })
}

/// Trusts these contents of files, or revokes the trust in a file with `None`. Records of gates stay unchanged.
///
/// # Errors
/// The errors of [`set`].
pub(super) fn set_all<'f>(
    folders: &StandardFolders,
    files: impl IntoIterator<Item = (&'f Path, Option<&'f str>)>,
) -> Result<(), Problem> {
    change(folders, |trusted| {
        for (path, text) in files {
            match text {
                Some(text) => trusted.trust(path, text),
                None => _ = trusted.files.remove(path),
            }
        }
    })
}

/// Trusts this content of a file, and adds or removes the record that the file contains a gate.
///
/// # Errors
/// The errors of [`set`].
pub(super) fn set_with_gates(
    folders: &StandardFolders,
    path: &Path,
    text: &str,
    holds_gate: bool,
) -> Result<(), Problem> {
    change(folders, |trusted| {
        trusted.trust(path, text);
        match holds_gate {
            true => trusted.gates.insert(path.to_path_buf()),
            false => trusted.gates.remove(path),
        };
    })
}

/// Adds or removes the record that a file that needs no trust contains a gate, so that the removal of a gate is
/// detected.
///
/// # Errors
/// The errors of [`set`].
pub(super) fn set_gate(folders: &StandardFolders, path: &Path, holds_gate: bool) -> Result<(), Problem> {
    change(folders, |trusted| {
        match holds_gate {
            true => trusted.gates.insert(path.to_path_buf()),
            false => trusted.gates.remove(path),
        };
    })
}

/// Trusts a folder that an MCP client named as its root, or revokes the trust.
///
/// # Errors
/// The errors of [`set`].
pub(super) fn set_root(folders: &StandardFolders, folder: &Path, trusted: bool) -> Result<(), Problem> {
    change(folders, |all| {
        match trusted {
            true => all.roots.insert(folder.to_path_buf()),
            false => all.roots.remove(folder),
        };
    })
}

/// Trusts the instruction files at and below a folder, or revokes the trust in all folders at and below it.
///
/// # Errors
/// The errors of [`set`].
pub(super) fn set_instructions(folders: &StandardFolders, folder: &Path, trusted: bool) -> Result<(), Problem> {
    change(folders, |all| {
        all.instructions.retain(|known| !known.starts_with(folder));
        if trusted {
            all.instructions.insert(folder.to_path_buf());
        }
    })
}

/// Records the digests of these programs; `None` for a program that does not exist.
///
/// # Errors
/// The errors of [`set`].
pub(super) fn set_programs(folders: &StandardFolders, programs: Vec<(PathBuf, Option<String>)>) -> Result<(), Problem> {
    change(folders, |trusted| trusted.programs.extend(programs))
}

/// Returns the SHA-256 of a program in lower-case hex; `None` if it does not exist.
///
/// # Errors
/// The reason why the program cannot be read.
pub(super) fn program_digest(path: &Path) -> io::Result<Option<String>> {
    let file = match fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path) {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let (mut digest, mut file, mut buffer) = (Sha256::new(), file, vec![0; 64 << 10]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(Some(hex(&digest.finalize()))),
            read => digest.update(&buffer[..read]),
        }
    }
}

impl TrustList {
    pub(super) fn trust(&mut self, path: &Path, text: &str) {
        self.files.insert(path.to_path_buf(), digest_of(text));
        self.programs.remove(path);
    }
}

/// Changes the trust list under a lock that other processes respect.
fn change(folders: &StandardFolders, change: impl FnOnce(&mut TrustList)) -> Result<(), Problem> {
    let data = folders.prepare_data()?;
    let failed =
        |error: io::Error| Problem::new(Origin::file(list(data)), format!("the trust cannot be saved: {error}"));
    let lock = fs::OpenOptions::new().write(true).create(true).truncate(false).open(data.join("trusted.lock"));
    let lock = lock.map_err(failed)?;
    lock.lock().map_err(failed)?;
    let (mut trusted, _) = TrustList::load(folders);
    trusted.version = VERSION;
    change(&mut trusted);
    let content = serde_json::to_vec_pretty(&trusted).map_err(|error| failed(error.into()))?;
    write_private(&list(data), &content, ExistingFileTreatment::Replaced).map_err(failed)
}

/// Returns the path of the trust list.
pub(super) fn list(data: &Path) -> PathBuf {
    data.join("trusted.json")
}

/// Returns the SHA-256 of a text, in lower-case hex.
pub(super) fn digest_of(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
