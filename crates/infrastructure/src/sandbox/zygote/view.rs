//! The root that one run sees: nothing but what it may use.

mod offered;

use super::{
    identity::{IdMaps, Identity},
    mount::{self, Bars},
    request::{Failure, Folder, Moved, Request, Step},
    stage,
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

/// Folders of `/proc` that change the machine.
const MACHINE_FILES: [&str; 4] = ["sys", "sysrq-trigger", "irq", "bus"];
/// The root holds no more than places where something is mounted.
const ROOT_BYTES: u64 = 8 << 20;
const ROOT_ENTRIES: u64 = 1 << 14;

/// A root that is being built.
#[derive(Debug)]
pub(super) struct View<'a> {
    /// Its top.
    root: OwnedFd,
    identity: &'a Identity,
    /// The file system of the root, which is the run's alone.
    own: u64,
    /// That of `/tmp` and the home, which other runs of the session share. In it and in the root places can be made.
    scratch: Option<u64>,
    /// The folders of the root itself, without the slash before them, that were made around places. Nothing is mounted
    /// there.
    made: RefCell<BTreeSet<PathBuf>>,
    /// The folders of the machine, an outer one before what it holds.
    shown: Vec<Shown>,
}

/// A folder of the machine in the new root.
#[derive(Debug)]
struct Shown {
    target: PathBuf,
    /// Its topmost mount. What it holds is looked up from here: on the way from the root there may be folders that another
    /// run of the session renames at this moment.
    top: OwnedFd,
}

impl<'a> View<'a> {
    /// Begins the root beside the old one, with what all runs see.
    pub(super) fn begin(identity: &'a Identity) -> Result<Self, Failure> {
        let root = mount::memory(ROOT_BYTES, ROOT_ENTRIES, "755").step(|| "make a private root".into())?;
        let step = || "find the place of a private root".to_owned();
        let place = mount::open_exactly(&stage::at("root")).step(step)?;
        mount::attach(root, place).step(|| "mount a private root".into())?;
        let root = mount::open_exactly(&stage::at("root")).step(step)?;
        let own = fstat(&root).step(step)?.st_dev;
        let view = Self { root, identity, own, scratch: None, made: RefCell::default(), shown: Vec::new() };
        view.system()?;
        Ok(view)
    }

    /// Shows what this run sees beside that. `scratch` is where its `/tmp` and home are mounted on the stage.
    pub(super) fn show(&mut self, request: &Request, maps: &IdMaps, scratch: &Path) -> Result<(), Failure> {
        let device = |path: &Path| Ok::<_, io::Error>(fstat(mount::open_exactly(path)?)?.st_dev);
        self.scratch = Some(device(scratch).step(|| "find the session's `/tmp` and home".into())?);
        for place in ["/tmp", "/var/tmp"] {
            self.bind(&scratch.join("tmp"), Path::new(place), Some(Bars::WRITABLE), None)?;
        }
        if let Some(home) = &request.home {
            self.bind(&scratch.join("home"), home, Some(Bars::WRITABLE), None)?;
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
            // In their order, a path comes before what it holds, which is covered with it.
            if !last.is_some_and(|last| hidden.starts_with(last)) {
                self.hide(hidden)?;
                last = Some(hidden);
            }
        }
        Ok(())
    }

