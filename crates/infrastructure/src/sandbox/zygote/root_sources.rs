//! Sources of the roots of all runs: created once, on a file system in memory that only the zygote and its runs see. It
//! hides `/sys`, which no run sees anyway.

use super::{
    identity::PayloadUser,
    mount,
    request::{StepFailure, StepResultExt},
};
use rustix::fs::{AtFlags, CWD, FileType, Gid, Mode, OFlags, Uid, chownat, mkdirat, openat, symlinkat};
use std::{
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
};

/// Folder of the host over which the stage is mounted: a file system in memory that only the zygote and its runs see.
const STAGE: &str = "/sys";
/// Name of this program on the stage.
pub(super) const PROGRAM: &str = "program";
/// System folders. Missing ones are skipped.
pub(super) const SYSTEM_FOLDERS: [&str; 9] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/libo32", "/libexec"];
/// Maximum size of the `/tmp` and home of a session, or of one run without a session, in bytes.
pub(super) const SCRATCH_BYTES: u64 = 512 << 20;
/// Maximum number of files and folders in the `/tmp` and home of a session. Each takes about 1 KiB of kernel memory,
/// which no other limit counts.
const SCRATCH_ENTRIES: u64 = 1 << 17;
/// Devices that programs require. The terminal is the run's own, if it has one.
pub(super) const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
/// Entries of `/etc` that programs read and that contain no secret.
const SETTINGS: [&str; 54] = [
    "ImageMagick-6",
    "ImageMagick-7",
    "OpenCL",
    "R",
    "alternatives",
    "bash.bashrc",
    "bashrc",
    "ca-certificates",
    "ca-certificates.conf",
    "crypto-policies",
    "debian_version",
    "ethers",
    "fonts",
    "gai.conf",
    "ghc",
    "gitattributes",
    "gitconfig",
    "groff",
    "host.conf",
    "hosts",
    "inputrc",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "locale.alias",
    "locale.conf",
    "localtime",
    "lsb-release",
    "magic",
    "magic.mime",
    "mailcap",
    "manpath.config",
    "maven",
    "mime.types",
    "mke2fs.conf",
    "networks",
    "nsswitch.conf",
    "os-release",
    "papersize",
    "pki",
    "profile",
    "profile.d",
    "protocols",
    "redhat-release",
    "resolv.conf",
    "rpc",
    "services",
    "shells",
    "skel",
    "ssl",
    "terminfo",
    "texmf",
    "timezone",
    "vulkan",
];
/// Entries of `/etc` that each run has of its own.
pub(super) const OWN_SETTINGS: [&str; 3] = ["group", "hostname", "passwd"];
/// Files of `/proc` that describe the machine, or the process that reads them, and give access to nothing else.
const FACTS: [&str; 20] = [
    "cmdline",
    "cpuinfo",
    "devices",
    "diskstats",
    "filesystems",
    "loadavg",
    "meminfo",
    "mounts",
    "partitions",
    "self/cgroup",
    "self/limits",
    "self/maps",
    "self/mountinfo",
    "self/mounts",
    "self/stat",
    "self/status",
    "stat",
    "uptime",
    "version",
    "vmstat",
];
/// Prefixes of further settings, whose names contain a version.
const VERSIONED_SETTINGS: [&str; 6] = ["java", "jvm", "perl", "php", "python", "dotnet"];

/// Returns a path on the stage.
pub(super) fn at(name: &str) -> PathBuf {
    Path::new(STAGE).join(name)
}

/// Mounts the stage: a file system in memory with the sources of the roots of all runs. Called once, in the zygote.
pub(super) fn build(identity: &PayloadUser) -> Result<(), StepFailure> {
    let stage = mount::memory(16 << 20, 1 << 14, "755").step(|| "make a file system in memory".into())?;
    let place = mount::open_exactly(Path::new(STAGE)).step(|| format!("open `{STAGE}`"))?;
    mount::attach(&stage, place).step(|| format!("mount a file system in memory at `{STAGE}`"))?;
    for name in ["root", "scratch", "shared", "known", "etc", "dev", "dev/pts", "nothing"] {
        fs::create_dir(at(name)).step(|| format!("make `{name}` of the stage"))?;
    }
    for (name, mode) in [("nothing", 0), ("no-file", 0)] {
        if name == "no-file" {
            fs::write(at(name), "").step(|| format!("make `{name}` of the stage"))?;
        }
        fs::set_permissions(at(name), std::os::unix::fs::PermissionsExt::from_mode(mode))
            .step(|| format!("close `{name}` of the stage"))?;
    }
    // Separate mounts, so that each run can move them into its root.
    for name in ["etc", "dev"] {
        let step = || format!("mount `{name}` of the stage");
        let folder = mount::open_exactly(&at(name)).step(step)?;
        mount::copy(&folder).and_then(|tree| mount::attach(tree, folder)).step(step)?;
    }
    settings(identity)?;
    devices()?;
    // If this fails, only runs that require it are affected.
    if own_program().is_err() {
        let _ = fs::remove_file(at(PROGRAM));
    }
    Ok(())
}

