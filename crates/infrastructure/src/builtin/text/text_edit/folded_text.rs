//! A text without the characters that models get wrong, mapped to the original text.

use std::ops::Range;

/// Selection of folds. Every fold preserves each token that is not blank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FoldOptions {
    /// A lone carriage return becomes a line feed.
    pub(super) returns: bool,
    /// Spaces and tabs at the ends of lines are removed.
    pub(super) trailing_blanks: bool,
    /// Typographic quotation marks, dashes and spaces become plain ones.
    pub(super) typography: bool,
}

/// A folded text. Positions are in bytes.
#[derive(Debug)]
pub(super) struct FoldedText {
    pub(super) text: String,
    /// Positions where the distance to the original changes, ascending.
    jumps: Vec<Jump>,
}

#[derive(Debug)]
struct Jump {
    at: usize,
    /// End of the previous character in the original.
    end_before: usize,
    /// Start of the character in the original.
    start: usize,
}

/// Returns the plain form of a typographic character. The list is short on purpose: a minus sign, for example, differs
/// from a hyphen in meaning.
pub(crate) fn plain_character(character: char) -> char {
    match character {
        '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        '\u{2010}'..='\u{2014}' => '-',
        '\u{a0}' | '\u{202f}' => ' ',
        character => character,
    }
}

impl FoldedText {
    pub(super) fn of(original: &str, folds: FoldOptions) -> Self {
        let mut folded = Self { text: String::with_capacity(original.len()), jumps: Vec::new() };
        // Start of blanks that may be at the end of a line.
        let mut blanks_from = None;
        for (at, character) in original.char_indices() {
            let becomes = match character {
                '\r' if folds.returns => '\n',
                other if folds.typography => plain_character(other),
                other => other,
            };
            if folds.trailing_blanks && matches!(becomes, ' ' | '\t') {
                blanks_from.get_or_insert(at);
                continue;
            }
            if let Some(from) = blanks_from.take() {
                if becomes == '\n' {
                    folded.jump(from, at);
                } else {
                    folded.take_over(&original[from..at], from, folds);
                }
            }
            folded.take(at, character, becomes);
        }
        if let Some(from) = blanks_from {
            folded.jump(from, original.len());
        }
        folded
    }

    fn take_over(&mut self, blanks: &str, from: usize, folds: FoldOptions) {
        for (at, character) in blanks.char_indices() {
            let becomes = if folds.typography { plain_character(character) } else { character };
            self.take(from + at, character, becomes);
        }
    }

    fn take(&mut self, at: usize, character: char, becomes: char) {
        self.text.push(becomes);
        if becomes.len_utf8() != character.len_utf8() {
            let end = at + character.len_utf8();
            self.jump(end, end);
        }
    }

    fn jump(&mut self, end_before: usize, start: usize) {
        self.jumps.push(Jump { at: self.text.len(), end_before, start });
    }

    /// Returns the corresponding range in the original: from the beginning of its first character to the end of its
    /// last one.
    pub(super) fn in_original(&self, range: Range<usize>) -> Range<usize> {
        let start = match self.jumps.partition_point(|jump| jump.at <= range.start).checked_sub(1) {
            Some(index) => self.jumps[index].start + (range.start - self.jumps[index].at),
            None => range.start,
        };
        let after = self.jumps.partition_point(|jump| jump.at < range.end);
        let end = match (self.jumps.get(after), after.checked_sub(1)) {
            (Some(jump), _) if jump.at == range.end => jump.end_before,
            (_, Some(index)) => self.jumps[index].start + (range.end - self.jumps[index].at),
            (_, None) => range.end,
        };
        start..end.max(start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: FoldOptions = FoldOptions { returns: true, trailing_blanks: true, typography: true };

    #[test]
    fn folding_normalizes_blanks_line_endings_and_typography() {
        let original = "a \t\n\u{201c}b\u{201d}\u{a0}c  \rd\u{2014}\u{2212}  ";
        let folded = FoldedText::of(original, ALL);
        assert_eq!(folded.text, "a\n\"b\" c\nd-\u{2212}");
        assert_eq!(&original[folded.in_original(0..1)], "a");
        assert_eq!(&original[folded.in_original(0..2)], "a \t\n");
        assert_eq!(&original[folded.in_original(2..5)], "\u{201c}b\u{201d}");
        assert_eq!(&original[folded.in_original(6..7)], "c");
        assert_eq!(&original[folded.in_original(0..folded.text.len())], original.trim_end());
    }

    proptest! {
        #[test]
        fn each_piece_of_a_folded_text_maps_back_to_the_original(original in "[a \t\r\n\u{201c}\u{a0}ä]{0,24}") {
            let folded = FoldedText::of(&original, ALL);
            let bounds: Vec<usize> = (0..=folded.text.len()).filter(|at| folded.text.is_char_boundary(*at)).collect();
            for (index, start) in bounds.iter().enumerate() {
                for end in &bounds[index..] {
                    let piece = &original[folded.in_original(*start..*end)];
                    let (again, wanted) = (FoldedText::of(piece, ALL).text, &folded.text[*start..*end]);
                    prop_assert_eq!(again.trim_end_matches([' ', '\t']), wanted.trim_end_matches([' ', '\t']));
                }
            }
        }
    }
}
