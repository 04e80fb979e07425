//! Rules that remember an approval: the offered rule, and a rule that the user writes instead.

use crate::{
    access::{Access, CommandAccess, ParseConfidence},
    permission::{
        command_pattern,
        decision::narrowest_rule,
        path_pattern::PatternContext,
        rule::{Effect, PermissionRule, RuleOrigin},
    },
    tool::Tool,
    workspace_roots::WorkspaceRoots,
};

/// Returns the rule that is offered for this access of the tool with this name in rules: the narrowest rule, or for a
/// command whose arguments may change, a rule on the command with any arguments. Returns `None` if no rule can cover
/// it.
pub fn offered_rule(access: &Access, tool: &str) -> Option<String> {
    widened(access).or_else(|| narrowest_rule(access, tool))
}

fn widened(access: &Access) -> Option<String> {
    let Access::RunCommand(command) = access else { return None };
    let head = command.words.get(..command.widening?.offered?.into())?;
    let text = format!("Bash({} *)", command_pattern::quoted(head));
    let is_proven =
        parsed(&text).is_ok_and(|rule| rule.meets(std::slice::from_ref(access), &WorkspaceRoots::default()));
    is_proven.then_some(text)
}

fn parsed(text: &str) -> Result<PermissionRule, String> {
    let rule = PermissionRule::parse(Effect::Allow, text, RuleOrigin::Session, &PatternContext::default());
    rule.map_err(|error| error.reason)
}

/// Checks a rule that the user wrote instead of the offered one, and returns it without surrounding blanks.
///
/// # Errors
/// [`UnusableWrittenRule`] if the rule is malformed, applies to something else, does not cover the access, or would
/// allow more than may be approved while a call waits.
pub fn check_written_rule(text: &str, tool: &Tool, access: &Access) -> Result<String, UnusableWrittenRule> {
    let text = text.trim();
    let Access::RunCommand(command) = access else { return Err(UnusableWrittenRule::NotOnCommands) };
    if !text.starts_with("Bash(") {
        return Err(UnusableWrittenRule::NotOnCommands);
    }
    let is_printable = |c: char| c == ' ' || c.is_ascii_graphic();
    if !text.chars().all(is_printable) {
        return Err(UnusableWrittenRule::Malformed("it contains characters that are not printable ASCII".into()));
    }
    let rule = parsed(text).map_err(UnusableWrittenRule::Malformed)?;
    if !rule.allows(tool, access, &WorkspaceRoots::default()) {
        return Err(UnusableWrittenRule::DoesNotCover);
    }
    match is_narrow_enough(&rule, command) {
        true => Ok(text.to_owned()),
        false => Err(UnusableWrittenRule::TooWide(least_head(command))),
    }
}

/// Returns `true` for a rule without wildcards, and for a rule whose words before the first wildcard determine the
/// program that runs.
fn is_narrow_enough(rule: &PermissionRule, command: &CommandAccess) -> bool {
    if rule.is_about_one_command() {
        return !matches!(command.clarity, ParseConfidence::Opaque(_));
    }
    let Some(least) = command.widening.map(|widening| usize::from(widening.least)) else { return false };
    let says_what_runs = |head: &[String]| {
        head.len() >= least && head.iter().zip(command.words.iter()).all(|(said, word)| *said == **word)
    };
    command.clarity == ParseConfidence::Plain && rule.outline().is_some_and(|outline| says_what_runs(&outline.head))
}

/// Returns the words with which a rule with wildcards must begin; empty if the rule must not have wildcards.
fn least_head(command: &CommandAccess) -> String {
    let least = command.widening.map_or(0, |widening| usize::from(widening.least));
    command_pattern::quoted(command.words.get(..least).unwrap_or_default())
}

/// Reason why a rule that the user wrote is not stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnusableWrittenRule {
    /// The text is not a rule.
    #[error("it is not a valid rule: {0}")]
    Malformed(String),
    /// The rule applies to something other than commands.
    #[error("only a rule on commands can be stored here: write `Bash(...)`")]
    NotOnCommands,
    /// The call would need approval again.
    #[error("it does not cover this command, so the same call would need approval again")]
    DoesNotCover,
    /// The rule would allow other programs, or programs that run whatever they are given. Holds the words that it must
    /// begin with; empty if it may not contain a wildcard.
    #[error("it would allow too much: {}", narrower(.0))]
    TooWide(String),
}

