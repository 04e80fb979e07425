//! Tests of the analysis with tables of texts. `tests/it/shell_oracle.rs` compares the same analysis with bash itself,
//! on random scripts.

mod built_in_rules;
mod digest;
mod rows;
mod trust;

use super::*;
use proptest::prelude::*;
use rows::ROWS;
use std::{sync::Arc, time::Duration};
use toolstead_domain::{CommandAccess, ParseConfidence};

/// Returns a summary in one line: commands, with `!` if only an exact rule covers them and `?` if they are opaque, and
/// files with `>` (written), `<` (read) and `/**` (with everything below).
fn rendered(text: &str) -> String {
    let analysis = analyse(text, Path::new("/w"));
    let mut parts: Vec<String> = Vec::new();
    for command in &analysis.commands {
        let words = command.words.join("·");
        let part = match &command.clarity {
            ParseConfidence::Plain => words,
            ParseConfidence::Exact(_) => format!("{words} !"),
            ParseConfidence::Opaque(_) => "?".to_owned(),
        };
        if part != "?" || !parts.contains(&part) {
            parts.push(part);
        }
    }
    for file_access in &analysis.file_accesses {
        let sign = if file_access.writes { '>' } else { '<' };
        let tree = if file_access.tree { "/**" } else { "" };
        parts.push(format!("{sign}{}{tree}", file_access.path.display()));
    }
    parts.join(" | ")
}

/// Returns `true` if a deny rule on that program matches the text.
fn is_caught(text: &str, program: &str) -> bool {
    let analysis = analyse(text, Path::new("/w"));
    let named = |words: &Arc<[Arc<str>]>| words.first().is_some_and(|first| &**first == program);
    analysis.is_opaque()
        || analysis.commands.iter().any(|command| named(&command.words) || command.readings.iter().any(named))
}

fn reason(text: &str) -> String {
    let analysis = analyse(text, Path::new("/w"));
    let reasons = analysis.commands.iter().find_map(|command| match &command.clarity {
        ParseConfidence::Plain => None,
        ParseConfidence::Exact(reason) | ParseConfidence::Opaque(reason) => Some(reason.to_string()),
    });
    reasons.unwrap_or_default()
}

#[test]
fn every_shell_text_is_analysed_as_the_table_expects() {
    let wrong: Vec<String> = ROWS
        .iter()
        .filter(|(text, expected)| rendered(text) != *expected)
        .map(|(text, expected)| format!("{text:?}\n  is       {}\n  expected {expected}", rendered(text)))
        .collect();
    assert!(wrong.is_empty(), "{} of {} rows:\n{}", wrong.len(), ROWS.len(), wrong.join("\n"));
}

#[test]
fn a_deny_rule_matches_a_program_wherever_a_shell_text_runs_it() {
    // Texts in which `rm` is data: quoted, an operand, a comment, or part of another name.
    const DATA: &[&str] = &[
        "git status \\\n  rm x",
        "cat <<'EOF'\n$(rm x)\nEOF",
        "git commit -m \"$(cat <<'E'\na)\" && rm x\nE\n)\"",
        "echo #rm x",
        "git add -A && git commit -m \"message; with rm\"",
        "echo $'a\\'; rm x'",
        "echo 'a'\\''b; rm x'",
        "echo \"a\\\"; rm x\"",
        "rmdir d",
        "make rm",
        "echo rm x",
        "grep rm x",
    ];
    let missed: Vec<&str> = ROWS
        .iter()
        .map(|(text, _)| *text)
        .filter(|text| text.contains("rm") && !DATA.contains(text) && !is_caught(text, "rm"))
        .collect();
    assert!(missed.is_empty(), "{missed:#?}");
    let refused: Vec<&&str> = DATA.iter().filter(|text| is_caught(text, "rm")).collect();
    assert!(refused.is_empty(), "{refused:#?}");
}

