//! XML of an Office document, read as a stream: names without their prefixes, and no entities but the five of XML.

use crate::documents::document_error::DocumentError;
use quick_xml::{
    Reader, XmlVersion,
    escape::resolve_predefined_entity,
    events::{BytesStart, Event},
};
use std::io::BufRead;

/// Maximum nesting of elements; real documents have some dozens.
const MAX_DEPTH: usize = 256;

/// Streaming XML reader of one part of an Office document.
pub(super) struct XmlReader<'a> {
    reader: Reader<Box<dyn BufRead + 'a>>,
    buffer: Vec<u8>,
    part: String,
    depth: usize,
}

/// A step of the reader.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum XmlEvent {
    Open(XmlStartTag),
    /// The end of the innermost open element.
    Close,
    Text(String),
    /// The end of the part.
    End,
}

/// Name and attributes of an element.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct XmlStartTag {
    name: String,
    attributes: Vec<(String, String)>,
}

impl XmlStartTag {
    /// Returns the name without its prefix.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the value of the attribute with this local name, preferably of one without a prefix.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let plain = self.attributes.iter().find(|(key, _)| key == name);
        plain.map(|(_, value)| value.as_str()).or_else(|| self.get_prefixed(name))
    }

    /// Returns the value of an attribute that has a prefix: `r:id` is not `id`.
    pub(super) fn get_prefixed(&self, name: &str) -> Option<&str> {
        let is_it = |key: &str| key.split_once(':').is_some_and(|(_, local)| local == name);
        self.attributes.iter().find(|(key, _)| is_it(key)).map(|(_, value)| value.as_str())
    }

    /// Returns `true` if an attribute is `1`, `true` or `on`.
    pub(super) fn is_true(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| matches!(value, "1" | "true" | "on"))
    }

    /// Returns an attribute as a number.
    pub(super) fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.get(name)?.parse().ok()
    }
}

