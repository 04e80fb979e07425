//! First process of one run. It builds the environment of the run, drops its rights, starts the payload, reaps orphans,
//! and ends all processes of the run when it ends.

use super::{
    filter::SyscallFilter,
    identity::{IdMapNamespaces, PayloadUser, clear_capabilities, drop_capabilities, unshare},
    payload::{AccessiblePath, PayloadConfinementInputs, confine, enter_folder, execute},
    protected::RunNameProtection,
    request::{
        Network, RunDescriptors, RunEvent, RunRequest, StepFailure, StepResultExt, ZygoteCommand, receive, report,
        send, unpacked,
    },
    root_sources,
    spawner::{OwnProgramAndUmask, block, forget_signals},
    view::RootBuilder,
};
use crate::sandbox::control_group::{ControlGroupHandle, ControlGroupLimits, OutOfMemoryCause};
use landlock::ABI;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::{Errno, retry_on_intr},
    net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with, socketpair},
    pipe::{PipeFlags, pipe_with},
    process::{
        DumpableBehavior, Pid, Signal, WaitOptions, WaitStatus, kill_process_group, set_dumpable_behavior,
        set_parent_process_death_signal, wait,
    },
    thread::{LinkNameSpaceType, move_into_link_name_space, sched_yield},
};
use std::{
    cell::Cell,
    collections::BTreeMap,
    fs::File,
    io::{self, Read, Write},
    net::{Ipv4Addr, SocketAddrV4},
    os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd},
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// Flag of clone(2). In the C library's headers its value does not fit its type.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// A typical order to launch a run, as JSON. It is parsed as a rehearsal before a run is requested.
const REHEARSED: &str = r#"{"Launch":{"program":{"At":"/usr/bin/true"},"args":["-c","true"],"environment":{"HOME":"/root",
    "PATH":"/usr/bin"},"working_dir":"/work","home":"/root","temporary":null,"own_home":"/root","settings":[{"path":".gitconfig",
    "text":[91,117,115,101,114,93]}],"folders":[{"source":"/work","target":"/work","is_writable":true,"owner":[0,0],
    "is_root":true}],"hidden":["/work/a"],"sealed":["/work/b"],"session":"a","network":"Private","memory_bytes":4294967296,
    "processes":512,"file_bytes":1073741824,"terminal":false,"requires_landlock":false,"offers_tools":false}}"#;
/// Maximum size of the proxy address that the payload receives, in bytes.
const MAX_ADDRESS_BYTES: usize = 64;

const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
/// Maximum number of processes that are reaped before the socket of the runtime is read again, however fast a run
/// starts and ends processes.
const REAPED_AT_ONCE: usize = 64;
/// Maximum time that a run continues after its payload while processes of it are left.
const TIME_FOR_LEFTOVERS: Duration = Duration::from_millis(500);
/// Maximum time that a run continues after its payload if the processes that are left can print nothing more. A process
/// that ends closes its files before it is gone.
const TIME_TO_BE_GONE: Duration = Duration::from_millis(200);

/// Inputs of a run.
#[derive(Debug)]
pub(super) struct RunInputs<'a> {
    pub(super) request: RunRequest,
    pub(super) streams: [OwnedFd; 3],
    pub(super) filter: &'a SyscallFilter,
    pub(super) settled: &'a OwnProgramAndUmask,
    pub(super) landlock: Option<ABI>,
}

/// Data that an init with namespaces inherits from the zygote, before it receives the order for its run.
#[derive(Debug)]
pub(super) struct NamespaceInitInputs<'a> {
    pub(super) identity: &'a PayloadUser,
    pub(super) maps: &'a IdMapNamespaces,
    pub(super) filter: &'a SyscallFilter,
    pub(super) settled: &'a OwnProgramAndUmask,
    pub(super) landlock: Option<ABI>,
    /// Control group of the run, where groups can be created.
    pub(super) group: Option<&'a ControlGroupHandle>,
}

