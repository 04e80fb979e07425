//! Tests of the tool `glob`.

use super::*;
use crate::builtin::tests::Bench;
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeSet;

fn bench() -> Bench {
    let bench = Bench::with_deny(&["Read(secret)"]);
    bench.put_at("old.rs", "1", 1);
    bench.put_at("src/new.rs", "12", 3);
    bench.put_at("src/deep/mid.rs", "123", 2);
    bench.put_at(".hidden.rs", "", 0);
    bench.put(".git/x.rs", "");
    bench.put("secret/x.rs", "");
    bench.put_at("ignored.log", "", 9);
    bench.put(".gitignore", "*.log\n");
    bench
}

#[track_caller]
fn check(arguments: Value, expected: &[&str]) {
    let result = bench().call("glob", arguments).unwrap();
    let found = result.structured_content().unwrap()["files"].as_array().unwrap().clone();
    let found: Vec<&str> = found.iter().map(|file| file["path"].as_str().unwrap()).collect();
    assert_eq!(found, expected, "{}", result.joined_text());
}

#[test]
fn matching_files_are_listed_with_the_most_recently_changed_first() {
    check(json!({"pattern": "**/*.rs"}), &["src/new.rs", "src/deep/mid.rs", "old.rs", ".hidden.rs"]);
    check(json!({"pattern": "*.rs"}), &["old.rs", ".hidden.rs"]);
    check(json!({"pattern": "*.rs", "show_hidden": false}), &["old.rs"]);
    check(json!({"pattern": "src/*.rs"}), &["src/new.rs"]);
    check(json!({"pattern": "**/*.{rs,log}", "max_depth": 1}), &["ignored.log", "old.rs", ".hidden.rs"]);
    check(json!({"pattern": "*.log", "respect_gitignore": true}), &[]);
    check(json!({"pattern": "mid.rs", "path": "src/deep"}), &["src/deep/mid.rs"]);
    check(json!({"pattern": "./src/./**/mid.rs"}), &["src/deep/mid.rs"]);
    check(json!({"pattern": "nowhere/*.rs"}), &[]);
    check(json!({"pattern": "**/*.rs", "limit": 1}), &["src/new.rs"]);
}

#[test]
fn an_absolute_pattern_starts_at_its_own_folder() {
    let bench = bench();
    let pattern = bench.path("src").join("**/*.rs");
    assert_eq!(bench.text("glob", json!({"pattern": pattern})), "src/new.rs\nsrc/deep/mid.rs");
    let answer = bench.call("glob", json!({"pattern": "/etc/*"})).unwrap_err().text();
    assert!(answer.contains("outside of the workspace"), "{answer}");
}

#[test]
fn folders_are_found_when_asked_for() {
    check(json!({"pattern": "src/*", "type": "directory"}), &["src/deep"]);
    check(json!({"pattern": "src/*/"}), &["src/deep"]);
    let any = bench().call("glob", json!({"pattern": "src/**", "type": "any"})).unwrap();
    assert_eq!(any.structured_content().unwrap()["total_seen"], 3);
}

#[test]
fn file_links_count_as_their_targets_and_folder_links_are_not_followed() {
    let bench = Bench::new();
    bench.put("real/a.txt", "");
    bench.link("real/a.txt", "file_link.txt");
    bench.link("real", "folder_link");
    bench.link("/etc/passwd", "outside.txt");
    let found = bench.text("glob", json!({"pattern": "**/*.txt"}));
    let found: BTreeSet<&str> = found.lines().collect();
    assert_eq!(found, BTreeSet::from(["file_link.txt", "real/a.txt"]));
    assert_eq!(bench.text("glob", json!({"pattern": "folder_link/*"})), "folder_link/a.txt");
}

#[test]
fn omitted_denied_and_unsearched_entries_are_reported() {
    let bench = bench();
    let text = bench.text("glob", json!({"pattern": "**/*.rs", "limit": 2}));
    assert_eq!(
        text,
        "src/new.rs\nsrc/deep/mid.rs\n[2 of 4 are shown; all are stored as `o1`, for `read_file` and `grep`]\n\
         [1 file or folder was not looked at: a rule denies reading it.]"
    );
    let text = bench.text("glob", json!({"pattern": "*.py"}));
    assert!(text.starts_with("Nothing matches `*.py` in `.`.\nTo search the folders below, use `**/*.py`."));
    let late = bench.call_within(Duration::ZERO, "glob", json!({"pattern": "**"})).unwrap();
    assert!(late.joined_text().contains("the time ran out after 0 entries"), "{}", late.joined_text());
    assert_eq!(late.structured_content().unwrap()["truncated"], true);
}

