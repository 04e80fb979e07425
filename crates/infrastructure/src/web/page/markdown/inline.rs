//! The text of one paragraph, heading or cell, with its markup.

/// Markup of a part of a paragraph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mark {
    Strong,
    Emphasis,
    Struck,
    Code,
    Raised,
    Lowered,
    Link(LinkTarget),
}

/// Target of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LinkTarget {
    /// Address outside the page.
    Address {
        url: String,
        /// Text of a link without a text of its own.
        label: String,
    },
    /// Place in the page, or an address that is invalid or not shown as a link.
    InPage,
}

#[derive(Debug)]
struct OpenMark {
    mark: Mark,
    start: usize,
    /// `true` if an earlier paragraph contains a part of the marked text.
    has_shown: bool,
}

/// A paragraph that is being written.
#[derive(Debug, Default)]
pub(super) struct InlineWriter {
    text: String,
    open: Vec<OpenMark>,
    /// Last closed mark, with the start and end of its text.
    closed: Option<(Mark, usize, usize)>,
    /// Links to other addresses so far, with their texts.
    links: Vec<(String, String)>,
}

impl InlineWriter {
    pub(super) fn is_empty(&self) -> bool {
        self.text.trim().is_empty()
    }

    pub(super) fn is_open(&self, mark: &Mark) -> bool {
        self.open.iter().any(|open| open.mark == *mark)
    }

    pub(super) fn is_in_link(&self) -> bool {
        self.open.iter().any(|open| matches!(open.mark, Mark::Link(_)))
    }

    /// Adds text of the page: collapses white space as browsers do, and escapes what Markdown would interpret.
    pub(super) fn add(&mut self, text: &str) {
        let is_code = self.is_open(&Mark::Code);
        for (at, char) in text.char_indices() {
            if char.is_whitespace() {
                self.space();
                continue;
            }
            let rest = &text[at + char.len_utf8()..];
            if !is_code && needs_escape(self.text.chars().next_back(), char, rest) {
                self.text.push('\\');
            }
            self.text.push(char);
        }
    }

    /// Adds Markdown without changes.
    pub(super) fn add_markdown(&mut self, markdown: &str) {
        self.text.push_str(markdown);
    }

    /// Adds a space unless there is one.
    pub(super) fn space(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with([' ', '\n']) {
            self.text.push(' ');
        }
    }

    /// Separates the text so far from the next item by `; `, unless it is empty or ends with `;` or `:`.
    pub(super) fn part(&mut self) {
        let end = self.text.trim_end().len();
        if end > 0 && !self.text[..end].ends_with([';', ':']) {
            self.text.truncate(end);
            self.text.push_str("; ");
        }
    }

    /// Breaks the line.
    pub(super) fn line_break(&mut self) {
        self.text.truncate(self.text.trim_end_matches(' ').len());
        self.text.push('\n');
    }

    pub(super) fn open(&mut self, mark: Mark) {
        // `**a****b**` would be parsed differently.
        if let Some((closed, start, end)) = &self.closed
            && *closed == mark
            && *end == self.text.len()
            && let Some(sign) = delimiter(&mark)
            && self.text.get(*start..).is_some_and(|text| text.starts_with(sign))
            && self.text.ends_with(sign)
        {
            let start = *start;
            self.text.truncate(self.text.len() - sign.len());
            self.text.replace_range(start..start + sign.len(), "");
            self.open.push(OpenMark { mark, start, has_shown: false });
            self.closed = None;
            return;
        }
        self.open.push(OpenMark { mark, start: self.text.len(), has_shown: false });
    }

    /// Closes the mark that was opened last.
    pub(super) fn close(&mut self) {
        if let Some(open) = self.open.pop() {
            self.wrap(&open, true);
        }
    }

    /// Adds a picture.
    pub(super) fn add_picture(&mut self, alt: &str, url: &str) {
        let mut label = Self::default();
        label.add(alt);
        self.text.extend(["![", &paired(&label.take()), "](", &destination(url), ")"]);
    }

    /// Returns the number of bytes of the paragraph so far.
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    /// Returns the text and the address of each link so far.
    pub(super) fn into_links(self) -> Vec<(String, String)> {
        self.links
    }

