//! Documents made by real programs, and hostile ones.
#![expect(clippy::disallowed_methods, reason = "tests read their fixtures behind the tools' back")]

use super::*;
use crate::documents::rendering::{DocumentRenderOptions, render};
use std::{
    fs,
    io::{Cursor, Write},
    path::PathBuf,
};
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/documents")
}

fn fixture(name: &str) -> Vec<u8> {
    fs::read(folder().join(name)).unwrap()
}

fn read(bytes: &[u8], pages: Option<&str>) -> Result<Document, DocumentError> {
    let limits = DocumentLimits::default();
    let pages = pages.map(PartSelection::parse).transpose()?;
    parsed(&DocumentParseOptions { pages, limits }, &mut Cursor::new(bytes))
}

/// Compares with a file in `expected/`; `TOOLSTEAD_WRITE_FIXTURES=1` writes it instead.
#[track_caller]
fn check(name: &str, pages: Option<&str>) {
    let document = read(&fixture(name), pages).unwrap();
    let window = DocumentRenderOptions { offset: 1, limit: 10_000, is_selected: pages.is_some(), characters: 28_000 };
    let text = format!("{}\n", render(&document, &window).text);
    let file =
        folder().join(format!("expected/{name}{}.txt", pages.map(|pages| format!(".{pages}")).unwrap_or_default()));
    if std::env::var_os("TOOLSTEAD_WRITE_FIXTURES").is_some() {
        fs::write(&file, &text).unwrap();
    }
    assert_eq!(text, fs::read_to_string(&file).unwrap(), "{}", file.display());
}

#[test]
fn a_word_document_is_read_in_the_order_of_its_body() {
    check("report.docx", None);
}

#[test]
fn a_workbook_is_read_by_sheets() {
    check("budget.xlsx", None);
    check("budget.xlsx", Some("2"));
}

#[test]
fn a_presentation_is_read_by_slides() {
    check("talk.pptx", None);
    check("talk.pptx", Some("2"));
}

#[test]
fn a_notebook_is_read_by_cells() {
    check("notebook.ipynb", None);
    check("notebook.ipynb", Some("2,5"));
}

#[test]
fn a_pdf_is_read_by_pages() {
    check("chromium.pdf", None);
    check("chromium.pdf", Some("2"));
    check("writer.pdf", None);
    // Only printing and the like need its password.
    assert_eq!(
        read(&fixture("restricted.pdf"), None).unwrap().parts,
        read(&fixture("chromium.pdf"), None).unwrap().parts
    );
}

#[track_caller]
fn refused(bytes: &[u8], text: &str) {
    let found = read(bytes, None).expect_err("it was read").to_string();
    assert!(found.contains(text), "{found}");
}

#[test]
fn rejects_encrypted_and_unsupported_documents_with_the_reason() {
    refused(&fixture("encrypted.pdf"), "it is encrypted, and a password is needed");
    refused(&fixture("encrypted.docx"), "it is encrypted, and a password is needed");
    refused(&fixture("report.doc"), "it is a Word document from before 2007 (.doc), which is not supported");
    refused(&fixture("report.odt"), "it is an OpenDocument text (.odt), which is not supported");
    refused(&zipped(&[("a.txt", b"a")]), "it is a zip archive without a known document");
    refused(b"", "it is not a valid JSON notebook");
}

#[test]
fn truncated_documents_are_reported_as_damaged_except_repaired_pdfs() {
    for name in ["report.docx", "budget.xlsx", "talk.pptx", "notebook.ipynb", "chromium.pdf"] {
        let whole = fixture(name);
        for part in [whole.len() / 2, whole.len() - 100, 20] {
            // Some readers repair a PDF; then its text must be that of the document.
            match read(&whole[..part], None) {
                Err(DocumentError::Damaged(_)) => {}
                Ok(document) => assert!(name.ends_with("pdf") && document.total_parts <= 3, "{name} {document:?}"),
                Err(error) => panic!("{name}: {error}"),
            }
        }
    }
}

