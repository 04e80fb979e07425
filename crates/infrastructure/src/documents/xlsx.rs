//! Excel workbooks: each requested sheet as rows of values, tab-separated.

mod formats;

use crate::documents::{
    Document, DocumentKind, MAX_TEXT_BYTES,
    document_error::DocumentError,
    package::{OfficePackage, Relationship},
    selection::{PartSelection, select_parts},
    xml::{XmlReader, XmlStartTag},
};
use formats::{CellFormats, DateSystem};

/// Maximum number of columns of a sheet in Excel.
const MAX_COLUMNS: usize = 16_384;
/// Maximum number of successive empty rows that are written as empty lines. Of more, only the first and last row number
/// are written.
const MAX_EMPTY_ROWS: u64 = 3;

pub(super) fn read(
    package: &mut OfficePackage,
    main: &str,
    pages: Option<&PartSelection>,
) -> Result<Document, DocumentError> {
    let relationships = package.relationships(main)?;
    let (sheets, dates) = sheets(&mut package.xml(main)?, &relationships)?;
    let total = sheets.len() as u64;
    let numbers = select_parts(pages, DocumentKind::Xlsx, total)?;
    let part = |kind: &str| {
        let of_kind = relationships.iter().find(|one| one.kind == kind && package.has(&one.target));
        of_kind.map(|one| one.target.clone())
    };
    let (strings, styles) = (part("sharedStrings"), part("styles"));
    let strings = match strings {
        Some(part) => shared_strings(&mut package.xml(&part)?)?,
        None => Vec::new(),
    };
    let formats = match styles {
        Some(part) => CellFormats::read(&mut package.xml(&part)?)?,
        None => CellFormats::default(),
    };
    let reader = SheetReader { strings, formats, dates };
    let mut document = Document::new(DocumentKind::Xlsx, total);
    let mut room = MAX_TEXT_BYTES;
    for (number, sheet) in (1..).zip(sheets) {
        if !numbers.contains(&number) {
            continue;
        }
        let hidden = if sheet.is_hidden { " (hidden)" } else { "" };
        let label = format!("sheet {number} `{}`{hidden}", sheet.name);
        let text = match &sheet.part {
            Some(part) if package.has(part) => reader.rows(&mut package.xml(part)?, room)?,
            _ => "[this sheet has no readable cells, such as a chart]".into(),
        };
        room = room.saturating_sub(text.len());
        document.push(number, label, &text);
        if room == 0 {
            document.notes.push("there are too many cells to read at once, and the rest is missing".into());
            break;
        }
    }
    Ok(document)
}

struct SheetEntry {
    name: String,
    is_hidden: bool,
    part: Option<String>,
}

/// Returns the sheets in their order, and the epoch of the workbook.
fn sheets(
    xml: &mut XmlReader<'_>,
    relationships: &[Relationship],
) -> Result<(Vec<SheetEntry>, DateSystem), DocumentError> {
    let (mut sheets, mut dates) = (Vec::new(), DateSystem::From1900);
    while let Some(element) = xml.next_open()? {
        match element.name() {
            "workbookPr" if element.is_true("date1904") => dates = DateSystem::From1904,
            "sheet" => {
                let id = element.get_prefixed("id");
                let related = relationships.iter().find(|one| Some(one.id.as_str()) == id);
                sheets.push(SheetEntry {
                    name: element.get("name").unwrap_or_default().to_owned(),
                    is_hidden: element.get("state").is_some_and(|state| state != "visible"),
                    part: related.filter(|one| one.kind == "worksheet").map(|one| one.target.clone()),
                });
            }
            _ => {}
        }
    }
    Ok((sheets, dates))
}

fn shared_strings(xml: &mut XmlReader<'_>) -> Result<Vec<String>, DocumentError> {
    let mut strings = Vec::new();
    while let Some(element) = xml.next_open()? {
        if element.name() == "si" {
            strings.push(rich_text(xml)?);
        }
    }
    Ok(strings)
}

/// Returns the text of the innermost open element, which consists of runs, without readings (furigana).
fn rich_text(xml: &mut XmlReader<'_>) -> Result<String, DocumentError> {
    let mut text = String::new();
    while let Some(element) = xml.next_child()? {
        match element.name() {
            "t" => text.push_str(&xml.text()?),
            "r" => text.push_str(&rich_text(xml)?),
            _ => xml.skip()?,
        }
    }
    Ok(text)
}

