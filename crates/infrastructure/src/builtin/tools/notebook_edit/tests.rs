//! Tests of the tool `notebook_edit`.

use super::notebook::Notebook;
use crate::builtin::tests::Bench;
use proptest::prelude::*;
use serde_json::{Value, json};
use toolstead_domain::error_kind::ErrorKind;

/// A notebook as Jupyter writes it.
const NOTEBOOK: &str = r##"{
 "cells": [
  {
   "cell_type": "markdown",
   "id": "title",
   "metadata": {},
   "source": [
    "# Études\n",
    "More."
   ]
  },
  {
   "cell_type": "code",
   "execution_count": 3,
   "id": "sum",
   "metadata": {
    "tags": ["x"]
   },
   "outputs": [
    {
     "data": {
      "text/plain": [
       "6"
      ]
     },
     "execution_count": 3,
     "metadata": {},
     "output_type": "execute_result"
    }
   ],
   "source": [
    "sum(values)"
   ]
  }
 ],
 "metadata": {
  "kernelspec": {"display_name": "Python 3", "name": "python3"}
 },
 "nbformat": 4,
 "nbformat_minor": 5
}
"##;

/// Two cells without ids on one line, with sources as strings.
const COMPACT: &str = r#"{"nbformat":4,"nbformat_minor":4,"metadata":{},"cells":[{"source":"a","cell_type":"code","metadata":{"k":1.0},"outputs":[],"execution_count":null,"extra":true},{"source":"b","cell_type":"raw","metadata":{}}]}"#;

fn arguments(mut arguments: Value) -> Value {
    arguments["path"] = "n.ipynb".into();
    arguments
}

#[track_caller]
fn edited(before: &str, given: Value) -> String {
    let bench = Bench::new();
    bench.put("n.ipynb", before);
    bench.call("notebook_edit", arguments(given)).unwrap();
    String::from_utf8(bench.get("n.ipynb")).unwrap()
}

/// Checks that the edit changes one piece of the text, and nothing else.
#[track_caller]
fn check(before: &str, given: Value, old: &str, new: &str) {
    assert_eq!(before.matches(old).count(), 1, "{old}");
    assert_eq!(edited(before, given), before.replace(old, new));
}

#[track_caller]
fn refused(before: &str, given: Value, kind: ErrorKind, expected: &str) {
    let bench = Bench::new();
    bench.put("n.ipynb", before);
    let failure = bench.call("notebook_edit", arguments(given)).unwrap_err();
    assert_eq!((failure.kind, failure.text().as_str()), (kind, expected));
    assert_eq!(bench.get("n.ipynb"), before.as_bytes());
}

#[test]
fn a_replaced_code_cell_loses_its_outputs_and_keeps_the_rest() {
    let bench = Bench::new();
    bench.put("n.ipynb", NOTEBOOK);
    let given = arguments(json!({"cell_id": "sum", "new_source": "total = sum(values)\ntotal"}));
    let result = bench.call("notebook_edit", given).unwrap();
    let expected = "Replaced cell 1 (`sum`, code) of `n.ipynb`, which then has 2 cells. Its outputs were cleared. To undo it: `undo` with the call ID.\n     1\ttotal = sum(values)\n     2\ttotal";
    assert_eq!(result.joined_text().replace(&bench.last_call().to_string(), "ID"), expected);
    let found = result.structured_content().unwrap();
    assert_eq!(
        found["diff"],
        "--- a/n.ipynb\n+++ b/n.ipynb\n@@ -1 +1,2 @@\n-sum(values)\n+total = sum(values)\n+total\n"
    );
    assert_eq!(
        (&found["cell_id"], &found["cell_index"], &found["cell_type"]),
        (&json!("sum"), &json!(1), &json!("code"))
    );
    let start = NOTEBOOK.find("   \"outputs\"").unwrap();
    let end = NOTEBOOK.find("\n  }\n ],").unwrap();
    let expected = NOTEBOOK.replace(
        &NOTEBOOK[start..end],
        "   \"outputs\": [],\n   \"source\": [\n    \"total = sum(values)\\n\",\n    \"total\"\n   ]",
    );
    let expected = expected.replace("\"execution_count\": 3,\n   \"id\"", "\"execution_count\": null,\n   \"id\"");
    assert_eq!(String::from_utf8(bench.get("n.ipynb")).unwrap(), expected);
    bench.call("undo", json!({})).unwrap();
    assert_eq!(bench.get("n.ipynb"), NOTEBOOK.as_bytes());
}

