//! Conversion of short texts with HTML tags and entities to plain text. Whole pages are parsed in a child process.

use html5ever::data::NAMED_ENTITIES;

/// Maximum length of a tag that is removed, and of the name of an entity, in bytes.
const TAG_BYTES: usize = 500;
const ENTITY_BYTES: usize = 40;

/// Returns the text without tags, and with its entities decoded.
pub(super) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut left = text;
    while let Some(at) = left.find(['<', '&']) {
        plain.push_str(&left[..at]);
        left = &left[at..];
        let (replacement, length) = match left.as_bytes()[0] {
            b'<' => tag(left).map_or(("<".to_owned(), 1), |length| (String::new(), length)),
            _ => entity(left).unwrap_or(("&".to_owned(), 1)),
        };
        plain.push_str(&replacement);
        left = &left[length..];
    }
    plain.push_str(left);
    plain
}

/// Returns the length, in bytes, of the tag at the beginning of the text; `None` if there is none.
fn tag(text: &str) -> Option<usize> {
    let name = text.strip_prefix("</").or_else(|| text.strip_prefix('<'))?;
    name.starts_with(|c: char| c.is_ascii_alphabetic()).then_some(())?;
    let end = text.bytes().take(TAG_BYTES).position(|byte| byte == b'>')?;
    (!text[1..end].contains('<')).then_some(end + 1)
}

/// Returns the characters of the entity at the beginning of the text, and the length of the entity in bytes; `None` if
/// there is no known one.
fn entity(text: &str) -> Option<(String, usize)> {
    let end = text.bytes().take(ENTITY_BYTES).position(|byte| byte == b';')?;
    let name = &text[1..end];
    let meant = match name.strip_prefix('#') {
        Some(number) => {
            let code = match number.strip_prefix(['x', 'X']) {
                Some(digits) => u32::from_str_radix(digits, 16),
                None => number.parse(),
            };
            let is_number = !number.contains(['+', '-']);
            char::from_u32(code.ok().filter(|code| is_number && *code > 0)?)?.to_string()
        }
        None => {
            let (first, second) = *NAMED_ENTITIES.get(&text[1..=end])?;
            [first, second].into_iter().filter(|code| *code > 0).filter_map(char::from_u32).collect()
        }
    };
    (!meant.is_empty()).then_some((meant, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn removes_tags_and_decodes_entities() {
        for (text, expected) in [
            ("About <strong>A</strong>", "About A"),
            ("Tom &amp; Jerry&#x27;s &quot;x&quot; &#39;y&#39; &hellip;", "Tom & Jerry's \"x\" 'y' …"),
            ("Vec&lt;T&gt; and &amp;lt;", "Vec<T> and &lt;"),
            ("1 < 2 && 3 > 2", "1 < 2 && 3 > 2"),
            ("a &nosuch; &#0; &#xD800; &#-1; &;", "a &nosuch; &#0; &#xD800; &#-1; &;"),
            ("<a href=\"x\">b", "b"),
            ("<b", "<b"),
            ("<<b>c", "<c"),
            ("&NotEqualTilde;", "≂̸"),
        ] {
            assert_eq!(plain(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn plain_text_is_never_longer_than_its_markup(text in "[<>&;#xa1\u{e9} /]{0,60}|\\PC{0,40}") {
            prop_assert!(plain(&text).len() <= text.len());
        }
    }
}
