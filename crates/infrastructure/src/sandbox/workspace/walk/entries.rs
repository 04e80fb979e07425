//! Names in a folder and the paths of its entries, without an allocation for each.

use crate::sandbox::workspace::{facts::FileKind, resolve::real_path, stop::StopCondition};
use rustix::fs::RawDir;
use std::{
    ffi::{OsStr, OsString},
    io,
    mem::{MaybeUninit, take},
    ops::Range,
    os::{
        fd::OwnedFd,
        unix::ffi::{OsStrExt, OsStringExt},
    },
    path::{Path, PathBuf},
};
use toolstead_domain::AccessPath;

/// Size of the buffer for one read of a folder, in bytes.
const BUFFER_BYTES: usize = 32 << 10;

/// Initial capacity for the names of a folder, sufficient for most folders.
const USUAL_ENTRIES: usize = 32;
const USUAL_BYTES: usize = 512;

/// Buffer that the kernel writes names to.
pub(super) struct DirentBuffer(Vec<MaybeUninit<u8>>);

impl DirentBuffer {
    pub(super) fn new() -> Self {
        Self(vec![MaybeUninit::uninit(); BUFFER_BYTES])
    }
}

/// Names in a folder, stored contiguously.
#[derive(Debug)]
pub(super) struct FolderEntryNames {
    bytes: Vec<u8>,
    entries: Vec<FolderEntry>,
}

#[derive(Debug, Clone)]
struct FolderEntry {
    place: Range<usize>,
    /// Type of the entry. `None` if the file system does not report it.
    kind: Option<FileKind>,
}

impl FolderEntryNames {
    /// Reads the names of a folder. Reads at most one name more than `limit`, which shows that there are more. Ends
    /// early when the deadline passes.
    pub(super) fn read(
        folder: &OwnedFd,
        buffer: &mut DirentBuffer,
        limit: usize,
        is_sorted: bool,
        stop: &StopCondition,
    ) -> io::Result<Self> {
        let mut names = Self { bytes: Vec::with_capacity(USUAL_BYTES), entries: Vec::with_capacity(USUAL_ENTRIES) };
        let mut entries = RawDir::new(folder, &mut buffer.0);
        while names.entries.len() <= limit {
            // The buffer is exhausted every few hundred names.
            if entries.is_buffer_empty() && stop.is_due() {
                break;
            }
            let Some(entry) = entries.next() else { break };
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                let start = names.bytes.len();
                names.bytes.extend_from_slice(name);
                names
                    .entries
                    .push(FolderEntry { place: start..names.bytes.len(), kind: FileKind::of(entry.file_type()) });
            }
        }
        if is_sorted {
            let bytes = &names.bytes;
            names.entries.sort_unstable_by(|a, b| bytes[a.place.clone()].cmp(&bytes[b.place.clone()]));
        }
        Ok(names)
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn holds(&self, name: &[u8]) -> bool {
        self.entries.iter().any(|entry| &self.bytes[entry.place.clone()] == name)
    }

    pub(super) fn iter(&self, range: Range<usize>) -> impl Iterator<Item = (&OsStr, Option<FileKind>)> {
        let name = |entry: &FolderEntry| (OsStr::from_bytes(&self.bytes[entry.place.clone()]), entry.kind);
        self.entries[range].iter().map(name)
    }
}

/// Path of one entry after another, in the same memory.
pub(super) struct ChildPathBuffer {
    path: AccessPath,
    lexical_folder: usize,
    real_folder: usize,
}

impl ChildPathBuffer {
    pub(super) fn of(folder: &AccessPath) -> Self {
        let length = |path: &Path| path.as_os_str().len();
        Self {
            lexical_folder: length(&folder.lexical),
            real_folder: length(&folder.real),
            path: AccessPath { tree: false, ..folder.clone() },
        }
    }

    pub(super) fn set(&mut self, name: &OsStr) {
        set_last(&mut self.path.lexical, self.lexical_folder, name);
        set_last(&mut self.path.real, self.real_folder, name);
    }

    pub(super) fn get(&self) -> &AccessPath {
        &self.path
    }
}

/// Replaces everything after the first `folder` bytes of a path by a name.
fn set_last(path: &mut PathBuf, folder: usize, name: &OsStr) {
    let mut bytes = take(path).into_os_string().into_vec();
    bytes.truncate(folder);
    if bytes.last() != Some(&b'/') {
        bytes.push(b'/');
    }
    bytes.extend_from_slice(name.as_bytes());
    *path = OsString::from_vec(bytes).into();
}

/// Returns the offset, in bytes, at which the relative part begins in the paths of files below `folder`.
pub(super) fn start_of_rest(folder: &Path) -> usize {
    let folder = folder.as_os_str().as_bytes();
    if folder.ends_with(b"/") { folder.len() } else { folder.len() + 1 }
}

/// Returns `true` if the file of a handle is at this real path now.
pub(super) fn is_at(handle: &OwnedFd, real: &Path) -> io::Result<bool> {
    Ok(real_path(handle)?.as_os_str() == real.as_os_str())
}