#[test]
fn a_replaced_cell_changes_only_its_source_if_outputs_are_kept_or_absent() {
    check(NOTEBOOK, json!({"cell_id": "sum", "new_source": "x", "keep_outputs": true}), "\"sum(values)\"", "\"x\"");
    check(NOTEBOOK, json!({"cell_id": "title", "new_source": "# Étude\nMore."}), "Études", "Étude");
    check(NOTEBOOK, json!({"cell_index": 0, "new_source": ""}), "[\n    \"# Études\\n\",\n    \"More.\"\n   ]", "[]");
}

#[test]
fn changing_the_cell_type_adds_or_removes_code_only_members() {
    let source = "\"source\": [\n    \"# Études\\n\",\n    \"More.\"\n   ]";
    let expected = NOTEBOOK.replace("\"cell_type\": \"markdown\"", "\"cell_type\": \"code\"");
    let expected = expected.replace(source, &format!("{source},\n   \"execution_count\": null,\n   \"outputs\": []"));
    assert_eq!(edited(NOTEBOOK, json!({"cell_id": "title", "cell_type": "code"})), expected);
    check(
        COMPACT,
        json!({"cell_id": "cell-0", "cell_type": "markdown"}),
        "\"cell_type\":\"code\",\"metadata\":{\"k\":1.0},\"outputs\":[],\"execution_count\":null,\"extra\":true",
        "\"cell_type\":\"markdown\",\"metadata\":{\"k\":1.0},\"extra\":true",
    );
}

#[test]
fn an_inserted_cell_follows_the_format_of_the_notebook() {
    let id = |text: &str| -> String {
        let notebook: Value = serde_json::from_str(text).unwrap();
        let ids =
            notebook["cells"].as_array().unwrap().iter().map(|cell| cell["id"].as_str().unwrap_or_default().to_owned());
        ids.into_iter().find(|id| !["title", "sum"].contains(&&**id)).unwrap()
    };
    let after = edited(
        NOTEBOOK,
        json!({"edit_mode": "insert", "cell_type": "code", "cell_id": "title", "new_source": "values = []\n"}),
    );
    let cell = format!(
        "  {{\n   \"cell_type\": \"code\",\n   \"execution_count\": null,\n   \"id\": \"{}\",\n   \"metadata\": {{}},\n   \"outputs\": [],\n   \"source\": [\n    \"values = []\\n\"\n   ]\n  }},\n",
        id(&after)
    );
    assert_eq!(after.replacen(&cell, "", 1), NOTEBOOK);
    assert_eq!(id(&after).len(), 8);

    let after = edited(NOTEBOOK, json!({"edit_mode": "insert", "cell_type": "markdown", "new_source": "top"}));
    let notebook: Value = serde_json::from_str(&after).unwrap();
    assert_eq!(notebook["cells"][0]["source"], json!(["top"]));
    let cell = &after
        [after.find("  {").unwrap()..after.find("  {\n   \"cell_type\": \"markdown\",\n   \"id\": \"title\"").unwrap()];
    assert_eq!(after.replacen(cell, "", 1), NOTEBOOK);

    check(
        COMPACT,
        json!({"edit_mode": "insert", "cell_type": "code", "cell_index": 1, "new_source": "c"}),
        "\"metadata\":{}}]",
        "\"metadata\":{}},{\"source\":\"c\",\"cell_type\":\"code\",\"metadata\":{},\"outputs\":[],\"execution_count\":null}]",
    );
    check(
        "{\"cells\": [], \"metadata\": {}, \"nbformat\": 4, \"nbformat_minor\": 2}",
        json!({"edit_mode": "insert", "cell_type": "raw", "new_source": "c"}),
        "[]",
        "[{\"cell_type\": \"raw\", \"metadata\": {}, \"source\": [\"c\"]}]",
    );
    check(
        "{\n  \"cells\": [],\n  \"metadata\": {},\n  \"nbformat\": 4\n}",
        json!({"edit_mode": "insert", "cell_type": "raw"}),
        "[]",
        "[\n    {\n      \"cell_type\": \"raw\",\n      \"metadata\": {},\n      \"source\": []\n    }\n  ]",
    );
}

