//! PowerPoint presentations: slides in their order, with titles, bullets, tables and notes.

use crate::documents::{
    Document, DocumentKind,
    document_error::DocumentError,
    package::{OfficePackage, Relationship},
    selection::{PartSelection, select_parts},
    xml::{XmlReader, XmlStartTag},
};

/// Maximum indentation level of bullets.
const MAX_LEVEL: usize = 8;

pub(super) fn read(
    package: &mut OfficePackage,
    main: &str,
    pages: Option<&PartSelection>,
) -> Result<Document, DocumentError> {
    let relationships = package.relationships(main)?;
    let mut slides = Vec::new();
    let mut xml = package.xml(main)?;
    while let Some(element) = xml.next_open()? {
        if element.name() == "sldId" {
            let id = element.get_prefixed("id");
            slides.extend(relationships.iter().find(|one| Some(one.id.as_str()) == id).map(|one| one.target.clone()));
        }
    }
    drop(xml);
    let total = slides.len() as u64;
    let mut document = Document::new(DocumentKind::Pptx, total);
    for number in select_parts(pages, DocumentKind::Pptx, total)? {
        let part = &slides[usize::try_from(number - 1).unwrap_or(0)];
        let relationships = package.relationships(part)?;
        let notes = relationships.iter().find(|one| one.kind == "notesSlide").map(|one| one.target.clone());
        let slide = Slide::read(&mut package.xml(part)?, &relationships, SlideKind::Slide)?;
        let mut text = slide.text;
        if let Some(notes) = notes.filter(|notes| package.has(notes)) {
            let relationships = package.relationships(&notes)?;
            let notes = Slide::read(&mut package.xml(&notes)?, &relationships, SlideKind::Notes)?;
            if !notes.text.is_empty() {
                text.push_str(&format!("\n\nNotes:\n{}", notes.text));
            }
        }
        let hidden = if slide.is_hidden { " (hidden)" } else { "" };
        document.push(number, format!("slide {number}{hidden}"), text.trim());
    }
    Ok(document)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SlideKind {
    Slide,
    /// The notes alone, without the picture and the number of their slide.
    Notes,
}

struct Slide<'a> {
    relationships: &'a [Relationship],
    shown: SlideKind,
    text: String,
    is_hidden: bool,
}

/// Purpose of a shape.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ShapeRole {
    Title,
    /// The slide's own text, which has bullets by default.
    Body,
    /// A text box.
    Plain,
    /// Date, header, footer, slide number or slide image, which is not shown.
    Margin,
}

impl<'a> Slide<'a> {
    fn read(
        xml: &mut XmlReader<'_>,
        relationships: &'a [Relationship],
        shown: SlideKind,
    ) -> Result<Self, DocumentError> {
        let mut slide = Self { relationships, shown, text: String::new(), is_hidden: false };
        slide.shapes(xml)?;
        Ok(slide)
    }

    /// Reads the shapes in the innermost open element, up to its end.
    fn shapes(&mut self, xml: &mut XmlReader<'_>) -> Result<(), DocumentError> {
        while let Some(element) = xml.next_child()? {
            match element.name() {
                "sld" => {
                    self.is_hidden = element.get("show").is_some_and(|show| matches!(show, "0" | "false"));
                    self.shapes(xml)?;
                }
                "sp" => {
                    let mut role = ShapeRole::Plain;
                    self.shape(xml, &mut role)?;
                }
                "tbl" => {
                    let mut rows = Vec::new();
                    self.rows(xml, &mut rows)?;
                    self.push(&rows.join("\n"));
                }
                "cNvPr" => self.described(&element, xml)?,
                "Fallback" => xml.skip()?,
                _ => self.shapes(xml)?,
            }
        }
        Ok(())
    }

    fn shape(&mut self, xml: &mut XmlReader<'_>, role: &mut ShapeRole) -> Result<(), DocumentError> {
        while let Some(element) = xml.next_child()? {
            match element.name() {
                "ph" => {
                    *role = match element.get("type") {
                        Some("title" | "ctrTitle") => ShapeRole::Title,
                        Some("dt" | "ftr" | "hdr" | "sldNum" | "sldImg") => ShapeRole::Margin,
                        Some("subTitle") => ShapeRole::Plain,
                        _ => ShapeRole::Body,
                    };
                    xml.skip()?;
                }
                "cNvPr" => self.described(&element, xml)?,
                "txBody" => {
                    let lines = self.paragraphs(xml, *role)?;
                    match (*role, self.shown) {
                        (ShapeRole::Margin, _) | (ShapeRole::Title | ShapeRole::Plain, SlideKind::Notes) => {}
                        (ShapeRole::Title, SlideKind::Slide) if !lines.is_empty() => {
                            self.push(&format!("# {}", lines.join(" ")))
                        }
                        _ => self.push(&lines.join("\n")),
                    }
                }
                _ => self.shape(xml, role)?,
            }
        }
        Ok(())
    }

    /// Adds the description that the author gave a picture or shape to the text of a slide. Skips it in notes.
    fn described(&mut self, element: &XmlStartTag, xml: &mut XmlReader<'_>) -> Result<(), DocumentError> {
        let description = element.get("descr").unwrap_or_default().trim();
        if !description.is_empty() && self.shown == SlideKind::Slide {
            self.push(&format!("[image: {description}]"));
        }
        xml.skip()
    }

