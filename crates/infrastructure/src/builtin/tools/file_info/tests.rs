//! Tests of the tool `file_info`.

use super::*;
use crate::builtin::{files::etag::digest_of, tests::Bench};
use serde_json::json;

#[test]
fn file_info_describes_a_text_file_in_full() {
    let bench = Bench::new();
    bench.put_at("a.md", b"\xef\xbb\xbf# x\r\ny", 60);
    bench.set_mode("a.md", 0o640);
    let etag = etag(&digest_of(b"\xef\xbb\xbf# x\r\ny"));
    let result = bench.call("file_info", json!({"path": "a.md"})).unwrap();
    let expected = json!({
        "path": "a.md", "kind": "file", "size": 9, "mtime": "2026-01-01T00:01:00Z", "mode": "0640", "links": 1,
        "mime": "text/markdown", "is_binary": false, "encoding": "utf-8", "byte_order_mark": true,
        "line_ending": "crlf", "lines": 2, "etag": etag,
    });
    assert_eq!(result.structured_content(), Some(&expected));
    assert_eq!(
        result.joined_text(),
        format!(
            "path: a.md\nkind: a file\nsize: 9 bytes\nchanged: 2026-01-01T00:01:00Z\npermissions: 0640\n\
             media type: text/markdown\nencoding: utf-8 with a byte order mark\nline endings: CRLF\nlines: 2\n\
             etag: {etag}"
        )
    );
}

#[test]
fn file_info_describes_links_folders_and_stored_outputs() {
    let bench = Bench::new();
    bench.put("dir/b", b"a\0b");
    bench.link("dir/b", "link");
    bench.hard_link("dir/b", "twin");
    let members = |path: &str, names: &[&str]| {
        let result = bench.call("file_info", json!({"path": path})).unwrap();
        let found = result.structured_content().unwrap();
        names.iter().map(|name| found[name].clone()).collect::<Vec<_>>()
    };
    assert_eq!(
        members("link", &["kind", "target", "is_binary", "mime", "lines", "links"]),
        [json!("file"), json!("dir/b"), json!(true), json!("application/octet-stream"), json!(null), json!(2)]
    );
    assert_eq!(members("dir", &["kind", "mime"]), [json!("folder"), json!(null)]);
    let handle = bench.keep("text/plain", "1\n2\n");
    assert_eq!(members(&handle, &["kind", "size", "lines"]), [json!("output"), json!(4), json!(2)]);
}

#[test]
fn a_single_requested_fact_is_returned_without_a_label() {
    let bench = Bench::new();
    bench.put("a.txt", "1\n2\n3");
    bench.put("b", b"a\0b");
    assert_eq!(bench.text("file_info", json!({"path": "a.txt", "only": "lines"})), "3");
    assert_eq!(bench.text("file_info", json!({"path": "a.txt", "only": "mime"})), "text/plain");
    let output = bench.call("file_info", json!({"path": "b", "only": "lines"})).unwrap_err().text();
    assert_eq!(output, "`b` has no lines: it is binary data. Omit `only` to see what is known about it.");
    bench.put("d/x", "");
    let output = bench.call("file_info", json!({"path": "d", "only": "mime"})).unwrap_err().text();
    assert!(output.starts_with("`d` has no media type: it is a folder."), "{output}");
}

#[test]
fn file_info_stops_counting_lines_at_the_deadline() {
    let bench = Bench::new();
    bench.put("a.txt", "1\n".repeat(1 << 20));
    let result = bench.call_within(std::time::Duration::ZERO, "file_info", json!({"path": "a.txt"})).unwrap();
    assert!(result.joined_text().ends_with("[the time ran out before all lines were counted; call again to continue]"));
    assert_eq!(result.structured_content().unwrap().get("lines"), None);
    let output = bench.call_within(std::time::Duration::ZERO, "file_info", json!({"path": "a.txt", "only": "lines"}));
    assert_eq!(output.unwrap_err().kind, ErrorKind::Timeout);
}