#[test]
fn deleting_a_cell_also_removes_its_comma() {
    let second = NOTEBOOK.find("  {\n   \"cell_type\": \"code\"").unwrap();
    let first = NOTEBOOK.find("  {\n   \"cell_type\": \"markdown\"").unwrap();
    check(NOTEBOOK, json!({"edit_mode": "delete", "cell_id": "title"}), &NOTEBOOK[first..second], "");
    let end = NOTEBOOK.find("\n ],\n \"metadata\"").unwrap();
    check(NOTEBOOK, json!({"edit_mode": "delete", "cell_index": 1, "new_source": ""}), &NOTEBOOK[second - 2..end], "");
    let one = edited(NOTEBOOK, json!({"edit_mode": "delete", "cell_id": "sum"}));
    let none = edited(&one, json!({"edit_mode": "delete", "cell_id": "title"}));
    assert!(none.starts_with("{\n \"cells\": [],\n \"metadata\""), "{none}");
}

#[test]
fn byte_order_mark_and_line_endings_are_preserved() {
    let before = format!("\u{feff}{}", NOTEBOOK.replace('\n', "\r\n").trim_end());
    let after = edited(&before, json!({"cell_id": "title", "new_source": "a\nb"}));
    assert_eq!(after, before.replace("\"# Études\\n\"", "\"a\\n\"").replace("\"More.\"", "\"b\""));
}

#[test]
fn rejects_missing_arguments_and_unknown_or_ambiguous_cell_references() {
    let cells =
        "The cells of `n.ipynb`, by index:\n     0\t`title` markdown: # Études\n     1\t`sum` code: sum(values)";
    refused(
        NOTEBOOK,
        json!({"cell_id": "som", "new_source": "x"}),
        ErrorKind::NotFound,
        &format!("`n.ipynb` has no cell with the id `som`; the nearest to it is `sum`. {cells}"),
    );
    refused(
        NOTEBOOK,
        json!({"cell_id": "cell-2", "new_source": "x"}),
        ErrorKind::NotFound,
        &format!("`n.ipynb` has 2 cells, and none has the index 2. {cells}"),
    );
    refused(
        NOTEBOOK,
        json!({"new_source": "x"}),
        ErrorKind::InvalidInput,
        &format!("`cell_id` or `cell_index` is required. {cells}"),
    );
    refused(
        NOTEBOOK,
        json!({"new_source": "x", "cell_id": "sum", "cell_index": 1}),
        ErrorKind::InvalidInput,
        "`cell_id` and `cell_index` are both given. Give one of them.",
    );
    refused(
        NOTEBOOK,
        json!({"cell_id": "sum"}),
        ErrorKind::InvalidInput,
        "`new_source` is missing: the new text of the cell. Set `edit_mode` to \"delete\" to remove the cell.",
    );
    refused(
        NOTEBOOK,
        json!({"edit_mode": "insert", "new_source": "x"}),
        ErrorKind::InvalidInput,
        "`cell_type` is missing: give \"code\", \"markdown\" or \"raw\"",
    );
    refused(
        &NOTEBOOK.replace("\"id\": \"title\"", "\"id\": \"sum\""),
        json!({"cell_id": "sum", "new_source": "x"}),
        ErrorKind::AmbiguousMatch,
        "2 cells of `n.ipynb` have the id `sum`. Name one by `cell_index`: 0, 1.",
    );
}

#[test]
fn missing_and_malformed_cell_ids_are_reported() {
    let bench = Bench::new();
    let odd = NOTEBOOK.replace("   \"id\": \"title\",\n", "").replace("\"id\": \"sum\"", "\"id\": \"a b\"");
    bench.put("n.ipynb", odd);
    let text = bench.text("notebook_edit", arguments(json!({"cell_index": 0, "new_source": "x"})));
    assert!(
        text.contains("The notebook has what its format does not allow: 1 cell without an id, 1 malformed id."),
        "{text}"
    );
}

