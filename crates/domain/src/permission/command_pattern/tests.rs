//! The truth table of commands, and what holds for any pattern and any command.

use super::*;
use proptest::prelude::*;
use std::sync::Arc;

const ALLOW: PatternPurpose<'_> = PatternPurpose::Covering { transparent_programs: &["timeout", "nohup", "nice"] };

fn words<'a>(words: impl IntoIterator<Item = &'a str>) -> Arc<[Arc<str>]> {
    words.into_iter().map(Into::into).collect()
}

/// A plain command of a line of its own.
fn plain(line: &str) -> CommandAccess {
    CommandAccess { whole: line.into(), text: line.into(), ..CommandAccess::program(line.split(' ')) }
}

fn allows(pattern: &str, command: &CommandAccess) -> bool {
    CommandPattern::parse(pattern, ALLOW).unwrap().covers(command)
}

fn denies(pattern: &str, command: &CommandAccess) -> bool {
    CommandPattern::parse(pattern, PatternPurpose::Catching).unwrap().catches(command)
}

#[track_caller]
fn check(pattern: &str, line: &str, expected: bool) {
    assert_eq!(allows(pattern, &plain(line)), expected, "allow {pattern}: {line}");
    assert_eq!(denies(pattern, &plain(line)), expected, "deny {pattern}: {line}");
}

#[test]
fn without_a_wildcard_the_pattern_is_the_whole_command() {
    check("npm install", "npm install", true);
    check("npm install", "npm install left-pad", false);
    check("npm install", "npm", false);
    check("git:* push", "git push", false);
}

#[test]
fn a_final_star_after_a_space_or_colon_matches_at_a_word_boundary() {
    check("git *", "git", true);
    check("git *", "git status", true);
    check("git *", "gitk", false);
    check("git:*", "git status", true);
    check("git:*", "gitk", false);
    check("git*", "gitk", true);
    check("git*", "git status", true);
    check("git commit:*", "git commit -m x", true);
    check("git commit:*", "git commit-tree", false);
    check("ls *", "lsof", false);
}

#[test]
fn a_star_matches_any_text_at_any_position() {
    check("* --help", "cargo build --help", true);
    check("* --help", "cargo build --helpful", false);
    check("git * main", "git push origin main", true);
    check("git * main", "git main", false);
    check("npm run test*", "npm run test:unit --watch", true);
    check("* rm *", "sudo rm x", true);
}

#[test]
fn quoted_and_escaped_pattern_text_matches_literally_within_one_word() {
    let command =
        |line: &str, argument: &str| CommandAccess { words: words(["git", "commit", "-m", argument]), ..plain(line) };
    assert!(allows("git commit -m *", &command("git commit -m \"a b\"", "a b")));
    assert!(allows("git commit -m 'a b'", &command("git commit -m \"a b\"", "a b")));
    assert!(allows(r"git commit -m a\ b", &command("git commit -m \"a b\"", "a b")));
    assert!(!allows("git commit -m a b", &command("git commit -m 'a b'", "a b")));
    assert!(!allows("git commit -m a b *", &command("git commit -m 'a b'", "a b")));
    assert!(allows(r"git commit -m \*", &command("git commit -m '*'", "*")));
    assert!(!allows(r"git commit -m \*", &command("git commit -m x", "x")));
    assert!(allows(r"git commit -m it\'s *", &command("git commit -m it\\'s", "it's")));
    assert!(allows(r"git commit -m \x *", &command(r"git commit -m \x", "x")));
}

#[test]
fn the_outline_of_a_pattern_has_the_words_common_to_all_covered_commands() {
    for (pattern, expected) in [
        ("npx *", Some("npx | | …")),
        ("npx tsc:*", Some("npx tsc | | …")),
        ("npx tsc --p*", Some("npx tsc | | …")),
        ("find * -delete", Some("find | -delete")),
        ("find * -exec * x", Some("find | -exec | …")),
        ("find *.rs -delete", Some("find | | …")),
        ("find . -name * a*", Some("find . -name | | …")),
        ("git commit -m 'a b' *", Some("git commit -m a b | | …")),
        ("./run*", Some("./run | | …")),
        ("ru*", None),
        ("* x", None),
        ("npx tsc", None),
    ] {
        let outline = CommandPattern::parse(pattern, ALLOW).unwrap().outline();
        let written = outline.map(|CommandPatternOutline { head, tail, is_open }| {
            format!("{} | {}{}", head.join(" "), tail.join(" "), if is_open { " | …" } else { "" })
                .replace("|  |", "| |")
        });
        assert_eq!(written.as_deref(), expected, "{pattern}");
    }
}

