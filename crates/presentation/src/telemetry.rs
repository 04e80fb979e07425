//! Logging, to standard error alone: standard output belongs to results and to the protocol.

use crate::config::environment::{Environment, LOG};
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
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A program that embeds Toolstead may have set its own subscriber, which stays.
    let _ = subscriber.with_ansi(false).with_target(false).try_init();
}
