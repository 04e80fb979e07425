//! Jupyter notebooks: cells with their source and output (nbformat 3 and 4).

use crate::documents::{
    Document, DocumentKind,
    document_error::DocumentError,
    selection::{PartSelection, select_parts},
};
use serde_json::{Map, Value};

/// Maximum number of characters of a cell's outputs; longer ones are cut in the middle.
const MAX_OUTPUT_CHARS: usize = 8_000;

pub(super) fn read(bytes: &[u8], pages: Option<&PartSelection>) -> Result<Document, DocumentError> {
    let damaged = |reason: String| DocumentError::Damaged(reason);
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let notebook: Map<String, Value> =
        serde_json::from_slice(bytes).map_err(|error| damaged(format!("it is not a valid JSON notebook: {error}")))?;
    // The third format had sheets with cells.
    let sheets = notebook.get("worksheets").and_then(Value::as_array).into_iter().flatten();
    let lists: Vec<&Value> =
        notebook.get("cells").into_iter().chain(sheets.filter_map(|one| one.get("cells"))).collect();
    if lists.is_empty() || notebook.get("nbformat").is_none() {
        return Err(damaged("it is JSON, but without the `nbformat` and `cells` of a notebook".into()));
    }
    let cells: Vec<&Value> = lists.into_iter().filter_map(Value::as_array).flatten().collect();
    let total = cells.len() as u64;
    let mut document = Document::new(DocumentKind::Notebook, total);
    document.title =
        notebook.get("metadata").and_then(|meta| text_of(meta.get("title")?)).filter(|title| !title.is_empty());
    for number in select_parts(pages, DocumentKind::Notebook, total)? {
        let cell = cells[usize::try_from(number - 1).unwrap_or(0)];
        document.push(number, label(number, cell), &shown(cell));
    }
    Ok(document)
}

/// Returns a label such as `cell 4 (code, id abc, execution 7)`.
fn label(number: u64, cell: &Value) -> String {
    let kind = cell.get("cell_type").and_then(Value::as_str).unwrap_or("unknown");
    let mut facts = vec![kind.to_owned()];
    facts.extend(cell.get("id").and_then(Value::as_str).map(|id| format!("id {id}")));
    let count = cell.get("execution_count").or_else(|| cell.get("prompt_number"));
    facts.extend(count.and_then(Value::as_u64).map(|count| format!("execution {count}")));
    format!("cell {number} ({})", facts.join(", "))
}

fn shown(cell: &Value) -> String {
    let source = cell.get("source").or_else(|| cell.get("input")).and_then(text_of).unwrap_or_default();
    let mut text = match cell.get("level").and_then(Value::as_u64) {
        Some(level @ 1..=6) => format!("{} {source}", "#".repeat(usize::try_from(level).unwrap_or(1))),
        _ => source,
    };
    let outputs = cell.get("outputs").and_then(Value::as_array).into_iter().flatten();
    let outputs: Vec<String> = outputs.map(output).filter(|output| !output.is_empty()).collect();
    if !outputs.is_empty() {
        text.truncate(text.trim_end().len());
        text.push_str("\n--- output ---\n");
        text.push_str(&cut(&outputs.join("\n")));
    }
    text
}

fn output(output: &Value) -> String {
    let get = |name: &str| output.get(name).and_then(text_of).unwrap_or_default();
    match output.get("output_type").and_then(Value::as_str).unwrap_or_default() {
        "stream" => plain(&get("text")),
        "error" | "pyerr" => {
            let lines = output.get("traceback").and_then(Value::as_array).into_iter().flatten();
            let lines: Vec<String> = lines.filter_map(Value::as_str).map(plain).collect();
            let fault = format!("{}: {}", get("ename"), get("evalue"));
            // The traceback usually ends with the fault.
            if lines.last().is_some_and(|last| last.contains(&fault)) {
                lines.join("\n")
            } else {
                plain(&format!("{}\n{fault}", lines.join("\n")))
            }
        }
        // The third format had the types beside the text.
        _ => media(output.get("data").unwrap_or(output)),
    }
}

