//! Messages between the runtime, the zygote and the init of one run.
//!
//! ```text
//! runtime -> zygote  one byte; descriptors: the order as JSON in a memory file, and for a launch
//!                    the init's socket, stdin, stdout, stderr
//! zygote  -> init    path of the session's `/tmp` and home; descriptors: all of these, and the network, if it has one
//! init    -> payload one byte; descriptors: the order, stdin, stdout, stderr, and the network
//! init    -> runtime reports, one message each, as JSON; descriptors where the report says so
//! runtime -> init    one byte: a signal for the payload's group, or 0: processes left behind by the payload are killed
//!                    at once;
//!                    the end of the socket ends the run
//! ```

mod paths;

use crate::sandbox::{control_group::OutOfMemoryCause, launch::LaunchError};
use rustix::{
    fs::{MemfdFlags, fstat, memfd_create},
    io::{Errno, pread},
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
        recvmsg, sendmsg,
    },
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::File,
    io::{self, IoSlice, IoSliceMut, Write},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::ffi::{OsStrExt, OsStringExt},
    },
    path::PathBuf,
};

/// Maximum number of descriptors in one message.
const MAX_DESCRIPTORS: usize = 8;
/// Maximum length of a path on the stage.
const MAX_PLACE_BYTES: usize = 256;
/// Maximum size of a report, in bytes.
pub(super) const MAX_REPORT_BYTES: usize = 32 << 10;
/// Maximum size of each list of protected names in a report, in bytes.
const MAX_TOLD_BYTES: usize = 12 << 10;

/// Cause of a step that failed but may succeed once the file system is read again.
#[derive(Debug, thiserror::Error)]
#[error("it has just been moved or removed; try again")]
pub(super) struct MovedPathError;

/// Order to the zygote.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::sandbox) enum ZygoteCommand {
    /// Starts a run.
    Launch(Box<RunRequest>),
    /// Releases the resources that the runs of a session share.
    Release(String),
}

/// Request for one run, with every path resolved.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::sandbox) struct RunRequest {
    pub(in crate::sandbox) program: ProgramLocation,
    pub(in crate::sandbox) args: Vec<String>,
    pub(in crate::sandbox) environment: BTreeMap<String, String>,
    #[serde(with = "paths")]
    pub(in crate::sandbox) working_dir: PathBuf,
    /// Path of the private home. `None` if there is a root at that path.
    #[serde(with = "paths::option")]
    pub(in crate::sandbox) home: Option<PathBuf>,
    /// Path of its temporary files, if it has no private `/tmp`. The zygote sets it.
    #[serde(with = "paths::option")]
    pub(in crate::sandbox) temporary: Option<PathBuf>,
    /// Home of the user of the runtime. No part of the path is a symbolic link.
    #[serde(with = "paths::option")]
    pub(in crate::sandbox) own_home: Option<PathBuf>,
    /// Files that are copied into the private home: the user's git settings.
    pub(in crate::sandbox) settings: Vec<PrivateHomeFile>,
    pub(in crate::sandbox) folders: Vec<FolderMapping>,
    /// Existing paths that the run cannot read, as the run sees them.
    #[serde(with = "paths::several")]
    pub(in crate::sandbox) hidden: Vec<PathBuf>,
    /// Paths that the run cannot change, as the run sees them.
    #[serde(with = "paths::several")]
    pub(in crate::sandbox) sealed: Vec<PathBuf>,
    pub(in crate::sandbox) session: Option<String>,
    pub(in crate::sandbox) network: Network,
    pub(in crate::sandbox) memory_bytes: u64,
    pub(in crate::sandbox) processes: u64,
    pub(in crate::sandbox) file_bytes: u64,
    /// `true` if the three standard streams are one terminal.
    pub(in crate::sandbox) terminal: bool,
    /// `true` to reject the run if Landlock is unavailable.
    pub(in crate::sandbox) requires_landlock: bool,
    /// `true` if the run has the program `tool` and its socket.
    pub(in crate::sandbox) offers_tools: bool,
}

/// A run, as its init receives it.
#[derive(Debug)]
pub(super) struct RunDescriptors {
    pub(super) order: OwnedFd,
    pub(super) socket: OwnedFd,
    pub(super) streams: [OwnedFd; 3],
    /// Network of the run or of its session. `None` for the machine's network.
    pub(super) network: Option<OwnedFd>,
    /// Path of the folder with the session's `/tmp` and home, as the zygote sees it. `None` without a session.
    pub(super) scratch: Option<PathBuf>,
}

