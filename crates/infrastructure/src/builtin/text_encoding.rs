//! Which encoding a text file is in, and the way there and back.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{EncoderResult, Encoding, ISO_2022_JP, UTF_8, UTF_16BE, UTF_16LE};
use std::borrow::Cow;

/// As much of a file is looked at for bytes that no text has.
const BINARY_SAMPLE_BYTES: usize = 8 << 10;

/// As many bytes are enough to tell one old encoding from another.
const TELLING_BYTES: usize = 1 << 20;

/// Beginnings of files that are no text, whatever follows.
const BINARY_BEGINNINGS: &[(&[u8], &str)] = &[
    (b"%PDF-", "a PDF document"),
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"RIFF", "a RIFF file (WebP, WAV or AVI)"),
    (b"PK\x03\x04", "a ZIP archive, or an office document"),
    (b"\x1f\x8b", "gzip data"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ", "xz data"),
    (b"\x28\xb5\x2f\xfd", "Zstandard data"),
    (b"\x7fELF", "an ELF program or library"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"\0asm", "a WebAssembly module"),
    (b"\xff\xfe\0\0", "text in UTF-32, which is not supported"),
    (b"\0\0\xfe\xff", "text in UTF-32, which is not supported"),
];

/// Python's names that are none of WHATWG's.
const OTHER_LABELS: &[(&str, &str)] = &[
    ("latin-1", "latin1"),
    ("utf-8-sig", "utf-8"),
    ("utf-16-le", "utf-16le"),
    ("utf-16-be", "utf-16be"),
    ("u8", "utf-8"),
    ("u16", "utf-16"),
    ("cp932", "shift_jis"),
    ("cp936", "gbk"),
    ("cp949", "euc-kr"),
    ("cp950", "big5"),
];

/// The encoding of one file, and whether it begins with a byte order mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TextEncoding {
    encoding: &'static Encoding,
    mark_bytes: usize,
}

/// What the bytes of a file are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detected {
    Text(TextEncoding),
    /// No text; in words.
    Binary(&'static str),
}

