//! Extent to which a rule that a user approves may go beyond the command.

use crate::shell_analysis::catalogue::{ProgramClass, known_as, named, offered_rules::OFFERED_RULES};
use std::sync::Arc;
use toolstead_domain::RuleWideningLimits;

/// Returns how far a rule may go beyond a plain command with these words. Returns `None` for shells, interpreters, and
/// programs that start others or run code of the project, unless an offered rule covers the command.
pub(crate) fn widening(words: &[Arc<str>]) -> Option<RuleWideningLimits> {
    let offered = OFFERED_RULES.iter().filter_map(|beginning| matched(beginning, words)).max();
    let program = named(known_as(words.first()?));
    let runs_anything =
        matches!(program.class(), ProgramClass::Shell | ProgramClass::Wrapper(_) | ProgramClass::Interpreter(_))
            || program.runs_texts()
            || program.runs_packages();
    match (runs_anything, offered) {
        (true, None) => None,
        // `python3 -m pytest *`, and nothing wider.
        (true, Some(count)) => Some(RuleWideningLimits { least: count, offered }),
        (false, _) => Some(RuleWideningLimits { least: 1, offered }),
    }
}

/// Returns the number of words of `beginning` if the command starts with them. A word `@` stands for any script name.
fn matched(beginning: &str, words: &[Arc<str>]) -> Option<u8> {
    let beginning: Vec<&str> = beginning.split(' ').collect();
    let fits = |(expected, word): (&&str, &Arc<str>)| match *expected {
        "@" => is_name(word),
        expected => expected == &**word,
    };
    let is_long_enough = words.len() >= beginning.len();
    (is_long_enough && beginning.iter().zip(words).all(fits)).then(|| u8::try_from(beginning.len()).ok()).flatten()
}

/// Returns `true` if the word is a script name: not an option, and without characters that are special in patterns or
/// in the shell.
fn is_name(word: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte);
    !word.is_empty() && !word.starts_with('-') && word.bytes().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: Option<(u8, Option<u8>)>) {
        let words: Vec<Arc<str>> = line.split(' ').map(Into::into).collect();
        let widening = widening(&words).map(|widening| (widening.least, widening.offered));
        assert_eq!(widening, expected, "{line}");
    }

    #[test]
    fn a_rule_is_offered_for_a_program_and_its_subcommand() {
        check("python3 -m pytest -q", Some((3, Some(3))));
        check("cargo test --workspace", Some((1, Some(2))));
        check("cargo nextest run", Some((1, Some(3))));
        check("npm run build", Some((1, Some(3))));
        check("npm run test:unit -- -w", Some((1, Some(3))));
        check("git log -1", Some((1, Some(2))));
        check("ls -la", Some((1, Some(1))));
    }

    #[test]
    fn no_wider_rule_is_offered_for_commands_outside_the_offered_rules() {
        for line in [
            "git push",
            "git reset --hard",
            "npm ci",
            "npm run",
            "npm run *",
            "npm run -s",
            "cat x",
            "wc -l x",
            "du -sh x",
            "tsc",
            "rm x",
        ] {
            check(line, Some((1, None)));
        }
        for line in [
            "bash x.sh",
            "sh -c x",
            "python3 x.py",
            "python3 -c x",
            "python3 -m http.server",
            "node x.js",
            "node -e x",
            "perl -e x",
            "env ls",
            "xargs ls",
            "ssh host",
            "docker ps",
            "make test",
            "npx tsc",
            "sudo ls",
            "sed p",
            "awk p",
            "uv run x",
            "timeout 5 ls",
            "ruby x.rb",
        ] {
            check(line, None);
        }
    }

    #[test]
    fn offered_rules_name_no_shell_wrapper_or_interpreter_without_a_module() {
        for beginning in OFFERED_RULES {
            let name = beginning.split(' ').next().unwrap();
            let class = named(known_as(name)).class();
            let is_module = beginning.contains(" -m ");
            assert!(
                is_module
                    || !matches!(class, ProgramClass::Shell | ProgramClass::Wrapper(_) | ProgramClass::Interpreter(_)),
                "{beginning}"
            );
        }
    }
}
