//! The wish of the person or the system that this program ends.

use futures::FutureExt;
use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listens for SIGINT (Ctrl-C), SIGTERM and SIGHUP, from its making on: none of them ends the program by itself then.
#[derive(Debug)]
pub struct Shutdown {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    ends_at_hangup: bool,
}

impl Shutdown {
    /// Begins to listen, for a program of one person or one client: it ends when their terminal goes. Within a tokio
    /// runtime.
    ///
    /// # Errors
    /// The operating system's, when a signal cannot be handled.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            ends_at_hangup: true,
        })
    }

    /// As [`listen`](Self::listen), for a server of many clients: it outlives the terminal that it was started from.
    ///
    /// # Errors
    /// Likewise.
    pub fn of_server() -> io::Result<Self> {
        Ok(Self { ends_at_hangup: false, ..Self::listen()? })
    }

    /// Returns when the program is asked to end, once for each time.
    pub async fn requested(&mut self) {
        self.wish().await;
    }

    /// As [`requested`](Self::requested), and says what is meant.
    pub async fn wish(&mut self) -> Wish {
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => return Wish::Interrupt,
                _ = self.terminate.recv() => return Wish::End,
                _ = self.hangup.recv() => match self.ends_at_hangup {
                    true => return Wish::End,
                    false => tracing::warn!("SIGHUP is ignored: settings are read at the start alone, SIGTERM ends the server"),
                },
            }
        }
    }

    /// Forgets each Ctrl-C that came by now: what it was meant for is over.
    pub fn forget_interrupts(&mut self) {
        while self.interrupt.recv().now_or_never().is_some() {}
    }
}

/// What a signal means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// What goes on is to end: Ctrl-C.
    Interrupt,
    /// The program is to end.
    End,
}
