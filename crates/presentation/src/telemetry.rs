//! Logging, to standard error alone: standard output belongs to results and to the protocol.

use crate::config::environment::{Environment, LOG};
use std::io::{self, Write};
use toolstead_application::redaction::redacted;
use tracing_subscriber::EnvFilter;

/// How much is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verbosity {
    /// Errors.
    Quiet,
    /// Warnings too.
    Normal,
    /// What happens, too.
    Verbose,
    /// Everything.
    Debug,
}

/// Starts logging: as `TOOLSTEAD_LOG` says, else as the flags do. A second call changes nothing.
pub fn start(verbosity: Verbosity, environment: &Environment) {
    let filter = match verbosity {
        Verbosity::Quiet => "error",
        Verbosity::Normal => "warn",
        Verbosity::Verbose => "info",
        Verbosity::Debug => "debug",
    };
    let wanted = environment.get(LOG).and_then(|directives| EnvFilter::try_new(directives).ok());
    let filter = wanted.unwrap_or_else(|| EnvFilter::new(filter));
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(|| Redacting(io::stderr()));
    // A program that embeds Toolstead may have set its own subscriber, which stays.
    let _ = subscriber.with_ansi(false).with_target(false).try_init();
}

/// Takes secrets out of what is written. Each line of the log comes in one piece.
struct Redacting<W>(W);

impl<W: Write> Write for Redacting<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_all(redacted(&String::from_utf8_lossy(bytes)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex, PoisonError};

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn no_line_of_the_log_tells_a_secret() {
        let written = Shared::default();
        let to = written.clone();
        let subscriber = tracing_subscriber::fmt().with_writer(move || Redacting(to.clone())).with_ansi(false).finish();
        tracing::subscriber::with_default(subscriber, || {
            tracing::warn!(url = "https://me:hunter2@h/x?token=abc", "sent Bearer abc.def");
        });
        let line = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        assert!(line.contains("https://me:[redacted]@h/x?token=[redacted]"), "{line}");
        assert!(line.contains("sent Bearer [redacted]"), "{line}");
    }
}
