//! A command whose work continues in the background: the same program, started a second time, does the work and reports
//! to the first process when that may end.
//!
//! ```text
//! first  -> second  its name, and the same arguments; standard input is a socket, with the input of the first one
//! second -> first   (the same socket) one byte: the exit code, once nothing more is printed
//! ```

use rustix::{
    process::{Pid, Signal, kill_process, setsid},
    stdio,
};
use std::{
    env,
    fs::OpenOptions,
    io::{self, Write},
    net::Shutdown,
    os::{
        fd::OwnedFd,
        unix::{
            net::UnixStream,
            process::{CommandExt, ExitStatusExt},
        },
    },
    process::{Command, Stdio},
};
use tokio::{
    io::AsyncReadExt,
    signal::unix::{SignalKind, signal},
    task::spawn_blocking,
};

/// Name (`argv[0]`) under which this program is started a second time.
const NAME: &str = "toolstead-keeper";

/// Role of this process as the second process of a command, which may outlive the command.
#[derive(Debug)]
pub struct DetachedProcessRole(());

impl DetachedProcessRole {
    /// Returns a value if this process was started as the second one.
    pub fn of_process() -> Option<Self> {
        let is_socket = || rustix::net::sockopt::socket_type(stdio::stdin()).is_ok();
        (env::args_os().next().is_some_and(|name| name == NAME) && is_socket()).then_some(Self(()))
    }

    /// Does the work of this command line in a second process, which receives this input. Returns the exit code once
    /// the second process reports it; that process may continue.
    ///
    /// # Errors
    /// The error of the system if the process cannot be started or its report cannot be read.
    pub async fn instead(input: Vec<u8>) -> io::Result<u8> {
        let (mut interrupt, mut terminate, mut hangup) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?, signal(SignalKind::hangup())?);
        let (ours, theirs) = UnixStream::pair()?;
        let mut second = Command::new("/proc/self/exe");
        second.arg0(NAME).args(env::args_os().skip(1)).stdin(Stdio::from(OwnedFd::from(theirs)));
        let mut child = second.spawn()?;
        // `Command` holds the other end of the socket, which would hide the end of the child.
        drop(second);
        let process = Pid::from_child(&child);
        let mut writer = ours.try_clone()?;
        let written = spawn_blocking(move || {
            // A process that does not read its input has failed already, and reports the reason.
            let _ = writer.write_all(&input);
            let _ = writer.shutdown(Shutdown::Write);
        });
        ours.set_nonblocking(true)?;
        let mut ours = tokio::net::UnixStream::from_std(ours)?;
        let mut code = [0];
        let is_started = loop {
            tokio::select! {
                read = ours.read(&mut code) => break matches!(read, Ok(1)),
                // A terminal sends this signal to both processes.
                _ = interrupt.recv() => {}
                _ = terminate.recv() => drop(kill_process(process, Signal::TERM)),
                _ = hangup.recv() => drop(kill_process(process, Signal::HUP)),
            }
        };
        if is_started {
            return Ok(code[0]);
        }
        let _ = written.await;
        let status = spawn_blocking(move || child.wait()).await.map_err(io::Error::other)??;
        let by_signal = || status.signal().and_then(|signal| u8::try_from(128 + signal).ok());
        Ok(status.code().and_then(|code| u8::try_from(code).ok()).or_else(by_signal).unwrap_or(70))
    }

    /// Ends the command with this code. After that, this process has no terminal, input or output.
    ///
    /// # Errors
    /// The error of the system. The command has not ended then.
    pub fn let_command_end(self, code: u8) -> io::Result<()> {
        let nothing = OpenOptions::new().read(true).write(true).open("/dev/null")?;
        // This process was started by another one, so it does not lead a process group.
        setsid()?;
        stdio::dup2_stdout(&nothing)?;
        stdio::dup2_stderr(&nothing)?;
        rustix::io::write(stdio::stdin(), &[code])?;
        stdio::dup2_stdin(&nothing)?;
        Ok(())
    }
}
