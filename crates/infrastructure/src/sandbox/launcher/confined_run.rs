//! Runtime side of a confined run.

use super::{Exit, LaunchError, LaunchThreadCommand, Launcher};
use crate::sandbox::zygote::{
    ConfinementLayers,
    request::{ProtectedChanges, RunEvent, receive_now},
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{OFlags, fcntl_setfl},
    net::AddressFamily,
    process::{Signal, pidfd_send_signal},
};
use std::{
    io,
    net::TcpListener,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixListener,
    },
    sync::{Arc, Weak},
    time::{Duration, Instant},
};
use tokio::{
    io::{Interest, unix::AsyncFd},
    time::timeout,
};
use toolstead_domain::FileDescriptorExhaustion;

/// Time after which an init that was requested to end is killed. It first kills the processes of the run and then
/// cleans up the workspace, which is a limited amount of work that takes far less.
pub(super) const TIME_TO_END: Duration = Duration::from_secs(10);
/// Message if the result of cleaning up was not received.
const NOT_PUT_RIGHT: &str = "the cleanup of the workspace after this command did not finish, because its process was \
                             ended or did not respond: check the settings of agents (`.mcp.json`, `.claude` and the \
                             like) and `.git` (`config`, `hooks`) before you use git or an agent there";

/// Message for a lost run without namespaces. Such a run cannot change protected names, but only a process ends its
/// programs.
const NOT_ENDED: &str = "processes of this command may still run, because the process that ends them was ended or \
                         did not respond: find them and end them";

/// Time for a run to start its program, after which the run is ended: its files may be on a disk that does not respond.
/// A busy machine does not reach this limit.
const TIME_TO_BEGIN: Duration = Duration::from_secs(60);

/// A run and its init. Dropping it ends both.
#[derive(Debug)]
pub(super) struct ConfinedRun {
    /// Process id of the init.
    pub(super) id: u32,
    /// Changes of the run to protected names, known once it has ended.
    pub(super) aftermath: ProtectedChanges,
    /// `true` if a process that the program started outlived it and was killed.
    pub(super) had_survivors: bool,
    /// Socket of the init. Closing it ends the run, so other owners only have weak references.
    reports: Option<Arc<AsyncFd<OwnedFd>>>,
    process: Option<OwnedFd>,
    exit: Option<Exit>,
    launcher: Launcher,
    layers: ConfinementLayers,
}

/// Listening sockets that the runtime received from a run.
#[derive(Debug, Default)]
pub(super) struct RunListeningSockets {
    pub(super) proxy: Option<TcpListener>,
    pub(super) tools: Option<UnixListener>,
}

impl RunListeningSockets {
    /// Assigns the descriptors by their socket family.
    fn of(descriptors: Vec<OwnedFd>) -> Self {
        let mut listeners = Self::default();
        for one in descriptors {
            match rustix::net::sockopt::socket_domain(&one) {
                Ok(AddressFamily::UNIX) => listeners.tools = Some(one.into()),
                _ => listeners.proxy = Some(one.into()),
            }
        }
        listeners
    }
}

impl ConfinedRun {
    /// Waits until the program of the run with these reports has started, and returns the run with its listeners. Fails
    /// if that takes longer than [`TIME_TO_BEGIN`].
    pub(super) async fn begin(
        reports: OwnedFd,
        launcher: Launcher,
        layers: ConfinementLayers,
    ) -> Result<(Self, RunListeningSockets), LaunchError> {
        let failed = |error: io::Error| match FileDescriptorExhaustion::of(&error) {
            Some(limit) => LaunchError::OutOfDescriptors(limit),
            None => LaunchError::Confine(format!("receive reports of the run: {error}")),
        };
        fcntl_setfl(&reports, OFlags::NONBLOCK).map_err(|error| failed(error.into()))?;
        // SAFETY: the descriptor is owned by the value that registers it, and is closed with that.
        let reports = unsafe { AsyncFd::register_with_interest(reports, Interest::READABLE) };
        let reports = reports.map_err(|error| failed(error.into()))?;
        let mut run = Self {
            id: 0,
            aftermath: ProtectedChanges::default(),
            had_survivors: false,
            reports: Some(Arc::new(reports)),
            process: None,
            exit: None,
            launcher,
            layers,
        };
        let listeners = timeout(TIME_TO_BEGIN, run.started()).await.map_err(|_| {
            let seconds = TIME_TO_BEGIN.as_secs();
            LaunchError::Confine(format!(
                "it was not ready after {seconds} seconds; one of its folders may not respond"
            ))
        })??;
        Ok((run, listeners))
    }

    /// Waits until the program runs, and returns its listeners. The zygote reports the process and the init reports the
    /// start, so either report may arrive first.
    async fn started(&mut self) -> Result<RunListeningSockets, LaunchError> {
        let failed = |error: io::Error| match FileDescriptorExhaustion::of(&error) {
            Some(limit) => LaunchError::OutOfDescriptors(limit),
            None => LaunchError::Confine(format!("receive reports of the run: {error}")),
        };
        let mut started: Option<RunListeningSockets> = None;
        loop {
            match self.receive_report().await {
                Ok(Some((RunEvent::Born { pid }, descriptors))) => {
                    self.id = pid.unsigned_abs();
                    self.process = descriptors.into_iter().next();
                }
                Ok(Some((RunEvent::Started, descriptors))) => {
                    started = Some(RunListeningSockets::of(descriptors));
                }
                Ok(Some((RunEvent::Failed(failure), _))) => return Err(failure.into()),
                Ok(Some((end @ RunEvent::Ended { .. }, _))) if started.is_some() => self.record_exit(end),
                // The loss of the run is reported as its exit.
                Ok(None) | Err(_) if started.is_some() => return Ok(started.unwrap_or_default()),
                Ok(Some((RunEvent::Ended { .. }, _)) | None) => {
                    let reason = "it ended before its program ran".to_owned();
                    return Err(LaunchError::Confine(reason));
                }
                Err(error) => return Err(failed(error)),
            }
            if self.id != 0
                && let Some(listeners) = started.take()
            {
                return Ok(listeners);
            }
        }
    }

