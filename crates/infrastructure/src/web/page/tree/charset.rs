//! The text of a page's bytes.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};
use std::borrow::Cow;

/// As far as a page's own word on its charset is looked for.
const BEGINNING: usize = 4096;

/// Decodes a page: by its byte order mark, by what its sender says, by what it says itself, as UTF-8 where it is that,
/// and else as browsers do in the West.
pub(super) fn decoded<'a>(bytes: &'a [u8], charset: Option<&str>) -> Cow<'a, str> {
    if let Some((encoding, mark)) = Encoding::for_bom(bytes) {
        return encoding.decode_without_bom_handling(&bytes[mark..]).0;
    }
    let said = charset.and_then(|label| Encoding::for_label(label.trim().as_bytes())).or_else(|| own_word(bytes));
    let encoding = said.unwrap_or_else(|| if is_utf_8(bytes) { UTF_8 } else { WINDOWS_1252 });
    encoding.decode_without_bom_handling(bytes).0
}

/// What the page says of itself: `<meta charset=x>`, `<meta … content="…charset=x">` or `<?xml … encoding="x"?>`.
fn own_word(bytes: &[u8]) -> Option<&'static Encoding> {
    let beginning = String::from_utf8_lossy(&bytes[..bytes.len().min(BEGINNING)]).to_ascii_lowercase();
    let declaration = beginning.trim_start().strip_prefix("<?xml").and_then(|rest| rest.split_once("?>"));
    let of_xml = declaration.and_then(|(declaration, _)| label_after(declaration, "encoding"));
    let of_meta = || {
        let tags = beginning.split("<meta").skip(1).filter_map(|rest| rest.split_once('>'));
        tags.filter_map(|(tag, _)| label_after(tag, "charset")).next()
    };
    let encoding = of_xml.or_else(of_meta)?;
    // A page whose markup could be read is in no UTF-16.
    Some(if [UTF_16BE, UTF_16LE].contains(&encoding) { UTF_8 } else { encoding })
}

/// The charset that stands behind a word and an equals sign.
fn label_after(text: &str, word: &str) -> Option<&'static Encoding> {
    let (_, rest) = text.split_once(word)?;
    let rest = rest.trim_start().strip_prefix('=')?.trim_start().trim_start_matches(['"', '\'']);
    let label = rest.split(|char: char| char.is_ascii_whitespace() || "\"';/>?".contains(char)).next()?;
    Encoding::for_label(label.as_bytes())
}

/// Whether bytes are UTF-8, but for a last character that was cut off.
fn is_utf_8(bytes: &[u8]) -> bool {
    match std::str::from_utf8(bytes) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    }
}
