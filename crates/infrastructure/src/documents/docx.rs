//! Word documents: the body in its order, with headings, lists, tables, links and notes.

mod numbering;
mod styles;

use crate::documents::{
    Document, DocumentKind,
    document_error::DocumentError,
    package::{OfficePackage, Relationship},
    selection::PartSelection,
    xml::{XmlReader, XmlStartTag},
};
use numbering::Numbering;
use std::collections::BTreeMap;
use styles::Styles;

/// Maximum number of columns that one cell spans.
const MAX_SPAN: usize = 63;

/// Reads the whole document: a docx has no pages, because the printer layout creates them. Fails if `pages` is given.
pub(super) fn read(
    package: &mut OfficePackage,
    main: &str,
    pages: Option<&PartSelection>,
) -> Result<Document, DocumentError> {
    if let Some(pages) = pages {
        return Err(pages.refused("a docx has no fixed pages; use `offset` and `limit`"));
    }
    let relationships = package.relationships(main)?;
    let parts = |kind: &str| -> Vec<String> {
        let of_kind = relationships.iter().filter(|one| one.kind == kind && package.has(&one.target));
        of_kind.map(|one| one.target.clone()).collect()
    };
    let [styles, numbering, footnotes, endnotes, headers, footers] =
        ["styles", "numbering", "footnotes", "endnotes", "header", "footer"].map(parts);
    let styles = match styles.first() {
        Some(part) => Styles::read(&mut package.xml(part)?)?,
        None => Styles::default(),
    };
    let numbering = match numbering.first() {
        Some(part) => Numbering::read(&mut package.xml(part)?)?,
        None => Numbering::default(),
    };
    let mut reader = BodyReader { styles, numbering, relationships, footnotes: Vec::new(), endnotes: Vec::new() };
    let mut blocks = Vec::new();
    reader.blocks(&mut package.xml(main)?, &mut blocks)?;
    for (mark, part, references) in
        [("", footnotes.first(), reader.footnotes.clone()), ("e", endnotes.first(), reader.endnotes.clone())]
    {
        let Some(part) = part.filter(|_| !references.is_empty()) else { continue };
        reader.relationships = package.relationships(part)?;
        let notes = reader.notes(&mut package.xml(part)?)?;
        for (number, id) in (1..).zip(&references) {
            let note = notes.get(id).map_or("", String::as_str);
            blocks.push(DocxTextBlock::Item(format!("[^{mark}{number}]: {note}")));
        }
    }
    let mut seen = Vec::new();
    for (name, parts) in [("Header", headers), ("Footer", footers)] {
        for part in parts {
            reader.relationships = package.relationships(&part)?;
            let mut margin = Vec::new();
            reader.blocks(&mut package.xml(&part)?, &mut margin)?;
            let text = format!("{name}: {}", on_one_line(&joined(&margin)));
            if !margin.is_empty() && !seen.contains(&text) {
                blocks.push(DocxTextBlock::Text(text.clone()));
                seen.push(text);
            }
        }
    }
    let mut document = Document::new(DocumentKind::Docx, 1);
    document.push(1, "the document", &joined(&blocks));
    Ok(document)
}

/// A block of the body, never empty.
enum DocxTextBlock {
    Text(String),
    /// An item, without a blank line between it and other items.
    Item(String),
}

/// Joins blocks with a blank line between them, and items of a list without.
fn joined(blocks: &[DocxTextBlock]) -> String {
    let mut text = String::new();
    let mut was_item = false;
    for block in blocks {
        let (more, is_item) = match block {
            DocxTextBlock::Text(more) => (more, false),
            DocxTextBlock::Item(more) => (more, true),
        };
        if !text.is_empty() {
            text.push_str(if was_item && is_item { "\n" } else { "\n\n" });
        }
        text.push_str(more);
        was_item = is_item;
    }
    text
}

fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

struct BodyReader {
    styles: Styles,
    numbering: Numbering,
    /// Relationships of the part that is being read.
    relationships: Vec<Relationship>,
    /// Ids of the notes, in the order in which the text refers to them.
    footnotes: Vec<String>,
    endnotes: Vec<String>,
}

/// A paragraph while it is read.
#[derive(Default)]
struct Paragraph {
    text: String,
    style: Option<String>,
    outline_level: Option<usize>,
    list: Option<String>,
    list_level: Option<usize>,
    /// Blocks of the text boxes in the paragraph.
    boxes: Vec<DocxTextBlock>,
    /// Fields whose end was not read yet, the innermost last.
    fields: Vec<Field>,
}

#[derive(Default)]
struct Field {
    instruction: String,
    start: Option<usize>,
}

impl BodyReader {
    /// Reads the blocks in the innermost open element, up to its end. Also reads the contents of grouping elements.
    fn blocks(&mut self, xml: &mut XmlReader<'_>, blocks: &mut Vec<DocxTextBlock>) -> Result<(), DocumentError> {
        while let Some(element) = xml.next_child()? {
            match element.name() {
                "p" => self.paragraph(xml, blocks)?,
                "tbl" => self.table(xml, blocks)?,
                "del" | "moveFrom" | "Fallback" | "sdtPr" | "sectPr" | "tblPr" | "tcPr" => xml.skip()?,
                _ => self.blocks(xml, blocks)?,
            }
        }
        Ok(())
    }

