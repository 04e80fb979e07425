//! Texts that strangers wrote, made fit to stand beside ours.

/// The text without what moves, hides or reorders others: control characters but for line breaks and tabs, marks of
/// direction, and characters that look like nothing and may carry words all the same. Line breaks are `\n`.
pub fn clean_text(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut after_return = false;
    for c in text.chars() {
        match c {
            '\r' => clean.push('\n'),
            '\n' if after_return => {}
            '\u{2028}' | '\u{2029}' | '\u{85}' => clean.push('\n'),
            c if is_hidden(c) => {}
            c => clean.push(c),
        }
        after_return = c == '\r';
    }
    clean
}

/// Joiners (U+200C, U+200D) are none of these: scripts and emoji need them.
fn is_hidden(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t'))
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
            | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

/// The characters that HTML's entities stand for, as far as they escape markup (`&amp;`, `&#39;`).
pub fn without_entities(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        let found = rest.find(';').filter(|end| *end <= 10).and_then(|end| Some((end, entity(&rest[1..end])?)));
        match found {
            Some((end, c)) => {
                plain.push(c);
                rest = &rest[end + 1..];
            }
            None => {
                plain.push('&');
                rest = &rest[1..];
            }
        }
    }
    plain.push_str(rest);
    plain
}

fn entity(name: &str) -> Option<char> {
    let number = match name {
        "amp" => return Some('&'),
        "lt" => return Some('<'),
        "gt" => return Some('>'),
        "quot" => return Some('"'),
        "apos" => return Some('\''),
        "nbsp" => return Some(' '),
        _ => name.strip_prefix('#')?,
    };
    let code = match number.strip_prefix(['x', 'X']) {
        Some(hex) => u32::from_str_radix(hex, 16).ok()?,
        None => number.parse().ok()?,
    };
    char::from_u32(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_hides_or_moves_text_is_left() {
        for (text, expected) in [
            ("a\r\nb\rc\nd\te", "a\nb\nc\nd\te"),
            ("a\u{1b}[31mb\0\u{9b}c", "a[31mbc"),
            ("pay \u{202e}moc.live\u{202c} now", "pay moc.live now"),
            ("x\u{e0049}\u{e0067}y\u{feff}\u{200b}z", "xyz"),
            ("👩\u{200d}👧 ja\u{200c}", "👩\u{200d}👧 ja\u{200c}"),
            ("a\u{2028}b", "a\nb"),
        ] {
            assert_eq!(clean_text(text), expected, "{text:?}");
        }
    }

    #[test]
    fn entities_of_a_snippet_become_characters_once() {
        for (text, expected) in [
            ("Hi &amp; welcome", "Hi & welcome"),
            ("&lt;b&gt; &#39;x&#39; &#x27;&quot;", "<b> 'x' '\""),
            ("&amp;lt;", "&lt;"),
            ("a & b &; &nope; &#xffffffff; &", "a & b &; &nope; &#xffffffff; &"),
        ] {
            assert_eq!(without_entities(text), expected);
        }
    }
}