/// Parts of an init that are the same for all runs, made before a run is requested.
struct InitParts<'a> {
    view: RootBuilder<'a>,
    payload: WaitingPayload,
    /// Socket on which the init sends the run to the payload.
    payload_socket: OwnedFd,
}

/// State of a run whose payload is ready to begin.
pub(super) struct PreparedRun<'a> {
    /// Listening sockets that are passed to the runtime.
    pub(super) listeners: Vec<OwnedFd>,
    /// Guard of protected names. `None` in a run without namespaces, where Landlock protects them.
    pub(super) protected: Option<RunNameProtection>,
    /// Control group of the payload.
    pub(super) group: Option<&'a ControlGroupHandle>,
    pub(super) payload: WaitingPayload,
}

/// A payload that was forked and is not running its program yet.
pub(super) struct WaitingPayload {
    process: Pid,
    begin: OwnedFd,
    /// Pipe that ends when the program runs. A failure is sent on it before that.
    failure_reader: OwnedFd,
}

/// Outcome of a payload.
struct PayloadEnd {
    code: i32,
    by_signal: bool,
    had_survivors: bool,
    out_of_memory: Option<OutOfMemoryCause>,
}

/// Runs an init, which `prepare` confines and fills with the files of the run. Reports the outcome of the run on the
/// socket. Returns the exit code of the init.
pub(super) fn run<'a>(
    birth: RunInputs<'a>,
    socket: &OwnedFd,
    signals: Result<OwnedFd, StepFailure>,
    prepare: impl FnOnce(&RunInputs<'a>) -> Result<PreparedRun<'a>, StepFailure>,
) -> i32 {
    let (signals, world) = match signals.and_then(|signals| Ok((signals, prepare(&birth)?))) {
        Ok(prepared) => prepared,
        Err(failure) => return send_final_report(socket, &RunEvent::Failed(failure)),
    };
    let PreparedRun { listeners, protected, group, payload } = world;
    // The payload may run from here on. Whatever happens, all its processes are ended and its changes of protected
    // names are undone.
    let lived = catch_unwind(AssertUnwindSafe(|| live(birth, socket, &signals, listeners, payload, group)));
    end_all(group);
    let aftermath = protected.as_ref().map(RunNameProtection::undo).unwrap_or_default();
    // A run that begins once this one is reported must not count it as running.
    drop(protected);
    match lived.unwrap_or(Ok(PayloadEnd::KILLED)) {
        Ok(PayloadEnd { code, by_signal, had_survivors, out_of_memory }) => {
            let code = send_final_report(
                socket,
                &RunEvent::Ended { code, by_signal, had_survivors, out_of_memory, aftermath },
            );
            // The runtime may be waiting for this processor, and the rest of the work here is not urgent.
            sched_yield();
            code
        }
        Err(mut failure) => {
            for line in aftermath.left.into_iter().chain(aftermath.undone) {
                failure.reason.push_str("; ");
                failure.reason.push_str(&line);
            }
            send_final_report(socket, &RunEvent::Failed(failure))
        }
    }
}

impl PayloadEnd {
    /// Outcome of a run that the runtime ended.
    const KILLED: Self = Self { code: libc::SIGKILL, by_signal: true, had_survivors: false, out_of_memory: None };
}

