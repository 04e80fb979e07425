//! Tests of the tool `apply_patch`.

use crate::builtin::{
    files::etag::{digest_of, etag},
    tests::Bench,
    text::unified_diff::unified_diff,
    tools::apply_patch::text_lines::lines_of,
};
use proptest::prelude::*;
use serde_json::json;
use toolstead_domain::error_kind::ErrorKind;

fn envelope(body: &str) -> serde_json::Value {
    json!({"patch": format!("*** Begin Patch\n{body}\n*** End Patch\n")})
}

#[track_caller]
fn check(before: impl AsRef<[u8]>, hunks: &str, after: impl AsRef<[u8]>) {
    let bench = Bench::new();
    bench.put("f", before);
    bench.call("apply_patch", envelope(&format!("*** Update File: f\n{hunks}"))).unwrap();
    assert_eq!(String::from_utf8_lossy(&bench.get("f")), String::from_utf8_lossy(after.as_ref()));
    assert_eq!(bench.get("f"), after.as_ref());
}

/// Checks the failure's text, without the beginning and the end that all failures share.
#[track_caller]
fn refused(before: impl AsRef<[u8]>, hunks: &str, kind: ErrorKind, expected: &str) {
    let bench = Bench::new();
    bench.put("f", &before);
    bench.put("g", "other\n");
    let body = format!("*** Update File: g\n-other\n+new\n*** Update File: f\n{hunks}");
    let failure = bench.call("apply_patch", envelope(&body)).unwrap_err();
    let text = failure.text();
    let text = text.strip_prefix("the patch does not fit, and nothing was changed. In the patch:\n").unwrap_or(&text);
    assert_eq!(text, format!("{expected}\nCorrect these places, and give the whole patch again."));
    assert_eq!(failure.kind, kind);
    assert_eq!((bench.get("f"), bench.get("g")), (before.as_ref().to_vec(), b"other\n".to_vec()));
}

#[test]
fn a_patch_changes_several_files_at_once() {
    let bench = Bench::new();
    bench.put("src/a.rs", "one\ntwo\nthree\nfour\nfive\nsix\n");
    bench.put("run.sh", "#!/bin/sh\nexit 0\n");
    bench.set_mode("run.sh", 0o755);
    bench.put("old", "x\ny\n");
    let body = "*** Update File: src/a.rs\n@@\n three\n-four\n+vier\n+4\n five\n*** Update File: run.sh\n*** Move to: bin/go.sh\n-exit 0\n+exit 1\n*** Delete File: old\n*** Add File: new/b\n+hello\n";
    let result = bench.call("apply_patch", envelope(body)).unwrap();
    let expected = "Changed 4 files:\nupdated `src/a.rs` (+2 -1)\nmoved `run.sh` to `bin/go.sh` (+1 -1)\ndeleted `old` (+0 -2)\nadded `new/b` (+1 -0)\nTo undo it: `undo` with the call ID.\n`src/a.rs`:\n     1\tone\n     2\ttwo\n     3\tthree\n     4\tvier\n     5\t4\n     6\tfive\n     7\tsix\n\n`bin/go.sh`:\n     1\t#!/bin/sh\n     2\texit 1";
    assert_eq!(result.joined_text().replace(&bench.last_call().to_string(), "ID"), expected);
    assert_eq!(bench.get("src/a.rs"), b"one\ntwo\nthree\nvier\n4\nfive\nsix\n");
    assert_eq!((bench.get("bin/go.sh"), bench.mode("bin/go.sh")), (b"#!/bin/sh\nexit 1\n".to_vec(), 0o755));
    assert_eq!(bench.get("new/b"), b"hello\n");
    assert_eq!(bench.names("."), ["bin", "new", "src"]);
    let found = result.structured_content().unwrap();
    assert_eq!(found["files"][1]["action"], "moved");
    assert_eq!(found["files"][1]["moved_from"], "run.sh");
    assert_eq!(
        found["files"][2],
        json!({"path": "old", "action": "deleted", "added_lines": 0, "removed_lines": 2, "changed_elsewhere": false})
    );
    assert!(found["diff"].as_str().unwrap().contains("-four\n+vier\n+4\n"));
    assert_eq!(bench.journal().entries().len(), 1);
}

