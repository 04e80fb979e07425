//! Parses a line that the user types in a chat: text for the model, or a command.

use toolstead_domain::tool_input_schema::nearest_name;

/// Parsed line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ChatLine {
    /// Text for the model.
    Prompt(String),
    /// An empty line.
    Empty,
    /// Show the commands.
    Help,
    /// Start a new conversation.
    New,
    /// Undo this number of turns.
    Undo(usize),
    /// Compact the conversation.
    Compact,
    /// Switch to another model, or show the models.
    Model(Option<String>),
    /// Show the offered tools.
    Tools,
    /// Show the usage.
    Usage,
    /// Show the model, the workspace, the instruction files and servers that are not used.
    Status,
    /// Leave the chat.
    Exit,
    /// Any other command, with the whole line.
    Other(String),
    /// An invalid command, with the reason.
    Invalid(String),
}

/// Commands, with their arguments and effects.
pub(super) const COMMANDS: [(&str, &str, &str); 9] = [
    ("/help", "", "shows this"),
    ("/clear", "", "starts a new conversation; the old one stays stored"),
    ("/undo", "[N]", "undoes the last N turns (1), including their file changes"),
    ("/compact", "", "summarizes the conversation so far"),
    ("/model", "[NAME]", "switches the model, or lists the models"),
    ("/tools", "", "lists the offered tools"),
    ("/usage", "", "shows the usage of this conversation since it was opened"),
    ("/status", "", "shows the model, the workspace, the instruction files and unused servers"),
    ("/exit", "", "leaves, as Ctrl-D does"),
];

impl ChatLine {
    /// Parses a line. A text for the model that starts with a slash needs a space before it.
    pub(super) fn read(line: &str) -> Self {
        if line.trim().is_empty() {
            return Self::Empty;
        }
        let Some(command) = line.strip_prefix('/') else { return Self::Prompt(line.trim().to_owned()) };
        let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        let rest = rest.trim();
        let alone = |wish: Self| match rest {
            "" => wish,
            _ => Self::Invalid(format!("`/{name}` takes no arguments")),
        };
        match name {
            "help" | "?" => alone(Self::Help),
            "clear" | "new" => alone(Self::New),
            "compact" => alone(Self::Compact),
            "tools" => alone(Self::Tools),
            "usage" => alone(Self::Usage),
            "status" => alone(Self::Status),
            "exit" | "quit" => alone(Self::Exit),
            "model" if rest.is_empty() => Self::Model(None),
            "model" => Self::Model(Some(rest.to_owned())),
            "undo" if rest.is_empty() => Self::Undo(1),
            "undo" => match rest.parse() {
                Ok(turns) if turns > 0 => Self::Undo(turns),
                _ => Self::Invalid("`/undo` takes the number of turns, such as `/undo 2`".into()),
            },
            _ => Self::Other(line.trim_end().to_owned()),
        }
    }
}

/// Returns the message for an unknown command. `others` are the names of commands defined in files.
pub(super) fn unknown<'a>(line: &str, others: impl Iterator<Item = &'a str>) -> String {
    let name = line.trim_start_matches('/').split(char::is_whitespace).next().unwrap_or_default();
    let names = COMMANDS.iter().map(|(name, ..)| &name[1..]).chain(others);
    let advice = match nearest_name(name, names) {
        Some(near) => format!("did you mean `/{near}`?"),
        None => "`/help` shows them.".into(),
    };
    format!("unknown command `/{name}`; {advice} A text that begins with a slash needs a space before it.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: ChatLine) {
        assert_eq!(ChatLine::read(line), expected);
    }

    #[test]
    fn chat_lines_are_read_as_prompts_or_commands() {
        check("  ", ChatLine::Empty);
        check("Mend the test.\nIt fails. ", ChatLine::Prompt("Mend the test.\nIt fails.".into()));
        check(" /etc/hosts is wrong", ChatLine::Prompt("/etc/hosts is wrong".into()));
        check("/help", ChatLine::Help);
        check("/clear ", ChatLine::New);
        check("/new", ChatLine::New);
        check("/undo", ChatLine::Undo(1));
        check("/undo 3", ChatLine::Undo(3));
        check("/model", ChatLine::Model(None));
        check("/model fast one", ChatLine::Model(Some("fast one".into())));
        check("/quit", ChatLine::Exit);
    }

    #[test]
    fn invalid_chat_commands_are_reported_with_the_reason() {
        for (line, outcome) in [
            ("/undo all", "takes the number of turns"),
            ("/undo 0", "takes the number of turns"),
            ("/help me", "`/help` takes no arguments"),
        ] {
            let ChatLine::Invalid(why) = ChatLine::read(line) else { panic!("{line}") };
            assert!(why.contains(outcome), "{why}");
        }
    }

    #[test]
    fn unknown_chat_commands_are_passed_on_unchanged_and_reported_with_a_suggestion() {
        for (line, outcome) in [
            ("/modle x", "did you mean `/model`?"),
            ("/etc/hosts is wrong", "needs a space before it"),
            ("/qqqqqq", "`/help` shows them. A text that begins"),
            ("/reviw x", "did you mean `/review`?"),
        ] {
            check(line, ChatLine::Other(line.into()));
            let why = unknown(line, ["review"].into_iter());
            assert!(why.contains(outcome), "{why}");
        }
    }

    #[test]
    fn every_listed_chat_command_is_recognized() {
        for (name, ..) in COMMANDS {
            assert!(
                !matches!(
                    ChatLine::read(name),
                    ChatLine::Invalid(_) | ChatLine::Other(_) | ChatLine::Prompt(_) | ChatLine::Empty
                ),
                "{name}"
            );
        }
    }
}
