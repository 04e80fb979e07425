//! Decodes bytes by their charset.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

/// Number of bytes of a page that are searched for a declaration of the charset.
const PRESCAN: usize = 4096;
/// Number of bytes of a page that are examined if no charset is declared.
const DETECTED_IN: usize = 64 << 10;

/// Decoded text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodedText {
    /// Text; bytes that are invalid in the charset become `�`.
    pub text: String,
    /// Name of the charset: `UTF-8`, `windows-1252`.
    pub charset: &'static str,
    /// `true` if some bytes are invalid in the charset.
    pub has_errors: bool,
}

/// Decodes bytes by the byte order mark at their start, else by the charset of the response ([`charset_of`]), else by
/// the declaration in the head of a page (`<meta charset>`, `<?xml encoding?>`), else by detection.
pub fn decode(bytes: &[u8], charset: Option<&str>) -> DecodedText {
    let said = || charset.and_then(|label| Encoding::for_label(label.as_bytes()));
    let encoding = Encoding::for_bom(bytes).map(|(encoding, _)| encoding);
    let encoding = encoding.or_else(said).or_else(|| declared_encoding(bytes)).unwrap_or_else(|| detected(bytes));
    // This also removes the mark, which takes precedence.
    let (text, encoding, has_errors) = encoding.decode(bytes);
    DecodedText { text: text.into_owned(), charset: encoding.name(), has_errors }
}

/// Returns the `charset` of a media type, as in the header `Content-Type`.
pub fn charset_of(content_type: &str) -> Option<&str> {
    let parameters = content_type.split(';').skip(1).filter_map(|parameter| parameter.split_once('='));
    let mut charsets = parameters.filter(|(name, _)| name.trim().eq_ignore_ascii_case("charset"));
    charsets.next().map(|(_, value)| value.trim().trim_matches(['"', '\'']))
}

/// Returns the encoding that the head of a page or an XML document declares.
fn declared_encoding(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = bytes[..bytes.len().min(PRESCAN)].to_ascii_lowercase();
    let begins = |text: &[u8]| head.starts_with(text);
    if begins(b"<?xml") {
        let end = find(&head, b"?>").unwrap_or(head.len());
        if let Some(encoding) = value_after(&head[..end], b"encoding") {
            return Some(encoding);
        }
    }
    let mut rest = &head[..];
    while let Some(at) = find(rest, b"<") {
        rest = &rest[at + 1..];
        let end = match rest {
            [b'!', b'-', b'-', ..] => find(rest, b"-->").unwrap_or(rest.len()),
            _ => find(rest, b">").unwrap_or(rest.len()),
        };
        if rest.starts_with(b"meta")
            && let Some(encoding) = value_after(&rest[..end], b"charset")
        {
            return Some(encoding);
        }
        rest = &rest[end..];
    }
    None
}

/// Returns the encoding after `name=`, with or without quotes. UTF-16 becomes UTF-8, because the tag was readable in
/// single bytes.
fn value_after(tag: &[u8], name: &[u8]) -> Option<&'static Encoding> {
    let rest = tag[find(tag, name)? + name.len()..].trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let rest = rest.strip_prefix(b"\"").or_else(|| rest.strip_prefix(b"'")).unwrap_or(rest);
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_:.+ ".contains(byte);
    let end = rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len());
    let encoding = Encoding::for_label(&rest[..end])?;
    // The declaration was readable in single bytes, so the page is not in UTF-16.
    Some(if [UTF_16LE, UTF_16BE].contains(&encoding) { UTF_8 } else { encoding })
}

fn detected(bytes: &[u8]) -> &'static Encoding {
    // An incomplete last character is not an error.
    if std::str::from_utf8(bytes).map_or_else(|error| error.error_len().is_none(), |_| true) {
        return UTF_8;
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    detector.feed(&bytes[..bytes.len().min(DETECTED_IN)], true);
    let guess = detector.guess(None, Utf8Detection::Allow);
    if guess.is_ascii_compatible() { guess } else { WINDOWS_1252 }
}

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], content_type: Option<&str>, charset: &str, text: &str) {
        let decoded = decode(bytes, content_type.and_then(charset_of));
        assert_eq!((decoded.charset, &*decoded.text), (charset, text), "{content_type:?} {bytes:?}");
    }

    #[test]
    fn the_charset_comes_from_the_byte_order_mark_then_the_header_then_the_page() {
        let latin = Some("text/html; charset=ISO-8859-1");
        check("é".as_bytes(), None, "UTF-8", "é");
        check(b"\xe9", latin, "windows-1252", "é");
        check(b"\xe9", Some("text/plain; a=b; CharSet = \"latin1\""), "windows-1252", "é");
        check("\u{feff}é".as_bytes(), latin, "UTF-8", "é");
        check(b"\xff\xfea\0", latin, "UTF-16LE", "a");
        check(b"<meta charset=koi8-r>\xc4\xc1", None, "KOI8-R", "<meta charset=koi8-r>да");
        check(b"<meta charset=koi8-r>\xe9", latin, "windows-1252", "<meta charset=koi8-r>é");
        let within =
            "<html><!-- <meta charset=koi8-r> --><META http-equiv=x content='text/html; charset=\"Shift_JIS\"'>";
        check(&[within.as_bytes(), b"\x83\x65"].concat(), None, "Shift_JIS", &format!("{within}テ"));
        check(
            b"<?xml version='1.0' encoding='windows-1251'?>\xe0",
            None,
            "windows-1251",
            "<?xml version='1.0' encoding='windows-1251'?>а",
        );
        check("<meta charset=utf-16>é".as_bytes(), None, "UTF-8", "<meta charset=utf-16>é");
        check("é".as_bytes(), Some("text/html; charset=no-such-thing"), "UTF-8", "é");
    }

    #[test]
    fn an_undeclared_charset_is_detected_and_decoding_never_fails() {
        let russian = "Съешь же ещё этих мягких французских булок, да выпей чаю";
        let (bytes, ..) = encoding_rs::WINDOWS_1251.encode(russian);
        check(&bytes, Some("text/plain"), "windows-1251", russian);
        let broken = decode(b"ab\xff", Some("utf-8"));
        assert_eq!((&*broken.text, broken.has_errors), ("ab\u{fffd}", true));
        let cut = decode(&"aé".as_bytes()[..2], None);
        assert_eq!((cut.charset, cut.has_errors), ("UTF-8", true));
        // A tag that never ends, and a head of nothing but beginnings.
        decode(b"<meta charset", None);
        decode(&b"<".repeat(5000), None);
    }
}
