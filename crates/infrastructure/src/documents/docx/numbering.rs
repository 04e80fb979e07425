//! Lists of a Word document: the marker before each item.

use crate::documents::{document_error::DocumentError, xml::XmlReader};
use std::collections::HashMap;

const LEVELS: usize = 9;

/// Lists by id, with their counters.
#[derive(Debug, Default)]
pub(super) struct Numbering {
    abstracts: HashMap<String, [ListLevel; LEVELS]>,
    lists: HashMap<String, String>,
    counted: HashMap<String, [Option<u64>; LEVELS]>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct ListLevel {
    format: NumberFormat,
    start: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum NumberFormat {
    #[default]
    Bullet,
    Decimal,
    LowerLetter,
    UpperLetter,
    /// No marker at all.
    Nothing,
}

impl Numbering {
    pub(super) fn read(xml: &mut XmlReader<'_>) -> Result<Self, DocumentError> {
        let mut numbering = Self::default();
        while let Some(element) = xml.next_open()? {
            match element.name() {
                "abstractNum" => {
                    let levels = levels(xml)?;
                    numbering.abstracts.insert(element.get("abstractNumId").unwrap_or_default().to_owned(), levels);
                }
                "num" => {
                    while let Some(child) = xml.next_child()? {
                        if child.name() == "abstractNumId" {
                            let list = element.get("numId").unwrap_or_default().to_owned();
                            numbering.lists.insert(list, child.get("val").unwrap_or_default().to_owned());
                        }
                        xml.skip()?;
                    }
                }
                _ => {}
            }
        }
        Ok(numbering)
    }

    /// Counts the next item of a list and returns its marker; `None` if the list is unknown or its items have no
    /// marker. `level` begins at 0.
    pub(super) fn marker(&mut self, list: &str, level: usize) -> Option<String> {
        let levels = self.abstracts.get(self.lists.get(list)?)?;
        let level = level.min(LEVELS - 1);
        let ListLevel { format, start } = levels[level];
        let counted = self.counted.entry(list.to_owned()).or_default();
        let number = counted[level].map_or(start, |last| last.saturating_add(1));
        counted[level] = Some(number);
        counted[level + 1..].fill(None);
        let letter = |first: u8| {
            let offset = u8::try_from(number.checked_sub(1)?).ok().filter(|offset| *offset < 26)?;
            Some(format!("{}.", char::from(first + offset)))
        };
        Some(match format {
            NumberFormat::Nothing => return None,
            NumberFormat::Bullet => "-".into(),
            NumberFormat::Decimal => format!("{number}."),
            NumberFormat::LowerLetter => letter(b'a').unwrap_or_else(|| "-".into()),
            NumberFormat::UpperLetter => letter(b'A').unwrap_or_else(|| "-".into()),
        })
    }
}

fn levels(xml: &mut XmlReader<'_>) -> Result<[ListLevel; LEVELS], DocumentError> {
    let mut levels = [ListLevel::default(); LEVELS];
    while let Some(element) = xml.next_child()? {
        let at = element.number::<usize>("ilvl").filter(|at| element.name() == "lvl" && *at < LEVELS);
        let Some(at) = at else {
            xml.skip()?;
            continue;
        };
        let mut level = ListLevel { format: NumberFormat::Bullet, start: 1 };
        while let Some(element) = xml.next_child()? {
            match (element.name(), element.get("val").unwrap_or_default()) {
                ("start", value) => level.start = value.parse().unwrap_or(1),
                ("numFmt", "decimal" | "decimalZero") => level.format = NumberFormat::Decimal,
                ("numFmt", "lowerLetter") => level.format = NumberFormat::LowerLetter,
                ("numFmt", "upperLetter") => level.format = NumberFormat::UpperLetter,
                ("numFmt", "none") => level.format = NumberFormat::Nothing,
                _ => {}
            }
            xml.skip()?;
        }
        levels[at] = level;
    }
    Ok(levels)
}
