//! Parses quoted names. git and GNU diff quote names with special characters.

/// Parses the quoted name at the beginning of a text, and returns it with the rest of the text. Returns `None` if there
/// are no quotes.
///
/// # Errors
/// Describes the error by the end of a sentence that begins with "the name".
pub(super) fn unquoted(text: &str) -> Option<Result<(String, &str), &'static str>> {
    text.strip_prefix('"').map(|inner| {
        let (bytes, rest) = bytes_of(inner)?;
        match String::from_utf8(bytes) {
            Ok(name) if !name.contains('\0') => Ok((name, rest)),
            Ok(_) => Err("contains a NUL character"),
            Err(_) => Err("is not in UTF-8, as file names must be"),
        }
    })
}

/// Decodes the bytes up to the closing quote, and returns them with the rest of the text.
fn bytes_of(inner: &str) -> Result<(Vec<u8>, &str), &'static str> {
    const UNKNOWN: &str = "has an escape that git does not write";
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner;
    loop {
        let special = rest.find(['"', '\\']).ok_or("has no closing quote")?;
        bytes.extend_from_slice(&rest.as_bytes()[..special]);
        let is_end = rest.as_bytes()[special] == b'"';
        rest = &rest[special + 1..];
        if is_end {
            return Ok((bytes, rest));
        }
        let length = match rest.as_bytes() {
            [b'0'..=b'3', b'0'..=b'7', b'0'..=b'7', ..] => 3,
            [_, ..] if rest.is_char_boundary(1) => 1,
            _ => return Err(UNKNOWN),
        };
        bytes.push(match &rest[..length] {
            "a" => 0x07,
            "b" => 0x08,
            "t" => b'\t',
            "n" => b'\n',
            "v" => 0x0b,
            "f" => 0x0c,
            "r" => b'\r',
            "\"" => b'"',
            "\\" => b'\\',
            digits => u8::from_str_radix(digits, 8).ok().filter(|_| length == 3).ok_or(UNKNOWN)?,
        });
        rest = &rest[length..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_quoted_name_is_unescaped_up_to_its_closing_quote() {
        let check = |text: &str, expected: Option<Result<(&str, &str), &str>>| {
            let found = unquoted(text);
            let found = found.as_ref().map(|found| found.as_ref().map(|(name, rest)| (&**name, *rest)).map_err(|e| *e));
            assert_eq!(found, expected, "{text}");
        };
        check(r#""b/\303\251.txt" x"#, Some(Ok(("b/é.txt", " x"))));
        check(r#""q\"q\\\t\n\a\b\v\f\r""#, Some(Ok(("q\"q\\\t\n\u{7}\u{8}\u{b}\u{c}\r", ""))));
        check(r#""é" "#, Some(Ok(("é", " "))));
        check(r#""""#, Some(Ok(("", ""))));
        check("plain\"", None);
        check(r#""open"#, Some(Err("has no closing quote")));
        check(r#""open\""#, Some(Err("has no closing quote")));
        check(r#""\x""#, Some(Err("has an escape that git does not write")));
        check(r#""\7""#, Some(Err("has an escape that git does not write")));
        check(r#""\400""#, Some(Err("has an escape that git does not write")));
        check("\"\\é\"", Some(Err("has an escape that git does not write")));
        check(r#""\303""#, Some(Err("is not in UTF-8, as file names must be")));
        check(r#""a\000""#, Some(Err("contains a NUL character")));
    }

    proptest! {
        #[test]
        fn every_octal_escaped_name_is_unquoted_to_the_original(name in "[^\0]{0,12}", follows in ".{0,3}") {
            let quoted: String = name.bytes().map(|byte| format!("\\{byte:03o}")).collect();
            let text = format!("\"{quoted}\"{follows}");
            prop_assert_eq!(unquoted(&text), Some(Ok((name, &*follows))));
        }

        #[test]
        fn no_text_in_quotes_makes_it_panic(text in "\"[\\\\\"0-7anté]{0,12}") {
            let _ = unquoted(&text);
        }
    }
}
