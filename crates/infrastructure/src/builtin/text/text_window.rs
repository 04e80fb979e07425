//! Reads a range of lines of a text without loading the rest.

use crate::{
    builtin::text::line_index::{LineIndex, LineLookup, ReadSeek, read_full},
    sandbox::workspace::stop::StopCondition,
};
use std::io::{self, SeekFrom};

/// Maximum number of bytes of lines in memory.
const MAX_WINDOW_BYTES: usize = 400_000;
/// Maximum size in bytes of a text whose lines are all counted.
const COUNTED_BYTES: u64 = 64 << 20;
const CHUNK_BYTES: usize = 64 << 10;

/// Position of the requested lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextWindowPosition {
    /// From this line on, counted from 1.
    From(u64),
    /// From this line on, counted from the end: 1 is the last line.
    Last(u64),
    /// This line, counted from 1, and those before and after it.
    Around(u64),
}

/// Lines, as bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct LineRangeContent {
    /// Lines with their line feeds.
    pub(crate) bytes: Vec<u8>,
    /// First line: counted from 1, or from the end (-1 is the last line) if the lines before it were not counted.
    pub(crate) first: i64,
    /// Number of lines.
    pub(crate) lines: u64,
    /// Number of lines in `bytes` before the requested one.
    pub(crate) before: u64,
    /// Number of lines of the whole text; `None` if they were not counted.
    pub(crate) total_lines: Option<u64>,
    /// `true` if `bytes` contains only the beginning of the last line.
    pub(crate) is_last_line_cut: bool,
    /// `true` if the deadline was reached before all lines were read.
    pub(crate) is_out_of_time: bool,
}

/// A text whose lines are read.
pub(crate) struct LineRangeReader<'a> {
    pub(crate) reader: &'a mut dyn ReadSeek,
    /// Size with the byte order mark, in bytes.
    pub(crate) bytes: u64,
    pub(crate) index: &'a mut LineIndex,
    pub(crate) stop: &'a StopCondition,
}

