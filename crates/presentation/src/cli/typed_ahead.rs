//! Text that the user types while a turn runs: the draft of the input line, and the queue of sent texts.

use std::collections::VecDeque;

const ESCAPE: u8 = 0x1b;
/// Maximum size of a draft in bytes.
const MAX_DRAFT: usize = 16 << 10;
/// Maximum number of bytes after an escape that belong to it.
const MAX_SEQUENCE: usize = 64;
/// Maximum number of queued texts.
const MAX_QUEUED: usize = 50;

/// Draft of the input line, and queue of the sent texts that wait for the end of a turn.
#[derive(Debug, Default)]
pub(super) struct TypeAheadBuffer {
    draft: String,
    queued: VecDeque<String>,
    /// Incomplete bytes of a key that arrived in parts.
    unread: Vec<u8>,
}

/// A key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Character(char),
    Enter,
    Erase,
    EraseWord,
    EraseLine,
    Escape,
    /// A key without a meaning in the input line.
    Other,
}

impl TypeAheadBuffer {
    /// Adds the bytes of keys that arrived together. Returns `true` if Escape was pressed.
    ///
    /// A line break that is directly followed by text was pasted: it becomes part of the text and does not send it.
    pub(super) fn take(&mut self, bytes: &[u8]) -> bool {
        let mut bytes = [std::mem::take(&mut self.unread).as_slice(), bytes].concat();
        let (mut at, mut is_escape) = (0, false);
        while let Some((key, length)) = next_key(&bytes[at..]) {
            at += length;
            let is_pasted = bytes[at..].iter().any(|byte| !matches!(byte, b'\r' | b'\n'));
            match key {
                Key::Character(character) if self.draft.len() < MAX_DRAFT && !character.is_control() => {
                    self.draft.push(character);
                }
                Key::Enter if is_pasted && self.draft.len() < MAX_DRAFT => self.draft.push('\n'),
                Key::Enter => self.send(),
                Key::Erase => drop(self.draft.pop()),
                Key::EraseWord => {
                    let word = self.draft.trim_end().rfind(char::is_whitespace);
                    let end = word.map_or(0, |at| at + self.draft[at..].chars().next().map_or(0, char::len_utf8));
                    self.draft.truncate(end);
                }
                Key::EraseLine => self.draft.clear(),
                Key::Escape => is_escape = true,
                Key::Character(_) | Key::Other => {}
            }
        }
        self.unread = bytes.split_off(at);
        is_escape
    }

    /// Ends the draft and queues it. A `\` at its end starts another line instead. Does nothing if the draft is blank
    /// or the queue is full.
    fn send(&mut self) {
        if self.draft.ends_with('\\') {
            self.draft.pop();
            self.draft.push('\n');
        } else if !self.draft.trim().is_empty() && self.queued.len() < MAX_QUEUED {
            self.queued.push_back(std::mem::take(&mut self.draft));
        }
    }

    /// Returns the draft.
    pub(super) fn draft(&self) -> &str {
        &self.draft
    }

    /// Returns the queued texts, oldest first.
    pub(super) fn queued(&self) -> impl ExactSizeIterator<Item = &str> {
        self.queued.iter().map(String::as_str)
    }

    /// Removes and returns the oldest queued text.
    pub(super) fn next(&mut self) -> Option<String> {
        self.queued.pop_front()
    }

    /// Removes and returns the draft.
    pub(super) fn take_draft(&mut self) -> String {
        self.unread.clear();
        std::mem::take(&mut self.draft)
    }
}

