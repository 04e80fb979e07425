//! Encrypted token storage: one file per principal, issuer and resource. The encryption key is in a separate file.
//!
//! The files in the data folder are useless without the key file. A file that is copied over another does not decrypt
//! there. The vault does not protect against the user, who owns both.

mod folder;
mod key_file;
mod sealed;
#[cfg(test)]
mod tests;
mod tokens;

pub(crate) use self::tokens::MCP_SERVER;
use self::{
    folder::{VaultFolder, VaultFolderError},
    key_file::SealingKey,
    sealed::{MAX_RECORD_BYTES, SealError, is_record, record_name},
};
pub use self::{
    key_file::KeyFileError,
    tokens::{TokenLookupKey, Tokens},
};
use std::{io, os::fd::OwnedFd, path::PathBuf, sync::Arc, time::Duration};
use tokio::{
    task::spawn_blocking,
    time::{Instant, sleep},
};
use toolstead_domain::Principal;

/// Maximum time to wait for the lock of the same tokens. Longer than a renewal takes.
const PATIENCE: Duration = Duration::from_secs(60);
/// First pause between two attempts to lock. Doubles up to `LONGEST_PAUSE`.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(64);

/// Tokens of all principals of this user. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Vault {
    places: Arc<VaultFileStore>,
}

#[derive(Debug)]
struct VaultFileStore {
    folder: PathBuf,
    key_file: PathBuf,
}

/// Token keys of one principal. The records are not decrypted yet, so one of them may be unreadable.
#[derive(Debug)]
pub struct VaultListing {
    /// Keys of the principal's tokens, sorted.
    pub keys: Vec<TokenLookupKey>,
    /// Records that cannot be read. Their principal is unknown.
    pub unreadable: Vec<VaultError>,
}

