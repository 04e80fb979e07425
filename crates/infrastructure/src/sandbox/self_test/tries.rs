//! Attempts of a confined run to reach the canaries.

use super::{OUTSIDE, OWN, READ_ONLY};
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, connect, ipproto, socket_with};
use serde::{Deserialize, Serialize};
use std::{
    env, fs, io,
    net::{Ipv4Addr, SocketAddrV4, TcpStream, UdpSocket},
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixDatagram, UnixStream},
    },
    path::{Path, PathBuf},
    process,
    time::Duration,
};

/// Variable that makes this program run the test. Its value is the [`SelfTestInput`].
pub(super) const MARKER: &str = "TOOLSTEAD_SANDBOX_SELF_TEST";
/// Name of a subfolder in each of the canaries' folders. In its own one, a run may create files.
pub(super) const INNER: &str = "inner";
/// Name of a file in the run's own folder that the run may not change.
pub(super) const SETTINGS: &str = ".mcp.json";
/// Last word in the output of a complete test.
const DONE: &str = "tried";
/// Time after which the process that is left behind ends by itself, in seconds.
const LONG: u32 = 60;

/// Kind of a test run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum RunProfile {
    /// Like a reader of documents: only the system.
    Alone,
    /// Like a command: in a session, with one folder to change and one to read.
    WithFolders,
    /// Like an MCP server: with one folder to change, one to read, and the machine's network.
    Guarded,
}

/// Input of the test.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SelfTestInput {
    pub(super) kind: RunProfile,
    /// Folder of the canaries.
    pub(super) folder: PathBuf,
    /// Ports of the canaries on the host.
    pub(super) tcp: u16,
    pub(super) udp: u16,
    /// `true` if abstract sockets must be unreachable whatever the network is.
    pub(super) is_scoped: bool,
    /// Id of the process that holds the canaries; `None` if it is not valid in the run, which has process ids of its
    /// own.
    pub(super) neighbour: Option<u32>,
}

impl SelfTestInput {
    pub(super) fn to_text(&self) -> Result<String, String> {
        serde_json::to_string(self).map_err(|error| format!("the run cannot receive its tasks: {error}"))
    }
}

/// Returns the path of the stream socket canary, which is in no folder that a run sees.
pub(super) fn socket(folder: &Path) -> PathBuf {
    folder.join("s")
}

/// Returns the path of the datagram socket canary.
pub(super) fn letters(folder: &Path) -> PathBuf {
    folder.join("d")
}

/// Returns the name of the abstract socket canary.
pub(super) fn abstract_name(folder: &Path) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(folder.as_os_str().as_encoded_bytes())
}

/// Parses the output of a run: the canaries that it reached, or a required access that failed. Returns `None` if the
/// test is incomplete.
pub(super) fn parse_output(said: &str) -> Option<Result<Vec<String>, String>> {
    let tried = said.strip_suffix(DONE)?;
    let missed = tried.lines().find_map(|line| line.strip_prefix("missed "));
    let reached = tried.lines().filter_map(|line| line.strip_prefix("reached ").map(str::to_owned));
    Some(match missed {
        Some(what) => Err(format!("a confined run cannot reach {what}")),
        None => Ok(reached.collect()),
    })
}

/// Runs the test and ends the process, if this process was started for it.
pub(in crate::sandbox) fn enter() {
    let Some(task) = env::var(MARKER).ok() else { return };
    let Ok(task) = serde_json::from_str::<SelfTestInput>(&task) else { process::exit(2) };
    let left = leave_something();
    let said = all(&task);
    let written = rustix::io::write(rustix::stdio::stdout(), said.as_bytes()).is_ok();
    process::exit(i32::from(!(written && left)));
}

