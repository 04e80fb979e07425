//! Folders in which Toolstead reads and stores data.

use crate::config::{
    layers::environment::EnvironmentVariables,
    tree::{
        origin::Origin,
        ownership::{close_to_others, user},
        problem::Problem,
    },
};
use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

/// Folders of Toolstead. The paths may not exist yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandardFolders {
    /// Folder in which the program was started: absolute, with symbolic links resolved.
    pub start: PathBuf,
    /// Home folder, with symbolic links resolved.
    pub home: Option<PathBuf>,
    /// Folder of the user's configuration.
    pub config: Option<PathBuf>,
    /// Folder of the database, the tokens and the trust list.
    pub data: Option<PathBuf>,
    /// Folder of the administrator's configuration.
    pub administrator: PathBuf,
}

impl StandardFolders {
    pub(in crate::config) fn of(
        environment: &EnvironmentVariables,
        start: &Path,
        administrator: &Path,
    ) -> Result<Self, Problem> {
        let start = start.canonicalize().map_err(|error| {
            Problem::new(Origin::file(start), format!("the start folder cannot be entered: {error}"))
        })?;
        Ok(Self {
            start,
            home: environment.home().map(|home| real(&home)),
            config: environment.config_folder(),
            data: environment.data_folder(),
            administrator: administrator.to_path_buf(),
        })
    }

    /// Returns the data folder. Creates it if necessary, accessible only to its owner.
    ///
    /// # Errors
    /// A [`Problem`] if its location is unknown or it cannot be created.
    pub fn prepare_data(&self) -> Result<&Path, Problem> {
        let data = self.data.as_deref().ok_or_else(no_data)?;
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(data);
        made.map_err(|error| Problem::new(Origin::file(data), format!("the data folder cannot be created: {error}")))?;
        self.guard_data()?;
        Ok(data)
    }

    /// Ensures that the data folder, if it exists, belongs to this user and is closed to others, because its content
    /// decides what is trusted. Removes abandoned temporary files in it. Returns notes about corrected permissions and
    /// about a symbolic link.
    ///
    /// # Errors
    /// A [`Problem`] if the folder belongs, or may come to belong, to another user.
    pub(in crate::config) fn guard_data(&self) -> Result<Vec<Problem>, Problem> {
        let Some(data) = self.data.as_deref() else { return Ok(Vec::new()) };
        let wrong = |message: String| Problem::new(Origin::file(data), format!("the data folder {message}"));
        let elsewhere = "name another place with XDG_DATA_HOME";
        let owned = |facts: &fs::Metadata| match facts.uid() {
            owner if owner == user() => Ok(()),
            owner => Err(wrong(format!("belongs to the user {owner}, and not to you ({}): {elsewhere}", user()))),
        };
        let mut notes = Vec::new();
        let Ok(facts) = data.symlink_metadata() else { return Ok(notes) };
        owned(&facts)?;
        if facts.is_symlink() {
            let real = data.canonicalize().map_err(|error| wrong(format!("is a link to nothing: {error}")))?;
            owned(&real.metadata().map_err(|error| wrong(format!("cannot be inspected: {error}")))?)?;
            let around = data.parent().unwrap_or(data);
            let mode = around.metadata().map(|facts| facts.permissions().mode()).unwrap_or(0o777);
            if mode & 0o022 != 0 {
                let message = format!("is a link that others can change, in `{}`: {elsewhere}", around.display());
                return Err(wrong(message));
            }
            notes.push(wrong(format!("is a link to {}, which is used", real.display())));
        }
        notes.extend(close_to_others(data, 0o077)?);
        remove_abandoned(data, |_| true);
        Ok(notes)
    }
}

/// Returns the problem that the location of the data folder is unknown.
pub(in crate::config) fn no_data() -> Problem {
    Problem::new(
        Origin::Environment("HOME".into()),
        "it is not an absolute path, so the database has no location: set it, XDG_DATA_HOME, or \
         `database.url`",
    )
}

/// Resolves symbolic links in the existing part of a path.
pub(in crate::config) fn real(path: &Path) -> PathBuf {
    let mut rest = Vec::new();
    let mut existing = path;
    loop {
        if let Ok(real) = existing.canonicalize() {
            return rest.iter().rev().fold(real, |whole, name| whole.join(name));
        }
        match (existing.parent(), existing.file_name()) {
            (Some(parent), Some(name)) => {
                rest.push(name);
                existing = parent;
            }
            _ => return path.to_path_buf(),
        }
    }
}

/// Treatment of a file that already exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExistingFileTreatment {
    /// The new content replaces it.
    Replaced,
    /// The existing file is left unchanged, and the write fails with [`io::ErrorKind::AlreadyExists`].
    Kept,
}