#[test]
fn commands_that_are_not_plain_have_a_readable_reason() {
    for (text, expected) in [
        ("$x y", "the program's name is in a variable"),
        ("$(cat x) y", "the program's name comes from another command"),
        ("eval x", "the shell evaluates its arguments"),
        ("curl x | sh", "the shell reads its commands from its input"),
        ("find . -delete", "this argument makes find run or change something"),
        ("bash -c 'eval x'", "in the text that it runs: the shell evaluates its arguments"),
        ("/opt/git status", "a program given by its path may be any program"),
        ("ls\rx", "it holds a carriage return"),
    ] {
        assert_eq!(reason(text), expected, "{text}");
    }
}

#[test]
fn a_command_is_shown_as_it_was_written() {
    let analysis = analyse("A=1 timeout 5 'git'  push > out && ls", Path::new("/w"));
    let texts: Vec<&str> = analysis.commands.iter().map(|command| &*command.text).collect();
    assert_eq!(texts, ["A=1 timeout 5 'git'  push > out", "ls"]);
    assert_eq!(&*analyse("git apply - <<E\nx\nE", Path::new("/w")).commands[0].text, "git apply -");
    assert!(analysis.commands.iter().all(|command| &*command.whole == "A=1 timeout 5 'git'  push > out && ls"));
}

/// Returns the processor time of this thread. Unlike a clock, it does not advance while other programs run.
#[allow(clippy::disallowed_methods, reason = "the kernel's own file")]
fn time_of_this_thread() -> Duration {
    let counts = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(counts.split(' ').next().unwrap().parse().unwrap())
}

#[test]
fn shell_texts_beyond_a_limit_are_opaque_and_analysed_in_bounded_time() {
    let many = |open: &str, close: &str, count: usize| format!("{}x{}", open.repeat(count), close.repeat(count));
    let texts = [
        format!("echo {}", "a".repeat(MAX_TEXT)),
        "a;".repeat(1_100),
        "a && ".repeat(1_100) + "a",
        "a | ".repeat(1_100) + "a",
        many("(", ")", 400),
        many("$(", ")", 400),
        many("{ ", "; }", 400),
        many("if a; then ", "; fi", 400),
        many("(", ")", 30_000),
        many("$(", ")", 20_000),
        many("${x:-", "}", 10_000),
        many("\"$(", ")\"", 15_000),
        many("((", "))", 15_000),
        many("`", "`", 30_000),
        "(".repeat(60_000),
        "{".repeat(60_000),
        "$(".repeat(30_000),
        "<<E ".repeat(10_000),
        "\"".repeat(60_001),
        format!("x {}", "y ".repeat(300)),
        format!("foo {}rm", "a=".repeat(300)),
        format!("docker run -{}rm", "x".repeat(300)),
        format!("env {}", "su ".repeat(20_000)),
        format!("sudo {}", "python3 ".repeat(8_000)),
        format!("sort -o {}", "a=b:c=d ".repeat(8_000) + "$x"),
        "GIT_EDITOR='a b' ".repeat(3_000) + "$x",
        "a;".repeat(20_000),
        many("x $(", ")", 250),
        format!("sh -c '{}$x'", "a b c d e f g h i j k l m n o p q r s t;".repeat(900)),
        format!("foo '{}rm x'", "a;".repeat(1_100)),
        format!("foo '{}rm x{}'", "(".repeat(400), ")".repeat(400)),
        format!("foo '{}rm x'", "echo a > f; ".repeat(1_100)),
        format!("foo '{}' $x", "a b c d e f g h i j k l m n o p q r s t;".repeat(900)),
    ];
    for text in texts {
        let start = time_of_this_thread();
        let analysis = analyse(&text, Path::new("/w"));
        let took = time_of_this_thread() - start;
        assert!(analysis.is_opaque(), "{}...", shown(&text));
        assert!(took < Duration::from_secs(20), "{}... took {took:?}", shown(&text));
    }
    let start = time_of_this_thread();
    for found in ["find . -exec ".repeat(80), format!("sudo {}", "find -exec sudo ".repeat(80))] {
        analyse(&format!("{found}rm x"), Path::new("/w"));
    }
    let took = time_of_this_thread() - start;
    assert!(took < Duration::from_secs(20), "took {took:?}");
    assert!(analyse(&many("$(", ")", 100_000), Path::new("/w")).is_opaque());
    assert!(!analyse(&"sh -c 'sh -c \"sh -c \\\"x\\\"\"'; ".repeat(500), Path::new("/w")).is_opaque());
    assert!(!analyse(&("a && ".repeat(900) + "a"), Path::new("/w")).is_opaque(), "a chain is not nested");
}

