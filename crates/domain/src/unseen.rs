//! Characters that nobody sees, and that move, hide or carry text all the same.

/// Tells whether nobody sees the character, and text reads the same without it: controls but line feeds and tabs, marks of
/// direction, tags, fillers, and what has no width and joins nothing.
pub fn is_unseen(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' => true,
        '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' => true,
        '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' => true,
        '\u{e0000}'..='\u{e0fff}' => !joins(character),
        character => character.is_control(),
    }
}

/// Tells whether nobody sees the character, and scripts or emoji need it: it joins letters, varies the sign before it, or
/// keeps a place in a syllable.
pub fn joins(character: char) -> bool {
    matches!(character,
        '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180d}' | '\u{180f}'
        | '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

/// Tells whether nobody sees the character by itself, whatever text needs it: it is [unseen](is_unseen), or [joins].
pub fn is_invisible(character: char) -> bool {
    is_unseen(character) || joins(character)
}

/// Tells whether the character turns the text around it: a mark, an embedding or an isolate of direction.
pub fn turns(character: char) -> bool {
    matches!(character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Tells whether the character moves what stands around it to where a reader does not expect it: it [turns] text, ends
/// a line beside the line feed, or is a control but line feeds and tabs.
pub fn moves(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        '\u{2028}' | '\u{2029}' => true,
        character => character.is_control() || turns(character),
    }
}

/// Takes out what [nobody sees](is_unseen), and what [joins] where it spells nothing. Returns the text, and how many
/// characters carried a hidden text, as far as they look like it; `None` where all of it is seen.
pub fn seen(text: &str) -> Option<(String, usize)> {
    if !text.chars().any(|character| joins(character) || is_unseen(character)) {
        return None;
    }
    let mut seen = String::with_capacity(text.len());
    let mut run = String::new();
    let mut hidden = 0;
    let mut close = |seen: &mut String, run: &mut String| {
        // Scripts and emoji join by one such character or two; more say something that nobody sees.
        match run.chars().count() {
            0..=2 => seen.push_str(run),
            count => hidden += count,
        }
        run.clear();
    };
    let mut tags = 0;
    for character in text.chars() {
        if joins(character) {
            run.push(character);
            continue;
        }
        if is_unseen(character) {
            tags += usize::from(matches!(character, '\u{e0000}'..='\u{e0fff}'));
            continue;
        }
        close(&mut seen, &mut run);
        seen.push(character);
    }
    close(&mut seen, &mut run);
    Some((seen, hidden + tags))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: (&str, usize)) {
        let found = seen(text).unwrap_or((text.to_owned(), 0));
        assert_eq!((found.0.as_str(), found.1), expected, "{text:?}");
    }

    #[test]
    fn what_nobody_sees_is_taken_out() {
        check("plain text\n\twith a tab", ("plain text\n\twith a tab", 0));
        check("a\u{1b}[31mb\u{7}", ("a[31mb", 0));
        check("pass\u{202e}drow\u{2066}", ("passdrow", 0));
        check("so\u{ad}ft\u{200b} \u{feff}marks\u{2060}", ("soft marks", 0));
        check("a\u{3164}\u{ffa0}\u{fff0}\u{1d173}b", ("ab", 0));
        check("hi\u{e0001}\u{e0068}\u{e0069}\u{e0fff}", ("hi", 4));
    }

    #[test]
    fn all_that_hides_or_turns_text_is_found_by_one_list() {
        for character in '\0'..=char::MAX {
            assert!(!turns(character) || moves(character) && is_unseen(character), "{character:?}");
            assert!(!(is_unseen(character) && joins(character)), "{character:?}");
        }
        assert!(
            moves('\u{2028}') && moves('\r') && moves('\u{9b}') && !moves('\n') && !moves('\t') && !moves('\u{200b}')
        );
    }

    #[test]
    fn what_joins_letters_and_emoji_stays() {
        check("می\u{200c}خواهم", ("می\u{200c}خواهم", 0));
        check("❤\u{fe0f}\u{200d}🔥 葛\u{e0100}", ("❤\u{fe0f}\u{200d}🔥 葛\u{e0100}", 0));
        check("x\u{200c}\u{200d}\u{200c}\u{200c}y", ("xy", 4));
        check("x\u{fe01}\u{fe02}\u{fe03}\u{200b}\u{fe04}y", ("xy", 4));
    }
}
