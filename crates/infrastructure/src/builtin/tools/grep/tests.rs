//! Tests of the tool `grep`.

use crate::builtin::tests::Bench;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::{collections::BTreeSet, ffi::OsStr, os::unix::ffi::OsStrExt, time::Duration};

fn bench() -> Bench {
    let bench = Bench::with_deny(&["Read(secret)"]);
    bench.put_at("old.rs", "fn main() {\n    one();\n}\n", 1);
    bench.put_at("src/new.rs", "fn one() {}\r\nfn two() { one() }\r\n", 3);
    bench.put_at("notes.md", "one two\n", 2);
    bench.put_at(".env", "one\n", 0);
    bench.put_at("build/out.rs", "one\n", 9);
    bench.put(".git/config", "one\n");
    bench.put("secret/key", "one\n");
    bench.put_at("blob", b"one\0two\n", 5);
    bench.put_at(".gitignore", "build/\n", 0);
    bench
}

#[track_caller]
fn check(arguments: Value, expected: &str) {
    let text = bench().text("grep", arguments);
    let denied = "\n[1 file or folder was not searched: a rule denies reading it.]";
    assert_eq!(text.replace(denied, "").replace("\n[1 binary file skipped]", ""), expected);
}

#[test]
fn matching_files_are_listed_with_the_most_recently_changed_first() {
    let check = |mut arguments: Value, expected: &str| {
        arguments["output_mode"] = "files_with_matches".into();
        check(arguments, expected);
    };
    check(json!({"pattern": "one"}), "src/new.rs\nnotes.md\nold.rs\n.env");
    check(json!({"pattern": "one", "show_hidden": false}), "src/new.rs\nnotes.md\nold.rs");
    check(json!({"pattern": "one", "no_ignore": true, "glob": "*.rs"}), "build/out.rs\nsrc/new.rs\nold.rs");
    check(json!({"pattern": "one", "file_type": "md"}), "notes.md");
    check(json!({"pattern": "one", "glob": "*.{rs,md} !old*"}), "src/new.rs\nnotes.md");
    check(json!({"pattern": "one", "glob": "src/*.rs"}), "src/new.rs");
    check(json!({"pattern": "one", "path": "src"}), "src/new.rs");
    check(json!({"pattern": "one", "path": "build/out.rs"}), "build/out.rs");
    check(json!({"pattern": "one", "path": "build"}), "build/out.rs");
    check(json!({"pattern": "ONE", "ignore_case": true, "path": "notes.md"}), "notes.md");
    check(json!({"pattern": "o.e()", "fixed_strings": true}), "Nothing matches `o.e()` in `.`.");
}

#[test]
fn matching_lines_are_shown_with_line_numbers_and_context() {
    let content = |more: Value| {
        let mut arguments = json!({"pattern": "one", "output_mode": "content", "glob": "*.rs"});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        arguments
    };
    check(content(json!({})), "src/new.rs:1:fn one() {}\nsrc/new.rs:2:fn two() { one() }\nold.rs:2:    one();");
    check(content(json!({"line_numbers": false, "path": "old.rs"})), "old.rs:    one();");
    check(content(json!({"context": 1, "path": "old.rs"})), "old.rs-1-fn main() {\nold.rs:2:    one();\nold.rs-3-}");
    check(
        content(json!({"before": 1})),
        "src/new.rs:1:fn one() {}\nsrc/new.rs:2:fn two() { one() }\n--\nold.rs-1-fn main() {\nold.rs:2:    one();",
    );
    check(
        content(json!({"only_matching": true, "pattern": "o.."})),
        "src/new.rs:1:one\nsrc/new.rs:2:o()\nsrc/new.rs:2:one\nold.rs:2:one",
    );
    check(
        content(json!({"pattern": "[}]$", "path": "src"})),
        "src/new.rs:1:fn one() {}\nsrc/new.rs:2:fn two() { one() }",
    );
    check(content(json!({"pattern": "main.*one", "multiline": true})), "old.rs:1:fn main() {\nold.rs:2:    one();");
}