    fn paragraph(&mut self, xml: &mut XmlReader<'_>, blocks: &mut Vec<DocxTextBlock>) -> Result<(), DocumentError> {
        let mut paragraph = Paragraph::default();
        self.runs(xml, &mut paragraph)?;
        let style = paragraph.style.as_deref().unwrap_or_default();
        let text = paragraph.text.trim_end().trim_start_matches('\n');
        let heading = paragraph.outline_level.or_else(|| self.styles.heading(style));
        let list = paragraph.list.clone().or_else(|| self.styles.list(style).map(|(list, _)| list.to_owned()));
        let level = paragraph.list_level.or_else(|| self.styles.list(style).map(|(_, level)| level)).unwrap_or(0);
        if !text.trim().is_empty() {
            let marker = list.and_then(|list| self.numbering.marker(&list, level));
            blocks.push(match (heading, marker) {
                (Some(heading), marker) => {
                    // A bullet before a heading is decoration, a number is part of its name.
                    let number = marker.filter(|marker| marker != "-").map(|marker| marker + " ").unwrap_or_default();
                    DocxTextBlock::Text(format!("{} {number}{}", "#".repeat(heading + 1), on_one_line(text)))
                }
                (None, Some(marker)) => {
                    DocxTextBlock::Item(format!("{}{marker} {}", "  ".repeat(level), text.trim_start()))
                }
                (None, None) => DocxTextBlock::Text(text.to_owned()),
            });
        }
        blocks.append(&mut paragraph.boxes);
        Ok(())
    }

    /// Reads the content of the innermost open element of a paragraph, up to its end.
    fn runs(&mut self, xml: &mut XmlReader<'_>, paragraph: &mut Paragraph) -> Result<(), DocumentError> {
        while let Some(element) = xml.next_child()? {
            match element.name() {
                "pPr" => properties(xml, paragraph)?,
                "t" => paragraph.text.push_str(&xml.text()?),
                "tab" => self.mark(xml, paragraph, "\t")?,
                "br" | "cr" => self.mark(xml, paragraph, "\n")?,
                "noBreakHyphen" => self.mark(xml, paragraph, "-")?,
                "hyperlink" => {
                    let start = paragraph.text.len();
                    let target = element.get_prefixed("id").and_then(|id| self.target(id));
                    let target = target.or_else(|| element.get("anchor").map(|anchor| format!("#{anchor}")));
                    self.runs(xml, paragraph)?;
                    // Links within the document, as in a table of contents, are left out, because they have no target
                    // in the result.
                    link(&mut paragraph.text, start, target.as_deref().filter(|target| !target.starts_with('#')));
                }
                "fldSimple" => {
                    let start = paragraph.text.len();
                    self.runs(xml, paragraph)?;
                    link(&mut paragraph.text, start, hyperlink_in(element.get("instr").unwrap_or_default()));
                }
                "fldChar" => {
                    field(&element, paragraph);
                    xml.skip()?;
                }
                "instrText" => {
                    let text = xml.text()?;
                    if let Some(field) = paragraph.fields.last_mut() {
                        field.instruction.push_str(&text);
                    }
                }
                "footnoteReference" => {
                    let mark = reference(&element, &mut self.footnotes, "");
                    self.mark(xml, paragraph, &mark)?;
                }
                "endnoteReference" => {
                    let mark = reference(&element, &mut self.endnotes, "e");
                    self.mark(xml, paragraph, &mark)?;
                }
                "docPr" => {
                    let description = element.get("descr").map(on_one_line).filter(|text| !text.is_empty());
                    let mark = description.map(|text| format!("[image: {text}]")).unwrap_or_default();
                    self.mark(xml, paragraph, &mark)?;
                }
                "txbxContent" => self.blocks(xml, &mut paragraph.boxes)?,
                "del" | "moveFrom" | "delText" | "delInstrText" | "rPr" | "Fallback" | "sdtPr" | "rt" => xml.skip()?,
                _ => self.runs(xml, paragraph)?,
            }
        }
        Ok(())
    }

    fn mark(&self, xml: &mut XmlReader<'_>, paragraph: &mut Paragraph, text: &str) -> Result<(), DocumentError> {
        paragraph.text.push_str(text);
        xml.skip()
    }

    fn target(&self, id: &str) -> Option<String> {
        self.relationships.iter().find(|one| one.id == id).map(|one| one.target.clone())
    }

    fn table(&mut self, xml: &mut XmlReader<'_>, blocks: &mut Vec<DocxTextBlock>) -> Result<(), DocumentError> {
        let mut rows = Vec::new();
        self.rows(xml, &mut rows)?;
        if rows.iter().any(|row| !row.trim().is_empty()) {
            blocks.push(DocxTextBlock::Text(rows.join("\n")));
        }
        Ok(())
    }

