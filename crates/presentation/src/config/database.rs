//! `[database]`: where the stores are, and what lies beside them on this machine.

use crate::config::{
    database_url::DatabaseUrl,
    folders::{self, Folders},
    layers::Resolved,
    problem::Problem,
    value::Value,
};
use std::path::{Path, PathBuf};
use toolstead_infrastructure::sqlite::DatabaseFiles;

/// `[database]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseSettings {
    /// Where the stores are.
    pub url: DatabaseUrl,
    /// The folder for what no other machine shares: detached tasks, homes of servers, and output on its way.
    pub local_folder: PathBuf,
}

impl DatabaseSettings {
    pub(super) fn of(resolved: &Resolved, folders: &Folders) -> Result<Self, Problem> {
        let url = match resolved.setting("database.url").and_then(|setting| setting.value) {
            Some(Value::Database(url)) => url,
            _ => DatabaseUrl::Sqlite(folders.data.as_ref().ok_or_else(folders::no_data)?.join("toolstead.db")),
        };
        let local_folder = match &url {
            // No tool reaches what lies beside the database, and that is no disk in memory.
            DatabaseUrl::Sqlite(path) => path.parent().unwrap_or(Path::new("/")).to_path_buf(),
        };
        Ok(Self { url, local_folder })
    }

    /// The folder for what guarded servers keep.
    pub(crate) fn homes(&self) -> PathBuf {
        self.local_folder.join("servers")
    }

    /// What of the stores lies on this machine, and what is kept beside them. `at` says where a path leads.
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

/// Files and folders that no tool may touch.
#[derive(Debug)]
pub(super) struct OnDisk {
    pub(super) files: Vec<PathBuf>,
    pub(super) folders: Vec<PathBuf>,
}

impl OnDisk {
    /// Both.
    pub(super) fn all(self) -> impl Iterator<Item = PathBuf> {
        self.files.into_iter().chain(self.folders)
    }
}