#[test]
fn only_matching_returns_matches_at_any_position_and_across_lines() {
    let check = |content: &str, arguments: Value, expected: &[(u64, &str)]| {
        let bench = Bench::new();
        bench.put("f", content);
        let mut arguments = arguments;
        arguments["output_mode"] = "content".into();
        arguments["only_matching"] = true.into();
        let result = bench.call("grep", arguments).unwrap();
        let matches = result.structured_content().unwrap()["matches"].as_array().unwrap().clone();
        let found: Vec<(u64, &str)> =
            matches.iter().map(|found| (found["line"].as_u64().unwrap(), found["text"].as_str().unwrap())).collect();
        assert_eq!(found, expected, "{content:?}");
        let text: Vec<String> = expected.iter().map(|(line, text)| format!("f:{line}:{text}")).collect();
        assert_eq!(result.joined_text(), text.join("\n"), "{content:?}");
    };
    let across = |pattern: &str| json!({"pattern": pattern, "multiline": true});
    check("a\nbc\nd", across("a\nb"), &[(1, "a"), (2, "b")]);
    check("xa\r\nbx\nxa\r\nbx\n", across("a\r\nb"), &[(1, "a"), (2, "b"), (3, "a"), (4, "b")]);
    check("a\n\nb", across("a\n\nb"), &[(1, "a"), (3, "b")]);
    check("a\n\n\nb", across("\n\n"), &[(1, "")]);
    check("aa\naa\n", across("a"), &[(1, "a"), (1, "a"), (2, "a"), (2, "a")]);
    check("x foo\r\nfoo\r\n", json!({"pattern": "foo\\W"}), &[(1, "foo"), (2, "foo")]);
    check("a\n\nb\n", json!({"pattern": "^$"}), &[(2, "")]);
    check("a\r\n\r\nb", json!({"pattern": "^$"}), &[(2, "")]);
    check("ab\n", json!({"pattern": "x*"}), &[(1, "")]);
    check("axxb\n", json!({"pattern": "x*"}), &[(1, "xx")]);
    let many = "x\n".repeat(3000);
    let bench = Bench::new();
    bench.put("f", &many);
    let all =
        json!({"pattern": "x", "multiline": true, "only_matching": true, "output_mode": "content", "head_limit": 0});
    let found = bench.call("grep", all).unwrap();
    assert_eq!(found.structured_content().unwrap()["matches"].as_array().unwrap().len(), 3000);
}

#[test]
fn a_blank_in_a_glob_is_a_part_of_the_name() {
    let bench = Bench::new();
    for name in ["e", "f.txt", "e f.txt", "a,b"] {
        bench.put(name, "hit");
    }
    let found =
        |glob: &str| bench.text("grep", json!({"pattern": "hit", "glob": glob, "output_mode": "files_with_matches"}));
    assert_eq!(found("e f.txt"), "e f.txt");
    assert_eq!(found("e f*"), "e f.txt");
    assert_eq!(found("a\\,b"), "a,b");
    assert_eq!(found("*.txt !e*"), "f.txt");
    let message = "Nothing matches `hit` in `.`.\n`glob` has a space, which is part of the name; separate several patterns by commas.";
    assert_eq!(found("*.rs Makefile"), message);
}

#[test]
fn no_more_is_shown_than_is_asked_for() {
    let bench = Bench::new();
    bench.put_at("a", "hit\nhit\n", 2);
    bench.put_at("b", "hit\n", 1);
    let result = bench.call("grep", json!({"pattern": "hit", "head_limit": 1})).unwrap();
    assert_eq!(result.joined_text(), "a\n[1 of 2 are shown; narrow the search, or continue with offset=1]");
    assert_eq!(result.structured_content().unwrap()["truncated"], true);
    assert_eq!(bench.text("grep", json!({"pattern": "hit", "path": "a", "head_limit": 1})), "a");
    let few = bench.text("grep", json!({"pattern": "hit", "head_limit": 3}));
    assert_eq!(few, "a:1:hit\na:2:hit\nb:1:hit");
    assert_eq!(bench.text("grep", json!({"pattern": "hit", "head_limit": 0})), few);
}

#[test]
fn counts_include_all_matches_and_pages_report_the_next_offset() {
    check(
        json!({"pattern": "one", "output_mode": "count", "glob": "*.rs"}),
        "src/new.rs:2\nold.rs:1\n3 lines match in 2 files",
    );
    check(
        json!({"pattern": "one", "output_mode": "count", "glob": "*.rs", "head_limit": 1}),
        "src/new.rs:2\n3 lines match in 2 files\n[1 of 2 are shown; narrow the search, or continue with offset=1]",
    );
    check(json!({"pattern": "one", "head_limit": 2, "offset": 2}), "old.rs\n.env");
    check(json!({"pattern": "one", "offset": 9}), "There are only 4 to show; `offset` is beyond them.");
    check(
        json!({"pattern": "one", "head_limit": 0, "glob": "*.rs", "output_mode": "files_with_matches"}),
        "src/new.rs\nold.rs",
    );
}

