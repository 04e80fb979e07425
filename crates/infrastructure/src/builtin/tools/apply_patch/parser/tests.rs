//! Tests of valid patches and of the errors of invalid ones.

use super::*;
use proptest::prelude::*;

#[track_caller]
fn parsed(text: &str) -> Vec<FilePatch> {
    parse(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[track_caller]
fn refused(text: &str, expected: &str) {
    assert_eq!(parse(text).unwrap_err().to_string(), expected, "{text}");
}

/// Creates a hunk from its text; `@` begins an anchor.
fn hunk(line: usize, lines: &[&str]) -> Hunk {
    let mut hunk = Hunk { line, ..Hunk::default() };
    for line in lines {
        match line.split_at(1) {
            ("@", anchor) => hunk.anchors.push(anchor.into()),
            (" ", text) => hunk.lines.push(HunkLine::Kept(text.into())),
            ("-", text) => hunk.lines.push(HunkLine::Removed(text.into())),
            (_, text) => hunk.lines.push(HunkLine::Added(text.into())),
        }
    }
    hunk
}

fn update(path: &str, line: usize, hunks: Vec<Hunk>) -> FilePatch {
    FilePatch { path: path.into(), line, executable: None, action: PatchAction::Update { to: None, hunks } }
}

#[test]
fn an_envelope_is_parsed_into_file_changes_and_hunks() {
    let text = "*** Begin Patch\n*** Add File: new file.txt\n+a\n+\n+b\n*** Delete File: old\n*** Update File: x.py\n*** Move to: y.py\n@@ class A\n@@ \tdef f\n a\n-b\n+c\n\n d\n@@\n-e\n*** End of File\n*** End Patch";
    let hunks = vec![
        hunk(9, &["@class A", "@\tdef f", " a", "-b", "+c", " ", " d"]),
        Hunk { is_at_end: true, ..hunk(16, &["-e"]) },
    ];
    let expected = vec![
        FilePatch {
            path: "new file.txt".into(),
            line: 2,
            executable: None,
            action: PatchAction::Add("a\n\nb\n".into()),
        },
        FilePatch { path: "old".into(), line: 6, executable: None, action: PatchAction::Delete { was: None } },
        FilePatch {
            path: "x.py".into(),
            line: 7,
            executable: None,
            action: PatchAction::Update { to: Some("y.py".into()), hunks },
        },
    ];
    assert_eq!(parsed(text), expected);
    assert_eq!(parsed(&format!("\n{}\n\n", text.replace('\n', "\r\n")))[1].line, 7);
}

#[test]
fn wrappers_that_models_put_around_patches_are_removed() {
    let patch = "*** Begin Patch\n*** Update File: a\n-x\n+y\n*** End Patch";
    let expected = |line| vec![update("a", line, vec![hunk(line + 1, &["-x", "+y"])])];
    assert_eq!(parsed(patch), expected(2));
    assert_eq!(parsed(&format!("apply_patch <<'EOF'\n{patch}\nEOF\n")), expected(3));
    assert_eq!(parsed(&format!("<<\"PATCH\"\n{patch}\nPATCH")), expected(3));
    assert_eq!(parsed(&format!("```diff\n{patch}\n```")), expected(3));
}

#[test]
fn a_move_requires_no_hunk_and_blank_lines_between_files_are_ignored() {
    let text = "*** Begin Patch\n*** Update File: a\n*** Move to: b\n\n*** Update File: c\n@@\n-x\n\n*** Add File: d\n+y\n\n*** End Patch";
    let expected = vec![
        FilePatch {
            path: "a".into(),
            line: 2,
            executable: None,
            action: PatchAction::Update { to: Some("b".into()), hunks: vec![] },
        },
        update("c", 5, vec![hunk(6, &["-x"])]),
        FilePatch { path: "d".into(), line: 9, executable: None, action: PatchAction::Add("y\n".into()) },
    ];
    assert_eq!(parsed(text), expected);
}

#[test]
fn a_hunk_header_with_line_numbers_is_not_an_anchor() {
    let text = "*** Begin Patch\n*** Update File: a\n@@ -7,2 +7,2 @@ fn main() {\n-x\n+y\n*** End Patch";
    assert_eq!(parsed(text), vec![update("a", 2, vec![Hunk { at: Some(7), ..hunk(3, &["-x", "+y"]) }])]);
}

#[test]
fn a_unified_diff_is_parsed_as_a_patch() {
    let text = "--- a/x.c\t2026-01-01\n+++ b/x.c\n@@ -3,3 +3,2 @@ int main\n a\n-b\n \n@@ -9 +8,2 @@\n c\n+--- d\n";
    let hunks =
        vec![Hunk { at: Some(3), ..hunk(3, &[" a", "-b", " "]) }, Hunk { at: Some(9), ..hunk(7, &[" c", "+--- d"]) }];
    assert_eq!(parsed(text), vec![update("x.c", 1, hunks)]);

    let text = "diff --git a/n b/n\nnew file mode 100644\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\ndiff --git a/o b/o\n--- a/o\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\ndiff --git a/p b/q\nsimilarity index 100%\nrename from p\nrename to q\n";
    let was = Hunk { at: Some(1), ..hunk(11, &["-x"]) };
    let expected = vec![
        FilePatch { path: "n".into(), line: 3, executable: None, action: PatchAction::Add("x".into()) },
        FilePatch { path: "o".into(), line: 9, executable: None, action: PatchAction::Delete { was: Some(vec![was]) } },
        FilePatch {
            path: "p".into(),
            line: 15,
            executable: None,
            action: PatchAction::Update { to: Some("q".into()), hunks: vec![] },
        },
    ];
    assert_eq!(parsed(text), expected);

    let text = "--- x\n+++ x\n@@ -2,0 +3 @@\n+a\n@@ -5 +6 @@\n-b\n\\ No newline at end of file\n+c\n";
    let hunks = vec![
        Hunk { at: Some(3), ..hunk(3, &["+a"]) },
        Hunk { at: Some(5), ends_in_break: Some(true), ..hunk(5, &["-b", "+c"]) },
    ];
    assert_eq!(parsed(text), vec![update("x", 1, hunks)]);
}

#[test]
fn git_headers_of_files_without_hunks_are_parsed_as_changes() {
    let file = |path: &str, line, executable, action| FilePatch { path: path.into(), line, executable, action };
    let text = "diff --git a/a b.py b/a b.py\nnew file mode 100755\nindex 0000000..e69de29\ndiff --git a/o b/o\ndeleted file mode 100644\nindex e69de29..0000000\n\ndiff --git m m\nold mode 100755\nnew mode 100644\ndiff --git a/p b/q\nold mode 100644\nnew mode 100755\nsimilarity index 100%\nrename from p\nrename to q\n";
    let expected = vec![
        file("a b.py", 1, Some(true), PatchAction::Add(String::new())),
        file("o", 4, None, PatchAction::Delete { was: Some(vec![]) }),
        file("m", 8, Some(false), PatchAction::Update { to: None, hunks: vec![] }),
        file("p", 15, Some(true), PatchAction::Update { to: Some("q".into()), hunks: vec![] }),
    ];
    assert_eq!(parsed(text), expected);
    refused(
        "diff --git a/l b/l\nnew file mode 120000\nindex 0..1\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+x\n",
        "line 2 of the patch: a file of the mode `120000` (a link, or a repository in this one) cannot be changed by a patch",
    );
    refused(
        "diff --git a/i b/i\nnew file mode 100644\nindex 0..1\nBinary files /dev/null and b/i differ\n",
        "line 4 of the patch: `--- path` was expected, not `Binary files /dev/null and b/i differ`. Patches cannot change binary files",
    );
    refused(
        "diff --git a/x b/y\nnew file mode 100644\n",
        "line 1 of the patch: the file name is ambiguous: `diff --git a/path b/path` was expected",
    );
    refused("diff --git a/x b/x\nindex 0..1\n", "line 1 of the patch: the patch does not say what changes in the file");
}

#[test]
fn names_are_read_as_git_writes_them() {
    let names = |text: &str| {
        let file = parsed(text).remove(0);
        let to = if let PatchAction::Update { to, .. } = file.action { to } else { None };
        (file.path, to)
    };
    let check = |text: &str, path: &str, to: Option<&str>| {
        assert_eq!(names(text), (path.to_owned(), to.map(str::to_owned)), "{text}");
    };
    let hunk = "@@ -1 +1 @@\n-x\n+y\n";
    check(&format!("--- \"a/\\303\\251.txt\"\n+++ \"b/\\303\\251.txt\"\n{hunk}"), "é.txt", None);
    check("--- /dev/null\n+++ \"b/q\\\"\\\\\"\n@@ -0,0 +1 @@\n+y\n", "q\"\\", None);
    check(&format!("--- a/e f \t\n+++ b/e f \t\n{hunk}"), "e f ", None);
    check(&format!("--- a/x  \n+++ b/x  \n{hunk}"), "x", None);
    check(&format!("--- a/x\t2026-01-01 10:00\n+++ b/x\t2026-01-02\n{hunk}"), "x", None);
    check(&format!("--- a/~/x\n+++ b/~/x\n{hunk}"), "./~/x", None);
    check("diff --git a/~ b/~ \nrename from ~\nrename to ~ \n", "./~", Some("./~ "));
    check("diff --git a/p \"b/q\\\"q\"\nrename from p\nrename to \"q\\\"q\"\n", "p", Some("q\"q"));
    check("diff --git \"a/\\n\" \"b/\\n\"\nold mode 100644\nnew mode 100755\n", "\n", None);
    check("diff --git a/e  b/e \nold mode 100644\nnew mode 100755\n", "e ", None);
    check("diff --git \"\\t\" \"\\t\"\ndeleted file mode 100644\n", "\t", None);
    refused("--- \"a/x\n+++ b/x\n", "line 1 of the patch: the name `\"a/x` has no closing quote");
    refused(
        "diff --git \"a/\\377\" \"b/\\377\"\nnew file mode 100644\n",
        "line 1 of the patch: the name `\"a/\\377\" \"b/\\377\"` is not in UTF-8, as file names must be",
    );
    refused("diff --git a/p b/q\nrename from p\nrename to \n", "line 3 of the patch: the path is missing");
    refused(
        "diff --git a/p b/q\nsimilarity index 100%\ncopy from p\ncopy to q\n",
        "line 3 of the patch: `--- path` was expected, not `copy from p`. Copies are not supported: add the file with its whole content",
    );
}

#[test]
fn carriage_returns_belong_to_lines_unless_the_whole_patch_uses_crlf() {
    let lines = |text: &str| match parsed(text).remove(0).action {
        PatchAction::Add(content) => content,
        PatchAction::Update { hunks, .. } => hunks[0].lines.iter().map(HunkLine::text).collect::<Vec<_>>().join("|"),
        PatchAction::Delete { .. } => String::new(),
    };
    let patch = "*** Begin Patch\n*** Add File: a.bat\n+@echo off\r\n+x\n*** End Patch\n";
    assert_eq!(lines(patch), "@echo off\r\nx\n");
    assert_eq!(lines(&patch.replace("\r\n", "\n").replace('\n', "\r\n")), "@echo off\nx\n");
    let patch = "\n--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n a\r\n\r\n-b\n+b\r\n";
    assert_eq!(lines(patch), "a\r|\r|b|b\r");
    assert_eq!(
        lines("*** Begin Patch\n*** Update File: x\n@@ f\r\n a\r\n\r\n+b\r\n\r\n*** End Patch\r\n"),
        "a\r|\r|b\r"
    );
    assert_eq!(lines(&patch.replace("\r\n", "\n").replace('\n', "\r\n")), "a||b|b");
}

#[test]
fn an_invalid_patch_is_rejected_with_its_line_number() {
    let many = format!("*** Begin Patch\n*** Update File: a\n{}-x\n*** End Patch", "@@ a\n".repeat(9));
    refused(&many, "line 11 of the patch: a hunk has at most 8 lines with `@@`");
    refused(
        "",
        "line 1 of the patch: a patch begins with `*** Begin Patch` (or `---`, as a unified diff), and it is empty",
    );
    refused(
        "\n\nhello\n",
        "line 3 of the patch: a patch begins with `*** Begin Patch` (or `---`, as a unified diff), and it begins with `hello`",
    );
    refused("*** Begin Patch\n*** End Patch", "line 3 of the patch: the patch names no file");
    refused("*** Begin Patch\n*** Delete File: a", "line 3 of the patch: the patch ends without `*** End Patch`");
    refused("*** Begin Patch\n*** Delete File:  \n*** End Patch", "line 2 of the patch: the path is missing");
    refused(
        "*** Begin Patch\n*** Add File: a\nx\n*** End Patch",
        "line 3 of the patch: every line of a new file begins with `+`, and this is `x`",
    );
    refused(
        "*** Begin Patch\n*** Update File: a\n*** End Patch",
        "line 2 of the patch: the file has neither a hunk nor a new name: begin a hunk with `@@`",
    );
    refused(
        "*** Begin Patch\n*** Update File: a\n@@\n x\n*** End Patch",
        "line 3 of the patch: the hunk changes nothing: it has no line with `-` or `+`",
    );
    refused(
        "*** Begin Patch\n*** Update File: a\n@@\n-x\nyes\n*** End Patch",
        "line 5 of the patch: a line of a hunk begins with ` ` (kept), `-` (removed) or `+` (added), and this is `yes`",
    );
    refused(
        "*** Begin Patch\n*** Rename File: a\n*** End Patch",
        "line 2 of the patch: `*** Add File: path`, `*** Delete File: path`, `*** Update File: path` or `*** End Patch` was expected, not `*** Rename File: a`",
    );
    refused(
        "*** Begin Patch\n*** Delete File: a\n*** End Patch\nrm -rf",
        "line 4 of the patch: nothing may follow `*** End Patch`, and there is `rm -rf`",
    );
    refused("--- a\n@@ -1 +1 @@\n", "line 2 of the patch: `+++ path` was expected after `--- path`");
    refused(
        "--- a\n+++ a\n@@ here @@\n-x\n",
        "line 3 of the patch: `@@ -line,count +line,count @@` was expected, not `@@ here @@`",
    );
    refused(
        "--- a\n+++ a\n@@ -1,2 +1,2 @@\n-x\n+y\n",
        "line 6 of the patch: the hunk ends too early: 1 old and 1 new lines are missing",
    );
    refused(
        "--- a\n+++ a\n@@ -1 +1 @@\n-x\n-y\n+z\n",
        "line 5 of the patch: the hunk has more lines than its header (line 3) says",
    );
    assert!(parse("--- a\n+++ a\n@@ -18446744073709551615,0 +1,1 @@\n+x\n").is_ok());
    refused("--- a\n+++ a\nx\n", "line 1 of the patch: there is no hunk (`@@ -1,3 +1,4 @@`) between `a` and `a`");
    let many = format!("*** Begin Patch\n{}*** End Patch", "*** Delete File: a\n".repeat(MAX_FILES + 1));
    refused(&many, "line 1 of the patch: a patch changes at most 100 files, and this one changes 101");
    let many = format!("*** Begin Patch\n*** Update File: a\n{}*** End Patch", "@@\n-a\n".repeat(MAX_HUNKS + 1));
    refused(&many, "line 10003 of the patch: a patch has at most 5000 hunks");
    assert!(parse(&"x".repeat(MAX_PATCH_BYTES + 1)).is_err());
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(
        begins_as in prop::sample::select(vec!["--- a\n+++ a\n", "diff --git a/a b/a\n", "*** Begin Patch\n*** Update File: a\n"]),
        lines in prop::collection::vec(
            prop_oneof![
                "@@ -[0-9]{1,20}(,[0-3])? \\+[0-9]{1,20}(,[0-3])? @@",
                "@@ -18446744073709551615,0 \\+18446744073709551615,1 @@",
                "(new file mode|old mode|index|rename from|--- |\\+\\+\\+ |diff --git) ?[0-7é/]{0,8}",
                "[ +\\\\@*-].{0,4}",
                ".{0,8}",
            ],
            0..12,
        ),
    ) {
        let _ = parse(&format!("{begins_as}{}", lines.join("\n")));
    }
}