#[test]
fn a_pattern_without_matches_returns_similar_names() {
    let text = |pattern: &str| bench().text("glob", json!({"pattern": pattern}));
    assert_eq!(
        text("**/mit.rs"),
        "Nothing matches `**/mit.rs` in `.`.\nSimilar names: `mid.rs`, `new.rs`, `old.rs`.\n[1 file or folder was not looked at: a rule denies reading it.]"
    );
    assert!(text("mid.rs").contains("try `**/mid.rs` with type=\"any\""), "{}", text("mid.rs"));
    assert!(text("srx/*.rs").contains("In the same folder there is `src`."), "{}", text("srx/*.rs"));
    assert_eq!(text("zzzzzzzz/*.rs").lines().count(), 1);
}

#[test]
fn a_pattern_that_cannot_match_is_refused() {
    let bench = bench();
    for (pattern, expected) in
        [("../*", "`..` is not followed"), ("a[", "unclosed"), ("*/../x", "match nothing"), ("a/", "")]
    {
        let answer =
            bench.call("glob", json!({"pattern": pattern})).map_or_else(|failure| failure.text(), |_| String::new());
        assert!(answer.contains(expected), "{pattern}: {answer}");
    }
    let failure = bench.call("glob", json!({"pattern": "a\0"})).unwrap_err().text();
    assert!(failure.contains("it contains a NUL character"), "{failure}");
    let failure = bench.call("glob", json!({"pattern": "{a,b}".repeat(10)}));
    assert!(failure.unwrap_err().text().contains("too many alternatives"));
    let many = format!("{{{}}}", "a,".repeat(400));
    assert!(bench.call("glob", json!({"pattern": many})).is_ok());
    assert!(bench.call("glob", json!({"pattern": "x", "path": "nowhere"})).is_err());
}

#[test]
fn matches_beyond_the_limit_are_stored_under_a_handle() {
    let bench = Bench::new();
    let names: Vec<String> = (0..250).map(|number| format!("d/f{number:03}")).collect();
    for (age, name) in names.iter().enumerate() {
        bench.put_at(name, "", 1000 - age as u64);
    }
    for (arguments, shown) in [(json!({"pattern": "d/*"}), 100), (json!({"pattern": "**/f*", "limit": 7}), 7)] {
        let result = bench.call("glob", arguments).unwrap();
        let found = result.structured_content().unwrap();
        let handle = found["all"].as_str().unwrap().to_owned();
        let note = format!("[{shown} of 250 are shown; all are stored as `{handle}`, for `read_file` and `grep`]");
        assert_eq!(result.joined_text(), format!("{}\n{note}", names[..shown].join("\n")));
        assert_eq!(found["files"].as_array().unwrap().len(), shown);
        let kept = bench.text("read_file", json!({"path": handle, "line_numbers": false}));
        assert_eq!(kept.lines().collect::<Vec<_>>(), names);
    }
    let all = bench.call("glob", json!({"pattern": "d/*", "limit": 250})).unwrap();
    assert_eq!(all.structured_content().unwrap().get("all"), None);
    assert_eq!(all.joined_text(), names.join("\n"));
}

#[test]
fn a_match_all_pattern_finds_files_with_any_name() {
    let bench = Bench::new();
    let names = ["a", ".b", "c/d.rs", "c/.e/f", "g\nh", "[i]", "c/*"];
    for name in names {
        bench.put(name, "");
    }
    for pattern in ["**", "**/*", "./**", "**/**"] {
        let found = bench.call("glob", json!({"pattern": pattern})).unwrap();
        let found = found.structured_content().unwrap()["files"].as_array().unwrap().clone();
        let found: BTreeSet<&str> = found.iter().map(|file| file["path"].as_str().unwrap()).collect();
        assert_eq!(found, BTreeSet::from(names), "{pattern}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn glob_finds_the_same_files_as_matching_every_path(
        names in prop::collection::btree_set("[ab]{1,2}(/[ab]{1,2}){0,3}[.][xy]", 0..12),
        pattern in "([*]{2}/)?([ab*?]{1,2}/){0,2}[ab*]{1,2}[.][xy*]",
    ) {
        let bench = Bench::new();
        for name in &names {
            bench.put(name, "");
        }
        let found = bench.call("glob", json!({"pattern": pattern, "limit": 10_000})).unwrap();
        let found = found.structured_content().unwrap()["files"].as_array().unwrap().clone();
        let found: BTreeSet<String> = found.iter().map(|file| file["path"].as_str().unwrap().to_owned()).collect();
        let glob = GlobBuilder::new(&pattern).literal_separator(true).build().unwrap().compile_matcher();
        let expected: BTreeSet<String> = names.into_iter().filter(|name| glob.is_match(name)).collect();
        prop_assert_eq!(found, expected);
    }
}
