//! Allow rules that cover nothing: legal, since other programs read them otherwise, and told.

use crate::config::{Config, command_lines::commands_of, policy::origin_of, problem::Problem};
use toolstead_domain::{
    access::{Access, Clarity, CommandAccess},
    permission::{command_pattern::Outline, decision::narrowest_rule, rule::PermissionRule},
};
use toolstead_infrastructure::shell_analysis::catalogue::{Class, LOOKED_THROUGH, program};

/// What stands for a wildcard when a pattern is tried: what makes some command plain whose beginning alone is not.
const FILLERS: &[&[&str]] = &[
    &["x"],
    &[],
    &["x", "x"],
    &["x", "x", "x"],
    &["test"],
    &["x", "test"],
    &["x", "x", "test"],
    &["-l"],
    &["-v"],
    &["-v", "x"],
    &["-b", "x"],
    &["-d"],
    &["-f", "x"],
    &["-n", "x"],
    &["-p"],
    &["-q", "x"],
    &["-r"],
    &["-t", "x"],
    &["-x"],
    &["--", "x"],
    &["--get", "x"],
    &["--list"],
    &["/dev/null"],
    &["/dev/null", "x"],
    &["cover"],
    &["LANG=C"],
    &["opt-level=3", "x"],
    &["V=1"],
    &["0"],
    &["1", "x"],
    &["x=y"],
];
/// The same, for a program that only says something about itself.
const QUESTIONS: &[&[&str]] = &[&["--version"], &["--help"], &["-h"], &["-v"], &["-V"], &["-?"]];

/// Allow rules on commands whose wildcards cover no command whatever, because what they say is never plain. Told where
/// somebody looks at rules, and not at each start: other programs may read them otherwise.
pub fn of_commands(config: &Config) -> Vec<Problem> {
    let told = |rule: &PermissionRule| {
        let idle = Idle::of(&rule.outline()?)?;
        Some(Problem::new(origin_of(&rule.origin), idle.told(rule)))
    };
    config.rules.iter().filter_map(|rule| told(rule)).collect()
}

/// Allow rules on paths that lie outside of every root. Told as above: a person's rules may be about other projects.
pub fn outside_of_roots(config: &Config) -> Vec<Problem> {
    let outside = config.rules.iter().filter(|rule| config.roots.start().is_some() && rule.is_outside(&config.roots));
    let told = |rule: &PermissionRule| {
        let message = format!(
            "the allow rule `{}` covers nothing here, because rules hold inside of the roots alone: start with `--root \
             DIR` or add the folder to `[workspace] roots`",
            rule.text
        );
        Problem::new(origin_of(&rule.origin), message)
    };
    outside.map(|rule| told(rule)).collect()
}

/// Each command that begins with these words.
fn beginning(head: &[String]) -> Outline {
    Outline { head: head.to_vec(), tail: Vec::new(), is_open: true }
}

/// Why a pattern covers nothing.
struct Idle {
    /// What stands in the way of a command that it says.
    command: CommandAccess,
    /// The only commands that it covers are questions such as this one.
    question: Option<CommandAccess>,
}

impl Idle {
    /// `None` where the pattern may cover something.
    fn of(outline: &Outline) -> Option<Self> {
        if starts_others(&outline.head[0]) {
            return Some(Self { command: tried(outline, FILLERS[0]).err()?, question: None });
        }
        let covers = |filler: &&[&str]| tried(outline, filler).ok();
        // Of a test the end is part of what makes it one.
        if outline.head[0].starts_with('[') || FILLERS.iter().find_map(covers).is_some() {
            return None;
        }
        // In front of the tail may stand a subcommand that no filler is, where the program needs one.
        if !outline.tail.is_empty() {
            let beginning = beginning(&outline.head);
            if tried(&beginning, FILLERS[0]).is_err() && Self::of(&beginning).is_none() {
                return None;
            }
        }
        let command = tried(outline, FILLERS[0]).err()?;
        Some(Self { command, question: QUESTIONS.iter().find_map(covers) })
    }

    fn told(self, rule: &PermissionRule) -> String {
        let covered = self.question.map(|question| format!(" but questions such as `{}`", question.text));
        let reason = self.command.clarity.reason().unwrap_or_default();
        let example = narrowest_rule(&Access::RunCommand(self.command.clone()), "bash");
        let example = example.map(|rule| format!(", such as `{rule}`"));
        format!(
            "the allow rule `{}` covers no command{}: {reason}, and a wildcard never covers that; write each command \
             whole, without `*`{}",
            rule.text,
            covered.unwrap_or_default(),
            example.unwrap_or_default(),
        )
    }
}

/// Whether this program starts another one, so that no command of it is plain.
fn starts_others(name: &str) -> bool {
    match program(name).class() {
        Class::Shell => true,
        Class::Wrapper(_) => !LOOKED_THROUGH.contains(&name),
        Class::Interpreter(_) | Class::Reader(_) | Class::Settled | Class::Other => false,
    }
}

/// The command that the pattern says with this in place of each wildcard: whether the pattern covers it. It does where
/// the command is plain, as the shell tools find it.
fn tried(outline: &Outline, filler: &[&str]) -> Result<CommandAccess, CommandAccess> {
    let filled = |is_there: bool| filler.iter().copied().filter(move |_| is_there);
    let head = outline.head.iter().map(String::as_str);
    let words: Vec<&str> = head
        .chain(filled(true))
        .chain(outline.tail.iter().map(String::as_str))
        .chain(filled(!outline.tail.is_empty() && outline.is_open))
        .collect();
    let (program, arguments) = words.split_first().map_or(("", &[][..]), |(program, rest)| (*program, rest));
    // In quotes a program would be another one.
    let line = CommandAccess::program(arguments.iter().copied()).text;
    let line = format!("{program} {line}");
    let covered = |command: &CommandAccess| {
        command.clarity == Clarity::Plain && command.words.iter().map(|word| &**word).eq(words.iter().copied())
    };
    let mut commands = commands_of(&line);
    match commands.iter().position(covered) {
        Some(at) => Ok(commands.swap_remove(at)),
        None => Err(commands
            .into_iter()
            .find(|one| one.clarity != Clarity::Plain)
            .unwrap_or_else(|| CommandAccess::opaque(line, "its first word is one of the shell's own"))),
    }
}

#[cfg(test)]
mod tests;
