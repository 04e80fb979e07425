//! Lines of Markdown with their prefixes and the gaps between them.

/// Maximum number of indented levels of lists and quotes; deeper ones have the same indentation.
const MAX_PREFIXES: usize = 24;

/// Writer of Markdown lines, which stops at a maximum number of bytes.
#[derive(Debug)]
pub(super) struct MarkdownWriter {
    text: String,
    count: usize,
    most: usize,
    is_cut: bool,
    gap: Gap,
    prefixes: Vec<Prefix>,
}

/// Distance between two blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Gap {
    /// On the next line.
    Line,
    /// With an empty line between them.
    Blank,
}

/// Prefix of the lines of a list item or a quote.
#[derive(Debug)]
struct Prefix {
    /// Prefix of its first line, until that is written.
    first: Option<String>,
    rest: String,
}

impl MarkdownWriter {
    pub(super) fn new(most: usize) -> Self {
        Self { text: String::new(), count: 0, most, is_cut: false, gap: Gap::Line, prefixes: Vec::new() }
    }

    /// Returns `true` if the limit is reached.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Returns the number of the line that was written last, from 1.
    pub(super) fn number(&self) -> usize {
        self.count
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// Sets the minimum distance of the next line. The first line of an item follows its marker directly.
    pub(super) fn part(&mut self, gap: Gap) {
        if !self.has_marker() {
            self.gap = self.gap.max(gap);
        }
    }

    /// Sets the distance of the next line. The first line of an item follows its marker directly.
    pub(super) fn place(&mut self, gap: Gap) {
        if !self.has_marker() {
            self.gap = gap;
        }
    }

    /// Begins an item or a quote: the first line has a marker as its prefix, and later lines are indented.
    pub(super) fn begin(&mut self, marker: &str, rest: &str) {
        let is_deep = self.prefixes.len() >= MAX_PREFIXES;
        let rest = if is_deep { String::new() } else { rest.to_owned() };
        self.prefixes.push(Prefix { first: Some(marker.to_owned()), rest });
    }

    pub(super) fn end(&mut self) {
        self.prefixes.pop();
    }

    fn has_marker(&self) -> bool {
        self.prefixes.iter().any(|prefix| prefix.first.is_some())
    }

    /// Writes one line with its prefixes, cut at the maximum number of bytes. Does nothing after a cut.
    pub(super) fn write(&mut self, line: &str) {
        if self.is_cut {
            return;
        }
        if !self.text.is_empty() {
            self.text.push('\n');
            if self.gap == Gap::Blank {
                let begun = self.prefixes.iter().take_while(|prefix| prefix.first.is_none());
                self.text.extend(begun.map(|prefix| prefix.rest.as_str()));
                self.trim_line();
                self.text.push('\n');
                self.count += 1;
            }
        }
        self.count += 1;
        self.gap = Gap::Line;
        for prefix in &mut self.prefixes {
            match prefix.first.take() {
                Some(first) => self.text.push_str(&first),
                None => self.text.push_str(&prefix.rest),
            }
        }
        let room = self.most.saturating_sub(self.text.len());
        self.is_cut = line.len() > room;
        self.text.push_str(&line[..line.floor_char_boundary(room)]);
        if line.is_empty() {
            self.trim_line();
        }
    }

    /// Removes the spaces at the end of the last line.
    fn trim_line(&mut self) {
        self.text.truncate(self.text.trim_end_matches(' ').len());
    }
}
