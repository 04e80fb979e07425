//! Invisible characters that the text around them needs: UAX 31 for scripts, UTS 51 for emoji.

use icu_properties::{
    CodePointMapData, CodePointSetData,
    props::{CanonicalCombiningClass, Emoji, EmojiModifier, ExtendedPictographic, JoiningType, Script},
};
use toolstead_domain::unseen::is_invisible;

const NON_JOINER: char = '\u{200c}';
const JOINER: char = '\u{200d}';
/// Asks for the presentation of an emoji as text.
const AS_TEXT: char = '\u{fe0e}';
/// Asks for the presentation of an emoji as a picture.
const AS_PICTURE: char = '\u{fe0f}';
const KEYCAP: char = '\u{20e3}';
/// Marks that are passed over on the way to a letter; more do not belong to it.
const MAX_MARKS: usize = 8;
/// A black flag, the tags of a subdivision, and the tag that ends them: England, Scotland and Wales.
const FLAGS: [&str; 3] = [
    "\u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
    "\u{1f3f4}\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}",
    "\u{1f3f4}\u{e0067}\u{e0062}\u{e0077}\u{e006c}\u{e0073}\u{e007f}",
];

/// Returns the flag of tags that the text begins with.
pub(super) fn flag(text: &str) -> Option<&'static str> {
    FLAGS.into_iter().find(|flag| text.starts_with(flag))
}

/// Text around a character that joins.
pub(super) struct Context<'a> {
    /// Text before it, from which invisible characters were removed.
    before: &'a str,
    next: Option<char>,
}

impl<'a> Context<'a> {
    pub(super) fn new(before: &'a str, after: &str) -> Self {
        Self { before, next: after.chars().next().filter(|next| !is_invisible(*next)) }
    }

    /// Returns `true` if the text around the character needs it.
    pub(super) fn needs(&self, character: char) -> bool {
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

    /// Returns `true` behind the sign that removes a vowel (UAX 31, A2 and B).
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

    /// Returns `true` between two elements of a sequence of emoji. An element may end with a skin tone or the presentation as a picture.
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