/// Starts the payload and serves it until it ends.
fn live(
    birth: RunInputs<'_>,
    socket: &OwnedFd,
    signals: &OwnedFd,
    listeners: Vec<OwnedFd>,
    payload: WaitingPayload,
    group: Option<&ControlGroupHandle>,
) -> Result<PayloadEnd, StepFailure> {
    let events = InitEventListener { socket, signals, payload: payload.process, is_read: Cell::new(false) };
    if !payload.begin(&events)? {
        return Ok(PayloadEnd::KILLED);
    }
    let RunInputs { request, streams, .. } = birth;
    // A reader of the output must see its end, and this process must not keep the zygote's socket open.
    drop(streams);
    close_standard_streams();
    let descriptors: Vec<_> = listeners.iter().map(AsFd::as_fd).collect();
    if report(socket, &RunEvent::Started, &descriptors).is_err() {
        return Ok(PayloadEnd::KILLED);
    }
    // These must close when the runtime closes its copies.
    drop(listeners);
    let Some(status) = attend(&events) else { return Ok(PayloadEnd::KILLED) };
    let (code, by_signal) = match status.terminating_signal() {
        Some(signal) => (signal, true),
        None => (status.exit_status().unwrap_or(0), false),
    };
    let is_killed = by_signal && code == libc::SIGKILL;
    let out_of_memory =
        group.filter(|_| is_killed).and_then(|group| group.out_of_memory(limits(&request).memory_bytes));
    Ok(PayloadEnd { code, by_signal, had_survivors: !is_alone_in_time(&events), out_of_memory })
}

/// Returns the limits of a run as a whole. A single process may use as much memory as the request says. The run may use
/// twice as much, so that the processes of a build each get a share. Its `/tmp` and home have a limit of their own, and
/// their contents count as memory of the run as well.
pub(super) fn limits(request: &RunRequest) -> ControlGroupLimits {
    let memory_bytes = request.memory_bytes.saturating_mul(2).saturating_add(root_sources::SCRATCH_BYTES);
    ControlGroupLimits { memory_bytes, processes: request.processes }
}

/// Closes the standard streams. The input of a zygote is its socket, and the other end must see when the zygote ends.
pub(super) fn close_standard_streams() {
    // SAFETY: the call touches no memory, and nothing in this process uses the three descriptors.
    unsafe { libc::syscall(libc::SYS_close_range, 0_u32, 2_u32, 0) };
}

fn send_final_report(socket: &OwnedFd, last: &RunEvent) -> i32 {
    i32::from(report(socket, last, &[]).is_err())
}

/// Returns a descriptor that can be read when a child has ended, or when this process is requested to end.
///
/// `is_asked` includes `SIGTERM`. That signal cannot reach the first process of a process namespace.
pub(super) fn signals(is_asked: bool) -> Result<OwnedFd, StepFailure> {
    signal_descriptor(is_asked).step(|| "receive signals of ended processes".into())
}

fn signal_descriptor(is_asked: bool) -> io::Result<OwnedFd> {
    let set = block(&[Signal::CHILD, Signal::TERM][..1 + usize::from(is_asked)]);
    // SAFETY: the set lives through the call; no handler is passed.
    unsafe {
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        let descriptor = libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        if descriptor < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(descriptor)) }
    }
}

