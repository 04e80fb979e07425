//! Files that Landlock leaves accessible to a run without mounts, and requests that Landlock cannot enforce.
//!
//! Landlock grants rights to a folder and everything below it, and cannot revoke them for a part of that. Therefore a
//! run may change the contents of the folders and files in a write root, except those with protected names. It cannot
//! create, move or remove entries of the root itself.

use crate::sandbox::zygote::{
    mount,
    payload::AccessiblePath,
    protected::{MARKS, SETTINGS, START_FILES, is_home},
    request::{FolderMapping, Network, RunRequest, StepFailure, StepResultExt},
    root_sources::{DEVICES, OWN_SETTINGS, SYSTEM_FOLDERS, is_setting},
};
use landlock::{ABI, Access, AccessFs, BitFlags};
use rustix::fs::{FileType, OFlags, fstat};
use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs::{self, File},
    io::{self, ErrorKind, Read},
    os::fd::{AsFd, OwnedFd},
    path::{Component, Path, PathBuf},
};

/// Maximum number of entries of a write root, which are opened one by one.
const MAX_ENTRIES: usize = 10_000;
/// Maximum size of `.git` and similar files that contain a path.
const MAX_LEAD_BYTES: u64 = 8 << 10;
/// Paths that git acts on in a repository. A link at one of them could point to files that the run may change.
const OF_GIT: [&str; 9] = [
    ".git/hooks",
    ".git/config",
    ".git/config.worktree",
    ".git/commondir",
    ".git/remotes",
    ".git/branches",
    ".git/modules",
    ".git/worktrees",
    ".git/info",
];

fn refused(reason: String) -> StepFailure {
    StepFailure::new("confine without namespaces (tier 2)", reason)
}

/// Rejects requests that cannot be enforced whatever the folders contain.
pub(super) fn check(request: &RunRequest) -> Result<(), StepFailure> {
    match request.network {
        Network::Private => {}
        Network::Listener => {
            return Err(refused("there is no network, and `sandbox.network` names hosts; let it be empty".into()));
        }
        Network::Host => {
            let reason = "there is no network, and this program requires the machine's; an MCP server can run with \
                          the profile `strict`, or `open`";
            return Err(refused(reason.into()));
        }
    }
    if let Some(path) = request.hidden.first() {
        let reason = "it is in a folder that this program may read, but must not be read itself, which Landlock \
                      cannot enforce; narrow the roots, or remove the rule";
        return Err(refused(format!("`{}`: {reason}", path.display())));
    }
    let roots = || request.folders.iter().filter(|folder| folder.is_root);
    for outer in roots().filter(|folder| folder.is_writable) {
        if let Some(inner) =
            roots().find(|inner| inner.source != outer.source && inner.source.starts_with(&outer.source))
        {
            return Err(refused(format!(
                "the root `{}` is in the write root `{}`, and would have its rights; name only one of them",
                inner.source.display(),
                outer.source.display()
            )));
        }
    }
    Ok(())
}

/// Rejects folders that contain the folder for temporary files, which has the private files of other runs.
pub(super) fn check_beside(request: &RunRequest, temporary: &Path) -> Result<(), StepFailure> {
    match request.folders.iter().find(|folder| temporary.starts_with(&folder.source)) {
        Some(folder) => Err(refused(format!(
            "`{}` contains the folder for temporary files of all runs; change `TMPDIR` or narrow the roots",
            folder.source.display()
        ))),
        None => Ok(()),
    }
}