    /// Takes the paragraph; open marks continue in the next one.
    pub(super) fn take(&mut self) -> String {
        for index in (0..self.open.len()).rev() {
            let OpenMark { mark, start, has_shown } = &self.open[index];
            let open = OpenMark { mark: mark.clone(), start: *start, has_shown: *has_shown };
            let before = self.text[open.start.min(self.text.len())..].trim().is_empty();
            self.wrap(&open, false);
            self.open[index].has_shown |= !before;
        }
        for open in &mut self.open {
            open.start = 0;
        }
        self.closed = None;
        std::mem::take(&mut self.text)
    }

    /// Puts a mark around the text added since it was opened. White space stays outside.
    fn wrap(&mut self, open: &OpenMark, is_end: bool) {
        let content = self.text.split_off(open.start.min(self.text.len()));
        let trimmed = content.trim();
        if content.starts_with(char::is_whitespace) {
            self.space();
        }
        let start = self.text.len();
        match &open.mark {
            Mark::Link(LinkTarget::Address { url, label }) => {
                if !trimmed.is_empty() {
                    self.links.push((trimmed.to_owned(), url.clone()));
                    self.add_link(trimmed, url);
                } else if is_end && !open.has_shown && (!label.is_empty() || !self.was_linked(url)) {
                    self.links.push((label.clone(), url.clone()));
                    if label.is_empty() { self.add_autolink(url) } else { self.add_link(label, url) }
                }
            }
            _ if trimmed.is_empty() => {}
            // Signs that link to their own heading.
            Mark::Link(LinkTarget::InPage) if matches!(trimmed, "¶" | "§" | "#" | "\\#" | "🔗") => {}
            Mark::Link(LinkTarget::InPage) => self.text.push_str(trimmed),
            Mark::Code => self.add_code(trimmed),
            Mark::Raised => self.add_shifted(trimmed, "^", raised),
            Mark::Lowered => self.add_shifted(trimmed, "_", lowered),
            mark => {
                let sign = delimiter(mark).unwrap_or_default();
                self.text.extend([sign, trimmed, sign]);
                self.closed = Some((mark.clone(), start, self.text.len()));
            }
        }
        if content.ends_with(char::is_whitespace) {
            if content.trim_end_matches(' ').ends_with('\n') { self.line_break() } else { self.space() }
        }
    }

    /// Returns `true` if one of the last links has this address: another link without a text would add nothing.
    fn was_linked(&self, url: &str) -> bool {
        self.links.iter().rev().take(50).any(|(_, linked)| linked == url)
    }

    fn add_link(&mut self, text: &str, url: &str) {
        // A `!` before it would make it a picture.
        if self.text.ends_with('!') {
            self.text.insert(self.text.len() - 1, '\\');
        }
        if text == url {
            return self.add_autolink(url);
        }
        let text = text.replace('\n', " ");
        if url.strip_prefix("mailto:") == Some(text.as_str()) {
            return self.text.push_str(&text);
        }
        let text = paired(&text);
        self.text.extend(["[", &text, "](", &destination(url), ")"]);
    }

    fn add_autolink(&mut self, url: &str) {
        self.text.extend(["<", url, ">"]);
    }

    fn add_code(&mut self, code: &str) {
        let code = code.replace('\n', " ");
        let fence = "`".repeat(longest_run(&code, '`') + 1);
        let pad = if code.starts_with('`') || code.ends_with('`') { " " } else { "" };
        self.text.extend([&fence, pad, &code, pad, &fence]);
    }

    /// Writes superscript or subscript: with Unicode characters if all exist, otherwise after a sign.
    fn add_shifted(&mut self, text: &str, sign: &str, shifted: fn(char) -> Option<char>) {
        if let Some(text) = text.chars().map(shifted).collect::<Option<String>>() {
            self.text.push_str(&text);
        } else if text.starts_with(['[', '('])
            || matches!(text, "st" | "nd" | "rd" | "th" | "TM" | "®" | "™" | "er" | "e")
        {
            self.text.push_str(text);
        } else if text.chars().count() == 1 {
            self.text.extend([sign, text]);
        } else {
            self.text.extend([sign, "(", text, ")"]);
        }
    }
}

