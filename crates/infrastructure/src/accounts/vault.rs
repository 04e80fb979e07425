//! Tokens, sealed on the disk: one file for each principal, issuer and resource, under a key that lies elsewhere.
//!
//! The files in the data folder are of no use without the key file, and one that is put in the place of another does
//! not open there. It is no wall against the user whose both are.

mod folder;
mod key_file;
mod sealed;
#[cfg(test)]
mod tests;
mod tokens;

use self::{
    folder::{Folder, FolderError},
    key_file::SealingKey,
    sealed::{MAX_RECORD_BYTES, SealError, is_record, record_name},
};
pub use self::{
    key_file::KeyFileError,
    tokens::{TokenKey, Tokens},
};
use std::{io, os::fd::OwnedFd, path::PathBuf, sync::Arc, time::Duration};
use tokio::{
    task::spawn_blocking,
    time::{Instant, sleep},
};
use toolstead_domain::principal::Principal;

/// The longest wait for another holder of the same tokens: longer than a renewal takes.
const PATIENCE: Duration = Duration::from_secs(60);
/// The pause before it is looked again, first and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(64);

/// The tokens of all principals of this user. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Vault {
    places: Arc<Places>,
}

#[derive(Debug)]
struct Places {
    folder: PathBuf,
    key_file: PathBuf,
}

/// The records of one principal, unopened: one of the keys may still lead to a record that does not open.
#[derive(Debug)]
pub struct Listed {
    /// The keys of the principal's tokens, sorted.
    pub keys: Vec<TokenKey>,
    /// The records that cannot be read, so that nobody can tell whose they are.
    pub unreadable: Vec<VaultError>,
}

/// The reason why tokens cannot be read or kept. Nothing is ever removed because of one.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// The key file is of no use.
    #[error("the key of the tokens, `{}`: {source}", path.display())]
    Key {
        /// The key file.
        path: PathBuf,
        /// The reason.
        source: KeyFileError,
    },
    /// There are tokens, and their key is gone.
    #[error(
        "the key of the tokens, `{}`, is gone: put it back, or sign in again, which makes another one",
        .0.display()
    )]
    KeyLost(PathBuf),
    /// They were sealed under another key.
    #[error(
        "these tokens were sealed under another key than the one in `{}`: put that one back, or sign in again",
        .0.display()
    )]
    OtherKey(PathBuf),
    /// The file is no record, was changed, or is that of somebody or something else.
    #[error(
        "`{}` is not what was put there: remove this file, and sign in again",
        .0.display()
    )]
    Damaged(PathBuf),
    /// More than tokens have.
    #[error("the tokens are too large to be kept: {0}")]
    TooLarge(&'static str),
    /// Somebody else holds these tokens.
    #[error("another process holds these tokens for more than {} seconds: end it, or try again", PATIENCE.as_secs())]
    Busy,
    /// The folder, or a file in it.
    #[error("{0}")]
    Folder(#[from] FolderError),
    /// Something that does not happen.
    #[error("{0}")]
    Io(#[source] io::Error),
}

impl Vault {
    /// A vault in a folder, which is made when something is put there, sealed under the key in a file, which is made
    /// then, too.
    ///
    /// # Errors
    /// [`VaultError`] where there is a folder or a key file that cannot be used.
    pub fn open(folder: PathBuf, key_file: PathBuf) -> Result<Self, VaultError> {
        let vault = Self { places: Arc::new(Places { folder, key_file }) };
        Folder::open(&vault.places.folder)?;
        vault.places.key()?;
        Ok(vault)
    }

    /// The tokens that lie under `key`.
    ///
    /// # Errors
    /// [`VaultError`].
    pub async fn get(&self, key: &TokenKey) -> Result<Option<Tokens>, VaultError> {
        let key = key.clone();
        self.on_files(move |places| places.read(&key)).await
    }

    /// Puts tokens in the place of those that lie there, whatever these are.
    ///
    /// # Errors
    /// [`VaultError`]; what was there is untouched.
    pub async fn put(&self, key: &TokenKey, tokens: Tokens) -> Result<(), VaultError> {
        let lock = self.lock(key).await?;
        let key = key.clone();
        self.on_files(move |places| places.write(&lock, &key, &tokens)).await
    }

    /// Removes what lies there, whatever it is. Says whether there was something.
    ///
    /// # Errors
    /// [`VaultError`].
    pub async fn remove(&self, key: &TokenKey) -> Result<bool, VaultError> {
        if self.on_files(|places| Ok(Folder::open(&places.folder)?.is_none())).await? {
            return Ok(false);
        }
        let lock = self.lock(key).await?;
        let key = key.clone();
        self.on_files(move |places| places.remove(&lock, &key)).await
    }

    /// Everything that a principal has tokens for. A record that cannot be read hides no other.
    ///
    /// # Errors
    /// [`VaultError`] where the folder itself is of no use.
    pub async fn list(&self, principal: &Principal) -> Result<Listed, VaultError> {
        let principal = principal.clone();
        self.on_files(move |places| places.list(&principal)).await
    }

    /// Has `change` say what is to lie there (`None`: nothing) of what lies there, with a result. Nobody else reads to
    /// change, or changes, these tokens meanwhile, in this process or another. What `change` fails with changes nothing.
    ///
    /// # Errors
    /// The failure of `change`, and [`VaultError`].
    pub async fn update<T, E, F>(&self, key: &TokenKey, change: impl FnOnce(Option<Tokens>) -> F + Send) -> Result<T, E>
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

    /// Waits for the lock of the tokens. The system frees it when it is dropped, and when the process ends.
    async fn lock(&self, key: &TokenKey) -> Result<OwnedFd, VaultError> {
        let name = format!("{}.lock", record_name(key));
        let end = Instant::now() + PATIENCE;
        let mut pause = FIRST_PAUSE;
        loop {
            let name = name.clone();
            let taken = self.on_files(move |places| Ok(Folder::make(&places.folder)?.try_lock(&name)?)).await?;
            match taken {
                Some(lock) => return Ok(lock),
                None if Instant::now() >= end => return Err(VaultError::Busy),
                None => sleep(pause).await,
            }
            pause = (2 * pause).min(LONGEST_PAUSE);
        }
    }

    /// Works on files where that holds up nobody. What was begun is done, though nobody waits for it any more.
    async fn on_files<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Places) -> Result<T, VaultError> + Send + 'static,
    ) -> Result<T, VaultError> {
        let places = self.places.clone();
        spawn_blocking(move || work(&places)).await.map_err(|error| VaultError::Io(io::Error::other(error)))?
    }
}

