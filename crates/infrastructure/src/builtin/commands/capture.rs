//! Captured output of a command.

use crate::{builtin::text::plain_text::ControlSequenceFilter, sandbox::spool::DiskRingBuffer};
use serde::{Deserialize, Serialize};
use std::{
    collections::VecDeque,
    io,
    ops::Range,
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
};
use tokio::sync::watch;
use toolstead_domain::ToolFailure;

/// Maximum number of bytes in memory; a larger output is written to disk as a whole.
const IN_MEMORY: usize = 1 << 20;
/// Maximum number of bytes retained of the beginning and of the end of each stream.
const ENDS: usize = 32 << 10;
/// Maximum number of recorded turns, each of successive bytes of one stream: 1 MiB of them. Before the oldest turn, the
/// stream of a byte is unknown.
const TURNS: usize = (1 << 20) / size_of::<(OutputStream, u64)>();

/// One of the two streams of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OutputStream {
    Stdout,
    Stderr,
}

/// Output of one command: both streams in the order in which they arrived, readable from any position, and the ends of
/// each stream.
#[derive(Debug)]
pub(crate) struct Capture {
    output: Mutex<OutputBuffer>,
    /// Number of bytes so far.
    total: watch::Sender<u64>,
    folder: PathBuf,
    /// Maximum number of bytes retained: the newest ones.
    capacity: u64,
}

#[derive(Debug, Default)]
struct OutputBuffer {
    total: u64,
    /// Position of the first retained byte.
    base: u64,
    memory: Vec<u8>,
    spool: Option<DiskRingBuffer>,
    /// Error of the disk after which output is lost.
    fault: Option<io::Error>,
    stdout: HeadAndTail,
    stderr: HeadAndTail,
    /// Stream of each turn, and the position after it.
    turns: VecDeque<(OutputStream, u64)>,
    /// Position from which on the stream of each byte is known.
    stream_known_from: u64,
}

impl OutputBuffer {
    fn takes_turn(&mut self, stream: OutputStream) {
        let end = self.total;
        match self.turns.back_mut() {
            Some((last, until)) if *last == stream => *until = end,
            _ => {
                // Removed first, so that the queue never exceeds its capacity.
                if self.turns.len() == TURNS
                    && let Some((_, until)) = self.turns.pop_front()
                {
                    self.stream_known_from = until;
                }
                self.turns.push_back((stream, end));
            }
        }
    }
}

/// Beginning and end of a stream.
#[derive(Debug, Clone, Default)]
pub(crate) struct HeadAndTail {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
}

impl Capture {
    /// Creates an empty capture. Output that is too large for memory goes to a file in `folder`.
    pub(crate) fn new(folder: PathBuf, capacity: u64) -> Self {
        Self { output: Mutex::default(), total: watch::Sender::new(0), folder, capacity: capacity.max(1) }
    }

    /// Appends output. Blocks if [`is_on_disk`](Self::is_on_disk) returns `true`.
    pub(crate) fn append(&self, stream: OutputStream, bytes: &[u8]) {
        let mut printed = self.lock();
        match stream {
            OutputStream::Stdout => printed.stdout.append(bytes),
            OutputStream::Stderr => printed.stderr.append(bytes),
        }
        if printed.fault.is_none() {
            match self.keep(&mut printed, bytes) {
                Ok(()) => {
                    printed.total += bytes.len() as u64;
                    printed.takes_turn(stream);
                }
                Err(error) => printed.fault = Some(error),
            }
        }
        self.total.send_replace(printed.total);
    }

    fn keep(&self, printed: &mut OutputBuffer, bytes: &[u8]) -> io::Result<()> {
        if printed.spool.is_none() {
            if !self.is_large(printed, bytes.len()) {
                printed.memory.extend_from_slice(bytes);
                return Ok(());
            }
            let spool = DiskRingBuffer::create(&self.folder, self.capacity)?;
            spool.write_at(&printed.memory, printed.base)?;
            printed.memory = Vec::new();
            printed.spool = Some(spool);
        }
        printed.spool.as_ref().map_or(Ok(()), |spool| spool.write_at(bytes, printed.total))
    }

