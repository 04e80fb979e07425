//! The program `tool` in the root of a run, and the socket that it connects to.

use super::RootBuilder;
use crate::sandbox::{
    offered_tools::{PLACE, PROGRAM, SOCKET},
    zygote::{
        mount::{self, MountRestrictions},
        request::{StepFailure, StepResultExt},
        root_sources,
    },
};
use rustix::{
    fs::{AtFlags, Mode, OFlags, chmodat},
    net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with},
    process::{chdir, fchdir},
};
use std::{io, os::fd::OwnedFd, path::Path};

/// Maximum number of connections that wait for the runtime.
const WAITING: i32 = 128;

impl RootBuilder<'_> {
    /// Mounts the program `tool`, and returns the listening socket to which it connects. The socket is created in the
    /// root of the run, which exists nowhere else: no path of the machine or of another run leads to it.
    pub(in crate::sandbox::zygote) fn offer_tools(&self) -> Result<OwnedFd, StepFailure> {
        let step = || "offer tools".to_owned();
        let program = root_sources::at(root_sources::PROGRAM);
        if mount::open_exactly(&program).is_err() {
            let reason = "the program that runs Toolstead was moved or replaced before its first command; restart it";
            return Err(StepFailure::new(step(), reason));
        }
        self.bind(&program, Path::new(PROGRAM), Some(MountRestrictions::READ_ONLY), None)?;
        self.listener().step(step)
    }

    fn listener(&self) -> io::Result<OwnedFd> {
        let name = Path::new(SOCKET).file_name().unwrap_or_default();
        let folder = mount::open_beneath(&self.root, Path::new(PLACE), OFlags::PATH | OFlags::DIRECTORY)?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        // A socket can only be created at a path, and the root of the run has none yet.
        fchdir(&folder)?;
        let bound = bind(&socket, &SocketAddrUnix::new(name)?);
        chdir("/")?;
        bound?;
        chmodat(&folder, name, Mode::from_raw_mode(0o600), AtFlags::empty())?;
        root_sources::give(self.identity, &folder, name)?;
        listen(&socket, WAITING)?;
        Ok(socket)
    }
}
