//! File of the backlog, which receives records until it is full.
//!
//! A record that is written with a system call costs more than everything else that the audit log does for a call. A
//! segment is therefore a memory map where that is safe: the record is copied into the page cache, which survives a
//! kill of this process. Its file is reused, because the first access to each page of a new file costs as much as a
//! system call.

use memmap2::MmapMut;
use rustix::fs::{FallocateFlags, fallocate, fstatfs};
use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::PathBuf,
    sync::atomic::{Ordering, fence},
};

/// Length of a segment in bytes.
pub(super) const SEGMENT_BYTES: usize = 1 << 20;

/// `f_type` of ext2, ext3 and ext4, and of tmpfs (statfs(2)). There a write to an allocated block never needs another
/// one. Elsewhere a full disk could end the process with SIGBUS.
const MAPPED_FILE_SYSTEMS: [i64; 2] = [0xEF53, 0x0102_1994];

/// Open segment: records, each with a line end, followed by zeros or the end of the file.
#[derive(Debug)]
pub(super) struct Segment {
    path: PathBuf,
    storage: SegmentStorage,
    /// Length of the records in bytes.
    len: usize,
}

#[derive(Debug)]
enum SegmentStorage {
    Mapped(MmapMut),
    Written(File),
}

impl Segment {
    /// Creates a new file. Only its owner can read it.
    pub(super) fn create(path: PathBuf) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        let storage = mapped(&file).map_or(SegmentStorage::Written(file), SegmentStorage::Mapped);
        Ok(Self { path, storage, len: 0 })
    }

    /// Returns the length of the records in bytes.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns `true` if a record of this length fits.
    pub(super) fn has_space_for(&self, line: &[u8]) -> bool {
        self.len + line.len() <= SEGMENT_BYTES
    }

    /// Appends a record. After an error the segment is as before.
    pub(super) fn append(&mut self, line: &[u8]) -> io::Result<()> {
        let end = self.len + line.len();
        match &mut self.storage {
            SegmentStorage::Mapped(memory) => {
                let free = memory.get_mut(self.len..end).ok_or(io::ErrorKind::FileTooLarge)?;
                free.copy_from_slice(line);
            }
            SegmentStorage::Written(file) => file.write_all_at(line, self.len as u64)?,
        }
        self.len = end;
        Ok(())
    }

    /// Removes all records, the first byte first, so that a reader finds none or all of them. Then renames the file:
    /// readers that find the same name twice have read no later record.
    pub(super) fn clear(&mut self, path: PathBuf) -> io::Result<()> {
        match &mut self.storage {
            SegmentStorage::Mapped(memory) => {
                memory[..self.len.min(1)].fill(0);
                fence(Ordering::SeqCst);
                memory[..self.len].fill(0);
            }
            SegmentStorage::Written(file) => file.set_len(0)?,
        }
        self.len = 0;
        fs::rename(&self.path, &path)?;
        self.path = path;
        Ok(())
    }

    /// Creates a segment whose file accepts no records.
    #[cfg(test)]
    pub(super) fn unwritable(path: PathBuf) -> Self {
        fs::write(&path, "").unwrap();
        Self { storage: SegmentStorage::Written(File::open(&path).unwrap()), path, len: 0 }
    }

    /// Deletes the file. A remaining file is committed again later, without effect.
    pub(super) fn delete(self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Allocates the file and maps it. Returns `None` where a map is not safe or not possible.
#[expect(unsafe_code, reason = "a map of a file that another process truncates is undefined")]
fn mapped(file: &File) -> Option<MmapMut> {
    let file_system = fstatfs(file).ok()?.f_type;
    if !MAPPED_FILE_SYSTEMS.contains(&file_system) {
        return None;
    }
    let allocated = fallocate(file, FallocateFlags::empty(), 0, SEGMENT_BYTES as u64);
    // SAFETY: this process has created the file, and nothing truncates or writes it while its instance is locked.
    let memory = allocated.map_err(io::Error::from).and_then(|()| unsafe { MmapMut::map_mut(file) });
    if memory.is_err() {
        // A failed allocation on a full disk keeps its last blocks, which the database needs.
        let _ = file.set_len(0);
    }
    memory.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments() -> (tempfile::TempDir, [Segment; 2]) {
        let folder = tempfile::tempdir().unwrap();
        let mapped = Segment::create(folder.path().join("mapped")).unwrap();
        let path = folder.path().join("written");
        let storage = SegmentStorage::Written(File::create_new(&path).unwrap());
        (folder, [mapped, Segment { path, storage, len: 0 }])
    }

    /// Returns the text before the first zero.
    fn text(segment: &Segment) -> String {
        String::from_utf8(fs::read(&segment.path).unwrap()).unwrap().split('\0').next().unwrap().to_owned()
    }

    #[test]
    fn records_are_appended_and_clearing_a_segment_removes_them() {
        let (folder, segments) = segments();
        for mut segment in segments {
            segment.append(b"one\n").unwrap();
            segment.append(b"two\n").unwrap();
            assert_eq!((text(&segment).as_str(), segment.len()), ("one\ntwo\n", 8));
            let before = segment.path.clone();
            segment.clear(folder.path().join("next")).unwrap();
            assert!(!before.exists());
            assert_eq!((text(&segment).as_str(), segment.len()), ("", 0));
            segment.append(b"3\n").unwrap();
            assert_eq!(text(&segment), "3\n");
            segment.delete();
            assert!(!folder.path().join("next").exists());
        }
    }

    #[test]
    fn a_full_segment_has_no_space() {
        for mut segment in segments().1 {
            let record = vec![b'x'; SEGMENT_BYTES - 1];
            assert!(segment.has_space_for(&record));
            segment.append(&record).unwrap();
            assert!(segment.has_space_for(b"\n") && !segment.has_space_for(b"x\n"));
        }
    }
}
