//! Renders a document for a model: its parts, each below a marker, as far as one result has space, and where to
//! continue.

use crate::documents::{Document, DocumentKind, DocumentPart};

/// Maximum number of pages that are suggested at once.
const SUGGESTED_PAGES: u64 = 10;

/// Requested lines of a document's text.
#[derive(Debug, Clone, Copy)]
pub(super) struct DocumentRenderOptions {
    /// First line from 1; a negative number counts from the end.
    pub(super) offset: i64,
    pub(super) limit: u64,
    /// `true` if the caller requested certain pages, sheets, slides or cells.
    pub(super) is_selected: bool,
    /// Maximum number of characters, without notes.
    pub(super) characters: usize,
}

/// Shown text of a document, and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedDocument {
    /// Type of the document.
    pub kind: DocumentKind,
    /// Text for the model: the content with notes.
    pub text: String,
    /// Shown text, without notes.
    pub content: String,
    /// Title in the document's own metadata.
    pub title: Option<String>,
    /// First and last shown part, and number of all; `None` if a document has none.
    pub parts: Option<(u64, u64, u64)>,
    /// First and last shown line, within the requested parts.
    pub lines: Option<(u64, u64)>,
    /// Number of lines of all requested parts.
    pub total_lines: u64,
    /// Parts to request next, as in [`DocumentRange::pages`](crate::documents::DocumentRange::pages); `None` at the
    /// end, and for a document without parts.
    pub next_pages: Option<String>,
    /// Line to continue from, from 1, within the parts of `next_pages` if there are any; `None` at the end, or if the
    /// next part was not begun.
    pub next_offset: Option<u64>,
}

/// A line, and the index of its part.
struct PartLine<'a> {
    part: usize,
    text: &'a str,
}

/// Shows the requested lines of a document. The text ends between two parts if possible.
pub(super) fn render(document: &Document, window: &DocumentRenderOptions) -> RenderedDocument {
    let noun = document.kind.part_noun();
    let markers: Vec<String> = document.parts.iter().map(|part| marker(document, part)).collect();
    let mut lines = Vec::new();
    let mut starts = Vec::new();
    for (part, (DocumentPart { text, .. }, marker)) in document.parts.iter().zip(&markers).enumerate() {
        if part > 0 {
            lines.push(PartLine { part: part - 1, text: "" });
        }
        starts.push(lines.len());
        lines.extend((noun.is_some()).then_some(PartLine { part, text: marker }));
        lines.extend(text.lines().map(|text| PartLine { part, text }));
    }
    let total = lines.len();
    let first = match usize::try_from(window.offset) {
        Ok(offset) => offset.max(1) - 1,
        Err(_) => total.saturating_sub(usize::try_from(window.offset.unsigned_abs()).unwrap_or(usize::MAX)),
    }
    .min(total);
    let (end, is_line_cut) = end_of(&lines, &starts, first, window);
    let mut content = String::new();
    for line in &lines[first..end] {
        content.push_str(line.text);
        content.push('\n');
    }
    if is_line_cut && let Some((at, _)) = content.char_indices().nth(window.characters) {
        content.truncate(at);
    }
    content.truncate(content.trim_end_matches('\n').len());
    let number = |line: usize| lines.get(line).map(|line| document.parts[line.part].number);
    let last = end.checked_sub(1).filter(|last| *last >= first);
    let parts = last.and_then(|last| Some((number(first)?, number(last)?, document.total_parts)));
    let mut result = RenderedDocument {
        kind: document.kind,
        text: String::new(),
        title: document.title.clone(),
        parts: noun.and(parts),
        lines: last.map(|last| (first as u64 + 1, last as u64 + 1)),
        total_lines: total as u64,
        next_pages: None,
        next_offset: None,
        content,
    };
    if let Some(next) = lines.get(end) {
        // The rest of the requested parts, the first of which may be partly shown.
        let is_begun = end > starts[next.part];
        let left: Vec<u64> = document.parts[next.part..].iter().map(|part| part.number).collect();
        result.next_pages = noun.map(|_| ranges(&left));
        let offset = if noun.is_some() { end - starts[next.part] } else { end };
        result.next_offset = (is_begun || noun.is_none()).then_some(offset as u64 + 1);
    } else if let Some((_, last, total)) = result.parts.filter(|(_, last, total)| !window.is_selected && last < total) {
        result.next_pages = Some(ranges(&(last + 1..=total.min(last + SUGGESTED_PAGES)).collect::<Vec<_>>()));
    }
    result.text = result.content.clone();
    for note in notes(document, &result, first, is_line_cut) {
        let gap = if result.text.is_empty() { "" } else { "\n" };
        result.text.push_str(&format!("{gap}[{note}]"));
    }
    result
}