impl LineRangeReader<'_> {
    /// Reads at most `limit` lines. Lines near the end of a large text are read backwards.
    pub(crate) fn read_lines(&mut self, wanted: TextWindowPosition, limit: u64) -> io::Result<LineRangeContent> {
        let mut window = match wanted {
            TextWindowPosition::From(line) => self.forwards(line, 0, limit)?,
            TextWindowPosition::Around(line) => self.forwards(line, limit.saturating_sub(1) / 2, limit)?,
            TextWindowPosition::Last(count) => match self.count_if_small()? {
                Some(total) => self.forwards(total.saturating_sub(count) + 1, 0, limit)?,
                None => self.backwards(count, limit)?,
            },
        };
        if window.total_lines.is_none() && !window.is_out_of_time {
            window.total_lines = self.count_if_small()?;
        }
        Ok(window)
    }

    /// Returns the number of lines of the whole text, if it is known or quickly counted.
    fn count_if_small(&mut self) -> io::Result<Option<u64>> {
        if self.bytes.saturating_sub(self.index.counted_to()) > COUNTED_BYTES {
            return Ok(self.index.lines());
        }
        self.index.count(self.reader, self.stop)
    }

    fn forwards(&mut self, line: u64, before: u64, limit: u64) -> io::Result<LineRangeContent> {
        let first = i64::try_from(line).unwrap_or(i64::MAX);
        match self.index.find(self.reader, line, self.stop)? {
            LineLookup::At(offset) => {
                let (start, found) = self.lines_before(offset, before, MAX_WINDOW_BYTES as u64 / 2)?;
                let window = self.read(start, limit.min(found + limit - before))?;
                Ok(LineRangeContent { first: first - found as i64, before: found, ..window })
            }
            LineLookup::PastEnd(total) => {
                Ok(LineRangeContent { first, total_lines: Some(total), ..LineRangeContent::default() })
            }
            LineLookup::OutOfTime => {
                Ok(LineRangeContent { first, is_out_of_time: true, ..LineRangeContent::default() })
            }
        }
    }

    fn backwards(&mut self, count: u64, limit: u64) -> io::Result<LineRangeContent> {
        let (start, found) = self.lines_before(self.bytes, count, u64::MAX)?;
        if found < count && start > self.index.start() {
            return Ok(LineRangeContent { first: -1, is_out_of_time: true, ..LineRangeContent::default() });
        }
        let window = self.read(start, limit)?;
        // A search that reached the start has counted all of them.
        let total = (start == self.index.start()).then_some(found);
        Ok(LineRangeContent { first: if total.is_some() { 1 } else { -(found as i64) }, total_lines: total, ..window })
    }

    /// Searches backwards from the start of a line, or from the end, over at most `count` lines and `at_most` bytes.
    /// Returns the position reached, and the number of lines passed.
    fn lines_before(&mut self, end: u64, count: u64, at_most: u64) -> io::Result<(u64, u64)> {
        let (start, unit) = (self.index.start(), self.index.unit());
        let (mut begin, mut found, mut from) = (end, 0, end);
        let mut buffer = vec![0; CHUNK_BYTES];
        while found < count && from > start && end - from < at_most && !self.stop.is_due() {
            // Each chunk begins with a whole unit.
            let to = from;
            from = start + (to - start).saturating_sub(CHUNK_BYTES as u64).next_multiple_of(unit.width() as u64);
            self.reader.seek(SeekFrom::Start(from))?;
            let wanted = usize::try_from(to - from).unwrap_or(CHUNK_BYTES).min(CHUNK_BYTES);
            let read = read_full(self.reader, &mut buffer[..wanted])?;
            for place in unit.ends(&buffer[..read]).rev().map(|place| from + place as u64) {
                // The line feed right before the end belongs to the line before.
                if place < end && found < count {
                    (begin, found) = (place, found + 1);
                }
            }
        }
        if found < count && from == start && begin > start {
            (begin, found) = (start, found + 1);
        }
        Ok((begin, found))
    }

    fn read(&mut self, offset: u64, limit: u64) -> io::Result<LineRangeContent> {
        let mut window = LineRangeContent::default();
        let mut buffer = vec![0; CHUNK_BYTES];
        self.reader.seek(SeekFrom::Start(offset))?;
        while window.lines < limit && window.bytes.len() < MAX_WINDOW_BYTES {
            if self.stop.is_due() {
                window.is_out_of_time = true;
                break;
            }
            let read = read_full(self.reader, &mut buffer)?;
            let taken = &buffer[..read.min(MAX_WINDOW_BYTES - window.bytes.len())];
            let ends = self.index.unit().ends(taken).take((limit - window.lines) as usize);
            let (feeds, last) = ends.fold((0, None), |(feeds, _), end| (feeds + 1, Some(end)));
            window.lines += feeds;
            let is_full = window.lines == limit;
            window.bytes.extend_from_slice(&taken[..last.filter(|_| is_full).unwrap_or(taken.len())]);
            if read < buffer.len() && taken.len() == read {
                break;
            }
        }
        self.end_with_a_line(&mut window, offset, limit)?;
        Ok(window)
    }

    /// Counts a last line without a line feed if the text ends with it. A line that does not fit is left out, unless it
    /// is the only one.
    fn end_with_a_line(&mut self, window: &mut LineRangeContent, offset: u64, limit: u64) -> io::Result<()> {
        let last = self.index.unit().ends(&window.bytes).next_back().unwrap_or(0);
        if window.lines == limit || last == window.bytes.len() {
            return Ok(());
        }
        let mut more = [0; 1];
        self.reader.seek(SeekFrom::Start(offset + window.bytes.len() as u64))?;
        if read_full(self.reader, &mut more)? == 0 {
            window.lines += 1;
        } else if window.lines == 0 {
            (window.lines, window.is_last_line_cut) = (1, true);
        } else {
            window.bytes.truncate(last);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::text::line_unit::CodeUnitLayout;
    use proptest::prelude::*;
    use std::{
        io::Cursor,
        time::{Duration, Instant},
    };

    fn later() -> StopCondition {
        StopCondition::at(Instant::now() + Duration::from_secs(600))
    }

    fn window(text: &[u8], unit: CodeUnitLayout, wanted: TextWindowPosition, limit: u64) -> LineRangeContent {
        let (mut reader, mut index) = (Cursor::new(text), LineIndex::new(0, unit));
        let bytes = text.len() as u64;
        LineRangeReader { reader: &mut reader, bytes, index: &mut index, stop: &later() }
            .read_lines(wanted, limit)
            .unwrap()
    }

    #[test]
    fn a_line_that_never_ends_is_cut() {
        let window = window(&vec![b'x'; 1 << 20], CodeUnitLayout::Byte, TextWindowPosition::From(1), 5);
        assert_eq!((window.bytes.len(), window.lines, window.is_last_line_cut), (MAX_WINDOW_BYTES, 1, true));
        assert_eq!(window.total_lines, Some(1));
    }

    #[test]
    fn reading_lines_stops_at_the_deadline_and_reports_the_timeout() {
        let (mut reader, mut index) = (Cursor::new(b"\n".repeat(100)), LineIndex::new(0, CodeUnitLayout::Byte));
        let stop = StopCondition::at(Instant::now());
        let mut text = LineRangeReader { reader: &mut reader, bytes: 100, index: &mut index, stop: &stop };
        for wanted in [TextWindowPosition::From(50), TextWindowPosition::Around(50), TextWindowPosition::Last(5)] {
            let window = text.read_lines(wanted, 1).unwrap();
            assert_eq!((window.lines, window.total_lines, window.is_out_of_time), (0, None, true), "{wanted:?}");
        }
    }

    #[test]
    fn a_large_text_is_read_from_its_end_backwards() {
        struct Counted(Cursor<Vec<u8>>, usize);
        impl io::Read for Counted {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let read = self.0.read(buffer)?;
                self.1 += read;
                Ok(read)
            }
        }
        impl io::Seek for Counted {
            fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
                self.0.seek(to)
            }
        }
        let text = b"0123456\n".repeat((COUNTED_BYTES as usize / 8) + 2);
        let bytes = text.len() as u64;
        let (mut reader, mut index) = (Counted(Cursor::new(text), 0), LineIndex::new(0, CodeUnitLayout::Byte));
        let mut text = LineRangeReader { reader: &mut reader, bytes, index: &mut index, stop: &later() };
        let window = text.read_lines(TextWindowPosition::Last(100), 10).unwrap();
        assert_eq!((window.first, window.lines, window.total_lines), (-100, 10, None));
        assert!(reader.1 < 1 << 20, "{}", reader.1);
    }

    #[test]
    fn a_text_that_shrinks_during_reading_is_read_to_its_new_end() {
        let (mut reader, mut index) = (Cursor::new(b"a\nb\n".to_vec()), LineIndex::new(0, CodeUnitLayout::Byte));
        let mut text = LineRangeReader { reader: &mut reader, bytes: 1 << 40, index: &mut index, stop: &later() };
        for wanted in [
            TextWindowPosition::From(1),
            TextWindowPosition::From(9),
            TextWindowPosition::Around(2),
            TextWindowPosition::Last(2),
        ] {
            assert!(text.read_lines(wanted, 3).unwrap().lines <= 2, "{wanted:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_line_range_equals_the_lines_of_the_split_text(
            lengths in prop::collection::vec((prop_oneof![4 => 0_usize..5, 1 => 0_usize..100_000], any::<bool>()), 0..10),
            at in 1_u64..12,
            limit in 1_u64..12,
            width in prop_oneof![Just(1_usize), Just(2), Just(4)],
        ) {
            let line = |(length, is_ended): &(usize, bool)| "x".repeat(*length) + if *is_ended { "\n" } else { "" };
            let text: String = lengths.iter().map(line).collect();
            let lines: Vec<&str> = text.split_inclusive('\n').collect();
            let encoded = |text: &str| {
                let mut bytes = vec![0; text.len() * width];
                bytes.iter_mut().step_by(width).zip(text.bytes()).for_each(|(to, byte)| *to = byte);
                bytes
            };
            let unit = if width == 1 { CodeUnitLayout::Byte } else { CodeUnitLayout::Wide { bytes: width, is_big_endian: false } };
            let total = lines.len() as u64;
            for (wanted, first, count) in [
                (TextWindowPosition::From(at), at, limit),
                (TextWindowPosition::Last(at), total.saturating_sub(at) + 1, limit),
                (TextWindowPosition::Around(at), at.saturating_sub((limit - 1) / 2).max(1), (limit - (limit - 1) / 2) + ((limit - 1) / 2).min(at - 1)),
            ] {
                let expected = lines.iter().copied().skip(first as usize - 1).take(count as usize).collect::<String>();
                if encoded(&expected).len() >= MAX_WINDOW_BYTES / 2 {
                    continue;
                }
                let window = window(&encoded(&text), unit, wanted, limit);
                prop_assert_eq!(window.total_lines, Some(total));
                if matches!(wanted, TextWindowPosition::Around(line) if line > total) {
                    prop_assert_eq!(window.lines, 0);
                } else {
                    prop_assert_eq!(window.first, first as i64, "{:?}", wanted);
                    prop_assert!(window.bytes == encoded(&expected), "{:?}", wanted);
                    prop_assert_eq!(window.lines, expected.split_inclusive('\n').count() as u64);
                }
            }
        }
    }
}