/// Reason why tokens cannot be read or stored. No error ever causes a deletion.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// The key file cannot be used.
    #[error("the key file `{}` cannot be used: {source}", path.display())]
    Key {
        /// Path of the key file.
        path: PathBuf,
        /// Reason why the file cannot be used.
        source: KeyFileError,
    },
    /// There are tokens, but the key file is missing.
    #[error(
        "the key file `{}` is missing: restore it, or sign in again to create a new one",
        .0.display()
    )]
    KeyLost(PathBuf),
    /// The tokens were encrypted with another key.
    #[error(
        "these tokens were encrypted with another key than the one in `{}`: restore that key, or sign in again",
        .0.display()
    )]
    OtherKey(PathBuf),
    /// The file is not a valid record, was changed, or belongs to another token key.
    #[error(
        "`{}` is damaged or was changed: delete it and sign in again",
        .0.display()
    )]
    Damaged(PathBuf),
    /// The tokens or their key exceed the maximum size of a record.
    #[error("the tokens are too large to store: {0}")]
    TooLarge(&'static str),
    /// Another process holds the lock of these tokens.
    #[error("another process has locked these tokens for over {} seconds: end it, or try again", PATIENCE.as_secs())]
    Busy,
    /// The folder or a file in it cannot be used.
    #[error("{0}")]
    Folder(#[from] VaultFolderError),
    /// Unexpected I/O error.
    #[error("{0}")]
    Io(#[source] io::Error),
}

impl Vault {
    /// Opens the vault in a folder with a key file. Both are created when tokens are first stored.
    ///
    /// # Errors
    /// Returns [`VaultError`] if the folder or key file exists but cannot be used.
    pub fn open(folder: PathBuf, key_file: PathBuf) -> Result<Self, VaultError> {
        let vault = Self { places: Arc::new(VaultFileStore { folder, key_file }) };
        VaultFolder::open(&vault.places.folder)?;
        vault.places.key()?;
        Ok(vault)
    }

    /// Returns the tokens stored under `key`.
    ///
    /// # Errors
    /// Returns [`VaultError`].
    pub async fn get(&self, key: &TokenLookupKey) -> Result<Option<Tokens>, VaultError> {
        let key = key.clone();
        self.on_files(move |places| places.read(&key)).await
    }

    /// Stores tokens under `key`. Replaces any stored tokens, even unreadable ones.
    ///
    /// # Errors
    /// Returns [`VaultError`]; the stored tokens are unchanged in this case.
    pub async fn put(&self, key: &TokenLookupKey, tokens: Tokens) -> Result<(), VaultError> {
        let lock = self.lock(key).await?;
        let key = key.clone();
        self.on_files(move |places| places.write(&lock, &key, &tokens)).await
    }

    /// Deletes the record under `key`, even an unreadable one. Returns `true` if there was one.
    ///
    /// # Errors
    /// Returns [`VaultError`].
    pub async fn remove(&self, key: &TokenLookupKey) -> Result<bool, VaultError> {
        if self.on_files(|places| Ok(VaultFolder::open(&places.folder)?.is_none())).await? {
            return Ok(false);
        }
        let lock = self.lock(key).await?;
        let key = key.clone();
        self.on_files(move |places| places.remove(&lock, &key)).await
    }

    /// Lists all token keys of a principal. Unreadable records do not hide others.
    ///
    /// # Errors
    /// Returns [`VaultError`] if the folder itself cannot be used.
    pub async fn list(&self, principal: &Principal) -> Result<VaultListing, VaultError> {
        let principal = principal.clone();
        self.on_files(move |places| places.list(&principal)).await
    }

    /// Calls `change` with the tokens under `key`, replaces them by the tokens it returns (`None` deletes them), and
    /// returns its other value. Meanwhile, the tokens are locked against changes by this and other processes. If
    /// `change` fails, nothing is changed.
    ///
    /// # Errors
    /// Returns the error of `change`, or [`VaultError`].
    pub async fn update<T, E, F>(
        &self,
        key: &TokenLookupKey,
        change: impl FnOnce(Option<Tokens>) -> F + Send,
    ) -> Result<T, E>
    where
        E: From<VaultError>,
        F: Future<Output = Result<(Option<Tokens>, T), E>> + Send,
    {
        let lock = self.lock(key).await?;
        let before = self.get(key).await?;
        let (after, result) = change(before.clone()).await?;
        if after != before {
            let key = key.clone();
            self.on_files(move |places| match after {
                Some(tokens) => places.write(&lock, &key, &tokens),
                None => places.remove(&lock, &key).map(drop),
            })
            .await?;
        }
        Ok(result)
    }

    /// Waits for the lock of the tokens. The system releases it when it is dropped or the process ends.
    async fn lock(&self, key: &TokenLookupKey) -> Result<OwnedFd, VaultError> {
        let name = format!("{}.lock", record_name(key));
        let end = Instant::now() + PATIENCE;
        let mut pause = FIRST_PAUSE;
        loop {
            let name = name.clone();
            let taken = self.on_files(move |places| Ok(VaultFolder::make(&places.folder)?.try_lock(&name)?)).await?;
            match taken {
                Some(lock) => return Ok(lock),
                None if Instant::now() >= end => return Err(VaultError::Busy),
                None => sleep(pause).await,
            }
            pause = (2 * pause).min(LONGEST_PAUSE);
        }
    }

    /// Runs file operations on a thread that may block. An operation that has begun completes even if the caller is
    /// cancelled.
    async fn on_files<T: Send + 'static>(
        &self,
        work: impl FnOnce(&VaultFileStore) -> Result<T, VaultError> + Send + 'static,
    ) -> Result<T, VaultError> {
        let places = self.places.clone();
        spawn_blocking(move || work(&places)).await.map_err(|error| VaultError::Io(io::Error::other(error)))?
    }
}

impl VaultFileStore {
    fn key(&self) -> Result<Option<SealingKey>, VaultError> {
        SealingKey::read(&self.key_file).map_err(|source| self.no_key(source))
    }

    fn no_key(&self, source: KeyFileError) -> VaultError {
        VaultError::Key { path: self.key_file.clone(), source }
    }

    fn read(&self, key: &TokenLookupKey) -> Result<Option<Tokens>, VaultError> {
        let name = record_name(key);
        let Some(folder) = VaultFolder::open(&self.folder)? else { return Ok(None) };
        let Some(record) = folder.read(&name, MAX_RECORD_BYTES)? else { return Ok(None) };
        let sealing = self.key()?.ok_or_else(|| VaultError::KeyLost(self.key_file.clone()))?;
        sealed::open(&record, key, &sealing).map(Some).map_err(|error| match error {
            SealError::OtherKey => VaultError::OtherKey(self.key_file.clone()),
            SealError::Damaged | SealError::Random => VaultError::Damaged(self.folder.join(&name)),
            SealError::TooLarge(reason) => VaultError::TooLarge(reason),
        })
    }

    fn write(&self, _lock: &OwnedFd, key: &TokenLookupKey, tokens: &Tokens) -> Result<(), VaultError> {
        let sealing = SealingKey::read_or_make(&self.key_file).map_err(|source| self.no_key(source))?;
        let record = sealed::seal(tokens, key, &sealing).map_err(|error| match error {
            SealError::TooLarge(reason) => VaultError::TooLarge(reason),
            SealError::OtherKey | SealError::Damaged | SealError::Random => {
                VaultError::Io(io::Error::other("the system returned no random bytes"))
            }
        })?;
        Ok(VaultFolder::make(&self.folder)?.replace(&record_name(key), &record)?)
    }

    fn remove(&self, _lock: &OwnedFd, key: &TokenLookupKey) -> Result<bool, VaultError> {
        match VaultFolder::open(&self.folder)? {
            Some(folder) => Ok(folder.remove(&record_name(key))?),
            None => Ok(false),
        }
    }

    fn list(&self, principal: &Principal) -> Result<VaultListing, VaultError> {
        let (mut keys, mut unreadable) = (Vec::new(), Vec::new());
        let Some(folder) = VaultFolder::open(&self.folder)? else { return Ok(VaultListing { keys, unreadable }) };
        let mut names = folder.names()?;
        names.retain(|name| is_record(name));
        names.sort();
        for name in names {
            let record = match folder.read(&name, MAX_RECORD_BYTES) {
                Ok(Some(record)) => record,
                // The file was removed meanwhile.
                Ok(None) => continue,
                Err(error) => {
                    unreadable.push(error.into());
                    continue;
                }
            };
            match sealed::key_of(&record, principal) {
                // A record under a wrong file name is ignored.
                Ok(key) => keys.extend(key.filter(|key| record_name(key) == name)),
                Err(_) => unreadable.push(VaultError::Damaged(self.folder.join(&name))),
            }
        }
        keys.sort();
        Ok(VaultListing { keys, unreadable })
    }
}
