//! The first process of one run: it builds the run's world, gives up its rights, starts the payload, reaps what the payload
//! leaves behind, and takes everything with it when it ends.

use super::{
    births::{Settled, block},
    filter::Filter,
    identity::{IdMaps, Identity, drop_capabilities, unshare},
    payload::{OpenPlace, Tools, become_program},
    protected::Protected,
    request::{Failure, Network, Report, Request, Step, report},
    stage,
    view::View,
};
use crate::sandbox::control_group::{Group, OutOfMemory};
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
    thread::{LinkNameSpaceType, move_into_link_name_space},
};
use std::{
    cell::Cell,
    fs::File,
    io::{self, Read, Write},
    net::{Ipv4Addr, SocketAddrV4},
    os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd},
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// clone(2); in the C library's headers it does not fit its own type.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
/// However fast a run starts and ends processes, the runtime is heard after so many.
const REAPED_AT_ONCE: usize = 64;
/// So long a run goes on after its payload, while something is left of it.
const TIME_FOR_LEFTOVERS: Duration = Duration::from_millis(500);
/// So long where it can print nothing: a process that ends closes its files before it is gone.
const TIME_TO_BE_GONE: Duration = Duration::from_millis(50);

/// What the zygote hands to an init.
#[derive(Debug)]
pub(super) struct Birth<'a> {
    pub(super) request: Request,
    pub(super) socket: OwnedFd,
    pub(super) streams: [OwnedFd; 3],
    pub(super) filter: &'a Filter,
    pub(super) settled: &'a Settled,
    pub(super) landlock: Option<ABI>,
}

/// What an init with namespaces has beside that.
#[derive(Debug)]
pub(super) struct Namespaced<'a> {
    pub(super) identity: &'a Identity,
    pub(super) maps: &'a IdMaps,
    /// Where groups can be made.
    pub(super) group: Option<Group>,
    /// The network of the run or of its session; the machine's where there is none.
    pub(super) network: Option<&'a OwnedFd>,
    /// Where the session's `/tmp` and home stand on the stage.
    pub(super) scratch: Option<&'a Path>,
}

/// What there is before the payload runs.
pub(super) struct PreparedRun {
    pub(super) listener: Option<OwnedFd>,
    /// Who looks after protected names, where something of them may change.
    pub(super) protected: Option<Protected>,
    /// The control group of the payload.
    pub(super) group: Option<Group>,
    pub(super) payload: Waiting,
}

/// A payload that is born and does not run yet.
pub(super) struct Waiting {
    process: Pid,
    begin: OwnedFd,
    /// At its end when the program runs; a failure comes before.
    told: OwnedFd,
}

/// How a payload ended.
struct PayloadEnd {
    code: i32,
    by_signal: bool,
    had_survivors: bool,
    out_of_memory: Option<OutOfMemory>,
}

