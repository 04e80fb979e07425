//! API key in a file of its own.

use rustix::{
    fs::OFlags,
    process::{geteuid, getuid},
};
use std::{
    fs::OpenOptions,
    io::{self, Read},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::Path,
};

/// Maximum size of a key file, in bytes.
const MAX_BYTES: u64 = 16 << 10;

/// Reason why a key file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum KeyFileError {
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    #[error("it is not a file")]
    NoFile,
    #[error("it belongs to another user; use a file of your own")]
    Foreign,
    #[error(
        "others may read or write it (mode {0:03o}); run `chmod 600`, and replace the key if others may have read it"
    )]
    Open(u32),
    #[error("it has more than {MAX_BYTES} bytes, so it is not a key")]
    TooLong,
    #[error("it is not text")]
    NoText,
}

/// Reads the file, to which only its owner may have access. The checked file is the one that is read. Blocks.
pub(super) fn read(path: &Path) -> Result<String, KeyFileError> {
    // With `NONBLOCK`, opening a pipe does not wait.
    let flags = OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    let mut file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(KeyFileError::NoFile);
    }
    let owners = [0, getuid().as_raw(), geteuid().as_raw()];
    if !owners.contains(&metadata.uid()) {
        return Err(KeyFileError::Foreign);
    }
    if metadata.mode() & 0o077 != 0 {
        return Err(KeyFileError::Open(metadata.mode() & 0o777));
    }
    let mut bytes = Vec::new();
    Read::by_ref(&mut file).take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(KeyFileError::TooLong);
    }
    String::from_utf8(bytes).map_err(|_| KeyFileError::NoText)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        fs::{self, Permissions},
        os::unix::fs::PermissionsExt,
    };

    #[test]
    fn rejects_a_key_file_that_other_users_can_access() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        fs::write(&path, "sk-1\n").unwrap();
        for (mode, is_read) in
            [(0o600, true), (0o400, true), (0o640, false), (0o604, false), (0o620, false), (0o666, false)]
        {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let read = read(&path);
            assert_eq!(read.is_ok(), is_read, "{mode:o}: {read:?}");
            if let Err(error) = read {
                assert!(error.to_string().contains("chmod 600"), "{error}");
            }
        }
    }

    #[test]
    fn rejects_a_key_that_is_not_a_short_text_in_a_readable_file() {
        let folder = tempfile::tempdir().unwrap();
        let private = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            fs::write(&path, bytes).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
            path
        };
        assert!(matches!(read(&private("long", &[b'a'; 20 << 10])), Err(KeyFileError::TooLong)));
        assert!(matches!(read(&private("bytes", &[0xff, 0xfe])), Err(KeyFileError::NoText)));
        assert!(matches!(read(folder.path()), Err(KeyFileError::NoFile)));
        assert!(matches!(read(&folder.path().join("none")), Err(KeyFileError::Unreadable(_))));
    }
}
