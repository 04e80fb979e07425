//! Finds the headings of a Markdown text and their lines.

/// A heading, and its line, from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Heading {
    pub(super) level: usize,
    pub(super) text: String,
    pub(super) line: usize,
}

/// Returns the headings that are marked with `#`, outside of code blocks.
pub(super) fn outline(text: &str) -> Vec<Heading> {
    let mut fence: Option<&str> = None;
    let mut headings = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let bare = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| bare.starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (None, None) => headings.extend(heading(line, number)),
            _ => {}
        }
    }
    headings
}

fn heading(line: &str, number: usize) -> Option<Heading> {
    let rest = line.trim_start_matches('#');
    let (level, text) = (line.len() - rest.len(), rest.trim());
    let is_heading = (1..=6).contains(&level) && rest.starts_with(' ') && !text.is_empty();
    is_heading.then(|| Heading { level, text: text.to_owned(), line: number })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_are_found_with_their_line_numbers_except_in_code_blocks() {
        let text = "# One\n\ntext\n## Two \n```sh\n# no\n~~~\n```\n~~~\n# no\n~~~\n#tag\n####### no\n### \n### Three";
        let found: Vec<_> = outline(text).into_iter().map(|found| (found.level, found.text, found.line)).collect();
        assert_eq!(found, [(1, "One".to_owned(), 1), (2, "Two".to_owned(), 4), (3, "Three".to_owned(), 15)]);
    }
}