/// Returns the index after the last shown line, and `true` if only a part of a single line is shown.
fn end_of(lines: &[PartLine<'_>], starts: &[usize], first: usize, window: &DocumentRenderOptions) -> (usize, bool) {
    let wanted = first.saturating_add(usize::try_from(window.limit).unwrap_or(usize::MAX)).min(lines.len());
    let mut characters = 0;
    for (at, line) in lines.iter().enumerate().take(wanted).skip(first) {
        characters += line.text.chars().count() + 1;
        if characters <= window.characters {
            continue;
        }
        let border = starts[line.part];
        return match at {
            at if at == first => (first + 1, true),
            _ if border > first => (border, false),
            at => (at, false),
        };
    }
    (wanted, false)
}

/// Returns a marker such as `--- page 3 of 57 ---`.
fn marker(document: &Document, part: &DocumentPart) -> String {
    let (noun, total) = (document.kind.part_noun().unwrap_or("part"), document.total_parts);
    let name = part.label.strip_prefix(&format!("{noun} {}", part.number)).unwrap_or_default();
    format!("--- {noun} {} of {total}{name} ---", part.number)
}

/// Returns the notes below the text: title, remarks, shown part, and how to continue.
fn notes(document: &Document, shown: &RenderedDocument, first: usize, is_line_cut: bool) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(document.title.as_ref().map(|title| format!("title: {title}")));
    notes.extend(document.notes.iter().cloned());
    let name = document.kind.name();
    if document.total_parts == 0 || shown.total_lines == 0 {
        notes.push(format!("this {name} is empty"));
    } else if shown.lines.is_none() {
        let lines = shown.total_lines;
        notes.push(format!("the requested part has {lines} lines; line {} is past its end", first + 1));
    }
    if is_line_cut {
        notes.push("the line is too long for one answer; its rest is omitted".into());
    }
    let place = match (shown.parts, document.kind.part_noun()) {
        (Some((first, last, total)), Some(noun)) if first == last => format!("{noun} {first} of {total}"),
        (Some((first, last, total)), Some(noun)) => format!("{noun}s {first} to {last} of {total}"),
        _ => shown
            .lines
            .map_or_else(String::new, |(first, last)| format!("lines {first} to {last} of {}", shown.total_lines)),
    };
    match (&shown.next_pages, shown.next_offset) {
        (None, None) => {}
        (Some(pages), None) => notes.push(format!("{place}; read on with pages=\"{pages}\"")),
        (None, Some(offset)) => notes.push(format!("{place}; read on with offset={offset}")),
        (Some(pages), Some(offset)) => {
            notes.push(format!("{place}, the last not to its end; read on with pages=\"{pages}\" and offset={offset}"));
        }
    }
    notes
}

