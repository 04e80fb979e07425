//! Messages as lines (MCP 2025-11-25, basic/transports, "stdio"), with a size limit while reading.

use std::{
    fmt,
    future::poll_fn,
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader},
    sync::{Semaphore, SemaphorePermit},
    task::{JoinHandle, yield_now},
};

/// Maximum size of a message, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 16 << 20;
/// Maximum number of bytes waiting to be written: two messages of the maximum size.
const MAX_QUEUED_BYTES: usize = 2 * MAX_MESSAGE_BYTES;
/// Number of bytes retained from the beginning of an overlong line, enough to find an id there.
const KEPT_BYTES: usize = 4 << 10;
/// Number of bytes retained from the end of an overlong line, because some servers write the id last.
const KEPT_END_BYTES: usize = 256;
/// Minimum queue capacity that a line occupies, in bytes. At most 256 lines can wait.
const MIN_ROOM: usize = MAX_QUEUED_BYTES / 256;
/// Maximum capacity of the buffers reused for the next lines, in bytes.
const RETAINED_BYTES: usize = 64 << 10;

/// Reader of lines up to a maximum length. Never buffers more than that.
#[derive(Debug)]
pub struct BoundedLines<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    limit: usize,
    too_long: bool,
    /// Last bytes of the most recent overlong line.
    end: Vec<u8>,
}

/// Line without its line break.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// Complete line. A carriage return at its end is removed.
    Whole(Vec<u8>),
    /// Beginning of an overlong line. The rest was read and discarded.
    TooLong(Vec<u8>),
}

impl<R: AsyncRead + Unpin> BoundedLines<R> {
    /// Creates a reader. Lines longer than `limit` bytes are truncated.
    pub fn new(reader: R, limit: usize) -> Self {
        Self {
            reader: BufReader::with_capacity(64 << 10, reader),
            line: Vec::new(),
            limit,
            too_long: false,
            end: Vec::new(),
        }
    }

    /// Returns the next line, or `None` at the end of input. A last line without a line break is included. Cancel-safe:
    /// dropping the future loses no data.
    ///
    /// # Errors
    /// Returns the reader's errors.
    pub async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            let chunk = self.reader.fill_buf().await?;
            if chunk.is_empty() {
                return Ok((!self.line.is_empty() || self.too_long).then(|| self.take()));
            }
            let end = memchr::memchr(b'\n', chunk);
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

    /// Returns the last bytes of the most recent [`Line::TooLong`], at most 256.
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

/// Sender of messages as lines that are never mixed. One task writes all waiting lines at once. The queue is limited in
/// lines and bytes.
#[derive(Debug, Clone)]
pub struct LineSender(Arc<LastSenderGuard>);

/// Owner of the queue. Its drop, with the last sender, ends the writing task.
#[derive(Debug)]
struct LastSenderGuard(Arc<LineQueue>);

#[derive(Debug)]
struct LineQueue {
    /// Free capacity for lines, in bytes. A line occupies its capacity until it is written completely.
    room: Semaphore,
    state: Mutex<QueueState>,
}

#[derive(Default)]
struct QueueState {
    /// `None` while the task writes, and once it has ended.
    writer: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    /// Waiting lines with their line breaks.
    bytes: Vec<u8>,
    /// Capacity that the waiting lines occupy, in bytes.
    held_room: usize,
    /// `true` if written bytes still have to be flushed.
    is_unflushed: bool,
    /// Waker of the task while it waits for lines.
    task: Option<Waker>,
    /// Error of a write outside of the task, which ends the task.
    error: Option<io::Error>,
    /// `true` once all senders are dropped.
    is_complete: bool,
    /// `true` once the task has ended.
    is_closed: bool,
}

/// Guard that closes the queue when the writing task ends for any reason.
struct CloseOnDrop(Arc<LineQueue>);

impl LineSender {
    /// Starts the writing task. It ends when all senders are dropped or at the first error.
    pub fn spawn<W: AsyncWrite + Unpin + Send + 'static>(writer: W) -> (Self, JoinHandle<io::Result<()>>) {
        let state = QueueState { writer: Some(Box::new(writer)), ..QueueState::default() };
        let queue = Arc::new(LineQueue { room: Semaphore::new(MAX_QUEUED_BYTES), state: Mutex::new(state) });
        let closing = CloseOnDrop(queue.clone());
        let task = tokio::spawn(async move { closing.0.write_lines().await });
        (Self(Arc::new(LastSenderGuard(queue))), task)
    }

