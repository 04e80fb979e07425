//! The zygote's process: it waits for orders and forks inits.

use super::{
    filter::SyscallFilter,
    identity::{IdMapNamespaces, PayloadUser, unshare},
    init::{NamespaceInitInputs, limits, loopback_up},
    landlock_zygote::LandlockZygote,
    ready_init::ReadyInit,
    request::{
        Network, RunDescriptors, RunEvent, RunRequest, StepFailure, StepResultExt, ZygoteCommand, receive, report,
        send, unpacked,
    },
    root_sources,
    sessions::{SandboxSession, SandboxSessions, lives},
    spawner::{OwnProgramAndUmask, Spawner, landlock, set_up_zygote},
};
use crate::sandbox::{
    control_group::{ControlGroupLimits, ControlGroups},
    zygote::ConfinementLayers,
};
use landlock::ABI;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{FileType, Gid, Uid, fchown, fstat},
    mount::{MountPropagationFlags, UnmountFlags, mount_change, unmount},
    net::{AddressFamily, SocketFlags, SocketType, socketpair},
    process::{DumpableBehavior, Signal, getppid, set_dumpable_behavior, set_parent_process_death_signal},
};
use std::{
    fs::{self, File},
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::PathBuf,
};

/// Idle time after which the network of the next run is created.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 2_000_000 };
const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// Zygote of runs with namespaces.
struct NamespaceZygote {
    identity: PayloadUser,
    filter: SyscallFilter,
    landlock: Option<ABI>,
    settled: OwnProgramAndUmask,
    maps: IdMapNamespaces,
    /// Parent of control groups, if these can be created.
    groups: Option<ControlGroups>,
    sessions: SandboxSessions<SessionResources>,
    opened: u64,
    /// The init of the next run.
    ready: Option<ReadyInit>,
    /// An unused network for the next run with a network of its own. Creating one takes long.
    spare: Option<OwnedFd>,
    /// `true` if the previous network was used.
    is_spent: bool,
    /// Process of the last run's init. The resources of the next run are created once it has ended and no order is
    /// pending.
    parted: Option<OwnedFd>,
}

/// Resources that the runs of one session share.
struct SessionResources {
    /// Network, created with the first run that does not use the machine's.
    network: Option<OwnedFd>,
    scratch: PathBuf,
}

/// Serves orders on the socket, which is the standard input, and returns the exit code. With a folder for temporary
/// files, runs have no namespaces.
pub(super) fn serve(temporary: Option<PathBuf>) -> i32 {
    match temporary {
        None => serve_with(NamespaceZygote::prepare()),
        Some(folder) => serve_with(LandlockZygote::prepare(folder)),
    }
}

fn serve_with(zygote: Result<impl Spawner, StepFailure>) -> i32 {
    let socket = rustix::stdio::stdin();
    let mut zygote = match zygote {
        Ok(zygote) => zygote,
        Err(failure) => return i32::from(report(socket, &RunEvent::Failed(failure), &[]).is_err()),
    };
    if report(socket, &RunEvent::Started, &[]).is_err() {
        return 1;
    }
    loop {
        zygote.rest(socket);
        match receive(socket, 1) {
            Ok((bytes, _)) if bytes.is_empty() => {
                zygote.close();
                outlive_children();
                zygote.end();
                return 0;
            }
            Ok((_, descriptors)) => obey(&mut zygote, descriptors),
            Err(_) => return 1,
        }
    }
}