impl<'a> NamespaceInitInputs<'a> {
    /// Returns the descriptors that this value holds open.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        let own_program = [self.settled.own_program.as_raw_fd()];
        own_program
            .into_iter()
            .chain(self.maps.descriptors())
            .chain(self.group.into_iter().flat_map(ControlGroupHandle::descriptors))
    }

    /// Waits on `orders` for a run, and serves it as its init, in namespaces of its own. The init is forked before its
    /// run is requested. Returns the exit code of the init.
    pub(super) fn run(&self, orders: OwnedFd) -> i32 {
        // Called before there are any children.
        let signals = signals(false);
        let begun = self.begin();
        rehearse();
        if !begun.as_ref().is_ok_and(|begun| begun.payload.lives_until(&orders)) {
            // On a failed start, the zygote creates another init for the next run. This init can only report the
            // reason.
            signal_peer(&orders);
        }
        let Some(RunDescriptors { order, socket, streams, network, scratch }) = RunDescriptors::receive(&orders) else {
            return 0;
        };
        drop(orders);
        let request = match read_request(&order) {
            Ok(request) => request,
            Err(failure) => return send_final_report(&socket, &RunEvent::Failed(failure)),
        };
        let birth = self.run_inputs(request, streams);
        run(birth, &socket, signals, |birth| self.prepare(birth, begun?, order, network, scratch.as_deref()))
    }

    fn run_inputs(&self, request: RunRequest, streams: [OwnedFd; 3]) -> RunInputs<'a> {
        RunInputs { request, streams, filter: self.filter, settled: self.settled, landlock: self.landlock }
    }

    fn begin(&self) -> Result<InitParts<'a>, StepFailure> {
        let step = || "start a process".to_owned();
        rustix::system::sethostname(b"sandbox").step(|| "name the machine".into())?;
        let (word, payload_word) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).step(step)?;
        // Only a process that may write to its group can be started in it.
        let payload = WaitingPayload::fork(self.group, |begun| self.payload(begun, &payload_word))?;
        Ok(InitParts { view: RootBuilder::begin(self.identity)?, payload, payload_socket: word })
    }

    /// Confines a payload while the init builds the root that both share, and starts its program. Returns only on
    /// failure.
    fn payload(&self, begun: &OwnedFd, word: &OwnedFd) -> StepFailure {
        let birth = match self.receive_run(word) {
            Ok(birth) => birth,
            Err(failure) => return failure,
        };
        let ready = || {
            drop_privileges(self.identity, drop_capabilities)?;
            signal_peer(word);
            Ok(())
        };
        let places = || {
            wait_for_peer(word, "see the root")?;
            let places = birth.landlock.map(|abi| AccessiblePath::within_mounts(&birth.request, abi)).transpose()?;
            Ok(places.unwrap_or_default())
        };
        payload(&birth, begun, ready, places)
    }

    /// Receives the run of the payload from the init, enters its network, and sets its proxy variables.
    fn receive_run(&self, word: &OwnedFd) -> Result<RunInputs<'a>, StepFailure> {
        unshare(libc::CLONE_NEWCGROUP).step(|| "hide the control groups".into())?;
        rehearse();
        let step = || "receive reports of the run".to_owned();
        let (said, descriptors) = receive(word, MAX_ADDRESS_BYTES).step(step)?;
        forget_signals();
        let mut descriptors = descriptors.into_iter();
        let mut next = || descriptors.next().ok_or_else(|| StepFailure::new(step(), "the init has ended"));
        let (order, streams) = (next()?, [next()?, next()?, next()?]);
        let mut request = read_request(&order)?;
        enter_network(request.network, descriptors.next().as_ref())?;
        if let Some(address) = std::str::from_utf8(&said).ok().and_then(|said| said.strip_prefix('o'))
            && !address.is_empty()
        {
            set_proxy_variables(address, &mut request.environment);
        }
        Ok(self.run_inputs(request, streams))
    }

    fn prepare(
        &self,
        birth: &RunInputs<'a>,
        begun: InitParts<'a>,
        order: OwnedFd,
        network: Option<OwnedFd>,
        scratch: Option<&Path>,
    ) -> Result<PreparedRun<'a>, StepFailure> {
        let InitParts { mut view, payload, payload_socket: word } = begun;
        let request = &birth.request;
        let listener = own_network(request.network, network.as_ref())?;
        let address = listener.as_ref().map_or(String::new(), |(_, address)| address.to_string());
        let descriptors = [&order].into_iter().chain(&birth.streams).chain(&network).map(AsFd::as_fd);
        // If the payload has ended, it has reported the reason.
        let _ = send(&word, format!("o{address}").as_bytes(), &descriptors.collect::<Vec<_>>());
        drop((order, network));
        let scratch = match scratch {
            Some(scratch) => scratch.to_owned(),
            None => own_scratch(self.identity)?,
        };
        view.show(request, self.maps, &scratch)?;
        let tools = request.offers_tools.then(|| view.offer_tools()).transpose()?;
        let protected = Some(RunNameProtection::guard(&mut view, request)?);
        // A user namespace cannot be created while another root is mounted on top of the process's own root.
        let _ = wait_for_peer(&word, "begin");
        view.enter()?;
        // From here on, every path of both processes is resolved in the new root.
        signal_peer(&word);
        view.leave_old()?;
        drop(view);
        // This process starts no program, so it does not need to clear the bounding set.
        drop_privileges(self.identity, clear_capabilities)?;
        // A change of the user clears the death signal.
        set_parent_process_death_signal(Some(Signal::KILL)).step(|| "hide from the payload".into())?;
        let listeners = listener.map(|(socket, _)| socket).into_iter().chain(tools).collect();
        Ok(PreparedRun { listeners, protected, group: self.group, payload })
    }
}

