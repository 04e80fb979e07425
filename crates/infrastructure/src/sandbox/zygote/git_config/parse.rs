//! Parses settings as git does (`git_parse_source` in its config.c). Input that git rejects is rejected here.

/// Maximum total size of the keys of a text, in bytes. Each key repeats its section, which may be as long as the text.
const KEY_BYTES: usize = 4 << 20;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::sandbox::zygote) struct GitSetting {
    /// `section.name` or `section.subsection.name`. All parts except the subsection are in lower case.
    pub(super) key: Vec<u8>,
    /// Value. `None` if the name is alone, which means `true`.
    pub(super) value: Option<Vec<u8>>,
}

/// A setting and its range in the text: from its name to the end of its last line.
#[derive(Debug)]
pub(in crate::sandbox::zygote) struct LocatedSetting {
    pub(in crate::sandbox::zygote) setting: GitSetting,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// Parses the settings of a text. Returns `None` if git would reject it or may read it in another way.
pub(in crate::sandbox::zygote) fn settings(text: &[u8]) -> Option<Vec<LocatedSetting>> {
    // Some versions of git stop reading there.
    if text.contains(&0) {
        return None;
    }
    let mark = "\u{feff}".as_bytes();
    let mut reader = Reader { text, at: if text.starts_with(mark) { mark.len() } else { 0 }, is_over: false };
    let (mut found, mut section, mut is_comment, mut left) = (Vec::new(), Vec::new(), false, KEY_BYTES);
    loop {
        let start = reader.at;
        match reader.next() {
            b'\n' if reader.is_over => return Some(found),
            b'\n' => is_comment = false,
            _ if is_comment => {}
            byte if is_blank(byte) => {}
            b'#' | b';' => is_comment = true,
            b'[' => {
                section = reader.header()?;
                section.push(b'.');
            }
            first if first.is_ascii_alphabetic() => {
                left = left.checked_sub(section.len())?;
                let setting = reader.setting(&section, first)?;
                found.push(LocatedSetting { setting, start, end: reader.at });
            }
            _ => return None,
        }
    }
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    /// `true` once the end was read.
    is_over: bool,
}

impl Reader<'_> {
    /// Returns the next byte. A Windows line end counts as one line break, and so does the end of the text, however
    /// often it is read.
    fn next(&mut self) -> u8 {
        let Some(&byte) = self.text.get(self.at) else {
            self.is_over = true;
            return b'\n';
        };
        self.at += 1;
        if byte == b'\r' && self.text.get(self.at) == Some(&b'\n') {
            self.at += 1;
            return b'\n';
        }
        byte
    }

    /// Parses a header after its `[`: `section]`, `section.sub]` or `section "Sub"]`.
    fn header(&mut self) -> Option<Vec<u8>> {
        let mut name = Vec::new();
        loop {
            match self.next() {
                _ if self.is_over => return None,
                b']' => return (!name.is_empty()).then_some(name),
                byte if is_blank(byte) || byte == b'\n' => return self.subsection(name, byte),
                byte if is_of_name(byte) || byte == b'.' => name.push(byte.to_ascii_lowercase()),
                _ => return None,
            }
        }
    }

    fn subsection(&mut self, mut name: Vec<u8>, mut byte: u8) -> Option<Vec<u8>> {
        while is_blank(byte) {
            byte = self.next();
        }
        if byte != b'"' {
            return None;
        }
        name.push(b'.');
        loop {
            match self.next() {
                b'\n' => return None,
                b'"' => break,
                b'\\' => match self.next() {
                    b'\n' => return None,
                    byte => name.push(byte),
                },
                byte => name.push(byte),
            }
        }
        (self.next() == b']').then_some(name)
    }

    fn setting(&mut self, section: &[u8], first: u8) -> Option<GitSetting> {
        let mut key = section.to_vec();
        let mut byte = first;
        while is_of_name(byte) {
            key.push(byte.to_ascii_lowercase());
            byte = self.next();
        }
        while matches!(byte, b' ' | b'\t') {
            byte = self.next();
        }
        let value = match byte {
            b'\n' => None,
            b'=' => Some(self.value()?),
            _ => return None,
        };
        Some(GitSetting { key, value })
    }

    /// Parses a value after its `=`, to the end of its last line.
    fn value(&mut self) -> Option<Vec<u8>> {
        let (mut value, mut is_quoted, mut is_comment) = (Vec::new(), false, false);
        // Start of trailing blanks, which only count if something follows them.
        let mut blanks = None;
        loop {
            let byte = match self.next() {
                b'\n' if is_quoted => return None,
                b'\n' => {
                    value.truncate(blanks.unwrap_or(value.len()));
                    return Some(value);
                }
                _ if is_comment => continue,
                byte if is_blank(byte) && !is_quoted => {
                    if !value.is_empty() {
                        blanks.get_or_insert(value.len());
                        value.push(byte);
                    }
                    continue;
                }
                b';' | b'#' if !is_quoted => {
                    is_comment = true;
                    continue;
                }
                byte => byte,
            };
            blanks = None;
            match byte {
                b'"' => is_quoted = !is_quoted,
                b'\\' => match self.next() {
                    b'\n' => {}
                    b't' => value.push(b'\t'),
                    b'b' => value.push(8),
                    b'n' => value.push(b'\n'),
                    byte @ (b'\\' | b'"') => value.push(byte),
                    _ => return None,
                },
                byte => value.push(byte),
            }
        }
    }
}

/// Returns `true` for the bytes that git takes for blanks. These exclude the form feed and the vertical tab.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r')
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}
