//! What `edit_file` promises.

use super::*;
use crate::builtin::tests::Bench;
use proptest::prelude::*;
use serde_json::json;

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
fn a_text_that_stands_once_is_replaced() {
    check("a\nb\nc\n", json!({"old_text": "b\n", "new_text": "x\ny\n"}), "a\nx\ny\nc\n");
    check("a b a", json!({"old_text": "a", "new_text": "c", "replace_all": true}), "c b c");
    check("a b a", json!({"old_text": "a", "new_text": "aa", "count": 1}), "aa b a");
    check("a\na\na\n", json!({"old_text": "a", "new_text": "b", "start_line": 2, "end_line": 2}), "a\nb\na\n");
    check("abc", json!({"old_text": "b", "new_text": ""}), "ac");
}

#[test]
fn the_answer_shows_the_place_as_it_reads_now() {
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
fn line_endings_marks_and_encodings_stay() {
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
        "windows-1252, which has no `→`",
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
        "no regular expression",
    );
    refused(
        "a",
        json!({"old_text": "b", "new_text": "", "regex": true, "replace_all": true}),
        ErrorKind::NoMatch,
        "matches no line",
    );
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
    let told = bench.call("edit_file", json!({"path": "emty", "old_text": "a", "new_text": "b"})).unwrap_err().text();
    assert!(told.contains("`empty`"), "{told}");
}

#[test]
fn a_text_that_stands_elsewhere_or_often_is_told_where() {
    refused(
        "a\nb\na\n",
        json!({"old_text": "a", "new_text": "c"}),
        ErrorKind::AmbiguousMatch,
        "stands in 2 places of `f`: lines 1, 3. Give more",
    );
    refused("aaa", json!({"old_text": "aa", "new_text": "c"}), ErrorKind::AmbiguousMatch, "2 places");
    refused(
        "a a",
        json!({"old_text": "a", "new_text": "c", "count": 3}),
        ErrorKind::NoMatch,
        "in 2 places of `f`, and `count` is 3",
    );
    refused(
        "if a {\n\tlet value = 1;\n}\n",
        json!({"old_text": "    let value = 1;", "new_text": "x"}),
        ErrorKind::NoMatch,
        "differ from it only in white space or quotation marks:\n     2\t\tlet value = 1;\n",
    );
    refused(
        "fn one() {}\nfn calculate(a: u32) {}\n",
        json!({"old_text": "fn calculate(b: u32) {}", "new_text": "x"}),
        ErrorKind::NoMatch,
        "the nearest to it is around line 2",
    );
    refused("let done = true;", json!({"old_text": "old", "new_text": "let done"}), ErrorKind::NoMatch, "made already");
    refused("a\nb\n", json!({"old_text": "a", "new_text": "c", "start_line": 2}), ErrorKind::NoMatch, "not between");
    refused("a\n", json!({"old_text": "a", "new_text": "c", "start_line": 9}), ErrorKind::InvalidInput, "has 1 line");
    refused("zzz\n", json!({"old_text": "q", "new_text": "c"}), ErrorKind::NoMatch, "use `grep`");
}

#[test]
fn what_cannot_be_edited_safely_is_left_alone() {
    refused("a", json!({"old_text": "a", "new_text": "a"}), ErrorKind::InvalidInput, "are the same");
    refused(
        "a",
        json!({"old_text": "a", "new_text": "b", "count": 1, "replace_all": true}),
        ErrorKind::InvalidInput,
        "exclude",
    );
    refused(b"a\0b", json!({"old_text": "a", "new_text": "b"}), ErrorKind::UnsupportedType, "no text");
    refused(
        b"\xef\xbb\xbfa\xff",
        json!({"old_text": "a", "new_text": "b"}),
        ErrorKind::UnsupportedType,
        "not valid in utf-8",
    );
}

#[test]
fn edits_at_the_same_time_are_all_done() {
    let bench = Bench::new();
    bench.put("f", (0..20).map(|n| format!("<{n}>\n")).collect::<String>());
    let calls = (0..20)
        .map(|n| ("edit_file", json!({"path": "f", "old_text": format!("<{n}>"), "new_text": format!("[{n}]")})));
    for result in bench.call_at_once(calls.collect()) {
        result.unwrap();
    }
    let expected: String = (0..20).map(|n| format!("[{n}]\n")).collect();
    assert_eq!(bench.get("f"), expected.into_bytes());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn bytes_outside_of_the_places_are_the_same(
        pieces in prop::collection::vec("[abc\r\n]{0,6}", 1..6), old in "<[xy\n]{0,4}>", new in "[xyz\n]{0,5}",
    ) {
        // The places are where `old` stands; around them is anything, with any mixture of line endings.
        let bytes = pieces.join(&*old.replace('\n', "\r\n"));
        prop_assume!(pieces.len() > 1 && new != old);
        let bench = Bench::new();
        bench.put("f", &bytes);
        let arguments = json!({"path": "f", "old_text": old, "new_text": new, "replace_all": true});
        bench.call("edit_file", arguments).unwrap();
        let after = String::from_utf8(bench.get("f")).unwrap();
        // What stands between the pieces is the new text with some line endings.
        let mut rest = &*after;
        for (index, piece) in pieces.iter().enumerate() {
            prop_assert!(rest.starts_with(piece), "{after:?} keeps {piece:?}");
            rest = &rest[piece.len()..];
            if index + 1 < pieces.len() {
                let place = (0..=rest.len())
                    .filter(|end| rest.is_char_boundary(*end))
                    .find(|end| rest[..*end].replace("\r\n", "\n") == new && rest[*end..].starts_with(&*pieces[index + 1]));
                prop_assert!(place.is_some(), "{after:?} holds {new:?} after {piece:?}");
                rest = &rest[place.unwrap_or(0)..];
            }
        }
        prop_assert_eq!(rest, "");
    }
}
