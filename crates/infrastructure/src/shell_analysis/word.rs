//! One word of a command line, parsed as bash parses it. The syntax tree contributes only the positions of expansions.
//! Everything else is parsed from the text itself, which detects a word that the tree splits differently from bash.

use std::{collections::BTreeMap, ops::Range};

/// A word after quote removal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Word {
    /// Text without quotes. Expansions are included as they were written.
    pub(super) text: String,
    /// Reason why a part of the word is known only at run time: an expansion, braces that produce several words, or an
    /// inserted name.
    pub(super) dynamic: Option<DynamicReason>,
    /// `true` if a part of the word was quoted.
    pub(super) quoted: bool,
    /// `true` if bash may replace the word by names of files.
    pub(super) glob: bool,
    /// `true` if the word starts with a tilde that bash expands.
    pub(super) tilde: bool,
}

/// Reason why the value of a word is unknown before the command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DynamicReason {
    /// Expansion within double quotes: the word remains one word.
    Quoted,
    /// Unquoted expansion: the word may become any number of words.
    Split,
    /// `{a,b}` or `{1..3}`.
    Braces,
    /// `<(...)` as the whole word: the path of a pipe.
    Pipe,
    /// Name of a file, or line of the input, that `find`, `fd` or `xargs` inserts.
    Found,
}

/// Message why bash may read a word differently from the syntax tree.
pub(super) type MisreadReason = &'static str;

/// Expansions by the offset of their first byte.
pub(super) type ExpansionsByOffset = BTreeMap<usize, Expansion>;

/// An expansion within a word.
#[derive(Debug)]
pub(super) struct Expansion {
    /// Offset of the byte after the expansion.
    pub(super) end: usize,
    /// Value within double quotes, if it is known before the command runs.
    pub(super) text: Option<String>,
}

impl Word {
    /// Returns the text if it is known and bash replaces no part of it.
    pub(super) fn literal(&self) -> Option<&str> {
        (self.dynamic.is_none() && !self.glob && !self.tilde).then_some(self.text.as_str())
    }

    /// Returns the common prefix of all file names that may replace this word: the text before the first wildcard or
    /// brace. Returns `None` if no file name may replace it.
    pub(super) fn file_names_start(&self) -> Option<&str> {
        let replaced = self.glob || self.dynamic == Some(DynamicReason::Braces);
        let end = self.text.find(['*', '?', '[', '{']).unwrap_or(self.text.len());
        replaced.then(|| &self.text[..end])
    }

    /// Returns `true` if names of files may replace this word, or a word that it expands to.
    pub(super) fn may_become_file_names(&self) -> bool {
        self.glob || self.dynamic == Some(DynamicReason::Split)
    }

    /// Parses exactly this range as one word.
    pub(super) fn read(
        text: &str,
        range: Range<usize>,
        expansions: &ExpansionsByOffset,
    ) -> Result<Self, MisreadReason> {
        let end = range.end;
        let (word, stop) = WordParser { bytes: text.as_bytes(), text, end, expansions }.word(range.start)?;
        if stop != end {
            return Err("bash ends a word elsewhere");
        }
        ends_here(text.as_bytes(), end, &word)?;
        Ok(word)
    }

    /// Parses this range as words separated by blanks.
    pub(super) fn read_all(
        text: &str,
        range: Range<usize>,
        expansions: &ExpansionsByOffset,
    ) -> Result<Vec<Self>, MisreadReason> {
        let reader = WordParser { bytes: text.as_bytes(), text, end: range.end, expansions };
        let mut words = Vec::new();
        let mut at = range.start;
        while at < range.end {
            if matches!(reader.bytes[at], b' ' | b'\t') {
                at += 1;
                continue;
            }
            let (word, stop) = reader.word(at)?;
            if stop == at {
                return Err("there is an operator between words");
            }
            words.push(word);
            at = stop;
        }
        Ok(words)
    }
}

/// Checks that bash ends a word at this byte as well.
fn ends_here(bytes: &[u8], end: usize, word: &Word) -> Result<(), MisreadReason> {
    match bytes.get(end) {
        None | Some(b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'`') => Ok(()),
        Some(b'<' | b'>') if bytes.get(end + 1) == Some(&b'(') => Err("bash continues a word"),
        Some(b'<' | b'>') => {
            let number = !word.quoted && !word.text.is_empty() && word.text.bytes().all(|b| b.is_ascii_digit());
            let variable = !word.quoted && word.text.starts_with('{') && word.text.ends_with('}');
            if number || variable { Err("a word in front of a redirection names its descriptor") } else { Ok(()) }
        }
        Some(_) => Err("bash continues a word"),
    }
}

