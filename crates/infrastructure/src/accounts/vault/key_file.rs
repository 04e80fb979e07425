//! The key that tokens are sealed under, in a file of its own.

use crate::accounts::private_file::{self, PrivateFileError};
use ring::{
    aead::{AES_256_GCM, LessSafeKey, UnboundKey},
    digest::{Context, SHA256},
    rand::{SecureRandom, SystemRandom},
};
use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags, fsync, linkat, openat, unlinkat},
    io::Errno,
};
use std::{
    fmt::{self, Write},
    fs::DirBuilder,
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

const KEY_BYTES: usize = 32;
/// Bytes of the digest that tells one key from another.
const ID_BYTES: usize = 8;

/// The reason why a file gives no key.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// It is not its owner's alone, or cannot be read.
    #[error("{0}")]
    File(#[from] PrivateFileError),
    /// It has another length than a key.
    #[error("it has {0} bytes, and a key has {KEY_BYTES}: put the right file there, or take it away")]
    Length(usize),
    /// None can be made.
    #[error("it cannot be made: {0}")]
    Unmade(#[source] io::Error),
}

/// A key, by which records are sealed and opened.
pub(super) struct SealingKey {
    /// Tells it from other keys, and nothing of it.
    pub(super) id: String,
    pub(super) key: LessSafeKey,
}

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SealingKey({})", self.id)
    }
}

impl SealingKey {
    /// Reads the file; `None` where there is none. Blocks.
    pub(super) fn read(path: &Path) -> Result<Option<Self>, KeyFileError> {
        let max = 4 * KEY_BYTES as u64;
        private_file::read(CWD, path, max)?.map(|bytes| Self::of(&bytes)).transpose()
    }

    /// Reads the file, and makes it where there is none: of several who make it at once, all read the same. Blocks.
    pub(super) fn read_or_make(path: &Path) -> Result<Self, KeyFileError> {
        if let Some(key) = Self::read(path)? {
            return Ok(key);
        }
        make(path).map_err(KeyFileError::Unmade)?;
        Self::read(path)?.ok_or_else(|| KeyFileError::Unmade(io::ErrorKind::NotFound.into()))
    }

    fn of(bytes: &[u8]) -> Result<Self, KeyFileError> {
        let wrong = |_| KeyFileError::Length(bytes.len());
        let key = <&[u8; KEY_BYTES]>::try_from(bytes).map_err(|_| KeyFileError::Length(bytes.len()))?;
        let mut digest = Context::new(&SHA256);
        digest.update(b"toolstead: the id of a key of tokens\0");
        digest.update(key);
        let id = hex(&digest.finish().as_ref()[..ID_BYTES]);
        Ok(Self { id, key: LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key).map_err(wrong)?) })
    }
}

/// Makes the file, whole or not at all, unless there is one.
fn make(path: &Path) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
    let folder = openat(CWD, parent, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let mut bytes = [0; KEY_BYTES + ID_BYTES];
    SystemRandom::new().fill(&mut bytes).map_err(|_| io::Error::other("the system gives no random bytes"))?;
    let (key, rest) = bytes.split_at(KEY_BYTES);
    let temporary = PathBuf::from(format!(".{}.{}", name.display(), hex(rest)));
    private_file::write(&folder, &temporary, key)?;
    let linked = linkat(&folder, &temporary, &folder, name, AtFlags::empty());
    // It has its second name by now, or is of no use.
    let _ = unlinkat(&folder, &temporary, AtFlags::empty());
    match linked {
        Ok(()) | Err(Errno::EXIST) => Ok(fsync(&folder)?),
        Err(errno) => Err(errno.into()),
    }
}

/// The bytes as digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