/// The life of an init, which builds the world of its run and gives up its rights by `prepare`; its result is its exit code.
///
/// `is_asked`: whether `SIGTERM` asks it to end. The first process of a namespace is out of reach of that by itself.
pub(super) fn run(
    mut birth: Birth<'_>,
    is_asked: bool,
    prepare: impl FnOnce(&mut Birth<'_>) -> Result<PreparedRun, Failure>,
) -> i32 {
    let socket = birth.socket.try_clone().step(|| "start a process".into());
    let prepared = socket.and_then(|socket| {
        let signals = signals(is_asked).step(|| "hear of ended processes".into())?;
        Ok((socket, signals, prepare(&mut birth)?))
    });
    let (socket, signals, world) = match prepared {
        Ok(prepared) => prepared,
        Err(failure) => return told(&birth.socket, &Report::Failed(failure)),
    };
    let PreparedRun { listener, protected, group, payload } = world;
    // From here on the payload may have begun. However this goes on: what runs is ended, and what it did is put right.
    let lived = catch_unwind(AssertUnwindSafe(|| live(birth, &signals, listener, payload, group.as_ref())));
    end_all(group.as_ref());
    let aftermath = protected.as_ref().map(Protected::undo).unwrap_or_default();
    // Who begins when this is told is not to find this run alive.
    drop(protected);
    match lived.unwrap_or(Ok(PayloadEnd::KILLED)) {
        Ok(PayloadEnd { code, by_signal, had_survivors, out_of_memory }) => {
            told(&socket, &Report::Ended { code, by_signal, had_survivors, out_of_memory, aftermath })
        }
        Err(mut failure) => {
            for line in aftermath.left.into_iter().chain(aftermath.undone) {
                failure.reason.push_str("; ");
                failure.reason.push_str(&line);
            }
            told(&socket, &Report::Failed(failure))
        }
    }
}

impl PayloadEnd {
    /// By the runtime, which has let go of the run.
    const KILLED: Self = Self { code: libc::SIGKILL, by_signal: true, had_survivors: false, out_of_memory: None };
}

/// Lets the payload begin and attends to it until it has ended.
fn live(
    birth: Birth<'_>,
    signals: &OwnedFd,
    listener: Option<OwnedFd>,
    payload: Waiting,
    group: Option<&Group>,
) -> Result<PayloadEnd, Failure> {
    let events = InitEvents { socket: &birth.socket, signals, payload: payload.process, is_read: Cell::new(false) };
    if !payload.begin(&events)? {
        return Ok(PayloadEnd::KILLED);
    }
    let streams = birth.streams;
    // Whoever reads the output must see its end, and the zygote's socket is not this process's.
    drop(streams);
    close_standard_streams();
    let descriptors: Vec<_> = listener.iter().map(AsFd::as_fd).collect();
    if report(&birth.socket, &Report::Started, &descriptors).is_err() {
        return Ok(PayloadEnd::KILLED);
    }
    let Some(status) = attend(&events) else { return Ok(PayloadEnd::KILLED) };
    let (code, by_signal) = match status.terminating_signal() {
        Some(signal) => (signal, true),
        None => (status.exit_status().unwrap_or(0), false),
    };
    let is_killed = by_signal && code == libc::SIGKILL;
    let out_of_memory = group.filter(|_| is_killed).and_then(Group::out_of_memory);
    Ok(PayloadEnd { code, by_signal, had_survivors: !is_alone_in_time(&events), out_of_memory })
}

/// The input of a zygote is its socket, whose end is to be seen when it ends.
pub(super) fn close_standard_streams() {
    // SAFETY: the call touches no memory, and nobody here uses the three.
    unsafe { libc::syscall(libc::SYS_close_range, 0_u32, 2_u32, 0) };
}

fn told(socket: &OwnedFd, last: &Report) -> i32 {
    i32::from(report(socket, last, &[]).is_err())
}

/// A descriptor that can be read when a child has ended, or when this process is asked to end.
fn signals(is_asked: bool) -> io::Result<OwnedFd> {
    let set = block(&[Signal::CHILD, Signal::TERM][..1 + usize::from(is_asked)]);
    // SAFETY: the set lives through the call; no handler is passed.
    unsafe {
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        let descriptor = libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        if descriptor < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(descriptor)) }
    }
}

impl Namespaced<'_> {
    /// The life of an init in namespaces of its own.
    pub(super) fn run(mut self, birth: Birth<'_>) -> i32 {
        run(birth, false, |birth| self.prepare(birth))
    }

    /// The payload is born first, and gives up its rights while this process builds the root, which is its root, too.
    fn prepare(&mut self, birth: &mut Birth<'_>) -> Result<PreparedRun, Failure> {
        let listener = network(&mut birth.request, self.network)?;
        rustix::system::sethostname(b"sandbox").step(|| "name the machine".into())?;
        let (payload_word, own_word) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
            .step(|| "start a process".into())?;
        let drop_privileges = || drop_privileges(self.identity);
        // Into its group it can be born only by who may write there.
        let group = self.group.take();
        let payload = Waiting::born(
            birth,
            group.as_ref(),
            || {
                unshare(libc::CLONE_NEWCGROUP).step(|| "hide the control groups".into())?;
                drop_privileges()?;
                say(&own_word);
                Ok(())
            },
            || {
                hear(&own_word, "see the root")?;
                Ok(birth
                    .landlock
                    .map(|abi| OpenPlace::within_mounts(&birth.request, abi))
                    .transpose()?
                    .unwrap_or_default())
            },
        )?;
        drop(own_word);
        let request = &birth.request;
        let scratch = match self.scratch {
            Some(scratch) => scratch.to_owned(),
            None => own_scratch(self.identity)?,
        };
        let mut view = View::build(request, self.identity, self.maps, &scratch)?;
        let protected = Some(Protected::guard(&mut view, request)?);
        // Nobody can make a user namespace while a root lies on top of the own one. Where the payload is gone, it has said
        // why.
        let _ = hear(&payload_word, "begin");
        view.enter()?;
        // From here on every path of both leads into the new root.
        say(&payload_word);
        view.leave_old()?;
        drop(view);
        drop_privileges()?;
        // A change of the user clears it.
        set_parent_process_death_signal(Some(Signal::KILL)).step(|| "hide from the payload".into())?;
        Ok(PreparedRun { listener, protected, group, payload })
    }
}