    /// Queues one message (without line breaks). Waits while the queue is full because the receiver does not read.
    ///
    /// # Errors
    /// Returns [`LinesClosed`] if the writing task has ended.
    pub async fn send(&self, line: Vec<u8>) -> Result<(), LinesClosed> {
        let room = self.wait_for_room(&line).await?;
        self.queue().push(&line, room)
    }

    /// Writes one message in the caller's task if no other line is waiting, as far as that is possible without waiting.
    /// Queues the rest.
    ///
    /// # Errors
    /// Same as [`send`](Self::send).
    pub async fn send_directly(&self, mut line: Vec<u8>) -> Result<(), LinesClosed> {
        let room = self.wait_for_room(&line).await?;
        line.push(b'\n');
        self.queue().write_or_push(&line, room)
    }

    /// Queues one message. Returns `false` if it is lost, because the queue is full or the writing task has ended. For
    /// messages that may be lost, such as progress and logs.
    pub fn try_send(&self, line: Vec<u8>) -> bool {
        let room = room_of(&line);
        self.queue().take_room(room) && self.queue().push(&line, room).is_ok()
    }

    /// Waits for queue capacity for a line and returns the size of that capacity in bytes.
    async fn wait_for_room(&self, line: &[u8]) -> Result<u32, LinesClosed> {
        let room = room_of(line);
        if !self.queue().take_room(room) {
            self.queue().room.acquire_many(room).await.map_err(|_| LinesClosed)?.forget();
        }
        Ok(room)
    }

    fn queue(&self) -> &LineQueue {
        &self.0.0
    }
}

impl Drop for LastSenderGuard {
    fn drop(&mut self) {
        let task = {
            let mut state = self.0.state();
            state.is_complete = true;
            state.task.take()
        };
        task.into_iter().for_each(Waker::wake);
    }
}

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.room.close();
        let mut state = self.0.state();
        *state = QueueState { is_closed: true, ..QueueState::default() };
    }
}

impl LineQueue {
    fn take_room(&self, room: u32) -> bool {
        self.room.try_acquire_many(room).map(SemaphorePermit::forget).is_ok()
    }

    fn push(&self, line: &[u8], room: u32) -> Result<(), LinesClosed> {
        let mut state = self.state();
        if state.is_closed {
            return Err(LinesClosed);
        }
        state.bytes.extend_from_slice(line);
        state.bytes.push(b'\n');
        state.held_room += room as usize;
        wake_task(state);
        Ok(())
    }

    /// Writes a line and its line break as far as possible without waiting, and queues the rest.
    fn write_or_push(&self, line: &[u8], room: u32) -> Result<(), LinesClosed> {
        let mut state = self.state();
        if state.is_closed {
            return Err(LinesClosed);
        }
        let written = state.write_now(line);
        if written == line.len() && !state.is_unflushed {
            drop(state);
            self.room.add_permits(room as usize);
            return Ok(());
        }
        state.bytes.extend_from_slice(&line[written..]);
        state.held_room += room as usize;
        wake_task(state);
        Ok(())
    }

    /// Writes queued lines until all senders are dropped, and then closes the writer.
    async fn write_lines(&self) -> io::Result<()> {
        let mut bytes = Vec::new();
        while poll_fn(|context| self.poll_lines(context)).await? {
            // The first line wakes the task before the callers that are about to send the next lines have run. Yielding
            // once lets them queue theirs, so that one write and one read of the receiver transfer all of them.
            yield_now().await;
            let (mut writer, room) = {
                let mut state = self.state();
                std::mem::swap(&mut state.bytes, &mut bytes);
                state.is_unflushed = false;
                let Some(writer) = state.writer.take() else { return Ok(()) };
                (writer, std::mem::take(&mut state.held_room))
            };
            writer.write_all(&bytes).await?;
            writer.flush().await?;
            bytes.clear();
            bytes.shrink_to(RETAINED_BYTES);
            self.state().writer = Some(writer);
            self.room.add_permits(room);
        }
        let writer = self.state().writer.take();
        match writer {
            Some(mut writer) => writer.shutdown().await,
            None => Ok(()),
        }
    }

