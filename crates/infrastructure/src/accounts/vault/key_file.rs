//! Key that encrypts tokens, in a file of its own.

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
/// Length of the digest that identifies a key, in bytes.
const ID_BYTES: usize = 8;

/// Reason why a key file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// Other users have access to the file, or it cannot be read.
    #[error("{0}")]
    File(#[from] PrivateFileError),
    /// The file does not have the length of a key.
    #[error("it has {0} bytes instead of {KEY_BYTES}: restore the right file, or remove it")]
    Length(usize),
    /// The file cannot be created.
    #[error("it cannot be created: {0}")]
    Unmade(#[source] io::Error),
}

/// Key that encrypts and decrypts records.
pub(super) struct SealingKey {
    /// Key id. Reveals nothing about the key.
    pub(super) id: String,
    pub(super) key: LessSafeKey,
}

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SealingKey({})", self.id)
    }
}

impl SealingKey {
    /// Reads the file; `None` if it does not exist. Blocks.
    pub(super) fn read(path: &Path) -> Result<Option<Self>, KeyFileError> {
        let max = 4 * KEY_BYTES as u64;
        private_file::read(CWD, path, max)?.map(|bytes| Self::of(&bytes)).transpose()
    }

    /// Reads the file, or creates it. Concurrent callers all read the same key. Blocks.
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

/// Creates the file atomically, unless it exists.
fn make(path: &Path) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
    let folder = openat(CWD, parent, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let mut bytes = [0; KEY_BYTES + ID_BYTES];
    SystemRandom::new().fill(&mut bytes).map_err(|_| io::Error::other("the system returned no random bytes"))?;
    let (key, rest) = bytes.split_at(KEY_BYTES);
    let temporary = PathBuf::from(format!(".{}.{}", name.display(), hex(rest)));
    private_file::write(&folder, &temporary, key)?;
    let linked = linkat(&folder, &temporary, &folder, name, AtFlags::empty());
    // The file now has its final name, or could not be linked; the temporary name is not needed.
    let _ = unlinkat(&folder, &temporary, AtFlags::empty());
    match linked {
        Ok(()) | Err(Errno::EXIST) => Ok(fsync(&folder)?),
        Err(errno) => Err(errno.into()),
    }
}

/// Returns the bytes as hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