/// Mounts this program on the stage, so that it remains available if its file is moved or replaced.
fn own_program() -> io::Result<()> {
    let path = fs::read_link("/proc/self/exe")?;
    let program = mount::open_exactly(&path)?;
    let (found, own) = (rustix::fs::fstat(&program)?, rustix::fs::stat("/proc/self/exe")?);
    if (found.st_dev, found.st_ino) != (own.st_dev, own.st_ino) {
        return Err(io::Error::other("its file was replaced by another program"));
    }
    fs::write(at(PROGRAM), "")?;
    mount::attach(mount::copy(program)?, mount::open_exactly(&at(PROGRAM))?)
}

fn settings(identity: &PayloadUser) -> Result<(), StepFailure> {
    let step = || "build `/etc`".to_owned();
    let (uid, gid) = (identity.uid, identity.gid);
    let users =
        format!("root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\nuser:x:{uid}:{gid}::/tmp:/bin/sh\n");
    fs::write(at("etc/passwd"), users).step(step)?;
    fs::write(at("etc/group"), format!("root:x:0:\nnogroup:x:65534:\nuser:x:{gid}:\n")).step(step)?;
    fs::write(at("etc/hostname"), "sandbox\n").step(step)?;
    for entry in fs::read_dir("/etc").step(step)?.flatten() {
        let name = entry.file_name();
        // An entry that this user cannot read, or a dangling link, is missing for its runs as well.
        if is_setting(&name) {
            let _ = setting(&name);
        }
    }
    Ok(())
}

/// Returns `true` if programs read this entry of `/etc` and it contains no secret.
pub(super) fn is_setting(name: &OsStr) -> bool {
    let is_known =
        |name: &str| SETTINGS.contains(&name) || VERSIONED_SETTINGS.iter().any(|prefix| name.starts_with(prefix));
    name.to_str().is_some_and(is_known)
}

/// Returns `true` if every run may read this path, whatever its roots are.
pub fn is_shown_to_all(path: &Path) -> bool {
    let first_of_etc = || path.strip_prefix("/etc").ok()?.iter().next();
    SYSTEM_FOLDERS.iter().any(|folder| path.starts_with(folder))
        || first_of_etc().is_some_and(|name| is_setting(name) || OWN_SETTINGS.iter().any(|own| name == *own))
        || path.strip_prefix("/proc").is_ok_and(|fact| FACTS.iter().any(|known| fact == Path::new(known)))
        || is_device(path)
}

/// Returns `true` if this is one of the devices that every run has.
pub fn is_device(path: &Path) -> bool {
    path.strip_prefix("/dev").is_ok_and(|name| DEVICES.iter().any(|known| name == Path::new(known)))
}

/// Adds one file or folder of `/etc` to the stage: as a link if it is stored below `/usr`, and else as a mount.
fn setting(name: &OsStr) -> io::Result<()> {
    let target = at("etc").join(name);
    let source = fs::canonicalize(Path::new("/etc").join(name))?;
    if source.starts_with("/usr") {
        return std::os::unix::fs::symlink(source, target);
    }
    if source.is_dir() {
        fs::create_dir(&target)?;
    } else {
        fs::write(&target, "")?;
    }
    let tree = mount::copy(mount::open_exactly(&source)?)?;
    mount::attach(tree, mount::open_exactly(&target)?)
}

fn devices() -> Result<(), StepFailure> {
    for name in DEVICES {
        let step = || format!("bind the device `{name}`");
        let target = at("dev").join(name);
        fs::write(&target, "").step(step)?;
        let device = mount::open_exactly(&Path::new("/dev").join(name)).step(step)?;
        if FileType::from_raw_mode(rustix::fs::fstat(&device).step(step)?.st_mode) != FileType::CharacterDevice {
            return Err(StepFailure::new(step(), "it is not a device"));
        }
        let tree = mount::copy(device).step(step)?;
        mount::attach(tree, mount::open_exactly(&target).step(step)?).step(step)?;
    }
    for (name, target) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
        ("shm", "/tmp"),
        ("ptmx", "pts/ptmx"),
    ] {
        symlinkat(target, CWD, at("dev").join(name)).step(|| format!("make `/dev/{name}`"))?;
    }
    Ok(())
}

/// Mounts an empty `/tmp` and home at a place on the stage.
pub(super) fn scratch(place: &Path, identity: &PayloadUser) -> Result<(), StepFailure> {
    let step = || "make a private `/tmp` and home".to_owned();
    let scratch = mount::memory(SCRATCH_BYTES, SCRATCH_ENTRIES, "755").step(step)?;
    mount::attach(&scratch, mount::open_exactly(place).step(step)?).step(step)?;
    let folder =
        openat(&scratch, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).step(step)?;
    for (name, mode) in [("tmp", 0o1777), ("home", 0o700)] {
        mkdirat(&folder, name, Mode::from_raw_mode(mode)).step(step)?;
        rustix::fs::chmodat(&folder, name, Mode::from_raw_mode(mode), AtFlags::empty()).step(step)?;
        give(identity, &folder, name).step(step)?;
    }
    Ok(())
}

/// Gives an entry to the payload's user.
pub(super) fn give(
    identity: &PayloadUser,
    folder: impl std::os::fd::AsFd,
    name: impl rustix::path::Arg,
) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(identity.uid), Gid::from_raw(identity.gid));
    Ok(chownat(folder, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?)
}