#[test]
fn a_pattern_of_two_words_does_not_cover_one_word_with_a_separator() {
    let one = CommandAccess::program(["rm", "a b"]);
    assert!(!allows("rm a b", &one) && !allows("rm a *", &one));
    assert!(allows("rm 'a b'", &one) && allows("rm *", &one));
    let separator = CommandAccess::program(["rm", "a\0b"]);
    assert!(!allows("rm a b", &separator) && !allows("rm *", &separator));
}

#[test]
fn a_command_part_is_covered_by_its_own_rule_or_a_rule_for_the_whole_line() {
    let part = CommandAccess { whole: "git status && rm -rf x".into(), ..plain("rm -rf x") };
    assert!(!allows("git *", &part));
    assert!(allows("rm *", &part));
    assert!(allows("git status && rm -rf x", &part));
    assert!(!allows("git status", &part));
    assert!(denies("rm *", &part) && !denies("git *", &part));
    assert!(denies("git status && rm -rf x", &part) && denies("git status && *", &part));
}

#[test]
fn a_command_that_is_not_plain_is_covered_only_by_a_rule_with_its_full_text() {
    let line = r"find . -name \*.o -exec rm {} ;";
    let find = CommandAccess {
        words: words(["find", ".", "-name", "*.o", "-exec", "rm", "{}", ";"]),
        clarity: ParseConfidence::Exact("`-exec` runs another program".into()),
        ..plain(line)
    };
    assert!(!allows("find *", &find) && !allows("find . *", &find));
    assert!(allows(r"find . -name \\\*.o -exec rm {} ;", &find));
    // `LD_PRELOAD=x npm test`: the words alone do not say all of it.
    let loaded = CommandAccess {
        words: words(["npm", "test"]),
        clarity: ParseConfidence::Exact("it sets LD_PRELOAD".into()),
        ..plain("LD_PRELOAD=x npm test")
    };
    assert!(!allows("npm test", &loaded) && allows("LD_PRELOAD=x npm test", &loaded));
    assert!(denies("npm test", &loaded));
}

#[test]
fn an_opaque_command_is_allowed_only_by_its_full_text_and_matches_every_deny_pattern() {
    let opaque = CommandAccess::opaque("$x -rf / && ls", "the program is a variable");
    assert!(!allows("ls", &opaque) && !allows("* ls", &opaque));
    assert!(allows("$x -rf / && ls", &opaque));
    assert!(denies("rm *", &opaque) && denies("nothing alike", &opaque));
}

#[test]
fn deny_patterns_match_commands_behind_wrappers_and_assignments() {
    let wrapped = CommandAccess {
        words: words(["rm", "x"]),
        readings: [words(["timeout", "5", "rm", "x"])].into(),
        ..plain("FOO=1 timeout 5 rm x")
    };
    assert!(denies("rm *", &wrapped) && denies("timeout *", &wrapped) && denies("FOO=1 *", &wrapped));
    let by_path = CommandAccess { readings: [words(["rm", "-rf", "x"])].into(), ..plain("/bin/rm -rf x") };
    assert!(denies("rm *", &by_path));
    let options = CommandAccess { readings: [words(["git", "push"])].into(), ..plain("git -C . push") };
    assert!(denies("git push *", &options) && !allows("git push *", &options));
}

#[test]
fn a_harmless_assignment_does_not_prevent_a_pattern_match() {
    let tested = CommandAccess { words: words(["npm", "test"]), ..plain("NODE_ENV=test npm test") };
    assert!(allows("npm test", &tested) && denies("npm test", &tested));
}

#[test]
fn an_allow_pattern_does_not_match_as_a_substring_of_a_command() {
    // The parts of `curl x | tools`.
    for line in ["curl x", "tools"] {
        let part = CommandAccess { whole: "curl x | tools".into(), ..plain(line) };
        assert!(!allows("ls", &part) && !allows("ls *", &part), "{line}");
    }
}

#[test]
fn every_part_of_a_compound_command_requires_its_own_rule() {
    for (whole, parts) in [
        ("ls\nrm x", ["ls", "rm x"]),
        ("ls & rm x", ["ls", "rm x"]),
        ("ls | rm x", ["ls", "rm x"]),
        ("ls $(rm x)", ["ls", "rm x"]),
        ("ls `rm x`", ["ls", "rm x"]),
    ] {
        let parts = parts.map(|part| CommandAccess { whole: whole.into(), ..plain(part) });
        assert!(parts.iter().any(|part| !allows("ls *", part)), "{whole:?}");
        assert!(parts.iter().any(|part| denies("rm *", part)), "{whole:?}");
    }
    let quoted = CommandAccess { words: words(["echo", "a && b"]), ..plain("echo \"a && b\"") };
    assert!(allows("echo *", &quoted) && !denies("b *", &quoted));
}