struct SheetReader {
    strings: Vec<String>,
    formats: CellFormats,
    dates: DateSystem,
}

impl SheetReader {
    /// Returns the rows of a sheet, at most `room` bytes.
    fn rows(&self, xml: &mut XmlReader<'_>, room: usize) -> Result<String, DocumentError> {
        let mut text = String::new();
        let mut next_row = 1;
        while let Some(element) = xml.next_open()? {
            if element.name() != "row" {
                continue;
            }
            let row = element.number::<u64>("r").unwrap_or(next_row).max(next_row);
            let cells = self.cells(xml)?;
            if cells.is_empty() {
                continue;
            }
            match row - next_row {
                0 => {}
                gap @ 1..=MAX_EMPTY_ROWS => text.push_str(&"\n".repeat(usize::try_from(gap).unwrap_or(0))),
                _ => text.push_str(&format!("[rows {next_row} to {} are empty]\n", row - 1)),
            }
            text.push_str(&cells);
            text.push('\n');
            next_row = row + 1;
            if text.len() >= room {
                text.truncate(text.floor_char_boundary(room));
                break;
            }
        }
        text.truncate(text.trim_end_matches('\n').len());
        Ok(text)
    }

    /// Returns the cells of a row, each in its column, without empty ones at the end.
    fn cells(&self, xml: &mut XmlReader<'_>) -> Result<String, DocumentError> {
        let mut text = String::new();
        let (mut column, mut written) = (0, 0);
        while let Some(element) = xml.next_child()? {
            if element.name() != "c" {
                xml.skip()?;
                continue;
            }
            column = element.get("r").and_then(column_of).unwrap_or(column + 1).max(column + 1);
            let value = self.value(&element, xml)?;
            if value.is_empty() || column > MAX_COLUMNS {
                continue;
            }
            text.push_str(&"\t".repeat(column - written.max(1)));
            text.push_str(&value);
            written = column;
        }
        Ok(text)
    }

    /// Returns the value of a cell on one line. For a formula, this is the cached result, or else `=` and the formula.
    fn value(&self, cell: &XmlStartTag, xml: &mut XmlReader<'_>) -> Result<String, DocumentError> {
        let (mut value, mut inline, mut formula) = (None, None, String::new());
        while let Some(element) = xml.next_child()? {
            match element.name() {
                "v" => value = Some(xml.text()?),
                "is" => inline = Some(rich_text(xml)?),
                "f" => formula = xml.text()?,
                _ => xml.skip()?,
            }
        }
        let raw = value.unwrap_or_default();
        let shown = match (cell.get("t").unwrap_or("n"), inline) {
            (_, Some(text)) => text,
            ("s", _) => raw.trim().parse().ok().and_then(|at: usize| self.strings.get(at)).cloned().unwrap_or_default(),
            ("b", _) => if raw.trim() == "1" { "TRUE" } else { "FALSE" }.into(),
            ("n", _) if !raw.is_empty() => {
                let style = cell.number("s").unwrap_or(0);
                self.formats.number(style, raw.trim(), self.dates)
            }
            (_, _) => raw,
        };
        if shown.is_empty() && !formula.is_empty() {
            return Ok(format!("={}", plain(&formula)));
        }
        Ok(plain(&shown))
    }
}

/// Reduces white space to single spaces in a text with tabs or line breaks, which separate cells and rows.
fn plain(text: &str) -> String {
    if text.contains(['\n', '\t', '\r']) { text.split_whitespace().collect::<Vec<_>>().join(" ") } else { text.into() }
}

/// Returns the column of a reference such as `AB12`, from 1.
fn column_of(reference: &str) -> Option<usize> {
    let letters = reference.bytes().take_while(u8::is_ascii_alphabetic).take(4);
    let column = letters.fold(0, |column, letter| column * 26 + usize::from(letter.to_ascii_uppercase() - b'A') + 1);
    (1..=MAX_COLUMNS).contains(&column).then_some(column)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn column_references_convert_to_excel_column_numbers() {
        let columns = ["A1", "Z9", "AA1", "XFD1", "XFE1", "7", ""].map(column_of);
        assert_eq!(columns, [Some(1), Some(26), Some(27), Some(16_384), None, None, None]);
    }
}
