//! A command of the command line whose work goes on after it: the work is done by the same program, started a second
//! time, which tells the first one when it may end.
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

/// The name under which this program is started a second time.
const NAME: &str = "toolstead-keeper";

/// The second process, which may live on after the command.
#[derive(Debug)]
pub struct DetachedProcess(());

impl DetachedProcess {
    /// This process, if it was started as one.
    pub fn of_process() -> Option<Self> {
        let is_socket = || rustix::net::sockopt::socket_type(stdio::stdin()).is_ok();
        (env::args_os().next().is_some_and(|name| name == NAME) && is_socket()).then_some(Self(()))
    }

    /// Does all that this command line says in a second process, which is given this input. Returns the exit code once
    /// there is one; the other process may live on.
    ///
    /// # Errors
    /// The system's, when it cannot be started or be heard.
    pub async fn instead(input: Vec<u8>) -> io::Result<u8> {
        let (mut interrupt, mut terminate, mut hangup) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?, signal(SignalKind::hangup())?);
        let (ours, theirs) = UnixStream::pair()?;
        let mut second = Command::new("/proc/self/exe");
        second.arg0(NAME).args(env::args_os().skip(1)).stdin(Stdio::from(OwnedFd::from(theirs)));
        let mut child = second.spawn()?;
        // The command keeps the other end of the socket, at which nobody would hear of the child's end.
        drop(second);
        let process = Pid::from_child(&child);
        let mut writer = ours.try_clone()?;
        let written = spawn_blocking(move || {
            // Whoever does not read it has failed already, and says why.
            let _ = writer.write_all(&input);
            let _ = writer.shutdown(Shutdown::Write);
        });
        ours.set_nonblocking(true)?;
        let mut ours = tokio::net::UnixStream::from_std(ours)?;
        let mut code = [0];
        let told = loop {
            tokio::select! {
                read = ours.read(&mut code) => break matches!(read, Ok(1)),
                // A terminal tells both of them.
                _ = interrupt.recv() => {}
                _ = terminate.recv() => drop(kill_process(process, Signal::TERM)),
                _ = hangup.recv() => drop(kill_process(process, Signal::HUP)),
            }
        };
        if told {
            return Ok(code[0]);
        }
        let _ = written.await;
        let status = spawn_blocking(move || child.wait()).await.map_err(io::Error::other)??;
        let by_signal = || status.signal().and_then(|signal| u8::try_from(128 + signal).ok());
        Ok(status.code().and_then(|code| u8::try_from(code).ok()).or_else(by_signal).unwrap_or(70))
    }

    /// Lets the command end with this code. From here on this process has neither terminal nor input nor output.
    ///
    /// # Errors
    /// The system's; then the command has not ended.
    pub fn let_command_end(self, code: u8) -> io::Result<()> {
        let nothing = OpenOptions::new().read(true).write(true).open("/dev/null")?;
        // It was started by another process, so it leads no group.
        setsid()?;
        stdio::dup2_stdout(&nothing)?;
        stdio::dup2_stderr(&nothing)?;
        rustix::io::write(stdio::stdin(), &[code])?;
        stdio::dup2_stdin(&nothing)?;
        Ok(())
    }
}