/// Makes all attempts and returns their output for [`parse_output`].
pub(super) fn all(task: &SelfTestInput) -> String {
    let (outside, own, read_only) = (task.folder.join(OUTSIDE), task.folder.join(OWN), task.folder.join(READ_ONLY));
    let (tcp, udp) =
        (SocketAddrV4::new(Ipv4Addr::LOCALHOST, task.tcp), SocketAddrV4::new(Ipv4Addr::LOCALHOST, task.udp));
    type Try<'a> = (bool, &'a str, &'a dyn Fn() -> io::Result<()>);
    let has_folders = task.kind != RunProfile::Alone;
    let is_sealed = task.kind != RunProfile::Guarded;
    let neighbour = task.neighbour.and_then(|id| i32::try_from(id).ok()).unwrap_or(0);
    let has_neighbour = neighbour > 0;
    let closed: [Try<'_>; 17] = [
        (true, "a file outside", &|| fs::read(outside.join("file")).map(drop)),
        (true, "a folder outside, to write there", &|| fs::write(outside.join("hole"), "")),
        (has_folders, "a folder that may only be read, to write there", &|| fs::write(read_only.join("hole"), "")),
        (has_folders, "settings of an agent in its own folder", &|| fs::write(own.join(SETTINGS), "")),
        (is_sealed, "the host by TCP", &|| TcpStream::connect(tcp).map(drop)),
        (is_sealed, "the host by multipath TCP", &|| {
            let socket = net::socket(AddressFamily::INET, SocketType::STREAM, Some(ipproto::MPTCP))?;
            Ok(connect(&socket, &tcp)?)
        }),
        (is_sealed, "the host by UDP", &|| {
            let socket = UdpSocket::bind("127.0.0.1:0")?;
            socket.connect(udp)?;
            socket.send(b"x")?;
            // The kernel returns an error for a port without a listener.
            socket.set_read_timeout(Some(Duration::from_millis(20)))?;
            match socket.recv(&mut [0]) {
                Err(error) if error.kind() != io::ErrorKind::ConnectionRefused => Ok(()),
                other => other.map(drop),
            }
        }),
        (true, "a socket outside by its path", &|| UnixStream::connect(socket(&task.folder)).map(drop)),
        // Sent from one end of a socket pair, which requires no call of socket(2).
        (true, "a socket outside by a datagram to its path", &|| {
            UnixDatagram::pair()?.0.send_to(b"x", letters(&task.folder)).map(drop)
        }),
        (task.is_scoped, "an abstract socket outside", &|| {
            UnixStream::connect_addr(&abstract_name(&task.folder)?).map(drop)
        }),
        (true, "the kernel by netlink", &|| open(AddressFamily::NETLINK, SocketType::RAW)),
        (true, "a hypervisor", &|| open(AddressFamily::VSOCK, SocketType::STREAM)),
        (true, "a namespace of its own", &|| {
            succeeds_in_a_child(|| {
                // SAFETY: the call touches no memory.
                unsafe { libc::unshare(libc::CLONE_NEWUSER) == 0 }
            })
        }),
        (true, "a trace of a process", &|| {
            succeeds_in_a_child(|| {
                let nothing = std::ptr::null_mut::<libc::c_void>();
                // SAFETY: the request uses none of the other arguments.
                unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, nothing, nothing) == 0 }
            })
        }),
        (has_neighbour, "a process outside, to signal it", &|| {
            // SAFETY: the call touches no memory, and signal 0 does nothing.
            done(unsafe { libc::kill(neighbour, 0) })
        }),
        (has_neighbour, "a process outside, to limit it", &|| {
            let (nothing, known) = (std::ptr::null::<libc::rlimit64>(), std::ptr::null_mut());
            // SAFETY: nothing is passed, and nothing is written.
            done(unsafe { libc::prlimit64(neighbour, libc::RLIMIT_NOFILE, nothing, known) })
        }),
        (true, "a set-uid file", &|| {
            let own = own.join(INNER);
            let file = own.join("lending");
            fs::create_dir_all(&own)?;
            fs::write(&file, "")?;
            let made = fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o4755));
            fs::remove_file(file)?;
            made
        }),
    ];
    let needed: [Try<'_>; 3] = [
        (true, "a folder for temporary files", &|| fs::write(env::temp_dir().join("toolstead-made"), "")),
        (has_folders, "its own folder, to write there", &|| fs::write(own.join(INNER).join("made"), "")),
        (has_folders, "a folder that it may read", &|| fs::read(read_only.join("file")).map(drop)),
    ];
    let mut said = String::new();
    for (_, what, attempt) in closed.iter().filter(|one| one.0) {
        if attempt().is_ok() {
            said.push_str(&format!("reached {what}\n"));
        }
    }
    for (_, what, attempt) in needed.iter().filter(|one| one.0) {
        if let Err(error) = attempt() {
            said.push_str(&format!("missed {what}: {error}\n"));
        }
    }
    said + DONE
}

fn open(family: AddressFamily, kind: SocketType) -> io::Result<()> {
    Ok(socket_with(family, kind, SocketFlags::CLOEXEC, None).map(drop)?)
}

fn done(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Runs an attempt that changes its process in a forked child. Fails unless the attempt returns `true`.
fn succeeds_in_a_child(work: impl FnOnce() -> bool) -> io::Result<()> {
    let mut status = 0;
    // SAFETY: the child only makes system calls and ends; the status is this function's own.
    let ended = unsafe {
        match libc::fork() {
            0 => libc::_exit(i32::from(!work())),
            child => libc::waitpid(child, &raw mut status, 0),
        }
    };
    if ended > 0 && status == 0 { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}

/// Leaves an orphaned process behind that keeps the output open. Returns `true` if that succeeded.
fn leave_something() -> bool {
    let left = succeeds_in_a_child(|| {
        // SAFETY: the process has one thread; the child only makes system calls and ends.
        unsafe {
            libc::setsid();
            match libc::fork() {
                0 => {
                    libc::sleep(LONG);
                    libc::_exit(0)
                }
                child => child > 0,
            }
        }
    });
    left.is_ok()
}
