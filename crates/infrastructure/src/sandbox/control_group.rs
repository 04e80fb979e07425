//! Control groups (cgroup v2), if they are available: they limit and kill all processes of a run together.
//!
//! ```text
//! place                 where this process may make groups
//!   └─ toolstead-…      of one process that starts runs, locked for as long as it lives
//!        └─ 1, 2, …     of one run: its program and all that comes of it
//! ```
//!
//! The init of a run is outside of its group, because it cleans up the workspace after the kernel has killed the
//! processes in the group.

mod parent_group;

use parent_group::ParentGroup;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{AtFlags, CWD, FlockOperation, Mode, OFlags, flock, fstat, mkdirat, openat, statat, unlinkat},
    io::Errno,
};
use serde::{Deserialize, Serialize};
use std::{
    fmt,
    fs::{self, File},
    io::{self, Read, Seek, Write},
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd},
    path::Path,
    thread,
    time::Duration,
};

/// Prefix of the names of the control groups that Toolstead creates for its processes.
const PREFIX: &str = "toolstead-";
/// Maximum number of checks whether killed processes have ended. A process that has not may hang in the kernel.
const LOOKS: u32 = 100;
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// Groups of one process that starts runs. They are removed when the value is dropped.
#[derive(Debug)]
pub(super) struct ControlGroups {
    parent: OwnedFd,
    name: String,
    /// Folder of the groups. It is locked, so that no other process removes it as abandoned.
    folder: OwnedFd,
    bounds: SupportedLimits,
    runs: Vec<TrackedControlGroup>,
    created_count: u64,
}

/// Resources that groups can limit on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SupportedLimits {
    /// `true` if the memory of all processes of a run together is limited, including shared memory.
    pub memory: bool,
    /// `true` if the number of processes of a run is limited.
    pub processes: bool,
    /// Reason why one of the limits is missing.
    lacks: Option<String>,
}

/// Control group that was created for a run.
#[derive(Debug)]
struct TrackedControlGroup {
    name: String,
    /// Process descriptor of the init of the run. `None` if no init was started.
    init: Option<OwnedFd>,
}

/// Limits of one run as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ControlGroupLimits {
    pub(super) memory_bytes: u64,
    pub(super) processes: u64,
}

/// Group of one run, as its init holds it.
#[derive(Debug)]
pub(super) struct ControlGroupHandle {
    folder: OwnedFd,
    kill: File,
    /// File with the events of the group's memory limit; `None` if the memory is not limited.
    memory: Option<File>,
}

/// Scope of the memory that was exhausted when the kernel killed a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OutOfMemoryCause {
    /// The memory of the run itself: all its processes together reached this limit, in bytes.
    OfRun(u64),
    /// The memory of the machine, or of the service or container that Toolstead runs in.
    OfMachine,
}

impl fmt::Display for OutOfMemoryCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OfRun(bytes) => {
                let most = bytes >> 20;
                write!(f, "all its processes together used {most} MiB of memory, the limit in `limits.memory_bytes`")
            }
            Self::OfMachine => f.write_str("the machine, or the service or container of Toolstead, had no memory left"),
        }
    }
}

/// Returns the resources that groups can limit, by creating one and removing it again.
///
/// # Errors
/// The reason why runs have no groups.
pub fn tried() -> Result<SupportedLimits, String> {
    ControlGroups::found().map(|groups| groups.bounds.clone())
}

impl fmt::Display for SupportedLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.memory, self.processes) {
            (true, true) => "memory and processes",
            (true, false) => "memory",
            (false, true) => "processes",
            (false, false) => "no resources, but all processes end at once",
        })?;
        self.lacks.iter().try_for_each(|reason| write!(f, " ({reason})"))
    }
}

impl ControlGroups {
    /// Creates the folder of this process at the place where groups can limit the most, and removes abandoned groups at
    /// all places that it tries.
    ///
    /// # Errors
    /// The reason why there is no such place.
    pub(super) fn found() -> Result<Self, String> {
        let places = ParentGroup::all()?;
        let mut first: Option<Self> = None;
        let mut reason = None;
        for place in &places {
            match Self::at(place) {
                Ok(groups) if groups.bounds.is_complete() => return Ok(groups),
                Ok(groups) if first.as_ref().is_none_or(|first| first.bounds.rank() < groups.bounds.rank()) => {
                    first = Some(groups);
                }
                Ok(_) => {}
                Err(error) => drop(reason.get_or_insert_with(|| format!("`{}`: {error}", place.path.display()))),
            }
        }
        first.ok_or_else(|| reason.unwrap_or_else(|| "no cgroup is available for them".into()))
    }