/// Gives up all rights for good, as the init does and the payload.
fn drop_privileges(identity: &Identity) -> Result<(), Failure> {
    identity.assume()?;
    drop_capabilities()?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable).step(|| "hide from the payload".into())
}

fn own_scratch(identity: &Identity) -> Result<PathBuf, Failure> {
    let place = stage::at("scratch");
    stage::scratch(&place, identity)?;
    Ok(place)
}

/// Enters the network, and listens in it if the request says so.
fn network(request: &mut Request, own: Option<&OwnedFd>) -> Result<Option<OwnedFd>, Failure> {
    if request.network == Network::Host {
        return Ok(None);
    }
    let step = || "enter a network".to_owned();
    let own = own.ok_or_else(|| Failure::new(step(), "there is none for this run"))?;
    move_into_link_name_space(own.as_fd(), Some(LinkNameSpaceType::Network)).step(step)?;
    if request.network == Network::Private {
        return Ok(None);
    }
    let step = || "listen for the proxy".to_owned();
    let listener =
        socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)
            .step(step)?;
    bind(&listener, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).step(step)?;
    listen(&listener, 128).step(step)?;
    let address = rustix::net::getsockname(&listener).step(step)?;
    let address = SocketAddrV4::try_from(address).step(step)?;
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        for name in [name.to_owned(), name.to_lowercase()] {
            request.environment.insert(name, format!("http://{address}"));
        }
    }
    for name in ["NO_PROXY", "no_proxy"] {
        request.environment.insert(name.into(), "localhost,127.0.0.1,::1".into());
    }
    Ok(Some(listener))
}

/// Starts the loopback interface of this process's network.
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

impl Waiting {
    /// Starts the payload, in its group if there is one. It gets `ready` by itself, while this process goes on, and finds
    /// the places that Landlock leaves open.
    pub(super) fn born(
        birth: &Birth<'_>,
        group: Option<&Group>,
        ready: impl FnOnce() -> Result<(), Failure>,
        places: impl FnOnce() -> Result<Vec<OpenPlace>, Failure>,
    ) -> Result<Self, Failure> {
        let step = || "start a process".to_owned();
        let (told, tell) = pipe_with(PipeFlags::CLOEXEC).step(step)?;
        let (begun, begin) = pipe_with(PipeFlags::CLOEXEC).step(step)?;
        if let Some(process) = clone(group.map(Group::folder)).step(step)? {
            return Ok(Self { process, begin, told });
        }
        drop((told, begin));
        // Whatever goes wrong, this process must not come back as a second init.
        let failure = catch_unwind(AssertUnwindSafe(|| payload(birth, &begun, ready, places)));
        if let Ok(failure) = failure {
            let _ = File::from(tell).write_all(&serde_json::to_vec(&failure).unwrap_or_default());
        }
        // SAFETY: the call touches no memory.
        unsafe { libc::_exit(127) }
    }

    /// Returns once the program runs, or the run is to end; whether it runs.
    fn begin(self, events: &InitEvents<'_>) -> Result<bool, Failure> {
        let step = || "start a process".to_owned();
        let Self { begin, told, .. } = self;
        // It may have taken long to come here, and nobody wait any more.
        if events.listen(None, Some(&AT_ONCE)).is_none() {
            return Ok(false);
        }
        // Where it has failed already, it says so.
        let _ = rustix::io::write(&begin, b"b");
        drop(begin);
        loop {
            match events.listen(Some(&told), None) {
                Some(true) => break,
                Some(false) => {}
                None => return Ok(false),
            }
        }
        let mut failure = Vec::new();
        File::from(told).read_to_end(&mut failure).step(step)?;
        if failure.is_empty() {
            return Ok(true);
        }
        let unknown = |_| Failure::new(step(), "it ended before it began");
        Err(serde_json::from_slice(&failure).unwrap_or_else(unknown))
    }
}

