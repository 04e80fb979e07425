//! A file without a name, for output that is too large for memory.

use std::{
    fs::{File, OpenOptions, remove_file},
    io,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::Path,
};
use uuid::Uuid;

/// Bytes on disk that are gone with the value, also when the program is killed. The newest so many are kept: later bytes
/// take the place of the oldest.
#[derive(Debug)]
pub struct Spool {
    file: File,
    capacity: u64,
}

impl Spool {
    /// An empty one in a folder, for so many bytes. Blocks.
    ///
    /// # Errors
    /// The system's, when no file can be made there.
    pub fn create(folder: &Path, capacity: u64) -> io::Result<Self> {
        let path = folder.join(format!(".spool-{}", Uuid::new_v4()));
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        remove_file(&path)?;
        Ok(Self { file, capacity })
    }

    /// Puts bytes at their place in the whole. Blocks.
    ///
    /// # Errors
    /// The system's, as when the disk is full.
    pub fn write_at(&self, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            let (part, place) = self.piece(bytes.len(), offset);
            self.file.write_all_at(&bytes[..part], place)?;
            bytes = &bytes[part..];
            offset += part as u64;
        }
        Ok(())
    }

    /// Reads the bytes of a place in the whole, all of which must have been written and still be there. Blocks.
    ///
    /// # Errors
    /// The system's.
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

    /// How many of so many bytes lie together from an offset on, and where.
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
        let spool = Spool::create(folder.path(), 8).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        for (at, bytes) in [b"abcde", b"fghij", b"klmno"].into_iter().enumerate() {
            spool.write_at(bytes, at as u64 * 5).unwrap();
        }
        let mut last = [0; 8];
        spool.read_at(&mut last, 7).unwrap();
        assert_eq!(&last, b"hijklmno");
    }
}
