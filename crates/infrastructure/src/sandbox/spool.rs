//! A file without a name, for output that is too large for memory.

use std::{
    fs::{File, OpenOptions, remove_file},
    io,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::Path,
};
use uuid::Uuid;

/// Bytes on disk that are removed with the value, even if the program is killed. Only the newest `capacity` bytes are
/// stored: later bytes overwrite the oldest.
#[derive(Debug)]
pub struct DiskRingBuffer {
    file: File,
    capacity: u64,
}

impl DiskRingBuffer {
    /// Creates an empty spool in a folder, for at most this number of bytes. Blocks.
    ///
    /// # Errors
    /// The error of the system if no file can be created there.
    pub fn create(folder: &Path, capacity: u64) -> io::Result<Self> {
        let path = folder.join(format!(".spool-{}", Uuid::new_v4()));
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        remove_file(&path)?;
        Ok(Self { file, capacity })
    }

    /// Writes bytes at their offset in the whole output. Blocks.
    ///
    /// # Errors
    /// The error of the system, for example if the disk is full.
    pub fn write_at(&self, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            let (part, place) = self.piece(bytes.len(), offset);
            self.file.write_all_at(&bytes[..part], place)?;
            bytes = &bytes[part..];
            offset += part as u64;
        }
        Ok(())
    }

    /// Reads bytes at an offset in the whole output. All of them must have been written and not overwritten. Blocks.
    ///
    /// # Errors
    /// The error of the system.
    pub fn read_at(&self, mut bytes: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            let (part, place) = self.piece(bytes.len(), offset);
            let (now, later) = bytes.split_at_mut(part);
            self.file.read_exact_at(now, place)?;
            bytes = later;
            offset += part as u64;
        }
        Ok(())
    }

    /// Returns how many of the bytes are contiguous in the file from this offset on, and their position.
    fn piece(&self, length: usize, offset: u64) -> (usize, u64) {
        let place = offset % self.capacity;
        let together = usize::try_from(self.capacity - place).unwrap_or(usize::MAX);
        (length.min(together), place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_bytes_are_kept_and_the_file_has_no_name() {
        let folder = tempfile::tempdir().unwrap();
        let spool = DiskRingBuffer::create(folder.path(), 8).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        for (at, bytes) in [b"abcde", b"fghij", b"klmno"].into_iter().enumerate() {
            spool.write_at(bytes, at as u64 * 5).unwrap();
        }
        let mut last = [0; 8];
        spool.read_at(&mut last, 7).unwrap();
        assert_eq!(&last, b"hijklmno");
    }
}
