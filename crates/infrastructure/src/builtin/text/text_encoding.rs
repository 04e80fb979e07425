//! Detection of the encoding of a text file, decoding and encoding.

use crate::builtin::text::line_unit::CodeUnitLayout;
use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{EncoderResult, Encoding, ISO_2022_JP, UTF_8, UTF_16BE, UTF_16LE};
use std::borrow::Cow;

/// Maximum number of bytes that are searched for bytes that do not occur in text.
const BINARY_SAMPLE_BYTES: usize = 8 << 10;

/// Maximum number of bytes used to distinguish legacy encodings.
const TELLING_BYTES: usize = 1 << 20;

/// Signatures of binary files, which suffice to recognise them.
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
];

/// Byte order marks of UTF-32, the first of which begins like that of UTF-16.
const UTF_32_MARKS: [(&[u8], Charset); 2] = [
    (b"\xff\xfe\0\0", Charset::Utf32 { is_big_endian: false }),
    (b"\0\0\xfe\xff", Charset::Utf32 { is_big_endian: true }),
];
/// Number of bytes of a character in UTF-32.
const UTF_32_WIDTH: usize = 4;

/// Names of Python that WHATWG does not define.
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

/// Encoding of one file, and the length of its byte order mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TextEncoding {
    charset: Charset,
    mark_bytes: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Charset {
    /// Encoding of the WHATWG Encoding Standard.
    Web(&'static Encoding),
    /// UTF-32, which WHATWG does not define.
    Utf32 { is_big_endian: bool },
}

/// Result of the detection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextDetection {
    Text(TextEncoding),
    /// Not text; with a description.
    Binary(&'static str),
}

/// Detects the type of a file by its beginning. If that is the whole file, a text is detected as UTF-8 if and only if it
/// is valid UTF-8.
pub(crate) fn detect(beginning: &[u8], is_whole: bool) -> TextDetection {
    if let Some((_, what)) = BINARY_BEGINNINGS.iter().find(|(start, _)| beginning.starts_with(start)) {
        return TextDetection::Binary(what);
    }
    if let Some((mark, charset)) = UTF_32_MARKS.iter().find(|(mark, _)| beginning.starts_with(mark)) {
        let encoding = TextEncoding { charset: *charset, mark_bytes: mark.len() };
        return if is_utf_32(&beginning[mark.len()..], encoding, is_whole) {
            TextDetection::Text(encoding)
        } else {
            TextDetection::Binary("binary data")
        };
    }
    if let Some((encoding, mark_bytes)) = Encoding::for_bom(beginning) {
        return TextDetection::Text(TextEncoding { charset: Charset::Web(encoding), mark_bytes });
    }
    let sample = &beginning[..beginning.len().min(BINARY_SAMPLE_BYTES)];
    let odd = sample.iter().filter(|byte| matches!(byte, 0..=6 | 14..=26 | 28..=31 | 127)).count();
    if sample.contains(&0) || odd * 10 > sample.len() * 3 {
        return TextDetection::Binary("binary data");
    }
    let valid = match std::str::from_utf8(beginning) {
        Ok(_) => true,
        // The beginning may end in the middle of a character.
        Err(error) => !is_whole && error.error_len().is_none(),
    };
    if valid {
        return TextDetection::Text(TextEncoding { charset: Charset::Web(UTF_8), mark_bytes: 0 });
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    let telling = &beginning[..beginning.len().min(TELLING_BYTES)];
    detector.feed(telling, is_whole && telling.len() == beginning.len());
    let guessed = detector.guess(None, Utf8Detection::Deny);
    TextDetection::Text(TextEncoding { charset: Charset::Web(guessed), mark_bytes: 0 })
}

/// Returns `true` if the bytes after a mark of UTF-32 are text: the mark may also be the beginning of binary data.
fn is_utf_32(body: &[u8], encoding: TextEncoding, is_whole: bool) -> bool {
    let sample = &body[..body.len().min(BINARY_SAMPLE_BYTES)];
    let (text, is_malformed) = encoding.decode_beginning(sample);
    let is_complete = !is_whole || body.len().is_multiple_of(UTF_32_WIDTH);
    is_complete && !is_malformed && !text.contains('\0')
}

impl TextEncoding {
    /// Returns the encoding with this name (WHATWG's labels, and Python's names) for a file with this beginning; `None`
    /// if the name is unknown.
    pub(crate) fn named(label: &str, beginning: &[u8]) -> Option<Self> {
        let label = label.trim().to_ascii_lowercase().replace('_', "-");
        let label = OTHER_LABELS.iter().find(|(other, _)| *other == label).map_or(&*label, |(_, known)| known);
        let mark = UTF_32_MARKS.iter().find(|(mark, _)| beginning.starts_with(mark));
        let utf_32 = match label {
            "utf-32" | "utf32" | "u32" => {
                Some(mark.map_or(Charset::Utf32 { is_big_endian: false }, |(_, marked)| *marked))
            }
            "utf-32le" | "utf-32-le" => Some(Charset::Utf32 { is_big_endian: false }),
            "utf-32be" | "utf-32-be" => Some(Charset::Utf32 { is_big_endian: true }),
            _ => None,
        };
        if let Some(charset) = utf_32 {
            let mark_bytes = mark.filter(|(_, marked)| *marked == charset).map_or(0, |(mark, _)| mark.len());
            return Some(Self { charset, mark_bytes });
        }
        let encoding = Encoding::for_label_no_replacement(label.as_bytes())
            .or_else(|| Encoding::for_label_no_replacement(label.replace('-', "_").as_bytes()))?;
        match Encoding::for_bom(beginning) {
            Some((marked, mark_bytes)) if marked == encoding || label == "utf-16" => {
                Some(Self { charset: Charset::Web(marked), mark_bytes })
            }
            _ => Some(Self { charset: Charset::Web(encoding), mark_bytes: 0 }),
        }
    }

    /// Returns the name in lower case, that of WHATWG if there is one.
    pub(crate) fn name(self) -> String {
        match self.charset {
            Charset::Web(encoding) => encoding.name().to_ascii_lowercase(),
            Charset::Utf32 { is_big_endian: false } => "utf-32le".into(),
            Charset::Utf32 { is_big_endian: true } => "utf-32be".into(),
        }
    }

    /// Returns the number of bytes of the byte order mark; zero without one.
    pub(crate) fn mark_bytes(self) -> usize {
        self.mark_bytes
    }

    /// Returns `true` for UTF-8 without a byte order mark.
    pub(crate) fn is_plain(self) -> bool {
        self.charset == Charset::Web(UTF_8) && self.mark_bytes == 0
    }

    /// Returns the unit of line ends before decoding; `None` for an encoding with state.
    pub(crate) fn line_unit(self) -> Option<CodeUnitLayout> {
        let wide = |bytes, is_big_endian| Some(CodeUnitLayout::Wide { bytes, is_big_endian });
        match self.charset {
            Charset::Utf32 { is_big_endian } => wide(UTF_32_WIDTH, is_big_endian),
            Charset::Web(encoding) if encoding == UTF_16LE => wide(2, false),
            Charset::Web(encoding) if encoding == UTF_16BE => wide(2, true),
            Charset::Web(encoding) => encoding.is_ascii_compatible().then_some(CodeUnitLayout::Byte),
        }
    }

    /// Decodes as [`decode`](Self::decode), and drops an incomplete character at the end.
    pub(crate) fn decode_beginning(self, bytes: &[u8]) -> (String, bool) {
        let encoding = match self.charset {
            Charset::Web(encoding) => encoding,
            Charset::Utf32 { is_big_endian } => {
                return from_utf_32(&bytes[..bytes.len() - bytes.len() % UTF_32_WIDTH], is_big_endian);
            }
        };
        let mut decoder = encoding.new_decoder_without_bom_handling();
        let mut text = String::with_capacity(decoder.max_utf8_buffer_length(bytes.len()).unwrap_or(bytes.len()));
        let (_, _, is_malformed) = decoder.decode_to_string(bytes, &mut text, false);
        (text, is_malformed)
    }

    /// Decodes bytes after the mark. The flag is `true` if invalid bytes became U+FFFD.
    pub(crate) fn decode(self, bytes: &[u8]) -> (Cow<'_, str>, bool) {
        match self.charset {
            Charset::Web(encoding) => encoding.decode_without_bom_handling(bytes),
            Charset::Utf32 { is_big_endian } => {
                let (text, is_malformed) = from_utf_32(bytes, is_big_endian);
                (Cow::Owned(text), is_malformed)
            }
        }
    }

    /// Decodes bytes if encoding the text, also in pieces, results in the same bytes.
    pub(crate) fn decode_exactly(self, bytes: &[u8]) -> Option<Cow<'_, str>> {
        let encoding = match self.charset {
            Charset::Web(encoding) => encoding,
            Charset::Utf32 { .. } => {
                let (text, is_malformed) = self.decode(bytes);
                return (!is_malformed).then_some(text);
            }
        };
        let text = encoding.decode_without_bom_handling_and_without_replacement(bytes)?;
        // In this encoding the meaning of bytes depends on earlier ones.
        if encoding == ISO_2022_JP {
            return None;
        }
        let same = encoding == UTF_8 || self.encode(&text).is_ok_and(|encoded| *encoded == *bytes);
        same.then_some(text)
    }

    /// Returns the number of bytes of a text that was decoded from this encoding.
    pub(crate) fn encoded_bytes(self, text: &str) -> usize {
        match self.charset {
            Charset::Utf32 { .. } => UTF_32_WIDTH * text.chars().count(),
            Charset::Web(encoding) if encoding == UTF_16LE || encoding == UTF_16BE => 2 * text.encode_utf16().count(),
            Charset::Web(_) => self.encode(text).map_or(text.len(), |bytes| bytes.len()),
        }
    }

    /// Returns the characters of a text that the encoding lacks, each once, at most `limit`.
    pub(crate) fn lacking(self, text: &str, limit: usize) -> Vec<char> {
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

    /// Encodes a text, with the byte order mark.
    ///
    /// # Errors
    /// The first character that the encoding lacks.
    pub(crate) fn encode_whole(self, text: &str) -> Result<Vec<u8>, char> {
        let body = self.encode(text)?;
        // Only encodings of Unicode have a mark, which is this character.
        let mark = if self.mark_bytes > 0 { self.encode("\u{feff}")? } else { Cow::Borrowed(&b""[..]) };
        Ok([mark, body].concat())
    }

    /// Encodes a text, without a byte order mark.
    ///
    /// # Errors
    /// The first character that the encoding lacks.
    pub(crate) fn encode(self, text: &str) -> Result<Cow<'_, [u8]>, char> {
        let encoding = match self.charset {
            Charset::Utf32 { is_big_endian } => return Ok(Cow::Owned(to_utf_32(text, is_big_endian))),
            Charset::Web(encoding) if encoding == UTF_8 => return Ok(Cow::Borrowed(text.as_bytes())),
            Charset::Web(encoding) if encoding == UTF_16LE => {
                return Ok(Cow::Owned(text.encode_utf16().flat_map(u16::to_le_bytes).collect()));
            }
            Charset::Web(encoding) if encoding == UTF_16BE => {
                return Ok(Cow::Owned(text.encode_utf16().flat_map(u16::to_be_bytes).collect()));
            }
            Charset::Web(encoding) => encoding,
        };
        let mut encoder = encoding.new_encoder();
        let room = encoder.max_buffer_length_from_utf8_without_replacement(text.len()).unwrap_or(text.len());
        let mut bytes = Vec::with_capacity(room);
        match encoder.encode_from_utf8_to_vec_without_replacement(text, &mut bytes, true).0 {
            EncoderResult::InputEmpty => Ok(Cow::Owned(bytes)),
            EncoderResult::Unmappable(character) => Err(character),
            // Cannot happen, because the buffer has the maximum size. The caller receives an error.
            EncoderResult::OutputFull => Err(char::REPLACEMENT_CHARACTER),
        }
    }
}

/// Decodes UTF-32. The flag is `true` if invalid units became U+FFFD.
fn from_utf_32(bytes: &[u8], is_big_endian: bool) -> (String, bool) {
    let mut is_malformed = false;
    let character = |unit: &[u8]| {
        let unit: Result<[u8; UTF_32_WIDTH], _> = unit.try_into();
        let number = unit.map(|unit| if is_big_endian { u32::from_be_bytes(unit) } else { u32::from_le_bytes(unit) });
        number.ok().and_then(char::from_u32).unwrap_or_else(|| {
            is_malformed = true;
            char::REPLACEMENT_CHARACTER
        })
    };
    let text = bytes.chunks(UTF_32_WIDTH).map(character).collect();
    (text, is_malformed)
}

fn to_utf_32(text: &str, is_big_endian: bool) -> Vec<u8> {
    let unit = |c| if is_big_endian { u32::from(c).to_be_bytes() } else { u32::from(c).to_le_bytes() };
    text.chars().flat_map(unit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], expected: Option<(&str, &str)>) {
        match (detect(bytes, true), expected) {
            (TextDetection::Text(encoding), Some((name, text))) => {
                let body = &bytes[encoding.mark_bytes()..];
                assert_eq!((encoding.name().as_str(), &*encoding.decode(body).0), (name, text));
                assert_eq!(encoding.decode_exactly(body).unwrap(), text);
                assert_eq!(encoding.encode(text).unwrap(), body);
                assert_eq!(encoding.encode_whole(text).unwrap(), bytes);
                assert_eq!(encoding.encoded_bytes(text), body.len());
            }
            (TextDetection::Binary(_), None) => {}
            (detected, _) => panic!("{bytes:?} is {detected:?}"),
        }
    }

    #[test]
    fn detects_text_encodings_and_rejects_binary_content() {
        check(b"", Some(("utf-8", "")));
        check("grün\n".as_bytes(), Some(("utf-8", "grün\n")));
        check("\u{feff}x".as_bytes(), Some(("utf-8", "x")));
        check(b"\xff\xfeg\0r\0\xfc\0", Some(("utf-16le", "grü")));
        check(b"\xfe\xff\0g\0r\0\xfc", Some(("utf-16be", "grü")));
        check(b"\xff\xfe\0\0g\0\0\0\xfc\0\0\0\x0d\xf4\x01\0", Some(("utf-32le", "gü🐍")));
        check(b"\0\0\xfe\xff\0\0\0g\0\0\0\xfc\0\x01\xf4\x0d", Some(("utf-32be", "gü🐍")));
        check(b"\xff\xfe\0\0", Some(("utf-32le", "")));
        // Half a character, a surrogate, no character, and NUL.
        check(b"\xff\xfe\0\0g\0\0\0g\0", None);
        check(b"\xff\xfe\0\0\0\xd8\0\0", None);
        check(b"\0\0\xfe\xff\0\x11\0\0", None);
        check(b"\0\0\xfe\xff\0\0\0\0", None);
        check(b"sch\xf6ne gr\xfc\xdfe aus k\xf6ln", Some(("windows-1252", "schöne grüße aus köln")));
        check(b"a\0b", None);
        check(b"%PDF-1.7\n%abc", None);
        check(b"\x01\x02\x03\x04\x05abc", None);
    }

    #[test]
    fn encodings_are_found_by_their_web_and_python_names() {
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
            ("UTF-32", "utf-32le"),
            ("utf_32_be", "utf-32be"),
        ] {
            assert_eq!(TextEncoding::named(label, b"").map(TextEncoding::name).as_deref(), Some(name), "{label}");
        }
        assert_eq!(TextEncoding::named("utf-16", b"\xfe\xff\0x").unwrap().name(), "utf-16be");
        assert_eq!(TextEncoding::named("utf-32", b"\0\0\xfe\xff").unwrap().name(), "utf-32be");
        assert_eq!(TextEncoding::named("utf-32be", b"\xff\xfe\0\0").unwrap().mark_bytes(), 0);
        assert_eq!(TextEncoding::named("klingon", b""), None);
    }

    #[test]
    fn encoding_reports_a_character_that_the_encoding_lacks() {
        let latin = TextEncoding::named("latin-1", b"").unwrap();
        assert_eq!(latin.encode("a→b").unwrap_err(), '→');
        assert_eq!(TextEncoding::named("utf-8", b"").unwrap().decode_exactly(b"\xff"), None);
    }
}
