//! Removal of invisible characters from foreign text.

use icu_properties::{
    CodePointMapData, CodePointSetData,
    props::{CanonicalCombiningClass, Emoji, EmojiModifier, ExtendedPictographic, JoiningType, Script},
};
use toolstead_domain::invisible_characters::{is_invisible, is_joining, is_removable};

const NON_JOINER: char = '\u{200c}';
const JOINER: char = '\u{200d}';
/// Variation selector that requests an emoji as text.
const AS_TEXT: char = '\u{fe0e}';
/// Variation selector that requests an emoji as a picture.
const AS_PICTURE: char = '\u{fe0f}';
const KEYCAP: char = '\u{20e3}';
/// Maximum number of marks that are skipped to reach a letter. Further marks do not belong to it.
const MAX_MARKS: usize = 8;
/// A black flag, the tags of a subdivision, and the tag that ends them: England, Scotland and Wales.
const FLAGS: [&str; 3] = [
    "\u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
    "\u{1f3f4}\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}",
    "\u{1f3f4}\u{e0067}\u{e0062}\u{e0077}\u{e006c}\u{e0073}\u{e007f}",
];

/// Foreign text without [invisible](is_invisible) characters, except for those that the text around them needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VisibleText {
    /// The remaining text.
    pub text: String,
    /// Number of removed characters. White space that is a control character (such as carriage returns) does not count.
    pub removed: usize,
}

impl VisibleText {
    /// Removes [invisible](toolstead_domain::invisible_characters::is_invisible) characters. Retained are
    ///
    /// - zero-width joiners and non-joiners between letters that are shaped by them (UAX 31, rules A1, A2 and B), and
    ///   before a virama;
    /// - zero-width joiners between two emoji, one variation selector 15 or 16 after an emoji or in a keycap, and the
    ///   tags of the three flags that are recommended for interchange (UTS 51);
    /// - one Mongolian variation selector after a Mongolian letter;
    /// - a Hangul filler in the place of the consonant or vowel that a syllable lacks.
    ///
    /// All other variation selectors are removed: the text has the same words without them, and those of the supplement
    /// could carry a byte each.
    ///
    /// Returns `None` if the text stays as it is.
    pub fn of(text: &str) -> Option<Self> {
        if text.is_ascii() && !text.bytes().any(|byte| is_removable(char::from(byte))) {
            return None;
        }
        if !text.chars().any(is_invisible) {
            return None;
        }
        let mut seen = Self { text: String::with_capacity(text.len()), removed: 0 };
        let mut rest = text;
        while let Some(character) = rest.chars().next() {
            if let Some(flag) = flag(rest) {
                seen.text.push_str(flag);
                rest = &rest[flag.len()..];
                continue;
            }
            rest = &rest[character.len_utf8()..];
            let is_retained = match character {
                character if is_removable(character) => false,
                character if is_joining(character) => JoinerContext::new(&seen.text, rest).needs(character),
                _ => true,
            };
            match is_retained {
                true => seen.text.push(character),
                false => seen.removed += usize::from(!character.is_whitespace()),
            }
        }
        (seen.text.len() != text.len()).then_some(seen)
    }
}

/// Returns the flag of tags that the text begins with.
fn flag(text: &str) -> Option<&'static str> {
    FLAGS.into_iter().find(|flag| text.starts_with(flag))
}

/// Text around a character that joins: UAX 31 for scripts, UTS 51 for emoji.
struct JoinerContext<'a> {
    /// Text before it, from which invisible characters were removed.
    before: &'a str,
    next: Option<char>,
}

impl<'a> JoinerContext<'a> {
    fn new(before: &'a str, after: &str) -> Self {
        Self { before, next: after.chars().next().filter(|next| !is_invisible(*next)) }
    }