    fn rows(&mut self, xml: &mut XmlReader<'_>, rows: &mut Vec<String>) -> Result<(), DocumentError> {
        while let Some(element) = xml.next_child()? {
            match element.name() {
                "tr" => {
                    let mut cells = Vec::new();
                    if !self.cells(xml, &mut cells)? {
                        rows.push(cells.join("\t"));
                    }
                }
                "tblPr" | "tblGrid" | "del" | "moveFrom" => xml.skip()?,
                _ => self.rows(xml, rows)?,
            }
        }
        Ok(())
    }

    /// Reads the cells of a row. Returns `true` if the row was deleted under change tracking.
    fn cells(&mut self, xml: &mut XmlReader<'_>, cells: &mut Vec<String>) -> Result<bool, DocumentError> {
        let mut is_deleted = false;
        while let Some(element) = xml.next_child()? {
            match element.name() {
                "tc" => {
                    let (mut blocks, mut span) = (Vec::new(), 1);
                    while let Some(element) = xml.next_child()? {
                        match element.name() {
                            "tcPr" => span = self.span(xml)?,
                            "p" => self.paragraph(xml, &mut blocks)?,
                            "tbl" => self.table(xml, &mut blocks)?,
                            _ => self.blocks(xml, &mut blocks)?,
                        }
                    }
                    cells.push(on_one_line(&joined(&blocks)));
                    cells.extend((1..span).map(|_| String::new()));
                }
                "trPr" => {
                    while let Some(element) = xml.next_child()? {
                        is_deleted |= element.name() == "del";
                        xml.skip()?;
                    }
                }
                _ => is_deleted |= self.cells(xml, cells)?,
            }
        }
        Ok(is_deleted)
    }

    fn span(&self, xml: &mut XmlReader<'_>) -> Result<usize, DocumentError> {
        let mut span = 1;
        while let Some(element) = xml.next_child()? {
            if element.name() == "gridSpan" {
                span = element.number("val").unwrap_or(1).clamp(1, MAX_SPAN);
            }
            xml.skip()?;
        }
        Ok(span)
    }

    /// Returns the texts of footnotes or endnotes, by id.
    fn notes(&mut self, xml: &mut XmlReader<'_>) -> Result<BTreeMap<String, String>, DocumentError> {
        let mut notes = BTreeMap::new();
        while let Some(element) = xml.next_open()? {
            if matches!(element.name(), "footnote" | "endnote") {
                let mut blocks = Vec::new();
                self.blocks(xml, &mut blocks)?;
                notes.insert(element.get("id").unwrap_or_default().to_owned(), on_one_line(&joined(&blocks)));
            }
        }
        Ok(notes)
    }
}

/// Reads a paragraph's properties, up to their end.
fn properties(xml: &mut XmlReader<'_>, paragraph: &mut Paragraph) -> Result<(), DocumentError> {
    while let Some(element) = xml.next_child()? {
        match element.name() {
            "pStyle" => paragraph.style = element.get("val").map(str::to_owned),
            "outlineLvl" => paragraph.outline_level = element.number("val").filter(|level| *level < 9),
            "numPr" => {
                while let Some(element) = xml.next_child()? {
                    match element.name() {
                        "ilvl" => paragraph.list_level = element.number("val").map(|level: usize| level.min(8)),
                        "numId" => paragraph.list = element.get("val").map(str::to_owned),
                        _ => {}
                    }
                    xml.skip()?;
                }
                continue;
            }
            _ => {}
        }
        xml.skip()?;
    }
    Ok(())
}

/// Handles the beginning, middle or end of a field that spans several runs.
fn field(element: &XmlStartTag, paragraph: &mut Paragraph) {
    match element.get("fldCharType") {
        Some("begin") => paragraph.fields.push(Field::default()),
        Some("separate") => {
            let start = paragraph.text.len();
            if let Some(field) = paragraph.fields.last_mut() {
                field.start = Some(start);
            }
        }
        Some("end") => {
            if let Some(Field { instruction, start: Some(start) }) = paragraph.fields.pop() {
                link(&mut paragraph.text, start, hyperlink_in(&instruction));
            }
        }
        _ => {}
    }
}

/// Returns the address in a field such as `HYPERLINK "https://…"`.
fn hyperlink_in(instruction: &str) -> Option<&str> {
    let rest = instruction.trim().strip_prefix("HYPERLINK")?.trim_start().strip_prefix('"')?;
    rest.split('"').next().filter(|target| !target.is_empty())
}

/// Turns the text from the byte `start` on into a Markdown link. Does nothing without a target, for blank text, or if
/// the text equals the target.
fn link(text: &mut String, start: usize, target: Option<&str>) {
    let Some(target) = target else { return };
    let shown = text.split_off(start);
    if shown.trim().is_empty() || shown == target {
        text.push_str(&shown);
    } else {
        text.push_str(&format!("[{shown}]({target})"));
    }
}

/// Returns the mark of a note, and records that the text refers to it.
fn reference(element: &XmlStartTag, known: &mut Vec<String>, prefix: &str) -> String {
    let id = element.get("id").unwrap_or_default().to_owned();
    let at = known.iter().position(|other| *other == id).unwrap_or(known.len());
    if at == known.len() {
        known.push(id);
    }
    format!("[^{prefix}{}]", at + 1)
}
