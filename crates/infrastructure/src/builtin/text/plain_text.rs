//! Converts terminal output of programs to plain text.

use std::str;
use toolstead_domain::invisible_characters::changes_direction;

/// Maximum number of bytes of an incomplete line that are retained, because later output may overwrite the line. Of a
/// longer line only the end is retained.
const HELD_BYTES: usize = 64 << 10;
/// Maximum number of characters of a title or link that a terminal would not show. Longer ones are shown.
const MAX_STRING: usize = 4096;

/// Removes control sequences, keeps the last state of overwritten lines (progress bars), and replaces invalid UTF-8.
/// Unfinished parts of one call are continued by the next.
#[derive(Debug, Default)]
pub(crate) struct ControlSequenceFilter {
    state: EscapeState,
    /// Bytes of an incomplete character.
    partial: Vec<u8>,
    line: String,
    /// `true` if the cursor is at the beginning of the line, so that the next output replaces it.
    returned: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum EscapeState {
    #[default]
    Text,
    /// After ESC (ECMA-48, 5.3).
    Escape,
    /// After ESC and an intermediate byte.
    Intermediate,
    /// In a control sequence: ESC `[` … (ECMA-48, 5.4).
    Sequence,
    /// In a control string: ESC `]` … and others (ECMA-48, 5.6), with the number of characters so far.
    String(usize),
}

impl ControlSequenceFilter {
    /// Returns the text of complete output.
    pub(crate) fn of(bytes: &[u8]) -> String {
        let (mut plain, mut text) = (Self::default(), String::new());
        plain.push(bytes, &mut text);
        plain.finish(&mut text);
        text
    }

    /// Reads more bytes, and appends complete lines to `out`.
    pub(crate) fn push(&mut self, bytes: &[u8], out: &mut String) {
        let joined;
        let bytes = if self.partial.is_empty() {
            bytes
        } else {
            joined = [&std::mem::take(&mut self.partial)[..], bytes].concat();
            &joined[..]
        };
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            self.text(chunk.valid(), out);
            let invalid = chunk.invalid();
            let is_incomplete = str::from_utf8(invalid).is_err_and(|error| error.error_len().is_none());
            if chunks.peek().is_none() && is_incomplete {
                self.partial = invalid.to_vec();
            } else if !invalid.is_empty() {
                self.character(char::REPLACEMENT_CHARACTER, out);
            }
        }
    }

    /// Ends the output: appends what was held back.
    pub(crate) fn finish(&mut self, out: &mut String) {
        if !std::mem::take(&mut self.partial).is_empty() {
            self.character(char::REPLACEMENT_CHARACTER, out);
        }
        out.push_str(&std::mem::take(&mut self.line));
        *self = Self::default();
    }

    /// Returns the current line, which has no line break yet.
    pub(crate) fn line(&self) -> &str {
        &self.line
    }

    fn text(&mut self, mut text: &str, out: &mut String) {
        while let Some(first) = text.chars().next() {
            let plain = match self.state {
                EscapeState::Text => text.bytes().position(|byte| !(0x20..0x7f).contains(&byte)).unwrap_or(text.len()),
                _ => 0,
            };
            if plain > 0 {
                self.put(&text[..plain], out);
                text = &text[plain..];
            } else {
                self.character(first, out);
                text = &text[first.len_utf8()..];
            }
        }
    }

    fn character(&mut self, character: char, out: &mut String) {
        // A line break ends every sequence.
        if character == '\n' {
            self.state = EscapeState::Text;
        }
        self.state = match (self.state, character) {
            (EscapeState::Text, _) => return self.shown(character, out),
            (_, '\u{1b}') => EscapeState::Escape,
            (EscapeState::Escape, '[') => EscapeState::Sequence,
            (EscapeState::Escape, ']' | 'P' | 'X' | '^' | '_') => EscapeState::String(0),
            (EscapeState::Escape | EscapeState::Intermediate, ' '..='/') => EscapeState::Intermediate,
            (EscapeState::Escape | EscapeState::Intermediate, _) => EscapeState::Text,
            (EscapeState::Sequence, ' '..='?') => EscapeState::Sequence,
            (EscapeState::Sequence, _) => EscapeState::Text,
            (EscapeState::String(_), '\u{7}' | '\u{9c}') => EscapeState::Text,
            (EscapeState::String(length), _) if length >= MAX_STRING => EscapeState::Text,
            (EscapeState::String(length), _) => EscapeState::String(length + 1),
        };
    }