fn narrower(head: &str) -> String {
    match head {
        "" => "this program runs what it is given, so write the whole command without `*`".into(),
        head => format!("begin it with `{head}`, and use `*` only after that"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{access::RuleWideningLimits, testing::samples};

    fn command(line: &str, widening: Option<(u8, Option<u8>)>) -> Access {
        let widening = widening.map(|(least, offered)| RuleWideningLimits { least, offered });
        Access::RunCommand(CommandAccess { widening, ..CommandAccess::program(line.split(' ')) })
    }

    #[test]
    fn the_offered_rule_has_a_wildcard_only_where_the_analysis_permits_it() {
        let check = |line, widening, expected: &str| {
            assert_eq!(offered_rule(&command(line, widening), "bash").as_deref(), Some(expected));
        };
        check("python3 -m pytest -q", Some((3, Some(3))), "Bash(python3 -m pytest *)");
        check("git log", Some((1, Some(2))), "Bash(git log *)");
        check("tsc -p .", Some((1, None)), "Bash(tsc -p .)");
        check("make lint", None, "Bash(make lint)");
        let Access::RunCommand(plain) = command("find . -delete", Some((1, Some(1)))) else { unreachable!() };
        let exact = Access::RunCommand(CommandAccess { clarity: ParseConfidence::Exact("it deletes".into()), ..plain });
        assert_eq!(offered_rule(&exact, "bash").as_deref(), Some("Bash(find . -delete)"), "no pattern covers it");
    }

    #[test]
    fn rejects_a_user_written_rule_that_misses_the_call_or_is_too_wide() {
        let tool = samples::tool("bash");
        let pytest = || command("python3 -m pytest -q", Some((3, Some(3))));
        let git = || command("git log -1", Some((1, Some(2))));
        let make = || command("make lint", None);
        let too_wide = |head: &str| Err(UnusableWrittenRule::TooWide(head.into()));
        let check = |access: Access, rule: &str, expected: Result<&str, UnusableWrittenRule>| {
            assert_eq!(check_written_rule(rule, &tool, &access), expected.map(str::to_owned), "{rule}");
        };
        check(pytest(), " Bash(python3 -m pytest *) ", Ok("Bash(python3 -m pytest *)"));
        check(pytest(), "Bash(python3 -m pytest -q)", Ok("Bash(python3 -m pytest -q)"));
        check(pytest(), "Bash(python3 -m pytest -*)", Ok("Bash(python3 -m pytest -*)"));
        for wide in
            ["Bash(python3 *)", "Bash(python3 -m *)", "Bash(python3 -m pytest*)", "Bash(python3 * -q)", "Bash(* -q)"]
        {
            check(pytest(), wide, too_wide("python3 -m pytest"));
        }
        check(git(), "Bash(git *)", Ok("Bash(git *)"));
        check(git(), "Bash(git:*)", Ok("Bash(git:*)"));
        check(git(), "Bash(git log*)", Ok("Bash(git log*)"));
        for wide in ["Bash(g*)", "Bash(git*)", "Bash(* log -1)"] {
            check(git(), wide, too_wide("git"));
        }
        check(make(), "Bash(make lint)", Ok("Bash(make lint)"));
        check(make(), "Bash(make *)", too_wide(""));
        check(git(), "Bash(git push *)", Err(UnusableWrittenRule::DoesNotCover));
        for other in ["Bash", "bash", "Write(x)", "*", ""] {
            check(git(), other, Err(UnusableWrittenRule::NotOnCommands));
        }
        for malformed in ["Bash(*)", "Bash(git 'log *)", "Bash(git | *)", "Bash(git log\u{1b}*)", "Bash("] {
            let checked = check_written_rule(malformed, &tool, &git());
            assert!(
                matches!(
                    checked,
                    Err(UnusableWrittenRule::Malformed(_)
                        | UnusableWrittenRule::NotOnCommands
                        | UnusableWrittenRule::TooWide(_))
                ),
                "{malformed}: {checked:?}"
            );
        }
        let Access::RunCommand(plain) = git() else { unreachable!() };
        let opaque =
            Access::RunCommand(CommandAccess { clarity: ParseConfidence::Opaque("a variable".into()), ..plain });
        assert!(check_written_rule("Bash(git log -1)", &tool, &opaque).is_err());
        assert!(check_written_rule("Bash(git *)", &tool, &opaque).is_err());
        let host = Access::ReachHost("a.org".into());
        assert_eq!(check_written_rule("Bash(git *)", &tool, &host), Err(UnusableWrittenRule::NotOnCommands));
    }
}
