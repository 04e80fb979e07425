//! Line ends in bytes that are not decoded yet.

/// Unit of an encoded text: a single byte, or two or four.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum CodeUnitLayout {
    /// A line feed is one byte, which has no other meaning.
    Byte,
    /// A line feed is a unit of several bytes (UTF-16).
    Wide { bytes: usize, is_big_endian: bool },
}

impl CodeUnitLayout {
    /// Returns the number of bytes of a unit.
    pub(crate) fn width(self) -> usize {
        match self {
            Self::Byte => 1,
            Self::Wide { bytes, .. } => bytes,
        }
    }

    /// Returns the positions after the line feeds, in order. The bytes must begin with a whole unit.
    pub(crate) fn ends(self, bytes: &[u8]) -> impl DoubleEndedIterator<Item = usize> {
        memchr::memchr_iter(b'\n', bytes).filter_map(move |at| self.end_of(bytes, at))
    }

    /// Returns the number of line feeds. The bytes must begin with a whole unit.
    pub(crate) fn count(self, bytes: &[u8]) -> u64 {
        match self {
            Self::Byte => memchr::memchr_iter(b'\n', bytes).count() as u64,
            Self::Wide { .. } => self.ends(bytes).count() as u64,
        }
    }

    fn end_of(self, bytes: &[u8], at: usize) -> Option<usize> {
        let Self::Wide { bytes: width, is_big_endian } = self else { return Some(at + 1) };
        let begin = at - at % width;
        let unit = bytes.get(begin..begin + width)?;
        let place = if is_big_endian { width - 1 } else { 0 };
        let is_feed = at == begin + place && unit.iter().filter(|byte| **byte != 0).count() == 1;
        is_feed.then_some(begin + width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_feed_must_fill_a_whole_code_unit() {
        let check = |unit: CodeUnitLayout, bytes: &[u8], ends: &[usize]| {
            assert_eq!(unit.ends(bytes).collect::<Vec<_>>(), ends, "{unit:?} {bytes:?}");
            assert_eq!(unit.count(bytes), ends.len() as u64);
        };
        let (little, big) = (false, true);
        check(CodeUnitLayout::Byte, b"a\n\nb", &[2, 3]);
        check(CodeUnitLayout::Wide { bytes: 2, is_big_endian: little }, b"a\0\n\0\0\n\n\n\n\0\n", &[4, 10]);
        check(CodeUnitLayout::Wide { bytes: 2, is_big_endian: big }, b"\0a\0\n\n\0\n\n\0\n\0", &[4, 10]);
        check(CodeUnitLayout::Wide { bytes: 4, is_big_endian: little }, b"\n\0\0\0\n\0\0\x01", &[4]);
    }
}
