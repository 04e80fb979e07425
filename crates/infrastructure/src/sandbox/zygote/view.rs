//! Root of one run, which contains only what the run may use.

mod tool_socket;

use super::{
    identity::{IdMapNamespaces, PayloadUser},
    mount::{self, MountRestrictions},
    request::{FolderMapping, MovedPathError, RunRequest, StepFailure, StepResultExt},
    root_sources,
};
use rustix::{
    fs::{
        AtFlags, FileType, Mode, OFlags, StatxAttributes, StatxFlags, fstat, mkdirat, openat, statx, symlinkat,
        unlinkat,
    },
    io::Errno,
    mount::{
        FsMountFlags, FsOpenFlags, MountAttrFlags, UnmountFlags, fsconfig_create, fsconfig_set_string, fsmount, fsopen,
        unmount,
    },
    process::{fchdir, pivot_root},
};
use std::{
    cell::RefCell,
    collections::BTreeSet,
    fs,
    io::{self, Write},
    os::fd::{AsFd, OwnedFd},
    path::{Component, Path, PathBuf},
};

/// Files and folders of `/proc` that change the machine.
const MACHINE_FILES: [&str; 4] = ["sys", "sysrq-trigger", "irq", "bus"];
/// Maximum size of a run's root, in bytes and in entries. The root only contains mount points.
const ROOT_BYTES: u64 = 8 << 20;
const ROOT_ENTRIES: u64 = 1 << 14;

/// A root under construction.
#[derive(Debug)]
pub(super) struct RootBuilder<'a> {
    /// Handle of the root folder.
    root: OwnedFd,
    identity: &'a PayloadUser,
    /// Device number of the root's file system, which belongs to this run alone.
    own: u64,
    /// Device number of the file system of `/tmp` and the home, which other runs of the session share. Mount points can
    /// be created on it and on the root's file system.
    scratch: Option<u64>,
    /// Folders that were created in the root around mount points, without a leading slash. Nothing is mounted on them.
    made: RefCell<BTreeSet<PathBuf>>,
    /// Folders of the machine, outer ones before those within them.
    shown: Vec<ShownFolder>,
}

/// A folder of the machine in the new root.
#[derive(Debug)]
struct ShownFolder {
    target: PathBuf,
    /// Topmost mount. Paths in the folder are resolved from here, because another run of the session may be renaming
    /// folders between the root and this mount.
    top: OwnedFd,
}

impl<'a> RootBuilder<'a> {
    /// Creates the root beside the old one, with the parts that all runs see.
    pub(super) fn begin(identity: &'a PayloadUser) -> Result<Self, StepFailure> {
        let root = mount::memory(ROOT_BYTES, ROOT_ENTRIES, "755").step(|| "make a private root".into())?;
        let step = || "find the place of a private root".to_owned();
        let place = mount::open_exactly(&root_sources::at("root")).step(step)?;
        mount::attach(root, place).step(|| "mount a private root".into())?;
        let root = mount::open_exactly(&root_sources::at("root")).step(step)?;
        let own = fstat(&root).step(step)?.st_dev;
        let view = Self { root, identity, own, scratch: None, made: RefCell::default(), shown: Vec::new() };
        view.system()?;
        Ok(view)
    }

    /// Adds the parts that only this run sees. `scratch` is the path on the stage where its `/tmp` and home are
    /// mounted.
    pub(super) fn show(
        &mut self,
        request: &RunRequest,
        maps: &IdMapNamespaces,
        scratch: &Path,
    ) -> Result<(), StepFailure> {
        let device = |path: &Path| Ok::<_, io::Error>(fstat(mount::open_exactly(path)?)?.st_dev);
        self.scratch = Some(device(scratch).step(|| "find the session's `/tmp` and home".into())?);
        for place in ["/tmp", "/var/tmp"] {
            self.bind(&scratch.join("tmp"), Path::new(place), Some(MountRestrictions::WRITABLE), None)?;
        }
        if let Some(home) = &request.home {
            self.bind(&scratch.join("home"), home, Some(MountRestrictions::WRITABLE), None)?;
            self.settings(request, home);
        }
        for folder in &request.folders {
            self.folder(folder, maps)?;
        }
        self.hold_folders_of(request)?;
        for sealed in &request.sealed {
            self.close(sealed)?;
        }
        let mut last: Option<&Path> = None;
        for hidden in &request.hidden {
            // The paths are sorted, so that a path precedes those within it, which it already covers.
            if !last.is_some_and(|last| hidden.starts_with(last)) {
                self.hide(hidden)?;
                last = Some(hidden);
            }
        }
        Ok(())
    }