/// Waits a moment for the inits of runs that were just ended, so that they are gone when this process is. The kernel
/// kills the remaining ones with this process.
fn outlive_children() {
    for _ in 0..200 {
        // SAFETY: the call writes nowhere. The kernel reaps ended children, so it fails once none is left.
        if unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) } < 0 {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

fn obey(zygote: &mut impl Spawner, mut descriptors: Vec<OwnedFd>) {
    if descriptors.is_empty() {
        return;
    }
    let order = descriptors.remove(0);
    match unpacked(&order) {
        Ok(ZygoteCommand::Launch(request)) => {
            let Ok([socket, stdin, stdout, stderr]) = <[OwnedFd; 4]>::try_from(descriptors) else { return };
            // Only this descriptor keeps the socket open, so the runtime learns of every failure here.
            if let Err(failure) = zygote.launch(*request, order, &socket, [stdin, stdout, stderr]) {
                let _ = report(&socket, &RunEvent::Failed(failure), &[]);
            }
        }
        Ok(ZygoteCommand::Release(key)) => zygote.release(&key),
        Err(error) => {
            if let Some(socket) = descriptors.first() {
                let failure = StepFailure::new("read the order", error.to_string());
                let _ = report(socket, &RunEvent::Failed(failure), &[]);
            }
        }
    }
}

impl NamespaceZygote {
    fn prepare() -> Result<Self, StepFailure> {
        let step = || "start the sandbox's process".to_owned();
        set_parent_process_death_signal(Some(Signal::KILL)).step(step)?;
        if getppid().is_none() {
            return Err(StepFailure::new(step(), "the runtime has ended"));
        }
        let settled = set_up_zygote().step(step)?;
        let identity = PayloadUser::choose()?;
        // Called while `/sys` is visible. Groups are optional; `toolstead doctor` reports why they are missing.
        let groups = ControlGroups::found().ok();
        if identity.is_other {
            unshare(libc::CLONE_NEWNS).step(|| "make a mount namespace".into())?;
        } else {
            unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS).step(|| "make a user namespace".into())?;
            identity.map_itself()?;
        }
        set_dumpable_behavior(DumpableBehavior::NotDumpable).step(step)?;
        // Mounts of the machine appear here later as well. Mounts in this namespace are visible nowhere else.
        let propagation = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
        mount_change("/", propagation).step(|| "detach from the machine's mounts".into())?;
        root_sources::build(&identity)?;
        let filter = SyscallFilter::build(ConfinementLayers::All)
            .map_err(io::Error::other)
            .step(|| "build the filter of system calls".into())?;
        let (maps, sessions) = (IdMapNamespaces::default(), SandboxSessions::new());
        Ok(Self {
            identity,
            filter,
            landlock: landlock(),
            settled,
            maps,
            groups,
            sessions,
            opened: 0,
            ready: None,
            spare: None,
            is_spent: false,
            parted: None,
        })
    }

    /// Creates an init that waits for its run, in a control group if groups are available.
    fn fork_init(&mut self) -> Result<ReadyInit, StepFailure> {
        let group = self.groups.as_mut().map(ControlGroups::make).transpose().step(|| "make a control group".into())?;
        let namespaced = NamespaceInitInputs {
            identity: &self.identity,
            maps: &self.maps,
            filter: &self.filter,
            settled: &self.settled,
            landlock: self.landlock,
            group: None,
        };
        let ready = ReadyInit::fork(namespaced, group).step(|| "make the namespaces of a run".into())?;
        if let Some(groups) = &mut self.groups {
            groups.belongs_to(ready.process.try_clone().step(|| "duplicate the descriptor of a run".into())?);
        }
        Ok(ready)
    }

    /// Passes this run to the waiting init, with its limits, and returns that init. Creates an init if there is none or
    /// it is outdated.
    fn begin(&mut self, run: &RunDescriptors, limits: ControlGroupLimits) -> Result<ReadyInit, StepFailure> {
        let maps = self.maps.len();
        if let Some(ready) = self.ready.take().filter(|ready| ready.is_current(maps)) {
            self.bound(&ready, limits)?;
            // Fails only if the init was killed meanwhile.
            if ready.begin(run).is_ok() {
                return Ok(ready);
            }
        }
        let born = self.fork_init()?;
        self.bound(&born, limits)?;
        born.begin(run).step(|| "start a process".into())?;
        Ok(born)
    }

    fn bound(&self, ready: &ReadyInit, limits: ControlGroupLimits) -> Result<(), StepFailure> {
        match (&self.groups, &ready.group) {
            (Some(groups), Some(group)) => groups.bound(group, limits).step(|| "bound a control group".into()),
            _ => Ok(()),
        }
    }

    /// Returns an unused network: the spare one, or else a new one.
    fn network(&mut self) -> io::Result<OwnedFd> {
        self.spare.take().map_or_else(new_network, Ok)
    }

    /// Returns the index of the session, which becomes the last one in the list. Opens the session if it is new.
    fn session(&mut self, key: String) -> Result<usize, StepFailure> {
        if let Some(place) = self.sessions.known(&key) {
            return Ok(place);
        }
        if let Some(idle) = self.sessions.make_room()? {
            close_session(idle);
        }
        self.opened += 1;
        let scratch = root_sources::at("shared").join(self.opened.to_string());
        fs::create_dir(&scratch).step(|| "open a session".into())?;
        root_sources::scratch(&scratch, &self.identity)?;
        Ok(self.sessions.open(key, SessionResources { network: None, scratch }))
    }
}

fn close_session(session: SandboxSession<SessionResources>) {
    let _ = unmount(&session.shared.scratch, UnmountFlags::DETACH);
    let _ = fs::remove_dir(&session.shared.scratch);
}