struct WordParser<'t> {
    bytes: &'t [u8],
    text: &'t str,
    end: usize,
    expansions: &'t ExpansionsByOffset,
}

impl WordParser<'_> {
    /// Parses a word up to the first byte that ends it, at most to the end of the range. Returns the word and the
    /// offset of that byte.
    fn word(&self, start: usize) -> Result<(Word, usize), MisreadReason> {
        let mut word = Word::default();
        let mut braces = BraceExpansionDetector::default();
        let mut bracket = false;
        let mut at = start;
        while at < self.end {
            match self.bytes[at] {
                b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' => break,
                b'#' if at == start => return Err("there is a comment where a word was expected"),
                b'~' if at == start => {
                    word.tilde = true;
                    word.text.push('~');
                    at += 1;
                }
                b'\\' => {
                    let Some(next) = self.rest(at + 1).chars().next() else {
                        return Err("a backslash ends a word");
                    };
                    word.quoted = true;
                    if next != '\n' {
                        word.text.push(next);
                    }
                    at += 1 + next.len_utf8();
                }
                b'\'' => {
                    let length = self.until(at + 1, b'\'')?;
                    word.quoted = true;
                    word.text.push_str(self.slice(at + 1, at + 1 + length));
                    at += length + 2;
                }
                b'"' => at = self.double_quotes(at + 1, &mut word)?,
                b'$' if self.bytes.get(at + 1) == Some(&b'\'') => at = self.ansi_c(at + 2, &mut word)?,
                b'$' if self.bytes.get(at + 1) == Some(&b'"') => return Err("a translated text cannot be parsed"),
                b'$' | b'`' | b'<' | b'>' => match self.expansion(at)? {
                    Some(&Expansion { end: stop, .. }) => {
                        let whole = self.bytes[at] == b'<' && (at, stop) == (start, self.end);
                        word.dynamic = Some(if whole { DynamicReason::Pipe } else { DynamicReason::Split });
                        word.text.push_str(self.slice(at, stop));
                        at = stop;
                    }
                    None if matches!(self.bytes[at], b'<' | b'>') => break,
                    None => {
                        word.text.push('$');
                        at += 1;
                    }
                },
                byte => {
                    braces.see(byte, self.bytes.get(at + 1).copied());
                    match byte {
                        b'*' | b'?' => word.glob = true,
                        b'[' => bracket = true,
                        b']' => word.glob |= bracket,
                        _ => {}
                    }
                    let character = self.rest(at).chars().next().ok_or("a word is cut")?;
                    word.text.push(character);
                    at += character.len_utf8();
                }
            }
        }
        if at > self.end {
            return Err("a word reaches beyond its end");
        }
        if braces.expand {
            word.dynamic = word.dynamic.or(Some(DynamicReason::Braces));
        }
        Ok((word, at))
    }

    /// Parses up to the closing double quote. Returns the offset of the byte after it.
    fn double_quotes(&self, start: usize, word: &mut Word) -> Result<usize, MisreadReason> {
        word.quoted = true;
        let mut at = start;
        while at < self.end {
            match self.bytes[at] {
                b'"' => return Ok(at + 1),
                b'\\' => {
                    let Some(next) = self.rest(at + 1).chars().next() else { break };
                    if !matches!(next, '$' | '`' | '"' | '\\' | '\n') {
                        word.text.push('\\');
                    }
                    if next != '\n' {
                        word.text.push(next);
                    }
                    at += 1 + next.len_utf8();
                }
                b'$' | b'`' => match self.expansion(at)? {
                    Some(Expansion { end, text: Some(known) }) => {
                        word.text.push_str(known);
                        at = *end;
                    }
                    Some(&Expansion { end: stop, .. }) => {
                        // `"$@"` and `"${a[@]}"` may expand to any number of words.
                        let many = self.slice(at, stop).contains('@');
                        let kind = if many { DynamicReason::Split } else { DynamicReason::Quoted };
                        word.dynamic = Some(word.dynamic.map_or(kind, |old| if many { kind } else { old }));
                        word.text.push_str(self.slice(at, stop));
                        at = stop;
                    }
                    None => {
                        word.text.push('$');
                        at += 1;
                    }
                },
                _ => {
                    let character = self.rest(at).chars().next().ok_or("a word is cut")?;
                    word.text.push(character);
                    at += character.len_utf8();
                }
            }
        }
        Err("a double quote is not closed")
    }

    /// Returns the expansion that starts at this offset, if there is one. A `$` that starts no expansion is a literal
    /// character.
    fn expansion(&self, at: usize) -> Result<Option<&Expansion>, MisreadReason> {
        if let Some(expansion) = self.expansions.get(&at) {
            return Ok(Some(expansion));
        }
        match (self.bytes[at], self.bytes.get(at + 1)) {
            (
                b'$',
                None | Some(b' ' | b'\t' | b'\n' | b'"' | b';' | b'|' | b'&' | b')' | b'/' | b'.' | b',' | b':'),
            ) => Ok(None),
            (b'<' | b'>', next) if next != Some(&b'(') => Ok(None),
            _ => Err("an expansion is not understood"),
        }
    }

    /// Parses `$'..'` from the byte after the opening quote. Returns the offset of the byte after the closing quote.
    fn ansi_c(&self, start: usize, word: &mut Word) -> Result<usize, MisreadReason> {
        word.quoted = true;
        let mut characters = self.rest(start).char_indices().peekable();
        while let Some((offset, character)) = characters.next() {
            if character == '\'' {
                return Ok(start + offset + 1);
            }
            if character != '\\' {
                word.text.push(character);
                continue;
            }
            let Some((_, escape)) = characters.next() else { break };
            let mut number = |radix: u32, most: usize, first: Option<char>| {
                let mut digits: String = first.into_iter().collect();
                while digits.len() < most && characters.peek().is_some_and(|(_, c)| c.is_digit(radix)) {
                    digits.extend(characters.next().map(|(_, c)| c));
                }
                u32::from_str_radix(&digits, radix).ok()
            };
            let decoded = match escape {
                '\\' | '\'' | '"' | '?' => Some(escape),
                'n' => Some('\n'),
                't' => Some('\t'),
                'a' => Some('\u{7}'),
                'b' => Some('\u{8}'),
                'e' | 'E' => Some('\u{1b}'),
                'f' => Some('\u{c}'),
                'r' => Some('\r'),
                'v' => Some('\u{b}'),
                // Single bytes: only ASCII ones are characters by themselves.
                'x' => number(16, 2, None).filter(u8_is_ascii).and_then(char::from_u32),
                '0'..='7' => number(8, 3, Some(escape)).filter(u8_is_ascii).and_then(char::from_u32),
                'u' => number(16, 4, None).and_then(char::from_u32),
                'U' => number(16, 8, None).and_then(char::from_u32),
                _ => None,
            };
            match decoded {
                Some(character) if character != '\0' => word.text.push(character),
                _ => return Err("an escape within $'...' cannot be parsed"),
            }
        }
        Err("a quote is not closed")
    }

    /// Returns the rest of the range from this offset.
    fn rest(&self, at: usize) -> &str {
        self.text.get(at..self.end).unwrap_or_default()
    }

    fn slice(&self, start: usize, end: usize) -> &str {
        self.text.get(start..end).unwrap_or_default()
    }

    /// Returns the number of bytes before the next occurrence of this byte.
    fn until(&self, start: usize, byte: u8) -> Result<usize, MisreadReason> {
        let rest = self.bytes.get(start..self.end).ok_or("a quote is not closed")?;
        rest.iter().position(|candidate| *candidate == byte).ok_or("a quote is not closed")
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the shape that `Option::filter` asks for")]
fn u8_is_ascii(byte: &u32) -> bool {
    *byte < 0x80
}

/// Detects unquoted braces that expand to several words. `{}` and `{x}` do not.
#[derive(Default)]
struct BraceExpansionDetector {
    open: usize,
    parts: bool,
    expand: bool,
}

impl BraceExpansionDetector {
    fn see(&mut self, byte: u8, next: Option<u8>) {
        match byte {
            b'{' => self.open += 1,
            b',' if self.open > 0 => self.parts = true,
            b'.' if self.open > 0 && next == Some(b'.') => self.parts = true,
            b'}' if self.open > 0 => self.expand |= self.parts,
            _ => {}
        }
    }
}