/// Finds out what a file is by its beginning. With the whole file, valid UTF-8 is never taken for anything else, and
/// anything else never for UTF-8.
pub(super) fn detect(beginning: &[u8], is_whole: bool) -> Detected {
    if let Some((_, what)) = BINARY_BEGINNINGS.iter().find(|(start, _)| beginning.starts_with(start)) {
        return Detected::Binary(what);
    }
    if let Some((encoding, mark_bytes)) = Encoding::for_bom(beginning) {
        return Detected::Text(TextEncoding { encoding, mark_bytes });
    }
    let sample = &beginning[..beginning.len().min(BINARY_SAMPLE_BYTES)];
    let odd = sample.iter().filter(|byte| matches!(byte, 0..=6 | 14..=26 | 28..=31 | 127)).count();
    if sample.contains(&0) || odd * 10 > sample.len() * 3 {
        return Detected::Binary("binary data");
    }
    let valid = match std::str::from_utf8(beginning) {
        Ok(_) => true,
        // The beginning may end in the middle of a character.
        Err(error) => !is_whole && error.error_len().is_none(),
    };
    if valid {
        return Detected::Text(TextEncoding { encoding: UTF_8, mark_bytes: 0 });
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    let telling = &beginning[..beginning.len().min(TELLING_BYTES)];
    detector.feed(telling, is_whole && telling.len() == beginning.len());
    Detected::Text(TextEncoding { encoding: detector.guess(None, Utf8Detection::Deny), mark_bytes: 0 })
}

impl TextEncoding {
    /// The encoding of that name (WHATWG's labels, and Python's names) for a file that begins so; `None` if there is
    /// none of that name.
    pub(super) fn named(label: &str, beginning: &[u8]) -> Option<Self> {
        let label = label.trim().to_ascii_lowercase().replace('_', "-");
        let label = OTHER_LABELS.iter().find(|(other, _)| *other == label).map_or(&*label, |(_, known)| known);
        let encoding = Encoding::for_label_no_replacement(label.as_bytes())
            .or_else(|| Encoding::for_label_no_replacement(label.replace('-', "_").as_bytes()))?;
        match Encoding::for_bom(beginning) {
            Some((marked, mark_bytes)) if marked == encoding || label == "utf-16" => {
                Some(Self { encoding: marked, mark_bytes })
            }
            _ => Some(Self { encoding, mark_bytes: 0 }),
        }
    }

    /// The name in lower case, as WHATWG has it.
    pub(super) fn name(self) -> String {
        self.encoding.name().to_ascii_lowercase()
    }

    /// How many bytes the byte order mark has; zero without one.
    pub(super) fn mark_bytes(self) -> usize {
        self.mark_bytes
    }

    /// Whether the text is plain UTF-8.
    pub(super) fn is_plain(self) -> bool {
        self.encoding == UTF_8 && self.mark_bytes == 0
    }

    /// Whether the byte of a line feed is a line feed wherever it stands, so that lines can be cut before decoding.
    pub(super) fn has_plain_lines(self) -> bool {
        self.encoding.is_ascii_compatible()
    }

    /// The text of bytes behind the mark, and whether some of them were no text and became U+FFFD.
    pub(super) fn decode(self, bytes: &[u8]) -> (Cow<'_, str>, bool) {
        self.encoding.decode_without_bom_handling(bytes)
    }

    /// The text, if these very bytes come out again when it is encoded, piece by piece as well.
    pub(super) fn decode_exactly(self, bytes: &[u8]) -> Option<Cow<'_, str>> {
        let text = self.encoding.decode_without_bom_handling_and_without_replacement(bytes)?;
        // Characters of this one depend on what stood before them.
        if self.encoding == ISO_2022_JP {
            return None;
        }
        let same = self.encoding == UTF_8 || self.encode(&text).is_ok_and(|encoded| *encoded == *bytes);
        same.then_some(text)
    }

    /// How many bytes a text that came out of this encoding has in it.
    pub(super) fn encoded_bytes(self, text: &str) -> usize {
        if self.encoding == UTF_16LE || self.encoding == UTF_16BE {
            return 2 * text.encode_utf16().count();
        }
        self.encode(text).map_or(text.len(), |bytes| bytes.len())
    }

    /// The characters of a text that the encoding does not have, each once, at most so many.
    pub(super) fn lacking(self, text: &str, limit: usize) -> Vec<char> {
        let mut missing = Vec::new();
        let mut rest = text;
        while let Err(character) = self.encode(rest) {
            if !missing.contains(&character) {
                missing.push(character);
            }
            match rest.split_once(character) {
                Some((_, after)) if missing.len() < limit => rest = after,
                _ => break,
            }
        }
        missing
    }

    /// The mark and the bytes of a text.
    ///
    /// # Errors
    /// The first character that the encoding does not have.
    pub(super) fn encode_whole(self, text: &str) -> Result<Vec<u8>, char> {
        let body = self.encode(text)?;
        let mark: &[u8] = match self.mark_bytes {
            0 => b"",
            _ if self.encoding == UTF_16LE => b"\xff\xfe",
            _ if self.encoding == UTF_16BE => b"\xfe\xff",
            _ => b"\xef\xbb\xbf",
        };
        Ok([mark, &body].concat())
    }

    /// The bytes of a text.
    ///
    /// # Errors
    /// The first character that the encoding does not have.
    pub(super) fn encode(self, text: &str) -> Result<Cow<'_, [u8]>, char> {
        if self.encoding == UTF_8 {
            return Ok(Cow::Borrowed(text.as_bytes()));
        }
        if self.encoding == UTF_16LE {
            return Ok(Cow::Owned(text.encode_utf16().flat_map(u16::to_le_bytes).collect()));
        }
        if self.encoding == UTF_16BE {
            return Ok(Cow::Owned(text.encode_utf16().flat_map(u16::to_be_bytes).collect()));
        }
        let mut encoder = self.encoding.new_encoder();
        let room = encoder.max_buffer_length_from_utf8_without_replacement(text.len()).unwrap_or(text.len());
        let mut bytes = Vec::with_capacity(room);
        match encoder.encode_from_utf8_to_vec_without_replacement(text, &mut bytes, true).0 {
            EncoderResult::InputEmpty => Ok(Cow::Owned(bytes)),
            EncoderResult::Unmappable(character) => Err(character),
            // There was room for the worst; whoever asked is told that it did not work.
            EncoderResult::OutputFull => Err(char::REPLACEMENT_CHARACTER),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], expected: Option<(&str, &str)>) {
        match (detect(bytes, true), expected) {
            (Detected::Text(encoding), Some((name, text))) => {
                let body = &bytes[encoding.mark_bytes()..];
                assert_eq!((encoding.name().as_str(), &*encoding.decode(body).0), (name, text));
                assert_eq!(encoding.decode_exactly(body).unwrap(), text);
                assert_eq!(encoding.encode(text).unwrap(), body);
            }
            (Detected::Binary(_), None) => {}
            (detected, _) => panic!("{bytes:?} is {detected:?}"),
        }
    }

    #[test]
    fn texts_are_told_from_each_other_and_from_what_is_no_text() {
        check(b"", Some(("utf-8", "")));
        check("grün\n".as_bytes(), Some(("utf-8", "grün\n")));
        check("\u{feff}x".as_bytes(), Some(("utf-8", "x")));
        check(b"\xff\xfeg\0r\0\xfc\0", Some(("utf-16le", "grü")));
        check(b"\xfe\xff\0g\0r\0\xfc", Some(("utf-16be", "grü")));
        check(b"sch\xf6ne gr\xfc\xdfe aus k\xf6ln", Some(("windows-1252", "schöne grüße aus köln")));
        check(b"a\0b", None);
        check(b"%PDF-1.7\n%abc", None);
        check(b"\x01\x02\x03\x04\x05abc", None);
    }

    #[test]
    fn encodings_are_known_by_the_names_of_the_web_and_of_python() {
        for (label, name) in [
            ("utf-8", "utf-8"),
            ("UTF8", "utf-8"),
            ("utf-8-sig", "utf-8"),
            ("utf_8", "utf-8"),
            ("latin-1", "windows-1252"),
            ("iso-8859-1", "windows-1252"),
            ("iso8859_15", "iso-8859-15"),
            ("cp1252", "windows-1252"),
            ("ascii", "windows-1252"),
            ("shift_jis", "shift_jis"),
            ("euc_jp", "euc-jp"),
            ("gb18030", "gb18030"),
            ("utf-16", "utf-16le"),
            ("utf_16_be", "utf-16be"),
        ] {
            assert_eq!(TextEncoding::named(label, b"").map(TextEncoding::name).as_deref(), Some(name), "{label}");
        }
        assert_eq!(TextEncoding::named("utf-16", b"\xfe\xff\0x").unwrap().name(), "utf-16be");
        assert_eq!(TextEncoding::named("klingon", b""), None);
    }

    #[test]
    fn a_character_that_an_encoding_lacks_is_named() {
        let latin = TextEncoding::named("latin-1", b"").unwrap();
        assert_eq!(latin.encode("a→b").unwrap_err(), '→');
        assert_eq!(TextEncoding::named("utf-8", b"").unwrap().decode_exactly(b"\xff"), None);
    }
}