    /// Returns `true` if there are bytes to write, and `false` if all senders are dropped and everything is written.
    fn poll_lines(&self, context: &Context<'_>) -> Poll<io::Result<bool>> {
        let mut state = self.state();
        if let Some(error) = state.error.take() {
            return Poll::Ready(Err(error));
        }
        if !state.bytes.is_empty() || state.is_unflushed {
            return Poll::Ready(Ok(true));
        }
        if state.is_complete {
            return Poll::Ready(Ok(false));
        }
        state.task = Some(context.waker().clone());
        Poll::Pending
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QueueState {
    /// Writes as much as possible without waiting, unless other lines are waiting. Returns the number of bytes written.
    fn write_now(&mut self, line: &[u8]) -> usize {
        let Some(writer) = self.writer.as_mut().filter(|_| self.bytes.is_empty() && !self.is_unflushed) else {
            return 0;
        };
        // The task writes the rest and registers its own waker, so none is needed here.
        let mut context = Context::from_waker(Waker::noop());
        let mut written = 0;
        while written < line.len() {
            match Pin::new(&mut *writer).poll_write(&mut context, &line[written..]) {
                Poll::Ready(Ok(0)) => self.error = Some(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(bytes)) => {
                    written += bytes;
                    continue;
                }
                Poll::Ready(Err(error)) => self.error = Some(error),
                Poll::Pending => {}
            }
            return written;
        }
        match Pin::new(writer).poll_flush(&mut context) {
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(error)) => (self.error, self.is_unflushed) = (Some(error), true),
            Poll::Pending => self.is_unflushed = true,
        }
        written
    }
}

impl fmt::Debug for QueueState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueState").field("bytes", &self.bytes.len()).finish_non_exhaustive()
    }
}

fn wake_task(mut state: MutexGuard<'_, QueueState>) {
    let task = state.task.take();
    drop(state);
    task.into_iter().for_each(Waker::wake);
}

/// Returns the queue capacity that a line occupies. A single line of any length fits into an empty queue.
fn room_of(line: &[u8]) -> u32 {
    u32::try_from(line.len().clamp(MIN_ROOM, MAX_QUEUED_BYTES)).unwrap_or(u32::MAX)
}

/// The receiver has closed the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the other side has closed the connection")]
pub struct LinesClosed;

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    async fn read(input: &[u8], limit: usize) -> Vec<Line> {
        let mut lines = BoundedLines::new(input, limit);
        let mut all = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            all.push(line);
        }
        all
    }

    #[tokio::test]
    async fn lines_end_with_lf_crlf_or_the_end_of_input() {
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
    async fn the_sender_writes_a_message_directly_if_no_other_message_is_queued() {
        let (reader, writer) = tokio::io::duplex(16);
        let (sender, task) = LineSender::spawn(writer);
        let mut lines = BoundedLines::new(reader, 1 << 20);
        for round in 0..3 {
            // The writing task cannot run before the reader waits.
            sender.send_directly(b"short".to_vec()).now_or_never().unwrap().unwrap();
            let read = lines.next().now_or_never().expect("the sender wrote it");
            assert_eq!(read.unwrap(), Some(Line::Whole("short".into())), "{round}");
        }
        for line in ["first, larger than the pipe", "second", "third, also larger"] {
            sender.send_directly(line.into()).now_or_never().unwrap().unwrap();
        }
        sender.send(b"fourth".to_vec()).await.unwrap();
        drop(sender);
        let mut all = Vec::new();
        while let Some(Line::Whole(line)) = lines.next().await.unwrap() {
            all.push(String::from_utf8(line).unwrap());
        }
        assert_eq!(all, ["first, larger than the pipe", "second", "third, also larger", "fourth"]);
        task.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_direct_write_that_fails_ends_the_task_with_its_error() {
        let (reader, writer) = tokio::io::duplex(16);
        let (sender, task) = LineSender::spawn(writer);
        drop(reader);
        sender.send_directly(b"lost".to_vec()).await.unwrap();
        assert_eq!(task.await.unwrap().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        assert_eq!(sender.send(b"late".to_vec()).await, Err(LinesClosed));
    }

    #[tokio::test]
    async fn the_number_of_lines_that_wait_is_bounded() {
        let (mut reader, writer) = tokio::io::duplex(1 << 20);
        let (sender, task) = LineSender::spawn(writer);
        assert_eq!((0..1000).filter(|_| sender.try_send(b"x".to_vec())).count(), 256);
        drop(sender);
        let mut all = Vec::new();
        tokio::io::AsyncReadExt::read_to_end(&mut reader, &mut all).await.unwrap();
        task.await.unwrap().unwrap();
        assert_eq!(all.len(), 512);
    }

    #[tokio::test]
    async fn the_total_size_of_queued_lines_is_limited() {
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
