//! The configuration file that servers are added to.

use super::{
    ImportError, WrittenConfigFile,
    block::{ImportedServerTable, tables},
};
use crate::config::{
    Config,
    layers::{
        LayerKind,
        folders::{ExistingFileTreatment, real, write_private, write_with_mode},
    },
    tree::{format::ConfigFormat, source_file::read_bounded},
};
use serde_json::{Value as Json, json};
use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};
use toolstead_domain::ServerName;

/// Maximum number of copies of a file that are made within a second.
const MAX_COPIES: u32 = 100;

/// TOML configuration file that imported servers are added to. It may not exist yet.
#[derive(Debug)]
pub(super) struct ImportTarget {
    file: PathBuf,
    /// Content when it was read; `None` if the file does not exist.
    before: Option<String>,
    /// Keys of each server in the file, by name of the server; `null` if it has none.
    servers: Json,
}

impl ImportTarget {
    /// Reads the configuration file of `--config`, or else the user's configuration file, which may be absent.
    pub(super) fn of(config: &Config) -> Result<Self, ImportError> {
        let of_kind = |kind| config.files.iter().find(|file| file.kind == kind).map(|file| file.path.to_path_buf());
        let own = || Some(real(&config.folders.config.as_ref()?.join("config.toml")));
        let file = of_kind(LayerKind::Chosen).or_else(|| of_kind(LayerKind::User)).or_else(own);
        let file = file.ok_or(ImportError::NoConfigFolder)?;
        let unsuitable = |reason: String| ImportError::UnsuitableFile { file: file.clone(), reason };
        if ConfigFormat::of(&file) != Some(ConfigFormat::Toml) {
            return Err(unsuitable("servers are added to TOML files only; copy their tables by hand".into()));
        }
        let before = match read_bounded(&file) {
            Ok(bytes) => Some(String::from_utf8(bytes).map_err(|_| unsuitable("it is not UTF-8".into()))?),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound) => None,
            Err(error) => return Err(unsuitable(error.to_string())),
        };
        let servers = tables(before.as_deref().unwrap_or_default()).map_err(unsuitable)?;
        Ok(Self { file, before, servers })
    }

    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// Returns `true` if the file has this server, with equal keys, under this name.
    pub(super) fn has(&self, name: &ServerName, block: &ImportedServerTable) -> bool {
        self.servers.get(name.as_str()).is_some_and(|known| *known == block.to_json())
    }

    /// Copies the file, writes the files with secrets, and appends the tables. Creates missing folders, and copies each
    /// file that it replaces.
    ///
    /// # Errors
    /// [`ImportError`], for example if the file changed after it was read. The configuration file is unchanged then,
    /// but files with secrets may be written.
    pub(super) fn write(
        self,
        blocks: &[&ImportedServerTable],
        env_files: &[(&Path, &str)],
        holds_secrets: bool,
    ) -> Result<WrittenConfigFile, ImportError> {
        let after = self.with(blocks)?;
        let failed = |file: &Path, error| ImportError::Write { file: file.to_path_buf(), error };
        let folder = self.file.parent().unwrap_or(Path::new("/"));
        make_folder(folder).map_err(|error| failed(folder, error))?;
        let now = match read_bounded(&self.file) {
            Ok(bytes) => Some(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(&self.file, error)),
        };
        if now.as_deref() != self.before.as_deref().map(str::as_bytes) {
            return Err(ImportError::Changed { file: self.file });
        }
        for (file, text) in env_files {
            let folder = file.parent().unwrap_or(Path::new("/"));
            make_folder(folder).map_err(|error| failed(folder, error))?;
            // An existing file may have been left by a server that was removed from the configuration.
            copy_of(file).map_err(|error| failed(file, error))?;
            write_private(file, text.as_bytes(), ExistingFileTreatment::Replaced)
                .map_err(|error| failed(file, error))?;
        }
        let mode = self.file.metadata().map_or(0o600, |facts| facts.permissions().mode() & 0o777);
        let mode = if holds_secrets { mode & 0o600 } else { mode };
        let backup = copy_of(&self.file).map_err(|error| failed(&self.file, error))?;
        write_with_mode(&self.file, after.as_bytes(), ExistingFileTreatment::Replaced, mode)
            .map_err(|error| failed(&self.file, error))?;
        Ok(WrittenConfigFile { file: self.file, backup })
    }

    /// Returns the content with the tables, after checking that nothing else differs.
    fn with(&self, blocks: &[&ImportedServerTable]) -> Result<String, ImportError> {
        let before = self.before.as_deref().unwrap_or_default();
        let mut after = before.to_owned();
        for block in blocks {
            let gap = if after.is_empty() {
                ""
            } else if after.ends_with('\n') {
                "\n"
            } else {
                "\n\n"
            };
            after.push_str(gap);
            after.push_str(&block.text());
        }
        let unsuitable = |reason: String| ImportError::UnsuitableFile { file: self.file.clone(), reason };
        let place = Arc::from(self.file.as_path());
        let plain = |text: &str| ConfigFormat::Toml.read(text, &place).map(|root| root.content.to_json());
        let mut expected = plain(before).map_err(|problem| unsuitable(problem.message))?;
        for block in blocks {
            expected["mcp_servers"][block.name().as_str()] = block.to_json();
        }
        let no_place = "`mcp_servers` is not written as tables: copy those of the preview by hand";
        match plain(&after) {
            Ok(read) if read == expected && expected["mcp_servers"] != json!(null) => Ok(after),
            Ok(_) | Err(_) => Err(unsuitable(no_place.into())),
        }
    }
}

fn make_folder(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Copies a file to a new file beside it, with the time in its name and the same permissions; `None` if there is no such
/// file.
fn copy_of(file: &Path) -> io::Result<Option<PathBuf>> {
    let content = match read_bounded(file) {
        Ok(content) => content,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mode = file.metadata()?.permissions().mode() & 0o777;
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let time = chrono::Local::now().format("%Y%m%d-%H%M%S");
    for number in 1..=MAX_COPIES {
        let number = if number == 1 { String::new() } else { format!("-{number}") };
        let copy = file.with_file_name(format!("{name}.{time}{number}.bak"));
        match write_with_mode(&copy, &content, ExistingFileTreatment::Kept, mode) {
            Ok(()) => return Ok(Some(copy)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("there are too many copies of it"))
}
