//! Converts the permissions of a run to a request to the zygote. The runtime resolves every path itself.

use crate::sandbox::{
    launch::{ChildInput, LaunchError, LaunchSpec},
    offered_tools,
    persistent_home::{self, MountPointInHome},
    toolchains::{ToolchainFolderCollector, is_machine_path, is_system_path, toolchain_cache::LinkAndInterpreterCache},
    writable_roots::{PathKindCache, WritableRoots},
    zygote::request::{FolderMapping, Network, PrivateHomeFile, ProgramLocation, RunRequest},
};
use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs::{self, File, Metadata},
    io::{ErrorKind, Read},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};
use toolstead_domain::NetworkPolicy;

/// Program name that represents the runtime's own program.
pub(super) const OWN_PROGRAM: &str = "/proc/self/exe";
/// Private home of a run whose environment names no usable home.
pub(super) const PRIVATE_HOME: &str = "/home/user";
/// Git settings that are copied into a private home, if they exist.
const GIT_SETTINGS: [&str; 4] = [".gitconfig", ".config/git/config", ".config/git/ignore", ".config/git/attributes"];
/// Maximum size of a settings file, in bytes. A larger file is not copied.
const MAX_SETTINGS_BYTES: u64 = 256 << 10;

/// Settings of a launcher that apply to each of its runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct LauncherSettings<'a> {
    /// Home folder of the user.
    pub(super) own_home: Option<&'a Path>,
    /// `true` to reject a run without Landlock.
    pub(super) requires_landlock: bool,
}

/// Returns the request for a run. `program` is the path of the program that the specification names, `writable` has the
/// folders that this run and others write to, `others` those of the others, `links` the links found while searching the
/// program, `remembered` the lookups of earlier runs.
pub(super) fn request(
    spec: &LaunchSpec,
    program: &Path,
    writable: &WritableRoots,
    others: &WritableRoots,
    links: PathKindCache,
    remembered: &LinkAndInterpreterCache,
    of_launcher: LauncherSettings<'_>,
) -> Result<RunRequest, LaunchError> {
    let LauncherSettings { own_home, requires_landlock } = of_launcher;
    let policy = &spec.policy;
    let mut environment = policy.environment.clone();
    let mut tools = ToolchainFolderCollector::new(own_home, writable).over(links).remembering(remembered);
    tools.add_path(environment.get("PATH").map_or("", String::as_str));
    if policy.offers_tools {
        let path = environment.remove("PATH").unwrap_or_default();
        environment.insert("PATH".into(), format!("{}:{path}", offered_tools::FOLDER));
        environment.insert(offered_tools::VARIABLE.into(), offered_tools::SOCKET.into());
    }
    let program = if spec.program == OWN_PROGRAM {
        ProgramLocation::Own
    } else {
        tools.add_program(program);
        ProgramLocation::At(seen_at(program))
    };
    let mut folders = Vec::new();
    for (paths, is_writable) in [(&policy.read_roots, false), (&policy.write_roots, true)] {
        for path in paths {
            let source = resolve_root(path, others)?;
            if !is_plain(path) || is_system_path(&source) && is_writable || source == Path::new("/") {
                return Err(refused(path, "this folder cannot be shown to a confined program"));
            }
            if is_machine_path(path) || is_machine_path(&source) {
                let reason = "files of the kernel and of running services are not shown to a confined program; name a \
                              folder outside of `/proc`, `/sys`, `/dev` and `/run`";
                return Err(refused(path, reason));
            }
            // A root that is reached over a link is visible under both names.
            if source != *path {
                folders.push(folder(&source, path.clone(), is_writable, true)?);
            }
            folders.push(folder(&source, source.clone(), is_writable, true)?);
        }
    }
    // A link in a root is part of that root.
    let targets: Vec<PathBuf> = folders.iter().map(|folder| folder.target.clone()).collect();
    folders.retain(|folder| {
        folder.source == folder.target || !targets.iter().any(|root| is_linked_beneath(root, &folder.target))
    });
    let roots = folders.len();
    let mut links = tools.take_links();
    for path in tools.into_folders() {
        if !folders[..roots].iter().any(|root| path.starts_with(&root.target)) {
            folders.push(folder(&path, path.clone(), false, false)?);
        }
    }
    sort(&mut folders);
    let home = home(environment.get("HOME").map(Path::new), &folders);
    environment.insert("HOME".into(), home.path.to_string_lossy().into_owned());
    // Hidden paths are in the folders given to the run. A persistent home belongs to the run itself, wherever it is.
    let (hidden, sealed) =
        (visible_paths(&policy.hidden, &folders, &mut links)?, visible_paths(&policy.sealed, &folders, &mut links)?);
    let mut settings = if home.is_private { settings(own_home, writable, &mut links) } else { Vec::new() };
    let mut home = home.is_private.then_some(home.path);
    if let Some(lasting) = &policy.lasting_home
        && let Some(path) = home.take()
    {
        let made = persistent_home::prepare(lasting, &mount_points_in(&path, &folders), &std::mem::take(&mut settings));
        let source = made.map_err(|error| {
            let lasting = lasting.display();
            LaunchError::Confine(format!("make its home in `{lasting}`: {error}; you may delete what is there"))
        })?;
        folders.push(folder(&source, path, true, false)?);
        sort(&mut folders);
    }
    Ok(RunRequest {
        program,
        args: spec.args.clone(),
        environment,
        working_dir: spec.working_dir.clone(),
        own_home: own_home.and_then(|home| fs::canonicalize(home).ok()),
        settings,
        home,
        temporary: None,
        hidden,
        sealed,
        folders,
        session: policy.session.as_deref().map(str::to_owned),
        network: match &policy.network {
            NetworkPolicy::None => Network::Private,
            NetworkPolicy::Hosts(hosts) if hosts.is_empty() => Network::Private,
            NetworkPolicy::Hosts(_) => Network::Listener,
            NetworkPolicy::Host => Network::Host,
        },
        memory_bytes: policy.limits.memory_bytes,
        processes: policy.limits.processes.into(),
        file_bytes: policy.limits.file_bytes,
        terminal: matches!(spec.input, ChildInput::Terminal { .. }),
        requires_landlock,
        offers_tools: policy.offers_tools,
    })
}