/// Returns numbers in order as `2,4-6`.
fn ranges(numbers: &[u64]) -> String {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => ranges.push((*number, *number)),
        }
    }
    let shown = |(first, last): &(u64, u64)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    ranges.iter().map(shown).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn document(kind: DocumentKind, total: u64, texts: &[(u64, &str)]) -> Document {
        let mut document = Document::new(kind, total);
        for (number, text) in texts {
            document.push(*number, format!("{} {number}", kind.part_noun().unwrap_or("part")), text);
        }
        document
    }

    fn all() -> DocumentRenderOptions {
        DocumentRenderOptions { offset: 1, limit: 2000, is_selected: false, characters: 28_000 }
    }

    #[test]
    fn document_parts_have_markers_and_the_remaining_pages_are_named() {
        let pdf = document(DocumentKind::Pdf, 57, &[(1, "one\ntwo"), (2, "three")]);
        let text = "--- page 1 of 57 ---\none\ntwo\n\n--- page 2 of 57 ---\nthree";
        let found = render(&pdf, &all());
        assert_eq!(found.content, text);
        assert_eq!(found.text, format!("{text}\n[pages 1 to 2 of 57; read on with pages=\"3-12\"]"));
        assert_eq!((found.parts, found.lines, found.total_lines), (Some((1, 2, 57)), Some((1, 6)), 6));
        let part = render(&pdf, &DocumentRenderOptions { offset: 2, limit: 2, is_selected: true, ..all() });
        assert_eq!(
            part.text,
            "one\ntwo\n[page 1 of 57, the last not to its end; read on with pages=\"1-2\" and offset=4]"
        );
        let end = render(&pdf, &DocumentRenderOptions { offset: -1, limit: 9, is_selected: true, ..all() });
        assert_eq!(end.text, "three");
        let past = render(&pdf, &DocumentRenderOptions { offset: 99, limit: 9, is_selected: true, ..all() });
        assert_eq!(past.text, "[the requested part has 6 lines; line 7 is past its end]");
    }

    #[test]
    fn long_documents_are_cut_between_parts_or_lines_with_the_next_position() {
        let page = "x".repeat(999) + "\n";
        let pdf = document(DocumentKind::Pdf, 9, &[(2, &page.repeat(20)), (4, &page.repeat(20)), (5, "end")]);
        let first = render(&pdf, &DocumentRenderOptions { is_selected: true, ..all() });
        assert_eq!((first.parts, first.next_pages.as_deref(), first.next_offset), (Some((2, 2, 9)), Some("4-5"), None));
        let long = document(DocumentKind::Xlsx, 2, &[(1, &page.repeat(40)), (2, "end")]);
        let first = render(&long, &all());
        assert_eq!((first.next_pages.as_deref(), first.next_offset), (Some("1-2"), Some(29)));
        assert!(
            first.text.ends_with("[sheet 1 of 2, the last not to its end; read on with pages=\"1-2\" and offset=29]")
        );
        let docx = document(DocumentKind::Docx, 1, &[(1, &page.repeat(40))]);
        let first = render(&docx, &all());
        assert!(first.text.ends_with("[lines 1 to 28 of 40; read on with offset=29]"), "{:?}", first.lines);
        let line = document(DocumentKind::Docx, 1, &[(1, &"y".repeat(50_000))]);
        let cut = render(&line, &all());
        assert_eq!(
            cut.text,
            format!("{}\n[the line is too long for one answer; its rest is omitted]", "y".repeat(28_000))
        );
        assert_eq!(render(&document(DocumentKind::Docx, 1, &[(1, "")]), &all()).text, "[this docx document is empty]");
    }

    #[test]
    fn the_length_limit_counts_characters_rather_than_bytes() {
        let lines = "ä".repeat(9) + "\n";
        let docx = document(DocumentKind::Docx, 1, &[(1, &lines.repeat(40))]);
        let first = render(&docx, &DocumentRenderOptions { characters: 100, ..all() });
        assert_eq!((first.lines, first.next_offset), (Some((1, 10)), Some(11)));
        let line = document(DocumentKind::Docx, 1, &[(1, &"ä".repeat(500))]);
        assert_eq!(render(&line, &DocumentRenderOptions { characters: 100, ..all() }).content, "ä".repeat(100));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        /// A reader that follows the suggested positions reads everything exactly once.
        #[test]
        fn suggested_positions_cover_the_whole_document_exactly_once(lengths in prop::collection::vec(0_usize..60, 1..8), limit in 1_u64..40) {
            let line = "z".repeat(700) + "\n";
            let texts: Vec<String> = lengths.iter().map(|lines| line.repeat(*lines)).collect();
            let parts: Vec<(u64, &str)> = (1..).zip(texts.iter().map(String::as_str)).collect();
            let whole = document(DocumentKind::Notebook, parts.len() as u64, &parts);
            let (mut from, mut offset, mut read) = (1, 1, 0);
            for _ in 0..10_000 {
                let rest = document(DocumentKind::Notebook, whole.total_parts, &parts[from - 1..]);
                let found = render(&rest, &DocumentRenderOptions { offset, limit, ..all() });
                read += found.content.matches('z').count();
                let Some(pages) = found.next_pages else { break };
                from = pages.split('-').next().unwrap().parse().unwrap();
                offset = found.next_offset.map_or(1, |offset| offset as i64);
            }
            prop_assert_eq!(read, lengths.iter().sum::<usize>() * 700);
        }
    }
}
