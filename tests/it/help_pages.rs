//! Snapshots of every help page of both programs, so that a change of their wording is reviewed.
//! `INSTA_UPDATE=always` writes them.

use clap::{Command, CommandFactory};
use toolstead_presentation::cli::{Cli, serve::ServeCommand};

/// Width of the pages, in columns.
const WIDTH: usize = 100;

/// Renders the page of a command and of each of its subcommands. The name of a snapshot is the whole command.
fn render(command: &mut Command, parents: &str, pages: &mut Vec<(String, String)>) {
    let name = format!("{parents}{}", command.get_name());
    pages.push((name.clone(), command.render_long_help().to_string()));
    for subcommand in command.get_subcommands_mut().filter(|command| command.get_name() != "help") {
        render(subcommand, &format!("{name} "), pages);
    }
}

#[test]
fn help_pages_equal_their_snapshots() {
    let mut pages = Vec::new();
    for command in [Cli::command(), ServeCommand::command()] {
        let mut command = command.term_width(WIDTH).version("VERSION");
        command.build();
        render(&mut command, "", &mut pages);
    }
    assert!(pages.len() > 30, "{} pages", pages.len());
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.set_snapshot_path("snapshots/help");
    settings.bind(|| {
        for (name, page) in pages {
            let lines: Vec<&str> = page.lines().map(str::trim_end).collect();
            insta::assert_snapshot!(name.replace(' ', "-"), lines.join("\n"));
        }
    });
}