    fn at(place: &ParentGroup) -> io::Result<Self> {
        let folder = opened(CWD, &place.path)?;
        // A process that moves processes into a group must be able to write this file.
        openat(&folder, "cgroup.procs", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
        sweep(&folder, &place.path);
        let lacks = place.enable_controllers(&folder);
        let (name, own) = create_locked_folder(&folder)?;
        let mut groups = Self {
            parent: folder,
            name,
            folder: own,
            bounds: SupportedLimits { memory: false, processes: false, lacks: None },
            runs: Vec::new(),
            created_count: 0,
        };
        let kind = text(&groups.folder, "cgroup.type")?;
        if kind.trim() != "domain" {
            return Err(io::Error::other(format!("groups there are of the type `{}`", kind.trim())));
        }
        statat(&groups.folder, "cgroup.kill", AtFlags::empty())
            .map_err(|error| named("this kernel is older than Linux 5.14: `cgroup.kill`", &error.into()))?;
        let own_lacks = parent_group::enable(&groups.folder);
        let has = text(&groups.folder, parent_group::ENABLED)?;
        let has = |name| has.split_whitespace().any(|one| one == name);
        groups.bounds = SupportedLimits { memory: has("memory"), processes: has("pids"), lacks: None };
        if !groups.bounds.is_complete() {
            groups.bounds.lacks = lacks.or(own_lacks);
        }
        Ok(groups)
    }

    /// Creates the group of a run, without limits.
    pub(super) fn make(&mut self) -> io::Result<ControlGroupHandle> {
        self.created_count += 1;
        let name = self.created_count.to_string();
        mkdirat(&self.folder, name.as_str(), Mode::from_raw_mode(0o755))?;
        let folder = opened(&self.folder, &name);
        self.runs.push(TrackedControlGroup { name, init: None });
        let folder = folder?;
        let kill = file(&folder, "cgroup.kill", OFlags::WRONLY)?;
        let memory = self.bounds.memory.then(|| file(&folder, "memory.events", OFlags::RDONLY)).transpose()?;
        Ok(ControlGroupHandle { folder, kill, memory })
    }

    /// Sets the limits of the group of a run.
    ///
    /// # Errors
    /// If one of the limits cannot be set. The run must not start then.
    pub(super) fn bound(&self, group: &ControlGroupHandle, limits: ControlGroupLimits) -> io::Result<()> {
        self.bounds.set(&group.folder, limits)
    }

    /// Assigns the last created group to this init.
    pub(super) fn belongs_to(&mut self, init: OwnedFd) {
        if let Some(run) = self.runs.last_mut() {
            run.init = Some(init);
        }
    }

    /// Waits until one of these descriptors can be read, and removes the groups of runs that end meanwhile.
    pub(super) fn wait(&mut self, for_these: &[BorrowedFd<'_>]) {
        loop {
            // Processes of a group are killed with their init. Some may take a moment to end.
            let is_left = |run: &TrackedControlGroup| {
                run.init.as_ref().is_some_and(lives) || !is_removed(&self.folder, &run.name)
            };
            self.runs.retain(is_left);
            let lingers = self.runs.iter().any(|run| run.init.as_ref().is_none_or(|init| !lives(init)));
            let soon = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
            let mut events: Vec<_> =
                for_these.iter().map(|one| PollFd::from_borrowed_fd(*one, PollFlags::IN)).collect();
            let living = self.runs.iter().filter_map(|run| run.init.as_ref()).filter(|init| lives(init));
            events.extend(living.map(|init| PollFd::new(init, PollFlags::IN)));
            match poll(&mut events, lingers.then_some(&soon)) {
                Ok(_) if events[..for_these.len()].iter().all(|event| event.revents().is_empty()) => {}
                Err(Errno::INTR) => {}
                Ok(_) | Err(_) => return,
            }
        }
    }
}

impl Drop for ControlGroups {
    fn drop(&mut self) {
        // The next process removes what is left.
        clear(&self.parent, &self.name, &self.folder);
    }
}

impl SupportedLimits {
    const fn is_complete(&self) -> bool {
        self.memory && self.processes
    }

    fn rank(&self) -> u8 {
        2 * u8::from(self.memory) + u8::from(self.processes)
    }

    /// Sets the limits of a group.
    fn set(&self, group: &OwnedFd, limits: ControlGroupLimits) -> io::Result<()> {
        if self.memory {
            write(group, "memory.max", &limits.memory_bytes.to_string())?;
            // The kernel must kill all processes of the run together: the remaining ones would wait for the killed
            // ones.
            write(group, "memory.oom.group", "1")?;
            match write(group, "memory.swap.max", "0") {
                // This kernel has no swap.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                written => written?,
            }
        }
        if self.processes {
            write(group, "pids.max", &limits.processes.to_string())?;
        }
        Ok(())
    }
}

impl ControlGroupHandle {
    /// Returns the folder of the group, into which a process can be forked.
    pub(super) fn folder(&self) -> &OwnedFd {
        &self.folder
    }

    /// Kills all processes in the group at once.
    pub(super) fn kill(&self) {
        // If this fails, ending the namespace of the run kills the same processes one by one.
        let _ = (&self.kill).write_all(b"1");
    }

    /// Returns the descriptors that this value holds.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        [self.folder.as_raw_fd(), self.kill.as_raw_fd()].into_iter().chain(self.memory.as_ref().map(AsRawFd::as_raw_fd))
    }

    /// Returns whose memory was exhausted if the kernel killed the processes for that reason. `most` is the limit of
    /// the run, in bytes.
    pub(super) fn out_of_memory(&self, most: u64) -> Option<OutOfMemoryCause> {
        let mut events = self.memory.as_ref()?;
        let mut text = String::new();
        events.rewind().and_then(|()| events.read_to_string(&mut text)).ok()?;
        ended_for(&text, most)
    }
}

/// Returns which memory limit made the kernel kill a process of a group, that of the run or that of the machine,
/// according to `memory.events` (cgroup-v2.rst); `None` if it killed none.
fn ended_for(events: &str, most: u64) -> Option<OutOfMemoryCause> {
    let count = |name: &str| {
        let line = events.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|count| count.trim().parse::<u64>().ok()).unwrap_or(0)
    };
    match (count("oom_kill"), count("oom")) {
        (0, _) => None,
        // Killed for a limit of an outer group.
        (_, 0) => Some(OutOfMemoryCause::OfMachine),
        _ => Some(OutOfMemoryCause::OfRun(most)),
    }
}