    fn system(&self) -> Result<(), Failure> {
        for path in stage::SYSTEM_FOLDERS {
            let step = || format!("mount `{path}`");
            match fs::symlink_metadata(path) {
                Ok(entry) if entry.is_symlink() => {
                    let target = fs::read_link(path).step(step)?;
                    symlinkat(target, &self.root, &path[1..]).step(step)?;
                }
                Ok(entry) if entry.is_dir() => {
                    self.bind(Path::new(path), Path::new(path), Some(Bars::READ_ONLY), None)?;
                }
                _ => {}
            }
        }
        self.take("etc", Bars::READ_ONLY)?;
        self.take("dev", Bars::READ_ONLY_DEVICES)?;
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

    /// Shows a folder of the stage. Its mounts, of which there are many, are moved: these here are the run's own copy
    /// already.
    fn take(&self, name: &str, bars: Bars) -> Result<(), Failure> {
        let step = || format!("mount `/{name}`");
        let tree = mount::open_exactly(&stage::at(name)).step(step)?;
        mount::bar(&tree, bars).step(step)?;
        mount::attach(tree, self.place(&Path::new("/").join(name), true)?).step(step)
    }

    /// Copies settings into the private home, as far as it takes them: an earlier run of the session has them already, or
    /// has put something else there, or has filled it.
    fn settings(&self, request: &Request, home: &Path) {
        for file in &request.settings {
            let folder = home.join(file.path.parent().unwrap_or(Path::new("")));
            let Ok(folder) = self.way(&folder, true, false) else { continue };
            let name = file.path.file_name().unwrap_or_default();
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let Ok(copy) = openat(&folder, name, flags, Mode::from_raw_mode(0o600)) else { continue };
            let copied = fs::File::from(copy).write_all(&file.text);
            if copied.and_then(|()| stage::give(self.identity, &folder, name)).is_err() {
                let _ = unlinkat(&folder, name, AtFlags::empty());
            }
        }
    }

    fn folder(&mut self, folder: &Folder, maps: &IdMaps) -> Result<(), Failure> {
        let bars = if folder.is_writable { Bars::WRITABLE } else { Bars::READ_ONLY };
        let top = self.bind(&folder.source, &folder.target, Some(bars), Some((folder, maps)))?;
        self.shown.push(Shown { target: folder.target.clone(), top });
        Ok(())
    }

    /// Shows what stands on the host at `source` in the sandbox at `target`. Returns the mount.
    fn bind(
        &self,
        source: &Path,
        target: &Path,
        bars: Option<Bars>,
        owned: Option<(&Folder, &IdMaps)>,
    ) -> Result<OwnedFd, Failure> {
        let step = || format!("mount `{}`", target.display());
        let source = mount::open_exactly(source).step(step)?;
        let is_folder = FileType::from_raw_mode(fstat(&source).step(step)?.st_mode) == FileType::Directory;
        let tree = mount::copy(source).step(step)?;
        if let Some(map) = owned.and_then(|(folder, maps)| maps.get(folder.owner)) {
            match mount::map_ids(&tree, map) {
                Ok(()) => {}
                // What can be read by everybody still can.
                Err(_) if owned.is_some_and(|(folder, _)| !folder.is_writable) => {}
                Err(error) => {
                    return Err(Failure::new(
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

    /// Makes what stands at a path read-only, save the folders of the machine that are shown within it.
    pub(super) fn seal(&mut self, path: &Path, place: impl AsFd) -> io::Result<()> {
        let tree = sealed(place)?;
        for shown in &mut self.shown {
            let Ok(rest) = shown.target.strip_prefix(path) else { continue };
            if rest == Path::new("") {
                shown.top = tree.try_clone()?;
                continue;
            }
            // What a rule hides has no place there, and stays hidden.
            let Ok(place) = mount::open_beneath(&tree, rest, OFlags::PATH) else { continue };
            let own = mount::copy(&shown.top)?;
            mount::attach(&own, place)?;
            shown.top = own;
        }
        Ok(())
    }

    /// Keeps the folders around closed paths from being moved: under another name no rule would know what they hold.
    fn hold_folders_of(&self, request: &Request) -> Result<(), Failure> {
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
    fn close(&mut self, path: &Path) -> Result<(), Failure> {
        let step = || format!("make `{}` read-only", path.display());
        let tree = self.found(path).and_then(sealed).step(step)?;
        // The copy holds copies of the mounts below the path, and has buried those.
        for shown in self.shown.iter_mut().filter(|shown| shown.target != path) {
            if let Ok(rest) = shown.target.strip_prefix(path) {
                shown.top = mount::open_beneath(&tree, rest, OFlags::PATH).step(step)?;
            }
        }
        self.covered(path, tree);
        Ok(())
    }

    /// Covers a path that the run must not read.
    fn hide(&mut self, path: &Path) -> Result<(), Failure> {
        let step = || format!("hide `{}`", path.display());
        let place = self.found(path).step(step)?;
        let is_folder = FileType::from_raw_mode(fstat(&place).step(step)?.st_mode) == FileType::Directory;
        let cover = stage::at(if is_folder { "nothing" } else { "no-file" });
        let tree = mount::open_exactly(&cover).and_then(mount::copy).step(step)?;
        mount::bar(&tree, Bars::READ_ONLY).step(step)?;
        mount::attach(&tree, place).step(step)?;
        self.covered(path, tree);
        Ok(())
    }

    /// Notes that a path has a new topmost mount.
    fn covered(&mut self, path: &Path, mount: OwnedFd) {
        if let Some(shown) = self.shown.iter_mut().rev().find(|shown| shown.target == path) {
            shown.top = mount;
        }
    }

    /// What stands at a path within the folders of the machine. The path was looked up a moment ago, so that one that
    /// leads nowhere has been moved, and with it what is to be closed.
    pub(super) fn found(&self, path: &Path) -> io::Result<OwnedFd> {
        let Some((shown, rest)) = self.holder_of(path) else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it lies in no folder that is shown"));
        };
        // It may be a file, which holds nothing.
        if rest == Path::new("") {
            return shown.top.try_clone();
        }
        mount::open_beneath(&shown.top, rest, OFlags::PATH).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => io::Error::new(error.kind(), Moved),
            _ => error,
        })
    }

    /// The innermost folder of the machine that a path lies in, and the rest of the path.
    fn holder_of<'b>(&self, path: &'b Path) -> Option<(&Shown, &'b Path)> {
        self.shown.iter().rev().find_map(|shown| Some((shown, path.strip_prefix(&shown.target).ok()?)))
    }

    /// The place at a path of the new root, where something is to be mounted. On the run's own file systems it is made
    /// where it is missing; elsewhere it must be there. The folders around it are held.
    fn place(&self, path: &Path, is_folder: bool) -> Result<OwnedFd, Failure> {
        self.way(path, is_folder, true)
    }

    fn way(&self, path: &Path, is_folder: bool, holds: bool) -> Result<OwnedFd, Failure> {
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
                return Err(Failure::new(step(), "the path is not plain"));
            };
            let is_last = components.peek().is_none();
            at = self.entered(&at, Path::new(name), is_folder || !is_last).step(step)?;
            if holds && !is_last {
                at = self.held(at).step(step)?;
            }
        }
        Ok(at)
    }

    /// The innermost folder around a path that stands on the root itself, where nobody else makes or moves anything, and the
    /// rest of the path from there.
    fn made_around<'b>(&self, path: &'b Path) -> io::Result<(PathBuf, &'b Path)> {
        let mut made = self.made.borrow_mut();
        let mut within = PathBuf::new();
        let mut rest = path.strip_prefix("/").unwrap_or(path);
        // What is mounted at the path itself covers what was made there.
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

    /// The entry of a folder; made where it is missing, if the folder is the run's own.
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
            stage::give(self.identity, folder, name)?;
        }
        mount::open_beneath(folder, name, OFlags::PATH)
    }

