//! Characters of a page that no reader sees, and that turn or hide what is read.

/// Takes out what no reader sees: controls but line breaks and tabs, marks of direction, tags, and zero-width characters
/// where they spell nothing. Returns the text, and how many characters carried a hidden text, as far as they look like it;
/// `None` where all of it is seen.
pub(super) fn seen(text: &str) -> Option<(String, usize)> {
    if !text.chars().any(|char| joins(char) || is_unseen(char)) {
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
    for char in text.chars() {
        if joins(char) {
            run.push(char);
            continue;
        }
        if is_unseen(char) {
            tags += usize::from(matches!(char, '\u{e0000}'..='\u{e007f}'));
            continue;
        }
        close(&mut seen, &mut run);
        seen.push(char);
    }
    close(&mut seen, &mut run);
    Some((seen, hidden + tags))
}

/// The text on one line: each run of white space is a space.
pub(super) fn on_one_line(text: &str) -> String {
    let seen = seen(text).map(|(text, _)| text);
    let text = seen.as_deref().unwrap_or(text);
    let mut line = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

/// No longer than so many characters, with a mark where it was cut.
pub(super) fn shortened(mut text: String, characters: usize) -> String {
    if let Some((at, _)) = text.char_indices().nth(characters) {
        text.truncate(at);
        text.push('…');
    }
    text
}

/// Joins letters or varies the sign before it.
fn joins(char: char) -> bool {
    matches!(char, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

fn is_unseen(char: char) -> bool {
    match char {
        '\n' | '\t' => false,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{feff}' => true,
        '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}' => true,
        char => char.is_control(),
    }
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
    fn what_no_reader_sees_is_taken_out() {
        check("plain text\n\twith a tab", ("plain text\n\twith a tab", 0));
        check("a\u{1b}[31mb\u{7}", ("a[31mb", 0));
        check("pass\u{202e}drow\u{2066}", ("passdrow", 0));
        check("so\u{ad}ft\u{200b} \u{feff}marks\u{2060}", ("soft marks", 0));
        check("hi\u{e0001}\u{e0068}\u{e0069}", ("hi", 3));
    }

    #[test]
    fn what_joins_letters_and_emoji_stays() {
        check("می\u{200c}خواهم", ("می\u{200c}خواهم", 0));
        check("❤\u{fe0f}\u{200d}🔥 葛\u{e0100}", ("❤\u{fe0f}\u{200d}🔥 葛\u{e0100}", 0));
        check("x\u{200c}\u{200d}\u{200c}\u{200c}y", ("xy", 4));
        check("x\u{fe01}\u{fe02}\u{fe03}\u{200b}\u{fe04}y", ("xy", 4));
    }
}