/// Creates and locks the control group of this process, and returns its name and its open folder.
fn create_locked_folder(place: &OwnedFd) -> io::Result<(String, OwnedFd)> {
    // The name is not random, because the state of the random generator is the same in all processes forked from this
    // one.
    let process = rustix::process::getpid().as_raw_nonzero();
    for name in (0..256).map(|number| format!("{PREFIX}{process}-{number}")) {
        match mkdirat(place, name.as_str(), Mode::from_raw_mode(0o755)) {
            // Left by a process that ended, or used by one with the same id in another process namespace.
            Err(Errno::EXIST) => continue,
            made => made?,
        }
        // Until it is locked, another process may remove it as abandoned.
        let Ok(folder) = opened(place, &name) else { continue };
        let is_locked = flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok();
        let there = statat(place, name.as_str(), AtFlags::SYMLINK_NOFOLLOW).map(|found| found.st_ino);
        if is_locked && there == fstat(&folder).map(|found| found.st_ino) {
            return Ok((name, folder));
        }
    }
    Err(io::Error::other("other Toolsteads remove what this one makes there"))
}

/// Removes the groups that Toolstead processes left when they ended, and kills the processes in them. Such a group is
/// recognized by its free lock.
fn sweep(place: &OwnedFd, path: &Path) {
    let names = fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.file_name());
    for name in names.filter_map(|name| name.into_string().ok()).filter(|name| name.starts_with(PREFIX)) {
        // A folder of another user may be impossible to open or remove.
        if let Ok(folder) = opened(place, &name)
            && flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok()
        {
            clear(place, &name, &folder);
        }
    }
}

/// Kills the processes in a folder of Toolstead, and removes it with its groups.
fn clear(place: &OwnedFd, name: &str, folder: &OwnedFd) {
    let _ = write(folder, "cgroup.kill", "1");
    let Ok(listed) = rustix::fs::Dir::read_from(folder) else { return };
    let inner = listed.flatten().filter(|entry| entry.file_type() == rustix::fs::FileType::Directory);
    let inner: Vec<String> = inner.filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned)).collect();
    for run in inner.iter().filter(|name| *name != "." && *name != "..") {
        wait_until_removed(folder, run);
    }
    wait_until_removed(place, name);
}

fn wait_until_removed(folder: &OwnedFd, name: &str) {
    for _ in 0..LOOKS {
        if is_removed(folder, name) {
            return;
        }
        thread::sleep(BETWEEN_LOOKS);
    }
}

/// Removes a group. If a process in it lives, kills the processes in it and returns `false`. Returns `true` also after
/// an error that another attempt would not change.
fn is_removed(folder: &OwnedFd, name: &str) -> bool {
    match unlinkat(folder, name, AtFlags::REMOVEDIR) {
        Err(Errno::BUSY) => {
            if let Ok(group) = opened(folder, name) {
                let _ = write(&group, "cgroup.kill", "1");
            }
            false
        }
        // Removed, or an error that another attempt would not change.
        Ok(()) | Err(_) => true,
    }
}

/// Returns `true` if the process has not ended.
fn lives(process: &OwnedFd) -> bool {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&at_once)), Ok(0))
}

fn opened(folder: impl AsFd, name: impl rustix::path::Arg) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(folder, name, flags, Mode::empty())?)
}

fn file(folder: &OwnedFd, name: &str, flags: OFlags) -> io::Result<File> {
    let opened = openat(folder, name, flags | OFlags::CLOEXEC, Mode::empty());
    opened.map(File::from).map_err(|error| named(&format!("`{name}`"), &error.into()))
}

fn text(folder: &OwnedFd, name: &str) -> io::Result<String> {
    let mut text = String::new();
    file(folder, name, OFlags::RDONLY)?.read_to_string(&mut text)?;
    Ok(text)
}

fn write(folder: &OwnedFd, name: &str, value: &str) -> io::Result<()> {
    let written = file(folder, name, OFlags::WRONLY)?.write_all(value.as_bytes());
    written.map_err(|error| named(&format!("write {value} to `{name}`"), &error))
}

fn named(what: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}

#[cfg(test)]
mod tests;
