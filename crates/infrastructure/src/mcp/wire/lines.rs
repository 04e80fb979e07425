//! Messages as lines (MCP 2025-11-25, basic/transports, "stdio"), bounded while they are read.

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

/// The longest message that is taken, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 16 << 20;
/// What may wait to be written: two messages of the largest size.
const MAX_QUEUED_BYTES: usize = 2 * MAX_MESSAGE_BYTES;
/// What is kept of a line that is too long: enough to find its id near the beginning.
const KEPT_BYTES: usize = 4 << 10;
/// What is kept of the end of such a line: some servers write the id last.
const KEPT_END_BYTES: usize = 256;
/// Least room of a line in the queue, in bytes: at most 256 lines wait.
const MIN_ROOM: usize = MAX_QUEUED_BYTES / 256;
/// Size of the buffers that are retained for the next lines, in bytes.
const RETAINED_BYTES: usize = 64 << 10;

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

/// Sends messages as lines, so that no two are ever mixed. One task writes all that wait at once; what waits is bounded
/// in number and in bytes.
#[derive(Debug, Clone)]
pub struct LineSender(Arc<Sending>);

/// Ends the writing task with the last sender.
#[derive(Debug)]
struct Sending(Arc<LineQueue>);

#[derive(Debug)]
struct LineQueue {
    /// Room for lines, in bytes. A line holds its room until all of it is written.
    room: Semaphore,
    state: Mutex<QueueState>,
}

#[derive(Default)]
struct QueueState {
    /// `None` while the task writes, and once it has ended.
    writer: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    /// The lines that wait, with their line breaks.
    bytes: Vec<u8>,
    /// The room that these lines hold.
    held_room: usize,
    /// Whether bytes were written that have to be flushed.
    is_unflushed: bool,
    /// Wakes the task while it waits for lines.
    task: Option<Waker>,
    /// The error of a write outside of the task, which ends it.
    error: Option<io::Error>,
    /// Whether all senders are gone.
    is_complete: bool,
    /// Whether the task has ended.
    is_closed: bool,
}

/// Closes the queue with the writing task, however that ends.
struct CloseOnDrop(Arc<LineQueue>);

impl LineSender {
    /// Starts the writing task. It ends when every sender is gone, or with the first error.
    pub fn spawn<W: AsyncWrite + Unpin + Send + 'static>(writer: W) -> (Self, JoinHandle<io::Result<()>>) {
        let state = QueueState { writer: Some(Box::new(writer)), ..QueueState::default() };
        let queue = Arc::new(LineQueue { room: Semaphore::new(MAX_QUEUED_BYTES), state: Mutex::new(state) });
        let closing = CloseOnDrop(queue.clone());
        let task = tokio::spawn(async move { closing.0.write_lines().await });
        (Self(Arc::new(Sending(queue))), task)
    }

    /// Queues one message (without line breaks); waits while the other side does not read.
    ///
    /// # Errors
    /// [`LinesClosed`] when the writing task has ended.
    pub async fn send(&self, line: Vec<u8>) -> Result<(), LinesClosed> {
        let room = self.wait_for_room(&line).await?;
        self.queue().push(&line, room)
    }

    /// Writes one message in the caller's task if nothing else waits to be written, as far as the other side takes it
    /// without waiting. Queues the rest.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub async fn send_directly(&self, mut line: Vec<u8>) -> Result<(), LinesClosed> {
        let room = self.wait_for_room(&line).await?;
        line.push(b'\n');
        self.queue().write_or_push(&line, room)
    }

    /// Queues one message unless the queue is full. For what may be lost: progress, logs.
    pub fn try_send(&self, line: Vec<u8>) -> bool {
        let room = room_of(&line);
        self.queue().take_room(room) && self.queue().push(&line, room).is_ok()
    }

    /// Takes the room of a line, and returns its size.
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

impl Drop for Sending {
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

    /// Writes a line with its line break, or as much of it as can be written now.
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

    /// Writes what is queued until all senders are gone.
    async fn write_lines(&self) -> io::Result<()> {
        let mut bytes = Vec::new();
        while poll_fn(|context| self.poll_lines(context)).await? {
            // Woken by the first line, the task runs before the callers that are about to send the next ones. One write,
            // and one read of the other side, takes them all.
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

    /// Returns `true` when there is something to write, and `false` once there never will be.
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
    /// Writes as much as can be written without waiting, unless lines wait before it. Returns the number of bytes.
    fn write_now(&mut self, line: &[u8]) -> usize {
        let Some(writer) = self.writer.as_mut().filter(|_| self.bytes.is_empty() && !self.is_unflushed) else {
            return 0;
        };
        // The task has to write the rest, and then waits for the other side with a waker of its own.
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

/// The room of a line in the queue. A single message always fits, however large it is.
fn room_of(line: &[u8]) -> u32 {
    u32::try_from(line.len().clamp(MIN_ROOM, MAX_QUEUED_BYTES)).unwrap_or(u32::MAX)
}

/// The other side does not read any more.
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
    async fn a_message_is_written_by_its_sender_where_nothing_waits_before_it() {
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
