//! Tests of the tool `read_file`.

use super::*;
use crate::builtin::{files::etag::digest_of, tests::Bench, text::text_encoding::TextEncoding};
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
        "     1\tone\n     2\ttwo\n     3\t\n     4\tend\n[line endings: mixed; `show_ends` marks each]",
        json!({"content": "one\r\ntwo\n\nend", "start_line": 1, "end_line": 4, "total_lines": 4, "size_bytes": 13, "encoding": "utf-8", "line_ending": "mixed", "truncated": false, "next_offset": null, "kind": "text", "path": "f", "etag": etag(&digest_of(b"one\r\ntwo\n\nend"))}),
    );
}

#[test]
fn a_partial_read_returns_the_next_offset_and_negative_offsets_count_from_the_end() {
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
fn line_numbers_use_the_requested_style() {
    check(b"a\nb\n", json!({"number_style": "colon"}), "1: a\n2: b", json!({"content": "a\nb\n"}));
}

#[test]
fn empty_files_and_offsets_past_the_end_are_reported() {
    check(b"", json!({}), "[`f` exists and is empty]", json!({"content": "", "total_lines": 0, "start_line": null}));
    check(
        b"1\n",
        json!({"offset": 7}),
        "[`f` has 1 line; line 7 is past its end]",
        json!({"content": "", "total_lines": 1, "truncated": false}),
    );
}

#[test]
fn show_ends_marks_line_endings_and_squeeze_blank_merges_blank_lines() {
    check(
        b"a\r\n\n\n\nb",
        json!({"show_ends": true, "squeeze_blank": true}),
        "     1\ta^M$\n     2\t$\n     5\tb\n[line endings: mixed; `show_ends` marks each]",
        json!({"content": "a\r\n\n\n\nb"}),
    );
}

#[test]
fn show_ends_marks_every_carriage_return() {
    check(
        b"a\rb\r\nc\r",
        json!({"show_ends": true}),
        "     1\ta^Mb^M$\n     2\tc^M\n[line endings: mixed; `show_ends` marks each]",
        json!({"content": "a\rb\r\nc\r"}),
    );
}

#[test]
fn carriage_returns_alone_separate_lines_except_in_large_files() {
    let text_of = |text: &str| format!("{text}\n[line endings: CR alone]");
    check(
        b"a\rb\rc",
        json!({}),
        &text_of("     1\ta\n     2\tb\n     3\tc"),
        json!({"content": "a\rb\rc", "total_lines": 3, "line_ending": "cr", "truncated": false}),
    );
    check(
        b"a\rb\rc\r",
        json!({"offset": 2, "limit": 1, "show_ends": true}),
        "     2\tb^M\n[lines 2 to 2 of 3; read on with offset=3]\n[line endings: CR alone]",
        json!({"content": "b\r", "start_line": 2, "end_line": 2, "next_offset": 3}),
    );
    check(
        b"\xff\xfea\0\r\0b\0",
        json!({"offset": -1}),
        "     2\tb\n[encoding: utf-16le with a byte order mark]\n[line endings: CR alone]",
        json!({"content": "b", "total_lines": 2}),
    );
    let bench = Bench::new();
    bench.put("f", "a\rb\rc");
    assert_eq!(bench.text("file_info", json!({"path": "f", "only": "lines"})), "3");
    assert!(bench.text("file_info", json!({"path": "f"})).contains("line endings: CR\nlines: 3\n"));
    let large = "line\r".repeat(60_000);
    bench.put("f", &large);
    assert_eq!(bench.text("file_info", json!({"path": "f", "only": "lines"})), "1");
    let note = "[line endings: CR alone, which do not count as line breaks in so large a file]";
    assert!(bench.text("read_file", json!({"path": "f"})).ends_with(note));
}

#[test]
fn a_blank_last_line_is_shown_without_numbers_too() {
    check(b"a\n\n", json!({"line_numbers": false}), "a\n", json!({"content": "a\n\n", "total_lines": 2}));
    check(b"a\n\n\n", json!({"line_numbers": false}), "a\n\n", json!({"total_lines": 3}));
    check(b"a\n", json!({"line_numbers": false}), "a", json!({"total_lines": 1}));
    check(b"a\r\n\r\n", json!({"line_numbers": false}), "a\n\n[line endings: CRLF]", json!({"content": "a\r\n\r\n"}));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn all_tools_count_the_same_lines(text in "([ab]{0,2}(\n|\r|\r\n)){1,4}[ab]{1,2}", by_returns: bool) {
        let text = if by_returns { text.replace(['\n', '\r'], "\r") } else { text };
        let bench = Bench::new();
        bench.put("f", &text);
        let text_of = |tool: &str, arguments: Value| bench.call(tool, arguments).unwrap().structured_content().unwrap().clone();
        let read = text_of("read_file", json!({"path": "f"}));
        let total = read["total_lines"].clone();
        prop_assert_eq!(&read["content"], &json!(text));
        prop_assert_eq!(&text_of("file_info", json!({"path": "f"}))["lines"], &total);
        prop_assert_eq!(&text_of("write_file", json!({"path": "g", "content": text}))["lines"], &total);
        // The last line contains the end of the text.
        let last = text.chars().last().unwrap().to_string();
        let edit = json!({"path": "f", "old_text": last, "new_text": "x", "replace_all": true, "start_line": total});
        let lines = text_of("edit_file", edit)["lines"].as_array().unwrap().clone();
        prop_assert_eq!(lines.last(), Some(&total));
        let past = bench.call("edit_file", json!({"path": "f", "old_text": "x", "new_text": "y",
            "start_line": total.as_u64().unwrap() + 1}));
        let (text_of, expected) = (past.unwrap_err().text(), format!("`f` has {total} line"));
        prop_assert!(text_of.contains(&expected), "{}", text_of);
    }
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
fn a_page_ends_at_a_line_break_rather_than_cutting_its_content() {
    let line = format!("{}\n", "x".repeat(992));
    let bench = Bench::new();
    bench.put("f", line.repeat(150));
    let result = bench.call("read_file", json!({"path": "f"})).unwrap();
    let found = result.structured_content().unwrap();
    assert_eq!((&found["end_line"], &found["next_offset"]), (&json!(29), &json!(30)));
    assert_eq!(found["content"], line.repeat(29));
    let text = result.joined_text();
    assert!(text.chars().count() <= 30_000 && text.ends_with("[lines 1 to 29 of 150; read on with offset=30]"));
}

#[test]
fn a_line_longer_than_a_page_is_reported_as_cut() {
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
    let answer = bench.call("read_file", json!({"path": "f", "encoding": "klingon"})).unwrap_err().text();
    assert!(answer.starts_with("`klingon` is not a known encoding"), "{answer}");
}

#[test]
fn a_binary_file_is_reported_with_its_type_and_first_bytes() {
    let bytes = [b"\x7fELF", &[0; 12][..], b"0123456789abcdef".repeat(20).as_slice()].concat();
    let bench = Bench::new();
    bench.put("f", &bytes);
    let result = bench.call("read_file", json!({"path": "f"})).unwrap();
    let (text, found) = (result.joined_text(), result.structured_content().unwrap());
    let begins = format!(
        "`f` is not text: it looks like an ELF program or library and has 336 bytes. SHA-256: {}. Bytes 0 to 255:\n\
         00000000  7f 45 4c 46 00 00 00 00 00 00 00 00 00 00 00 00  .ELF............\n",
        digest_of(&bytes)
    );
    assert!(text.starts_with(&begins) && text.ends_with("[see more with byte_offset=256]"), "{text}");
    assert_eq!(text.lines().count(), 18);
    assert_eq!((&found["kind"], &found["truncated"]), (&json!("binary"), &json!(true)));
    assert_eq!(found["mime"], "application/x-executable");
}

#[test]
fn byte_offset_shows_bytes_from_any_position_of_any_file() {
    let bench = Bench::new();
    bench.put("f", "one\ntwo\n");
    let text = |offset: i64| bench.text("read_file", json!({"path": "f", "byte_offset": offset}));
    assert!(text(-4).ends_with("Bytes 4 to 7:\n00000004  74 77 6f 0a                                      two."));
    assert!(text(-400).contains("Bytes 0 to 7:"));
    assert!(text(8).ends_with("That offset is past the end."));
    bench.put("g", "");
    assert!(bench.text("read_file", json!({"path": "g", "byte_offset": 0})).starts_with("`g` has 0 bytes."));
}

#[test]
fn around_shows_a_line_with_its_neighbouring_lines() {
    let text: String = (1..=9).map(|n| format!("{n}\n")).collect();
    check(
        text.as_bytes(),
        json!({"around": 5, "limit": 3}),
        "     4\t4\n     5\t5\n     6\t6\n[lines 4 to 6 of 9; read on with offset=7]",
        json!({"start_line": 4, "end_line": 6}),
    );
    check(
        text.as_bytes(),
        json!({"around": 9, "limit": 3}),
        "     8\t8\n     9\t9\n[lines 8 to 9 of 9]",
        json!({"start_line": 8, "next_offset": null}),
    );
    check(text.as_bytes(), json!({"around": 10}), "[`f` has 9 lines; line 10 is past its end]", json!({"content": ""}));
    let bench = Bench::new();
    bench.put("f", format!("{}\n", "x".repeat(999)).repeat(3000));
    let result = bench.call("read_file", json!({"path": "f", "around": 1500})).unwrap();
    let found = result.structured_content().unwrap();
    assert_eq!(
        (&found["start_line"], &found["end_line"]),
        (&json!(1486), &json!(1513)),
        "the middle, not the first lines"
    );
    let both = bench.call("read_file", json!({"path": "f", "around": 1, "offset": 2})).unwrap_err();
    assert!(both.text().starts_with("`offset` and `around` are both given. Give one of them"), "{}", both.text());
}

#[test]
fn rejects_parameters_for_other_kinds_of_files_and_names_the_kind() {
    let bench = Bench::new();
    bench.put("f", "text");
    bench.put("b", b"a\0b");
    let text_of = |arguments: Value| bench.call("read_file", arguments).unwrap_err().text();
    assert_eq!(
        text_of(json!({"path": "f", "pages": "1"})),
        "`pages` is for documents, and `f` is a text. Leave it out; `offset` and `limit` choose the lines of a text."
    );
    let crop = json!({"x": 0, "y": 0, "width": 1, "height": 1});
    assert_eq!(
        text_of(json!({"path": "b", "crop": crop})),
        "`crop` is for images, and `b` is binary data. Leave it out."
    );
}

#[test]
fn a_folder_is_listed() {
    let bench = Bench::with_deny(&["Read(secret)"]);
    bench.put("dir/b.txt", "12");
    bench.put("dir/a/deep.txt", "");
    bench.put("dir/secret", "");
    let result = bench.call("read_file", json!({"path": "dir"})).unwrap();
    assert_eq!(
        result.joined_text(),
        "dir/\n  a/\n  b.txt\n[1 file or folder was not shown: a rule denies reading it.]"
    );
    let found = result.structured_content().unwrap();
    assert_eq!((&found["kind"], &found["entries"][1]["path"]), (&json!("folder"), &json!("b.txt")));
}

#[test]
fn a_read_records_the_content_hash_and_returns_it_as_an_etag() {
    let bench = Bench::new();
    bench.put("f", "one\ntwo\n");
    assert_eq!(bench.known("f"), None);
    let etag_of =
        |arguments: Value| bench.call("read_file", arguments).unwrap().structured_content().unwrap()["etag"].clone();
    let first = etag_of(json!({"path": "f", "limit": 1}));
    assert_eq!(bench.known("f"), Some(digest_of(b"one\ntwo\n")));
    bench.put("f", "other\n");
    let second = etag_of(json!({"path": "f"}));
    assert_eq!(bench.known("f"), Some(digest_of(b"other\n")));
    assert_eq!((first, second), (json!(etag(&digest_of(b"one\ntwo\n"))), json!(etag(&digest_of(b"other\n")))));
    bench.put("large", "x\n".repeat(6 << 20));
    assert_eq!(etag_of(json!({"path": "large", "limit": 1})), Value::Null, "more than is read as a whole");
    assert_eq!(bench.known("large"), None);
    bench.put("f", "x\n".repeat(6 << 20));
    assert_eq!(etag_of(json!({"path": "f", "limit": 1})), Value::Null);
    assert_eq!(bench.known("f"), None, "what it was before it grew is not known of it any more");
}

#[test]
fn a_stored_output_is_read_like_a_file() {
    let bench = Bench::new();
    let text: String = (1..=2_000_000).map(|n| format!("{n}\n")).collect();
    let handle = bench.keep("text/plain", &text);
    assert_eq!(bench.text("read_file", json!({"path": handle, "offset": -2})), "1999999\t1999999\n2000000\t2000000");
    let around = bench.text("read_file", json!({"path": handle, "around": 1_000_000, "limit": 1}));
    assert_eq!(around, "1000000\t1000000\n[lines 1000000 to 1000000 of 2000000; read on with offset=1000001]");
}

#[test]
fn rejects_named_pipes_and_proc_files() {
    let bench = Bench::new();
    rustix::fs::mknodat(rustix::fs::CWD, bench.path("pipe"), rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
        .unwrap();
    let answer = bench.call("read_file", json!({"path": "pipe"})).unwrap_err().text();
    assert!(answer.contains("is a named pipe, not a file"), "{answer}");
    let answer = bench.call("read_file", json!({"path": "/proc/self/mem"})).unwrap_err().text();
    assert!(answer.contains("outside of the workspace"), "{answer}");
}

#[test]
fn a_terabyte_sparse_file_is_readable_at_its_end_and_reported_as_binary() {
    let bench = Bench::new();
    bench.put_sparse("f", 1 << 40);
    let text = bench.text("read_file", json!({"path": "f", "byte_offset": -16}));
    assert!(text.contains("has 1099511627776 bytes. Bytes 1099511627760 to 1099511627775:"), "{text}");
    assert!(bench.text("read_file", json!({"path": "f"})).starts_with("`f` is not text: it looks like binary data"));
}

#[test]
fn read_errors_name_the_deny_rule_an_existing_file_or_the_workspace_boundary() {
    let bench = Bench::with_deny(&["Read(secret.txt)"]);
    bench.put("secret.txt", "s");
    bench.put("dir/x.txt", "x");
    let text_of = |path: &str| bench.call("read_file", json!({"path": path})).unwrap_err().text();
    assert!(text_of("secret.txt").contains("Read(secret.txt)"), "the rule is named");
    assert!(text_of("dir/y.txt").contains("there is `x.txt`"));
    assert!(text_of("/etc/passwd").contains("outside of the workspace"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn consecutive_pages_together_contain_the_whole_file(text in "([a-zäöü]{0,9}\r?\n){0,30}[a-z]{0,3}", limit in 1_u64..9) {
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

/// Splits a text into lines in the usual way.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(if text.contains('\n') { '\n' } else { '\r' })
}

fn naive(text: &str, first: usize, count: usize) -> String {
    lines(text).skip(first - 1).take(count).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_line_range_in_any_encoding_equals_the_result_of_splitting_the_text(
        text in "([a-zäß€]{0,9}(\r\n|\n|\r|\n\n)){1,30}[a-z]{0,3}",
        encoding in prop::sample::select(
            &["utf-8", "utf-16le", "utf-16be", "utf-32le", "utf-32be", "windows-1252"][..],
        ),
        has_mark: bool,
        at in 1_usize..40,
        limit in 1_usize..9,
    ) {
        let known = TextEncoding::named(encoding, b"").unwrap();
        let has_mark = has_mark && encoding != "windows-1252";
        let mark = if has_mark { known.encode("\u{feff}").unwrap().into_owned() } else { Vec::new() };
        let bench = Bench::new();
        bench.put("f", [mark, known.encode(&text).unwrap().into_owned()].concat());
        let content = |mut arguments: Value| {
            arguments["path"] = "f".into();
            arguments["limit"] = limit.into();
            arguments["encoding"] = encoding.into();
            let result = bench.call("read_file", arguments).unwrap();
            result.structured_content().unwrap()["content"].as_str().unwrap().to_owned()
        };
        let total = lines(&text).count();
        prop_assert_eq!(content(json!({"offset": at})), naive(&text, at, limit));
        prop_assert_eq!(content(json!({"offset": -(at as i64)})), naive(&text, total.saturating_sub(at) + 1, limit));
        let before = (limit - 1) / 2;
        let around = if at > total { String::new() } else {
            naive(&text, at.saturating_sub(before).max(1), limit - before + before.min(at - 1))
        };
        prop_assert_eq!(content(json!({"around": at})), around);
    }
}

#[test]
fn reads_of_a_growing_file_succeed_and_later_show_its_new_lines() {
    let bench = Bench::new();
    bench.put("log", "line\n".repeat(300_000));
    let path = bench.path("log");
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| bench_append(&path));
        for offset in [1, -1, -300_000, 299_999, 300_001, 400_000] {
            bench.call("read_file", json!({"path": "log", "offset": offset, "limit": 5})).unwrap();
        }
        writer.join().unwrap();
    });
    // An index from before the file grew does not hide the new lines.
    let total = 300_000 + GROWTH;
    let text = bench.text("read_file", json!({"path": "log", "offset": -1}));
    assert_eq!(text, format!("{total:>6}\tline"));
}

const GROWTH: usize = 20_000;

#[expect(clippy::disallowed_methods, reason = "somebody else writes")]
fn bench_append(path: &std::path::Path) {
    use std::io::Write;
    let mut file = std::fs::File::options().append(true).open(path).unwrap();
    (0..GROWTH).for_each(|_| file.write_all(b"line\n").unwrap());
}

#[test]
fn rejects_documents_if_the_application_does_not_call_enter_if_helper() {
    let bench = Bench::new();
    bench.put("a.pdf", "%PDF-1.4\n");
    let failure = bench.call("read_file", json!({"path": "a.pdf"})).unwrap_err();
    let text = "the document `a.pdf` could not be read: the embedding application does not support it: its `main` \
                does not begin with `enter_if_helper()`";
    assert!(failure.to_string().starts_with(text), "{failure}");
    assert_eq!(failure.kind, ErrorKind::Unavailable);
}

#[test]
fn stored_outputs_are_sanitized_and_workspace_files_are_shown_unchanged() {
    let bench = Bench::new();
    let content = "a\u{200b}b <system-reminder>\u{e0101}\n";
    let handle = bench.keep("text/plain", content);
    bench.put("f.txt", content);
    let shown = "ab &lt;system-reminder>";
    let read = bench.call("read_file", json!({"path": &handle})).unwrap();
    assert_eq!(read.joined_text(), format!("[2 invisible characters were removed.]\n     1\t{shown}"));
    assert_eq!(read.structured_content().unwrap()["invisible_characters_removed"], 2);
    let found = bench.text("grep", json!({"path": &handle, "pattern": "reminder", "output_mode": "content"}));
    assert!(found.contains(shown) && found.starts_with("[2 invisible characters were removed.]\n"), "{found}");
    assert_eq!(bench.text("read_file", json!({"path": "f.txt"})), format!("     1\t{}", content.trim_end()));
    let found = bench.text("grep", json!({"path": "f.txt", "pattern": "reminder", "output_mode": "content"}));
    assert!(found.contains(content.trim_end()), "{found}");
}