    fn is_large(&self, printed: &OutputBuffer, more: usize) -> bool {
        let most = usize::try_from(self.capacity).unwrap_or(usize::MAX).min(IN_MEMORY);
        printed.memory.len() + more > most
    }

    /// Appends output that was printed at a position. Skips what is already captured; if bytes are missing before the
    /// position, the older output is discarded. Blocks as [`append`](Self::append) does.
    pub(crate) fn append_at(&self, place: u64, stream: OutputStream, bytes: &[u8]) {
        let total = self.total();
        if place > total {
            let mut printed = self.lock();
            *printed = OutputBuffer { total: place, base: place, stream_known_from: place, ..OutputBuffer::default() };
        }
        let known = usize::try_from(total.saturating_sub(place)).unwrap_or(usize::MAX).min(bytes.len());
        if known < bytes.len() {
            self.append(stream, &bytes[known..]);
        }
    }

    /// Returns the stream of each range of bytes that were [read](Self::read) at a position, in their order. Bytes of
    /// an unknown stream count as standard output.
    pub(crate) fn turns_in(&self, place: u64, bytes: usize) -> Vec<(OutputStream, Range<usize>)> {
        let printed = self.lock();
        let offset = |at: u64| usize::try_from(at.saturating_sub(place)).unwrap_or(usize::MAX).min(bytes);
        let mut turns = vec![(OutputStream::Stdout, 0..offset(printed.stream_known_from))];
        for (whose, until) in printed.turns.range(printed.turns.partition_point(|(_, until)| *until <= place)..) {
            let start = turns.last().map_or(0, |(_, last)| last.end);
            turns.push((*whose, start..offset(*until)));
            if offset(*until) == bytes {
                break;
            }
        }
        turns.retain(|(_, range)| !range.is_empty());
        turns
    }

    /// Returns `true` if reading, or appending `more` bytes, uses the disk.
    pub(crate) fn is_on_disk(&self, more: usize) -> bool {
        let printed = self.lock();
        printed.spool.is_some() || self.is_large(&printed, more)
    }

    /// Returns the number of bytes so far.
    pub(crate) fn total(&self) -> u64 {
        *self.total.borrow()
    }

    /// Returns `true` once the capacity is reached.
    pub(crate) fn is_full(&self) -> bool {
        self.total() >= self.capacity
    }

    /// Returns a receiver that changes whenever output is appended.
    pub(crate) fn subscribe_total(&self) -> watch::Receiver<u64> {
        self.total.subscribe()
    }

    /// Returns the error because of which the output is incomplete, if there is one.
    pub(crate) fn fault(&self) -> Option<String> {
        self.lock().fault.as_ref().map(ToString::to_string)
    }

    /// Returns at most `most` bytes from a position on, with the position of the first. That position is later than
    /// `from` if older output is no longer retained. Blocks if the output is on disk.
    pub(crate) fn read(&self, from: u64, most: usize) -> io::Result<(u64, Vec<u8>)> {
        let printed = self.lock();
        let Some(spool) = &printed.spool else {
            let start = from.saturating_sub(printed.base);
            let start = usize::try_from(start).unwrap_or(usize::MAX).min(printed.memory.len());
            let end = start.saturating_add(most).min(printed.memory.len());
            return Ok((printed.base + start as u64, printed.memory[start..end].to_vec()));
        };
        let first = printed.total.saturating_sub(self.capacity).max(printed.base);
        let start = from.clamp(first, printed.total);
        let length = usize::try_from(printed.total - start).unwrap_or(usize::MAX).min(most);
        let mut bytes = vec![0; length];
        spool.read_at(&mut bytes, start)?;
        Ok((start, bytes))
    }

    /// Returns the position from which on the stream of each byte is known.
    pub(crate) fn stream_known_from(&self) -> u64 {
        self.lock().stream_known_from
    }

