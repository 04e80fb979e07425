//! Here-documents, analysed by their text alone.

/// Returns the delimiter of a here-document, and `true` if it is quoted. Returns `None` unless bash certainly reads the
/// written text as that delimiter.
pub(super) fn end_word(written: &str) -> Option<(&str, bool)> {
    let unquoted = ['\'', '"'].iter().find_map(|quote| written.strip_prefix(*quote)?.strip_suffix(*quote));
    let word = unquoted.unwrap_or(written);
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'+');
    (!word.is_empty() && word.bytes().all(is_plain)).then_some((word, unquoted.is_some()))
}

/// Returns the value of a command substitution that contains only `cat` and a here-document without expansions. Returns
/// `None` for any other.
pub(super) fn literal_text(substitution: &str) -> Option<String> {
    const BLANKS: [char; 2] = [' ', '\t'];
    let inside = substitution.strip_prefix("$(")?.strip_suffix(')')?;
    let behind =
        inside.trim_start_matches(BLANKS).strip_prefix("cat")?.trim_start_matches(BLANKS).strip_prefix("<<")?;
    let (written, rest) = behind.split_once('\n')?;
    let (delimiter, quoted) = end_word(written.trim_matches(BLANKS)).filter(|_| !written.starts_with('-'))?;
    let end = format!("{delimiter}\n");
    let mut at = 0;
    let last = rest.split_inclusive('\n').find(|line| {
        let is_end = **line == end;
        at += if is_end { 0 } else { line.len() };
        is_end
    })?;
    let (body, behind) = (&rest[..at], &rest[at + last.len()..]);
    let is_literal = quoted || !body.contains(['$', '`', '\\']);
    (is_literal && behind.trim_matches(['\n', ' ', '\t']).is_empty()).then(|| body.trim_end_matches('\n').to_owned())
}
