//! Some lines of a file, without holding the rest of it.

use crate::sandbox::workspace::stop::Stop;
use std::io::{self, Read};

/// As many bytes of lines are held at most.
const MAX_WINDOW_BYTES: usize = 400_000;
/// Behind the window as many bytes are looked through for the number of lines.
const MAX_COUNTED_BYTES: u64 = 1 << 30;
const CHUNK_BYTES: usize = 64 << 10;

/// Lines, as bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct TextWindow {
    /// The lines with their line breaks.
    pub(super) bytes: Vec<u8>,
    /// How many lines these are.
    pub(super) lines: u64,
    /// How many lines the whole has; `None` where that was not counted to the end.
    pub(super) total_lines: Option<u64>,
    /// Whether the last line is longer than what is held of it.
    pub(super) is_last_line_cut: bool,
    /// Whether the time was over before the window was full.
    pub(super) is_out_of_time: bool,
}

/// Reads `limit` lines from line `first` on (from 1), and counts the others. A last line without a line break counts.
pub(super) fn read_window(mut reader: impl Read, first: u64, limit: u64, stop: &Stop) -> io::Result<TextWindow> {
    let mut window = TextWindow::default();
    let mut buffer = vec![0; CHUNK_BYTES];
    // The line that is being read, and whether something of it was there already.
    let (mut line, mut is_begun) = (1, false);
    let (mut is_full, mut counted_bytes) = (false, 0);
    loop {
        let read = match reader.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let mut rest = &buffer[..read];
        if stop.is_due() {
            window.is_out_of_time = !is_full;
            return Ok(window);
        }
        if is_full {
            counted_bytes += read as u64;
            if counted_bytes > MAX_COUNTED_BYTES {
                return Ok(window);
            }
        }
        let breaks = line_breaks(rest);
        if is_full || line + breaks < first {
            line += breaks;
            is_begun = rest.last() != Some(&b'\n');
            continue;
        }
        while !rest.is_empty() {
            let end = rest.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
            let (piece, tail) = rest.split_at(end.unwrap_or(rest.len()));
            rest = tail;
            if line >= first && !is_full {
                let room = MAX_WINDOW_BYTES.saturating_sub(window.bytes.len());
                window.bytes.extend_from_slice(&piece[..piece.len().min(room)]);
                window.is_last_line_cut |= piece.len() > room;
                if end.is_some() {
                    window.lines += 1;
                    is_full = window.lines == limit || window.bytes.len() >= MAX_WINDOW_BYTES;
                }
            }
            line += u64::from(end.is_some());
            is_begun = end.is_none();
        }
    }
    if is_begun && line >= first && !is_full {
        window.lines += 1;
    }
    window.total_lines = Some(line - 1 + u64::from(is_begun));
    Ok(window)
}

/// Counts the lines to the end; `None` when the time was over first.
pub(super) fn count_lines(mut reader: impl Read, stop: &Stop) -> io::Result<Option<u64>> {
    let mut buffer = vec![0; CHUNK_BYTES];
    let (mut lines, mut is_begun) = (0, false);
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => return Ok(Some(lines + u64::from(is_begun))),
            Ok(read) => {
                lines += line_breaks(&buffer[..read]);
                is_begun = buffer[read - 1] != b'\n';
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if stop.is_due() {
            return Ok(None);
        }
    }
}

fn line_breaks(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::{Duration, Instant};

    fn later() -> Stop {
        Stop::at(Instant::now() + Duration::from_secs(600))
    }

    #[test]
    fn a_line_that_never_ends_is_cut() {
        let window = read_window(io::repeat(b'x').take(1 << 20), 1, 5, &later()).unwrap();
        assert_eq!((window.bytes.len(), window.lines, window.is_last_line_cut), (MAX_WINDOW_BYTES, 1, true));
        assert_eq!(window.total_lines, Some(1));
    }

    #[test]
    fn when_the_time_is_over_what_is_there_is_returned() {
        let window = read_window(io::repeat(b'\n'), 1 << 40, 1, &Stop::at(Instant::now())).unwrap();
        assert_eq!((window.lines, window.total_lines, window.is_out_of_time), (0, None, true));
        assert_eq!(count_lines(io::repeat(b'\n'), &Stop::at(Instant::now())).unwrap(), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_window_is_what_splitting_the_whole_gives(
            lengths in prop::collection::vec((prop_oneof![0_usize..5, 0_usize..200_000], any::<bool>()), 0..10),
            first in 1_u64..12,
            limit in 1_u64..12,
        ) {
            let line = |(length, is_ended): &(usize, bool)| "x".repeat(*length) + if *is_ended { "\n" } else { "" };
            let text: String = lengths.iter().map(line).collect();
            let lines: Vec<&str> = text.split_inclusive('\n').collect();
            let expected: Vec<&str> = lines.iter().copied().skip(first as usize - 1).take(limit as usize).collect();
            let window = read_window(text.as_bytes(), first, limit, &later()).unwrap();
            prop_assert_eq!(window.total_lines, Some(lines.len() as u64));
            prop_assert_eq!(count_lines(text.as_bytes(), &later()).unwrap(), Some(lines.len() as u64));
            if expected.concat().len() < MAX_WINDOW_BYTES {
                prop_assert_eq!(window.lines, expected.len() as u64);
                prop_assert_eq!(window.bytes, expected.concat().into_bytes());
            }
        }
    }
}