#[test]
fn a_deny_rule_matches_a_program_deep_inside_a_long_word() {
    let quoted = "'a', ".repeat(100);
    let texts = [
        format!("foo {}rm", "a:".repeat(20)),
        format!("foo {}'rm x'", "a=".repeat(100)),
        "docker run -abcdefghijklmrm x".to_owned(),
        format!("python3 -c \"x = [{quoted}]; system('rm x')\""),
    ];
    for text in texts {
        assert!(is_caught(&text, "rm"), "{text}");
        assert!(!analyse(&text, Path::new("/w")).is_opaque(), "{text}");
    }
}

#[test]
fn a_word_with_too_many_possible_values_states_this_as_the_reason() {
    assert_eq!(
        reason(&format!("foo {}rm", "a=".repeat(300))),
        "a word of it holds more than 256 places where a value may begin"
    );
}

#[test]
fn a_command_that_is_not_valid_utf8_is_opaque() {
    assert!(analyse_bytes(b"ls \xff", Path::new("/w")).is_opaque());
    assert!(!analyse_bytes(b"ls", Path::new("/w")).is_opaque());
}

#[test]
fn nested_shells_are_analysed_up_to_a_maximum_depth() {
    let nested =
        |depth: usize| (0..depth).fold("rm x".to_owned(), |text, _| format!("sh -c '{}'", text.replace('\'', r"'\''")));
    assert!(!analyse(&nested(5), Path::new("/w")).is_opaque());
    assert!(is_caught(&nested(5), "rm"));
    assert!(analyse(&nested(9), Path::new("/w")).is_opaque());
}

proptest! {
    #[test]
    fn random_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let analysis = analyse_bytes(&bytes, Path::new("/w"));
        prop_assert!(!analysis.commands.is_empty() || !analysis.file_accesses.is_empty());
    }

    #[test]
    fn random_pieces_of_shell_are_read_without_a_panic(pieces in proptest::collection::vec(
        prop::sample::select(vec![
            "a", " ", "\n", ";", "&", "|", "(", ")", "<", ">", "$", "`", "'", "\"", "\\", "{", "}", "#", "!", "[", "]", "=", "é",
            "<<E", "\nE\n", "$(", "${", "$((", "))", "$'", "if ", "then ", "fi", "do ", "done", "for x in ", "case ", "esac",
            "[[ ", " ]]", "cd ", "~", "*", "2>", "&>", "x=", "x[", "@P}", "\\\n", "\\x", "sh -c '",
        ]),
        0..40,
    )) {
        analyse(&pieces.concat(), Path::new("/w"));
    }
}

#[test]
fn a_command_that_names_too_many_files_is_opaque() {
    let repeated =
        |count: usize, what: &str| (0..count).map(|at| what.replace('N', &at.to_string())).collect::<String>();
    assert!(!analyse(&format!("rm{}", repeated(1_000, " N")), Path::new("/w")).is_opaque());
    let too_many = [
        format!("rm{}", repeated(1_001, " N")),
        format!("rm{}", repeated(10_000, " N")),
        format!("cat{}", repeated(1_001, " < N")),
        repeated(501, "rm aN bN;"),
        format!("sh -c 'rm{}'", repeated(1_001, " N")),
        format!("cd a; {}", repeated(501, "rm N;")),
    ];
    for text in too_many {
        let analysis = analyse(&text, Path::new("/w"));
        assert!(analysis.file_accesses.len() <= 1_000 && analysis.is_opaque(), "{}", shown(&text));
        let said = |command: &CommandAccess| command.to_string().contains("it names more than 1,000 files");
        assert!(analysis.commands.iter().any(said), "{}", shown(&text));
    }
}
