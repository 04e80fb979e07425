//! Styles of a Word document: which of them are headings, and which are lists.

use crate::documents::{document_error::DocumentError, xml::XmlReader};
use std::collections::HashMap;

/// Maximum length of a chain of derived styles, which ends cycles.
const MAX_DERIVATIONS: usize = 32;

/// Paragraph styles by id.
#[derive(Debug, Default)]
pub(super) struct Styles(HashMap<String, Style>);

#[derive(Debug, Default)]
struct Style {
    based_on: Option<String>,
    outline_level: Option<usize>,
    list: Option<(String, usize)>,
}

impl Styles {
    pub(super) fn read(xml: &mut XmlReader<'_>) -> Result<Self, DocumentError> {
        let mut styles = HashMap::new();
        while let Some(element) = xml.next_open()? {
            if element.name() == "style" {
                let mut style = Style::default();
                properties(xml, &mut style)?;
                styles.insert(element.get("styleId").unwrap_or_default().to_owned(), style);
            }
        }
        Ok(Self(styles))
    }

    /// Returns the level of a heading, from 0; `None` for any other style.
    pub(super) fn heading(&self, id: &str) -> Option<usize> {
        self.first(id, |style| style.outline_level).filter(|level| *level < 9)
    }

    /// Returns the list that paragraphs of the style belong to, and their level in it.
    pub(super) fn list(&self, id: &str) -> Option<(&str, usize)> {
        self.first(id, |style| style.list.as_ref().map(|(list, level)| (list.as_str(), *level)))
    }

    /// Returns a property of the style, or of its nearest ancestor that has it.
    fn first<'a, T>(&'a self, id: &str, says: impl Fn(&'a Style) -> Option<T>) -> Option<T> {
        let mut style = self.0.get(id)?;
        for _ in 0..MAX_DERIVATIONS {
            if let Some(said) = says(style) {
                return Some(said);
            }
            style = self.0.get(style.based_on.as_deref()?)?;
        }
        None
    }
}

fn properties(xml: &mut XmlReader<'_>, style: &mut Style) -> Result<(), DocumentError> {
    while let Some(element) = xml.next_child()? {
        let value = element.get("val").unwrap_or_default();
        match element.name() {
            // Word's own headings are recognised by name, because only some versions also write their level.
            "name" => style.outline_level = level_of(value).or(style.outline_level),
            "basedOn" => style.based_on = Some(value.to_owned()),
            "outlineLvl" => style.outline_level = value.parse().ok(),
            "numId" => style.list.get_or_insert_default().0 = value.to_owned(),
            "ilvl" => style.list.get_or_insert_default().1 = value.parse().unwrap_or(0).min(8),
            _ => {}
        }
        properties(xml, style)?;
    }
    Ok(())
}

fn level_of(name: &str) -> Option<usize> {
    let name = name.to_lowercase();
    if name == "title" {
        return Some(0);
    }
    let level: usize = name.strip_prefix("heading ")?.parse().ok()?;
    level.checked_sub(1)
}
