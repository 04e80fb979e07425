//! Runtime side of an unconfined child.

use super::{
    ChildInput, Exit, LaunchSpec, LaunchThreadCommand, Launcher, ParentStreams, StandardStreams, StartedChild,
    StartedProcess,
};
use crate::sandbox::file_size_signal;
use rustix::{
    io::Errno,
    process::{
        Pid, PidfdFlags, Resource, Rlimit, Signal, WaitId, WaitIdOptions, getppid, kill_process_group, pidfd_open,
        set_parent_process_death_signal, setrlimit, setsid, waitid,
    },
    thread::set_no_new_privs,
};
use std::{
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::process::CommandExt,
    },
    path::Path,
    process::{Command, Stdio},
};
use tokio::io::{Interest, unix::AsyncFd};

/// A child that has not been reaped, so that neither its id nor that of its group can have been reused.
#[derive(Debug)]
pub(super) struct UnreapedChild {
    pub(super) id: Pid,
    handle: Option<OwnedFd>,
    launcher: Launcher,
}

impl UnreapedChild {
    pub(super) async fn exited(&self) -> Exit {
        loop {
            let Some(handle) = &self.handle else { return Exit::Code(0) };
            let readable = async {
                // SAFETY: the descriptor is borrowed from its owner while it is registered.
                let registered = unsafe { AsyncFd::register_with_interest(handle.as_fd(), Interest::READABLE) };
                registered.map_err(io::Error::from)?.readable().await.map(drop)
            };
            if readable.await.is_err() {
                // The runtime is shutting down, so no caller receives a result.
                std::future::pending::<()>().await;
            }
            // The child is not reaped here, so that its id stays valid until the group has been killed.
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            match waitid(WaitId::PidFd(handle.as_fd()), options) {
                Ok(Some(status)) => {
                    let signal = status.terminating_signal().map(Exit::Signal);
                    return signal.unwrap_or(Exit::Code(status.exit_status().unwrap_or(0)));
                }
                Ok(None) | Err(Errno::INTR) => {}
                Err(_) => return Exit::Code(0),
            }
        }
    }

    pub(super) fn signal(&self, signal: Signal) {
        // Fails only if no process of the group is left.
        let _ = kill_process_group(self.id, signal);
    }
}

impl Drop for UnreapedChild {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        match self.handle.take() {
            Some(handle) if is_reaped(&handle) => {}
            // Cannot fail, because the thread runs as long as any sender exists.
            Some(handle) => drop(self.launcher.orders.send(LaunchThreadCommand::Reap(handle))),
            // The system had no descriptor left for it. This is the launching thread, and the wait is short.
            None => drop(waitid(WaitId::Pid(self.id), WaitIdOptions::EXITED)),
        }
    }
}

/// Reaps a child that has ended. Returns `true` if there is nothing left to wait for.
pub(super) fn is_reaped(handle: &OwnedFd) -> bool {
    let ended = waitid(WaitId::PidFd(handle.as_fd()), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
    !matches!(ended, Ok(None) | Err(Errno::INTR))
}

pub(super) fn start_program(program: &Path, spec: &LaunchSpec, launcher: Launcher) -> io::Result<StartedChild> {
    if matches!(spec.input, ChildInput::Terminal { .. }) {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "only a confined program gets a terminal"));
    }
    let StandardStreams { parent_ends: ours, child_ends: [stdin, stdout, stderr] } = StandardStreams::open(spec.input)?;
    let (runtime, files) = (rustix::process::getpid(), launcher.shared.zygotes.usual_files());
    let mut command = Command::new(program);
    command
        .args(&spec.args)
        .env_clear()
        .envs(&spec.policy.environment)
        .current_dir(&spec.working_dir)
        .stdin(Stdio::from(stdin))
        .stdout(Stdio::from(stdout))
        .stderr(Stdio::from(stderr));
    // SAFETY: the closure only makes system calls. It allocates nothing, takes no lock and reads no environment.
    unsafe { command.pre_exec(move || confine(runtime, files)) };
    let id = command.spawn()?.id();
    let id = i32::try_from(id).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidData)?;
    let mut process = UnreapedChild { id, handle: None, launcher };
    process.handle = Some(pidfd_open(id, PidfdFlags::empty())?);
    let ParentStreams { stdin, stdout, stderr } = ours;
    Ok(StartedChild { process: StartedProcess::Open(process), stdin, stdout, stderr })
}

/// Prepares the child before it executes the program.
fn confine(runtime: Pid, files: Option<Rlimit>) -> io::Result<()> {
    // A session of its own is also a process group of its own, and has no terminal from which the child could read
    // passwords.
    setsid()?;
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid() != Some(runtime) {
        // The runtime ended before the signal was set.
        return Err(Errno::SRCH.into());
    }
    set_no_new_privs(true)?;
    file_size_signal::restore();
    if let Some(files) = files {
        setrlimit(Resource::Nofile, files)?;
    }
    // Marked, not closed, because the pipe that reports a failed exec to the runtime is among them.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if closed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
