//! `[database]`: location of the stores and of the local files beside them.

use crate::config::{
    database_url::DatabaseUrl,
    folders::{self, Folders},
    layers::ResolvedSettings,
    problem::Problem,
    value::Value,
};
use std::path::{Path, PathBuf};
use toolstead_infrastructure::sqlite::DatabaseFiles;

/// `[database]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseSettings {
    /// Location of the stores.
    pub url: DatabaseUrl,
    /// Folder for data that is not shared with other machines: detached tasks, home folders of servers, and output in
    /// transit.
    pub local_folder: PathBuf,
}

impl DatabaseSettings {
    pub(super) fn of(resolved: &ResolvedSettings, folders: &Folders) -> Result<Self, Problem> {
        let url = match resolved.setting("database.url").and_then(|setting| setting.value) {
            Some(Value::Database(url)) => url,
            _ => DatabaseUrl::Sqlite(folders.data.as_ref().ok_or_else(folders::no_data)?.join("toolstead.db")),
        };
        let local_folder = match &url {
            // No tool can access the folder of the database, and it is not a memory file system.
            DatabaseUrl::Sqlite(path) => path.parent().unwrap_or(Path::new("/")).to_path_buf(),
        };
        Ok(Self { url, local_folder })
    }

    /// Returns the folder for data that confined servers store.
    pub(crate) fn homes(&self) -> PathBuf {
        self.local_folder.join("servers")
    }

    /// Returns the files of the stores on this machine, and the folders beside them. `at` resolves a path.
    pub(super) fn on_disk(&self, at: impl Fn(&Path) -> PathBuf) -> OnDisk {
        let (files, folders) = match &self.url {
            DatabaseUrl::Sqlite(path) => {
                let DatabaseFiles { files, folders } = DatabaseFiles::of(&at(path));
                (files.to_vec(), folders.to_vec())
            }
        };
        let local = at(&self.local_folder);
        OnDisk {
            files,
            folders: folders.into_iter().chain(["tasks", "servers"].map(|name| local.join(name))).collect(),
        }
    }
}

/// Files and folders that no tool may access.
#[derive(Debug)]
pub(super) struct OnDisk {
    pub(super) files: Vec<PathBuf>,
    pub(super) folders: Vec<PathBuf>,
}

impl OnDisk {
    /// Returns files and folders.
    pub(super) fn all(self) -> impl Iterator<Item = PathBuf> {
        self.files.into_iter().chain(self.folders)
    }
}