/// The life of a payload until it is the program. Returns only where that fails.
fn payload(
    birth: &Birth<'_>,
    begun: &OwnedFd,
    ready: impl FnOnce() -> Result<(), Failure>,
    places: impl FnOnce() -> Result<Vec<OpenPlace>, Failure>,
) -> Failure {
    let places = || {
        ready()?;
        // Takes longest, and nothing that follows needs what it refuses.
        birth.filter.apply().map_err(io::Error::other).step(|| "put the filter of system calls in place".into())?;
        let places = places()?;
        hear(begun, "begin")?;
        Ok(places)
    };
    let places = match places() {
        Ok(places) => places,
        Err(failure) => return failure,
    };
    let tools = Tools { settled: birth.settled, landlock: birth.landlock, places: &places, streams: &birth.streams };
    become_program(&birth.request, &tools)
}

/// Tells the other process that it can go on. Where that is gone, it hears nothing.
fn say(word: &OwnedFd) {
    let _ = rustix::io::write(word, b"b");
}

/// Waits until the other process says so.
fn hear(word: &OwnedFd, step: &str) -> Result<(), Failure> {
    match retry_on_intr(|| rustix::io::read(word, &mut [0; 1])).step(|| step.into())? {
        // An init that is gone takes this process with it.
        0 => Err(Failure::new(step, "the init is gone")),
        _ => Ok(()),
    }
}

/// A fork, into a control group where one is given. `None` in the child.
fn clone(group: Option<&OwnedFd>) -> io::Result<Option<Pid>> {
    // SAFETY: all-zero is valid for the structure. Either call shares no memory, so it is a fork, and this process has one
    // thread, so that the child finds no lock held.
    let child = unsafe {
        match group {
            Some(group) => {
                let mut arguments: libc::clone_args = std::mem::zeroed();
                arguments.flags = CLONE_INTO_CGROUP;
                arguments.cgroup = u64::try_from(group.as_raw_fd()).map_err(io::Error::other)?;
                arguments.exit_signal = u64::from(libc::SIGCHLD.unsigned_abs());
                libc::syscall(libc::SYS_clone3, &raw mut arguments, size_of::<libc::clone_args>())
            }
            // Filters of containers refuse the other.
            None => libc::fork().into(),
        }
    };
    match i32::try_from(child) {
        Ok(0) => Ok(None),
        Ok(child @ 1..) => Ok(Pid::from_raw(child)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// What an init hears while its payload is there.
struct InitEvents<'a> {
    socket: &'a OwnedFd,
    signals: &'a OwnedFd,
    payload: Pid,
    /// Whether nobody waits for what may still be printed.
    is_read: Cell<bool>,
}

impl InitEvents<'_> {
    /// Waits until there is something from the runtime, from a child or in `also`, and passes signals on. Whether `also` can
    /// be read; `None` when the run is to end.
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

/// Reaps, and passes signals on, until the payload has ended, or the runtime has let go of the run.
fn attend(events: &InitEvents<'_>) -> Option<WaitStatus> {
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

/// Whether one of the signals that were read is no end of a child.
fn is_asked_to_end(read: &[u8]) -> bool {
    let numbers = read.chunks(size_of::<libc::signalfd_siginfo>()).filter_map(|one| one.first_chunk());
    numbers.map(|number| i32::from_ne_bytes(*number)).any(|number| number == libc::SIGTERM)
}

/// Waits a moment for what the payload left behind, such as the end of a pipe (`> >(tee log)`), which would lose what it was
/// given; a shorter one where nobody reads that, or nobody can write it any more. This process inherits all orphans. Whether
/// none is left.
fn is_alone_in_time(events: &InitEvents<'_>) -> bool {
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

/// Kills everything but this process, and waits until it is gone. Everything is what its namespace of processes holds, or
/// its domain of Landlock.
pub(super) fn end_all(group: Option<&Group>) {
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
    fn a_payload_of_a_run_that_nobody_waits_for_does_not_begin_or_is_not_waited_for() {
        for is_let_go_at_first in [true, false] {
            let (runtime, socket) =
                socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
            let (told, _tell) = pipe_with(PipeFlags::CLOEXEC).unwrap();
            let (begun, begin) = pipe_with(PipeFlags::CLOEXEC).unwrap();
            let (signals, _none) = pipe_with(PipeFlags::CLOEXEC).unwrap();
            let process = rustix::process::getpid();
            let payload = Waiting { process, begin, told };
            let let_it_go = || {
                // Let go once it was told to begin.
                let is_told = is_let_go_at_first || rustix::io::read(&begun, &mut [0; 1]) == Ok(1);
                drop(runtime);
                is_told
            };
            let begin = || {
                let is_read = Cell::new(false);
                payload.begin(&InitEvents { socket: &socket, signals: &signals, payload: process, is_read })
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