#[test]
fn rejects_files_that_are_not_valid_notebooks_in_a_supported_format() {
    let repair = "Repair it with `edit_file`, which takes it as text.";
    let given = || json!({"cell_index": 0, "new_source": "x"});
    refused(
        "{\"nbformat\": 3, \"worksheets\": []}",
        given(),
        ErrorKind::UnsupportedType,
        "`n.ipynb` cannot be edited: it is in notebook format 3, and only format 4 is supported. Convert it first: `jupyter nbconvert --to notebook --inplace n.ipynb` brings it to format 4.",
    );
    refused(
        "{\"nbformat\": 5, \"cells\": []}",
        given(),
        ErrorKind::UnsupportedType,
        "`n.ipynb` cannot be edited: it is in notebook format 5, which is newer than the supported format 4",
    );
    refused(
        "{\"nbformat\": 4}",
        given(),
        ErrorKind::UnsupportedType,
        &format!("`n.ipynb` cannot be edited: it has no valid member `cells`. {repair}"),
    );
    refused(
        "{\"nbformat\": 4, \"cells\": [{\"cell_type\": \"raw\"}]}",
        given(),
        ErrorKind::UnsupportedType,
        &format!("`n.ipynb` cannot be edited: its cell 0 is not valid: it has no `source`. {repair}"),
    );
    refused(
        "{\"nbformat\": 4, \"nbformat\": 4}",
        given(),
        ErrorKind::UnsupportedType,
        &format!(
            "`n.ipynb` cannot be edited: it is not valid JSON: the member `nbformat` occurs twice at line 1 column 26. {repair}"
        ),
    );
    refused(
        "",
        given(),
        ErrorKind::UnsupportedType,
        &format!(
            "`n.ipynb` cannot be edited: it is not valid JSON: EOF while parsing a value at line 1 column 0. {repair}"
        ),
    );
    let bench = Bench::new();
    bench.put("n.ipynb", b"{\xff}");
    let text_of = |path: &str| {
        bench.call("notebook_edit", json!({"path": path, "cell_index": 0, "new_source": ""})).unwrap_err().text()
    };
    assert_eq!(text_of("n.ipynb"), "`n.ipynb` cannot be edited: notebooks are in UTF-8, and byte 1 is not");
    assert_eq!(
        text_of("n.txt"),
        "`n.txt` is not a notebook: its name does not end in .ipynb. Use `edit_file` for other files."
    );
    assert!(text_of("m.ipynb").contains("does not exist. In the same folder there is `n.ipynb`"));
}

#[test]
fn a_notebook_changed_since_it_was_read_must_be_read_again_before_an_edit() {
    let bench = Bench::new();
    bench.put("n.ipynb", NOTEBOOK);
    bench.saw("n.ipynb");
    bench.put("n.ipynb", NOTEBOOK.replace("More.", "Less."));
    let failure = bench.call("notebook_edit", arguments(json!({"cell_id": "sum", "new_source": "x"}))).unwrap_err();
    assert_eq!(failure.kind, ErrorKind::StaleFile);
    assert_eq!(
        failure.text(),
        "`n.ipynb` changed since it was read. Nothing was changed. Read it again: its cells may be different now."
    );
    bench.saw("n.ipynb");
    let mut given = arguments(json!({"cell_id": "sum", "new_source": "x", "dry_run": true}));
    let before = bench.get("n.ipynb");
    let text = bench.text("notebook_edit", given.clone());
    assert_eq!(
        text,
        "Would replace cell 1 (`sum`, code) of `n.ipynb`, which then has 2 cells. Its outputs were cleared.\n     1\tx"
    );
    assert_eq!(bench.get("n.ipynb"), before);
    given["dry_run"] = false.into();
    bench.call("notebook_edit", given.clone()).unwrap();
    // The session knows what it wrote itself.
    bench.call("notebook_edit", given).unwrap();
}