#[test]
fn bytes_outside_the_hunks_are_preserved() {
    check("a\r\nb\nc\r\nd", " a\n-b\n+x\n+y\n c", "a\r\nx\ny\nc\r\nd");
    check("a\r\nb\r\nc", " a\n+x\n b", "a\r\nx\r\nb\r\nc");
    check("a\rb\rc", "-b\n+x", "a\rx\rc");
    check("a\n\tb\rb\nc\n", "-c\n+d", "a\n\tb\rb\nd\n");
    check("\u{feff}a\nb\n", "-a\n+x", "\u{feff}x\nb\n");
    check(b"\xff\xfea\0\r\0\n\0b\0", "-b\n+\u{e4}", b"\xff\xfea\0\r\0\n\0\xe4\0");
    check(
        b"sch\xf6ne gr\xfc\xdfe\naus k\xf6ln\n",
        " schöne grüße\n-aus köln\n+nächte",
        b"sch\xf6ne gr\xfc\xdfe\nn\xe4chte\n",
    );
    check("keep  \n\u{201c}x\u{201d}\nold\n", " keep\n \"x\"\n-old\n+new", "keep  \n\u{201c}x\u{201d}\nnew\n");
    check(
        "    if x:\n        y\n",
        " if x:\n-    y\n+    if z:\n+        y",
        "    if x:\n        if z:\n            y\n",
    );
}

#[test]
fn the_end_of_the_file_stays_as_it_is() {
    check("a\nb", "-b\n+c", "a\nc");
    check("a\nb", " b\n+c", "a\nb\nc");
    check("a\r\nb", "+c", "a\r\nb\r\nc");
    check("a\nb\n", "+c", "a\nb\nc\n");
    check("a\nb", "-b", "a\n");
    check("a", "-a\n+b\n+c", "b\nc");
    check("", "+a", "a\n");
}

#[test]
fn patch_line_endings_are_used_where_given_and_otherwise_follow_the_file() {
    check("a\r\nb", "-b\n+c\n+d", "a\r\nc\r\nd");
    check("a\nb\n", "-a\n+a\r", "a\r\nb\n");
    check("a\nb\n", " a\n+x\r\n b", "a\nx\r\nb\n");
    check("a\r\nb\r\n", "-a\r\n+a\n b\r", "a\nb\r\n");
    check("a\r\nb\r\n", " a\r\n-b\r\n+x\n+y\r", "a\r\nx\ny\r\n");
    check("a\r\nb\r\n", " a\n-b\n+x\r\n+y", "a\r\nx\r\ny\r\n");
    check("a\r\nb\nc\r\n", " a\r\n-b\n+x\n c\r", "a\r\nx\nc\r\n");
    check("a\nb", "-b\n+x\r", "a\nx");
    check("a\rb\rc", "-b\n+x", "a\rx\rc");
    // The patch was made for a file with other line endings.
    check("a\nb\n", " a\r\n-b\r\n+x\r", "a\nx\n");
    check("a\r\nb\n", " a\r\n-b\r\n+x\r", "a\r\nx\n");
    let bench = Bench::new();
    bench.put("f", "a\nb\n");
    let text = bench.text("apply_patch", envelope("*** Update File: f\n a\r\n-b\r\n+x\r"));
    let note = "updated `f` (+1 -1). The line endings of the patch differ from those of the file, which were used.\n";
    assert!(text.contains(note), "{text}");
    bench.text("apply_patch", envelope("*** Add File: a.bat\n+@echo off\r\n+exit\r"));
    assert_eq!(bench.get("a.bat"), b"@echo off\r\nexit\r\n");
}

