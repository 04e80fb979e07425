//! The zip archive of an Office document. Limits are checked on the actual sizes while it is unpacked, because the
//! sizes in its headers are untrusted.

use crate::documents::{
    document_error::DocumentError,
    document_limits::DocumentLimits,
    xml::{XmlEvent, XmlReader},
};
use std::{
    cell::Cell,
    io::{self, BufReader, Cursor, Read, Seek, SeekFrom},
    rc::Rc,
};
use zip::{ZipArchive, result::ZipError};

/// Number of unpacked bytes of an entry below which the ratio is not checked: short texts with much repetition are not
/// bombs.
const FREE_OF_RATIO_BYTES: u64 = 1 << 20;
/// Maximum number of relationships of one part.
const MAX_RELATIONSHIPS: usize = 100_000;

/// Parts of an Office document, by name.
pub(super) struct OfficePackage {
    archive: ZipArchive<CountingReader<Cursor<Vec<u8>>>>,
    /// Number of packed bytes read so far.
    packed: Rc<Cell<u64>>,
    /// Number of unpacked bytes so far, of all entries.
    unpacked: u64,
    limits: DocumentLimits,
}

/// A relationship from one part to another, or to an address outside of the document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Relationship {
    pub(super) id: String,
    /// Last word of its type: `hyperlink`, `styles`, `slide`.
    pub(super) kind: String,
    /// Name of the part; an address if it leads out of the document.
    pub(super) target: String,
}

impl OfficePackage {
    pub(super) fn open(bytes: Vec<u8>, limits: &DocumentLimits) -> Result<Self, DocumentError> {
        let packed = Rc::new(Cell::new(0));
        let archive =
            ZipArchive::new(CountingReader { inner: Cursor::new(bytes), count: packed.clone() }).map_err(damaged)?;
        if archive.len() as u64 > limits.zip_entries {
            let (entries, most) = (archive.len(), limits.zip_entries);
            return Err(DocumentError::TooLarge(format!("its archive has {entries} entries, at most {most} are read")));
        }
        if archive.has_duplicate_names() {
            return Err(DocumentError::Damaged("its archive has two entries with the same name".into()));
        }
        Ok(Self { archive, packed, unpacked: 0, limits: limits.clone() })
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.archive.index_for_name(name).is_some()
    }

    /// Returns a part as XML.
    pub(super) fn xml(&mut self, name: &str) -> Result<XmlReader<'_>, DocumentError> {
        Ok(XmlReader::new(BufReader::new(self.entry(name)?), name))
    }

    /// Returns the first bytes of a part.
    pub(super) fn beginning(&mut self, name: &str, bytes: u64) -> Result<Vec<u8>, DocumentError> {
        let mut content = Vec::new();
        let read = self.entry(name)?.take(bytes).read_to_end(&mut content);
        read.map_err(|error| DocumentError::Damaged(format!("`{name}` cannot be unpacked: {error}")))?;
        Ok(content)
    }

    fn entry<'a>(&'a mut self, name: &str) -> Result<impl Read + use<'a>, DocumentError> {
        let entry = self.archive.by_name(name).map_err(|error| match error {
            ZipError::FileNotFound => DocumentError::Damaged(format!("its part `{name}` is missing")),
            ZipError::UnsupportedArchive(ZipError::PASSWORD_REQUIRED) => DocumentError::Encrypted,
            error => damaged(error),
        })?;
        let (start, packed) = (self.packed.get(), self.packed.clone());
        Ok(LimitedEntry {
            entry,
            name: name.into(),
            came_out: 0,
            unpacked: &mut self.unpacked,
            packed: move || packed.get() - start,
            limits: self.limits.clone(),
        })
    }

    /// Returns the document's title, if it has one.
    pub(super) fn title(&mut self) -> Result<Option<String>, DocumentError> {
        if !self.has("docProps/core.xml") {
            return Ok(None);
        }
        let mut xml = self.xml("docProps/core.xml")?;
        while let Some(element) = xml.next_open()? {
            if element.name() == "title" {
                let title = xml.text()?;
                return Ok(
                    Some(title.split_whitespace().collect::<Vec<_>>().join(" ")).filter(|title| !title.is_empty())
                );
            }
        }
        Ok(None)
    }

    /// Returns the relationships of a part; none for a part without them. The empty name is the package itself.
    pub(super) fn relationships(&mut self, part: &str) -> Result<Vec<Relationship>, DocumentError> {
        let (folder, file) = part.rsplit_once('/').unwrap_or(("", part));
        let name = if folder.is_empty() { format!("_rels/{file}.rels") } else { format!("{folder}/_rels/{file}.rels") };
        let mut relationships = Vec::new();
        if !self.has(&name) {
            return Ok(relationships);
        }
        let mut xml = self.xml(&name)?;
        loop {
            let element = match xml.next()? {
                XmlEvent::Open(element) if element.name() == "Relationship" => element,
                XmlEvent::End => return Ok(relationships),
                XmlEvent::Open(_) | XmlEvent::Close | XmlEvent::Text(_) => continue,
            };
            let get = |name: &str| element.get(name).unwrap_or_default();
            let kind = get("Type").rsplit('/').next().unwrap_or_default().to_owned();
            let is_outside = get("TargetMode") == "External";
            let target = if is_outside { get("Target").to_owned() } else { resolved(folder, get("Target")) };
            relationships.push(Relationship { id: get("Id").to_owned(), kind, target });
            if relationships.len() > MAX_RELATIONSHIPS {
                return Err(DocumentError::TooLarge(format!(
                    "`{name}` has more than {MAX_RELATIONSHIPS} relationships"
                )));
            }
        }
    }
}

