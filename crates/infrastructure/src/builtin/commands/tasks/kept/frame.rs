//! What keeper and followers of a task say to each other, and what its record says.

use crate::{
    builtin::commands::{capture::Stream, command::End},
    sandbox::launcher::ChildSignal,
};
use serde::{Deserialize, Serialize};
use std::io;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};

/// A line is no longer: a command and what surrounds it, each character escaped.
const MAX_LINE: u64 = 4 << 20;
/// Bytes behind one line.
const MAX_BYTES: usize = 16 << 20;

/// One thing that is said.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Frame {
    /// First of all, by the keeper: what never changes.
    Task(Portrait),
    /// So many bytes stand behind this line. They were printed at this place.
    Output { stream: Stream, place: u64, bytes: usize },
    /// All is told that was printed before somebody came.
    UpToDate,
    /// Somebody's last look ended there.
    Looked(u64),
    /// Somebody has heard of the end.
    Told,
    /// How it ended. Nothing is printed any more.
    End(End),
    /// To the keeper.
    Signal(ChildSignal),
    /// To the keeper: SIGTERM, and an end after a grace.
    Stop,
    /// To the keeper.
    Kill,
    /// To the keeper: so many bytes for the input of the command stand behind this line.
    Input { bytes: usize },
    /// To the keeper.
    CloseInput,
}

/// A task, as it is from its beginning on.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Portrait {
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
    /// As it is written; the bytes follow.
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

/// Frames, one after the other.
#[derive(Debug)]
pub(super) struct Frames<R>(BufReader<R>);

impl<R: AsyncRead + Unpin> Frames<R> {
    pub(super) fn of(reader: R) -> Self {
        Self(BufReader::new(reader))
    }

    /// The next line, without its end, as text.
    ///
    /// # Errors
    /// The system's, and where there is no whole line, or one that is too long.
    pub(super) async fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        (&mut self.0).take(MAX_LINE).read_line(&mut line).await?;
        match line.strip_suffix('\n') {
            Some(line) => Ok(line.to_owned()),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// The next frame with its bytes; `None` at the end.
    ///
    /// # Errors
    /// The system's, and where it breaks off or is no frame.
    pub(super) async fn next(&mut self) -> io::Result<Option<(Frame, Vec<u8>)>> {
        if self.0.fill_buf().await?.is_empty() {
            return Ok(None);
        }
        let frame: Frame = serde_json::from_str(&self.line().await?)?;
        if frame.bytes() > MAX_BYTES {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "more bytes than a frame has"));
        }
        let mut bytes = vec![0; frame.bytes()];
        self.0.read_exact(&mut bytes).await?;
        Ok(Some((frame, bytes)))
    }
}
