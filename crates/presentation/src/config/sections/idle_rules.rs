//! Reports allow rules that cover nothing. They are valid, since other systems interpret them differently.

use crate::config::{
    Config,
    sections::{command_lines::commands_of, policy::origin_of},
    tree::problem::Problem,
};
use toolstead_domain::{
    Access, CommandAccess, CommandPatternOutline, ParseConfidence, PermissionRule, permission::decision::narrowest_rule,
};
use toolstead_infrastructure::shell_analysis::catalogue::{LOOKED_THROUGH, ProgramClass, program};

/// Words that replace a wildcard when a pattern is tested. Some commands are only parsed with certainty with such
/// arguments.
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
/// Words that replace a wildcard for programs that can only be queried about themselves.
const QUESTIONS: &[&[&str]] = &[&["--version"], &["--help"], &["-h"], &["-v"], &["-V"], &["-?"]];

/// Returns allow rules on commands whose wildcards cover no command at all, because none of the commands is parsed with
/// certainty. They are reported where the user inspects rules and not at each start, because other systems may
/// interpret them differently.
pub fn of_commands(config: &Config) -> Vec<Problem> {
    let problem = |rule: &PermissionRule| {
        let idle = IneffectivePattern::of(&rule.outline()?)?;
        Some(Problem::new(origin_of(&rule.origin), idle.describe(rule)))
    };
    config.permissions.rules.iter().filter_map(|rule| problem(rule)).collect()
}

/// Returns allow rules on paths outside of every root. They are reported only where the user inspects rules, because
/// the user's rules may concern other projects.
pub fn outside_of_roots(config: &Config) -> Vec<Problem> {
    let outside =
        config.permissions.rules.iter().filter(|rule| config.roots.start().is_some() && rule.is_outside(&config.roots));
    let problem = |rule: &PermissionRule| {
        let message = format!(
            "the allow rule `{}` covers nothing here, because rules apply only inside the roots: start with `--root \
             DIR` or add the folder to `[workspace] roots`",
            rule.text
        );
        Problem::new(origin_of(&rule.origin), message)
    };
    outside.map(|rule| problem(rule)).collect()
}

/// Returns the pattern for every command that starts with these words.
fn beginning(head: &[String]) -> CommandPatternOutline {
    CommandPatternOutline { head: head.to_vec(), tail: Vec::new(), is_open: true }
}

/// Explanation why a pattern covers nothing.
struct IneffectivePattern {
    /// A command that the pattern names, with the reason why it is not covered.
    command: CommandAccess,
    /// Example of the only commands that the pattern covers: a query about the program itself, such as `--version`.
    question: Option<CommandAccess>,
}

impl IneffectivePattern {
    /// Returns the reason why the pattern covers nothing; `None` if it may cover a command.
    fn of(outline: &CommandPatternOutline) -> Option<Self> {
        if starts_others(&outline.head[0]) {
            return Some(Self { command: tried(outline, FILLERS[0]).err()?, question: None });
        }
        let covers = |filler: &&[&str]| tried(outline, filler).ok();
        // The closing bracket of a test is part of its syntax.
        if outline.head[0].starts_with('[') || FILLERS.iter().find_map(covers).is_some() {
            return None;
        }
        // The tail may follow a subcommand that is none of the fillers, if the program requires one.
        if !outline.tail.is_empty() {
            let beginning = beginning(&outline.head);
            if tried(&beginning, FILLERS[0]).is_err() && Self::of(&beginning).is_none() {
                return None;
            }
        }
        let command = tried(outline, FILLERS[0]).err()?;
        Some(Self { command, question: QUESTIONS.iter().find_map(covers) })
    }

    fn describe(self, rule: &PermissionRule) -> String {
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

/// Returns `true` if this program starts another program, so that none of its commands is parsed with certainty.
fn starts_others(name: &str) -> bool {
    match program(name).class() {
        ProgramClass::Shell => true,
        ProgramClass::Wrapper(_) => !LOOKED_THROUGH.contains(&name),
        ProgramClass::Interpreter(_) | ProgramClass::Reader(_) | ProgramClass::Settled | ProgramClass::Other => false,
    }
}

/// Parses the command that results if each wildcard is replaced by `filler`. Returns it as `Ok` if the pattern covers
/// it, which requires that the shell tools parse the command with certainty. Otherwise returns as `Err` a command of
/// the line that they do not parse with certainty.
fn tried(outline: &CommandPatternOutline, filler: &[&str]) -> Result<CommandAccess, CommandAccess> {
    let filled = |is_there: bool| filler.iter().copied().filter(move |_| is_there);
    let head = outline.head.iter().map(String::as_str);
    let words: Vec<&str> = head
        .chain(filled(true))
        .chain(outline.tail.iter().map(String::as_str))
        .chain(filled(!outline.tail.is_empty() && outline.is_open))
        .collect();
    let (program, arguments) = words.split_first().map_or(("", &[][..]), |(program, rest)| (*program, rest));
    // The program is not quoted, because quotes would name a different program.
    let line = CommandAccess::program(arguments.iter().copied()).text;
    let line = format!("{program} {line}");
    let covered = |command: &CommandAccess| {
        command.clarity == ParseConfidence::Plain && command.words.iter().map(|word| &**word).eq(words.iter().copied())
    };
    let mut commands = commands_of(&line);
    match commands.iter().position(covered) {
        Some(at) => Ok(commands.swap_remove(at)),
        None => Err(commands
            .into_iter()
            .find(|one| one.clarity != ParseConfidence::Plain)
            .unwrap_or_else(|| CommandAccess::opaque(line, "its first word is one of the shell's own"))),
    }
}

#[cfg(test)]
mod tests;
