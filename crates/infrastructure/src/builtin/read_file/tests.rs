//! What `read_file` promises.

use super::*;
use crate::builtin::tests::Bench;
use proptest::prelude::*;
use serde_json::json;

#[track_caller]
fn check(content: &[u8], arguments: Value, text: &str, structured: Value) {
    let bench = Bench::new();
    bench.put("f", content);
    let mut arguments = arguments;
    arguments["path"] = "f".into();
    let result = bench.call("read_file", arguments).unwrap();
    let found = result.structured_content().unwrap();
    let found: Value = structured.as_object().unwrap().keys().map(|key| (key.clone(), found[key].clone())).collect();
    assert_eq!((result.joined_text().as_str(), found), (text, structured));
}

#[test]
fn lines_are_numbered_and_the_content_is_raw() {
    check(
        b"one\r\ntwo\n\nend",
        json!({}),
        "     1\tone\n     2\ttwo\n     3\t\n     4\tend",
        json!({"content": "one\r\ntwo\n\nend", "start_line": 1, "end_line": 4, "total_lines": 4, "size_bytes": 13, "encoding": "utf-8", "truncated": false, "next_offset": null, "kind": "text", "path": "f"}),
    );
}

#[test]
fn a_part_says_where_to_read_on() {
    check(
        b"1\n2\n3\n4\n",
        json!({"offset": 2, "limit": 2}),
        "     2\t2\n     3\t3\n[lines 2 to 3 of 4; read on with offset=4]",
        json!({"content": "2\n3\n", "start_line": 2, "end_line": 3, "truncated": true, "next_offset": 4}),
    );
    check(b"1\n2\n3\n", json!({"offset": -2}), "     2\t2\n     3\t3", json!({"start_line": 2, "truncated": false}));
    check(b"1\n2\n", json!({"offset": -9}), "     1\t1\n     2\t2", json!({"start_line": 1}));
    check(b"1\n2\n", json!({"offset": 0, "line_numbers": false}), "1\n2", json!({"start_line": 1}));
}

#[test]
fn emptiness_and_the_end_are_told_as_such() {
    check(b"", json!({}), "[`f` exists and is empty]", json!({"content": "", "total_lines": 0, "start_line": null}));
    check(
        b"1\n",
        json!({"offset": 7}),
        "[`f` has 1 line; line 7 lies past its end]",
        json!({"content": "", "total_lines": 1, "truncated": false}),
    );
}

#[test]
fn ends_and_blank_lines_are_shown_as_asked() {
    check(
        b"a\r\n\n\n\nb",
        json!({"show_ends": true, "squeeze_blank": true}),
        "     1\ta^M$\n     2\t$\n     5\tb",
        json!({"content": "a\r\n\n\n\nb"}),
    );
}

#[test]
fn long_lines_are_cut_with_a_count_and_stay_whole_in_the_content() {
    let line = "ä".repeat(2500);
    check(
        line.as_bytes(),
        json!({}),
        &format!("     1\t{}… [500 more characters]", "ä".repeat(2000)),
        json!({"content": line, "truncated": false}),
    );
}

#[test]
fn a_page_ends_at_a_line() {
    let line = format!("{}\n", "x".repeat(999));
    let bench = Bench::new();
    bench.put("f", line.repeat(150));
    let result = bench.call("read_file", json!({"path": "f"})).unwrap();
    let found = result.structured_content().unwrap();
    assert_eq!((&found["end_line"], &found["next_offset"]), (&json!(100), &json!(101)));
    assert_eq!(found["content"], line.repeat(100));
}

#[test]
fn a_line_longer_than_a_page_is_said_to_be_cut() {
    let bench = Bench::new();
    bench.put("f", format!("{}\nnext\n", "x".repeat(3_000_000)));
    let result = bench.call("read_file", json!({"path": "f"})).unwrap();
    assert!(result.joined_text().contains("is longer than a page"), "{}", &result.joined_text()[2000..]);
    let found = result.structured_content().unwrap();
    assert_eq!(
        (&found["truncated"], &found["next_offset"], &found["total_lines"]),
        (&json!(true), &json!(2), &json!(2))
    );
    let second = bench.call("read_file", json!({"path": "f", "offset": 2})).unwrap();
    assert_eq!(second.joined_text(), "     2\tnext");
}

#[test]
fn other_encodings_are_decoded_and_named() {
    check(
        b"\xff\xfea\0\n\0\xe4\0",
        json!({"offset": 2}),
        "     2\tä\n[encoding: utf-16le with a byte order mark]",
        json!({"content": "ä", "encoding": "utf-16le", "total_lines": 2}),
    );
    check(
        b"\xa4\n",
        json!({"encoding": "iso8859_15"}),
        "     1\t€\n[encoding: iso-8859-15]",
        json!({"content": "€\n"}),
    );
    check(
        b"a\xffb",
        json!({"encoding": "utf-8"}),
        "     1\ta\u{fffd}b\n[some bytes are not valid in utf-8 and are shown as \u{fffd}]",
        json!({"encoding": "utf-8"}),
    );
    let bench = Bench::new();
    bench.put("f", "x");
    let told = bench.call("read_file", json!({"path": "f", "encoding": "klingon"})).unwrap_err().text();
    assert!(told.starts_with("`klingon` is no encoding that is known"), "{told}");
}

#[test]
fn what_is_no_text_is_summarized() {
    check(
        b"\x89PNG\r\n\x1a\n\0\0",
        json!({}),
        "`f` is no text: it looks like a PNG image and has 10 bytes. It was not read further. It begins with these bytes:\n\
         00000000  89 50 4e 47 0d 0a 1a 0a 00 00                    .PNG......\n",
        json!({"kind": "binary", "content": "", "size_bytes": 10}),
    );
}

#[test]
fn what_cannot_be_read_is_told_with_what_to_do() {
    let bench = Bench::with_deny(&["Read(secret.txt)"]);
    bench.put("secret.txt", "s");
    bench.put("dir/x.txt", "x");
    let told = |path: &str| bench.call("read_file", json!({"path": path})).unwrap_err().text();
    assert!(told("secret.txt").contains("Read(secret.txt)"), "the rule is named");
    assert!(told("dir").contains("Use `list_directory`"));
    assert!(told("dir/y.txt").contains("there is `x.txt`"));
    assert!(told("/etc/passwd").contains("outside of the workspace"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn pages_put_together_are_the_whole(text in "([a-zäöü]{0,9}\r?\n){0,30}[a-z]{0,3}", limit in 1_u64..9) {
        let bench = Bench::new();
        bench.put("f", &text);
        let (mut whole, mut offset) = (String::new(), 1);
        loop {
            let result = bench.call("read_file", json!({"path": "f", "offset": offset, "limit": limit})).unwrap();
            let page = result.structured_content().unwrap();
            whole.push_str(page["content"].as_str().unwrap());
            match page["next_offset"].as_u64() {
                Some(next) => offset = next,
                None => break,
            }
        }
        prop_assert_eq!(whole, text);
    }
}

#[test]
fn without_the_door_a_document_is_refused_and_nothing_is_started() {
    let bench = Bench::new();
    bench.put("a.pdf", "%PDF-1.4\n");
    let failure = bench.call("read_file", json!({"path": "a.pdf"})).unwrap_err();
    let text = "the document `a.pdf` could not be read: the program that runs Toolstead does not offer it: its `main` \
                does not begin with `enter_if_helper()`";
    assert!(failure.to_string().starts_with(text), "{failure}");
    assert_eq!(failure.kind, ErrorKind::Unavailable);
}