#[test]
fn a_few_matches_are_shown_with_context_lines() {
    check(json!({"pattern": "main"}), "old.rs:1:fn main() {\nold.rs-2-    one();\nold.rs-3-}");
    check(
        json!({"pattern": "two"}),
        "src/new.rs-1-fn one() {}\nsrc/new.rs:2:fn two() { one() }\n--\nnotes.md:1:one two",
    );
    check(json!({"pattern": "main", "context": 0}), "old.rs:1:fn main() {");
    check(json!({"pattern": "e", "path": "old.rs"}), "old.rs-1-fn main() {\nold.rs:2:    one();\nold.rs-3-}");
    let result = bench().call("grep", json!({"pattern": "main"})).unwrap();
    let outcome = result.structured_content().unwrap();
    assert_eq!((&outcome["mode"], &outcome["matches"][0]["line"]), (&json!("files_with_matches"), &json!(1)));
    let bench = Bench::new();
    bench.put("many", "x\n".repeat(4));
    assert_eq!(bench.text("grep", json!({"pattern": "x"})), "many", "four are not few");
    bench.put("wide", format!("{}y\n{}", "z\n".repeat(100), "z\n".repeat(100)));
    assert_eq!(bench.text("grep", json!({"pattern": "y"})).lines().count(), 41);
    bench.put("wide", format!("{0}\ny\n{0}\n", "z".repeat(5000)).repeat(3));
    let text = bench.text("grep", json!({"pattern": "y"}));
    assert!(text.chars().count() < 8000 && text.contains("wide:8:y"), "{text}");
}