    pub(super) async fn exited(&mut self) -> Exit {
        loop {
            if let Some(exit) = self.exit {
                return exit;
            }
            match self.receive_report().await {
                Ok(Some((report, _))) => self.record_exit(report),
                // The init was killed, and with it all processes of the run.
                Ok(None) => self.mark_lost(),
                // The runtime is shutting down, so no caller receives a result.
                Err(_) => std::future::pending().await,
            }
        }
    }

    /// Stores the outcome if this report contains it.
    fn record_exit(&mut self, report: RunEvent) {
        let RunEvent::Ended { code, by_signal, had_survivors, out_of_memory, aftermath } = report else { return };
        if !aftermath.undone.is_empty() {
            tracing::info!(undone = ?aftermath.undone, "undid changes of a confined program");
        }
        if !aftermath.left.is_empty() {
            tracing::warn!(left = ?aftermath.left, "a confined program left changes that must not be trusted");
        }
        self.aftermath = aftermath;
        self.had_survivors = had_survivors;
        self.exit = Some(match out_of_memory {
            Some(whose) => Exit::OutOfMemory(whose),
            None if by_signal => Exit::Signal(code),
            None => Exit::Code(code),
        });
    }

    /// Records that no further report will arrive. Unless the exit is known, the run counts as killed, and a warning is
    /// logged and added to its aftermath.
    pub(super) fn mark_lost(&mut self) {
        if self.exit.is_none() {
            let message = match self.layers {
                ConfinementLayers::All => NOT_PUT_RIGHT,
                ConfinementLayers::WithoutNamespaces => NOT_ENDED,
            };
            tracing::warn!("a confined program was lost: {message}");
            self.aftermath.left.push(message.into());
            self.exit = Some(Exit::Signal(Signal::KILL.as_raw()));
        }
    }

    pub(super) fn signal(&self, signal: Signal) {
        self.send_byte(signal.as_raw().to_le_bytes()[0]);
    }

    /// Requests that processes the program leaves behind are killed at once.
    pub(super) fn end_leftovers_at_once(&self) {
        self.send_byte(0);
    }

    fn send_byte(&self, byte: u8) {
        let Some(reports) = &self.reports else { return };
        // Fails only if the run has ended.
        let _ = rustix::io::write(reports.get_ref(), &[byte]);
    }

    /// Kills all processes of the run. The end is reported as its exit.
    pub(super) fn end(&self) {
        self.killer()();
    }

    /// Returns a function that ends the run and does not keep it alive.
    pub(super) fn killer(&self) -> impl FnOnce() + Send + 'static {
        let reports = self.reports.as_ref().map_or_else(Weak::new, Arc::downgrade);
        move || {
            if let Some(reports) = reports.upgrade() {
                // The init reads the end of the stream, and can still send its reports.
                let _ = rustix::net::shutdown(reports.get_ref(), rustix::net::Shutdown::Write);
            }
        }
    }

    async fn receive_report(&self) -> io::Result<Option<(RunEvent, Vec<OwnedFd>)>> {
        let Some(reports) = &self.reports else { return Ok(None) };
        loop {
            let mut ready = reports.readable().await?;
            let Ok(received) = ready.try_io(|reports| received(reports.get_ref())) else { continue };
            let (bytes, descriptors) = received?;
            // The end of the stream, or an invalid report: no valid one can follow it.
            return Ok(serde_json::from_slice(&bytes).ok().map(|report| (report, descriptors)));
        }
    }
}

/// Receives the next report, if there is one. If a run ended without reading all of its input, the first receive fails
/// with `ECONNRESET`, and the next one returns the remaining reports.
fn received(reports: &OwnedFd) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    match receive_now(reports) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => receive_now(reports),
        received => received,
    }
}

impl Drop for ConfinedRun {
    fn drop(&mut self) {
        let reports = self.reports.take();
        // The report with its process descriptor may be unread.
        while self.process.is_none()
            && let Some(reports) = &reports
            && let Ok((bytes, descriptors)) = received(reports.get_ref())
            && let Ok(report) = serde_json::from_slice(&bytes)
        {
            if let RunEvent::Born { .. } = report {
                self.process = descriptors.into_iter().next();
            }
        }
        // Closing the socket ends the run.
        drop(reports);
        if let Some(process) = self.process.take() {
            // Cannot fail, because the thread runs as long as any sender exists.
            let _ = self.launcher.orders.send(LaunchThreadCommand::End(process));
        }
    }
}

/// A run that was requested to end.
#[derive(Debug)]
pub(super) struct EndingRun {
    process: OwnedFd,
    deadline: Instant,
}

impl EndingRun {
    pub(super) fn of(process: OwnedFd) -> Self {
        Self { process, deadline: Instant::now() + TIME_TO_END }
    }

    /// Returns `true` if the init has ended. Kills it once its time has passed.
    pub(super) fn is_over(&self) -> bool {
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut events = [PollFd::new(&self.process, PollFlags::IN)];
        if !matches!(poll(&mut events, Some(&at_once)), Ok(0) | Err(rustix::io::Errno::INTR)) {
            return true;
        }
        if Instant::now() >= self.deadline {
            // Fails only if it has just ended.
            let _ = pidfd_send_signal(self.process.as_fd(), Signal::KILL);
        }
        false
    }
}

#[cfg(test)]
mod tests;