/// Parses a sample order. Code that runs for the first time after a fork takes several times as long, because its
/// memory and code have to be mapped first. No caller is waiting at this point.
fn rehearse() {
    let _ = serde_json::from_str::<ZygoteCommand>(REHEARSED);
}

/// Reads the request of a launch order.
fn read_request(order: &OwnedFd) -> Result<RunRequest, StepFailure> {
    let step = || "read the order".to_owned();
    match unpacked(order).step(step)? {
        ZygoteCommand::Launch(request) => Ok(*request),
        ZygoteCommand::Release(_) => Err(StepFailure::new(step(), "it does not request a run")),
    }
}

/// Drops all rights permanently. Used by the init and by the payload.
fn drop_privileges(identity: &PayloadUser, capabilities: fn() -> Result<(), StepFailure>) -> Result<(), StepFailure> {
    identity.assume()?;
    capabilities()?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable).step(|| "hide from the payload".into())
}

fn own_scratch(identity: &PayloadUser) -> Result<PathBuf, StepFailure> {
    let place = root_sources::at("scratch");
    root_sources::scratch(&place, identity)?;
    Ok(place)
}

/// Enters the network of the run. If the run has a proxy, returns a socket that listens in it, and its address.
fn own_network(kind: Network, own: Option<&OwnedFd>) -> Result<Option<(OwnedFd, SocketAddrV4)>, StepFailure> {
    enter_network(kind, own)?;
    if kind != Network::Listener {
        return Ok(None);
    }
    let step = || "listen for the proxy".to_owned();
    let listener =
        socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)
            .step(step)?;
    bind(&listener, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).step(step)?;
    listen(&listener, 128).step(step)?;
    let address = rustix::net::getsockname(&listener).step(step)?;
    Ok(Some((listener, SocketAddrV4::try_from(address).step(step)?)))
}

/// Enters the network of a run, unless that is the machine's network, which this process is in. Fails without a
/// descriptor: one may be lost in transit, and the run must not stay in the machine's network then.
fn enter_network(kind: Network, own: Option<&OwnedFd>) -> Result<(), StepFailure> {
    if kind == Network::Host {
        return Ok(());
    }
    let step = || "enter a network".to_owned();
    let own = own.ok_or_else(|| StepFailure::new(step(), "there is none for this run"))?;
    move_into_link_name_space(own.as_fd(), Some(LinkNameSpaceType::Network)).step(step)
}

/// Sets the environment variables that make a program use the proxy at this address.
fn set_proxy_variables(address: &str, environment: &mut BTreeMap<String, String>) {
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        for name in [name.to_owned(), name.to_lowercase()] {
            environment.insert(name, format!("http://{address}"));
        }
    }
    for name in ["NO_PROXY", "no_proxy"] {
        environment.insert(name.into(), "localhost,127.0.0.1,::1".into());
    }
}

/// Starts the loopback interface in the network of this process.
pub(super) fn loopback_up() -> io::Result<()> {
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    // SAFETY: an all-zero request is valid, its name ends with a null, and it lives through both calls.
    unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        for (to, from) in request.ifr_name.iter_mut().zip(c"lo".to_bytes()) {
            *to = from.cast_signed();
        }
        if libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFFLAGS, &raw mut request) != 0 {
            return Err(io::Error::last_os_error());
        }
        request.ifr_ifru.ifru_flags |= libc::c_short::try_from(libc::IFF_UP).unwrap_or(1);
        if libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

