//! Logging, only to standard error: standard output is used for results and for the protocol.

use crate::{
    config::layers::environment::{EnvironmentVariables, LOG},
    escaping_writer::{escaped_json, on_one_line},
};
use clap::ValueEnum;
use serde_json::Value;
use std::io::{self, Write};
use toolstead_application::redaction::{redacted, redacted_value};
use tracing_subscriber::EnvFilter;

/// Target of the events of a server: its start and end, sessions, refused requests.
pub(crate) const SERVER: &str = "toolstead::server";

/// Amount of logging.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// Errors.
    Quiet,
    /// Errors and warnings.
    Normal,
    /// Errors, warnings and information about what happens.
    Verbose,
    /// Also details for developers of Toolstead, at the level `debug`.
    Debug,
}

/// Format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum LogFormat {
    /// One line of text for each event
    #[default]
    Text,
    /// One JSON object a line
    Json,
}

/// Content and format of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogSettings {
    /// Least severe level that is logged.
    pub verbosity: Verbosity,
    /// Format of the lines.
    pub format: LogFormat,
    /// `true` to log the events of a server also without `-v`.
    pub server: bool,
    /// `true` to log each call.
    pub calls: bool,
}

impl LogSettings {
    fn directives(self) -> String {
        let level = match self.verbosity {
            Verbosity::Quiet => return "error".into(),
            Verbosity::Normal => "warn",
            Verbosity::Verbose => "info",
            Verbosity::Debug => "debug",
        };
        let calls = if self.calls { "info" } else { "off" };
        let server = match self.server && self.verbosity == Verbosity::Normal {
            true => ",toolstead::server=info,toolstead::upstream=info",
            false => "",
        };
        // The OAuth library logs authorization codes at the level `debug`.
        let library = if self.verbosity == Verbosity::Debug { ",rmcp=info" } else { "" };
        format!("{level}{library},toolstead::calls={calls}{server}")
    }
}

/// Starts logging as `TOOLSTEAD_LOG` specifies, or else as the settings do. A second call has no effect.
pub fn start(settings: LogSettings, environment: &EnvironmentVariables) {
    let wanted = environment.get(LOG).and_then(|directives| EnvFilter::try_new(directives).ok());
    let filter = wanted.unwrap_or_else(|| EnvFilter::new(settings.directives()));
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_target(false);
    // An embedding application may have set its own subscriber, which is retained.
    let _ = match settings.format {
        LogFormat::Text => {
            subscriber.with_writer(|| RedactingLogWriter { to: io::stderr(), format: LogFormat::Text }).try_init()
        }
        LogFormat::Json => subscriber
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .with_span_list(false)
            .with_writer(|| RedactingLogWriter { to: io::stderr(), format: LogFormat::Json })
            .try_init(),
    };
}

/// Removes secrets from log lines, and escapes characters that would control a terminal or start another line. Receives
/// each line in one piece.
struct RedactingLogWriter<W> {
    to: W,
    format: LogFormat,
}

impl<W: Write> Write for RedactingLogWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let line = text.strip_suffix('\n').unwrap_or(&text);
        let line = match self.format {
            LogFormat::Text => on_one_line(&redacted(line)),
            LogFormat::Json => match serde_json::from_str::<Value>(line) {
                Ok(event) => escaped_json(&redacted_value(&event).to_string()),
                // The formatter writes JSON. Anything else is treated as text.
                Err(_) => escaped_json(&Value::from(redacted(line)).to_string()),
            },
        };
        self.to.write_all(format!("{line}\n").as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
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

    /// The lines that the events of `log` make.
    fn lines(format: LogFormat, log: impl FnOnce()) -> String {
        let written = Shared::default();
        let to = written.clone();
        let writer = move || RedactingLogWriter { to: to.clone(), format };
        let subscriber = tracing_subscriber::fmt().with_ansi(false);
        match format {
            LogFormat::Text => tracing::subscriber::with_default(subscriber.with_writer(writer).finish(), log),
            LogFormat::Json => {
                let subscriber = subscriber.json().flatten_event(true).with_writer(writer).finish();
                tracing::subscriber::with_default(subscriber, log);
            }
        }
        String::from_utf8(written.0.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn secrets_in_log_lines_are_redacted() {
        for format in [LogFormat::Text, LogFormat::Json] {
            let line = lines(format, || {
                tracing::warn!(url = "https://me:hunter2@h/x?token=abc", "sent Bearer abc.def");
            });
            assert!(line.contains("https://me:[redacted]@h/x?token=[redacted]"), "{line}");
            assert!(line.contains("sent Bearer [redacted]"), "{line}");
        }
    }

    #[test]
    fn log_values_cannot_inject_terminal_controls_or_new_lines() {
        let hostile = "\u{1b}]0;x\u{7}\u{9b}31m\u{202e}\n2026-01-01T00:00:00Z  INFO forged\ttab";
        for format in [LogFormat::Text, LogFormat::Json] {
            let line = lines(format, || tracing::warn!(client = hostile, shown = %hostile, "{hostile}"));
            assert_eq!(line.matches('\n').count(), 1, "{line:?}");
            assert!(!line.trim_end().chars().any(|c| c.is_control() || c == '\u{202e}'), "{line:?}");
        }
        let line = lines(LogFormat::Json, || tracing::warn!(client = hostile, "m"));
        let event: Value = serde_json::from_str(&line).unwrap();
        assert_eq!((event["client"].as_str(), event["message"].as_str()), (Some(hostile), Some("m")), "{line}");
    }

    #[track_caller]
    fn check(verbosity: Verbosity, server: bool, calls: bool, expected: &str) {
        let settings = LogSettings { verbosity, format: LogFormat::Text, server, calls };
        assert_eq!(settings.directives(), expected);
    }

    #[test]
    fn the_flags_choose_what_is_logged() {
        check(Verbosity::Normal, false, false, "warn,toolstead::calls=off");
        check(
            Verbosity::Normal,
            true,
            false,
            "warn,toolstead::calls=off,toolstead::server=info,toolstead::upstream=info",
        );
        check(
            Verbosity::Normal,
            true,
            true,
            "warn,toolstead::calls=info,toolstead::server=info,toolstead::upstream=info",
        );
        check(Verbosity::Verbose, true, true, "info,toolstead::calls=info");
        check(Verbosity::Quiet, true, true, "error");
    }
}
