//! Parses a line that the user types in a chat: text for the model, or a command.

use toolstead_domain::tool_input_schema::nearest_name;

/// Parsed line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wish {
    /// Text for the model.
    Say(String),
    /// An empty line.
    Nothing,
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
    /// Leave the chat.
    Exit,
    /// Any other command, with the whole line.
    Other(String),
    /// An invalid command, with the reason.
    Unclear(String),
}

/// Commands, with their arguments and effects.
pub(super) const COMMANDS: [(&str, &str, &str); 8] = [
    ("/help", "", "shows this"),
    ("/clear", "", "begins a new conversation; the old one is kept"),
    ("/undo", "[N]", "takes the last N turns back (1), with what their tools did to files"),
    ("/compact", "", "has the model sum up what came before"),
    ("/model", "[NAME]", "goes on with another model, or shows which there are"),
    ("/tools", "", "shows the tools on offer"),
    ("/usage", "", "shows what this conversation has used up since it was opened here"),
    ("/exit", "", "leaves, as Ctrl-D does"),
];

impl Wish {
    /// Parses a line. A text for the model that starts with a slash needs a blank before it.
    pub(super) fn read(line: &str) -> Self {
        if line.trim().is_empty() {
            return Self::Nothing;
        }
        let Some(command) = line.strip_prefix('/') else { return Self::Say(line.trim().to_owned()) };
        let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        let rest = rest.trim();
        let alone = |wish: Self| match rest {
            "" => wish,
            _ => Self::Unclear(format!("`/{name}` takes nothing behind it")),
        };
        match name {
            "help" | "?" => alone(Self::Help),
            "clear" | "new" => alone(Self::New),
            "compact" => alone(Self::Compact),
            "tools" => alone(Self::Tools),
            "usage" => alone(Self::Usage),
            "exit" | "quit" => alone(Self::Exit),
            "model" if rest.is_empty() => Self::Model(None),
            "model" => Self::Model(Some(rest.to_owned())),
            "undo" if rest.is_empty() => Self::Undo(1),
            "undo" => match rest.parse() {
                Ok(turns) if turns > 0 => Self::Undo(turns),
                _ => Self::Unclear("`/undo` takes the number of turns, such as `/undo 2`".into()),
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
    format!("there is no command `/{name}`; {advice} A text that begins with a slash needs a blank before it.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: Wish) {
        assert_eq!(Wish::read(line), expected);
    }

    #[test]
    fn a_line_is_for_the_model_or_a_command() {
        check("  ", Wish::Nothing);
        check("Mend the test.\nIt fails. ", Wish::Say("Mend the test.\nIt fails.".into()));
        check(" /etc/hosts is wrong", Wish::Say("/etc/hosts is wrong".into()));
        check("/help", Wish::Help);
        check("/clear ", Wish::New);
        check("/new", Wish::New);
        check("/undo", Wish::Undo(1));
        check("/undo 3", Wish::Undo(3));
        check("/model", Wish::Model(None));
        check("/model fast one", Wish::Model(Some("fast one".into())));
        check("/quit", Wish::Exit);
    }

    #[test]
    fn what_cannot_be_obeyed_says_why() {
        for (line, told) in [
            ("/undo all", "takes the number of turns"),
            ("/undo 0", "takes the number of turns"),
            ("/help me", "`/help` takes nothing behind it"),
        ] {
            let Wish::Unclear(why) = Wish::read(line) else { panic!("{line}") };
            assert!(why.contains(told), "{why}");
        }
    }

    #[test]
    fn a_command_of_somebody_else_goes_on_whole_and_one_that_nobody_knows_is_told() {
        for (line, told) in [
            ("/modle x", "did you mean `/model`?"),
            ("/etc/hosts is wrong", "needs a blank before it"),
            ("/qqqqqq", "`/help` shows them. A text that begins"),
            ("/reviw x", "did you mean `/review`?"),
        ] {
            check(line, Wish::Other(line.into()));
            let why = unknown(line, ["review"].into_iter());
            assert!(why.contains(told), "{why}");
        }
    }

    #[test]
    fn every_command_that_is_shown_is_obeyed() {
        for (name, ..) in COMMANDS {
            assert!(
                !matches!(Wish::read(name), Wish::Unclear(_) | Wish::Other(_) | Wish::Say(_) | Wish::Nothing),
                "{name}"
            );
        }
    }
}
