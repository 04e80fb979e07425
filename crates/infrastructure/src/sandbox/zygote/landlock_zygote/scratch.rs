//! Folder for the temporary files of a session, or of one run without a session. It is removed afterwards.

use crate::sandbox::zygote::{
    mount,
    request::{PrivateHomeFile, RunRequest, StepFailure, StepResultExt},
};
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, chmodat, fchmod, mkdirat, openat, renameat, statat, unlinkat,
};
use std::{
    ffi::{CStr, CString, OsStr},
    fs::{self, DirBuilder, File},
    io::{self, Write},
    os::{
        fd::{AsFd, AsRawFd, OwnedFd, RawFd},
        unix::{
            ffi::OsStrExt,
            fs::{DirBuilderExt, OpenOptionsExt},
        },
    },
    path::{Path, PathBuf},
};
use uuid::Uuid;

/// Subfolders that runs see.
const TEMPORARY: &str = "tmp";
const HOME: &str = "home";

#[derive(Debug)]
pub(super) struct ScratchFolder {
    path: PathBuf,
    folder: OwnedFd,
}

impl ScratchFolder {
    /// Creates the folder among the temporary files, with settings in its home.
    pub(super) fn make(temporary: &Path, settings: &[PrivateHomeFile]) -> Result<Self, StepFailure> {
        let path = temporary.join(format!("toolstead-{}", Uuid::new_v4().simple()));
        let step = || format!("make the folder `{}` for temporary files", path.display());
        DirBuilder::new().mode(0o700).create(&path).step(step)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = openat(CWD, &path, flags, Mode::empty()).step(step)?;
        let scratch = Self { folder, path };
        let filled = [TEMPORARY, HOME].into_iter().try_for_each(|name| Ok(mkdirat(&scratch.folder, name, Mode::RWXU)?));
        if let Err(error) = filled.and_then(|()| scratch.fill(settings)) {
            // The first failure is reported.
            let _ = scratch.remove();
            return Err(error).step(|| "make a private folder for temporary files".into());
        }
        Ok(scratch)
    }

    /// Writes the settings to the home. No run has accessed the folder yet.
    fn fill(&self, settings: &[PrivateHomeFile]) -> io::Result<()> {
        for file in settings {
            let path = self.path.join(HOME).join(&file.path);
            path.parent().map_or(Ok(()), fs::create_dir_all)?;
            File::options().write(true).create_new(true).mode(0o600).open(path)?.write_all(&file.text)?;
        }
        Ok(())
    }

    /// Sets the folder as the home and the place for temporary files of a run, which has no private `/tmp`.
    pub(super) fn show_to(&self, request: &mut RunRequest) {
        let mut lead = |name: &str, folder: &str| {
            let path = self.path.join(folder);
            request.environment.insert(name.into(), path.to_string_lossy().into_owned());
            path
        };
        request.temporary = Some(lead("TMPDIR", TEMPORARY));
        if request.home.is_some() {
            request.home = Some(lead("HOME", HOME));
        }
    }

    /// Returns the descriptor that must stay open for [`remove`](Self::remove).
    pub(super) fn descriptor(&self) -> RawFd {
        self.folder.as_raw_fd()
    }

    /// Restores the owner's rights to the folder. A run may have changed its mode, which Landlock does not control.
    pub(super) fn reopen(&self) -> io::Result<()> {
        Ok(fchmod(&self.folder, Mode::RWXU)?)
    }

    /// Removes the folder. The files of runs may be deeply nested or closed to their owner. Nested folders are moved to
    /// the top, so that depth costs nothing, and links are not followed.
    pub(super) fn remove(&self) -> io::Result<()> {
        self.reopen()?;
        let (top, mut moved) = (self.folder.as_fd(), 0_u64);
        loop {
            let names = names(top)?;
            if names.is_empty() {
                return fs::remove_dir(&self.path);
            }
            for name in names {
                if !is_folder(top, &name)? {
                    unlinkat(top, &name, AtFlags::empty())?;
                    continue;
                }
                let folder = opened(top, &name)?;
                for inner in self::names(&folder)? {
                    if !is_folder(&folder, &inner)? {
                        unlinkat(&folder, &inner, AtFlags::empty())?;
                        continue;
                    }
                    // A folder can only be moved if it is writable itself.
                    chmodat(&folder, &inner, Mode::RWXU, AtFlags::empty())?;
                    moved += 1;
                    renameat(&folder, &inner, top, format!("moved-{moved}"))?;
                }
                unlinkat(top, &name, AtFlags::REMOVEDIR)?;
            }
        }
    }
}

fn is_folder(folder: impl AsFd, name: &CStr) -> io::Result<bool> {
    let found = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(found.st_mode) == FileType::Directory)
}

/// Opens a folder after giving its owner all rights.
fn opened(top: impl AsFd, name: &CStr) -> io::Result<OwnedFd> {
    chmodat(&top, name, Mode::RWXU, AtFlags::empty())?;
    mount::open_beneath(top, Path::new(OsStr::from_bytes(name.to_bytes())), OFlags::RDONLY | OFlags::DIRECTORY)
}

fn names(folder: impl AsFd) -> io::Result<Vec<CString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry.map_err(io::Error::from)?;
        if ![c".", c".."].contains(&entry.file_name()) {
            names.push(entry.file_name().to_owned());
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn removing_scratch_files_includes_deep_and_closed_folders_but_no_link_targets() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("kept")).unwrap();
        fs::write(place.path().join("kept/file"), "").unwrap();
        let settings = [PrivateHomeFile { path: ".config/git/config".into(), text: b"[user]".to_vec() }];
        let scratch = ScratchFolder::make(place.path(), &settings).unwrap();
        assert_eq!(fs::read(scratch.path.join("home/.config/git/config")).unwrap(), b"[user]");
        symlink(place.path().join("kept"), scratch.path.join("tmp/link")).unwrap();
        fs::write(scratch.path.join("tmp/file"), "").unwrap();
        // Deeper than the maximum length of a path and the maximum number of descriptors.
        let mut at: OwnedFd = File::open(scratch.path.join("tmp")).unwrap().into();
        for _ in 0..3_000 {
            mkdirat(&at, "deep", Mode::RWXU).unwrap();
            let inner = openat(&at, "deep", OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
            at = inner;
        }
        let closed = scratch.path.join("home/closed");
        fs::create_dir_all(closed.join("inner")).unwrap();
        for path in [closed.join("inner"), closed, scratch.path.clone()] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o000)).unwrap();
        }
        scratch.remove().unwrap();
        let left: Vec<_> = fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["kept"]);
        assert!(place.path().join("kept/file").exists());
    }
}
