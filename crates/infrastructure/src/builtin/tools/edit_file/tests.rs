//! Tests of the tool `edit_file`.

use super::*;
use crate::builtin::{files::etag::etag, tests::Bench, text::text_encoding::TextEncoding};
use proptest::prelude::*;
use serde_json::json;
use toolstead_domain::error_kind::ErrorKind;

#[track_caller]
fn check(before: impl AsRef<[u8]>, arguments: Value, after: impl AsRef<[u8]>) {
    let bench = Bench::new();
    bench.put("f", before);
    let mut arguments = arguments;
    arguments["path"] = "f".into();
    bench.call("edit_file", arguments).unwrap();
    assert_eq!(String::from_utf8_lossy(&bench.get("f")), String::from_utf8_lossy(after.as_ref()));
    assert_eq!(bench.get("f"), after.as_ref());
}

#[track_caller]
fn refused(before: impl AsRef<[u8]>, arguments: Value, kind: ErrorKind, expected: &str) {
    let bench = Bench::new();
    bench.put("f", &before);
    let mut arguments = arguments;
    arguments["path"] = "f".into();
    let failure = bench.call("edit_file", arguments).unwrap_err();
    assert_eq!(failure.kind, kind);
    assert!(failure.text().contains(expected), "{}", failure.text());
    assert_eq!(bench.get("f"), before.as_ref(), "nothing was changed");
}

#[test]
fn a_matching_text_is_replaced_once_or_as_often_as_requested() {
    check("a\nb\nc\n", json!({"old_text": "b\n", "new_text": "x\ny\n"}), "a\nx\ny\nc\n");
    check("a b a", json!({"old_text": "a", "new_text": "c", "replace_all": true}), "c b c");
    check("a b a", json!({"old_text": "a", "new_text": "aa", "count": 1}), "aa b a");
    check("a\na\na\n", json!({"old_text": "a", "new_text": "b", "start_line": 2, "end_line": 2}), "a\nb\na\n");
    check("abc", json!({"old_text": "b", "new_text": ""}), "ac");
}

#[test]
fn the_answer_shows_no_line_twice() {
    let shown = |text: &str, old: &str| {
        let bench = Bench::new();
        bench.put("f", text);
        let input = json!({"path": "f", "old_text": old, "new_text": "x", "replace_all": true});
        bench.call("edit_file", input).unwrap().joined_text()
    };
    assert_eq!(shown("a a\n", "a"), "Replaced 2 places in `f`.\n     1\tx x");
    assert_eq!(shown("a\n1\n2\na\n", "a"), "Replaced 2 places in `f`.\n     1\tx\n     2\t1\n     3\t2\n     4\tx");
    let apart = shown("a\n1\n2\n3\n4\n5\n6\n7\n8\na\n", "a");
    assert_eq!(apart.matches("x").count(), 2, "{apart}");
    assert!(!apart.contains("     5\t4"), "{apart}");
}