impl Places {
    fn key(&self) -> Result<Option<SealingKey>, VaultError> {
        SealingKey::read(&self.key_file).map_err(|source| self.no_key(source))
    }

    fn no_key(&self, source: KeyFileError) -> VaultError {
        VaultError::Key { path: self.key_file.clone(), source }
    }

    fn read(&self, key: &TokenKey) -> Result<Option<Tokens>, VaultError> {
        let name = record_name(key);
        let Some(folder) = Folder::open(&self.folder)? else { return Ok(None) };
        let Some(record) = folder.read(&name, MAX_RECORD_BYTES)? else { return Ok(None) };
        let sealing = self.key()?.ok_or_else(|| VaultError::KeyLost(self.key_file.clone()))?;
        sealed::open(&record, key, &sealing).map(Some).map_err(|error| match error {
            SealError::OtherKey => VaultError::OtherKey(self.key_file.clone()),
            SealError::Damaged | SealError::Random => VaultError::Damaged(self.folder.join(&name)),
            SealError::TooLarge(reason) => VaultError::TooLarge(reason),
        })
    }

    fn write(&self, _lock: &OwnedFd, key: &TokenKey, tokens: &Tokens) -> Result<(), VaultError> {
        let sealing = SealingKey::read_or_make(&self.key_file).map_err(|source| self.no_key(source))?;
        let record = sealed::seal(tokens, key, &sealing).map_err(|error| match error {
            SealError::TooLarge(reason) => VaultError::TooLarge(reason),
            SealError::OtherKey | SealError::Damaged | SealError::Random => {
                VaultError::Io(io::Error::other("the system gives no random bytes"))
            }
        })?;
        Ok(Folder::make(&self.folder)?.replace(&record_name(key), &record)?)
    }

    fn remove(&self, _lock: &OwnedFd, key: &TokenKey) -> Result<bool, VaultError> {
        match Folder::open(&self.folder)? {
            Some(folder) => Ok(folder.remove(&record_name(key))?),
            None => Ok(false),
        }
    }

    fn list(&self, principal: &Principal) -> Result<Listed, VaultError> {
        let (mut keys, mut unreadable) = (Vec::new(), Vec::new());
        let Some(folder) = Folder::open(&self.folder)? else { return Ok(Listed { keys, unreadable }) };
        let mut names = folder.names()?;
        names.retain(|name| is_record(name));
        names.sort();
        for name in names {
            let record = match folder.read(&name, MAX_RECORD_BYTES) {
                Ok(Some(record)) => record,
                // It went meanwhile.
                Ok(None) => continue,
                Err(error) => {
                    unreadable.push(error.into());
                    continue;
                }
            };
            match sealed::key_of(&record, principal) {
                // Under another name it is nobody's.
                Ok(key) => keys.extend(key.filter(|key| record_name(key) == name)),
                Err(_) => unreadable.push(VaultError::Damaged(self.folder.join(&name))),
            }
        }
        keys.sort();
        Ok(Listed { keys, unreadable })
    }
}
