//! Shutdown requests of the user or the system.

use futures::FutureExt;
use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listens for SIGINT (Ctrl-C), SIGTERM and SIGHUP. Once it exists, none of them ends the process directly.
#[derive(Debug)]
pub struct ShutdownListener {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    ends_at_hangup: bool,
}

impl ShutdownListener {
    /// Starts listening, for a process of a single user or client: it ends with their terminal. Must be called within a
    /// tokio runtime.
    ///
    /// # Errors
    /// The error of the operating system if a signal cannot be handled.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            ends_at_hangup: true,
        })
    }

    /// Starts listening like [`listen`](Self::listen), for a server of many clients: it outlives the terminal from
    /// which it was started.
    ///
    /// # Errors
    /// The error of the operating system if a signal cannot be handled.
    pub fn of_server() -> io::Result<Self> {
        Ok(Self { ends_at_hangup: false, ..Self::listen()? })
    }

    /// Waits until the next signal asks the process to end. Each signal counts once.
    pub async fn requested(&mut self) {
        self.next_signal().await;
    }

    /// Waits like [`requested`](Self::requested), and returns the meaning of the signal.
    pub async fn next_signal(&mut self) -> ShutdownSignal {
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => return ShutdownSignal::Interrupt,
                _ = self.terminate.recv() => return ShutdownSignal::Terminate,
                _ = self.hangup.recv() => match self.ends_at_hangup {
                    true => return ShutdownSignal::Terminate,
                    false => tracing::warn!("SIGHUP is ignored: settings are read at the start alone, SIGTERM ends the server"),
                },
            }
        }
    }

    /// Discards each Ctrl-C that was received so far, because it was for an operation that has ended.
    pub fn forget_interrupts(&mut self) {
        while self.interrupt.recv().now_or_never().is_some() {}
    }
}

/// Meaning of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShutdownSignal {
    /// End the current operation: Ctrl-C.
    Interrupt,
    /// End the process.
    Terminate,
}
