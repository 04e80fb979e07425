//! Frames of the protocol between the process that owns a task and its followers, and of the record of a task.

use crate::{
    builtin::commands::{capture::OutputStream, command::CommandEnd},
    sandbox::launcher::ProcessSignal,
};
use serde::{Deserialize, Serialize};
use std::io;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};

/// Maximum length of a line in bytes: enough for a command and its context with every character escaped.
const MAX_LINE: u64 = 4 << 20;
/// Maximum number of bytes that follow one line.
const MAX_BYTES: usize = 16 << 20;

/// A message of the protocol, and an entry of the record.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Frame {
    /// First frame from the owner: facts that never change.
    Task(TaskMetadata),
    /// `bytes` bytes of output follow this line. They were printed at position `place`.
    Output { stream: OutputStream, place: u64, bytes: usize },
    /// All output that was printed before the follower connected has been sent.
    UpToDate,
    /// Position up to which a follower has read the output.
    Looked(u64),
    /// A follower has reported the end of the task.
    Told,
    /// Result of the task. No more output follows.
    End(CommandEnd),
    /// To the owner: send this signal.
    Signal(ProcessSignal),
    /// To the owner: send SIGTERM, and kill the task after the grace period.
    Stop,
    /// To the owner: kill the task.
    Kill,
    /// To the owner: `bytes` bytes for the input of the command follow this line.
    Input { bytes: usize },
    /// To the owner: close the input of the command.
    CloseInput,
}

/// Facts about a task that are known from its start.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct TaskMetadata {
    pub(super) principal: String,
    pub(super) session: String,
    pub(super) text: String,
    pub(super) description: Option<String>,
    /// Microseconds since 1970.
    pub(super) started_at: i64,
    pub(super) process: u32,
    pub(super) takes_input: bool,
}

impl Frame {
    /// Returns the frame as a line; the caller writes the bytes after it.
    pub(super) fn line(&self) -> io::Result<Vec<u8>> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        Ok(line)
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Output { bytes, .. } | Self::Input { bytes } => *bytes,
            _ => 0,
        }
    }
}

/// Writes one frame with its bytes.
pub(super) async fn send(to: &mut (impl AsyncWrite + Unpin), frame: &Frame, bytes: &[u8]) -> io::Result<()> {
    to.write_all(&frame.line()?).await?;
    to.write_all(bytes).await?;
    to.flush().await
}

/// Reader of frames.
#[derive(Debug)]
pub(super) struct FrameReader<R>(BufReader<R>);

impl<R: AsyncRead + Unpin> FrameReader<R> {
    pub(super) fn of(reader: R) -> Self {
        Self(BufReader::new(reader))
    }

    /// Returns the next line, without its end, as text.
    ///
    /// # Errors
    /// Errors of the system, and an incomplete or too long line.
    pub(super) async fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        (&mut self.0).take(MAX_LINE).read_line(&mut line).await?;
        match line.strip_suffix('\n') {
            Some(line) => Ok(line.to_owned()),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Returns the next frame with its bytes; `None` at the end.
    ///
    /// # Errors
    /// Errors of the system, and an incomplete or invalid frame.
    pub(super) async fn next(&mut self) -> io::Result<Option<(Frame, Vec<u8>)>> {
        if self.0.fill_buf().await?.is_empty() {
            return Ok(None);
        }
        let frame: Frame = serde_json::from_str(&self.line().await?)?;
        if frame.bytes() > MAX_BYTES {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a frame exceeds the size limit"));
        }
        let mut bytes = vec![0; frame.bytes()];
        self.0.read_exact(&mut bytes).await?;
        Ok(Some((frame, bytes)))
    }
}
