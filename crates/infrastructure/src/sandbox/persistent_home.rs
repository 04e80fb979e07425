//! Persistent private home of a program: a folder of the machine that only this program writes to.
//!
//! The program chose its content, so links in it are never followed.

use crate::sandbox::zygote::request::PrivateHomeFile;
use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags, mkdirat, openat, unlinkat},
    io::Errno,
};
use std::{
    ffi::OsStr,
    fs::{self, DirBuilder, File},
    io::{self, Write},
    os::{fd::OwnedFd, unix::fs::DirBuilderExt},
    path::{Component, Path, PathBuf},
};

/// Creates the folder, the mount points in it, and copies of settings as far as possible. Returns the real path of the
/// folder.
pub(super) fn prepare(folder: &Path, places: &[MountPointInHome], settings: &[PrivateHomeFile]) -> io::Result<PathBuf> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let real = fs::canonicalize(folder)?;
    let top = openat(CWD, &real, OPENED, Mode::empty())?;
    for place in places {
        let (holder, name) = holder(&top, &place.path)?;
        match place.is_folder {
            true => drop(entered(&holder, name)?),
            false => file(&holder, name)?,
        }
    }
    for PrivateHomeFile { path, text } in settings {
        let copied = holder(&top, path).and_then(|(holder, name)| {
            removed(&holder, name)?;
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            File::from(openat(&holder, name, flags, Mode::RUSR | Mode::WUSR)?).write_all(text)
        });
        if let Err(error) = copied {
            tracing::debug!(path = %path.display(), %error, "a private home does not take the settings of git");
        }
    }
    Ok(real)
}

/// Mount point in a persistent home, by its path relative to the home.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MountPointInHome {
    pub(super) path: PathBuf,
    pub(super) is_folder: bool,
}

const OPENED: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Returns the folder that contains the last component of a path beneath the top, and that component. Creates missing
/// folders.
fn holder<'a>(top: &OwnedFd, path: &'a Path) -> io::Result<(OwnedFd, &'a OsStr)> {
    let mut parts = path.components().map(|part| match part {
        Component::Normal(name) => Ok(name),
        _ => Err(io::Error::from(io::ErrorKind::InvalidInput)),
    });
    let mut last = parts.next().unwrap_or_else(|| Err(io::ErrorKind::InvalidInput.into()))?;
    let mut at = top.try_clone()?;
    for part in parts {
        at = entered(&at, last)?;
        last = part?;
    }
    Ok((at, last))
}

/// Opens or creates a subfolder. Replaces another entry with that name.
fn entered(folder: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    match openat(folder, name, OPENED, Mode::empty()) {
        Err(Errno::NOTDIR | Errno::LOOP) => removed(folder, name)?,
        Err(Errno::NOENT) => {}
        opened => return Ok(opened?),
    }
    mkdirat(folder, name, Mode::RWXU)?;
    Ok(openat(folder, name, OPENED, Mode::empty())?)
}

/// Creates an empty file in a folder, unless the file exists. Replaces a link with that name.
fn file(folder: &OwnedFd, name: &OsStr) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let made = || openat(folder, name, flags, Mode::RUSR | Mode::WUSR);
    match made() {
        Err(Errno::LOOP) => {
            removed(folder, name)?;
            made()?;
        }
        made => drop(made?),
    }
    Ok(())
}

fn removed(folder: &OwnedFd, name: &OsStr) -> io::Result<()> {
    match unlinkat(folder, name, AtFlags::empty()) {
        Err(Errno::NOENT) => Ok(()),
        removed => Ok(removed?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn preparing_a_persistent_home_does_not_follow_links_of_the_program() {
        let folder = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(folder.path()).unwrap();
        fs::create_dir(top.join("theirs")).unwrap();
        fs::write(top.join("theirs/settings"), "theirs").unwrap();
        let home = top.join("homes/one");
        let places = [
            MountPointInHome { path: ".nvm/versions/v22".into(), is_folder: true },
            MountPointInHome { path: "work/notes.txt".into(), is_folder: false },
        ];
        let settings = |text: &str| [PrivateHomeFile { path: ".config/git/config".into(), text: text.into() }];
        assert_eq!(prepare(&home, &places, &settings("[user]")).unwrap(), home);
        assert_eq!(fs::metadata(&home).unwrap().permissions().mode() & 0o777, 0o700);
        assert!(home.join(".nvm/versions/v22").is_dir() && home.join("work/notes.txt").is_file());
        assert_eq!(fs::read(home.join(".config/git/config")).unwrap(), b"[user]");
        fs::write(home.join("kept"), "kept").unwrap();
        // Changes that a program may make to its home before the next run.
        for (name, target) in
            [(".nvm", "theirs"), ("work/notes.txt", "theirs/settings"), (".config/git/config", "theirs/settings")]
        {
            let path = home.join(name);
            if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) }.unwrap();
            symlink(top.join(target), path).unwrap();
        }
        prepare(&home, &places, &settings("[core]")).unwrap();
        assert!(home.join(".nvm/versions/v22").is_dir() && !home.join(".nvm").is_symlink());
        assert_eq!(fs::read(home.join(".config/git/config")).unwrap(), b"[core]");
        assert_eq!(fs::read(home.join("kept")).unwrap(), b"kept");
        assert_eq!(fs::read(top.join("theirs/settings")).unwrap(), b"theirs");
        assert_eq!(fs::read_dir(top.join("theirs")).unwrap().count(), 1);
        let beyond = [MountPointInHome { path: "../out".into(), is_folder: true }];
        assert!(prepare(&home, &beyond, &[]).is_err() && !top.join("homes/out").exists());
    }
}