/// Opens the files and folders that the run may use. Rejects folders whose contents make a rule unenforceable.
pub(super) fn open(request: &RunRequest, abi: ABI) -> Result<Vec<AccessiblePath>, StepFailure> {
    let mut places = AccessiblePaths { list: Vec::new(), abi };
    let (read, look) = (AccessFs::from_read(abi), AccessFs::ReadFile | AccessFs::ReadDir);
    // No run may create devices.
    let all = AccessFs::from_all(abi) & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    for path in SYSTEM_FOLDERS {
        places.add_if_there(Path::new(path), read)?;
    }
    // The run sees the machine's files in place of the private ones that a run with namespaces has.
    for entry in fs::read_dir("/etc").step(|| "look at `/etc`".into())?.flatten() {
        if is_setting(&entry.file_name()) || OWN_SETTINGS.iter().any(|name| entry.file_name() == *name) {
            places.add_if_there(&entry.path(), look)?;
        }
    }
    for name in DEVICES {
        places.add_if_there(&Path::new("/dev").join(name), all & !AccessFs::Execute)?;
    }
    places.add_if_there(Path::new("/proc"), look)?;
    for path in request.temporary.iter().chain(&request.home) {
        places.add(path, all)?;
    }
    let writable: BTreeSet<&Path> =
        request.folders.iter().filter(|folder| folder.is_writable).map(|folder| folder.source.as_path()).collect();
    for folder in &request.folders {
        places.add(&folder.source, read)?;
    }
    let mut changed = Vec::new();
    let mut seen = BTreeSet::new();
    for folder in request.folders.iter().filter(|folder| folder.is_writable && seen.insert(folder.source.as_path())) {
        changed.extend(open_root(folder, is_home(folder, request), &writable)?);
    }
    for (path, handle) in changed {
        if let Some(sealed) = request.sealed.iter().find(|sealed| sealed.starts_with(&path) || path.starts_with(sealed))
        {
            let reason = "a rule forbids this program to change it, but it is in a folder that the program may \
                          change, which Landlock cannot enforce; narrow the roots, or remove the rule";
            return Err(refused(format!("`{}`: {reason}", sealed.display())));
        }
        let step = || format!("open `{}`", path.display());
        places.list.push(AccessiblePath::new(handle, all, abi).step(step)?);
    }
    Ok(places.list)
}

struct AccessiblePaths {
    list: Vec<AccessiblePath>,
    abi: ABI,
}

impl AccessiblePaths {
    /// Adds the target of a path, after links are resolved. Adds nothing if there is none or this user may not access
    /// it.
    fn add_if_there(&mut self, path: &Path, rights: BitFlags<AccessFs>) -> Result<(), StepFailure> {
        match fs::canonicalize(path) {
            Ok(path) => self.add(&path, rights),
            Err(_) => Ok(()),
        }
    }

    fn add(&mut self, path: &Path, rights: BitFlags<AccessFs>) -> Result<(), StepFailure> {
        let place = mount::open_exactly(path).and_then(|handle| AccessiblePath::new(handle, rights, self.abi));
        self.list.push(place.step(|| format!("open `{}`", path.display()))?);
        Ok(())
    }
}

/// Opens the folders and regular files in a write root that may be changed, which excludes protected names. If the root
/// is a file, opens the root itself. Fails if the root contains names that cannot be protected.
fn open_root(
    folder: &FolderMapping,
    is_home: bool,
    writable: &BTreeSet<&Path>,
) -> Result<Vec<(PathBuf, OwnedFd)>, StepFailure> {
    let path = &folder.source;
    let step = || format!("open `{}`", path.display());
    let root = mount::open_exactly(path).step(step)?;
    if kind(&root).step(step)? != FileType::Directory {
        return Ok(vec![(path.clone(), root)]);
    }
    check_names(&root, path, is_home)?;
    check_lead(path, writable)?;
    let mut open = Vec::new();
    for (count, entry) in fs::read_dir(path).step(step)?.enumerate() {
        if count >= MAX_ENTRIES {
            return Err(refused(format!("the write root `{}` holds more than {MAX_ENTRIES} entries", path.display())));
        }
        let name = entry.step(step)?.file_name();
        if is_protected(&name, is_home) {
            continue;
        }
        let entry = match mount::open_beneath(&root, Path::new(&name), OFlags::PATH) {
            Ok(entry) => entry,
            // The entry was removed, or it is a link, whose target has its own rights.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidInput) => continue,
            Err(error) => return Err(error).step(step),
        };
        if matches!(kind(&entry).step(step)?, FileType::Directory | FileType::RegularFile) {
            open.push((path.join(name), entry));
        }
    }
    Ok(open)
}

