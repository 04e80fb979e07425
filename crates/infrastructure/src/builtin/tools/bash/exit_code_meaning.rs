//! Exit codes that are not failures.

/// Programs whose exit code 1 is a result, with its meaning.
const ANSWERS: &[(&[&str], &str)] = &[
    (&["grep"], "nothing was found"),
    (&["egrep"], "nothing was found"),
    (&["fgrep"], "nothing was found"),
    (&["rg"], "nothing was found"),
    (&["git", "grep"], "nothing was found"),
    (&["find"], "some entries could not be read"),
    (&["diff"], "there are differences"),
    (&["cmp"], "there are differences"),
    (&["git", "diff"], "there are differences"),
    (&["test"], "the condition is false"),
    (&["["], "the condition is false"),
    (&["[["], "the condition is false"),
];

/// Returns the meaning of the exit code 1 if it is a result of the last command of `line` and not a failure; `None` for
/// any other exit code or command, and if the code may be that of another command before `&&`.
pub(super) fn meaning(line: &str, code: i32) -> Option<&'static str> {
    if code != 1 {
        return None;
    }
    let words: Vec<&str> = deciding_command(line)?.split_whitespace().collect();
    ANSWERS.iter().find(|(program, _)| words.starts_with(program)).map(|(_, meaning)| *meaning)
}

/// Commands that hardly ever fail before `&&`.
const STEPS: &[&str] = &["cd", "echo", "export", "pwd", "true"];

/// Returns the last command of a line: the part after the last separator of the shell that is not quoted. Returns `None`
/// if a command before `&&`, other than [`STEPS`], may have ended the line instead.
fn deciding_command(line: &str) -> Option<&str> {
    let (mut quote, mut start, mut is_escaped, mut may_have_ended) = (None, 0, false, false);
    let line = line.trim_end_matches([';', '\n', ' ', '\t']);
    for (at, character) in line.char_indices() {
        match (quote, character) {
            _ if is_escaped => is_escaped = false,
            (None | Some('"'), '\\') => is_escaped = true,
            (None, '\'' | '"') => quote = Some(character),
            (Some(open), _) if open == character => quote = None,
            // The `&` of a redirection such as `2>&1` is not a separator.
            (None, '&') if line[..at].ends_with('>') => {}
            // The end of a group says nothing of the command before it.
            (None, '(' | '{') if may_have_ended => return None,
            (None, ';' | '|' | '&' | '\n' | '(' | '{') => {
                let rest = &line[at..];
                if rest.starts_with("&&") {
                    may_have_ended |=
                        !line[start..at].split_whitespace().next().is_some_and(|word| STEPS.contains(&word));
                } else if rest.starts_with("||")
                    || matches!(character, ';' | '\n') && !line[start..at].trim().is_empty()
                {
                    // A line break right after `&&` continues it.
                    may_have_ended = false;
                }
                start = at + 1;
            }
            _ => {}
        }
    }
    (!may_have_ended).then(|| &line[start..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_meaning_of_an_exit_code_depends_on_the_last_command() {
        for (line, expected) in [
            ("grep x file", Some("nothing was found")),
            ("cd a && cat b | grep 'x|y; z' 2>&1", Some("nothing was found")),
            ("git diff --exit-code", Some("there are differences")),
            ("[ -f a ]", Some("the condition is false")),
            ("grep x file | wc -l", None),
            ("grep x file; false", None),
            ("cargo test && git diff", None),
            ("cargo test &&\n  git diff", None),
            ("cargo test && (cd b; grep x file)", None),
            ("echo --- && grep x file", Some("nothing was found")),
            ("cargo test && git diff; grep x file", Some("nothing was found")),
            ("cargo test && true || grep x file", Some("nothing was found")),
            ("git status", None),
            ("grepper", None),
        ] {
            assert_eq!(meaning(line, 1), expected, "{line}");
        }
        assert_eq!(meaning("grep x", 2), None);
    }
}