#[test]
fn the_result_shows_the_lines_around_an_edit_after_the_change() {
    let bench = Bench::new();
    bench.put("f", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    let result = bench.call("edit_file", json!({"path": "f", "old_text": "5\n", "new_text": "five\n"})).unwrap();
    let expected = "Replaced 1 place in `f`.\n     2\t2\n     3\t3\n     4\t4\n     5\tfive\n     6\t6\n     7\t7\n     8\t8\n     9\t9";
    assert_eq!(result.joined_text(), expected);
    let found = result.structured_content().unwrap();
    assert_eq!((&found["replacements"], &found["lines"]), (&json!(1), &json!([5])));
    assert!(found["diff"].as_str().unwrap().contains("-5\n+five\n"));
}

#[test]
fn an_edit_preserves_line_endings_byte_order_marks_and_encodings() {
    check("a\r\nb\r\nc\r\n", json!({"old_text": "a\nb", "new_text": "a\nx\ny"}), "a\r\nx\r\ny\r\nc\r\n");
    check("a\r\nb\nc\r\n", json!({"old_text": "a\nb\nc", "new_text": "a\nB\nc"}), "a\r\nB\nc\r\n");
    check("a\nb", json!({"old_text": "a\r\nb", "new_text": "a\r\nc"}), "a\nc");
    check("a\rb\n", json!({"old_text": "b", "new_text": "c"}), "a\rc\n");
    check("\u{feff}a", json!({"old_text": "a", "new_text": "b"}), "\u{feff}b");
    check(
        b"\xff\xfea\0\r\0\n\0b\0",
        json!({"old_text": "b", "new_text": "ä\nc"}),
        b"\xff\xfea\0\r\0\n\0\xe4\0\r\0\n\0c\0",
    );
    check(
        b"sch\xf6ne gr\xfc\xdfe aus k\xf6ln",
        json!({"old_text": "grüße", "new_text": "nächte"}),
        b"sch\xf6ne n\xe4chte aus k\xf6ln",
    );
    refused(
        b"sch\xf6ne gr\xfc\xdfe aus k\xf6ln",
        json!({"old_text": "grüße", "new_text": "→"}),
        ErrorKind::InvalidInput,
        "the file is in windows-1252, which has no `→` (U+2192). Nothing was changed",
    );
}

#[test]
fn a_regular_expression_works_line_by_line() {
    check(
        "let a = 1;  \n\nlet b = 2;\r\n",
        json!({"old_text": r"let (\w) = (?P<n>\d);\s*$", "new_text": "${n}: $1", "regex": true, "replace_all": true}),
        "1: a\n\n2: b\r\n",
    );
    refused(
        "a",
        json!({"old_text": "(", "new_text": "", "regex": true}),
        ErrorKind::InvalidInput,
        "not a valid regular expression",
    );
    refused(
        "a",
        json!({"old_text": "b", "new_text": "", "regex": true, "replace_all": true}),
        ErrorKind::NoMatch,
        "matches no line",
    );
    refused(
        "a\nb",
        json!({"old_text": "a\\nb", "new_text": "", "regex": true}),
        ErrorKind::NoMatch,
        "unless `multiline`",
    );
    let across = json!({"old_text": "(?s)^b.*?^d$", "new_text": "x", "regex": true, "multiline": true});
    check("a\r\nb\r\nc\r\nd\r\ne", across, "a\r\nx\r\ne");
    refused(
        "a",
        json!({"old_text": "a", "new_text": "a", "regex": true}),
        ErrorKind::NoMatch,
        "the edit would not change `f`. Nothing was changed.",
    );
}

#[test]
fn replacement_group_references_are_expanded_or_rejected() {
    let edit = |old: &str, new: &str| json!({"old_text": old, "new_text": new, "regex": true});
    check("a foo b", edit("(foo)", "$1_x"), "a foo_x b");
    check("a foo b", edit("(foo)", "$$1 ${1}2 $HOME"), "a $1 foo2 $HOME b");
    for new in ["$2", "cost $5", "${name}", "${", "$10"] {
        refused("a foo b", edit("(foo)", new), ErrorKind::InvalidInput, "Nothing was changed; write `$$` for a dollar");
    }
    refused("a foo b", edit("(?<name>foo)", "$name"), ErrorKind::InvalidInput, "write `${name}` for the group");
    let bench = Bench::new();
    bench.put("f", "a foo b");
    let edits = |new: &str| json!({"path": "f", "edits": [edit("(foo)", new)]});
    let failure = bench.call("multi_edit", edits("cost $5")).unwrap_err();
    assert!(failure.text().starts_with("edit 1 of 1: `new_text` refers to the group `$5`"), "{}", failure.text());
    bench.call("multi_edit", edits("$1_x")).unwrap();
    assert_eq!(bench.get("f"), b"a foo_x b");
}

#[test]
fn carriage_returns_in_old_text_match_and_are_replaced_exactly() {
    let edit = |old: &str, new: &str| json!({"old_text": old, "new_text": new});
    let all = |old: &str, new: &str| json!({"old_text": old, "new_text": new, "replace_all": true});
    check("a\rb\rc", edit("a\rb", "x\ry"), "x\ry\rc");
    check("a\rb\rc", all("\r", "\n"), "a\nb\nc");
    check("a\r\nb\r\n", all("\r", ""), "a\nb\n");
    check("a\r\nb\r\n", edit("a\r", "a"), "a\nb\r\n");
    check("a\r\nb\rc\n", edit("b\rc", "b\n\nc"), "a\r\nb\r\rc\n");
    check("a\rb\na\rc\n", json!({"old_text": "a\r", "new_text": "", "start_line": 2}), "a\rb\nc\n");
    // A carriage return that ends no line of the file matches the line ending that the file uses.
    check("a\nb\n", edit("a\r", "x\r"), "x\nb\n");
    check("a\r\nb\n", edit("b\r", "x\r"), "a\r\nx\n");
    refused(
        "a\r\nb\r\n",
        edit("\r", ""),
        ErrorKind::AmbiguousMatch,
        "`old_text` occurs in 2 places of `f`: lines 1, 2",
    );
    let lines = |arguments: Value| {
        let bench = Bench::new();
        bench.put("f", "a\rb\rc\r");
        let mut arguments = arguments;
        arguments["path"] = "f".into();
        let result = bench.call("edit_file", arguments).unwrap();
        (result.structured_content().unwrap()["lines"].clone(), result.joined_text())
    };
    let expected = (json!([2]), "Replaced 1 place in `f`.\n     1\ta\n     2\tx\n     3\tc".to_owned());
    assert_eq!(lines(edit("b\r", "x\r")), expected);
    assert_eq!(lines(edit("b", "x")), expected);
}

#[test]
fn a_new_file_is_created_with_an_empty_old_text() {
    let bench = Bench::new();
    let text = bench.text("edit_file", json!({"path": "d/new", "old_text": "", "new_text": "x\n"}));
    assert_eq!((text.as_str(), bench.get("d/new")), ("Created `d/new`.", b"x\n".to_vec()));
    bench.put("empty", "");
    bench.call("edit_file", json!({"path": "empty", "old_text": "", "new_text": "y"})).unwrap();
    assert_eq!(bench.get("empty"), b"y");
    refused("x", json!({"old_text": "", "new_text": "y"}), ErrorKind::InvalidInput, "`old_text` is empty");
    let answer = bench.call("edit_file", json!({"path": "emty", "old_text": "a", "new_text": "b"})).unwrap_err().text();
    assert!(answer.contains("`empty`"), "{answer}");
}

/// Checks the whole text that a model reads when an edit is refused. The file is untouched.
#[track_caller]
fn check_answer(before: &str, arguments: Value, expected: &str) {
    let bench = Bench::new();
    bench.put("f", before);
    let mut arguments = arguments;
    arguments["path"] = "f".into();
    assert_eq!(bench.call("edit_file", arguments).unwrap_err().text(), expected);
    assert_eq!(bench.get("f"), before.as_bytes(), "nothing was changed");
}

#[test]
fn a_missing_or_ambiguous_old_text_is_rejected_with_its_locations_or_a_suggestion() {
    check_answer(
        "a\nb\na\n",
        json!({"old_text": "a", "new_text": "c"}),
        "`old_text` occurs in 2 places of `f`: lines 1, 3. Give more of the lines around it to make it unique, or set \
         `replace_all`.",
    );
    refused("aaa", json!({"old_text": "aa", "new_text": "c"}), ErrorKind::AmbiguousMatch, "2 places");
    check_answer(
        "a a",
        json!({"old_text": "a", "new_text": "c", "count": 3}),
        "`old_text` occurs in 2 places of `f`, and `count` is 3. Nothing was changed.",
    );
    check_answer(
        "a\na\n",
        json!({"old_text": "a", "new_text": "c", "expected_count": 3}),
        "`old_text` occurs in 2 places of `f`, and `expected_count` is 3: lines 1, 2. Nothing was changed. Correct the \
         count, or give more of the lines around the text.",
    );
    check("a\na\n", json!({"old_text": "a", "new_text": "c", "expected_count": 2}), "c\nc\n");
    check_answer(
        "fn one() {}\nlet value  = 1;\n",
        json!({"old_text": "let value = 1;", "new_text": "x"}),
        "`old_text` does not occur in `f`; these lines differ from it only in white space or quotation marks:\n     \
         2\tlet value  = 1;\nNothing was changed; copy them exactly, without the line numbers.",
    );
    check_answer(
        "fn one() {}\nfn calculate(a: u32) {}\n",
        json!({"old_text": "fn calculate(b: u32) {}", "new_text": "x"}),
        "`old_text` does not occur in `f`; the nearest to it is around line 2:\n     1\tfn one() {}\n     2\tfn \
         calculate(a: u32) {}\n     3\t\nNothing was changed; copy the text exactly as in the file, without the line numbers.",
    );
    check_answer(
        "let done = true;\n",
        json!({"old_text": "old", "new_text": "let done"}),
        "`old_text` does not occur in `f`, but `new_text` does, at line 1. The edit was probably made already; read \
         the file to make sure.",
    );
    check_answer(
        "a\nb\n",
        json!({"old_text": "a", "new_text": "c", "start_line": 2}),
        "`old_text` occurs in line 1 of `f`, not between `start_line` and `end_line`. Nothing was changed; leave them \
         out, or correct them.",
    );
    check_answer(
        "a\n",
        json!({"old_text": "a", "new_text": "c", "start_line": 9}),
        "`f` has 1 line; `start_line` is 9",
    );
    check_answer(
        "zzz\n",
        json!({"old_text": "q", "new_text": "c"}),
        "`old_text` does not occur in `f`, and nothing in its 1 line is like it. Nothing was changed; read the file \
         again, or use `grep` to find the text elsewhere.",
    );
    check_answer(
        "fn a() {\n    b();\n}\n",
        json!({"old_text": "     1\tfn a() {\n     2\t    b();", "new_text": "     1\tfn a() {"}),
        "`old_text` occurs in `f` without the line numbers that `read_file` adds. Nothing was changed; \
         give both texts without the numbers.",
    );
    check_answer(
        "a\nb\nc\n",
        json!({"old_text": "a\nb", "new_text": "a\n// ... existing code ...\nB"}),
        "`new_text` has a placeholder for omitted text, `// ... existing code ...`, which would be written literally. \
         Nothing was changed; give the whole text, or make a smaller edit for each part that changes.",
    );
    check_answer(
        "a\n",
        json!({"old_text": "a", "new_text": "A", "multiline": true}),
        "`multiline` needs `regex`: a plain `old_text` may have several lines anyway",
    );
}

#[test]
fn the_result_reports_which_difference_was_tolerated_to_find_the_text() {
    let check = |before: &str, old: &str, new: &str, after: &str, by: &str, said: &str| {
        let bench = Bench::new();
        bench.put("f", before);
        let edit = json!({"path": "f", "old_text": old, "new_text": new});
        let result = bench.call("edit_file", edit).unwrap();
        assert_eq!(String::from_utf8_lossy(&bench.get("f")), after);
        assert_eq!(result.structured_content().unwrap()["matched_by"], by);
        let text = result.joined_text();
        assert!(text.contains(&format!("`old_text` was found there with {said}.")), "{text}");
    };
    check("a\r\nb\r\n", "a\nb", "a\nc", "a\r\nc\r\n", "line_endings", "other line endings, which were kept");
    check("a\rb\nc\n", "a\nb", "a\nx\nb", "a\rx\nb\nc\n", "line_endings", "other line endings, which were kept");
    check("a  \nb\t\nc", "a\nb\nc", "a\nB\nc", "a  \nB\nc", "trailing_blanks", "other blanks at the ends of lines");
    check(
        "x = \u{201c}a\u{201d} \u{2013} 1",
        "x = \"a\" - 1",
        "x = \"a\" - 2",
        "x = \u{201c}a\u{201d} \u{2013} 2",
        "typography",
        "typographic quotes, dashes or spaces",
    );
    check(
        "if a {\n\tif b {\n\t\tc();\n\t}\n}\n",
        "if b {\n\tc();\n}",
        "if b {\n\tc();\n\td();\n}",
        "if a {\n\tif b {\n\t\tc();\n\t\td();\n\t}\n}\n",
        "indentation",
        "another indentation, which `new_text` was given, too",
    );
    check(
        "a\n\tb\n",
        "a\\n\\tb",
        "a\\n\\tc",
        "a\n\tc\n",
        "escapes",
        "real line feeds and tabs where `\\n` and `\\t` were written",
    );
    refused(
        "  a\n  b\n    a\n    b\n",
        json!({"old_text": "a\nb", "new_text": "c"}),
        ErrorKind::AmbiguousMatch,
        "does not occur in `f` exactly, and with another indentation, which `new_text` was given, too it occurs in 2",
    );
    refused("a \u{2212} b", json!({"old_text": "a - b", "new_text": "c"}), ErrorKind::NoMatch, "does not occur");
}

#[test]
fn an_edit_of_a_changed_file_is_applied_only_if_its_text_is_unchanged() {
    let bench = Bench::new();
    bench.put("f", "a\nb\nc\n");
    bench.saw("f");
    bench.put("f", "a\nb\nnewer c\n");
    let edit = |old: &str, new: &str| bench.call("edit_file", json!({"path": "f", "old_text": old, "new_text": new}));
    let failure = edit("c\n", "C\n").and_then(|_| edit("b\nc", "x")).unwrap_err();
    assert_eq!(failure.kind, ErrorKind::NoMatch, "its own write is what the session knows now");

    bench.put("f", "a\nb\nmuch newer c\n");
    let failure = edit("b\nnewer c", "x").unwrap_err();
    assert_eq!(failure.kind, ErrorKind::StaleFile);
    assert_eq!(
        failure.text(),
        "`f` has changed since you read it: `old_text` does not occur in `f`; the nearest to it is around \
         line 3:\n     1\ta\n     2\tb\n     3\tmuch newer c\n     4\t\nNothing was changed; read the file again, and repeat the edit."
    );
    let result = edit("a\n", "A\n").unwrap();
    assert!(result.joined_text().starts_with(
        "Replaced 1 place in `f`. `f` has changed since you read it; the text to replace was unchanged, so the edit \
         was applied."
    ));
    assert_eq!(result.structured_content().unwrap()["changed_elsewhere"], true);

    bench.put("f", "again\n");
    bench.saw("f");
    let result = edit("again", "fresh").unwrap();
    assert_eq!(result.structured_content().unwrap()["changed_elsewhere"], false, "a fresh read resets it");
    assert_eq!(result.structured_content().unwrap()["etag"], etag(&digest_of(b"fresh\n")));
}

#[test]
fn a_dry_run_shows_the_edited_text_and_changes_nothing() {
    let bench = Bench::new();
    bench.put("f", "a\n");
    let result =
        bench.call("edit_file", json!({"path": "f", "old_text": "a", "new_text": "b", "dry_run": true})).unwrap();
    let expected = "Would replace 1 place in `f`; nothing was changed. It would read:\n     1\tb";
    assert_eq!(result.joined_text(), expected);
    let found = result.structured_content().unwrap();
    assert_eq!((&found["dry_run"], &found["etag"]), (&json!(true), &json!(etag(&digest_of(b"b\n")))));
    assert_eq!(bench.get("f"), b"a\n");
}

#[test]
fn rejects_contradictory_edits_and_files_that_are_not_valid_text() {
    refused("a", json!({"old_text": "a", "new_text": "a"}), ErrorKind::InvalidInput, "are the same");
    refused(
        "a",
        json!({"old_text": "a", "new_text": "b", "count": 1, "replace_all": true}),
        ErrorKind::InvalidInput,
        "exclude",
    );
    refused(b"a\0b", json!({"old_text": "a", "new_text": "b"}), ErrorKind::UnsupportedType, "is not text");
    refused(
        b"\xef\xbb\xbfa\xff",
        json!({"old_text": "a", "new_text": "b"}),
        ErrorKind::UnsupportedType,
        "not valid in utf-8",
    );
}

#[test]
fn fifty_edits_at_the_same_time_are_all_done() {
    let bench = Bench::new();
    bench.put("f", (0..50).map(|n| format!("<{n}>\n")).collect::<String>());
    let calls = (0..50)
        .map(|n| ("edit_file", json!({"path": "f", "old_text": format!("<{n}>"), "new_text": format!("[{n}]")})));
    for result in bench.call_at_once(calls.collect()) {
        result.unwrap();
    }
    let expected: String = (0..50).map(|n| format!("[{n}]\n")).collect();
    assert_eq!(bench.get("f"), expected.into_bytes());
}

/// An encoding, the beginning of a file by which it is detected, and a character that it contains.
const ENCODINGS: &[(&str, &[u8], &str, char)] = &[
    ("utf-8", b"", "plain\n", 'ß'),
    ("utf-8", b"\xef\xbb\xbf", "", '→'),
    ("utf-16le", b"\xff\xfe", "", '𝄞'),
    ("utf-16be", b"\xfe\xff", "", 'ß'),
    ("utf-32le", b"\xff\xfe\0\0", "", '𝄞'),
    ("utf-32be", b"\0\0\xfe\xff", "", 'ß'),
    ("windows-1252", b"", "schöne grüße aus köln, und viel spaß\n", 'ü'),
    ("gb18030", b"", "这是一个中文文件，用来测试编码的转换和编辑。\n", '测'),
    ("shift_jis", b"", "これは日本語のテキストファイルです。編集の試験に使います。\n", '編'),
];

/// Returns the lines that a unified diff does not change: those of the old text, and those of the new one.
fn untouched<'t>(diff: &str, old: &[&'t str], new: &[&'t str]) -> (Vec<&'t str>, Vec<&'t str>) {
    let (mut olds, mut news) = (vec![true; old.len()], vec![true; new.len()]);
    let (mut at_old, mut at_new) = (0, 0);
    for line in diff.split('\n').skip(2) {
        let number = |text: &str| text[1..].split(',').next().unwrap().parse::<usize>().unwrap();
        match line.chars().next() {
            Some('@') => {
                let mut parts = line.split(' ').skip(1);
                at_old = number(parts.next().unwrap()).saturating_sub(1);
                at_new = number(parts.next().unwrap()).saturating_sub(1);
            }
            Some('-') => {
                olds[at_old] = false;
                at_old += 1;
            }
            Some('+') => {
                news[at_new] = false;
                at_new += 1;
            }
            Some(' ') => {
                at_old += 1;
                at_new += 1;
            }
            _ => {}
        }
    }
    let kept = |lines: &[&'t str], flags: &[bool]| {
        lines.iter().zip(flags).filter(|(_, kept)| **kept).map(|(line, _)| *line).collect()
    };
    (kept(old, &olds), kept(new, &news))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn bytes_outside_the_reported_hunks_stay_unchanged_and_the_etag_matches_the_file(
        encoding in 0..ENCODINGS.len(),
        lines in prop::collection::vec(("[ab#]{1,3}", 0..3usize), 1..8),
        is_ended: bool,
        place in (0..30usize, 1..9usize),
        new in "[abx#\n]{0,6}",
        replace_all: bool,
    ) {
        let (name, mark, telling, own) = ENCODINGS[encoding];
        let own_text = |text: &str| text.replace('#', &own.to_string());
        let mut before = telling.to_owned();
        for (index, (line, ending)) in lines.iter().enumerate() {
            before.push_str(&own_text(line));
            if is_ended || index + 1 < lines.len() {
                before.push_str(["\n", "\r\n", "\r"][*ending]);
            }
        }
        let view = view_of(&before);
        let body: Vec<(usize, char)> = view.char_indices().skip(telling.chars().count()).collect();
        let start = place.0.min(body.len() - 1);
        let old: String = body[start..].iter().take(place.1).map(|(_, c)| *c).collect();
        let new = own_text(&new);
        let known = TextEncoding::named(name, b"").unwrap();
        let bytes = [mark, &known.encode(&before).unwrap()].concat();
        let bench = Bench::new();
        bench.put("f", &bytes);
        let arguments = json!({"path": "f", "old_text": old, "new_text": new, "replace_all": replace_all});
        match bench.call("edit_file", arguments) {
            Err(failure) => {
                let kinds = [ErrorKind::AmbiguousMatch, ErrorKind::InvalidInput, ErrorKind::NoMatch];
                prop_assert!(kinds.contains(&failure.kind), "{}", failure.text());
                prop_assert_eq!(bench.get("f"), bytes);
            }
            Ok(result) => {
                let stored = bench.get("f");
                let found = result.structured_content().unwrap();
                prop_assert_eq!(&found["etag"], &json!(etag(&digest_of(&stored))));
                prop_assert!(stored.starts_with(mark));
                let after = known.decode_exactly(&stored[mark.len()..]).unwrap();
                let replaced = if replace_all { view.replace(&old, &new) } else { view.replacen(&old, &new, 1) };
                if view.contains('\r') {
                    // A line feed after a lone carriage return turns two line endings into one.
                    let letters = |text: &str| text.replace(['\r', '\n'], "");
                    prop_assert_eq!(letters(&after), letters(&replaced));
                } else {
                    prop_assert_eq!(after.replace("\r\n", "\n").replace('\r', "\n"), replaced);
                }
                let diff = found["diff"].as_str().unwrap_or_default();
                let end = if before.contains('\n') || !before.contains('\r') { '\n' } else { '\r' };
                let olds: Vec<&str> = before.split_inclusive(end).collect();
                let news: Vec<&str> = after.split_inclusive(end).collect();
                let (kept, same) = untouched(diff, &olds, &news);
                prop_assert_eq!(kept, same, "{}", diff);
            }
        }
    }
}

/// Returns a text as the tool compares it.
fn view_of(text: &str) -> String {
    match text.contains('\n') {
        true => text.replace("\r\n", "\n"),
        false => text.replace('\r', "\n"),
    }
}