/// Generates notebooks with cells of all kinds, in any layout.
fn notebooks() -> impl Strategy<Value = (String, usize)> {
    let source = prop_oneof![
        "[a\n\"\\\\é]{0,8}".prop_map(Value::from),
        prop::collection::vec("[a\"é]{0,4}\n?", 0..4).prop_map(Value::from),
    ];
    let cell = (source, prop::sample::select(vec!["code", "markdown", "raw"]), any::<bool>()).prop_map(
        |(source, cell_type, odd)| {
            let mut cell = json!({"cell_type": cell_type, "metadata": {"a": [1, {"b": null}]}, "source": source});
            if cell_type == "code" {
                cell["outputs"] = json!([{"output_type": "stream", "name": "stdout", "text": ["x\n"]}]);
                cell["execution_count"] = json!(1);
            }
            if odd {
                cell["unknown"] = json!({"deep": [[[]]], "text": "}],{\"cells\":["});
            }
            cell
        },
    );
    (prop::collection::vec(cell, 1..6), 4..6_u64, 0..3_usize, any::<bool>()).prop_map(
        |(mut cells, minor, layout, crlf)| {
            let count = cells.len();
            if minor == 5 {
                for (index, cell) in cells.iter_mut().enumerate() {
                    cell["id"] = format!("id{index}").into();
                }
            }
            let notebook = json!({"metadata": {}, "cells": cells, "nbformat": 4, "nbformat_minor": minor});
            let text = match layout {
                0 => notebook.to_string(),
                1 => serde_json::to_string_pretty(&notebook).unwrap() + "\n",
                // Each cell on a line of its own.
                _ => notebook
                    .to_string()
                    .replace("},{\"cell_type\"", "},\n{\"cell_type\"")
                    .replace("\"cells\":[", "\"cells\":[\n"),
            };
            (if crlf { text.replace('\n', "\r\n") } else { text }, count)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn an_edit_keeps_every_byte_of_all_other_cells(
        (before, count) in notebooks(), at in 0..5_usize, mode in prop::sample::select(vec!["replace", "insert", "delete"]),
        cell_type in prop::option::of(prop::sample::select(vec!["code", "markdown", "raw"])), source in "[a\n\"\\\\é]{0,8}",
    ) {
        let at = at % count;
        let mut given = json!({"cell_index": at, "edit_mode": mode, "new_source": source});
        if let Some(cell_type) = cell_type.or((mode == "insert").then_some("code")) {
            given["cell_type"] = cell_type.into();
        }
        let after = edited(&before, given);
        let texts = |text: &str| -> Vec<String> {
            Notebook::parse(text).unwrap().cells().iter().map(|cell| cell.text().to_owned()).collect()
        };
        let (mut old, mut new) = (texts(&before), texts(&after));
        match mode {
            "insert" => { new.remove(at + 1); }
            "delete" => { old.remove(at); }
            _ => {
                let cell: Value = serde_json::from_str(&new.remove(at)).unwrap();
                let was: Value = serde_json::from_str(&old.remove(at)).unwrap();
                let held = cell["source"].as_array().map_or_else(
                    || cell["source"].as_str().unwrap().to_owned(),
                    |lines| lines.iter().map(|line| line.as_str().unwrap()).collect(),
                );
                prop_assert_eq!(held, source);
                prop_assert_eq!(cell["source"].is_array(), was["source"].is_array());
                prop_assert_eq!(&cell["unknown"], &was["unknown"]);
                prop_assert_eq!(&cell["metadata"], &was["metadata"]);
            }
        }
        prop_assert_eq!(old, new);
        // The text around the cells does not change either.
        let around = |text: &str| {
            let notebook = Notebook::parse(text).unwrap();
            let cells = notebook.cells();
            let (first, last) = (cells.first().map(|cell| cell.range().start), cells.last().map(|cell| cell.range().end));
            first.zip(last).map(|(first, last)| (text[..first].to_owned(), text[last..].to_owned()))
        };
        if let (Some(before), Some(after)) = (around(&before), around(&after)) {
            prop_assert_eq!(before, after);
        }
    }
}
