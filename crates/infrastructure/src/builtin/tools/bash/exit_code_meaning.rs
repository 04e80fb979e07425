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
/// any other exit code or command.
pub(super) fn meaning(line: &str, code: i32) -> Option<&'static str> {
    if code != 1 {
        return None;
    }
    let words: Vec<&str> = last_command(line).split_whitespace().collect();
    ANSWERS.iter().find(|(program, _)| words.starts_with(program)).map(|(_, meaning)| *meaning)
}

/// Returns the last command of a line: the part after the last separator of the shell that is not quoted.
fn last_command(line: &str) -> &str {
    let (mut quote, mut start, mut is_escaped) = (None, 0, false);
    let line = line.trim_end_matches([';', '\n', ' ', '\t']);
    for (at, character) in line.char_indices() {
        match (quote, character) {
            _ if is_escaped => is_escaped = false,
            (None | Some('"'), '\\') => is_escaped = true,
            (None, '\'' | '"') => quote = Some(character),
            (Some(open), _) if open == character => quote = None,
            // The `&` of a redirection such as `2>&1` is not a separator.
            (None, '&') if line[..at].ends_with('>') => {}
            (None, ';' | '|' | '&' | '\n' | '(' | '{') => start = at + 1,
            _ => {}
        }
    }
    &line[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_of_the_last_command_counts() {
        for (line, expected) in [
            ("grep x file", Some("nothing was found")),
            ("cd a && cat b | grep 'x|y; z' 2>&1", Some("nothing was found")),
            ("git diff --exit-code", Some("there are differences")),
            ("[ -f a ]", Some("the condition is false")),
            ("grep x file | wc -l", None),
            ("grep x file; false", None),
            ("git status", None),
            ("grepper", None),
        ] {
            assert_eq!(meaning(line, 1), expected, "{line}");
        }
        assert_eq!(meaning("grep x", 2), None);
    }
}