impl WaitingPayload {
    /// Forks the payload, into the control group if there is one. `life` returns only if the program could not be
    /// started, with the reason.
    pub(super) fn fork(
        group: Option<&ControlGroupHandle>,
        life: impl FnOnce(&OwnedFd) -> StepFailure,
    ) -> Result<Self, StepFailure> {
        let step = || "start a process".to_owned();
        let (failure_reader, tell) = pipe_with(PipeFlags::CLOEXEC).step(step)?;
        let (begun, begin) = pipe_with(PipeFlags::CLOEXEC).step(step)?;
        if let Some(process) = clone(group.map(ControlGroupHandle::folder)).step(step)? {
            return Ok(Self { process, begin, failure_reader });
        }
        drop((failure_reader, begin));
        // In every case of failure, this process must not continue as a second init.
        let failure = catch_unwind(AssertUnwindSafe(|| life(&begun)));
        if let Ok(failure) = failure {
            let _ = File::from(tell).write_all(&serde_json::to_vec(&failure).unwrap_or_default());
        }
        // SAFETY: the call touches no memory.
        unsafe { libc::_exit(127) }
    }

    /// Waits until a run is requested. Returns `false` if the payload ends before that.
    fn lives_until(&self, ordered: &OwnedFd) -> bool {
        let mut events = [PollFd::new(ordered, PollFlags::IN), PollFd::new(&self.failure_reader, PollFlags::IN)];
        while let Err(Errno::INTR) = poll(&mut events, None) {}
        !events[0].revents().is_empty()
    }

    /// Starts the program and waits until it runs. Returns `false` if the run is to end.
    fn begin(self, events: &InitEventListener<'_>) -> Result<bool, StepFailure> {
        let step = || "start a process".to_owned();
        let Self { begin, failure_reader, .. } = self;
        // Getting here may have taken long, and the runtime may no longer wait for the run.
        if events.listen(None, Some(&AT_ONCE)).is_none() {
            return Ok(false);
        }
        // A payload that has failed already sends its failure.
        let _ = rustix::io::write(&begin, b"b");
        drop(begin);
        loop {
            match events.listen(Some(&failure_reader), None) {
                Some(true) => break,
                Some(false) => {}
                None => return Ok(false),
            }
        }
        let mut failure = Vec::new();
        File::from(failure_reader).read_to_end(&mut failure).step(step)?;
        if failure.is_empty() {
            return Ok(true);
        }
        let unknown = |_| StepFailure::new(step(), "it ended before it began");
        Err(serde_json::from_slice(&failure).unwrap_or_else(unknown))
    }
}

/// Confines a payload and starts its program. `ready` drops its rights while the init continues; `places` returns the
/// files that Landlock leaves accessible. Returns only on failure.
pub(super) fn payload(
    birth: &RunInputs<'_>,
    begun: &OwnedFd,
    ready: impl FnOnce() -> Result<(), StepFailure>,
    places: impl FnOnce() -> Result<Vec<AccessiblePath>, StepFailure>,
) -> StepFailure {
    let confined = || {
        ready()?;
        // This step takes longest, and nothing after it needs a call that the filter refuses.
        birth.filter.apply().map_err(io::Error::other).step(|| "put the filter of system calls in place".into())?;
        let places = places()?;
        let (settled, landlock, streams) = (birth.settled, birth.landlock, &birth.streams);
        confine(&birth.request, &PayloadConfinementInputs { settled, landlock, places: &places, streams })?;
        wait_for_peer(begun, "begin")?;
        enter_folder(&birth.request)
    };
    match confined() {
        Ok(()) => execute(&birth.request, birth.settled),
        Err(failure) => failure,
    }
}