fn kind(handle: impl AsFd) -> io::Result<FileType> {
    Ok(FileType::from_raw_mode(fstat(handle)?.st_mode))
}

/// Returns `true` if an entry of a root is a protected name or may contain one.
fn is_protected(name: &OsStr, is_home: bool) -> bool {
    let first = |path: &'static str| path.split('/').next().unwrap_or(path);
    let names = SETTINGS.into_iter().chain(START_FILES.into_iter().filter(|_| is_home)).chain([".git"]);
    names.map(first).any(|one| name.eq_ignore_ascii_case(one))
}

/// Fails if a protected name is a link, whose target might be changed, or if the root itself is a repository.
fn check_names(root: &OwnedFd, path: &Path, is_home: bool) -> Result<(), StepFailure> {
    let names = SETTINGS.into_iter().chain(START_FILES.into_iter().filter(|_| is_home)).chain([".git"]).chain(OF_GIT);
    for name in names {
        match mount::open_beneath(root, Path::new(name), OFlags::PATH) {
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            Err(error) => return Err(error).step(|| format!("protect `{}`", path.join(name).display())),
        }
    }
    let is_there = |name: &str| fs::symlink_metadata(path.join(name)).is_ok();
    let [head, objects, refs, common] = MARKS;
    if is_there(head) && (is_there(common) || is_there(objects) && is_there(refs)) {
        let reason = "it is a git repository itself, whose hooks and settings Landlock cannot protect";
        return Err(refused(format!("the write root `{}`: {reason}", path.display())));
    }
    Ok(())
}

/// Fails if the file `.git` of a working tree points to a folder that the run may change.
fn check_lead(root: &Path, writable: &BTreeSet<&Path>) -> Result<(), StepFailure> {
    let file = root.join(".git");
    let Some(text) = lead(&file)? else { return Ok(()) };
    // Git does not read a file with another beginning.
    let Some(text) = text.strip_prefix("gitdir: ") else { return Ok(()) };
    let repository = plain(root, text.trim_end_matches(['\n', '\r']));
    check_repository(&file, &repository, writable)?;
    match lead(&repository.join("commondir"))? {
        Some(text) => check_repository(&file, &plain(&repository, text.trim_end_matches(['\n', '\r'])), writable),
        None => Ok(()),
    }
}

fn check_repository(file: &Path, repository: &Path, writable: &BTreeSet<&Path>) -> Result<(), StepFailure> {
    let real = match fs::canonicalize(repository) {
        Ok(real) => real,
        Err(error) if error.kind() == ErrorKind::NotFound => repository.to_owned(),
        Err(error) => return Err(error).step(|| format!("look at the repository of `{}`", file.display())),
    };
    let is_open = |path: &Path| {
        let rest = writable.iter().find_map(|root| path.strip_prefix(root).ok());
        rest.is_some_and(|rest| rest.components().next() != Some(Component::Normal(OsStr::new(".git"))))
    };
    if is_open(&real) || is_open(repository) || real != repository {
        return Err(refused(format!(
            "`{}` points to the repository `{}`, which is in a write root or behind a link, where Landlock cannot \
             protect its hooks and settings",
            file.display(),
            repository.display()
        )));
    }
    Ok(())
}

/// Returns the text of a regular file, if there is one.
fn lead(path: &Path) -> Result<Option<String>, StepFailure> {
    if !fs::symlink_metadata(path).is_ok_and(|found| found.is_file()) {
        return Ok(None);
    }
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_LEAD_BYTES).read_to_end(&mut text));
    read.step(|| format!("read `{}`", path.display()))?;
    Ok(Some(String::from_utf8_lossy(&text).into_owned()))
}

/// Joins a path to a folder and removes `.` and `..`.
fn plain(folder: &Path, path: &str) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in folder.join(path).components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}