/// Returns `true` if a path passes through a link in the root.
fn is_linked_beneath(root: &Path, path: &Path) -> bool {
    path.ancestors().take_while(|part| *part != root && part.starts_with(root)).any(Path::is_symlink)
}

/// Sorts outer folders first, so that inner ones are mounted on them. Of two folders at one path, the writable one is
/// last.
fn sort(folders: &mut [FolderMapping]) {
    folders.sort_by(|a, b| {
        let depth = |one: &FolderMapping| one.target.components().count();
        (depth(a), &a.target, a.is_writable).cmp(&(depth(b), &b.target, b.is_writable))
    });
}

/// Returns the mount points in a home, without those within another folder.
fn mount_points_in(home: &Path, folders: &[FolderMapping]) -> Vec<MountPointInHome> {
    let outermost = |folder: &&FolderMapping| {
        let holds = |other: &FolderMapping| {
            other.target != folder.target && folder.target.starts_with(&other.target) && other.target.starts_with(home)
        };
        !folders.iter().any(holds)
    };
    let place = |folder: &FolderMapping| {
        let path = folder.target.strip_prefix(home).ok().filter(|rest| *rest != Path::new(""))?;
        Some(MountPointInHome {
            path: path.to_owned(),
            is_folder: fs::metadata(&folder.source).is_ok_and(|found| found.is_dir()),
        })
    };
    folders.iter().filter(outermost).filter_map(place).collect()
}