#[test]
fn an_update_that_changes_nothing_is_reported_as_unchanged() {
    let bench = Bench::new();
    bench.put("f", "a\r\n");
    let result = bench.call("apply_patch", envelope("*** Update File: f\n-a\r\n+a\r")).unwrap();
    let text = result.joined_text();
    assert!(text.starts_with("Changed 1 file:\n`f` has this content already\n"), "{text}");
    assert_eq!(result.structured_content().unwrap()["files"][0]["action"], "unchanged");
}

#[test]
fn a_unified_diff_is_applied() {
    let bench = Bench::new();
    bench.put("f", "x\nx\nx\n");
    bench.text("apply_patch", json!({"patch": "--- a/f\n+++ b/f\n@@ -2 +2 @@\n-x\n+y\n"}));
    assert_eq!(bench.get("f"), b"x\ny\nx\n");
    bench.text("apply_patch", json!({"patch": "--- f\n+++ f\n@@ -3 +3 @@\n-x\n+z\n\\ No newline at end of file\n"}));
    assert_eq!(bench.get("f"), b"x\ny\nz");
    bench.text("apply_patch", json!({"patch": "--- f\n+++ f\n@@ -3 +3 @@\n-z\n\\ No newline at end of file\n+w\n"}));
    assert_eq!(bench.get("f"), b"x\ny\nw\n");
}

#[test]
fn a_diff_deletes_a_file_only_if_it_removes_all_of_its_lines() {
    let bench = Bench::new();
    let patch = json!({"patch": "--- a/f\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-1\n-2\n-3\n"});
    bench.put("f", format!("1\n2\n3\n{}", "x\n".repeat(500)));
    let failure = bench.call("apply_patch", patch.clone()).unwrap_err();
    assert_eq!(failure.kind, ErrorKind::NoMatch);
    let expected = "line 1: `f` cannot be deleted: it has 500 lines that the diff does not remove. Read it again.";
    assert!(failure.text().contains(expected), "{}", failure.text());
    bench.put("f", "1\n2\n");
    assert_eq!(bench.call("apply_patch", patch.clone()).unwrap_err().kind, ErrorKind::NoMatch);
    bench.put("f", "1\n2\n3");
    bench.call("apply_patch", patch).unwrap();
    assert!(bench.names(".").is_empty());
}

#[test]
fn a_git_diff_makes_and_deletes_empty_files_and_changes_modes() {
    let bench = Bench::new();
    bench.put("old", "");
    bench.put("run", "x\n");
    bench.put("go", "y\n");
    bench.set_mode("run", 0o640);
    bench.set_mode("go", 0o755);
    let empty =
        |name: &str| format!("diff --git a/{name} b/{name}\ndeleted file mode 100644\nindex e69de29..0000000\n");
    let patch = format!(
        "diff --git a/__init__.py b/__init__.py\nnew file mode 100644\nindex 0000000..e69de29\n{}diff --git a/run b/run\nold mode 100644\nnew mode 100755\ndiff --git a/go b/go\nold mode 100755\nnew mode 100644\nindex 1..2\n--- a/go\n+++ b/go\n@@ -1 +1 @@\n-y\n+z\ndiff --git a/s b/s\nnew file mode 100755\nindex 0..1\n--- /dev/null\n+++ b/s\n@@ -0,0 +1 @@\n+x\n",
        empty("old")
    );
    let text = bench.text("apply_patch", json!({"patch": patch}));
    assert!(text.contains("\nupdated `run` (+0 -0). It is executable now.\n"), "{text}");
    assert_eq!(bench.names("."), ["__init__.py", "go", "run", "s"]);
    assert_eq!((bench.get("__init__.py"), bench.get("go")), (vec![], b"z\n".to_vec()));
    assert_eq!((bench.mode("run"), bench.mode("go"), bench.mode("s")), (0o750, 0o644, 0o755));
    let failure = bench.call("apply_patch", json!({"patch": empty("run")})).unwrap_err();
    assert!(failure.text().contains("has 1 line that the diff does not remove"), "{}", failure.text());
}