/// Returns the first key and its number of bytes; `None` if more bytes are needed. An escape is complete if nothing
/// follows it: the caller waits for bytes that may follow.
fn next_key(bytes: &[u8]) -> Option<(Key, usize)> {
    let (first, rest) = bytes.split_first()?;
    Some(match first {
        &ESCAPE => match rest {
            [] => (Key::Escape, 1),
            [b'O'] => return None,
            [b'O', ..] => (Key::Other, 3),
            [b'[', sequence @ ..] => {
                // The Linux console sends a second bracket before the letter of a function key.
                let skipped = usize::from(sequence.first() == Some(&b'['));
                let searched = &sequence[skipped..sequence.len().min(MAX_SEQUENCE)];
                match searched.iter().position(|byte| !matches!(byte, 0x20..=0x3f)) {
                    Some(end) => (Key::Other, 2 + skipped + end + 1),
                    None if sequence.len() > MAX_SEQUENCE => (Key::Other, 2),
                    None => return None,
                }
            }
            // Pressed twice, or before a key with its own sequence.
            [ESCAPE, ..] => (Key::Escape, 1),
            // Pressed together with Alt.
            _ => (Key::Other, 2),
        },
        b'\r' | b'\n' => (Key::Enter, 1),
        0x7f | 0x08 => (Key::Erase, 1),
        0x15 => (Key::EraseLine, 1),
        0x17 => (Key::EraseWord, 1),
        b'\t' => (Key::Character(' '), 1),
        0x00..=0x1f => (Key::Other, 1),
        first => {
            let length = first.leading_ones().max(1) as usize;
            if (2..=4).contains(&length) && bytes.len() < length {
                return None;
            }
            let character = bytes.get(..length).and_then(|bytes| std::str::from_utf8(bytes).ok()?.chars().next());
            match character {
                Some(character) => (Key::Character(character), length),
                None => (Key::Other, 1),
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(bursts: &[&[u8]], queued: &[&str], draft: &str, is_escape: bool) {
        let mut typed = TypeAheadBuffer::default();
        let mut escaped = false;
        for burst in bursts {
            escaped |= typed.take(burst);
        }
        assert_eq!((typed.queued().collect::<Vec<_>>(), typed.draft(), escaped), (queued.to_vec(), draft, is_escape));
    }

    #[test]
    fn each_typed_line_is_queued_and_unsent_text_stays_in_the_draft() {
        check(&[b"one\r", b"tw", b"o\n", b"thr"], &["one", "two"], "thr", false);
        check(&[b"\r", b"  \r"], &[], "  ", false);
        check(&[b"a\\\r", b"b\r"], &["a\nb"], "", false);
    }

    #[test]
    fn pasted_lines_form_a_single_text() {
        check(&[b"fn main() {\r}\r\r"], &["fn main() {\n}"], "", false);
        check(&[b"one\ntwo"], &[], "one\ntwo", false);
    }

    #[test]
    fn keys_edit_the_draft_and_unknown_ones_change_nothing() {
        check(&["aäö\u{7f}".as_bytes()], &[], "aä", false);
        check(&[b"one two  \x17", b"x"], &[], "one x", false);
        check(&["a\u{a0}b\x17".as_bytes()], &[], "a\u{a0}", false);
        check(&[b"one\x17\x17two\x15"], &[], "", false);
        check(&[b"a\x1b[A\x1b[1;5C\x1bOP\x1b[[Ax\x1bf\x04\x00b"], &[], "axb", false);
        check(&[&[0xc3], &[0xa4], &[0xff, 0xc3, b'x']], &[], "äx", false);
        check(&[b"\x1b[1;", b"5C"], &[], "", false);
        let long = "x".repeat(100);
        check(&[format!("\u{1b}[A{long}").as_bytes()], &[], &long, false);
        check(&[format!("\u{1b}[{}a", "1".repeat(100)).as_bytes()], &[], &format!("{}a", "1".repeat(100)), false);
    }

    #[test]
    fn the_escape_key_is_distinguished_from_keys_that_begin_with_escape() {
        check(&[b"a\x1b"], &[], "a", true);
        check(&[b"\x1b\x1b"], &[], "", true);
        check(&[b"\x1b[A"], &[], "", false);
    }

    #[test]
    fn the_draft_and_the_queue_are_limited_in_size() {
        let mut typed = TypeAheadBuffer::default();
        typed.take(&vec![b'x'; 1 << 20]);
        assert_eq!(typed.draft().len(), MAX_DRAFT);
        for _ in 0..100 {
            typed.take(b"y\r");
        }
        assert_eq!(typed.queued().len(), MAX_QUEUED);
    }

    proptest! {
        #[test]
        fn random_bytes_leave_no_escapes_in_the_draft_and_a_bounded_unread_rest(bursts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..20)) {
            let mut typed = TypeAheadBuffer::default();
            for burst in &bursts {
                typed.take(burst);
                prop_assert!(typed.unread.len() <= MAX_SEQUENCE + 2);
                let has_escape = typed.draft().contains('\u{1b}');
                prop_assert!(!has_escape);
            }
        }
    }
}