/// Returns the name of a part that another in `folder` refers to. Nothing is unpacked to disk, so a name can only lead
/// to another entry.
fn resolved(folder: &str, target: &str) -> String {
    if let Some(absolute) = target.strip_prefix('/') {
        return absolute.to_owned();
    }
    let mut names: Vec<&str> = folder.split('/').filter(|name| !name.is_empty()).collect();
    for name in target.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()),
            name => names.push(name),
        }
    }
    names.join("/")
}

fn damaged(error: ZipError) -> DocumentError {
    DocumentError::Damaged(format!("its archive cannot be opened: {error}"))
}

/// Reader of an entry's content, which fails beyond the limits.
struct LimitedEntry<'a, R, P> {
    entry: R,
    name: String,
    came_out: u64,
    unpacked: &'a mut u64,
    packed: P,
    limits: DocumentLimits,
}

impl<R: Read, P: Fn() -> u64> Read for LimitedEntry<'_, R, P> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.entry.read(buffer)?;
        self.came_out += read as u64;
        *self.unpacked += read as u64;
        let (name, limits) = (&self.name, &self.limits);
        let over = if self.came_out > limits.zip_entry_bytes {
            format!("`{name}` unpacks to more than {} bytes", limits.zip_entry_bytes)
        } else if *self.unpacked > limits.zip_total_bytes {
            format!("its archive unpacks to more than {} bytes", limits.zip_total_bytes)
        } else if self.came_out > FREE_OF_RATIO_BYTES && self.came_out / limits.zip_ratio > (self.packed)().max(1) {
            format!("`{name}` grows more than {} times when unpacked, like a zip bomb", limits.zip_ratio)
        } else {
            return Ok(read);
        };
        Err(io::Error::other(DocumentError::TooLarge(over)))
    }
}

/// Counts the bytes that are read.
struct CountingReader<R> {
    inner: R,
    count: Rc<Cell<u64>>,
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.count.set(self.count.get() + read as u64);
        Ok(read)
    }
}

impl<R: Seek> Seek for CountingReader<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.inner.seek(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relationship_targets_resolve_relative_to_the_folder_of_their_part() {
        for (folder, target, expected) in [
            ("word", "styles.xml", "word/styles.xml"),
            ("ppt/slides", "../notesSlides/notesSlide1.xml", "ppt/notesSlides/notesSlide1.xml"),
            ("xl", "/xl/worksheets/sheet1.xml", "xl/worksheets/sheet1.xml"),
            ("", "../../etc/passwd", "etc/passwd"),
        ] {
            assert_eq!(resolved(folder, target), expected);
        }
    }
}