impl<'a> XmlReader<'a> {
    pub(super) fn new(source: impl BufRead + 'a, part: &str) -> Self {
        let mut reader = Reader::from_reader(Box::new(source) as Box<dyn BufRead + 'a>);
        reader.config_mut().expand_empty_elements = true;
        Self { reader, buffer: Vec::new(), part: part.into(), depth: 0 }
    }

    /// Returns the next event. Skips comments, declarations and processing instructions. Fails for a document type, an
    /// unknown entity, and elements that are nested too deep.
    pub(super) fn next(&mut self) -> Result<XmlEvent, DocumentError> {
        loop {
            self.buffer.clear();
            let event = self.reader.read_event_into(&mut self.buffer);
            match event.map_err(|error| fault(&self.part, error))? {
                Event::Start(start) => {
                    self.depth += 1;
                    if self.depth > MAX_DEPTH {
                        let part = &self.part;
                        let reason = format!("the elements of `{part}` are nested more than {MAX_DEPTH} levels deep");
                        return Err(DocumentError::TooLarge(reason));
                    }
                    return element(&start).map(XmlEvent::Open).map_err(|error| fault(&self.part, error));
                }
                // Empty elements are reported as a start and an end.
                Event::Empty(_) => {}
                Event::End(_) => {
                    self.depth -= 1;
                    return Ok(XmlEvent::Close);
                }
                Event::Text(text) => return Ok(XmlEvent::Text(text.xml10_content().into_owned())),
                Event::CData(text) => return Ok(XmlEvent::Text(text.xml10_content().into_owned())),
                Event::GeneralRef(reference) => {
                    let name = reference.xml10_content();
                    if let Some(char) = reference.resolve_char_ref().map_err(|error| fault(&self.part, error))? {
                        return Ok(XmlEvent::Text(char.into()));
                    }
                    let known = resolve_predefined_entity(&name).map(|text| XmlEvent::Text(text.into()));
                    let unknown = || format!("`{}` uses the unknown entity `{}`", self.part, shortened(&name));
                    return known.ok_or_else(|| DocumentError::Damaged(unknown()));
                }
                Event::DocType(_) => {
                    let reason = format!("`{}` declares a document type, which is not allowed", self.part);
                    return Err(DocumentError::Damaged(reason));
                }
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
                Event::Eof if self.depth > 0 => {
                    return Err(DocumentError::Damaged(format!("`{}` is truncated", self.part)));
                }
                Event::Eof => return Ok(XmlEvent::End),
            }
        }
    }

    /// Returns the next element that opens, at any depth; `None` at the end of the part.
    pub(super) fn next_open(&mut self) -> Result<Option<XmlStartTag>, DocumentError> {
        loop {
            match self.next()? {
                XmlEvent::Open(element) => return Ok(Some(element)),
                XmlEvent::End => return Ok(None),
                XmlEvent::Close | XmlEvent::Text(_) => {}
            }
        }
    }

    /// Returns the next child of the innermost open element; `None` when that element ends. Skips text between
    /// children. The caller must read each child to its end.
    pub(super) fn next_child(&mut self) -> Result<Option<XmlStartTag>, DocumentError> {
        loop {
            match self.next()? {
                XmlEvent::Open(element) => return Ok(Some(element)),
                XmlEvent::Close | XmlEvent::End => return Ok(None),
                XmlEvent::Text(_) => {}
            }
        }
    }

    /// Returns the text of the innermost open element, and reads to its end.
    pub(super) fn text(&mut self) -> Result<String, DocumentError> {
        let mut text = String::new();
        let outside = self.depth.saturating_sub(1);
        loop {
            match self.next()? {
                XmlEvent::Text(more) => text.push_str(&more),
                XmlEvent::Close if self.depth == outside => return Ok(text),
                XmlEvent::Open(_) | XmlEvent::Close => {}
                XmlEvent::End => return Ok(text),
            }
        }
    }

    /// Skips the rest of the innermost open element.
    pub(super) fn skip(&mut self) -> Result<(), DocumentError> {
        let outside = self.depth.saturating_sub(1);
        loop {
            match self.next()? {
                XmlEvent::Close if self.depth == outside => return Ok(()),
                XmlEvent::End => return Ok(()),
                XmlEvent::Open(_) | XmlEvent::Close | XmlEvent::Text(_) => {}
            }
        }
    }
}

fn element(start: &BytesStart<'_>) -> Result<XmlStartTag, quick_xml::Error> {
    let mut attributes = Vec::new();
    for attribute in start.attributes().with_checks(false) {
        let attribute = attribute?;
        let value = attribute.normalized_value(XmlVersion::Implicit1_0)?.into_owned();
        attributes.push((attribute.key.as_ref().to_owned(), value));
    }
    Ok(XmlStartTag { name: start.local_name().as_ref().to_owned(), attributes })
}

fn fault(part: &str, error: quick_xml::Error) -> DocumentError {
    if let quick_xml::Error::Io(error) = &error
        && let Some(limit) = error.get_ref().and_then(|inner| inner.downcast_ref::<DocumentError>())
    {
        return limit.clone();
    }
    DocumentError::Damaged(format!("`{part}` is not well-formed: {}", shortened(&error.to_string())))
}

fn shortened(text: &str) -> String {
    text.chars().take(120).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let mut xml = XmlReader::new(text.as_bytes(), "p.xml");
        let mut shown = String::new();
        loop {
            match xml.next() {
                Ok(XmlEvent::Open(element)) => shown.push_str(&format!("<{}>", element.name())),
                Ok(XmlEvent::Close) => shown.push_str("</>"),
                Ok(XmlEvent::Text(text)) => shown.push_str(&text),
                Ok(XmlEvent::End) => return shown,
                Err(error) => return format!("{shown} {error}"),
            }
        }
    }

    #[test]
    fn names_lose_their_prefix_and_entities_become_text() {
        assert_eq!(
            shown("<?xml version='1.0'?><w:a><!-- c --><b/>x&amp;&#65;&#x42;<![CDATA[<]]></w:a>"),
            "<a><b></>x&AB<</>"
        );
        assert_eq!(
            shown("<a>&boom;</a>"),
            "<a> it is damaged or not what it seems: `p.xml` uses the unknown entity `boom`"
        );
        let bomb = "<!DOCTYPE a [<!ENTITY b 'b'>]><a>&b;</a>";
        assert_eq!(
            shown(bomb),
            " it is damaged or not what it seems: `p.xml` declares a document type, which is not allowed"
        );
        assert_eq!(shown("<a><b>"), "<a><b> it is damaged or not what it seems: `p.xml` is truncated");
        assert!(shown("<a></b>").contains("is not well-formed"));
        assert!(shown(&"<a>".repeat(300)).ends_with("are nested more than 256 levels deep"));
    }

    #[test]
    fn a_prefix_distinguishes_attributes_of_the_same_name() {
        let mut xml = XmlReader::new("<s id='256' r:id='rId2'/>".as_bytes(), "p.xml");
        let XmlEvent::Open(element) = xml.next().unwrap() else { panic!("no element") };
        assert_eq!(
            (element.get("id"), element.get_prefixed("id"), element.number("id")),
            (Some("256"), Some("rId2"), Some(256))
        );
    }
}
