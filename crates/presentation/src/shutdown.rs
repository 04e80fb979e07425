//! The wish of the person or the system that this program ends.

use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listens for SIGINT (Ctrl-C), SIGTERM and SIGHUP, from its making on: none of them ends the program by itself then.
#[derive(Debug)]
pub struct Shutdown {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Shutdown {
    /// Begins to listen. Within a tokio runtime.
    ///
    /// # Errors
    /// The operating system's, when a signal cannot be handled.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Returns when the program is asked to end, once for each time.
    pub async fn requested(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => {}
        }
    }
}
