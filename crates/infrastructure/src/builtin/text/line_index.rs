//! An index of the lines of a large file, which is built once.

use crate::{
    builtin::text::line_unit::CodeUnitLayout,
    sandbox::workspace::{facts::FileStamp, stop::StopCondition},
};
use std::{
    collections::VecDeque,
    io::{self, Read, Seek, SeekFrom},
    sync::{Mutex, PoisonError},
};
use toolstead_domain::ContentDigest;

/// Distance in bytes between two checkpoints; more in files with more than [`CHECKPOINTS`] of them.
const STRIDE: u64 = 256 << 10;
/// Maximum number of checkpoints of an index: 128 KiB of memory.
const CHECKPOINTS: usize = 16 << 10;
/// Maximum number of cached indexes, the last used.
const REMEMBERED: usize = 32;
/// Number of bytes that are read at once: a divisor of every stride, and a multiple of every unit.
const CHUNK: usize = 64 << 10;

/// A reader with random access.
pub(crate) trait ReadSeek: Read + Seek {}

impl<T: Read + Seek + ?Sized> ReadSeek for T {}

/// Number of line feeds before each checkpoint of a text. It is extended on demand.
#[derive(Debug, Clone)]
pub(crate) struct LineIndex {
    /// Start of the text, after the byte order mark.
    start: u64,
    unit: CodeUnitLayout,
    stride: u64,
    /// Number of line feeds in the first n strides, from n = 0 on.
    feeds: Vec<u64>,
    /// Number of lines of the whole text, once the end was reached.
    lines: Option<u64>,
}

/// Position of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineLookup {
    /// Offset in bytes of its start.
    At(u64),
    /// The text has only this number of lines.
    PastEnd(u64),
    /// The deadline was reached before it was found.
    OutOfTime,
}

impl LineIndex {
    pub(crate) fn new(start: u64, unit: CodeUnitLayout) -> Self {
        Self { start, unit, stride: STRIDE, feeds: vec![0], lines: None }
    }

    /// Returns the start of the text.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// Returns the unit of the text.
    pub(crate) fn unit(&self) -> CodeUnitLayout {
        self.unit
    }

    /// Returns the number of lines of the whole text, if they are counted. A last line without a line feed counts.
    pub(crate) fn lines(&self) -> Option<u64> {
        self.lines
    }

    /// Returns the offset up to which lines are counted.
    pub(crate) fn counted_to(&self) -> u64 {
        self.start + (self.feeds.len() as u64 - 1) * self.stride
    }

    /// Counts the lines up to the end of the text, and returns their number; `None` if the deadline was reached first.
    pub(crate) fn count(&mut self, reader: &mut dyn ReadSeek, stop: &StopCondition) -> io::Result<Option<u64>> {
        self.extend(reader, u64::MAX, stop)?;
        Ok(self.lines)
    }

    /// Returns the position of a line (from 1). The first one begins at the start, even in an empty text.
    pub(crate) fn find(
        &mut self,
        reader: &mut dyn ReadSeek,
        line: u64,
        stop: &StopCondition,
    ) -> io::Result<LineLookup> {
        let Some(before) = line.checked_sub(1).filter(|before| *before > 0) else {
            return Ok(LineLookup::At(self.start));
        };
        if !self.extend(reader, before, stop)? {
            return Ok(LineLookup::OutOfTime);
        }
        if let Some(lines) = self.lines.filter(|lines| *lines < line) {
            return Ok(LineLookup::PastEnd(lines));
        }
        // The last checkpoint with fewer line feeds before it: the line is within one stride of it.
        let stride = self.feeds.partition_point(|feeds| *feeds < before) - 1;
        let mut missing = before - self.feeds[stride];
        let mut offset = self.start + stride as u64 * self.stride;
        reader.seek(SeekFrom::Start(offset))?;
        let mut buffer = vec![0; CHUNK];
        loop {
            let read = read_full(reader, &mut buffer)?;
            let found = self.unit.count(&buffer[..read]);
            if found >= missing {
                let end = self.unit.ends(&buffer[..read]).nth(missing as usize - 1).unwrap_or(read);
                return Ok(LineLookup::At(offset + end as u64));
            }
            if read < buffer.len() {
                // The file became shorter in the meantime.
                return Ok(LineLookup::PastEnd(before - missing + found));
            }
            (missing, offset) = (missing - found, offset + read as u64);
        }
    }

    /// Counts until `wanted` line feeds are counted or the end is reached; `false` if the deadline was reached first.
    fn extend(&mut self, reader: &mut dyn ReadSeek, wanted: u64, stop: &StopCondition) -> io::Result<bool> {
        let mut feeds = self.feeds.last().copied().unwrap_or_default();
        if self.lines.is_some() || feeds >= wanted {
            return Ok(true);
        }
        let mut offset = self.counted_to();
        reader.seek(SeekFrom::Start(offset))?;
        let mut buffer = vec![0; CHUNK];
        while feeds < wanted {
            let mut passed = 0;
            while passed < self.stride {
                if stop.is_due() {
                    return Ok(false);
                }
                let read = read_full(reader, &mut buffer)?;
                feeds += self.unit.count(&buffer[..read]);
                (passed, offset) = (passed + read as u64, offset + read as u64);
                if read < buffer.len() {
                    self.lines = Some(feeds + u64::from(!self.is_at_line_start(reader, offset)?));
                    return Ok(true);
                }
            }
            self.push(feeds);
        }
        Ok(true)
    }

    fn push(&mut self, feeds: u64) {
        self.feeds.push(feeds);
        // An odd number remains, so that the last checkpoint is retained.
        if self.feeds.len() > CHECKPOINTS && self.feeds.len() % 2 == 1 {
            let mut at = 0;
            self.feeds.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.stride *= 2;
        }
    }