#[test]
fn a_stored_output_is_searched_like_a_file() {
    let bench = Bench::with_deny(&["Read(**)"]);
    let handle = bench.keep("text/plain", "one\ntwo\nthree\n");
    let text = bench.text("grep", json!({"pattern": "t.*e", "path": &handle, "output_mode": "content"}));
    assert_eq!(text, format!("{handle}:3:three"));
    let few = bench.text("grep", json!({"pattern": "t.*e", "path": &handle}));
    assert_eq!(few, format!("{handle}-1-one\n{handle}-2-two\n{handle}:3:three"));
    bench.put(&handle, "a file: three\n");
    assert_eq!(bench.text("grep", json!({"pattern": "t.*e", "path": &handle})), few, "no file is shown for it");
    let nothing = bench.text("grep", json!({"pattern": "four", "path": &handle}));
    assert_eq!(nothing, format!("Nothing matches `four` in `{handle}`."));
    let answer = bench.call("grep", json!({"pattern": "x", "path": "o99"})).unwrap_err().text();
    assert!(answer.contains("there is no stored output `o99`"), "{answer}");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a name that is no text is laid out behind the tools' back")]
fn few_matches_are_shown_for_files_with_unusual_names() {
    let bench = Bench::new();
    bench.put("~/notes", "one\n");
    assert_eq!(bench.text("grep", json!({"pattern": "one"})), "./~/notes:1:one");
    let unreadable = bench.path("").join(OsStr::from_bytes(b"\xff"));
    std::fs::write(unreadable, "three\n").unwrap();
    assert_eq!(bench.text("grep", json!({"pattern": "three"})), "\u{fffd}:1:three");
}

#[test]
fn a_search_without_matches_reports_matches_in_ignored_and_hidden_paths() {
    let bench = Bench::new();
    bench.put(".gitignore", "build/\n");
    bench.put("build/out", "hit\nhit\n");
    bench.put(".hidden", "hit\n");
    let text_of = |arguments| bench.text("grep", arguments);
    assert_eq!(
        text_of(json!({"pattern": "hit", "show_hidden": false})),
        "Nothing matches `hit` in `.`.\nBut 3 lines match in 2 files in ignored or hidden paths: set `no_ignore` and \
         `show_hidden` to search them, too."
    );
    assert_eq!(
        text_of(json!({"pattern": "hit", "glob": "out"})),
        "Nothing matches `hit` in `.`.\nBut 2 lines match in 1 file in ignored or hidden paths: set `no_ignore` to \
         search them, too."
    );
    assert_eq!(text_of(json!({"pattern": "miss"})), "Nothing matches `miss` in `.`.");
    assert_eq!(text_of(json!({"pattern": "hit", "path": "build"})), "build/out:1:hit\nbuild/out:2:hit");
}

#[test]
fn results_are_limited_to_the_output_budget_unless_all_are_requested() {
    let bench = Bench::new();
    bench.put("f", format!("x{}\n", "y".repeat(390)).repeat(200));
    let search = |more: Value| {
        let mut arguments = json!({"pattern": "x", "output_mode": "content"});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        bench.call("grep", arguments).unwrap()
    };
    let cut = search(json!({}));
    let shown = cut.structured_content().unwrap()["matches"].as_array().unwrap().len();
    assert!((70..80).contains(&shown), "{shown}");
    assert!(
        cut.joined_text()
            .ends_with(&format!("[{shown} of 200 are shown; narrow the search, or continue with offset={shown}]"))
    );
    let next = search(json!({"offset": shown}));
    assert_eq!(next.structured_content().unwrap()["matches"][0]["line"], shown + 1);
    assert_eq!(search(json!({"head_limit": 0})).structured_content().unwrap()["truncated"], false);
    for name in 0..120 {
        bench.put(&format!("files/{name}"), "x");
    }
    let files = bench.text("grep", json!({"pattern": "x", "path": "files"}));
    assert!(files.ends_with("[100 of 120 are shown; narrow the search, or continue with offset=100]"), "{files}");
}

#[test]
fn matches_are_returned_as_structured_content() {
    let result = bench().call("grep", json!({"pattern": "two", "path": "notes.md", "output_mode": "content"})).unwrap();
    let expected = json!({
        "mode": "content", "files": ["notes.md"],
        "matches": [{"path": "notes.md", "line": 1, "text": "one two", "start": 4, "end": 7}],
        "counts": [], "total_matches": 1, "truncated": false,
    });
    assert_eq!(result.structured_content(), Some(&expected));
}

#[test]
fn a_search_reports_skipped_files_and_timeouts() {
    let text = bench().text("grep", json!({"pattern": "one"}));
    assert!(text.contains("[1 file or folder was not searched: a rule denies reading it.]"), "{text}");
    assert!(text.contains("[1 binary file skipped]"), "{text}");
    let late = bench().call_within(Duration::ZERO, "grep", json!({"pattern": "one"})).unwrap();
    assert!(late.joined_text().contains("the time ran out"), "{}", late.joined_text());
    assert_eq!(late.structured_content().unwrap()["truncated"], true);
    let late = bench().call_within(Duration::ZERO, "grep", json!({"pattern": "one", "path": "old.rs"})).unwrap();
    assert!(late.joined_text().contains("the time ran out"), "{}", late.joined_text());
}

#[test]
fn a_search_that_finds_too_much_ends() {
    let bench = Bench::new();
    bench.put("f", "x\n".repeat(30_000));
    let count = bench.call("grep", json!({"pattern": "x", "output_mode": "count"})).unwrap();
    assert_eq!(count.structured_content().unwrap()["total_matches"], 30_000, "counting keeps nothing");
    let content =
        |more| bench.call("grep", json!({"pattern": "x", "output_mode": "content", "context": more})).unwrap();
    let lines = content(0);
    assert_eq!(lines.structured_content().unwrap()["total_matches"], 10_000);
    assert!(lines.joined_text().contains("at the maximum number of matches"), "{}", lines.joined_text());
    bench.put("f", "y\ny\ny\ny\nx\n".repeat(9_000));
    assert_eq!(content(2).structured_content().unwrap()["truncated"], true);
}

#[test]
fn a_long_line_and_another_encoding_are_searched() {
    let bench = Bench::new();
    bench.put("long", format!("{}needle{}", "x".repeat(2_000_000), "y".repeat(2_000_000)));
    let text = bench.text("grep", json!({"pattern": "needle", "output_mode": "content"}));
    assert!(text.contains("needle") && text.len() < 2000, "{}", text.len());
    bench.put("wide", b"\xff\xfen\0\xe4\0h\0\n\0");
    assert_eq!(bench.text("grep", json!({"pattern": "näh", "output_mode": "content"})), "wide:1:näh");
    bench.put("huge", vec![b'z'; 20 << 20]);
    let text = bench.text("grep", json!({"pattern": "z$", "path": "huge"}));
    assert!(text.contains("1 could not be searched"), "{text}");
}

#[test]
fn an_invalid_or_unsupported_search_is_rejected_with_the_reason() {
    let bench = bench();
    for (arguments, expected) in [
        (json!({"pattern": "("}), "Set `fixed_strings`"),
        (json!({"pattern": "(?=x)"}), "Look-around is not supported"),
        (json!({"pattern": "(a)\\1"}), "Backreferences are not supported"),
        (json!({"pattern": "a\0b"}), "`pattern` contains a NUL character"),
        (json!({"pattern": "a", "glob": "a\0"}), "`glob` contains a NUL character"),
        (json!({"pattern": "a\\nb"}), "Set `multiline`"),
        (json!({"pattern": "x", "file_type": "klingon"}), "unrecognized file type: klingon"),
        (json!({"pattern": "x", "glob": "a["}), "`glob` cannot be used"),
        (json!({"pattern": "x", "path": "nowhere"}), "does not exist"),
        (json!({"pattern": "x{1000}{1000}{1000}"}), "size limit"),
    ] {
        let answer = bench.call("grep", arguments).unwrap_err().text();
        assert!(answer.contains(expected), "{answer}");
    }
}

#[test]
fn ignore_files_work_as_in_git() {
    let bench = Bench::new();
    bench.put(".gitignore", "*.log\n/only_here\n");
    bench.put("a/.gitignore", "!keep.log\nsub/\n");
    for name in ["x.log", "only_here", "a/keep.log", "a/only_here", "a/sub/y", "a/z"] {
        bench.put(name, "hit");
    }
    let found = |arguments: Value| bench.text("grep", arguments).lines().map(str::to_owned).collect::<BTreeSet<_>>();
    let set = |names: &[&str]| names.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
    let hit = |path: &str| json!({"pattern": "hit", "path": path, "output_mode": "files_with_matches"});
    assert_eq!(found(hit(".")), set(&["a/keep.log", "a/only_here", "a/z"]));
    bench.put("b/w.log", "hit");
    assert!(found(hit("b")).contains("Nothing matches `hit` in `b`."), "patterns above the start hold there");
    bench.put("b/.ignore", "!w.log\n");
    assert_eq!(found(hit("b")), set(&["b/w.log"]), "another kind of ignore file is stronger");
    bench.put("b/.rgignore", "w.*\n");
    assert_eq!(found(hit("b")).len(), 2, "and another stronger still");
    bench.put("c/.git/info/exclude", "z\n");
    bench.put("c/x.log", "hit");
    bench.put("c/z", "hit");
    assert_eq!(found(hit("c")), set(&["c/x.log"]), "the patterns around a repository end there");
}

#[test]
fn a_linked_ignore_file_and_patterns_beyond_the_size_limit_are_ignored() {
    let bench = Bench::new();
    bench.put("kept.txt", "hit");
    bench.put("rules", "*.txt\n");
    bench.link("rules", ".gitignore");
    let hit = json!({"pattern": "hit", "output_mode": "files_with_matches"});
    assert_eq!(bench.text("grep", hit.clone()), "kept.txt");
    let long = format!("{}\n*.no", "#".repeat((64 << 10) - 2));
    bench.put("rules", "");
    bench.put(".ignore", long + "t\n");
    assert_eq!(bench.text("grep", hit), "kept.txt", "half a pattern is none");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn grep_finds_the_same_lines_as_matching_every_line(
        files in prop::collection::btree_map("[ab]{1,2}(/[ab]{1,2}){0,2}[.]t", "([abx ]{0,5}\r?\n){0,6}[abx]{0,2}", 0..6),
        pattern in "(a|b|x|[.]|ab|x[*]|\\^a|b\\$){1,2}",
    ) {
        let bench = Bench::new();
        for (name, content) in &files {
            bench.put(name, content);
        }
        let arguments = json!({"pattern": pattern, "output_mode": "content", "head_limit": 0});
        let found = bench.call("grep", arguments).unwrap();
        let found = found.structured_content().unwrap()["matches"].as_array().unwrap().clone();
        let found: BTreeSet<(String, u64)> = found
            .iter()
            .map(|line| (line["path"].as_str().unwrap().to_owned(), line["line"].as_u64().unwrap()))
            .collect();
        let regex = regex::Regex::new(&pattern).unwrap();
        let expected: BTreeSet<(String, u64)> = files
            .iter()
            .flat_map(|(name, content)| (1..).zip(content.lines()).map(move |(number, line)| (name, number, line)))
            .filter(|(.., line)| regex.is_match(line))
            .map(|(name, number, _)| (name.clone(), number))
            .collect();
        prop_assert_eq!(found, expected);
    }
}
