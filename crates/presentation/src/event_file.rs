//! Events as JSON lines, written to a file or standard output.

use crate::escaping_writer::escaped_json;
use std::{
    fs, io,
    os::unix::fs::{FileTypeExt, OpenOptionsExt},
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};
use tokio::{
    io::{AsyncWrite, AsyncWriteExt, BufWriter},
    net::unix::pipe,
    task::JoinHandle,
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use toolstead_application::{EventSubscription, ReceivedEvent};

/// Maximum time to write pending events at the end.
const LAST_EVENTS: Duration = Duration::from_secs(2);

/// Target of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventTarget {
    /// The end of this file.
    File(PathBuf),
    /// Standard output.
    Stdout,
}

impl FromStr for EventTarget {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(if text == "-" { Self::Stdout } else { Self::File(text.into()) })
    }
}

/// Writes events as they occur, one JSON object per line.
#[derive(Debug)]
pub struct EventLineWriter {
    stop: CancellationToken,
    writing: JoinHandle<()>,
}

impl EventLineWriter {
    /// Starts writing. The file is created if necessary, accessible only to its owner.
    ///
    /// # Errors
    /// The error of the operating system if the file cannot be opened, or if it is a pipe without a reader.
    pub fn start(target: &EventTarget, events: EventSubscription) -> io::Result<Self> {
        let stop = CancellationToken::new();
        let writing = match target {
            EventTarget::File(path) if is_pipe(path) => tokio::spawn(write(open_pipe(path)?, events, stop.clone())),
            EventTarget::File(path) => tokio::spawn(write(open(path)?, events, stop.clone())),
            EventTarget::Stdout => tokio::spawn(write(tokio::io::stdout(), events, stop.clone())),
        };
        Ok(Self { stop, writing })
    }

    /// Writes the events that occurred until now, and stops. Gives up with a warning after 2 seconds.
    pub async fn finish(self) {
        self.stop.cancel();
        if timeout(LAST_EVENTS, self.writing).await.is_err() {
            tracing::warn!("the last events could not be written in time");
        }
    }
}

fn open(path: &Path) -> io::Result<tokio::fs::File> {
    let mut options = fs::OpenOptions::new();
    options.append(true).create(true).mode(0o600);
    options.open(path).map(tokio::fs::File::from_std).map_err(|error| not_written(path, &error))
}

fn is_pipe(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo())
}

/// Opens a pipe without waiting. Opening it as a file would block until it has a reader, and signals would not
/// interrupt that.
fn open_pipe(path: &Path) -> io::Result<pipe::Sender> {
    pipe::OpenOptions::new().open_sender(path).map_err(|error| match error.raw_os_error() {
        Some(libc::ENXIO) => {
            let reason = io::Error::new(error.kind(), "no process reads this pipe: start its reader first");
            not_written(path, &reason)
        }
        _ => not_written(path, &error),
    })
}

fn not_written(path: &Path, reason: &io::Error) -> io::Error {
    io::Error::new(reason.kind(), format!("events cannot be written to `{}`: {reason}", path.display()))
}

async fn write(writer: impl AsyncWrite + Unpin, mut events: EventSubscription, stop: CancellationToken) {
    let mut writer = BufWriter::new(writer);
    loop {
        let heard = tokio::select! {
            biased;
            heard = events.next() => heard,
            () = stop.cancelled() => break,
        };
        let Some(heard) = heard else { break };
        // Writes all pending events, then flushes, so that readers receive them immediately.
        let mut next = Some(heard);
        let written = async {
            while let Some(heard) = next {
                writer.write_all(line(&heard).as_bytes()).await?;
                next = events.waiting();
            }
            writer.flush().await
        };
        let written: io::Result<()> = written.await;
        if let Err(error) = written {
            tracing::warn!(%error, "events are no longer written");
            return;
        }
    }
}

fn line(heard: &ReceivedEvent) -> String {
    // Standard output may be a terminal, and the escaped text is the same JSON.
    format!("{}\n", escaped_json(&heard.to_json().to_string()))
}
