//! A denial with a message for the model.

use super::*;
use rustix::termios::{OptionalActions, tcsetattr};

const PROMPT: &str = "Reason, or what to do instead (Enter for none): ";

#[tokio::test]
async fn the_denial_key_prompts_for_a_message() {
    let denied = |message: &str| ApprovalOutcome::Denied { by: PERSON.into(), message: Some(message.into()) };
    for (typed, expected) in [
        (&b"use pytest -q\r"[..], denied("use pytest -q")),
        // The line is edited before it is sent.
        (b"use x\x7fpytest\r", denied("use pytest")),
        (b"\r", denied("")),
        // Further lines of a paste are discarded.
        (b"one\rtwo\rthree\r", denied("one")),
        (b"\x04", ApprovalOutcome::denied(PERSON)),
        (b"no\x03", ApprovalOutcome::Cancelled),
    ] {
        let person = Person::at_terminal(SOON);
        let answer = person.ask(asked());
        person.sees("? ").await;
        person.types(b"d");
        person.sees(PROMPT).await;
        person.types(typed);
        let answer = tokio::time::timeout(SOON, answer).await.expect("the question is answered").unwrap();
        assert_eq!(answer, expected, "{typed:?}");
        assert!(person.is_as_before(), "{typed:?}");
    }
}

#[tokio::test]
async fn a_denial_without_a_timely_message_is_still_a_denial() {
    let person = Person::at_terminal(Duration::from_secs(2));
    let answer = person.ask(asked());
    person.sees("? ").await;
    person.types(b"d");
    person.sees(PROMPT).await;
    person.types(b"half a rea");
    let answer = tokio::time::timeout(SOON, answer).await.expect("the question ends").unwrap();
    assert_eq!(answer, ApprovalOutcome::denied(PERSON));
    assert!(person.is_as_before());
}

#[tokio::test]
async fn no_other_question_appears_between_a_denial_and_its_message() {
    let person = Person::at_terminal(SOON);
    let first = person.ask(asked());
    person.sees("? ").await;
    let second = person.ask(asked());
    person.types(b"d");
    person.sees(PROMPT).await;
    person.types(b"use y instead\r");
    let message = Some("use y instead".to_owned());
    assert_eq!(first.await.unwrap(), ApprovalOutcome::Denied { by: PERSON.into(), message });
    person.sees("? ").await;
    person.types(b"n");
    assert_eq!(second.await.unwrap(), ApprovalOutcome::denied(PERSON));
}

#[tokio::test]
async fn a_denial_message_is_line_edited_and_the_previous_raw_mode_is_restored() {
    let person = Person::at_terminal(SOON);
    let mut modes = tcgetattr(&person.terminal).unwrap();
    modes.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
    tcsetattr(&person.terminal, OptionalActions::Now, &modes).unwrap();
    let answer = person.ask(asked());
    person.sees("? ").await;
    person.types(b"d");
    person.sees(PROMPT).await;
    person.types(b"use x\x7fpytest\r");
    person.sees("pytest\r\n").await;
    let denied = ApprovalOutcome::Denied { by: PERSON.into(), message: Some("use pytest".into()) };
    assert_eq!(tokio::time::timeout(SOON, answer).await.expect("the question is answered").unwrap(), denied);
    let after = tcgetattr(&person.terminal).unwrap().local_modes;
    assert!(
        !after.contains(LocalModes::ICANON) && !after.contains(LocalModes::ECHO) && after.contains(LocalModes::ISIG)
    );
}