/// Returns the real path of a root. It is resolved only this once and mounted as found, so a link that replaces it
/// later is not followed. Rejects a path that leaves a folder which other runs write to: one of them may have made it a
/// link, and this run would see files that were not granted to it.
fn resolve_root(path: &Path, others: &WritableRoots) -> Result<PathBuf, LaunchError> {
    let Some(way) = others.resolve(path) else {
        let reason = fs::canonicalize(path).err().map_or("its target does not exist".into(), |error| error.to_string());
        return Err(refused(path, &reason));
    };
    if way.is_run_controlled && !others.hold(&way.real) {
        let reason = "it contains a link out of the workspace that a command may have made; name the folder itself \
                      in the configuration";
        return Err(refused(path, reason));
    }
    Ok(way.real)
}

fn refused(path: &Path, reason: &str) -> LaunchError {
    LaunchError::Confine(format!("show `{}`: {reason}", path.display()))
}

/// Returns those of these paths that the run sees, as it sees them, under each of their names. An outer path precedes
/// those within it.
fn visible_paths(
    paths: &[PathBuf],
    folders: &[FolderMapping],
    links: &mut PathKindCache,
) -> Result<Vec<PathBuf>, LaunchError> {
    let mut seen = BTreeSet::new();
    for path in paths {
        let real = match links.real(path) {
            Ok(real) => real,
            // The path does not exist, or is a dangling link.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => continue,
            // A path that this user cannot access, and that is in no visible folder, is inaccessible to its runs as
            // well.
            Err(error) if error.kind() == ErrorKind::PermissionDenied && !folders.iter().any(|one| one.holds(path)) => {
                continue;
            }
            Err(error) => {
                return Err(LaunchError::Confine(format!("close `{}`, which a rule names: {error}", path.display())));
            }
        };
        for folder in folders {
            match real.strip_prefix(&folder.source) {
                Ok(rest) if rest.as_os_str().is_empty() => seen.insert(folder.target.clone()),
                Ok(rest) => seen.insert(folder.target.join(rest)),
                // The folder is within the protected path, so all of it is protected.
                Err(_) if folder.source.starts_with(&real) => seen.insert(folder.target.clone()),
                Err(_) => false,
            };
        }
    }
    Ok(seen.into_iter().collect())
}

impl FolderMapping {
    fn holds(&self, path: &Path) -> bool {
        path.starts_with(&self.source) || path.starts_with(&self.target)
    }
}

/// Returns the path of a program in the sandbox, with links in its folder resolved. The program itself may be a link,
/// because its name can matter to it.
fn seen_at(program: &Path) -> PathBuf {
    let folder = program.parent().and_then(|folder| fs::canonicalize(folder).ok());
    match (folder, program.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        _ => program.to_owned(),
    }
}

fn folder(source: &Path, target: PathBuf, is_writable: bool, is_root: bool) -> Result<FolderMapping, LaunchError> {
    let found = fs::metadata(source).map_err(|error| refused(source, &error.to_string()))?;
    Ok(FolderMapping { source: source.to_owned(), target, is_writable, owner: (found.uid(), found.gid()), is_root })
}

struct Home {
    path: PathBuf,
    is_private: bool,
}

/// Returns the home of a run: private, at the path from the environment, unless that is in one of the folders. Without
/// a usable path it is [`PRIVATE_HOME`].
fn home(named: Option<&Path>, folders: &[FolderMapping]) -> Home {
    let usable = named.filter(|home| {
        is_plain(home) && home.components().count() > 1 && !is_system_path(home) && !home.starts_with("/tmp")
    });
    let usable =
        usable.filter(|home| !["/proc", "/dev", "/sys", "/run", "/var"].iter().any(|own| *home == Path::new(own)));
    let Some(home) = usable else { return Home { path: PRIVATE_HOME.into(), is_private: true } };
    let is_private = !folders.iter().any(|folder| home.starts_with(&folder.target));
    Home { path: home.into(), is_private }
}