/// Signals the other process to continue. Has no effect if that process has ended.
fn signal_peer(word: &OwnedFd) {
    let _ = rustix::io::write(word, b"b");
}

/// Waits for the signal of the other process.
fn wait_for_peer(word: &OwnedFd, step: &str) -> Result<(), StepFailure> {
    match retry_on_intr(|| rustix::io::read(word, &mut [0; 1])).step(|| step.into())? {
        // An init that ends also ends this process.
        0 => Err(StepFailure::new(step, "the init has ended")),
        _ => Ok(()),
    }
}

/// Forks, into a control group if one is given. Returns `None` in the child.
fn clone(group: Option<&OwnedFd>) -> io::Result<Option<Pid>> {
    // SAFETY: all-zero is valid for the structure. Neither call shares memory, so it is a fork, and this process has
    // one thread, so the child finds no lock held.
    let child = unsafe {
        match group {
            Some(group) => {
                let mut arguments: libc::clone_args = std::mem::zeroed();
                arguments.flags = CLONE_INTO_CGROUP;
                arguments.cgroup = u64::try_from(group.as_raw_fd()).map_err(io::Error::other)?;
                arguments.exit_signal = u64::from(libc::SIGCHLD.unsigned_abs());
                libc::syscall(libc::SYS_clone3, &raw mut arguments, size_of::<libc::clone_args>())
            }
            // Filters of containers refuse the other call.
            None => libc::fork().into(),
        }
    };
    match i32::try_from(child) {
        Ok(0) => Ok(None),
        Ok(child @ 1..) => Ok(Pid::from_raw(child)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Events that an init waits for while its payload runs.
struct InitEventListener<'a> {
    socket: &'a OwnedFd,
    signals: &'a OwnedFd,
    payload: Pid,
    /// `true` if no reader waits for further output of the run.
    is_read: Cell<bool>,
}

impl InitEventListener<'_> {
    /// Waits for input from the runtime, from a child or in `also`, at most for `longest`, and forwards signals to the
    /// payload. Returns `true` if `also` can be read, `false` if not, and `None` if the run is to end.
    fn listen(&self, also: Option<&OwnedFd>, longest: Option<&Timespec>) -> Option<bool> {
        let all = [self.socket, self.signals].into_iter().chain(also);
        let mut events: Vec<_> = all.map(|one| PollFd::new(one, PollFlags::IN)).collect();
        match poll(&mut events, longest) {
            Ok(_) => {}
            Err(Errno::INTR) => return Some(false),
            Err(_) => return None,
        }
        let is_ready = |place: usize| events.get(place).is_some_and(|event| !event.revents().is_empty());
        if is_ready(1) {
            let mut spent = [0; 512];
            let read = rustix::io::read(self.signals, &mut spent).unwrap_or(0);
            if is_asked_to_end(&spent[..read]) {
                return None;
            }
        }
        if is_ready(0) {
            let mut signal = [0; 1];
            match rustix::io::read(self.socket, &mut signal) {
                Ok(1..) => match Signal::from_named_raw(signal[0].into()) {
                    Some(signal) => drop(kill_process_group(self.payload, signal)),
                    None => self.is_read.set(true),
                },
                Err(Errno::INTR | Errno::AGAIN) => {}
                Ok(0) | Err(_) => return None,
            }
        }
        Some(is_ready(2))
    }
}

/// Reaps processes and forwards signals. Returns the status of the payload, or `None` if the runtime ended the run.
fn attend(events: &InitEventListener<'_>) -> Option<WaitStatus> {
    loop {
        let mut longest = Some(&AT_ONCE);
        for _ in 0..REAPED_AT_ONCE {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == events.payload => return Some(status),
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) | Err(_) => {
                    longest = None;
                    break;
                }
            }
        }
        events.listen(None, longest)?;
    }
}