    fn shown(&mut self, character: char, out: &mut String) {
        match character {
            '\n' => {
                self.returned = false;
                self.line.push('\n');
                out.push_str(&self.line);
                self.line.clear();
            }
            '\r' => self.returned = true,
            '\u{8}' => drop(self.line.pop()),
            '\u{1b}' => self.state = EscapeState::Escape,
            '\u{9b}' => self.state = EscapeState::Sequence,
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => self.state = EscapeState::String(0),
            '\0' => self.put("\\0", out),
            '\t' => self.put("\t", out),
            // Characters that change the apparent order of text.
            character if changes_direction(character) => self.put(&character.escape_unicode().to_string(), out),
            character if character.is_control() => {}
            character => self.put(character.encode_utf8(&mut [0; 4]), out),
        }
    }

    fn put(&mut self, text: &str, out: &mut String) {
        if std::mem::take(&mut self.returned) {
            self.line.clear();
        }
        self.line.push_str(text);
        if self.line.len() > HELD_BYTES {
            out.push_str(&self.line);
            self.line.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(printed: &[u8], expected: &str) {
        assert_eq!(ControlSequenceFilter::of(printed), expected, "{}", printed.escape_ascii());
    }

    #[test]
    fn terminal_control_sequences_are_removed() {
        check(b"\x1b[1;31mred\x1b[0m \x1b(Bplain\n", "red plain\n");
        check(b"\x1b]0;title\x07a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\b", "alinkb");
        check(b"\x1bPq#0;2\x1b\\a\x1bcb\x1b7c", "abc");
        check("\u{9b}31mred\u{9d}x\u{9c}.".as_bytes(), "red.");
        check(b"bell\x07 and \x7fothers\x0e", "bell and others");
        check(b"a\0b", "a\\0b");
        check("\u{202e}gnp.exe".as_bytes(), "\\u{202e}gnp.exe");
    }

    #[test]
    fn a_sequence_that_never_ends_hides_one_line_at_most() {
        check(b"\x1b]0;never\nshown", "\nshown");
        check(b"\x1b[31\nshown", "\nshown");
        let long = [b"\x1b]".to_vec(), vec![b'x'; MAX_STRING + 10]].concat();
        check(&long, &"x".repeat(9));
    }

    #[test]
    fn overwritten_output_keeps_only_the_last_text() {
        check(b" 10%\r 50%\r100%\ndone\r\n", "100%\ndone\n");
        check(b"100%\r", "100%");
        check(b"ab\x08c \x1b[Kd", "ac d");
    }

    #[test]
    fn invalid_utf_8_bytes_are_replaced() {
        check(b"a\xffb\xe2\x82", "a\u{fffd}b\u{fffd}");
        check("ä€".as_bytes(), "ä€");
    }

    proptest! {
        #[test]
        fn splitting_output_into_chunks_does_not_change_the_result(
            printed in proptest::collection::vec(prop_oneof![Just(0x1b), Just(b'['), Just(b'\r'), Just(b'\n'), any::<u8>()], 0..200),
            size in 1_usize..7,
        ) {
            let (mut plain, mut text) = (ControlSequenceFilter::default(), String::new());
            for piece in printed.chunks(size) {
                plain.push(piece, &mut text);
            }
            plain.finish(&mut text);
            prop_assert!(text.chars().all(|character| !character.is_control() || matches!(character, '\n' | '\t')));
            prop_assert_eq!(text, ControlSequenceFilter::of(&printed));
        }
    }
}
