//! Recognises the type of an Office document by its content, not by its name.

use crate::documents::{
    Document, DocumentParseOptions, document_error::DocumentError, docx, package::OfficePackage, pptx, xlsx,
};

/// Reads an Office document from the bytes of its zip archive. Fails for any other archive, and names its actual type.
pub(super) fn read(bytes: Vec<u8>, order: &DocumentParseOptions) -> Result<Document, DocumentError> {
    let mut package = OfficePackage::open(bytes, &order.limits)?;
    let pages = order.pages.as_ref();
    let main = package.relationships("")?.into_iter().find(|one| one.kind == "officeDocument").map(|one| one.target);
    let Some(main) = main else { return Err(foreign(&mut package)?) };
    let title = package.title()?;
    let mut document = match main.split('/').next() {
        Some("word") => docx::read(&mut package, &main, pages),
        Some("xl") if main.ends_with(".bin") => Err(DocumentError::Unsupported("a binary workbook (.xlsb)".into())),
        Some("xl") => xlsx::read(&mut package, &main, pages),
        Some("ppt") => pptx::read(&mut package, &main, pages),
        _ => Err(DocumentError::Unsupported("an Office document of an unknown kind".into())),
    }?;
    document.title = title;
    Ok(document)
}

/// Returns the error for a zip archive that is not Office Open XML, by its actual type.
fn foreign(package: &mut OfficePackage) -> Result<DocumentError, DocumentError> {
    let mimetype = if package.has("mimetype") { package.beginning("mimetype", 100)? } else { Vec::new() };
    let mimetype = String::from_utf8_lossy(&mimetype).into_owned();
    Ok(DocumentError::Unsupported(match mimetype.rsplit('.').next() {
        Some("text") => "an OpenDocument text (.odt)".into(),
        Some("spreadsheet") => "an OpenDocument spreadsheet (.ods)".into(),
        Some("presentation") => "an OpenDocument presentation (.odp)".into(),
        _ => "a zip archive without a known document".into(),
    }))
}

/// Returns the error for a compound file, the container of Office up to 2003 and of encrypted documents since. The
/// names of its streams determine the type. It is not read.
pub(super) fn compound_file(bytes: &[u8]) -> DocumentError {
    let has = |name: &str| {
        let name: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
        bytes.windows(name.len()).any(|window| window == name)
    };
    let what = if has("EncryptedPackage") {
        return DocumentError::Encrypted;
    } else if has("WordDocument") {
        "a Word document from before 2007 (.doc)"
    } else if has("Workbook") {
        "an Excel workbook from before 2007 (.xls)"
    } else if has("PowerPoint Document") {
        "a PowerPoint presentation from before 2007 (.ppt)"
    } else {
        "a compound file of an unknown kind"
    };
    DocumentError::Unsupported(what.into())
}
