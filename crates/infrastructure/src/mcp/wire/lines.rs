//! Messages as lines (MCP 2025-11-25, basic/transports, "stdio"), bounded while they are read.

use std::{io, sync::Arc};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader},
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    task::{JoinHandle, yield_now},
};

/// The longest message that is taken, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 16 << 20;
/// What may wait to be written: two messages of the largest size.
const MAX_QUEUED_BYTES: usize = 2 * MAX_MESSAGE_BYTES;
/// What is kept of a line that is too long: enough to find its id near the beginning.
const KEPT_BYTES: usize = 4 << 10;
/// What is kept of the end of such a line: some servers write the id last.
const KEPT_END_BYTES: usize = 256;
/// So many lines become one write at most.
const LINES_AT_ONCE: usize = 64;

/// Reads lines of at most a given length and never holds more than that.
#[derive(Debug)]
pub struct BoundedLines<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    limit: usize,
    too_long: bool,
    /// The end of the line that was too long last.
    end: Vec<u8>,
}

/// A line without its line break.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// A whole line; a carriage return at its end is gone, too.
    Whole(Vec<u8>),
    /// The beginning of a line that was too long. The rest was read and thrown away.
    TooLong(Vec<u8>),
}

impl<R: AsyncRead + Unpin> BoundedLines<R> {
    /// Reads from `reader`; lines longer than `limit` bytes are cut off.
    pub fn new(reader: R, limit: usize) -> Self {
        Self {
            reader: BufReader::with_capacity(64 << 10, reader),
            line: Vec::new(),
            limit,
            too_long: false,
            end: Vec::new(),
        }
    }

    /// The next line; `None` at the end of input. A last line without a line break counts. Cancel-safe: what was read
    /// is kept when the future is dropped.
    ///
    /// # Errors
    /// The reader's.
    pub async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            let chunk = self.reader.fill_buf().await?;
            if chunk.is_empty() {
                return Ok((!self.line.is_empty() || self.too_long).then(|| self.take()));
            }
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let part = &chunk[..end.unwrap_or(chunk.len())];
            if self.too_long || self.line.len() + part.len() > self.limit {
                if !self.too_long {
                    self.end.clear();
                    self.end.extend_from_slice(&self.line[self.line.len().saturating_sub(KEPT_END_BYTES)..]);
                    self.line.extend_from_slice(&part[..part.len().min(KEPT_BYTES)]);
                    self.line.truncate(KEPT_BYTES);
                    self.line.shrink_to_fit();
                    self.too_long = true;
                }
                self.end.extend_from_slice(&part[part.len().saturating_sub(KEPT_END_BYTES)..]);
                self.end.drain(..self.end.len().saturating_sub(KEPT_END_BYTES));
            } else {
                self.line.extend_from_slice(part);
            }
            let used = part.len() + usize::from(end.is_some());
            self.reader.consume(used);
            if end.is_some() {
                return Ok(Some(self.take()));
            }
        }
    }

    /// The last bytes of the line that was [`Line::TooLong`] last, at most 256.
    pub fn end_of_long_line(&self) -> &[u8] {
        &self.end
    }

    fn take(&mut self) -> Line {
        let mut line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.too_long) {
            return Line::TooLong(line);
        }
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        Line::Whole(line)
    }
}

/// Sends messages as lines through one task, so that no two are ever mixed and many become one write. What waits to be
/// written is bounded in number and in bytes.
#[derive(Debug, Clone)]
pub struct LineSender {
    queue: mpsc::Sender<Queued>,
    room: Arc<Semaphore>,
}

/// A line with the room that it takes.
type Queued = (Vec<u8>, OwnedSemaphorePermit);