/// Reads the user's git settings. This excludes credential files, and files that runs can write to or replace by a
/// link.
fn settings(home: Option<&Path>, writable: &WritableRoots, links: &mut PathKindCache) -> Vec<PrivateHomeFile> {
    let read = |name: &&str| {
        let path = writable.resolve_outside(links, &home?.join(name))?;
        // Opening some devices has side effects.
        fs::metadata(&path).ok().filter(Metadata::is_file)?;
        // If the file was replaced by a pipe, opening it would otherwise wait for a writer.
        let flags = libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_NOFOLLOW;
        let file = File::options().read(true).custom_flags(flags).open(path).ok()?;
        file.metadata().ok().filter(|found| found.is_file() && found.len() <= MAX_SETTINGS_BYTES)?;
        let mut text = Vec::new();
        file.take(MAX_SETTINGS_BYTES).read_to_end(&mut text).ok()?;
        Some(PrivateHomeFile { path: PathBuf::from(*name), text })
    };
    GIT_SETTINGS.iter().filter_map(read).collect()
}

/// Returns `true` for an absolute path without `..`.
fn is_plain(path: &Path) -> bool {
    path.is_absolute() && !path.components().any(|part| part.as_os_str() == OsStr::new(".."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn settings_that_commands_can_redirect_or_write_are_not_copied() {
        let folder = tempfile::tempdir().unwrap();
        let home = fs::canonicalize(folder.path()).unwrap();
        for name in ["dotfiles", ".config/git", ".ssh", "mine"] {
            fs::create_dir_all(home.join(name)).unwrap();
        }
        for name in [".ssh/id", "dotfiles/ignore", "mine/attributes", ".config/git/config"] {
            fs::write(home.join(name), name).unwrap();
        }
        symlink("dotfiles/gitconfig", home.join(".gitconfig")).unwrap();
        symlink("../.ssh/id", home.join("dotfiles/gitconfig")).unwrap();
        symlink("../../dotfiles/ignore", home.join(".config/git/ignore")).unwrap();
        symlink("../../mine/attributes", home.join(".config/git/attributes")).unwrap();
        let copied = |roots: &[PathBuf]| -> Vec<String> {
            let copied = settings(Some(&home), &WritableRoots::new(roots), &mut PathKindCache::default());
            copied.into_iter().map(|one| String::from_utf8(one.text).unwrap()).collect()
        };
        assert_eq!(copied(&[]), [".ssh/id", ".config/git/config", "dotfiles/ignore", "mine/attributes"]);
        assert_eq!(copied(&[home.join("dotfiles")]), [".config/git/config", "mine/attributes"]);
        // The pipe has no writer.
        fs::remove_file(home.join(".config/git/config")).unwrap();
        let pipe = home.join(".config/git/config");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
        assert_eq!(copied(&[home.join("dotfiles")]), ["mine/attributes"]);
    }

    #[test]
    fn a_path_through_a_link_within_a_root_is_detected() {
        let folder = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(folder.path()).unwrap();
        fs::create_dir_all(top.join("root/inner/deep")).unwrap();
        symlink("inner", top.join("root/link")).unwrap();
        symlink("root", top.join("alias")).unwrap();
        for (root, path, expected) in [
            ("root", "root/link", true),
            ("root", "root/link/deep", true),
            ("root", "root/inner/deep", false),
            ("root", "root", false),
            ("alias", "alias", false),
            ("alias", "alias/inner", false),
            ("root", "alias/link", false),
        ] {
            assert_eq!(is_linked_beneath(&top.join(root), &top.join(path)), expected, "{root} {path}");
        }
    }

    #[test]
    fn a_restricted_folder_covers_every_path_under_which_its_contents_are_visible() {
        let folder = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(folder.path()).unwrap();
        fs::create_dir_all(top.join("data/work")).unwrap();
        let shown = |target: &str| super::folder(&top.join("data/work"), target.into(), true, true).unwrap();
        let folders = [shown("/a"), shown("/b")];
        for (closed, expected) in [
            ("data", vec!["/a", "/b"]),
            ("data/work", vec!["/a", "/b"]),
            ("data/work/missing", vec![]),
            ("elsewhere", vec![]),
        ] {
            let expected: Vec<PathBuf> = expected.into_iter().map(PathBuf::from).collect();
            assert_eq!(
                visible_paths(&[top.join(closed)], &folders, &mut PathKindCache::default()).unwrap(),
                expected,
                "{closed}"
            );
        }
    }
}