#[test]
fn permission_bits_of_an_earlier_section_hold_in_later_ones() {
    let bench = Bench::new();
    for name in ["a", "b"] {
        bench.put(name, "1\n");
        bench.set_mode(name, 0o640);
    }
    let modes = |name: &str| format!("diff --git a/{name} b/{name}\nold mode 100644\nnew mode 100755\n");
    let change =
        |name: &str| format!("diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-1\n+2\n");
    let moved = "diff --git a/b b/c\nsimilarity index 100%\nrename from b\nrename to c\n";
    let patch = [modes("a"), change("a"), modes("b"), moved.to_owned()].concat();
    bench.call("apply_patch", json!({"patch": patch})).unwrap();
    assert_eq!((bench.get("a"), bench.mode("a")), (b"2\n".to_vec(), 0o750));
    assert_eq!((bench.get("c"), bench.mode("c")), (b"1\n".to_vec(), 0o750));
}

#[test]
fn the_etag_is_that_of_the_file_after_the_whole_patch() {
    let bench = Bench::new();
    bench.put("a", "x\n");
    let body = "*** Update File: a\n-x\n+y\n*** Update File: a\n-y\n+z\n*** Add File: b\n+x\n*** Delete File: b";
    let result = bench.call("apply_patch", envelope(body)).unwrap();
    let files = &result.structured_content().unwrap()["files"];
    assert_eq!(files[0]["etag"], etag(&digest_of(b"z\n")));
    assert_eq!((&files[0]["etag"], files[2].get("etag")), (&files[1]["etag"], None));
}