    /// Mounts a folder over itself, unless a mount stands there: what something is mounted on cannot be renamed. In the
    /// root, which cannot be changed, there is no need to.
    fn held(&self, place: OwnedFd) -> io::Result<OwnedFd> {
        let found = statx(&place, "", AtFlags::EMPTY_PATH, StatxFlags::empty())?;
        if found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT) || fstat(&place)?.st_dev == self.own {
            return Ok(place);
        }
        let tree = mount::copy(&place)?;
        mount::attach(&tree, place)?;
        Ok(tree)
    }

    /// What stands at a path within the folders of the machine. It and the folders around it cannot be moved from now on.
    pub(super) fn pinned(&self, path: &Path) -> io::Result<OwnedFd> {
        let target = self.holder_of(path).map(|(shown, _)| shown.target.as_path());
        let around: Vec<&Path> = path.ancestors().take_while(|folder| Some(*folder) != target).collect();
        for folder in around.iter().rev() {
            self.held(self.found(folder)?)?;
        }
        self.found(path)
    }

    /// Makes this the root of the processes that are in these mounts. The old one lies on top of it, where no path leads
    /// that is without `..`.
    pub(super) fn enter(&self) -> Result<(), Failure> {
        let step = || "leave the machine's root".to_owned();
        let top =
            openat(&self.root, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).step(step)?;
        mount::bar_alone(&top, Bars::READ_ONLY).step(step)?;
        fchdir(&top).step(step)?;
        pivot_root(".", ".").step(step)
    }

    /// Lets go of the old root.
    pub(super) fn leave_old(&self) -> Result<(), Failure> {
        let step = || "leave the machine's root".to_owned();
        unmount(".", UnmountFlags::DETACH).step(step)?;
        rustix::process::chdir("/").step(step)
    }
}

/// Mounts something over itself, read-only. Returns the mount, which holds copies of those below and has buried them.
fn sealed(place: impl AsFd) -> io::Result<OwnedFd> {
    let tree = mount::copy(&place)?;
    mount::bar(&tree, Bars::READ_ONLY)?;
    mount::attach(&tree, place)?;
    Ok(tree)
}

/// Terminals of the run's own.
fn terminals() -> io::Result<OwnedFd> {
    let context = fsopen("devpts", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&context, "ptmxmode", "0666")?;
    fsconfig_set_string(&context, "mode", "0620")?;
    fsconfig_create(&context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}