    fn system(&self) -> Result<(), StepFailure> {
        for path in root_sources::SYSTEM_FOLDERS {
            let step = || format!("mount `{path}`");
            match fs::symlink_metadata(path) {
                Ok(entry) if entry.is_symlink() => {
                    let target = fs::read_link(path).step(step)?;
                    symlinkat(target, &self.root, &path[1..]).step(step)?;
                }
                Ok(entry) if entry.is_dir() => {
                    self.bind(Path::new(path), Path::new(path), Some(MountRestrictions::READ_ONLY), None)?;
                }
                _ => {}
            }
        }
        self.take("etc", MountRestrictions::READ_ONLY)?;
        self.take("dev", MountRestrictions::READ_ONLY_DEVICES)?;
        let step = || "mount `/dev/pts`".to_owned();
        mount::attach(terminals().step(step)?, self.place(Path::new("/dev/pts"), true)?).step(step)?;
        self.place(Path::new("/run"), true)?;
        let step = || "mount `/proc`".to_owned();
        mount::attach(mount::processes().step(step)?, self.place(Path::new("/proc"), true)?).step(step)?;
        for name in MACHINE_FILES {
            let path = Path::new("proc").join(name);
            let step = || format!("make `/proc/{name}` read-only");
            match mount::open_beneath(&self.root, &path, OFlags::PATH) {
                Ok(place) => drop(sealed(&place).step(step)?),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error).step(step),
            }
        }
        Ok(())
    }

    /// Moves a folder of the stage into the root. Its many mounts are not copied: in this process they are already a
    /// copy of the run's own.
    fn take(&self, name: &str, bars: MountRestrictions) -> Result<(), StepFailure> {
        let step = || format!("mount `/{name}`");
        let tree = mount::open_exactly(&root_sources::at(name)).step(step)?;
        mount::bar(&tree, bars).step(step)?;
        mount::attach(tree, self.place(&Path::new("/").join(name), true)?).step(step)
    }

    /// Copies settings into the private home as far as possible: an earlier run of the session may have copied them
    /// already, created other files in their place, or filled the file system.
    fn settings(&self, request: &RunRequest, home: &Path) {
        for file in &request.settings {
            let folder = home.join(file.path.parent().unwrap_or(Path::new("")));
            let Ok(folder) = self.open_mount_point(&folder, true, false) else { continue };
            let name = file.path.file_name().unwrap_or_default();
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let Ok(copy) = openat(&folder, name, flags, Mode::from_raw_mode(0o600)) else { continue };
            let copied = fs::File::from(copy).write_all(&file.text);
            if copied.and_then(|()| root_sources::give(self.identity, &folder, name)).is_err() {
                let _ = unlinkat(&folder, name, AtFlags::empty());
            }
        }
    }

    fn folder(&mut self, folder: &FolderMapping, maps: &IdMapNamespaces) -> Result<(), StepFailure> {
        let bars = if folder.is_writable { MountRestrictions::WRITABLE } else { MountRestrictions::READ_ONLY };
        let top = self.bind(&folder.source, &folder.target, Some(bars), Some((folder, maps)))?;
        self.shown.push(ShownFolder { target: folder.target.clone(), top });
        Ok(())
    }

    /// Mounts the host's `source` at `target` in the sandbox. Returns the mount.
    fn bind(
        &self,
        source: &Path,
        target: &Path,
        bars: Option<MountRestrictions>,
        owned: Option<(&FolderMapping, &IdMapNamespaces)>,
    ) -> Result<OwnedFd, StepFailure> {
        let step = || format!("mount `{}`", target.display());
        let source = mount::open_exactly(source).step(step)?;
        let is_folder = FileType::from_raw_mode(fstat(&source).step(step)?.st_mode) == FileType::Directory;
        let tree = mount::copy(source).step(step)?;
        if let Some(map) = owned.and_then(|(folder, maps)| maps.get(folder.owner)) {
            match mount::map_ids(&tree, map) {
                Ok(()) => {}
                // World-readable files can still be read.
                Err(_) if owned.is_some_and(|(folder, _)| !folder.is_writable) => {}
                Err(error) => {
                    return Err(StepFailure::new(
                        format!("show the files of `{}` as the run's own", target.display()),
                        format!(
                            "{error}; its file system cannot map ids, so Toolstead must run as an ordinary user there"
                        ),
                    ));
                }
            }
        }
        if let Some(bars) = bars {
            mount::bar(&tree, bars).step(step)?;
        }
        mount::attach(&tree, self.place(target, is_folder)?).step(step)?;
        Ok(tree)
    }

    /// Makes a path read-only, except the folders of the machine that are shown within it.
    pub(super) fn seal(&mut self, path: &Path, place: impl AsFd) -> io::Result<()> {
        let tree = sealed(place)?;
        for shown in &mut self.shown {
            let Ok(rest) = shown.target.strip_prefix(path) else { continue };
            if rest == Path::new("") {
                shown.top = tree.try_clone()?;
                continue;
            }
            // A path that a rule hides has no place there, and stays hidden.
            let Ok(place) = mount::open_beneath(&tree, rest, OFlags::PATH) else { continue };
            let own = mount::copy(&shown.top)?;
            mount::attach(&own, place)?;
            shown.top = own;
        }
        Ok(())
    }

    /// Keeps the folders around protected paths from being moved, because rules do not match other paths.
    fn hold_folders_of(&self, request: &RunRequest) -> Result<(), StepFailure> {
        let mut around = BTreeSet::new();
        for path in request.hidden.iter().chain(&request.sealed) {
            if let Some((_, rest)) = self.holder_of(path) {
                let depth = rest.components().count();
                around.extend(path.ancestors().skip(1).take(depth.saturating_sub(1)));
            }
        }
        for folder in around {
            self.found(folder)
                .and_then(|place| self.held(place))
                .step(|| format!("hold `{}` in its place", folder.display()))?;
        }
        Ok(())
    }

    /// Makes a path read-only.
    fn close(&mut self, path: &Path) -> Result<(), StepFailure> {
        let step = || format!("make `{}` read-only", path.display());
        let tree = self.found(path).and_then(sealed).step(step)?;
        // The new mount contains copies of the mounts below the path and covers the originals.
        for shown in self.shown.iter_mut().filter(|shown| shown.target != path) {
            if let Ok(rest) = shown.target.strip_prefix(path) {
                shown.top = mount::open_beneath(&tree, rest, OFlags::PATH).step(step)?;
            }
        }
        self.covered(path, tree);
        Ok(())
    }

    /// Covers a path that the run must not read.
    fn hide(&mut self, path: &Path) -> Result<(), StepFailure> {
        let step = || format!("hide `{}`", path.display());
        let place = self.found(path).step(step)?;
        let is_folder = FileType::from_raw_mode(fstat(&place).step(step)?.st_mode) == FileType::Directory;
        let cover = root_sources::at(if is_folder { "nothing" } else { "no-file" });
        let tree = mount::open_exactly(&cover).and_then(mount::copy).step(step)?;
        mount::bar(&tree, MountRestrictions::READ_ONLY).step(step)?;
        mount::attach(&tree, place).step(step)?;
        self.covered(path, tree);
        Ok(())
    }

    /// Records the new topmost mount of a path, if the path is a folder of the machine that the run sees.
    fn covered(&mut self, path: &Path, mount: OwnedFd) {
        if let Some(shown) = self.shown.iter_mut().rev().find(|shown| shown.target == path) {
            shown.top = mount;
        }
    }

    /// Returns a handle to a path within the folders of the machine. The path was resolved a moment ago. If it does not
    /// exist now, it was moved, and the file that should be protected with it.
    pub(super) fn found(&self, path: &Path) -> io::Result<OwnedFd> {
        let Some((shown, rest)) = self.holder_of(path) else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not in a visible folder"));
        };
        // It may be a file, which contains no paths.
        if rest == Path::new("") {
            return shown.top.try_clone();
        }
        mount::open_beneath(&shown.top, rest, OFlags::PATH).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => io::Error::new(error.kind(), MovedPathError),
            _ => error,
        })
    }

    /// Returns the innermost folder of the machine that contains a path, and the rest of the path.
    fn holder_of<'b>(&self, path: &'b Path) -> Option<(&ShownFolder, &'b Path)> {
        self.shown.iter().rev().find_map(|shown| Some((shown, path.strip_prefix(&shown.target).ok()?)))
    }

    /// Returns a handle to a mount point at a path of the new root. On the run's own file systems a missing one is
    /// created; elsewhere it must exist. The folders around it are held in place.
    fn place(&self, path: &Path, is_folder: bool) -> Result<OwnedFd, StepFailure> {
        self.open_mount_point(path, is_folder, true)
    }

    fn open_mount_point(&self, path: &Path, is_folder: bool, holds: bool) -> Result<OwnedFd, StepFailure> {
        let step = || format!("make a place for `{}`", path.display());
        let (top, within, rest) = match self.holder_of(path) {
            Some((shown, rest)) => (&shown.top, PathBuf::new(), rest),
            None => {
                let (within, rest) = self.made_around(path).step(step)?;
                (&self.root, within, rest)
            }
        };
        let mut at = mount::open_beneath(top, &within, OFlags::PATH).step(step)?;
        let mut components = rest.components().peekable();
        while let Some(part) = components.next() {
            let Component::Normal(name) = part else {
                return Err(StepFailure::new(step(), "the path is not plain"));
            };
            let is_last = components.peek().is_none();
            at = self.entered(&at, Path::new(name), is_folder || !is_last).step(step)?;
            if holds && !is_last {
                at = self.held(at).step(step)?;
            }
        }
        Ok(at)
    }

    /// Returns the innermost folder around a path that is on the root itself, where no other process creates or moves
    /// anything, and the rest of the path from there. Creates missing folders.
    fn made_around<'b>(&self, path: &'b Path) -> io::Result<(PathBuf, &'b Path)> {
        let mut made = self.made.borrow_mut();
        let mut within = PathBuf::new();
        let mut rest = path.strip_prefix("/").unwrap_or(path);
        // A mount at the path itself will cover the folders created there.
        made.retain(|folder| !folder.starts_with(rest));
        loop {
            let mut parts = rest.components();
            let (Some(Component::Normal(name)), inner) = (parts.next(), parts.as_path()) else { break };
            if inner.as_os_str().is_empty() {
                break;
            }
            let folder = within.join(name);
            if !made.contains(&folder) {
                match mkdirat(&self.root, &folder, Mode::from_raw_mode(0o755)) {
                    // Something is mounted there, or it is a link.
                    Err(Errno::EXIST) => break,
                    done => done?,
                }
                made.insert(folder.clone());
            }
            (within, rest) = (folder, inner);
        }
        Ok((within, rest))
    }

    /// Returns the entry of a folder. A missing one is created if the folder is on the run's own file systems.
    fn entered(&self, folder: &OwnedFd, name: &Path, is_folder: bool) -> io::Result<OwnedFd> {
        let device = match mount::open_beneath(folder, name, OFlags::PATH) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => fstat(folder)?.st_dev,
            found => return found,
        };
        if device != self.own && Some(device) != self.scratch {
            return Err(io::ErrorKind::NotFound.into());
        }
        if is_folder {
            mkdirat(folder, name, Mode::from_raw_mode(0o755))?;
        } else {
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
            openat(folder, name, flags, Mode::from_raw_mode(0o644))?;
        }
        if Some(device) == self.scratch {
            root_sources::give(self.identity, folder, name)?;
        }
        mount::open_beneath(folder, name, OFlags::PATH)
    }

    /// Mounts a folder over itself, unless it is a mount already, because a mount point cannot be renamed. This is
    /// unnecessary in the root, which cannot be changed.
    fn held(&self, place: OwnedFd) -> io::Result<OwnedFd> {
        let found = statx(&place, "", AtFlags::EMPTY_PATH, StatxFlags::empty())?;
        if found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT) || fstat(&place)?.st_dev == self.own {
            return Ok(place);
        }
        let tree = mount::copy(&place)?;
        mount::attach(&tree, place)?;
        Ok(tree)
    }

    /// Returns a handle to a path within the folders of the machine. The path and the folders around it can no longer
    /// be moved.
    pub(super) fn pinned(&self, path: &Path) -> io::Result<OwnedFd> {
        let target = self.holder_of(path).map(|(shown, _)| shown.target.as_path());
        let around: Vec<&Path> = path.ancestors().take_while(|folder| Some(*folder) != target).collect();
        for folder in around.iter().rev() {
            self.held(self.found(folder)?)?;
        }
        self.found(path)
    }

    /// Makes this the root of the processes in this mount namespace. The old root is on top of it, and only paths with
    /// `..` lead there.
    pub(super) fn enter(&self) -> Result<(), StepFailure> {
        let step = || "leave the machine's root".to_owned();
        let top =
            openat(&self.root, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).step(step)?;
        mount::bar_alone(&top, MountRestrictions::READ_ONLY).step(step)?;
        fchdir(&top).step(step)?;
        pivot_root(".", ".").step(step)
    }

    /// Unmounts the old root.
    pub(super) fn leave_old(&self) -> Result<(), StepFailure> {
        let step = || "leave the machine's root".to_owned();
        unmount(".", UnmountFlags::DETACH).step(step)?;
        rustix::process::chdir("/").step(step)
    }
}

/// Mounts a path over itself, read-only. Returns the mount, which contains copies of the mounts below it and covers the
/// originals.
fn sealed(place: impl AsFd) -> io::Result<OwnedFd> {
    let tree = mount::copy(&place)?;
    mount::bar(&tree, MountRestrictions::READ_ONLY)?;
    mount::attach(&tree, place)?;
    Ok(tree)
}

/// Creates a terminal file system for this run.
fn terminals() -> io::Result<OwnedFd> {
    let context = fsopen("devpts", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&context, "ptmxmode", "0666")?;
    fsconfig_set_string(&context, "mode", "0620")?;
    fsconfig_create(&context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}