/// Writes a file that only its owner may read. The write is atomic.
pub(crate) fn write_private(path: &Path, content: &[u8], existing: ExistingFileTreatment) -> io::Result<()> {
    write_with_mode(path, content, existing, 0o600)
}

/// Writes a file with this mode. The write is atomic. Also removes temporary files of earlier attempts whose process
/// has ended.
pub(in crate::config) fn write_with_mode(
    path: &Path,
    content: &[u8],
    existing: ExistingFileTreatment,
    mode: u32,
) -> io::Result<()> {
    let target = path.file_name().unwrap_or_default();
    remove_abandoned(path.parent().unwrap_or(Path::new(".")), |name| name == target);
    let (temporary, mut file) = temporary(path)?;
    let written = (|| {
        // Set explicitly because the umask applies at creation.
        file.set_permissions(fs::Permissions::from_mode(mode))?;
        file.write_all(content)?;
        file.sync_all()?;
        match existing {
            ExistingFileTreatment::Replaced => fs::rename(&temporary, path),
            ExistingFileTreatment::Kept => fs::hard_link(&temporary, path),
        }
    })();
    if written.is_err() || existing == ExistingFileTreatment::Kept {
        // The file was linked to its final name or is not needed, so a failure to remove it loses no data.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Maximum number of attempts to create a temporary file that no other process removes.
const ATTEMPTS: usize = 8;

/// Creates a temporary file beside `path`. It is locked while this process has it open.
fn temporary(path: &Path) -> io::Result<(PathBuf, File)> {
    let target = path.file_name().unwrap_or_default().display();
    for _ in 0..ATTEMPTS {
        let temporary = path.with_file_name(format!(".{target}.{}", uuid::Uuid::new_v4().simple()));
        let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        // On a file system without locks, temporary files are never treated as abandoned.
        let _ = file.lock();
        if file.metadata()?.nlink() > 0 {
            return Ok((temporary, file));
        }
    }
    Err(io::Error::other("the temporary file was removed again and again"))
}

/// Removes temporary files whose process ended before it could rename them. `is_meant` gets the name of the file that each
/// was to become.
fn remove_abandoned(folder: &Path, is_meant: impl Fn(&OsStr) -> bool) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_temporary =
            target_of(&name).is_some_and(&is_meant) && entry.file_type().is_ok_and(|kind| kind.is_file());
        let open =
            || fs::OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(entry.path());
        if is_temporary
            && let Ok(file) = open()
            && file.metadata().is_ok_and(|facts| facts.uid() == user())
            && file.try_lock().is_ok()
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Returns the name of the file that a temporary file of this name was to become; `None` for every other name.
fn target_of(temporary: &OsStr) -> Option<&OsStr> {
    let (target, id) = temporary.to_str()?.strip_prefix('.')?.rsplit_once('.')?;
    let is_id = id.len() == 32 && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (is_id && !target.is_empty()).then(|| OsStr::new(target))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn the_next_write_removes_only_temporary_files_of_ended_processes() {
        let folder = tempfile::tempdir().unwrap();
        let id = |digit: &str| digit.repeat(32);
        let (abandoned, held) = (format!(".token.{}", id("a")), format!(".token.{}", id("b")));
        let others = [format!(".other.{}", id("a")), format!(".token.{}", id("g")), "token.old".to_owned()];
        for name in [&abandoned, &held].into_iter().chain(&others) {
            fs::write(folder.path().join(name), "x").unwrap();
        }
        let writer = File::open(folder.path().join(&held)).unwrap();
        writer.lock().unwrap();
        write_private(&folder.path().join("token"), b"new", ExistingFileTreatment::Replaced).unwrap();
        let mut expected = vec![held.clone(), "token".to_owned()];
        expected.extend(others);
        expected.sort();
        assert_eq!(names(folder.path()), expected);
        assert_eq!(fs::read(folder.path().join("token")).unwrap(), b"new");
    }

    #[test]
    fn a_start_removes_temporary_files_of_ended_processes_from_the_data_folder() {
        let home = tempfile::tempdir().unwrap();
        let environment = EnvironmentVariables::new([("HOME", home.path().to_str().unwrap())]);
        let folders = StandardFolders::of(&environment, home.path(), home.path()).unwrap();
        let data = folders.prepare_data().unwrap();
        fs::write(data.join(format!(".trust.json.{}", "0".repeat(32))), "x").unwrap();
        folders.guard_data().unwrap();
        assert_eq!(names(data), Vec::<String>::new());
    }
}