#[test]
fn a_patch_reports_hard_links_that_keep_the_old_content() {
    let bench = Bench::new();
    bench.put("a", "x\n");
    bench.hard_link("a", "b");
    let text = bench.text("apply_patch", envelope("*** Update File: a\n-x\n+y"));
    let expected = "updated `a` (+1 -1). The file had 1 other name (hard link), which still holds the old content.\n";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn a_patch_reports_differences_ignored_during_matching() {
    let bench = Bench::new();
    bench.put("f", "a  \n\tb\n");
    let text = bench.text("apply_patch", envelope("*** Update File: f\n-a\n+x\n@@\n-  b\n+  y"));
    assert!(
        text.contains("updated `f` (+2 -2); white space at the ends of lines and indentation had to be ignored to find the place\n"),
        "{text}"
    );
    assert_eq!(bench.get("f"), b"x\n\ty\n");
}

#[test]
fn a_hunk_that_does_not_match_is_reported_with_nearby_lines() {
    let text = "fn one() {\n    let value = 1;\n}\n\nfn two() {\n    let value = 2;\n}\n";
    refused(
        text,
        "@@\n fn two() {\n-    let value = 3;\n+    x",
        ErrorKind::NoMatch,
        "line 6: the hunk does not fit `f`: its lines match nowhere. Line 6 is the first that differs: the file has `    let value = 2;`, the patch has `    let value = 3;`. The nearest region:\n     4\t\n     5\tfn two() {\n     6\t    let value = 2;\n     7\t}",
    );
    refused(
        text,
        "-}\n+};",
        ErrorKind::AmbiguousMatch,
        "line 6: the hunk does not fit `f`: its lines match 2 places: lines 3, 7. Give more lines around the change, or identify the place by an anchor, like `@@ fn name`.",
    );
    refused(
        text,
        "@@ fn tow()\n-    let value = 2;",
        ErrorKind::NoMatch,
        "line 6: the hunk does not fit `f`: no line of the file begins with its anchor `fn tow()`. The most similar line is 1:\n     1\tfn one() {\n     2\t    let value = 1;",
    );
    refused(
        text,
        "@@ struct\n-}",
        ErrorKind::NoMatch,
        "line 6: the hunk does not fit `f`: no line of the file begins with its anchor `struct`. Leave it out if the lines of the hunk are enough to find the place.",
    );
    refused(
        text,
        "@@\n-fn two() {\n@@\n-fn one() {",
        ErrorKind::NoMatch,
        "line 8: the hunk does not fit `f`: its lines match at line 1, before those of the previous hunk. Put the hunks of a file in the order of their lines.",
    );
    refused(
        text,
        "@@ fn two()\n-fn one() {",
        ErrorKind::NoMatch,
        "line 6: the hunk does not fit `f`: its lines match at line 1, which is not after `@@ fn two()`. Correct the anchor, or leave it out.",
    );
    refused(
        text,
        " fn two() {\n-    let two = 2;\n+    let value = 2;",
        ErrorKind::NoMatch,
        "line 6: the hunk does not fit `f`: its new lines are already at line 5: it was probably applied before.",
    );
    refused(
        text,
        "@@\n-zzz\n@@\n-qqq",
        ErrorKind::NoMatch,
        "line 6: the hunk does not fit `f`: none of its lines is in the file, which has 7 lines. Read the file again.\nline 8: the hunk does not fit `f`: none of its lines is in the file, which has 7 lines. Read the file again.",
    );
    refused(
        "a b c\n",
        " a b c\n-d",
        ErrorKind::NoMatch,
        "line 6: the hunk does not fit `f`: its lines match nowhere. The file ends before `d`. The nearest region:\n     1\ta b c",
    );
}

#[test]
fn a_patch_reports_every_file_change_that_is_not_possible() {
    let bench = Bench::new();
    bench.put("there", "x\n");
    bench.put("target", "");
    bench.put("binary", b"a\0b");
    bench.put("latin", b"sch\xf6ne gr\xfc\xdfe\n");
    let text_of = |body: &str| {
        let failure = bench.call("apply_patch", envelope(body)).unwrap_err();
        let text = failure.text().replace(&*bench.path("").to_string_lossy(), "/");
        let text = text.split_once("In the patch:\n").map_or(text.clone(), |(_, text)| text.to_owned());
        (failure.kind, text.replace("\nCorrect these places, and give the whole patch again.", ""))
    };
    for (body, kind, expected) in [
        (
            "*** Add File: there\n+y",
            ErrorKind::InvalidInput,
            "line 2: `there` exists already. Use `*** Update File`, or delete it in the same patch first.",
        ),
        (
            "*** Delete File: thera",
            ErrorKind::NotFound,
            "line 2: `/thera` does not exist. In the same folder there is `there`.",
        ),
        (
            "*** Update File: thera\n-x",
            ErrorKind::NotFound,
            "line 2: `/thera` does not exist. In the same folder there is `there`.",
        ),
        (
            "*** Update File: there\n*** Move to: target",
            ErrorKind::InvalidInput,
            "line 2: `there` cannot be moved to `target`, which exists already.",
        ),
        (
            "*** Update File: there\n*** Move to: ./there",
            ErrorKind::InvalidInput,
            "line 2: `there` cannot be moved to itself.",
        ),
        (
            "*** Update File: binary\n-a",
            ErrorKind::UnsupportedType,
            "line 2: `binary` is not text: it looks like binary data. Nothing was changed; `write_file` replaces a \
             file as a whole.",
        ),
        (
            "*** Update File: latin\n-schöne grüße\n+→",
            ErrorKind::InvalidInput,
            "line 2: `latin` cannot store this content: the file is in windows-1252, which has no `→` (U+2192). \
             Nothing was changed; leave that out, or rewrite the whole file as UTF-8 with `write_file`.",
        ),
        (
            "*** Delete File: thera\n*** Add File: there\n+y",
            ErrorKind::NoMatch,
            "line 2: `/thera` does not exist. In the same folder there is `there`.\nline 3: `there` exists already. Use `*** Update File`, or delete it in the same patch first.",
        ),
    ] {
        assert_eq!(text_of(body), (kind, expected.to_owned()), "{body}");
    }
    let failure = bench.call("apply_patch", json!({"patch": "hello"})).unwrap_err();
    assert_eq!(failure.kind, ErrorKind::InvalidInput);
    assert!(failure.text().ends_with(
        "it begins with `hello`. Nothing was changed. A patch looks like this:\n*** Begin Patch\n*** Update File: path/to/file\n@@\n an unchanged line\n-a removed line\n+an added line\n*** End Patch"
    ));
    assert!(bench.journal().entries().is_empty());
}

#[test]
fn a_file_that_changed_since_it_was_read_is_not_deleted() {
    let bench = Bench::new();
    bench.put("a", "1\n");
    bench.saw("a");
    bench.put("a", "2\n");
    let failure = bench.call("apply_patch", envelope("*** Delete File: a")).unwrap_err();
    assert_eq!(failure.kind, ErrorKind::StaleFile);
    assert!(failure.text().contains("line 2: `a` has changed since it was read. Read it again before you delete it."));
    let result = bench.call("apply_patch", envelope("*** Update File: a\n-2\n+2b")).unwrap();
    assert_eq!(result.structured_content().unwrap()["files"][0]["changed_elsewhere"], true);
    let text = result.joined_text();
    assert!(text.contains("(+1 -1). `a` has changed since you read it; the text to"), "{text}");
    bench.put("a", "2\n");
    let text = bench.text("apply_patch", envelope("*** Update File: a\n*** Move to: b"));
    assert!(text.contains("(+0 -0). `a` has changed since you read it.\n"), "{text}");
    bench.put("b", "2\n3\n");
    let failure = bench.call("apply_patch", envelope("*** Update File: b\n-1\n+3")).unwrap_err();
    assert_eq!(failure.kind, ErrorKind::StaleFile);
    assert!(failure.text().contains("`b` has changed since you read it: line 3"), "{}", failure.text());
    bench.call("apply_patch", envelope("*** Update File: b\n*** Move to: a\n-2\n-3\n+2")).unwrap();
    // Lines that are still present may change.
    bench.call("apply_patch", envelope("*** Update File: a\n-2\n+3\n*** Delete File: a")).unwrap();
    assert!(bench.names(".").is_empty());
}

#[test]
fn one_file_may_be_named_several_times() {
    let bench = Bench::new();
    bench.put("a", "x\n");
    bench.text("apply_patch", envelope("*** Update File: a\n-x\n+y\n*** Update File: ./a\n-y\n+z"));
    assert_eq!(bench.get("a"), b"z\n");
    bench.text("apply_patch", envelope("*** Delete File: a\n*** Add File: a\n+new"));
    assert_eq!(bench.get("a"), b"new\n");
    let text = bench.text("apply_patch", envelope("*** Add File: a\n+new"));
    assert!(text.starts_with("Changed 1 file:\n`a` has this content already"), "{text}");
}

#[test]
fn a_dry_run_changes_nothing() {
    let bench = Bench::new();
    bench.put("a", "x\n");
    let mut arguments = envelope("*** Update File: a\n-x\n+y\n*** Add File: b\n+z");
    arguments["dry_run"] = true.into();
    let text = bench.text("apply_patch", arguments);
    assert_eq!(text, "Would change 2 files:\nupdated `a` (+1 -1)\nadded `b` (+1 -0)\n`a`:\n     1\ty");
    assert_eq!((bench.get("a"), bench.names(".")), (b"x\n".to_vec(), vec!["a".to_owned()]));
}

#[test]
fn the_diff_of_a_dry_run_includes_every_change_of_a_patch() {
    let bench = Bench::new();
    bench.put("a", "x\n");
    bench.put("bin", b"\0\x01");
    bench.put("m", "m\n");
    bench.put("old", "o\n");
    let patch = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n\
         diff --git a/m b/m\nold mode 100644\nnew mode 100755\n\
         diff --git a/new b/new\nnew file mode 100755\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+n\n\
         diff --git a/old b/moved\nrename from old\nrename to moved\n";
    let diff = |patch: &str| {
        let result = bench.call("apply_patch", json!({"patch": patch, "dry_run": true})).unwrap();
        result.structured_content().unwrap()["diff"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        diff(patch),
        "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n\
         updated `m` (+0 -0). It is executable now.\n\
         added `new` (+1 -0). It is executable.\n--- a/new\n+++ b/new\n@@ -0,0 +1 @@\n+n\n\
         moved `old` to `moved` (+0 -0)\n"
    );
    let deleting = "*** Begin Patch\n*** Update File: a\n-x\n+y\n*** Delete File: bin\n*** End Patch";
    assert!(diff(deleting).ends_with("+y\ndeleted `bin` (+0 -0)\n"), "{}", diff(deleting));
}

#[test]
fn permission_rules_apply_to_every_file_of_a_patch() {
    let bench = Bench::with_deny(&["Write(secret)"]);
    bench.put("a", "x\n");
    let body = "*** Update File: a\n*** Move to: secret\n*** Delete File: b\n*** Add File: c\n+x";
    let shown: Vec<String> =
        bench.call_unchecked("apply_patch", envelope(body)).unwrap().iter().map(ToString::to_string).collect();
    let expected = ["a", "secret", "b", "c"].iter().flat_map(|name| {
        let path = bench.path(name);
        [format!("read {}", path.display()), format!("write {}", path.display())]
    });
    assert_eq!(shown, expected.collect::<Vec<_>>());
    assert_eq!(bench.call("apply_patch", envelope(body)).unwrap_err().kind, ErrorKind::PermissionDenied);
    assert_eq!(bench.get("a"), b"x\n");
}

/// Returns git's diff between two trees, made in a repository of its own in the folder `git`.
fn gits_patch(bench: &Bench, old: &Tree, new: &Tree) -> String {
    let script = |text: &str| {
        #[expect(clippy::disallowed_methods, reason = "git is the reference, outside of the sandbox")]
        let mut bash = std::process::Command::new("bash");
        let bash = bash.args(["-c", text]).current_dir(bench.path("git")).env("GIT_CONFIG_GLOBAL", "/dev/null");
        let output = bash.env("GIT_CONFIG_SYSTEM", "/dev/null").env("HOME", bench.path("git")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let put = |tree: &Tree| tree.iter().for_each(|(name, content)| bench.put(&format!("git/{name}"), content));
    bench.put("git/.keep", "");
    script("git init -q .");
    put(old);
    script(
        "git add -A . && git -c user.name=a -c user.email=a@b commit -qm old && git rm -qr --ignore-unmatch -- . && mkdir -p x",
    );
    bench.put("git/.keep", "");
    put(new);
    script("git add -A . && git diff --cached --find-renames")
}

type Tree = std::collections::BTreeMap<String, String>;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn applying_a_git_diff_produces_the_new_files(
        files in prop::collection::btree_map(
            "[a é\"\\\\\t\n~*'\u{1}-]{1,4}",
            (prop::option::of("([ab]{0,2}(\n|\r\n|\r)){0,8}[ab]{0,2}"), prop::option::of("([ab]{0,2}(\n|\r\n|\r)){0,8}[ab]{0,2}")),
            1..4,
        ),
        renamed in prop::option::of("[b é\"\\\\ ]{1,3}x"),
    ) {
        let bench = Bench::new();
        let kept = "kept: a line\nthat git\r\nknows again\n".repeat(3);
        let there = |(name, content): (&String, &Option<String>)| Some((name.clone(), content.clone()?));
        let mut old: Tree = files.iter().filter_map(|(name, (old, _))| there((name, old))).collect();
        let mut new: Tree = files.iter().filter_map(|(name, (_, new))| there((name, new))).collect();
        if let Some(name) = renamed {
            old.insert("before é".into(), kept.clone());
            new.insert(name, kept + "end\r\n");
        }
        let patch = gits_patch(&bench, &old, &new);
        prop_assume!(!patch.is_empty());
        let bench = Bench::new();
        old.iter().for_each(|(name, content)| bench.put(name, content));
        let applied = bench.call("apply_patch", json!({"patch": patch}));
        prop_assert!(applied.is_ok(), "{}\n{:?}", applied.unwrap_err().text(), patch);
        let there: Tree = bench.names(".").into_iter().map(|name| {
            let content = String::from_utf8(bench.get(&name)).unwrap();
            (name, content)
        }).collect();
        prop_assert_eq!(there, new, "{}", patch);
    }
}

/// Converts a diff to the envelope form.
fn as_envelope(diff: &str) -> String {
    let lines = diff.lines().skip(2).filter(|line| !line.starts_with('\\'));
    let lines = lines.map(|line| if line.starts_with("@@ ") { "@@" } else { line });
    format!("*** Begin Patch\n*** Update File: f\n{}\n*** End Patch", lines.collect::<Vec<_>>().join("\n"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn applying_a_diff_of_two_texts_produces_the_second_text(old in "([ab]{0,2}\n){0,12}[ab]?", new in "([ab]{0,2}\n){0,12}[ab]?") {
        prop_assume!(!old.is_empty() && !new.is_empty());
        let Some(diff) = unified_diff("f", &old, &new) else { return Ok(()) };
        let bench = Bench::new();
        bench.put("f", &old);
        bench.call("apply_patch", json!({"patch": diff})).unwrap();
        prop_assert_eq!(String::from_utf8(bench.get("f")).unwrap(), new, "{}", diff);
    }

    #[test]
    fn an_edit_as_a_patch_gives_exactly_that_edit(
        lines in prop::collection::vec(("[ab]{0,2}", "\n|\r\n"), 1..20), is_ended: bool,
        edits in prop::collection::vec((0..20_usize, prop::option::of("[xy ]{1,3}")), 1..5),
    ) {
        // Each line is unique, so that a hunk has exactly one place.
        let mut before: String =
            lines.iter().enumerate().map(|(at, (text, ending))| format!("{at}{text}{ending}")).collect();
        if !is_ended {
            before.truncate(before.trim_end_matches(['\r', '\n']).len());
        }
        let plain = before.replace("\r\n", "\n");
        let mut wanted: Vec<String> = plain.split_inclusive('\n').map(str::to_owned).collect();
        for (index, (at, new)) in edits.iter().enumerate() {
            match new {
                Some(new) => wanted.insert(at % (wanted.len() + 1), format!("{new}{index}\n")),
                None if wanted.len() > 1 => { wanted.remove(at % wanted.len()); }
                None => {}
            }
        }
        // An envelope does not change the end of the file.
        let mut wanted: String = wanted.iter().map(|line| format!("{}\n", line.trim_end_matches('\n'))).collect();
        if !is_ended {
            wanted.pop();
        }
        let Some(diff) = unified_diff("f", &plain, &wanted) else { return Ok(()) };
        let bench = Bench::new();
        bench.put("f", &before);
        bench.call("apply_patch", json!({"patch": as_envelope(&diff)})).unwrap();
        let after = String::from_utf8(bench.get("f")).unwrap();
        let texts = |text: &str| lines_of(text).iter().map(|line| line.text.to_owned()).collect::<Vec<_>>();
        prop_assert_eq!(texts(&after), texts(&wanted));
        prop_assert_eq!(after.ends_with('\n'), wanted.ends_with('\n'));
        // Lines that existed before have their old line endings, except for the last line.
        let after_lines = lines_of(&after);
        for line in lines_of(&before).iter().filter(|line| !line.ending.is_empty()) {
            if let Some(kept) = after_lines[..after_lines.len() - 1].iter().find(|kept| kept.text == line.text) {
                prop_assert_eq!(kept.ending, line.ending, "{:?}", line);
            }
        }
    }
}
