//! The root that one run sees: nothing but what it may use.

use super::{
    identity::{IdMaps, Identity},
    mount::{self, Bars},
    request::{Failure, Folder, Request, Step},
    stage,
};
use rustix::{
    fs::{FileType, Mode, OFlags, fstat, mkdirat, openat, symlinkat},
    io::Errno,
    mount::{
        FsMountFlags, FsOpenFlags, MountAttrFlags, UnmountFlags, fsconfig_create, fsconfig_set_string, fsmount, fsopen,
        unmount,
    },
    process::{fchdir, pivot_root},
};
use std::{
    collections::BTreeSet,
    fs, io,
    os::fd::{AsFd, OwnedFd},
    path::{Component, Path},
};

/// Folders of `/proc` that change the machine.
const MACHINE_FILES: [&str; 4] = ["sys", "sysrq-trigger", "irq", "bus"];
/// The root holds no more than places where something is mounted.
const ROOT_BYTES: u64 = 8 << 20;

/// A root that is being built.
#[derive(Debug)]
pub(super) struct View<'a> {
    /// Its top.
    pub(super) root: OwnedFd,
    identity: &'a Identity,
    /// The file systems that belong to the run alone, where places can be made.
    own: [u64; 2],
}

impl<'a> View<'a> {
    /// Builds the root beside the old one. `scratch` is where the run's `/tmp` and home are mounted on the stage.
    pub(super) fn build(
        request: &Request,
        identity: &'a Identity,
        maps: &IdMaps,
        scratch: &Path,
    ) -> Result<Self, Failure> {
        let step = || "make a private root".to_owned();
        let root = mount::memory(ROOT_BYTES, "755").step(step)?;
        mount::attach(root, mount::open_exactly(&stage::at("root")).step(step)?).step(step)?;
        let root = mount::open_exactly(&stage::at("root")).step(step)?;
        let device = |path: &Path| Ok::<_, io::Error>(fstat(mount::open_exactly(path)?)?.st_dev);
        let own = [fstat(&root).step(step)?.st_dev, device(scratch).step(step)?];
        let view = Self { root, identity, own };
        view.system()?;
        for place in ["/tmp", "/var/tmp"] {
            view.bind(&scratch.join("tmp"), Path::new(place), Some(Bars::WRITABLE), None)?;
        }
        if let Some(home) = &request.home {
            view.bind(&scratch.join("home"), home, Some(Bars::WRITABLE), None)?;
            view.settings(request, home)?;
        }
        for folder in &request.folders {
            view.folder(folder, maps)?;
        }
        view.pin_folders_of(request)?;
        for sealed in &request.sealed {
            view.close(sealed)?;
        }
        for hidden in &request.hidden {
            view.hide(hidden)?;
        }
        Ok(view)
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
                    self.bind(Path::new(path), Path::new(path), Some(Bars::READ_ONLY), None)?
                }
                _ => {}
            }
        }
        self.bind(&stage::at("etc"), Path::new("/etc"), Some(Bars::READ_ONLY), None)?;
        self.bind(&stage::at("dev"), Path::new("/dev"), Some(Bars::READ_ONLY_DEVICES), None)?;
        let step = || "mount `/dev/pts`".to_owned();
        mount::attach(terminals().step(step)?, self.place(Path::new("/dev/pts"), true)?).step(step)?;
        self.place(Path::new("/run"), true)?;
        let step = || "mount `/proc`".to_owned();
        mount::attach(mount::processes().step(step)?, self.place(Path::new("/proc"), true)?).step(step)?;
        for name in MACHINE_FILES {
            let path = Path::new("proc").join(name);
            let step = || format!("make `/proc/{name}` read-only");
            match mount::open_beneath(&self.root, &path, OFlags::PATH) {
                Ok(place) => self.seal(&place).step(step)?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error).step(step),
            }
        }
        Ok(())
    }

    fn settings(&self, request: &Request, home: &Path) -> Result<(), Failure> {
        for file in &request.settings {
            let step = || format!("copy `{}` into the private home", file.path.display());
            let folder = self.place(&home.join(file.path.parent().unwrap_or(Path::new(""))), true)?;
            let name = file.path.file_name().unwrap_or_default();
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            match openat(&folder, name, flags, Mode::from_raw_mode(0o600)) {
                Ok(copy) => {
                    rustix::io::write(&copy, &file.text).step(step)?;
                    stage::give(self.identity, &folder, name).step(step)?;
                }
                // An earlier run of the session has it, and may have changed it.
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error).step(step),
            }
        }
        Ok(())
    }

    fn folder(&self, folder: &Folder, maps: &IdMaps) -> Result<(), Failure> {
        let bars = if folder.is_writable { Bars::WRITABLE } else { Bars::READ_ONLY };
        self.bind(&folder.source, &folder.target, Some(bars), Some((folder, maps)))
    }

    /// Shows what stands on the host at `source` in the sandbox at `target`.
    fn bind(
        &self,
        source: &Path,
        target: &Path,
        bars: Option<Bars>,
        owned: Option<(&Folder, &IdMaps)>,
    ) -> Result<(), Failure> {
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
                    return Err(Failure {
                        step: format!("show the files of `{}` as the run's own", target.display()),
                        reason: format!(
                            "{error}; its file system cannot map ids, so Toolstead must run as an ordinary user there"
                        ),
                    });
                }
            }
        }
        if let Some(bars) = bars {
            mount::bar(&tree, bars).step(step)?;
        }
        mount::attach(tree, self.place(target, is_folder)?).step(step)
    }

    /// Mounts something over itself, read-only.
    pub(super) fn seal(&self, place: impl AsFd) -> io::Result<()> {
        let tree = mount::copy(&place)?;
        mount::bar(&tree, Bars::READ_ONLY)?;
        mount::attach(tree, place)
    }

    /// Keeps the folders around closed paths from being moved: under another name no rule would know what they hold.
    /// What something is mounted on cannot be renamed.
    fn pin_folders_of(&self, request: &Request) -> Result<(), Failure> {
        let mut around = BTreeSet::new();
        for path in request.hidden.iter().chain(&request.sealed) {
            let roots: Vec<_> = request.folders.iter().map(|folder| &folder.target).collect();
            let is_within = |folder: &&Path| roots.iter().any(|root| folder.starts_with(root) && folder != root);
            around.extend(path.ancestors().skip(1).take_while(is_within));
        }
        for folder in around {
            let step = || format!("hold `{}` in its place", folder.display());
            let Some(place) = self.found(folder).step(step)? else { continue };
            let tree = mount::copy(&place).step(step)?;
            mount::attach(tree, place).step(step)?;
        }
        Ok(())
    }

    /// Makes a path read-only. What is not there cannot be held.
    fn close(&self, path: &Path) -> Result<(), Failure> {
        let step = || format!("make `{}` read-only", path.display());
        match self.found(path).step(step)? {
            Some(place) => self.seal(place).step(step),
            None => Ok(()),
        }
    }

    /// The place at a path; `None` where nothing is.
    fn found(&self, path: &Path) -> io::Result<Option<OwnedFd>> {
        match mount::open_beneath(&self.root, path, OFlags::PATH) {
            Ok(place) => Ok(Some(place)),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Covers a path that the run must not read. What is not there needs no cover.
    fn hide(&self, path: &Path) -> Result<(), Failure> {
        let step = || format!("hide `{}`", path.display());
        let Some(place) = self.found(path).step(step)? else { return Ok(()) };
        let is_folder = FileType::from_raw_mode(fstat(&place).step(step)?.st_mode) == FileType::Directory;
        let cover = stage::at(if is_folder { "nothing" } else { "no-file" });
        let tree = mount::open_exactly(&cover).and_then(mount::copy).step(step)?;
        mount::bar(&tree, Bars::READ_ONLY).step(step)?;
        mount::attach(tree, place).step(step)
    }

    /// The place at a path of the new root. On the run's own file systems it is made where it is missing; elsewhere it
    /// must be there.
    fn place(&self, path: &Path, is_folder: bool) -> Result<OwnedFd, Failure> {
        let step = || format!("make a place for `{}`", path.display());
        let mut at = mount::open_beneath(&self.root, Path::new("."), OFlags::PATH).step(step)?;
        let mut components = path.components().filter(|part| !matches!(part, Component::RootDir)).peekable();
        while let Some(part) = components.next() {
            let Component::Normal(name) = part else {
                return Err(Failure { step: step(), reason: "the path is not plain".into() });
            };
            let next = match mount::open_beneath(&at, Path::new(name), OFlags::PATH) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let device = fstat(&at).step(step)?.st_dev;
                    if !self.own.contains(&device) {
                        return Err(error).step(step);
                    }
                    if is_folder || components.peek().is_some() {
                        mkdirat(&at, name, Mode::from_raw_mode(0o755)).step(step)?;
                    } else {
                        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
                        openat(&at, name, flags, Mode::from_raw_mode(0o644)).step(step)?;
                    }
                    if device == self.own[1] {
                        stage::give(self.identity, &at, name).step(step)?;
                    }
                    mount::open_beneath(&at, Path::new(name), OFlags::PATH)
                }
                found => found,
            };
            at = next.step(step)?;
        }
        Ok(at)
    }

    /// Makes this the root of the process, and lets go of the old one.
    pub(super) fn enter(&self) -> Result<(), Failure> {
        let step = || "leave the machine's root".to_owned();
        let top =
            openat(&self.root, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).step(step)?;
        mount::bar_alone(&top, Bars::READ_ONLY).step(step)?;
        fchdir(&top).step(step)?;
        pivot_root(".", ".").step(step)?;
        unmount(".", UnmountFlags::DETACH).step(step)?;
        rustix::process::chdir("/").step(step)
    }
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
