//! Commands in a prompt that other systems run before a model reads the prompt.
//!
//! Toolstead replaces them by a request to run them. Reading a file never runs anything: every command takes the path
//! of a tool call.

/// Returns the text with each ``!`command` `` replaced by a request to run the command.
pub(super) fn replace_commands(body: &str) -> String {
    let (mut text, mut rest) = (String::with_capacity(body.len()), body);
    while let Some((before, behind)) = rest.split_once("!`") {
        let Some((command, after)) = behind.split_once('`').filter(|(command, _)| !command.contains('\n')) else {
            text.push_str(before);
            text.push_str("!`");
            rest = behind;
            continue;
        };
        text.push_str(before);
        text.push_str(&run_request(command));
        rest = after;
    }
    text + rest
}

/// Returns the request to run a command.
pub(super) fn run_request(command: &str) -> String {
    format!("(not run yet: run `{}` with a tool)", command.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn embedded_commands_become_instructions_and_other_text_is_unchanged() {
        for (body, expected) in [
            (
                "State: !`git status`, !`git diff $1`.",
                "State: (not run yet: run `git status` with a tool), (not run yet: run `git diff $1` with a tool).",
            ),
            ("Use `x`! And `y`.", "Use `x`! And `y`."),
            ("!`open\nend`", "!`open\nend`"),
            ("!`", "!`"),
        ] {
            assert_eq!(replace_commands(body), expected);
        }
    }
}
