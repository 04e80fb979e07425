//! Contents as files in a folder beside the database. Each file is named by its SHA-256, so equal contents are stored
//! once.
//!
//! Any process may write a content at any time under a temporary name. A content receives its final name
//! ([`BlobFolder::adopt`]) and is removed ([`BlobFolder::remove`]) only under the database's write lock. The same transaction
//! records the reference to the content, so no process removes a content while another one starts to need it.
//!
//! Functions that access the disk are blocking.

use sha2::{Digest, Sha256};
use std::{
    fs::{DirBuilder, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};
use tokio::sync::Notify;
use toolstead_domain::ContentDigest;
use uuid::Uuid;

/// Name of the folder of temporary files, within the folder of contents.
const TEMPORARY: &str = "new";

/// Folder of stored contents: large outputs, and versions of changed files.
#[derive(Debug)]
pub(super) struct BlobFolder {
    folder: PathBuf,
    /// Id of this process in the names of its temporary files. Those of dead processes are deleted.
    instance: Uuid,
    /// `true` if names must survive a power failure.
    power_safe: bool,
    growth: BlobFolderGrowthNotifier,
}

/// Notifier of one waiting task, each time that more than `step` bytes have been added.
#[derive(Debug)]
struct BlobFolderGrowthNotifier {
    step: u64,
    added: AtomicU64,
    notify: Notify,
}

/// Content without its final name. Dropping the value deletes the temporary file.
#[derive(Debug)]
pub(super) struct BlobFileDraft {
    digest: ContentDigest,
    bytes: u64,
    /// `None` if the content existed already.
    temporary: Option<PathBuf>,
}

impl BlobFolder {
    /// Creates the store of contents in this folder, which need not exist yet. For `step`, see [`grown`](Self::grown).
    pub(super) fn new(folder: PathBuf, instance: Uuid, power_safe: bool, step: u64) -> Self {
        let growth = BlobFolderGrowthNotifier { step, added: AtomicU64::new(0), notify: Notify::new() };
        Self { folder, instance, power_safe, growth }
    }

    /// Waits until this process has added another `step` bytes.
    pub(super) async fn grown(&self) {
        self.growth.notify.notified().await;
    }

    /// Writes a content to the disk under a temporary name, unless it exists already.
    pub(super) fn prepare(&self, content: &[u8]) -> io::Result<BlobFileDraft> {
        let digest = ContentDigest(Sha256::digest(content).into());
        let bytes = content.len() as u64;
        if is_complete(&self.path(digest), bytes) {
            return Ok(BlobFileDraft { digest, bytes, temporary: None });
        }
        let temporary = self.folder.join(TEMPORARY);
        make_folder(&temporary)?;
        let temporary = temporary.join(format!("{}.{}", self.instance, Uuid::new_v4()));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        // From here on, dropping `prepared` deletes the file.
        let prepared = BlobFileDraft { digest, bytes, temporary: Some(temporary) };
        file.write_all(content)?;
        // A name that is on the disk before its content would refer to other data after a power failure.
        file.sync_all()?;
        Ok(prepared)
    }

    /// Gives the content its final name. Returns `false` without an effect if it existed when it was prepared and has
    /// been removed since. Call only under the write lock.
    pub(super) fn adopt(&self, content: &mut BlobFileDraft) -> io::Result<bool> {
        let path = self.path(content.digest);
        if is_complete(&path, content.bytes) {
            return Ok(true);
        }
        let Some(temporary) = &content.temporary else { return Ok(false) };
        let Some(folder) = path.parent() else { return Ok(false) };
        let is_first = !folder.exists();
        make_folder(folder)?;
        std::fs::rename(temporary, &path)?;
        content.temporary = None;
        let BlobFolderGrowthNotifier { step, added, notify } = &self.growth;
        if added.fetch_add(content.bytes, Ordering::Relaxed) + content.bytes > *step {
            added.store(0, Ordering::Relaxed);
            notify.notify_one();
        }
        if self.power_safe {
            // The entry of a new folder must be synced in its parent, which may be new as well.
            let named_in = if is_first { 3 } else { 1 };
            for folder in folder.ancestors().take(named_in) {
                File::open(folder)?.sync_all()?;
            }
        }
        Ok(true)
    }

    /// Opens a content; `None` if it does not exist.
    pub(super) fn open(&self, digest: ContentDigest) -> io::Result<Option<File>> {
        match File::open(self.path(digest)) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Removes a content. Open files remain readable. Call only under the write lock.
    pub(super) fn remove(&self, digest: ContentDigest) -> io::Result<()> {
        match std::fs::remove_file(self.path(digest)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Returns the existing contents whose digests start with this byte.
    pub(super) fn digests(&self, first: u8) -> Vec<ContentDigest> {
        let start = format!("{first:02x}");
        let files = names(&self.folder.join(&start));
        files.filter_map(|(rest, _)| format!("{start}{rest}").parse().ok()).collect()
    }

    /// Deletes the temporary files of dead processes.
    pub(super) fn remove_unfinished(&self, lives: impl Fn(Uuid) -> bool) {
        for (name, path) in names(&self.folder.join(TEMPORARY)) {
            let owner = name.split_once('.').and_then(|(owner, _)| owner.parse().ok());
            if owner.is_some_and(|owner| owner != self.instance && !lives(owner)) {
                // Another process may delete the same file.
                let _ = std::fs::remove_file(path);
            }
        }
    }

    fn path(&self, digest: ContentDigest) -> PathBuf {
        let name = digest.to_string();
        let (start, rest) = name.split_at(2);
        self.folder.join(start).join(rest)
    }
}

impl BlobFileDraft {
    /// Returns the digest of the content.
    pub(super) fn digest(&self) -> ContentDigest {
        self.digest
    }

    /// Returns the size of the content in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for BlobFileDraft {
    fn drop(&mut self) {
        if let Some(path) = &self.temporary {
            // A remaining file is deleted once this process is dead.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Returns `true` if the file has the full size. A full disk or a power failure may have truncated it.
fn is_complete(path: &Path, bytes: u64) -> bool {
    std::fs::metadata(path).is_ok_and(|facts| facts.is_file() && facts.len() == bytes)
}

fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Returns names and paths of the folder's entries; nothing if it does not exist.
fn names(folder: &Path) -> impl Iterator<Item = (String, PathBuf)> + use<> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{io::Read, os::unix::fs::PermissionsExt};

    fn read_blob(blobs: &BlobFolder, digest: ContentDigest) -> Option<Vec<u8>> {
        let mut content = Vec::new();
        blobs.open(digest).unwrap()?.read_to_end(&mut content).unwrap();
        Some(content)
    }

    #[test]
    fn a_blob_is_readable_only_after_adoption_and_only_by_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let blobs = BlobFolder::new(folder.path().join("blobs"), Uuid::from_u128(1), true, 1);
        let mut prepared = blobs.prepare(b"x").unwrap();
        let first = prepared.digest().0[0];
        assert_eq!((read_blob(&blobs, prepared.digest()), blobs.digests(first)), (None, vec![]));
        assert!(blobs.adopt(&mut prepared).unwrap());
        assert_eq!(read_blob(&blobs, prepared.digest()).unwrap(), b"x");
        assert_eq!(blobs.digests(first), [prepared.digest()]);
        assert_eq!(blobs.digests(first ^ 1), []);
        let path = blobs.path(prepared.digest());
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!([mode(&path), mode(path.parent().unwrap()), mode(&blobs.folder)], [0o600, 0o700, 0o700]);
        blobs.remove(prepared.digest()).unwrap();
        blobs.remove(prepared.digest()).unwrap();
        assert_eq!(read_blob(&blobs, prepared.digest()), None);
    }

    #[test]
    fn adoption_reports_a_blob_that_was_removed_after_its_preparation() {
        let folder = tempfile::tempdir().unwrap();
        let blobs = BlobFolder::new(folder.path().to_owned(), Uuid::from_u128(1), false, 1);
        assert!(blobs.adopt(&mut blobs.prepare(b"x").unwrap()).unwrap());
        let mut again = blobs.prepare(b"x").unwrap();
        assert!(again.temporary.is_none(), "a content is written once");
        blobs.remove(again.digest()).unwrap();
        assert!(!blobs.adopt(&mut again).unwrap());
        assert!(blobs.adopt(&mut blobs.prepare(b"x").unwrap()).unwrap());
        // A truncated file does not count.
        std::fs::write(blobs.path(again.digest()), "").unwrap();
        assert!(blobs.adopt(&mut blobs.prepare(b"x").unwrap()).unwrap());
        assert_eq!(read_blob(&blobs, again.digest()).unwrap(), b"x");
    }

    #[test]
    fn unadopted_blobs_are_removed_on_drop_or_at_the_next_start() {
        let folder = tempfile::tempdir().unwrap();
        let [one, two, three] =
            [1, 2, 3].map(|id| BlobFolder::new(folder.path().to_owned(), Uuid::from_u128(id), false, 1));
        let unfinished = || names(&folder.path().join(TEMPORARY)).count();
        drop(one.prepare(b"x").unwrap());
        assert_eq!(unfinished(), 0);
        // Killed processes do not run destructors.
        for blobs in [&one, &two, &three] {
            std::mem::forget(blobs.prepare(b"x").unwrap());
        }
        two.remove_unfinished(|id| id == Uuid::from_u128(3));
        assert_eq!(unfinished(), 2, "those of the living stay");
    }
}
