use super::*;
use crate::escaping_writer::tests::sources;
use toolstead_domain::{DefaultSuggestions, Suggestion, SuggestionFormatter, permission::rule::RuleOrigin};

/// Returns one suggestion of each kind; the match finds a kind that is missing.
fn suggestions() -> Vec<Suggestion> {
    let all = vec![
        Suggestion::AllowRules(vec!["Write(//w/a)".into(), "Bash(it's)".into()]),
        Suggestion::ChangeRule { rule: "Read(.env)".into(), origin: RuleOrigin::CommandLine },
        Suggestion::SelectTool("grep".into()),
        Suggestion::AddRoot,
        Suggestion::TrustFile("/w/a b.toml".into()),
        Suggestion::ChangeSettings("add `example.com` to `sandbox.network`".into()),
        Suggestion::SignIn { grant: "gmail".into(), principal: Some("token:ann".into()) },
        Suggestion::PrepareMachine("install a browser".into()),
        Suggestion::DetachCall,
        Suggestion::SetUpTool("no key is set".into()),
        Suggestion::InspectServer { server: "git".into(), reason: "it is down".into() },
        Suggestion::ListTools,
        Suggestion::ListResources,
        Suggestion::ListPrompts,
    ];
    let kind = |suggestion: &Suggestion| match suggestion {
        Suggestion::AllowRules(_) => 0,
        Suggestion::ChangeRule { .. } => 1,
        Suggestion::SelectTool(_) => 2,
        Suggestion::AddRoot => 3,
        Suggestion::TrustFile(_) => 4,
        Suggestion::ChangeSettings(_) => 5,
        Suggestion::SignIn { .. } => 6,
        Suggestion::PrepareMachine(_) => 7,
        Suggestion::DetachCall => 8,
        Suggestion::SetUpTool(_) => 9,
        Suggestion::InspectServer { .. } => 10,
        Suggestion::ListTools => 11,
        Suggestion::ListResources => 12,
        Suggestion::ListPrompts => 13,
    };
    assert!(all.iter().map(kind).eq(0..14));
    all
}

/// Words that belong to some interfaces alone.
const FLAGS_AND_COMMANDS: &[&str] = &["--", "toolstead ", "config trust", "[workspace]"];
const METHODS: &[&str] = &["/list`"];
const OF_CLIENTS: &[&str] = &["MCP client"];
const OF_OPERATORS: &[&str] = &["operator", "the server"];
const OF_RULES: &[&str] = &["Write(", "Bash(", "Read("];

#[track_caller]
fn check(name: &str, format: impl Fn(&Suggestion) -> Option<String>, foreign: &[&[&str]]) {
    for suggestion in suggestions() {
        let text = format(&suggestion).unwrap_or_default();
        for word in foreign.iter().copied().flatten() {
            assert!(!text.contains(word), "{name}, {suggestion:?}: `{word}` in: {text}");
        }
    }
}

#[test]
fn suggestions_for_one_interface_contain_no_terms_of_another() {
    let foreign = [METHODS, OF_CLIENTS, OF_OPERATORS];
    check("command line", |one| CliSuggestionFormatter.format(one), &foreign);
    check("MCP", |one| McpSuggestions.format(one), &[OF_OPERATORS]);
    check("HTTP", |one| HttpSuggestions.format(one), &[OF_CLIENTS]);
    let foreign = [FLAGS_AND_COMMANDS, METHODS, OF_CLIENTS, OF_OPERATORS];
    check("embedded", |one| DefaultSuggestions.format(one), &foreign);
    let foreign = [FLAGS_AND_COMMANDS, METHODS, OF_CLIENTS, OF_OPERATORS, OF_RULES, &["sandbox.network", "/w/a"]];
    check("model", |one| Some(one.for_model().to_owned()), &foreign);
}

/// Failures are made in these crates, and a model reads their texts.
#[test]
fn no_message_outside_the_suggestion_tables_contains_a_command_or_flag() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = Vec::new();
    for (file, text) in ["domain", "application", "infrastructure"].iter().flat_map(|one| sources(&crates.join(one))) {
        let text = text.split("#[cfg(test)]").next().unwrap_or_default();
        let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim_start().starts_with("//"));
        let holding =
            lines.filter(|(_, line)| ["`toolstead ", "--allow ", "`--root"].iter().any(|word| line.contains(word)));
        found.extend(holding.map(|(number, line)| format!("{}:{number}: {}", file.display(), line.trim())));
    }
    assert!(found.is_empty(), "give a `Suggestion` instead:\n{}", found.join("\n"));
}

#[test]
fn commands_in_suggestions_can_be_pasted_into_a_shell() {
    for (suggestion, expected) in [
        (
            &suggestions()[0],
            r"To allow it, run with `--allow 'Write(//w/a)' --allow 'Bash(it'\''s)'`, or for good: `toolstead permissions allow 'Write(//w/a)' 'Bash(it'\''s)'`.",
        ),
        (&suggestions()[1], "To allow it, change `Read(.env)` in the command line."),
        (&suggestions()[2], "To offer it, include `grep` in `--tools` or `[tools] select`."),
        (&suggestions()[4], "Review it, then trust it with `toolstead config trust '/w/a b.toml'`."),
        (&suggestions()[6], "`toolstead auth login google --grant gmail --principal 'token:ann'` signs in."),
    ] {
        assert_eq!(CliSuggestionFormatter.format(suggestion).as_deref(), Some(expected));
    }
}