/// Returns `true` if one of the received signals is `SIGTERM`.
fn is_asked_to_end(read: &[u8]) -> bool {
    let numbers = read.chunks(size_of::<libc::signalfd_siginfo>()).filter_map(|one| one.first_chunk());
    numbers.map(|number| i32::from_ne_bytes(*number)).any(|number| number == libc::SIGTERM)
}

/// Waits a moment for processes that the payload left behind, such as the end of a pipe (`> >(tee log)`), which would
/// otherwise lose its input. The wait is shorter if no reader is left for their output or no process can write it. This
/// process inherits all orphans. Returns `true` if none is left.
fn is_alone_in_time(events: &InitEventListener<'_>) -> bool {
    let (mut end, mut was_read) = (Instant::now() + TIME_FOR_LEFTOVERS, false);
    loop {
        let is_reaped = match wait(WaitOptions::NOHANG) {
            Err(Errno::INTR) => continue,
            Err(_) => return true,
            Ok(reaped) => reaped.is_some(),
        };
        if !was_read && events.is_read.get() {
            (end, was_read) = (end.min(Instant::now() + TIME_TO_BE_GONE), true);
        }
        let Ok(left) = Timespec::try_from(end.saturating_duration_since(Instant::now())) else { return false };
        if left == AT_ONCE || events.listen(None, Some(if is_reaped { &AT_ONCE } else { &left })).is_none() {
            return false;
        }
    }
}

/// Kills every process that this one can signal, and waits until all have ended. That is the process namespace or the
/// Landlock domain of the run, without this process.
pub(super) fn end_all(group: Option<&ControlGroupHandle>) {
    if let Some(group) = group {
        group.kill();
    }
    loop {
        // SAFETY: the call touches no memory.
        unsafe { libc::kill(-1, libc::SIGKILL) };
        match wait(WaitOptions::empty()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::socketpair;

    #[test]
    fn the_rehearsed_message_is_a_valid_launch_command() {
        let order = serde_json::from_str(REHEARSED).unwrap();
        assert!(matches!(order, ZygoteCommand::Launch(request) if request.folders.len() == 1));
    }

    #[test]
    fn a_missing_network_descriptor_is_an_error_unless_the_run_uses_the_host_network() {
        for (kind, is_refused) in [(Network::Private, true), (Network::Listener, true), (Network::Host, false)] {
            assert_eq!(enter_network(kind, None).is_err(), is_refused, "{kind:?}");
        }
    }

    #[test]
    fn a_payload_does_not_begin_or_is_not_awaited_after_its_run_is_dropped() {
        for is_let_go_at_first in [true, false] {
            let (runtime, socket) =
                socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
            let (outcome, _tell) = pipe_with(PipeFlags::CLOEXEC).unwrap();
            let (begun, begin) = pipe_with(PipeFlags::CLOEXEC).unwrap();
            let (signals, _none) = pipe_with(PipeFlags::CLOEXEC).unwrap();
            let process = rustix::process::getpid();
            let payload = WaitingPayload { process, begin, failure_reader: outcome };
            let let_it_go = || {
                // Closes the runtime's socket, which ends the run: at once, or after the payload was released.
                let is_told = is_let_go_at_first || rustix::io::read(&begun, &mut [0; 1]) == Ok(1);
                drop(runtime);
                is_told
            };
            let begin = || {
                let is_read = Cell::new(false);
                payload.begin(&InitEventListener { socket: &socket, signals: &signals, payload: process, is_read })
            };
            let has_begun = if is_let_go_at_first {
                assert!(let_it_go());
                begin()
            } else {
                std::thread::scope(|scope| {
                    let waiting = scope.spawn(begin);
                    assert!(let_it_go());
                    waiting.join().unwrap()
                })
            };
            assert!(!has_begun.unwrap());
            assert_eq!(rustix::io::read(&begun, &mut [0; 1]), Ok(0), "it was told to begin");
        }
    }
}