impl Spawner for NamespaceZygote {
    fn launch(
        &mut self,
        request: RunRequest,
        order: OwnedFd,
        socket: &OwnedFd,
        streams: [OwnedFd; 3],
    ) -> Result<(), StepFailure> {
        if request.requires_landlock && self.landlock.is_none() {
            let reason = "this kernel has no Landlock, and `sandbox.require` requires it";
            return Err(StepFailure::new("restrict this process with Landlock", reason));
        }
        for folder in &request.folders {
            self.maps.provide(&self.identity, folder.owner)?;
        }
        give_streams(&self.identity, &streams, request.terminal).step(|| "give the streams to the program".into())?;
        let is_private = request.network != Network::Host;
        let limits = limits(&request);
        let session = request.session.map(|key| self.session(key)).transpose()?;
        let step = || "make a network".to_owned();
        let network = match session {
            _ if !is_private => None,
            None => {
                self.is_spent = true;
                Some(self.network().step(step)?)
            }
            Some(place) => {
                if self.sessions.list[place].shared.network.is_none() {
                    let made = self.network().step(|| "make the session's network".into())?;
                    self.sessions.list[place].shared.network = Some(made);
                }
                let known = self.sessions.list[place].shared.network.as_ref();
                known.map(OwnedFd::try_clone).transpose().step(step)?
            }
        };
        let scratch = session.map(|place| self.sessions.list[place].shared.scratch.clone());
        let socket_of_init = socket.try_clone().step(|| "start a process".into())?;
        let run = RunDescriptors { order, socket: socket_of_init, streams, network, scratch };
        let ReadyInit { pid, process, .. } = self.begin(&run, limits)?;
        drop(run);
        if let Some(place) = session {
            let known = process.try_clone().step(|| "duplicate the descriptor of a run".into())?;
            self.sessions.list[place].runs.push(known);
        }
        let born = RunEvent::Born { pid: pid.as_raw_nonzero().get() };
        let reported = report(socket, &born, &[process.as_fd()]).step(|| "report a start".into());
        self.parted = Some(process);
        reported
    }

    fn release(&mut self, key: &str) {
        if let Some(session) = self.sessions.take(key) {
            // The waiting init would keep mounts of the session alive.
            self.ready = None;
            close_session(session);
        }
    }

    fn rest(&mut self, until_read: BorrowedFd<'_>) {
        loop {
            let parted = self.parted.as_ref().map(AsFd::as_fd);
            let ready = self.ready.as_ref().map(|ready| ready.orders().as_fd());
            let awaited: Vec<_> = [until_read].into_iter().chain(parted).chain(ready).collect();
            match &mut self.groups {
                Some(groups) => groups.wait(&awaited),
                None => {
                    is_read_or(&awaited, None);
                }
            }
            // A new one is not created at once, because the cause may persist. The next run creates its own.
            if self.ready.take_if(|ready| ready.is_spoilt()).is_some() {
                continue;
            }
            // Pending orders come first.
            if self.parted.as_ref().is_none_or(lives) || is_read_or(&[until_read], Some(&AT_ONCE)) {
                return;
            }
            // Without a waiting init, the next run creates its own, and reports why that fails.
            if self.ready.is_none() {
                self.ready = self.fork_init().ok();
            }
            if self.is_spent {
                // A client that requests one run right after another does not have to wait for a network for a third.
                if is_read_or(&[until_read], Some(&PAUSE)) {
                    return;
                }
                self.is_spent = false;
                self.spare = new_network().ok();
            }
            self.parted = None;
        }
    }

    fn close(&mut self) {
        self.ready = None;
    }

    /// Does nothing, because the mounts of this process end with it.
    fn end(&mut self) {}
}

/// Gives pipes and terminals to the payload's user, which may also open them by name (`/dev/stderr`).
fn give_streams(identity: &PayloadUser, streams: &[OwnedFd; 3], is_terminal: bool) -> io::Result<()> {
    if !identity.is_other {
        return Ok(());
    }
    let (uid, gid) = (Uid::from_raw(identity.uid), Gid::from_raw(identity.gid));
    for stream in streams {
        // Any other stream is a device that everyone may open.
        if is_terminal || FileType::from_raw_mode(fstat(stream)?.st_mode) == FileType::Fifo {
            fchown(stream, Some(uid), Some(gid))?;
        }
    }
    Ok(())
}

/// Waits until one of the descriptors can be read or the time has passed. Returns `false` if the time has passed.
fn is_read_or(for_these: &[BorrowedFd<'_>], time: Option<&Timespec>) -> bool {
    let mut events: Vec<_> = for_these.iter().map(|one| PollFd::from_borrowed_fd(*one, PollFlags::IN)).collect();
    !matches!(poll(&mut events, time), Ok(0))
}

/// Creates a network with its loopback interface, in a child that passes it over and ends. This process stays in the
/// machine's network, which a run may request and to which it could not return.
fn new_network() -> io::Result<OwnedFd> {
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    // SAFETY: this process has one thread, so the child finds no lock held. The child reports only on the socket.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let handed = unshare(libc::CLONE_NEWNET)
            .and_then(|()| loopback_up())
            .and_then(|()| File::open("/proc/self/ns/net"))
            .and_then(|network| send(&theirs, b"n", &[network.as_fd()]))
            .or_else(|error| send(&theirs, error.to_string().as_bytes(), &[]));
        // SAFETY: the call touches no memory.
        unsafe { libc::_exit(i32::from(handed.is_err())) }
    }
    if child < 0 {
        return Err(io::Error::last_os_error());
    }
    drop(theirs);
    let (said, descriptors) = receive(&ours, 256)?;
    let failed = || io::Error::other(format!("no network namespace can be made: {}", String::from_utf8_lossy(&said)));
    descriptors.into_iter().next().ok_or_else(failed)
}
