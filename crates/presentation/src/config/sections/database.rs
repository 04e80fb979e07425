//! `[database]`: location of the stores and of the local files beside them.

use crate::config::{
    layers::{
        ResolvedSettings,
        folders::{self, StandardFolders},
    },
    sections::database_url::DatabaseUrl,
    tree::{problem::Problem, value::ValidatedConfigValue},
};
use std::path::{Path, PathBuf};
use toolstead_infrastructure::sqlite::DatabaseFiles;

/// Settings of `[database]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseSettings {
    /// Location of the stores.
    pub url: DatabaseUrl,
    /// Folder for data that is not shared with other machines: detached tasks, home folders of servers, and output in
    /// transit.
    pub local_folder: PathBuf,
}

impl DatabaseSettings {
    pub(in crate::config) fn of(
        resolved: &ResolvedSettings,
        folders: &StandardFolders,
        problems: &mut Vec<Problem>,
    ) -> Option<Self> {
        let url = match (resolved.value("database.url"), &folders.data) {
            (Some(ValidatedConfigValue::Database(url)), _) => url,
            (_, Some(data)) => DatabaseUrl::Sqlite(data.join("toolstead.db")),
            (_, None) => {
                problems.push(folders::no_data());
                return None;
            }
        };
        let local_folder = match &url {
            // No tool can access the folder of the database, and it is not a memory file system.
            DatabaseUrl::Sqlite(path) => path.parent().unwrap_or(Path::new("/")).to_path_buf(),
        };
        Some(Self { url, local_folder })
    }

    /// Returns the folder for data that confined servers store.
    pub(crate) fn homes(&self) -> PathBuf {
        self.local_folder.join("servers")
    }

    /// Returns the files of the stores on this machine, and the folders beside them. `at` resolves a path.
    pub(in crate::config) fn on_disk(&self, at: impl Fn(&Path) -> PathBuf) -> ProtectedDatabasePaths {
        let (files, folders) = match &self.url {
            DatabaseUrl::Sqlite(path) => {
                let DatabaseFiles { files, folders } = DatabaseFiles::of(&at(path));
                (files.to_vec(), folders.to_vec())
            }
        };
        let local = at(&self.local_folder);
        ProtectedDatabasePaths {
            files,
            folders: folders.into_iter().chain(["tasks", "servers"].map(|name| local.join(name))).collect(),
        }
    }
}

/// Files and folders that no tool may access.
#[derive(Debug)]
pub(in crate::config) struct ProtectedDatabasePaths {
    pub(in crate::config) files: Vec<PathBuf>,
    pub(in crate::config) folders: Vec<PathBuf>,
}

impl ProtectedDatabasePaths {
    /// Returns files and folders.
    pub(in crate::config) fn all(self) -> impl Iterator<Item = PathBuf> {
        self.files.into_iter().chain(self.folders)
    }
}