    /// Returns `true` if the text around the character needs it.
    fn needs(&self, character: char) -> bool {
        match character {
            NON_JOINER => self.shapes_cursive() || self.follows_virama() && self.continues_script(),
            JOINER => self.joins_emoji() || self.follows_virama() || self.precedes_virama(),
            AS_TEXT | AS_PICTURE => self.presents_emoji(character),
            '\u{180b}'..='\u{180d}' | '\u{180f}' => self.previous().is_some_and(is_mongolian_letter),
            // Fill the place of a consonant and of a vowel.
            '\u{115f}' => {
                self.next.is_some_and(|next| matches!(next, '\u{1161}'..='\u{11a7}' | '\u{d7b0}'..='\u{d7c6}'))
            }
            '\u{1160}' => {
                self.previous().is_some_and(|last| matches!(last, '\u{1100}'..='\u{115e}' | '\u{a960}'..='\u{a97c}'))
            }
            _ => false,
        }
    }

    fn previous(&self) -> Option<char> {
        self.before.chars().next_back()
    }

    /// Returns `true` between two letters that would be connected without it (UAX 31, A1).
    fn shapes_cursive(&self) -> bool {
        let letter = self.before.chars().rev().take(MAX_MARKS).find(|c| joining(*c) != JoiningType::Transparent);
        letter.is_some_and(|letter| matches!(joining(letter), JoiningType::LeftJoining | JoiningType::DualJoining))
            && self
                .next
                .is_some_and(|next| matches!(joining(next), JoiningType::RightJoining | JoiningType::DualJoining))
    }

    /// Returns `true` after the sign that removes a vowel (UAX 31, A2 and B).
    fn follows_virama(&self) -> bool {
        self.previous().is_some_and(is_virama)
    }

    /// Returns `true` between a letter and the sign that removes its vowel, as in Bengali and Kannada.
    fn precedes_virama(&self) -> bool {
        self.next.is_some_and(is_virama) && self.previous().is_some_and(char::is_alphabetic) && self.continues_script()
    }

    fn continues_script(&self) -> bool {
        self.next
            .zip(self.previous())
            .is_some_and(|(next, last)| (next.is_alphabetic() || is_virama(next)) && script(next) == script(last))
    }

    /// Returns `true` between two elements of an emoji sequence. An element may end with a skin tone or the
    /// presentation as a picture.
    fn joins_emoji(&self) -> bool {
        let mut before = self.before.chars().rev().peekable();
        let _ = before.next_if(|last| *last == AS_PICTURE || CodePointSetData::new::<EmojiModifier>().contains(*last));
        before.next().is_some_and(is_pictograph) && self.next.is_some_and(is_pictograph)
    }

    fn presents_emoji(&self, selector: char) -> bool {
        self.previous().is_some_and(|last| match last.is_ascii() {
            // Figures and signs of a telephone are emoji only as keycaps.
            true => is_emoji(last) && selector == AS_PICTURE && self.next == Some(KEYCAP),
            false => is_emoji(last),
        })
    }
}

fn joining(character: char) -> JoiningType {
    CodePointMapData::<JoiningType>::new().get(character)
}

fn script(character: char) -> Script {
    CodePointMapData::<Script>::new().get(character)
}

fn is_virama(character: char) -> bool {
    CodePointMapData::<CanonicalCombiningClass>::new().get(character) == CanonicalCombiningClass::Virama
}

fn is_emoji(character: char) -> bool {
    CodePointSetData::new::<Emoji>().contains(character)
}

fn is_pictograph(character: char) -> bool {
    CodePointSetData::new::<ExtendedPictographic>().contains(character)
}

