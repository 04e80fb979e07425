//! A change that is longer than the question.

use super::*;

const BEFORE_READING: &str = "1. [d]eny [o]nce [v]iew all? ";
const AFTER_READING: &str = "1. [d]eny [o]nce [r]un [s]ession [p]roject [a]lways [v]iew all? ";
const PAGE: &str = " [n]ext [b]ack [e]nd [q]uit? ";

fn long_change() -> Asked {
    let lines: String = (1..=300).map(|number| format!("+line {number}\n")).collect();
    let mut asked = Asked::about(json!({"path": "a"}), vec![write("/w/a")]);
    asked.preview = Some(format!("--- a/a\n+++ b/a\n@@ -0,0 +1,300 @@\n{lines}"));
    asked
}

async fn granted(answer: tokio::task::JoinHandle<ApprovalOutcome>, scope: ApprovalScope) {
    let answer = tokio::time::timeout(SOON, answer).await.expect("the question is answered").unwrap();
    assert_eq!(answer, ApprovalOutcome::Granted { by: PERSON.into(), scopes: vec![scope] });
}

#[tokio::test]
async fn a_long_change_offers_only_single_approval_until_its_last_line_is_shown() {
    let person = Person::at_terminal(SOON);
    let answer = person.ask(long_change());
    let question = person.sees(BEFORE_READING).await;
    assert!(question.contains("The change (1 file, 300 lines added, 0 removed):"), "{question}");
    assert!(question.contains("(cut: 243 of 303 lines are not shown)"), "{question}");
    // The tool and the path are below the change, next to the prompt.
    let last: Vec<&str> = question.lines().rev().take(5).collect();
    assert!(last.iter().any(|line| line.contains("May the tool `write_file` run?")), "{question}");
    for key in [b"s", b"a", b"p", b"r"] {
        person.types(key);
        person.sees("\x07").await;
    }

    person.types(b"v");
    let mut pages = person.sees(PAGE).await;
    person.types(b"q");
    person.sees(BEFORE_READING).await;

    person.types(b"v");
    person.sees(PAGE).await;
    while !pages.contains("line 300") {
        person.types(b" ");
        pages += &person.sees(PAGE).await;
    }
    assert!((1..=300).all(|number| pages.contains(&format!("  | +line {number}\r\n"))), "{pages}");
    person.types(b"q");
    person.sees(AFTER_READING).await;
    person.types(b"a");
    granted(answer, ApprovalScope::Always).await;
    assert!(person.is_as_before());
}

#[tokio::test]
async fn a_long_definition_can_be_approved_only_after_its_last_line_is_shown() {
    let person = Person::at_terminal(SOON);
    let answer = person.ask(asked_about_definition(300));
    let question = person.sees("1. [d]eny [v]iew all? ").await;
    assert!(question.contains("(The definition is not shown completely"), "{question}");
    for key in [b"y", b"o", b"a"] {
        person.types(key);
        person.sees("\x07").await;
    }
    person.types(b"v");
    person.sees(PAGE).await;
    person.types(b"e");
    person.sees(PAGE).await;
    person.types(b"q");
    person.sees("1. [d]eny [o]nce [v]iew all? ").await;
    person.types(b"o");
    granted(answer, ApprovalScope::Once).await;
}

#[tokio::test]
async fn keys_that_are_typed_before_the_question_is_repeated_are_no_answer() {
    let person = Person::at_terminal(SOON);
    let answer = person.ask(long_change());
    person.sees(BEFORE_READING).await;
    person.types(b"v");
    person.sees(PAGE).await;
    person.types(b"e");
    person.sees(PAGE).await;
    person.types(b"qaaoo");
    person.sees(AFTER_READING).await;
    person.types(b"n");
    let answer = tokio::time::timeout(SOON, answer).await.expect("the question is answered").unwrap();
    assert_eq!(answer, ApprovalOutcome::denied(PERSON));
}

#[tokio::test]
async fn a_pager_that_fails_or_exits_at_once_is_replaced_by_the_built_in_pager() {
    for (pager, note) in [
        ("false", "The pager `false` failed (exit status: 1). The built-in pager follows."),
        ("true", "The pager `true` ended at once. The built-in pager follows."),
        ("/nowhere/pager -R", "The pager `/nowhere/pager` cannot be started"),
    ] {
        let person = Person::with_pager(SOON, Some(pager));
        let answer = person.ask(long_change());
        person.sees(BEFORE_READING).await;
        person.types(b"v");
        let page = person.sees(PAGE).await;
        assert!(page.contains(note), "{page}");
        person.types(b"q");
        person.sees(BEFORE_READING).await;
        person.types(b"o");
        granted(answer, ApprovalScope::Once).await;
    }
}

#[tokio::test]
async fn a_pager_gets_escaped_rows_and_its_command_line_is_split_without_a_shell() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("read");
    // The last words are arguments, whatever a shell would make of them.
    let script = r#"cat >"$0"; echo "$LESSSECURE $1 $2" >>"$0""#;
    let pager = format!("sh -c '{script}' {} '$HOME' '; rm -rf /'", file.display());
    let person = Person::with_pager(SOON, Some(&pager));
    let mut asked = long_change();
    asked.preview = Some(format!("--- a/a\n+++ b/a\n@@ -0,0 +1 @@\n+{}\r\u{1b}[2J\n", "x".repeat(20_000)));
    let answer = person.ask(asked);
    person.sees(BEFORE_READING).await;
    person.types(b"v");
    person.sees(PAGE).await;
    let read = std::fs::read_to_string(&file).unwrap();
    let rows: Vec<&str> = read.lines().collect();
    assert!(rows.iter().all(|row| columns(row) < WIDTH && !row.contains(['\r', '\u{1b}'])), "{read}");
    assert_eq!(rows.concat().matches('x').count(), 20_000);
    assert_eq!(rows.last(), Some(&"1 $HOME ; rm -rf /"));
    person.types(b"q");
    person.sees(BEFORE_READING).await;
    person.types(b"n");
    answer.await.unwrap();
}

#[tokio::test]
async fn a_cancelled_question_ends_the_pager() {
    let pager = r#"sh -c 'sleep 1000 & trap "kill $!; echo ended; exit" TERM; echo started; wait'"#;
    let person = Person::with_pager(SOON, Some(pager));
    let answer = person.ask(long_change());
    person.sees(BEFORE_READING).await;
    person.types(b"v");
    person.sees("started\r\n").await;
    answer.abort();
    assert!(answer.await.unwrap_err().is_cancelled());
    person.sees("ended\r\n").await;
    assert!(person.is_as_before());
}

#[tokio::test]
async fn ctrl_c_in_the_built_in_pager_interrupts_the_question() {
    let person = Person::at_terminal(SOON);
    let answer = person.ask(long_change());
    person.sees(BEFORE_READING).await;
    person.types(b"v");
    person.sees(PAGE).await;
    person.types(b"\x03");
    let answer = tokio::time::timeout(SOON, answer).await.expect("the question is answered").unwrap();
    assert_eq!(answer, ApprovalOutcome::Cancelled);
}
