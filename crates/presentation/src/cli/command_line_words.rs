//! What would allow a call, in the words of the command line.

use crate::{app::App, composition_root::AppBuilder, config::Config};
use std::sync::Arc;
use toolstead_domain::permission::{
    decision::in_shell,
    remedy::{PlainWords, Remedy, RemedyWords},
};

/// Flags and commands of our own binaries.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CommandLineWords;

/// Begins to build the application of one of our binaries.
pub(super) fn builder(config: Config) -> AppBuilder {
    App::builder(config).remedy_words(Arc::new(CommandLineWords))
}

impl RemedyWords for CommandLineWords {
    fn say(&self, remedy: &Remedy) -> Option<String> {
        Some(match remedy {
            Remedy::Allow(rules) => {
                let rules: Vec<String> = rules.iter().map(|rule| in_shell(rule)).collect();
                let flags: Vec<String> = rules.iter().map(|rule| format!("--allow {rule}")).collect();
                let (flags, rules) = (flags.join(" "), rules.join(" "));
                format!("To allow it, run with `{flags}`, or for good: `toolstead permissions allow {rules}`.")
            }
            Remedy::Choose(tool) => format!("To offer it, add `{tool}` to `--tools`."),
            Remedy::OpenFolder => "To work there, start with `--root DIR` or add the folder to `[workspace] roots` in \
                                   the configuration."
                .into(),
            other => return PlainWords.say(other),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolstead_domain::permission::rule::RuleOrigin;

    #[track_caller]
    fn check(remedy: Remedy, expected: &str) {
        assert_eq!(CommandLineWords.say(&remedy).as_deref(), Some(expected));
    }

    #[test]
    fn a_remedy_is_a_flag_or_a_command_that_can_be_copied() {
        check(
            Remedy::Allow(vec!["Write(//w/a)".into(), "Bash(it's)".into()]),
            r"To allow it, run with `--allow 'Write(//w/a)' --allow 'Bash(it'\''s)'`, or for good: `toolstead permissions allow 'Write(//w/a)' 'Bash(it'\''s)'`.",
        );
        check(Remedy::Choose("grep".into()), "To offer it, add `grep` to `--tools`.");
        check(
            Remedy::OpenFolder,
            "To work there, start with `--root DIR` or add the folder to `[workspace] roots` in the configuration.",
        );
        let rule = Remedy::ChangeRule { rule: "Read(.env)".into(), origin: RuleOrigin::CommandLine };
        check(rule, "To allow it, change `Read(.env)` in the command line.");
    }
}