impl LineSender {
    /// Starts the writing task. It ends when every sender is gone, or with the first error.
    pub fn spawn<W: AsyncWrite + Unpin + Send + 'static>(mut writer: W) -> (Self, JoinHandle<io::Result<()>>) {
        let (sender, mut queue) = mpsc::channel::<Queued>(256);
        let task = tokio::spawn(async move {
            let mut lines = Vec::new();
            let mut bytes = Vec::new();
            while queue.recv_many(&mut lines, LINES_AT_ONCE).await > 0 {
                // Woken by the first line, this runs before whoever is about to send the next one. One write, and one
                // look of the other side, takes them all.
                yield_now().await;
                while lines.len() < LINES_AT_ONCE
                    && let Ok(line) = queue.try_recv()
                {
                    lines.push(line);
                }
                for (line, _) in &lines {
                    bytes.extend_from_slice(line);
                    bytes.push(b'\n');
                }
                writer.write_all(&bytes).await?;
                writer.flush().await?;
                lines.clear();
                bytes.clear();
                bytes.shrink_to(1 << 20);
            }
            writer.shutdown().await
        });
        (Self { queue: sender, room: Arc::new(Semaphore::new(MAX_QUEUED_BYTES)) }, task)
    }

    /// Queues one message (without line breaks); waits while the other side does not read.
    ///
    /// # Errors
    /// [`LinesClosed`] when the writing task has ended.
    pub async fn send(&self, line: Vec<u8>) -> Result<(), LinesClosed> {
        let room = self.room.clone().acquire_many_owned(room_of(&line)).await.map_err(|_| LinesClosed)?;
        self.queue.send((line, room)).await.map_err(|_| LinesClosed)
    }

    /// Queues one message unless the queue is full. For what may be lost: progress, logs.
    pub fn try_send(&self, line: Vec<u8>) -> bool {
        let room = self.room.clone().try_acquire_many_owned(room_of(&line));
        room.is_ok_and(|room| self.queue.try_send((line, room)).is_ok())
    }
}

/// A single message always fits, however large it is.
fn room_of(line: &[u8]) -> u32 {
    u32::try_from(line.len().min(MAX_QUEUED_BYTES)).unwrap_or(u32::MAX)
}

/// The other side does not read any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the other side has closed the connection")]
pub struct LinesClosed;

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(input: &[u8], limit: usize) -> Vec<Line> {
        let mut lines = BoundedLines::new(input, limit);
        let mut all = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            all.push(line);
        }
        all
    }

    #[tokio::test]
    async fn lines_end_in_any_usual_way() {
        let whole = |text: &str| Line::Whole(text.into());
        assert_eq!(read(b"a\r\n\nb", 10).await, [whole("a"), whole(""), whole("b")]);
    }

    #[tokio::test]
    async fn a_long_line_is_cut_off_and_the_next_one_is_read() {
        let input = format!("{{\"id\":1{}\nok\n", "x".repeat(1 << 20));
        let lines = read(input.as_bytes(), 1000).await;
        assert!(
            matches!(&lines[0], Line::TooLong(start) if start.starts_with(b"{\"id\":1") && start.len() <= KEPT_BYTES)
        );
        assert_eq!(lines[1..], [Line::Whole("ok".into())]);
    }

    #[tokio::test]
    async fn the_end_of_a_long_line_is_kept_as_well() {
        for padding in [1 << 20, 995, (64 << 10) - 13] {
            let input = format!("{{\"result\":\"{}\",\"id\":77}}\nok", "x".repeat(padding));
            let mut lines = BoundedLines::new(input.as_bytes(), padding.min(65_530));
            assert!(matches!(lines.next().await.unwrap(), Some(Line::TooLong(_))));
            assert!(lines.end_of_long_line().ends_with(b"xx\",\"id\":77}"), "{padding}");
            assert!(lines.end_of_long_line().len() <= KEPT_END_BYTES);
        }
    }

    #[tokio::test]
    async fn messages_are_written_whole_and_in_order() {
        let (reader, writer) = tokio::io::duplex(64);
        let (sender, task) = LineSender::spawn(writer);
        let reading = tokio::spawn(async move {
            let mut lines = BoundedLines::new(reader, 1 << 20);
            let mut all = Vec::new();
            while let Some(line) = lines.next().await.unwrap() {
                all.push(line);
            }
            all
        });
        for n in 0..500 {
            sender.send(n.to_string().into_bytes()).await.unwrap();
        }
        drop(sender);
        task.await.unwrap().unwrap();
        let expected: Vec<Line> = (0..500).map(|n: i32| Line::Whole(n.to_string().into_bytes())).collect();
        assert_eq!(reading.await.unwrap(), expected);
    }

    #[tokio::test]
    async fn what_waits_for_a_reader_is_bounded_in_bytes() {
        let (mut reader, writer) = tokio::io::duplex(1 << 20);
        let (sender, task) = LineSender::spawn(writer);
        let large = vec![b'x'; MAX_MESSAGE_BYTES];
        assert!(sender.try_send(large.clone()) && sender.try_send(large.clone()));
        assert!(!sender.try_send(b"no room".to_vec()));
        let waiting = tokio::spawn(async move { sender.send(vec![b'y'; 3 * MAX_MESSAGE_BYTES]).await });
        let mut all = Vec::new();
        tokio::io::AsyncReadExt::read_to_end(&mut reader, &mut all).await.unwrap();
        assert_eq!(waiting.await.unwrap(), Ok(()));
        task.await.unwrap().unwrap();
        assert_eq!(all.len(), 5 * MAX_MESSAGE_BYTES + 3);
    }
}