/// Program to execute.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::sandbox) enum ProgramLocation {
    /// The runtime's own program.
    Own,
    /// The program at this path.
    At(#[serde(with = "paths")] PathBuf),
}

/// A file of the private home.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::sandbox) struct PrivateHomeFile {
    /// Path relative to the home.
    #[serde(with = "paths")]
    pub(in crate::sandbox) path: PathBuf,
    pub(in crate::sandbox) text: Vec<u8>,
}

/// A folder or file of the host that a run sees.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::sandbox) struct FolderMapping {
    /// Path on the host. No part of it is a symbolic link.
    #[serde(with = "paths")]
    pub(in crate::sandbox) source: PathBuf,
    /// Path in the sandbox.
    #[serde(with = "paths")]
    pub(in crate::sandbox) target: PathBuf,
    pub(in crate::sandbox) is_writable: bool,
    /// User and group that own the folder.
    pub(in crate::sandbox) owner: (u32, u32),
    /// `true` if names in the folder are protected ([`super::protected`]).
    pub(in crate::sandbox) is_root: bool,
}

/// The network of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::sandbox) enum Network {
    /// A private network without any connection.
    Private,
    /// A private network with a listener in it, which is passed to the runtime.
    Listener,
    /// The machine's network.
    Host,
}

/// Event of a run.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::sandbox) enum RunEvent {
    /// The init exists. Its process descriptor is attached.
    Born {
        /// Process id as the zygote sees it.
        pid: i32,
    },
    /// The program runs. The requested listeners are attached.
    Started,
    /// A step failed, and nothing runs.
    Failed(StepFailure),
    /// The program and all processes that it started have ended.
    Ended {
        code: i32,
        by_signal: bool,
        /// `true` if a process that the program started outlived it and was killed.
        had_survivors: bool,
        /// Details if the kernel killed the program because memory was exhausted.
        out_of_memory: Option<OutOfMemoryCause>,
        aftermath: ProtectedChanges,
    },
}

/// Changes that a run made to protected names, one line for each.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::sandbox) struct ProtectedChanges {
    /// Changes that were undone.
    pub(in crate::sandbox) undone: Vec<String>,
    /// Changes that could not be undone, and must not be trusted.
    pub(in crate::sandbox) left: Vec<String>,
    /// Number of changes, including those without a line.
    #[serde(skip)]
    pub(super) things: usize,
}

impl ProtectedChanges {
    pub(super) fn undone(&mut self, line: String) {
        self.things += 1;
        add(&mut self.undone, line);
    }

    pub(super) fn left(&mut self, line: String) {
        self.things += 1;
        add(&mut self.left, line);
    }
}

/// Adds a line if it fits. A run decides how many lines there are, and they must fit in a report.
fn add(lines: &mut Vec<String>, line: String) {
    const MORE: &str = "and there are more";
    if lines.last().is_some_and(|last| last == MORE) {
        return;
    }
    // Maximum length of the lines in JSON. They contain no control characters, which would be longer.
    let bytes: usize = lines.iter().chain([&line]).map(|line| 2 * line.len() + 3).sum();
    lines.push(if bytes > MAX_TOLD_BYTES { MORE.into() } else { line });
}

/// A step that failed.
#[derive(Debug, Clone, Serialize, Deserialize, thiserror::Error)]
#[error("{step}: {reason}")]
pub(in crate::sandbox) struct StepFailure {
    /// Action that was tried, such as "mount `/work`".
    pub(in crate::sandbox) step: String,
    pub(in crate::sandbox) reason: String,
    /// `true` if the cause is [`MovedPathError`].
    is_moved: bool,
}

impl StepFailure {
    pub(in crate::sandbox) fn new(step: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { step: step.into(), reason: reason.into(), is_moved: false }
    }
}

impl From<StepFailure> for LaunchError {
    fn from(failure: StepFailure) -> Self {
        if failure.is_moved { Self::Moved(failure.to_string()) } else { Self::Confine(failure.to_string()) }
    }
}

pub(super) trait StepResultExt<T> {
    /// Converts the error to a failure of the step that `step` names.
    fn step(self, step: impl FnOnce() -> String) -> Result<T, StepFailure>;
}