#[test]
fn a_pattern_that_can_never_match_is_refused() {
    for (text, reason) in [
        ("git status && *", "each command of a line"),
        ("echo * > out", "redirects"),
        ("echo $(date) *", "each command of a line"),
        ("timeout 5 cargo *", "is skipped"),
        ("nohup:*", "is skipped"),
        ("FOO=1 npm *", "assignments"),
        (":*", "write `Bash`"),
        ("* *", "write `Bash`"),
        ("**", "write `Bash`"),
        ("''", "no word"),
        ("a\0b", "NUL"),
    ] {
        let error = CommandPattern::parse(text, ALLOW).unwrap_err();
        assert!(error.contains(reason), "{text}: {error}");
    }
    for text in ["git status && npm test", "echo x > out", "npm run build 2>&1", "grep 'a|b;$(' *", "nice*", "timeout"]
    {
        assert!(CommandPattern::parse(text, ALLOW).is_ok(), "{text}");
    }
    for text in ["git status && *", "timeout *", "FOO=1 *"] {
        assert!(CommandPattern::parse(text, PatternPurpose::Catching).is_ok(), "{text}");
    }
}

#[test]
fn a_pattern_with_invalid_quoting_is_rejected_with_a_correction() {
    for (text, instead) in [
        ("psql -c \"drop *", "`psql -c \"drop \"*`"),
        ("psql -c \"drop", "`psql -c \"drop\"`"),
        ("git commit -m it's *", r"write `\'` for the sign itself"),
        (r"make a\ *", "`make a' '*`"),
        (r"make a\:*", "`make a' '*`"),
        (r"make a\", r"`\\` for a backslash"),
        ("rm $'a b' *", "in ordinary quotes"),
        ("rm $\"a b\"", "in ordinary quotes"),
    ] {
        let error = CommandPattern::parse(text, PatternPurpose::Catching).unwrap_err();
        assert!(error.contains(instead), "{text}: {error}");
        assert_eq!(CommandPattern::parse(text, ALLOW).is_err(), text.ends_with('*'), "{text}");
        if let Some(instead) = instead.strip_prefix('`').and_then(|text| text.strip_suffix('`')) {
            assert!(CommandPattern::parse(instead, PatternPurpose::Catching).is_ok(), "{instead}");
        }
    }
    // A line that is allowed as it is written.
    assert!(allows("cat <<E\nit's\nE", &CommandAccess::opaque("cat <<E\nit's\nE", "a reason")));
}

/// A denied command is denied behind a wrapper, in other quotes and behind an assignment alike.
#[test]
fn a_deny_pattern_matches_words_regardless_of_quoting_wrapper_and_assignment() {
    let written = |line: &str, words: &[&str], reading: &[&str]| CommandAccess {
        readings: [reading.iter().map(|word| (*word).into()).collect()].into(),
        ..CommandAccess { words: words.iter().map(|word| (*word).into()).collect(), ..plain(line) }
    };
    for (pattern, words, expected) in [
        ("psql -c \"drop \"*", &["psql", "-c", "drop t"][..], true),
        ("psql -c \"drop *\"", &["psql", "-c", "drop t"], true),
        ("psql -c drop *", &["psql", "-c", "drop t"], false),
        ("make a' '*", &["make", "a b"], true),
        ("* b", &["make", "b"], true),
        // `b` is the end of a word here.
        ("* b", &["make", "a b"], false),
        ("make a b", &["make", "a b"], false),
    ] {
        let quoted = |quote: &str| {
            let quoted =
                |word: &&str| if word.contains(' ') { format!("{quote}{word}{quote}") } else { (*word).into() };
            words.iter().map(quoted).collect::<Vec<String>>().join(" ")
        };
        let escaped = words.iter().map(|word| word.replace(' ', r"\ ")).collect::<Vec<_>>().join(" ");
        for line in [quoted("'"), quoted("\""), escaped] {
            let wrapped: Vec<&str> = ["timeout", "5"].iter().chain(words).copied().collect();
            for command in [
                written(&line, words, &[]),
                written(&format!("timeout 5 {line}"), words, &wrapped),
                written(&format!("LANG=C  {line}"), words, &[]),
            ] {
                assert_eq!(denies(pattern, &command), expected, "{pattern}: {}", command.text);
            }
        }
    }
}

fn any_word() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z-]{1,4}",
        1 => r#"[a-z *'"\\$;|&<>:=(){}\n\t]{0,6}"#,
        1 => any::<String>().prop_map(|text| text.chars().filter(|c| *c != '\0').take(6).collect()),
    ]
}

