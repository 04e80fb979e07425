//! Lines of Markdown: what stands before each of them, and between them.

/// Levels of lists and quotes that are indented; deeper ones stand as these.
const MAX_PREFIXES: usize = 24;

/// The lines so far.
#[derive(Debug)]
pub(super) struct Lines {
    text: String,
    count: usize,
    most: usize,
    is_cut: bool,
    gap: Gap,
    prefixes: Vec<Prefix>,
}

/// The distance of two blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Gap {
    /// On the next line.
    Line,
    /// With an empty line between them.
    Blank,
}

/// The beginning of the lines of a list's item or a quote.
#[derive(Debug)]
struct Prefix {
    /// Before its first line, until that is written.
    first: Option<String>,
    rest: String,
}

impl Lines {
    pub(super) fn new(most: usize) -> Self {
        Self { text: String::new(), count: 0, most, is_cut: false, gap: Gap::Line, prefixes: Vec::new() }
    }

    /// No more fits.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// The number of the line that was written last, from 1.
    pub(super) fn number(&self) -> usize {
        self.count
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// Keeps the next line at this distance at least. The first line of an item stands beside its marker.
    pub(super) fn part(&mut self, gap: Gap) {
        if !self.has_marker() {
            self.gap = self.gap.max(gap);
        }
    }

    /// Puts the next line at this distance.
    pub(super) fn place(&mut self, gap: Gap) {
        if !self.has_marker() {
            self.gap = gap;
        }
    }

    /// Begins an item or a quote: a marker stands before its first line, and other lines are indented.
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

    /// Writes one line.
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

    /// Takes the spaces from the end of the last line.
    fn trim_line(&mut self) {
        self.text.truncate(self.text.trim_end_matches(' ').len());
    }
}