impl<T, E: Into<io::Error>> StepResultExt<T> for Result<T, E> {
    fn step(self, step: impl FnOnce() -> String) -> Result<T, StepFailure> {
        self.map_err(|error| {
            let error = error.into();
            let is_moved = error.get_ref().is_some_and(|cause| cause.is::<MovedPathError>());
            StepFailure { is_moved, ..StepFailure::new(step(), error.to_string()) }
        })
    }
}

impl RunDescriptors {
    /// Sends the run to an init.
    pub(super) fn send(&self, orders: &OwnedFd) -> io::Result<()> {
        let Self { order, socket, streams, network, scratch } = self;
        let descriptors = [order, socket].into_iter().chain(streams).chain(network).map(AsFd::as_fd);
        let place = scratch.as_deref().map_or(&[][..], |place| place.as_os_str().as_bytes());
        send(orders, &[b"o", place].concat(), &descriptors.collect::<Vec<_>>())
    }

    /// Waits for a run. Returns `None` if there will be none.
    pub(super) fn receive(orders: &OwnedFd) -> Option<Self> {
        let (said, descriptors) = receive(orders, MAX_PLACE_BYTES).ok()?;
        let place = said.strip_prefix(b"o")?;
        let scratch = (!place.is_empty()).then(|| PathBuf::from(OsString::from_vec(place.to_vec())));
        let mut descriptors = descriptors.into_iter();
        let mut next = || descriptors.next();
        let (order, socket, streams) = (next()?, next()?, [next()?, next()?, next()?]);
        Some(Self { order, socket, streams, network: next(), scratch })
    }
}

/// Writes a value to a memory file, which can be passed to another process.
pub(super) fn packed(value: &impl Serialize) -> io::Result<OwnedFd> {
    let mut file = File::from(memfd_create("order", MemfdFlags::CLOEXEC)?);
    file.write_all(&serde_json::to_vec(value)?)?;
    Ok(file.into())
}

/// Reads the value in a memory file that [`packed`] created. Other processes may read it at the same time.
pub(super) fn unpacked<T: DeserializeOwned>(file: &OwnedFd) -> io::Result<T> {
    let mut text = vec![0; usize::try_from(fstat(file)?.st_size).map_err(io::Error::other)?];
    let mut read = 0;
    while read < text.len() {
        match pread(file, &mut text[read..], read as u64) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(more) => read += more,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(serde_json::from_slice(&text)?)
}

/// Sends one message with descriptors.
pub(super) fn send(socket: impl AsFd, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    loop {
        match sendmsg(&socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL) {
            Err(Errno::INTR) => {}
            sent => return Ok(sent.map(drop)?),
        }
    }
}

/// Receives one report, as JSON, and its descriptors. The report is empty if the other end is closed. On a non-blocking
/// socket without a report, fails with `WouldBlock`.
pub(in crate::sandbox) fn receive_now(socket: impl AsFd) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    receive(socket, MAX_REPORT_BYTES)
}

/// Receives one message with its descriptors. The message is empty if the other end is closed.
pub(super) fn receive(socket: impl AsFd, most: usize) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let mut bytes = vec![0; most];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let read = loop {
        match recvmsg(&socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(Errno::INTR) => {}
            received => break received?.bytes,
        }
    };
    bytes.truncate(read);
    let descriptors = control.drain().flat_map(|message| match message {
        RecvAncillaryMessage::ScmRights(rights) => rights.collect::<Vec<OwnedFd>>(),
        _ => Vec::new(),
    });
    Ok((bytes, descriptors.collect()))
}

pub(in crate::sandbox) fn report(
    socket: impl AsFd,
    report: &RunEvent,
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    send(socket, &serde_json::to_vec(report)?, descriptors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moved_path_error_is_detected_by_type_and_not_by_text() {
        let failed = |error: io::Error| Err::<(), _>(error).step(|| "hide `/w/x`".into()).unwrap_err();
        for (error, is_moved) in [
            (io::Error::new(io::ErrorKind::NotFound, MovedPathError), true),
            (io::Error::new(io::ErrorKind::NotFound, MovedPathError.to_string()), false),
            (io::ErrorKind::PermissionDenied.into(), false),
        ] {
            // As the runtime receives it.
            let heard: StepFailure = serde_json::from_value(serde_json::to_value(failed(error)).unwrap()).unwrap();
            assert_eq!(matches!(LaunchError::from(heard), LaunchError::Moved(_)), is_moved);
        }
    }
}