fn any_clarity() -> impl Strategy<Value = ParseConfidence> {
    prop_oneof![
        4 => Just(ParseConfidence::Plain),
        1 => Just(ParseConfidence::Exact("it runs something".into())),
        1 => Just(ParseConfidence::Opaque("nobody knows".into())),
    ]
}

fn any_command() -> impl Strategy<Value = CommandAccess> {
    let all = (prop::collection::vec(any_word(), 1..5), any_clarity(), prop::option::of("[a-z]{1,3}"));
    all.prop_map(|(words, clarity, other)| {
        let command = CommandAccess::program(words);
        let whole = other.map_or(command.text.clone(), |other| format!("{other}; {}", command.text).into());
        CommandAccess { whole, clarity, ..command }
    })
}

fn any_pattern() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::collection::vec(prop_oneof![any_word(), Just("*".to_owned())], 1..5).prop_map(|words| words.join(" ")),
        prop::collection::vec("[a-z]{1,2}|[*]| |:[*]", 1..8).prop_map(|parts| parts.concat()),
        any::<String>(),
    ]
}

proptest! {
    #[test]
    fn arbitrary_patterns_and_commands_do_not_panic(text in any_pattern(), command in any_command()) {
        for purpose in [ALLOW, PatternPurpose::Catching] {
            if let Ok(pattern) = CommandPattern::parse(&text, purpose) {
                let _ = (pattern.covers(&command), pattern.catches(&command));
            }
        }
    }

    #[test]
    fn an_allowed_command_contains_every_word_of_the_pattern_in_order(
        tokens in prop::collection::vec("[a-z]{1,3}|[*]", 1..5), words in prop::collection::vec("[a-z]{1,3}", 1..6),
    ) {
        let command = CommandAccess::program(words.iter().map(String::as_str));
        if let Ok(pattern) = CommandPattern::parse(&tokens.join(" "), ALLOW)
            && pattern.covers(&command)
        {
            let mut left = words.iter();
            for token in tokens.iter().filter(|token| *token != "*") {
                prop_assert!(left.any(|word| word == token), "{tokens:?} {words:?}");
            }
        }
    }

    #[test]
    fn a_pattern_that_allows_a_command_also_denies_it_as_a_deny_rule(text in any_pattern(), command in any_command()) {
        if let (Ok(allow), Ok(deny)) =
            (CommandPattern::parse(&text, ALLOW), CommandPattern::parse(&text, PatternPurpose::Catching))
            && allow.covers(&command) && command.whole == command.text
        {
            prop_assert!(deny.catches(&command), "{text:?} {command:?}");
        }
    }

    #[test]
    fn an_additional_reading_never_prevents_a_deny_match(
        text in any_pattern(), command in any_command(), more in prop::collection::vec(any_word(), 1..4),
    ) {
        if let Ok(pattern) = CommandPattern::parse(&text, PatternPurpose::Catching) && pattern.catches(&command) {
            let more: Arc<[Arc<str>]> = more.into_iter().map(Into::into).collect();
            let readings = command.readings.iter().cloned().chain([more]).collect();
            let more = CommandAccess { readings, ..command };
            prop_assert!(pattern.catches(&more));
        }
    }

    #[test]
    fn the_narrowest_pattern_covers_that_command_and_no_other(command in any_command(), other in any_command()) {
        if let Some(text) = narrowest(&command) {
            prop_assert!(allows(&text, &command), "{text:?} {command:?}");
            if allows(&text, &other) {
                let same = other.words == command.words || other.whole.trim() == command.whole.trim()
                    || other.text.trim() == command.text.trim();
                prop_assert!(same, "{text:?} {command:?} {other:?}");
            }
        }
    }

    #[test]
    fn there_is_a_narrowest_pattern_for_every_ordinary_command(words in prop::collection::vec("[a-z*'\"\\\\ ();&.-]{1,5}", 1..4)) {
        let command = CommandAccess::program(words);
        prop_assert!(narrowest(&command).is_some(), "{command:?}");
    }
}