    /// Returns `true` if the offset is directly after a line feed, or at the start.
    pub(crate) fn is_at_line_start(&self, reader: &mut dyn ReadSeek, offset: u64) -> io::Result<bool> {
        let width = self.unit.width() as u64;
        let Some(passed) = offset.checked_sub(self.start).filter(|passed| *passed > 0) else { return Ok(true) };
        if passed % width != 0 {
            return Ok(false);
        }
        reader.seek(SeekFrom::Start(offset - width))?;
        let mut unit = [0; 4];
        let read = read_full(reader, &mut unit[..width as usize])?;
        Ok(self.unit.count(&unit[..read]) == 1)
    }
}

/// Reads until the buffer is full or the end is reached.
pub(crate) fn read_full(reader: &mut dyn ReadSeek, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match reader.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Identity of an unchanged file, or of a stored output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContentId {
    /// A file in a certain state.
    File(FileStamp),
    /// An output, which never changes.
    Output(ContentDigest),
}

/// Cached indexes of the files that were read last.
#[derive(Debug, Default)]
pub(crate) struct LineIndexCache(Mutex<VecDeque<(ContentId, LineIndex)>>);

impl LineIndexCache {
    /// Returns the cached index of a content with this start and unit, or a new one.
    pub(crate) fn get(&self, content: ContentId, start: u64, unit: CodeUnitLayout) -> LineIndex {
        let memory = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = memory.iter().find(|(id, index)| *id == content && (index.start, index.unit) == (start, unit));
        known.map_or_else(|| LineIndex::new(start, unit), |(_, index)| index.clone())
    }

    /// Caches an index of more than one stride. The content must be the same as when the index was built.
    pub(crate) fn put(&self, content: ContentId, index: LineIndex) {
        if index.feeds.len() < 2 {
            return;
        }
        let mut memory = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        memory.retain(|(id, other)| *id != content || (other.start, other.unit) != (index.start, index.unit));
        memory.push_back((content, index));
        if memory.len() > REMEMBERED {
            memory.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::files::etag::digest_of;
    use proptest::prelude::*;
    use std::{
        io::Cursor,
        time::{Duration, Instant},
    };

    fn later() -> StopCondition {
        StopCondition::at(Instant::now() + Duration::from_secs(600))
    }

    #[test]
    fn a_line_index_grows_only_as_far_as_needed_and_has_a_size_limit() {
        let mut text = Cursor::new(b"0123456\n".repeat(100_000));
        let mut index = LineIndex::new(0, CodeUnitLayout::Byte);
        assert_eq!(index.find(&mut text, 40_000, &later()).unwrap(), LineLookup::At(39_999 * 8));
        assert_eq!((index.lines(), index.feeds.len()), (None, 3));
        assert_eq!(index.find(&mut text, 100_001, &later()).unwrap(), LineLookup::PastEnd(100_000));
        assert_eq!(index.lines(), Some(100_000));
        for feeds in 0..3 * CHECKPOINTS as u64 {
            index.push(feeds);
        }
        assert!(index.feeds.len() <= CHECKPOINTS + 1 && index.feeds.is_sorted(), "{}", index.feeds.len());
    }

    #[test]
    fn line_counting_stops_at_the_deadline() {
        let mut text = Cursor::new(b"\n".repeat(10));
        let mut index = LineIndex::new(0, CodeUnitLayout::Byte);
        let now = StopCondition::at(Instant::now());
        assert_eq!(index.find(&mut text, 5, &now).unwrap(), LineLookup::OutOfTime);
        assert_eq!(index.count(&mut text, &now).unwrap(), None);
    }

    #[test]
    fn line_indexes_are_cached_per_content_up_to_a_limit() {
        let (indexes, id) = (LineIndexCache::default(), |n: usize| ContentId::Output(digest_of(&n.to_le_bytes())));
        let mut index = LineIndex::new(0, CodeUnitLayout::Byte);
        index.push(7);
        indexes.put(id(0), index.clone());
        assert_eq!(indexes.get(id(0), 0, CodeUnitLayout::Byte).feeds, [0, 7]);
        assert_eq!(indexes.get(id(0), 3, CodeUnitLayout::Byte).feeds, [0]);
        assert_eq!(indexes.get(id(1), 0, CodeUnitLayout::Byte).feeds, [0]);
        (1..=REMEMBERED).for_each(|n| indexes.put(id(n), index.clone()));
        assert_eq!(indexes.get(id(0), 0, CodeUnitLayout::Byte).feeds, [0]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn finds_the_same_lines_as_splitting_the_text(
            lengths in prop::collection::vec(prop_oneof![4 => 0_usize..5, 1 => 0_usize..300_000], 1..12),
            is_ended: bool,
            asked in prop::collection::vec(1_u64..14, 1..6),
        ) {
            let mut text = lengths.iter().map(|length| "x".repeat(*length)).collect::<Vec<_>>().join("\n");
            if is_ended {
                text.push('\n');
            }
            let starts: Vec<usize> = text.split_inclusive('\n').scan(0, |at, line| {
                let start = *at;
                *at += line.len();
                Some(start)
            }).collect();
            let mut index = LineIndex::new(0, CodeUnitLayout::Byte);
            let mut reader = Cursor::new(text.as_bytes());
            for line in asked {
                let expected = match starts.get(line as usize - 1) {
                    Some(at) => LineLookup::At(*at as u64),
                    None if line == 1 => LineLookup::At(0),
                    None => LineLookup::PastEnd(starts.len() as u64),
                };
                prop_assert_eq!(index.find(&mut reader, line, &later()).unwrap(), expected);
            }
            prop_assert_eq!(index.count(&mut reader, &later()).unwrap(), Some(starts.len() as u64));
        }
    }
}