fn zipped(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
    for (name, content) in entries {
        writer.start_file(*name, options).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

const RELATIONSHIPS: &str =
    "<Relationships><Relationship Id='1' Type='http://x/officeDocument' Target='word/document.xml'/></Relationships>";

/// Returns a docx with this main part.
fn docx(document: &str) -> Vec<u8> {
    zipped(&[("_rels/.rels", RELATIONSHIPS.as_bytes()), ("word/document.xml", document.as_bytes())])
}

#[track_caller]
fn check_docx(body: &str, expected: &str) {
    let document = read(&docx(&format!("<w:document><w:body>{body}</w:body></w:document>")), None).unwrap();
    assert_eq!(document.parts[0].text, expected);
}

#[test]
fn reads_docx_elements_that_word_writes_but_libreoffice_does_not() {
    check_docx("<w:p><w:r><w:t>a</w:t><w:noBreakHyphen/><w:t>b &lt;c&gt;</w:t></w:r></w:p><w:p/>", "a-b <c>");
    check_docx(
        "<w:p><w:del><w:r><w:delText>old</w:delText></w:r></w:del><w:ins><w:r><w:t>new</w:t></w:r></w:ins></w:p>",
        "new",
    );
    check_docx(
        "<w:p><w:pPr><w:outlineLvl w:val='1'/><w:tabs><w:tab w:val='left'/></w:tabs></w:pPr><w:r><w:t>Head</w:t></w:r></w:p>\
         <w:sdt><w:sdtPr><w:alias/></w:sdtPr><w:sdtContent><w:p><w:r><w:t>control</w:t></w:r></w:p></w:sdtContent></w:sdt>",
        "## Head\n\ncontrol",
    );
    let field = |kind: &str| format!("<w:r><w:fldChar w:fldCharType='{kind}'/></w:r>");
    check_docx(
        &format!(
            "<w:p>{}<w:r><w:instrText> HYPERLINK \"https://a.example\" </w:instrText></w:r>{}<w:r><w:t>here</w:t></w:r>{}</w:p>",
            field("begin"),
            field("separate"),
            field("end")
        ),
        "[here](https://a.example)",
    );
    check_docx(
        "<w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val='2'/></w:tcPr><w:p><w:r><w:t>wide</w:t></w:r></w:p></w:tc>\
         <w:tc><w:tbl><w:tr><w:tc><w:p><w:r><w:t>in</w:t></w:r></w:p></w:tc></w:tr></w:tbl><w:p/></w:tc></w:tr>\
         <w:tr><w:trPr><w:del/></w:trPr><w:tc><w:p><w:r><w:t>gone</w:t></w:r></w:p></w:tc></w:tr></w:tbl>",
        "wide\t\tin",
    );
    check_docx(
        "<w:p><w:r><mc:AlternateContent><mc:Choice><w:drawing><wp:docPr descr='a map'/><wps:txbx><w:txbxContent><w:p><w:r>\
         <w:t>boxed</w:t></w:r></w:p></w:txbxContent></wps:txbx></w:drawing></mc:Choice><mc:Fallback><w:t>boxed</w:t>\
         </mc:Fallback></mc:AlternateContent></w:r></w:p>",
        "[image: a map]\n\nboxed",
    );
}

#[test]
fn links_numbering_and_image_descriptions_of_a_slide_are_returned() {
    let relationships = |targets: &[(&str, &str)]| {
        let one = |(kind, target): &(&str, &str)| {
            format!("<Relationship Id='{kind}' Type='http://x/{kind}' Target='{target}' TargetMode='Internal'/>")
        };
        format!("<Relationships>{}</Relationships>", targets.iter().map(one).collect::<String>())
    };
    let slide = "<p:sld><p:sp><p:nvSpPr><p:nvPr><p:ph idx='1'/></p:nvPr></p:nvSpPr><p:txBody>\
        <a:p><a:pPr><a:buAutoNum/></a:pPr><a:r><a:t>one</a:t></a:r></a:p>\
        <a:p><a:pPr><a:buAutoNum/></a:pPr><a:r><a:rPr><a:hlinkClick r:id='hyperlink'/></a:rPr><a:t>two</a:t></a:r></a:p>\
        <a:p><a:r><a:t>dot</a:t></a:r></a:p><a:p><a:pPr lvl='1'><a:buNone/></a:pPr><a:r><a:t>none</a:t></a:r></a:p>\
        </p:txBody></p:sp><p:sp><p:nvSpPr><p:nvPr><p:ph type='sldNum'/></p:nvPr></p:nvSpPr><p:txBody><a:p><a:r><a:t>1</a:t>\
        </a:r></a:p></p:txBody></p:sp><p:pic><p:nvPicPr><p:cNvPr descr='a red buoy'/></p:nvPicPr></p:pic></p:sld>";
    let talk = zipped(&[
        ("_rels/.rels", relationships(&[("officeDocument", "ppt/presentation.xml")]).as_bytes()),
        ("ppt/presentation.xml", b"<p><p:sldIdLst><p:sldId id='256' r:id='slide'/></p:sldIdLst></p>"),
        ("ppt/_rels/presentation.xml.rels", relationships(&[("slide", "slides/slide1.xml")]).as_bytes()),
        ("ppt/slides/slide1.xml", slide.as_bytes()),
        ("ppt/slides/_rels/slide1.xml.rels", relationships(&[("hyperlink", "/light")]).as_bytes()),
    ]);
    let document = read(&talk, None).unwrap();
    let text = "1. one\n2. [two](light)\n- dot\nnone\n\n[image: a red buoy]";
    assert_eq!((document.parts[0].label.as_str(), document.parts[0].text.as_str()), ("slide 1", text));
}

#[test]
fn rejects_malicious_or_malformed_documents() {
    refused(&docx(&format!("<a>{}</a>", " ".repeat(3 << 20))), "`word/document.xml` grows more than 100 times");
    refused(&docx(&"<a>".repeat(100_000)), "are nested more than 256 levels deep");
    let bomb = "<!DOCTYPE a [<!ENTITY b 'bbbb'><!ENTITY c '&b;&b;&b;&b;'>]><a>&c;</a>";
    refused(&docx(bomb), "declares a document type, which is not allowed");
    refused(&docx("<a>&#0;</a>"), "is not well-formed");
    refused(&zipped(&[("_rels/.rels", RELATIONSHIPS.as_bytes())]), "its part `word/document.xml` is missing");
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for number in 0..100_000 {
        writer
            .start_file(number.to_string(), SimpleFileOptions::default().compression_method(CompressionMethod::Stored))
            .unwrap();
    }
    refused(&writer.finish().unwrap().into_inner(), "its archive has 100000 entries, at most 10000 are read");
}

#[test]
fn two_entries_of_one_name_are_refused() {
    let twins = zipped(&[
        ("_rels/.rels", RELATIONSHIPS.as_bytes()),
        ("word/document.xml", b"<a/>"),
        ("word/documents.xm", b"<b/>"),
    ]);
    let twins = replaced(&twins, b"word/documents.xm", b"word/document.xml");
    refused(&twins, "two entries with the same name");
}

#[test]
fn rejects_entries_larger_than_their_declared_size() {
    // Both headers of the entry say that it unpacks to one byte.
    let text = format!("<a>{}</a>", " ".repeat(2 << 20));
    let honest = docx(&text);
    let size = u32::try_from(text.len()).unwrap().to_le_bytes();
    let lying = replaced(&honest, &size, &1_u32.to_le_bytes());
    assert_ne!(honest, lying);
    refused(&lying, "larger than its declared uncompressed size");
}

#[test]
fn an_encrypted_entry_is_refused_as_such() {
    let plain = docx("<a/>");
    // The flag of the first entry, in both of its headers.
    let mut locked = plain.clone();
    for signature in [&b"PK\x03\x04"[..], b"PK\x01\x02"] {
        let at = plain.windows(4).position(|window| window == signature).unwrap();
        locked[at + if signature[2] == 3 { 6 } else { 8 }] |= 1;
    }
    refused(&locked, "it is encrypted, and a password is needed");
}

#[test]
fn rejects_archives_over_the_entry_total_or_document_size_limit() {
    let limits = DocumentLimits { zip_total_bytes: 1000, zip_entry_bytes: 900, ..DocumentLimits::default() };
    let text_of = |document: &str| {
        let order = DocumentParseOptions { pages: None, limits: limits.clone() };
        parsed(&order, &mut Cursor::new(docx(document))).unwrap_err().to_string()
    };
    assert!(
        text_of(&format!("<a>{}</a>", "x".repeat(895))).contains("`word/document.xml` unpacks to more than 900 bytes")
    );
    assert!(text_of(&format!("<a>{}</a>", "x".repeat(888))).contains("its archive unpacks to more than 1000 bytes"));
    let order = DocumentParseOptions { pages: None, limits: DocumentLimits { document_bytes: 10, ..limits } };
    let error = parsed(&order, &mut Cursor::new(docx("<a/>"))).unwrap_err();
    assert_eq!(error.to_string(), "it is over a limit: it has more than 10 bytes");
}

fn replaced(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut bytes = bytes.to_vec();
    let places: Vec<usize> =
        bytes.windows(from.len()).enumerate().filter(|(_, window)| *window == from).map(|(at, _)| at).collect();
    for at in places {
        bytes[at..at + to.len()].copy_from_slice(to);
    }
    bytes
}

/// Returns a PDF of these objects, the first of which is the catalog.
fn pdf(objects: &[&str]) -> Vec<u8> {
    let mut bytes = b"%PDF-1.4\n".to_vec();
    let mut offsets = Vec::new();
    for (number, object) in (1..).zip(objects) {
        offsets.push(bytes.len());
        bytes.extend_from_slice(format!("{number} 0 obj\n{object}\nendobj\n").as_bytes());
    }
    let start = bytes.len();
    bytes.extend_from_slice(format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).as_bytes());
    for offset in offsets {
        bytes.extend_from_slice(format!("{offset:010} 00000 n \n").as_bytes());
    }
    let trailer = format!("trailer\n<</Size {}/Root 1 0 R>>\nstartxref\n{start}\n%%EOF", objects.len() + 1);
    bytes.extend_from_slice(trailer.as_bytes());
    bytes
}

const CATALOG: &str = "<</Type/Catalog/Pages 2 0 R>>";

#[test]
fn reading_a_pdf_without_a_text_layer_returns_a_note() {
    let blank = "<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R>>";
    let scan = pdf(&[CATALOG, "<</Type/Pages/Kids[3 0 R]/Count 1>>", blank, "<</Length 0>>\nstream\n\nendstream"]);
    let document = read(&scan, None).unwrap();
    assert_eq!(document.notes.len(), 1);
    assert!(document.notes[0].starts_with("none of these pages has a text layer"), "{:?}", document.notes);
}

#[test]
fn a_pdf_that_makes_the_library_panic_is_refused() {
    // Without a `MediaBox`, and with a page tree that leads into itself.
    let page = "<</Type/Page/Parent 2 0 R/Contents 4 0 R>>";
    refused(
        &pdf(&[CATALOG, "<</Type/Pages/Kids[3 0 R]/Count 1>>", page, "<</Length 0>>\nstream\n\nendstream"]),
        "the reader failed on every requested page",
    );
    refused(&pdf(&[CATALOG, "<</Type/Pages/Kids[2 0 R 2 0 R]/Count 2>>"]), "it has no pages");
    refused(b"%PDF-1.7\nnothing", "it is damaged");
}

#[test]
fn titles_and_labels_are_truncated_to_a_maximum_length() {
    let notebook = serde_json::json!({"nbformat": 4, "nbformat_minor": 5, "cells": [],
        "metadata": {"title": "ä".repeat(1 << 20)}});
    let order =
        serde_json::to_string(&DocumentParseOptions { pages: None, limits: DocumentLimits::default() }).unwrap();
    let answered = answer(&order, &mut notebook.to_string().as_bytes());
    let Ok(DocumentReply::Document(document)) = serde_json::from_slice(&answered) else { panic!("{answered:?}") };
    assert_eq!(document.title, Some("ä".repeat(200) + "…"));
    let mut document = Document::new(DocumentKind::Xlsx, 1);
    document.push(1, "s".repeat(1 << 20), "text");
    assert_eq!(document.parts[0].label, "s".repeat(200) + "…");
}