    /// Returns paragraphs as lines, with their bullets.
    fn paragraphs(&self, xml: &mut XmlReader<'_>, role: ShapeRole) -> Result<Vec<String>, DocumentError> {
        let mut lines = Vec::new();
        // Number of consecutive numbered paragraphs of each level.
        let mut counted = [0_u32; MAX_LEVEL + 1];
        while let Some(element) = xml.next_child()? {
            if element.name() != "p" {
                xml.skip()?;
                continue;
            }
            let has_bullets = role == ShapeRole::Body && self.shown == SlideKind::Slide;
            let mut paragraph = Paragraph {
                text: String::new(),
                level: 0,
                bullet: if has_bullets { Bullet::Dot } else { Bullet::None },
            };
            self.runs(xml, &mut paragraph)?;
            let text = paragraph.text.trim();
            if text.is_empty() {
                continue;
            }
            let indent = "  ".repeat(paragraph.level);
            counted[paragraph.level + 1..].fill(0);
            if paragraph.bullet == Bullet::Number {
                counted[paragraph.level] += 1;
            } else {
                counted[paragraph.level] = 0;
            }
            lines.push(match paragraph.bullet {
                _ if role == ShapeRole::Title => text.to_owned(),
                Bullet::None => text.to_owned(),
                Bullet::Dot => format!("{indent}- {text}"),
                Bullet::Number => format!("{indent}{}. {text}", counted[paragraph.level]),
            });
        }
        Ok(lines)
    }

    fn runs(&self, xml: &mut XmlReader<'_>, paragraph: &mut Paragraph) -> Result<(), DocumentError> {
        let start = paragraph.text.len();
        let mut target = None;
        while let Some(element) = xml.next_child()? {
            match element.name() {
                "pPr" => {
                    paragraph.level = element.number("lvl").unwrap_or(0).min(MAX_LEVEL);
                    bullet(xml, paragraph)?;
                }
                "t" => paragraph.text.push_str(&xml.text()?),
                "br" => {
                    paragraph.text.push('\n');
                    xml.skip()?;
                }
                "rPr" => target = self.link(xml)?,
                "endParaRPr" => xml.skip()?,
                _ => self.runs(xml, paragraph)?,
            }
        }
        if let Some(target) = target {
            let shown = paragraph.text.split_off(start);
            let text = if shown == target { shown } else { format!("[{shown}]({target})") };
            paragraph.text.push_str(&text);
        }
        Ok(())
    }

    /// Returns the address of a run's link, if it leads out of the presentation.
    fn link(&self, xml: &mut XmlReader<'_>) -> Result<Option<String>, DocumentError> {
        let mut target = None;
        while let Some(element) = xml.next_child()? {
            if element.name() == "hlinkClick" {
                target = self.target(&element);
            }
            xml.skip()?;
        }
        Ok(target)
    }

    fn target(&self, element: &XmlStartTag) -> Option<String> {
        let id = element.get_prefixed("id")?;
        let related = self.relationships.iter().find(|one| one.id == id && one.kind == "hyperlink")?;
        Some(related.target.clone())
    }

    fn rows(&self, xml: &mut XmlReader<'_>, rows: &mut Vec<String>) -> Result<(), DocumentError> {
        while let Some(element) = xml.next_child()? {
            match element.name() {
                "tr" => {
                    let mut cells = Vec::new();
                    self.cells(xml, &mut cells)?;
                    rows.push(cells.join("\t"));
                }
                _ => self.rows(xml, rows)?,
            }
        }
        Ok(())
    }

    fn cells(&self, xml: &mut XmlReader<'_>, cells: &mut Vec<String>) -> Result<(), DocumentError> {
        while let Some(element) = xml.next_child()? {
            match element.name() {
                "tc" => cells.push(String::new()),
                "txBody" => {
                    let text = self.paragraphs(xml, ShapeRole::Plain)?.join(" ");
                    if let Some(cell) = cells.last_mut() {
                        *cell = text.split_whitespace().collect::<Vec<_>>().join(" ");
                    }
                    continue;
                }
                _ => {}
            }
            self.cells(xml, cells)?;
        }
        Ok(())
    }

    fn push(&mut self, text: &str) {
        if !text.trim().is_empty() {
            let gap = if self.text.is_empty() { "" } else { "\n\n" };
            self.text.push_str(&format!("{gap}{text}"));
        }
    }
}

struct Paragraph {
    text: String,
    level: usize,
    bullet: Bullet,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Bullet {
    None,
    Dot,
    Number,
}

fn bullet(xml: &mut XmlReader<'_>, paragraph: &mut Paragraph) -> Result<(), DocumentError> {
    while let Some(element) = xml.next_child()? {
        match element.name() {
            "buNone" => paragraph.bullet = Bullet::None,
            "buChar" | "buBlip" => paragraph.bullet = Bullet::Dot,
            "buAutoNum" => paragraph.bullet = Bullet::Number,
            _ => {}
        }
        xml.skip()?;
    }
    Ok(())
}
