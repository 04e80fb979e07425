//! One answer for several commands, with rules that are edited before they are stored.

use super::*;
use crate::approval_question::tests::asked_about_reading;
use toolstead_domain::{CommandAccess, RuleWideningLimits};

/// A call of two commands, whose rules may be edited.
fn asked_about_commands() -> Asked {
    let command = |line: &str, widening| {
        Access::RunCommand(CommandAccess { widening, ..CommandAccess::program(line.split(' ')) })
    };
    let pytest = Some(RuleWideningLimits { least: 3, offered: Some(3) });
    let mut asked = Asked::about(json!({}), vec![command("python3 -m pytest -q", pytest), command("make lint", None)]);
    asked.parts[0].rule = Some("Bash(python3 -m pytest *)".into());
    asked.parts[1].rule = Some("Bash(make lint)".into());
    for part in &mut asked.parts {
        part.scopes = vec![ApprovalScope::Once, ApprovalScope::Session];
    }
    asked
}

#[tokio::test]
async fn a_rule_can_be_edited_before_it_is_stored_and_too_wide_rules_are_rejected() {
    let person = Person::at_terminal(SOON);
    let answer = person.ask(asked_about_commands());
    let mut seen = person.sees("? ").await;
    person.types(b"e");
    seen += &person.sees("*)").await;
    // Too wide, and then as narrow as the call.
    person.types(b"\x15Bash(python3 *)\r");
    seen += &person.sees(": Bash(python3 *)").await;
    person.types(b"\x7f\x7f-m pytest -q)\r");
    seen += &person.sees("(Enter stores it, Ctrl-C cancels): Bash(make lint)").await;
    person.types(b"\x03");
    seen += &person.sees("? ").await;
    person.types(b"s");
    let approval = tokio::time::timeout(SOON, answer).await.expect("it is answered").unwrap();
    let scopes = vec![ApprovalScope::Session; 2];
    let rules = vec![Some("Bash(python3 -m pytest -q)".to_owned()), None];
    assert_eq!(approval, ApprovalOutcome::GrantedWithRules { by: PERSON.into(), scopes, rules });
    let seen = seen.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(seen.contains("which also allows `python3 -m pytest` with any other"), "{seen}");
    assert!(seen.contains("The rule is not stored: it would allow too much: begin it with"), "{seen}");
    assert!(person.is_as_before());
}

#[tokio::test]
async fn an_unedited_offered_rule_is_granted_without_a_custom_rule() {
    let person = Person::at_terminal(SOON);
    let mut asked = asked_about_commands();
    asked.parts.truncate(1);
    let answer = person.ask(asked);
    let seen = person.sees("? ").await;
    assert!(seen.ends_with("1. [d]eny [o]nce [s]ession [e]dit rule? "), "{seen}");
    person.types(b"e");
    person.sees("*)").await;
    person.types(b"\r");
    person.sees("? ").await;
    person.types(b"s");
    let approval = tokio::time::timeout(SOON, answer).await.expect("it is answered").unwrap();
    assert_eq!(approval, ApprovalOutcome::Granted { by: PERSON.into(), scopes: vec![ApprovalScope::Session] });
}

#[tokio::test]
async fn one_key_extends_the_approval_to_read_only_commands() {
    let granted = |scopes: [ApprovalScope; 2]| ApprovalOutcome::Granted { by: PERSON.into(), scopes: scopes.to_vec() };
    for (keys, expected) in [
        (&b"c"[..], granted([ApprovalScope::ReadOnlyCommands; 2])),
        (b"s", granted([ApprovalScope::Session; 2])),
        (b"isc", granted([ApprovalScope::Session, ApprovalScope::ReadOnlyCommands])),
    ] {
        let person = Person::at_terminal(SOON);
        let answer = person.ask(asked_about_reading());
        let seen = person.sees("? ").await;
        let prompt = "All 2 parts: [d]eny [o]nce [s]ession [c]ommands that only read [i]ndividually [e]dit rule? ";
        assert!(seen.ends_with(prompt), "{seen}");
        let shown = seen.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            shown.contains("Commands that only read, for this session: the rules above; on any file or variable,"),
            "{shown}"
        );
        person.types(keys);
        let approval = tokio::time::timeout(SOON, answer).await.expect("the question is answered").unwrap();
        assert_eq!(approval, expected, "{keys:?}");
    }
    let person = Person::at_terminal(SOON);
    let answer = person.ask(asked_about_commands());
    assert!(!person.sees("? ").await.contains("only read"), "none of these commands only reads");
    person.types(b"cn");
    assert_eq!(answer.await.unwrap(), ApprovalOutcome::denied(PERSON));
}

#[tokio::test]
async fn further_lines_of_a_pasted_rule_are_not_read_as_answers() {
    let person = Person::at_terminal(SOON);
    let mut asked = asked_about_commands();
    asked.parts.truncate(1);
    let answer = person.ask(asked);
    person.sees("? ").await;
    person.types(b"e");
    person.sees("*)").await;
    person.types(b"\rsso");
    person.sees("[e]dit rule? ").await;
    person.types(b"n");
    let approval = tokio::time::timeout(SOON, answer).await.expect("the question is answered").unwrap();
    assert_eq!(approval, ApprovalOutcome::denied(PERSON));
}

#[tokio::test]
async fn a_repeated_question_stores_the_rule_that_is_shown_and_not_an_earlier_edit() {
    let person = Person::at_terminal(SOON);
    let mut asked = asked_about_commands();
    asked.parts.truncate(1);
    // Something to read: the argument is cut.
    asked.call.arguments.insert("note".into(), json!("x".repeat(1_000)));
    let answer = person.ask(asked);
    person.sees("? ").await;
    person.types(b"e");
    person.sees("*)").await;
    person.types(b"\x15Bash(python3 -m pytest -q)\r");
    person.sees("[v]iew all? ").await;
    person.types(b"v");
    person.sees("[q]uit? ").await;
    person.types(b"q");
    let question = person.sees("[v]iew all? ").await;
    assert!(question.contains("the rule `Bash(python3 -m pytest *)`"), "{question}");
    person.types(b"s");
    let approval = tokio::time::timeout(SOON, answer).await.expect("the question is answered").unwrap();
    assert_eq!(approval, ApprovalOutcome::Granted { by: PERSON.into(), scopes: vec![ApprovalScope::Session] });
}