    /// Returns the parts of one stream in bytes that were [read](Self::read) at a position, joined. Bytes of an unknown
    /// stream are left out.
    pub(crate) fn of_stream(&self, stream: OutputStream, place: u64, bytes: &[u8]) -> Vec<u8> {
        let printed = self.lock();
        let first = printed.turns.partition_point(|(_, until)| *until <= place);
        let mut start = first.checked_sub(1).map_or(printed.stream_known_from, |before| printed.turns[before].1);
        let offset = |at: u64| usize::try_from(at.saturating_sub(place)).unwrap_or(usize::MAX).min(bytes.len());
        let mut parts: Vec<Range<usize>> = Vec::new();
        for (whose, until) in printed.turns.range(first..) {
            if *whose == stream {
                parts.push(offset(start)..offset(*until));
            }
            start = *until;
            if offset(start) == bytes.len() {
                break;
            }
        }
        parts.into_iter().flat_map(|part| &bytes[part]).copied().collect()
    }

    /// Returns the beginning and the end of a stream.
    pub(crate) fn ends(&self, stream: OutputStream) -> HeadAndTail {
        let printed = self.lock();
        match stream {
            OutputStream::Stdout => printed.stdout.clone(),
            OutputStream::Stderr => printed.stderr.clone(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, OutputBuffer> {
        // No code panics while it holds this lock.
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HeadAndTail {
    fn append(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (head, rest) = bytes.split_at(bytes.len().min(ENDS - self.head.len()));
        self.head.extend_from_slice(head);
        self.tail.extend(&rest[rest.len().saturating_sub(ENDS)..]);
        let surplus = self.tail.len().saturating_sub(ENDS);
        self.tail.drain(..surplus);
    }

    /// Returns plain text of at most `budget` characters, as JSON encodes them: the beginning, a notice of the
    /// omission, and the end. The flag is `true` if text is omitted.
    pub(crate) fn text(&self, budget: usize) -> (String, bool) {
        let missing = self.total - (self.head.len() + self.tail.len()) as u64;
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        if missing == 0 {
            let whole = ControlSequenceFilter::of(&[&self.head[..], &tail].concat());
            if in_json(&whole) <= budget {
                return (whole, false);
            }
        }
        let notice = format!("\n[… some of {} bytes left out …]\n", self.total);
        let room = budget.saturating_sub(in_json(&notice));
        let (head, tail) = match missing {
            0 => {
                let whole = ControlSequenceFilter::of(&[&self.head[..], &tail].concat());
                (beginning(&whole, room * 3 / 5).to_owned(), end(&whole, room - room * 3 / 5).to_owned())
            }
            _ => (
                beginning(&ControlSequenceFilter::of(&self.head), room * 3 / 5).to_owned(),
                end(&ControlSequenceFilter::of(&tail), room - room * 3 / 5).to_owned(),
            ),
        };
        (format!("{head}{notice}{tail}"), true)
    }

    /// Returns the whole stream; `None` if it is longer than [`ENDS`].
    pub(crate) fn complete_bytes(&self) -> Option<&[u8]> {
        (self.total == self.head.len() as u64).then_some(&self.head[..])
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.total == 0
    }
}

/// Returns the number of characters of a plain text in JSON.
pub(crate) fn in_json(text: &str) -> usize {
    text.chars().map(cost).sum()
}

fn cost(character: char) -> usize {
    if matches!(character, '"' | '\\' | '\n' | '\t') { 2 } else { 1 }
}

fn beginning(text: &str, mut room: usize) -> &str {
    let end = text.char_indices().find(|(_, character)| {
        let left = room.checked_sub(cost(*character));
        room = left.unwrap_or(0);
        left.is_none()
    });
    &text[..end.map_or(text.len(), |(at, _)| at)]
}

fn end(text: &str, mut room: usize) -> &str {
    let mut start = text.len();
    for (at, character) in text.char_indices().rev() {
        let Some(left) = room.checked_sub(cost(character)) else { break };
        (room, start) = (left, at);
    }
    &text[start..]
}

/// Returns the failure for captured output that cannot be read from disk.
pub(crate) fn output_read_failure(error: io::Error) -> ToolFailure {
    use toolstead_domain::error_kind::ErrorKind;
    ToolFailure::new(ErrorKind::Io, format!("the stored output cannot be read: {error}")).caused_by(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture(capacity: u64) -> (tempfile::TempDir, Capture) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_path_buf();
        (folder, Capture::new(path, capacity))
    }

    #[test]
    fn any_range_of_large_captured_output_is_read_back_from_disk() {
        let (_folder, capture) = capture(4 << 20);
        let bytes: Vec<u8> = (0..3_000_000_u32).map(|number| (number / 7) as u8).collect();
        for chunk in bytes.chunks(70_001) {
            capture.append(OutputStream::Stdout, chunk);
        }
        assert!(capture.is_on_disk(0) && capture.lock().memory.is_empty());
        for (from, most) in [(0, 10), (1 << 20, 100_000), (2_999_999, 10)] {
            let (start, read) = capture.read(from, most).unwrap();
            let place = usize::try_from(from).unwrap();
            assert_eq!((start, &read[..]), (from, &bytes[place..bytes.len().min(place + most)]));
        }
        assert_eq!(capture.read(5_000_000, 10).unwrap(), (3_000_000, Vec::new()));
    }

    #[test]
    fn the_oldest_output_is_dropped_and_reads_return_the_actual_start() {
        let (_folder, capture) = capture(1000);
        for number in 0..300 {
            capture.append(OutputStream::Stdout, format!("line {number:04}\n").as_bytes());
        }
        assert_eq!(capture.total(), 3000);
        let (start, read) = capture.read(0, 10).unwrap();
        assert_eq!((start, &read[..]), (2000, &b"line 0200\n"[..]));
    }

    #[test]
    fn stdout_and_stderr_are_separable_as_far_back_as_switches_are_recorded() {
        let (_folder, capture) = capture(64 << 20);
        for (stream, text) in [
            (OutputStream::Stdout, "one "),
            (OutputStream::Stdout, "two "),
            (OutputStream::Stderr, "three "),
            (OutputStream::Stdout, "four"),
        ] {
            capture.append(stream, text.as_bytes());
        }
        let of = |stream, from| {
            let (place, bytes) = capture.read(from, 100).unwrap();
            String::from_utf8(capture.of_stream(stream, place, &bytes)).unwrap()
        };
        assert_eq!(
            (of(OutputStream::Stdout, 0), of(OutputStream::Stderr, 0)),
            ("one two four".into(), "three ".into())
        );
        assert_eq!((of(OutputStream::Stdout, 6), of(OutputStream::Stderr, 10)), ("o four".into(), "ree ".into()));
        for _ in 0..TURNS {
            capture.append(OutputStream::Stdout, b"x");
            capture.append(OutputStream::Stderr, b"y");
        }
        assert!(capture.lock().turns.capacity() * size_of::<(OutputStream, u64)>() <= 1 << 20);
        assert!(capture.lock().turns.len() == TURNS && capture.stream_known_from() > 18);
        let (place, bytes) = capture.read(capture.stream_known_from(), 1 << 20).unwrap();
        let apart = [OutputStream::Stdout, OutputStream::Stderr].map(|stream| capture.of_stream(stream, place, &bytes));
        assert_eq!((apart[0].len(), apart[0].len() + apart[1].len()), (TURNS / 2, TURNS));
        assert!(apart[0].iter().all(|byte| *byte == b'x'));
    }

    #[test]
    fn an_unwritable_folder_loses_further_output_and_reports_a_fault() {
        let capture = Capture::new("/proc".into(), 64 << 20);
        capture.append(OutputStream::Stdout, b"first");
        capture.append(OutputStream::Stdout, &vec![b'x'; IN_MEMORY]);
        assert_eq!(capture.read(0, 100).unwrap().1, b"first");
        assert!(capture.fault().is_some());
    }

    #[test]
    fn each_stream_keeps_its_beginning_and_end() {
        let (_folder, capture) = capture(64 << 20);
        capture.append(OutputStream::Stderr, b"warning\n");
        for number in 0..20_000 {
            capture.append(OutputStream::Stdout, format!("line {number}\n").as_bytes());
        }
        assert_eq!(capture.ends(OutputStream::Stderr).text(1000), ("warning\n".into(), false));
        let (text, is_cut) = capture.ends(OutputStream::Stdout).text(1000);
        assert!(is_cut && text.starts_with("line 0\n") && text.ends_with("line 19999\n"), "{text}");
        assert!(in_json(&text) <= 1000 && text.contains("left out"), "{text}");
    }
}