/// Returns the textual form of an output, and a placeholder with type and size for each image; empty if there are none.
fn media(data: &Value) -> String {
    let Some(data) = data.as_object() else { return String::new() };
    let mut texts = Vec::new();
    let as_text = ["text/plain", "text/markdown", "text/latex", "text/html", "text", "html", "latex"];
    if let Some(value) = as_text.iter().find_map(|kind| data.get(*kind)) {
        texts.extend(text_of(value).map(|text| plain(&text)));
    } else if let Some(value) = data.get("application/json") {
        texts.push(value.to_string());
    }
    for (kind, value) in data {
        let is_image = kind.starts_with("image/") || matches!(kind.as_str(), "png" | "jpeg" | "svg");
        if let Some(text) = text_of(value).filter(|_| is_image) {
            let bytes =
                if kind.contains("svg") { text.len() } else { text.trim_end_matches(['=', '\n']).len() * 3 / 4 };
            texts.push(format!("[{kind} of {bytes} bytes, omitted]"));
        }
    }
    texts.join("\n")
}

/// Returns a text, which notebooks also write as a list of its lines; `None` for any other value.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(lines) => lines.iter().map(Value::as_str).collect::<Option<String>>(),
        _ => None,
    }
}

/// Removes colours and other terminal commands; of lines that overwrite each other, the last remains.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        if char != '\u{1b}' {
            plain.push(char);
        } else if chars.next_if_eq(&'[').is_some() {
            // A command ends with a letter or similar character.
            chars.by_ref().find(|char| ('@'..='~').contains(char));
        }
    }
    let lines = plain.trim_end().split('\n').map(|line| line.trim_end_matches('\r'));
    lines.map(|line| line.rsplit('\r').next().unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

fn cut(text: &str) -> String {
    let chars = text.chars().count();
    if chars <= MAX_OUTPUT_CHARS {
        return text.to_owned();
    }
    let half = MAX_OUTPUT_CHARS / 2;
    let at = |index: usize| text.char_indices().nth(index).map_or(text.len(), |(at, _)| at);
    let (head, tail) = (&text[..at(half)], &text[at(chars - half)..]);
    format!("{head}\n… [{} characters of output omitted] …\n{tail}", chars - 2 * half)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(notebook: &Value, expected: &[(&str, &str)]) {
        let document = read(notebook.to_string().as_bytes(), None).unwrap();
        let parts: Vec<(&str, &str)> =
            document.parts.iter().map(|part| (part.label.as_str(), part.text.as_str())).collect();
        assert_eq!(parts, expected);
    }

    #[test]
    fn notebook_format_3_worksheets_headings_and_prompt_numbers_are_read() {
        let cells = json!([
            {"cell_type": "heading", "level": 2, "source": ["Old ", "times"]},
            {"cell_type": "code", "input": "1+1", "prompt_number": 5, "outputs": [
                {"output_type": "pyout", "text": ["2"], "png": "iVBORw0KGgo="},
                {"output_type": "pyerr", "ename": "E", "evalue": "v", "traceback": ["\u{1b}[31mat 1\u{1b}[0m"]}]},
        ]);
        let outputs = "1+1\n--- output ---\n2\n[png of 8 bytes, omitted]\nat 1\nE: v";
        check(
            &json!({"nbformat": 3, "worksheets": [{"cells": cells}]}),
            &[("cell 1 (heading)", "## Old times"), ("cell 2 (code, execution 5)", outputs)],
        );
    }

    #[test]
    fn long_outputs_are_cut_in_their_middle_and_overwritten_lines_are_gone() {
        let long = "ä".repeat(MAX_OUTPUT_CHARS + 5);
        let half = "ä".repeat(MAX_OUTPUT_CHARS / 2);
        let cells = json!([
            {"cell_type": "code", "source": "", "outputs": [{"output_type": "stream", "text": long}]},
            {"cell_type": "code", "source": "x", "outputs": [{"output_type": "stream", "text": "1%\r2%\r\ndone\n"}]},
        ]);
        check(
            &json!({"nbformat": 4, "cells": cells}),
            &[
                ("cell 1 (code)", &format!("\n--- output ---\n{half}\n… [5 characters of output omitted] …\n{half}")),
                ("cell 2 (code)", "x\n--- output ---\n2%\ndone"),
            ],
        );
    }

    #[test]
    fn rejects_json_that_is_not_a_notebook() {
        for (text, reason) in [
            ("{\"a\": 1}", "without the `nbformat`"),
            ("[]", "not a valid JSON notebook"),
            ("{", "not a valid JSON notebook"),
        ] {
            assert!(read(text.as_bytes(), None).unwrap_err().to_string().contains(reason), "{text}");
        }
    }
}