/// Returns the text of a link with balanced or escaped brackets.
fn paired(text: &str) -> String {
    let mut depth = 0_i32;
    let mut is_escaped = false;
    let is_balanced = text.chars().all(|char| {
        let counts = !is_escaped;
        is_escaped = char == '\\' && !is_escaped;
        depth += i32::from(counts) * (i32::from(char == '[') - i32::from(char == ']'));
        depth >= 0
    });
    if is_balanced && depth == 0 {
        return text.to_owned();
    }
    is_escaped = false;
    let mut escaped = String::with_capacity(text.len() + 4);
    for char in text.chars() {
        if matches!(char, '[' | ']') && !is_escaped {
            escaped.push('\\');
        }
        is_escaped = char == '\\' && !is_escaped;
        escaped.push(char);
    }
    escaped
}

/// Returns the address for a link, with unbalanced parentheses escaped.
fn destination(url: &str) -> String {
    let mut depth = 0_i32;
    let is_balanced = url.chars().all(|char| {
        depth += i32::from(char == '(') - i32::from(char == ')');
        depth >= 0
    });
    let url = if is_balanced && depth == 0 { url.to_owned() } else { url.replace('(', "%28").replace(')', "%29") };
    url.replace(' ', "%20").replace('<', "%3C").replace('>', "%3E")
}

/// Escapes a line that Markdown would not parse as a paragraph.
pub(super) fn escaped_start(line: &str) -> String {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let behind = &line[digits..];
    let is_end = |rest: &str| rest.is_empty() || rest.starts_with(' ');
    if (1..=9).contains(&digits) && behind.starts_with(['.', ')']) && is_end(&behind[1..]) {
        return format!("{}\\{behind}", &line[..digits]);
    }
    let is_marker = match line.as_bytes() {
        [b'>', ..] => true,
        [b'#', ..] => is_end(line.trim_start_matches('#')) && !line.starts_with("#######"),
        [b'+' | b'-' | b'*', ..] if is_end(&line[1..]) => true,
        [b'-' | b'=', ..] => {
            line.trim_end().bytes().all(|byte| matches!(byte, b'-' | b' '))
                || line.trim_end().bytes().all(|byte| byte == b'=')
        }
        [b'~', b'~', b'~', ..] => true,
        [b':', b' ', ..] => true,
        _ => false,
    };
    if is_marker { format!("\\{line}") } else { line.to_owned() }
}

/// Returns the length of the longest run of a character.
pub(super) fn longest_run(text: &str, sign: char) -> usize {
    text.split(|char| char != sign).map(str::len).max().unwrap_or_default()
}

fn delimiter(mark: &Mark) -> Option<&'static str> {
    match mark {
        Mark::Strong => Some("**"),
        Mark::Emphasis => Some("*"),
        Mark::Struck => Some("~~"),
        _ => None,
    }
}

/// Returns `true` if a character between these would be parsed as markup.
fn needs_escape(before: Option<char>, char: char, rest: &str) -> bool {
    let after = rest.chars().next();
    let is_space = |char: Option<char>| char.is_none_or(char::is_whitespace);
    let is_letter = |char: Option<char>| char.is_some_and(char::is_alphanumeric);
    match char {
        '`' => true,
        '*' => !(is_space(before) && is_space(after)),
        '_' => !((is_space(before) && is_space(after)) || (is_letter(before) && is_letter(after))),
        '~' => before == Some('~') || after == Some('~'),
        '\\' => after.is_some_and(|after| after.is_ascii_punctuation()),
        ']' => matches!(after, Some('(' | '[' | ':')),
        '<' => after.is_some_and(|after| after.is_ascii_alphabetic() || "/!?".contains(after)),
        '&' => {
            let name = rest.strip_prefix('#').unwrap_or(rest);
            let length = name.bytes().take_while(u8::is_ascii_alphanumeric).count();
            length > 0 && name[length..].starts_with(';')
        }
        _ => false,
    }
}

fn raised(char: char) -> Option<char> {
    shifted(char, "0123456789+-=()n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿ")
}

fn lowered(char: char) -> Option<char> {
    shifted(char, "0123456789+-=()", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎")
}

fn shifted(char: char, plain: &str, shifted: &str) -> Option<char> {
    plain.chars().zip(shifted.chars()).find(|(from, _)| *from == char).map(|(_, to)| to)
}