fn is_mongolian_letter(character: char) -> bool {
    character.is_alphabetic() && script(character) == Script::Mongolian
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn seen(text: &str) -> (String, usize) {
        VisibleText::of(text).map_or((text.to_owned(), 0), |seen| (seen.text, seen.removed))
    }

    #[track_caller]
    fn check(text: &str, expected: (&str, usize)) {
        let found = seen(text);
        assert_eq!((found.0.as_str(), found.1), expected, "{text:?}");
    }

    /// Checks that the text is not changed.
    #[track_caller]
    fn check_needed(text: &str) {
        check(text, (text, 0));
    }

    #[test]
    fn invisible_characters_are_removed_and_counted() {
        check_needed("plain text\n\twith a tab");
        check("a\u{1b}[31mb\u{7}\r", ("a[31mb", 2));
        check("pass\u{202e}drow\u{2066}", ("passdrow", 2));
        check("so\u{ad}ft\u{200b} \u{feff}marks\u{2060}", ("soft marks", 4));
        check("a\u{3164}\u{ffa0}\u{fff0}\u{1d173}b", ("ab", 4));
        check("hi\u{e0001}\u{e0068}\u{e0069}\u{e0fff}", ("hi", 4));
        check("\u{17b4}\u{17b5}\u{34f}\u{180e}x", ("x", 4));
    }

    #[test]
    fn joining_characters_that_a_script_needs_are_kept() {
        check_needed("می\u{200c}خواهم");
        check_needed("क्\u{200d}ष क्\u{200c}ष");
        check_needed("\u{9b0}\u{200d}\u{9cd}\u{9af}\u{9be}\u{9ac}");
        check_needed("\u{d28}\u{d4d}\u{200d} \u{dc1}\u{dca}\u{200d}\u{dbb}\u{dd3}");
        check_needed("\u{1820}\u{180b} \u{1828}\u{180d}\u{1820}");
        check_needed("\u{1100}\u{1160}\u{11a8} \u{115f}\u{1161}");
    }

    #[test]
    fn joining_characters_without_effect_are_removed() {
        check("x\u{200c}\u{200d}\u{200c}\u{200c}y", ("xy", 4));
        check("a\u{200d}b \u{200c}c\u{200d}", ("ab c", 3));
        check("می\u{200c}\u{200c}خ \u{200c}خ\u{200c} م\u{200c}x", ("می\u{200c}خ خ مx", 4));
        check("क\u{200d}ष क्\u{200d}\u{200d}ष क्\u{200c}x", ("कष क्\u{200d}ष क्x", 3));
        check("\u{115f}\u{1160}\u{115f}\u{1160} \u{1100}\u{1160}\u{1160} \u{1160}", (" \u{1100}\u{1160} ", 6));
        check("x\u{180b} \u{1820}\u{180b}\u{180c}", ("x \u{1820}\u{180b}", 2));
    }

    #[test]
    fn sequences_of_emoji_stay() {
        for text in [
            "👩\u{200d}💻",
            "👩🏽\u{200d}🚀",
            "❤\u{fe0f}\u{200d}🔥",
            "🏳\u{fe0f}\u{200d}🌈",
            "👩\u{200d}❤\u{fe0f}\u{200d}💋\u{200d}👨",
            "☎\u{fe0e} ↩\u{fe0e} ©\u{fe0f}",
            "1\u{fe0f}\u{20e3} #\u{fe0f}\u{20e3}",
            "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}!",
        ] {
            check_needed(text);
        }
    }

    #[test]
    fn unneeded_selectors_and_joiners_after_emoji_or_ideographs_are_removed() {
        check("1\u{fe0f} a\u{fe0f}\u{fe0e}", ("1 a", 3));
        check("❤\u{fe0f}\u{fe0f}\u{fe0e}", ("❤\u{fe0f}", 2));
        check("👩\u{200d}\u{200d}💻 👩\u{200d} \u{200d}👩", ("👩\u{200d}💻 👩 👩", 3));
        check("葛\u{e0100} 神\u{fe00} ≩\u{fe00}", ("葛 神 ≩", 3));
        check("x\u{fe01}\u{fe02}\u{fe03}\u{200b}\u{fe04}y", ("xy", 5));
        check("😀\u{e0148}\u{e0149}", ("😀", 2));
        check("🏴\u{e0068}\u{e0069}\u{e007f}", ("🏴", 3));
        check("x\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}", ("x", 6));
    }

    proptest! {
        #[test]
        fn removing_invisible_characters_is_idempotent(
            text in "([a1❤👩🏽क्षمیখ\u{1100}\u{1161}\u{11a8}\u{1820}葛\u{20e3}🏴]|[\u{200b}\u{200c}\u{200d}\u{fe00}\u{fe0e}\u{fe0f}\u{115f}\u{1160}\u{180b}\u{e0067}\u{e0100}]){0,24}",
        ) {
            let (once, _) = seen(&text);
            prop_assert_eq!(seen(&once), (once.clone(), 0), "{:?}", text);
            // A visible character is followed by at most a variation selector and a joiner.
            let invisible = once.chars().filter(|c| is_joining(*c)).count();
            prop_assert!(invisible <= 2 * once.chars().filter(|c| !is_invisible(*c)).count(), "{:?}", once);
        }
    }
}
