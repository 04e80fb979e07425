//! The texts that `--help` prints.

use clap::{Arg, Command, CommandFactory};
use toolstead_presentation::cli::{Cli, serve::ServeCommand};

/// One text of a command or of an argument.
pub(super) struct HelpText {
    /// The program, and its subcommand if there is one.
    pub(super) place: String,
    /// The whole command, and the argument if the text describes one.
    pub(super) location: String,
    pub(super) text: String,
}

/// All texts of both programs.
pub(super) fn texts() -> Vec<HelpText> {
    let mut texts = Vec::new();
    for command in [Cli::command(), ServeCommand::command()] {
        collect(&command, &[], &mut texts);
    }
    texts
}

fn collect(command: &Command, parents: &[&str], texts: &mut Vec<HelpText>) {
    let path = [parents, &[command.get_name()]].concat();
    let place = path[..path.len().min(2)].join(" ");
    let mut add = |argument: &str, text: Option<String>| {
        let location = format!("{}{argument} --help", path.join(" "));
        texts.extend(text.map(|text| HelpText { place: place.clone(), location, text }));
    };
    let styled = |text: Option<&clap::builder::StyledStr>| text.map(ToString::to_string);
    add("", styled(command.get_long_about().or(command.get_about())));
    add("", styled(command.get_before_help()));
    add("", styled(command.get_after_help()));
    for argument in command.get_arguments() {
        let name = format!(" {}", shown(argument));
        add(&name, styled(argument.get_long_help().or(argument.get_help())));
        for value in argument.get_possible_values() {
            add(&format!("{name} {}", value.get_name()), styled(value.get_help()));
        }
    }
    for subcommand in command.get_subcommands() {
        collect(subcommand, &path, texts);
    }
}

fn shown(argument: &Arg) -> String {
    argument.get_long().map_or_else(|| argument.get_id().to_string(), |long| format!("--{long}"))
}

#[test]
fn help_texts_of_nested_commands_and_arguments_are_read() {
    let texts = texts();
    for (place, location) in [
        ("toolstead", "toolstead --help"),
        ("toolstead", "toolstead --config --help"),
        ("toolstead permissions", "toolstead permissions explain --help"),
        ("toolstead-server", "toolstead-server --listen --help"),
    ] {
        let found = texts.iter().any(|text| text.place == place && text.location == location && !text.text.is_empty());
        assert!(found, "{location}");
    }
}
