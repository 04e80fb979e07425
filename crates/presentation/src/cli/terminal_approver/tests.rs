//! Tests on a real terminal: the other end of a pty is the user.

mod denial;
mod long_change;
mod rules;

use super::{
    super::terminal::{WIDTH, columns},
    *,
};
use crate::approval_question::tests::{Asked, asked_about_definition, write};
use rustix::{
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize},
};
use serde_json::json;
use std::{
    ffi::OsStr,
    fs::OpenOptions,
    io::{Read, Write},
    os::unix::ffi::OsStrExt,
};
use toolstead_domain::{Access, Caller, InputRequest, InputResponse, LogMessage, NotAnswered, Progress};

/// Time limit of everything that a test waits for.
const SOON: Duration = Duration::from_secs(20);

struct Person {
    hands: File,
    approver: Arc<TerminalApprover>,
    terminal: File,
}

impl Person {
    fn at_terminal(patience: Duration) -> Self {
        Self::with_pager(patience, None)
    }

    fn with_pager(patience: Duration, pager: Option<&str>) -> Self {
        let hands = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&hands).unwrap();
        unlockpt(&hands).unwrap();
        let name = ptsname(&hands, Vec::new()).unwrap();
        let open = || {
            use std::os::unix::fs::OpenOptionsExt;
            let flags = libc::O_NOCTTY;
            let path = OsStr::from_bytes(name.to_bytes());
            OpenOptions::new().read(true).write(true).custom_flags(flags).open(path).unwrap()
        };
        let (terminal, pager) = (Arc::new(Terminal::new(open())), Pager::parse(pager));
        let approver = Arc::new(TerminalApprover { terminal, patience, pager });
        Self { hands: hands.into(), approver, terminal: open() }
    }

    fn ask(&self, asked: Asked) -> tokio::task::JoinHandle<ApprovalOutcome> {
        let approver = self.approver.clone();
        tokio::spawn(async move { approver.ask(asked.request()).await })
    }

    /// Reads until the terminal shows this, and returns all that it showed.
    async fn sees(&self, end: &'static str) -> String {
        let mut eyes = self.hands.try_clone().unwrap();
        let read = tokio::task::spawn_blocking(move || {
            let mut seen = Vec::new();
            while !seen.ends_with(end.as_bytes()) {
                let mut byte = [0];
                eyes.read_exact(&mut byte).unwrap();
                seen.extend(byte);
            }
            String::from_utf8(seen).unwrap()
        });
        tokio::time::timeout(SOON, read).await.expect("the question comes").unwrap()
    }

    fn types(&self, keys: &[u8]) {
        (&self.hands).write_all(keys).unwrap();
    }

    /// Returns `true` if the terminal has the modes that shells expect.
    fn is_as_before(&self) -> bool {
        tcgetattr(&self.terminal)
            .unwrap()
            .local_modes
            .contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }
}

fn asked() -> Asked {
    let mut asked = Asked::about(
        json!({"path": "a"}),
        vec![write("/w/a\u{1b}[2J\n1. write `/tmp`"), Access::ReachHost("a.org".into())],
    );
    asked.parts[1].scopes = vec![ApprovalScope::Once, ApprovalScope::Session];
    asked
}

async fn answered(keys: &[u8]) -> (ApprovalOutcome, bool) {
    let person = Person::at_terminal(SOON);
    let answer = person.ask(asked());
    person.sees("? ").await;
    person.types(keys);
    let approval = tokio::time::timeout(SOON, answer).await.expect("it is answered").unwrap();
    (approval, person.is_as_before())
}

#[tokio::test]
async fn the_user_can_answer_each_part_of_a_question_individually() {
    let person = Person::at_terminal(SOON);
    let answer = person.ask(asked());
    let mut seen = person.sees("? ").await;
    person.types(b"i");
    seen += &person.sees("? ").await;
    person.types(b"s");
    seen += &person.sees("? ").await;
    person.types(b"o");
    let granted = answer.await.unwrap();
    let scopes = vec![ApprovalScope::Session, ApprovalScope::Once];
    assert_eq!(granted, ApprovalOutcome::Granted { by: PERSON.into(), scopes });
    let lines: Vec<&str> = seen.lines().map(str::trim_end).collect();
    assert!(lines.iter().all(|line| line.chars().count() <= WIDTH), "{lines:#?}");
    insta::assert_snapshot!(lines.join("\n"), @r#"

    May the tool `write_file` run?
    1. write `/w/a\u{1b}[2J\n1. write \u{60}/tmp\u{60}`
       Why: changes to files need approval by default
       If allowed for longer: the rule `Write(//w/a\u{1b}[2J\n1. write
          \u{60}/tmp\u{60})`, and everything below it
    2. connect to `a.org`
       Why: changes to files need approval by default
       If allowed for longer: this tool with exactly these arguments
    With `path`: `"a"`
    All 2 parts: [d]eny [o]nce [s]ession [i]ndividually? individually
    1. [d]eny [o]nce [r]un [s]ession [p]roject [a]lways? session
    2. [d]eny [o]nce [s]ession?
    "#);
    assert!(person.is_as_before());
}

#[tokio::test]
async fn only_a_choice_for_all_parts_or_for_each_part_approves() {
    let denied = ApprovalOutcome::denied(PERSON);
    let granted = |scopes: [ApprovalScope; 2]| ApprovalOutcome::Granted { by: PERSON.into(), scopes: scopes.to_vec() };
    for (keys, expected) in [
        (&b"y"[..], granted([ApprovalScope::Once, ApprovalScope::Once])),
        (b"s", granted([ApprovalScope::Session, ApprovalScope::Session])),
        // The second part is offered neither for ever nor for a run, and no rule of either can be edited.
        (b"areo", granted([ApprovalScope::Once, ApprovalScope::Once])),
        (b"iyy", granted([ApprovalScope::Once, ApprovalScope::Once])),
        (b"iAs", granted([ApprovalScope::Always, ApprovalScope::Session])),
        (b"iaas", granted([ApprovalScope::Always, ApprovalScope::Session])),
        (b"Ix?ios", granted([ApprovalScope::Once, ApprovalScope::Session])),
        (b"irrs", granted([ApprovalScope::Run, ApprovalScope::Session])),
        (b"n", denied.clone()),
        (b"in", denied.clone()),
        (b"ion", denied.clone()),
        (b"\r", denied.clone()),
        (b"i\r", denied.clone()),
        (b"\x04", denied.clone()),
        (b"\x03", ApprovalOutcome::Cancelled),
        (b"io\x03", ApprovalOutcome::Cancelled),
    ] {
        let (outcome, is_as_before) = answered(keys).await;
        assert_eq!(outcome, expected, "{keys:?}");
        assert!(is_as_before, "{keys:?}");
    }
}

#[tokio::test]
async fn function_keys_pastes_and_non_ascii_keys_are_not_read_as_answers() {
    for keys in [
        &b"\x1bOP"[..],            // F1
        b"\x1bOS",                 // F4
        b"\x1b[1;5S",              // Ctrl-F4
        b"\x1b[11~",               // F1 of a VT220
        b"\x1b[[A",                // F1 of the console of Linux
        b"\x1b[A",                 // up
        b"\x1b\x1b[A",             // Alt and up
        b"\x1bo",                  // Alt and o
        b"\x1b[200~oosy\x1b[201~", // a text that was pasted
        "öé😀".as_bytes(),
    ] {
        let mut asked = asked();
        asked.parts.truncate(1);
        let person = Person::at_terminal(SOON);
        let answer = person.ask(asked);
        person.sees("? ").await;
        person.types(keys);
        person.types(b"n");
        assert_eq!(answer.await.unwrap(), ApprovalOutcome::denied(PERSON), "{keys:?}");
    }
}

#[test]
fn lines_are_wrapped_at_spaces_and_long_words_after_a_backslash() {
    let broken = |line: &str| {
        let mut text = String::new();
        wrapped(&mut text, "1. ", line);
        text
    };
    assert_eq!(broken("short"), "1. short\n");
    let words = "word ".repeat(30);
    assert!(broken(&words).lines().all(|line| line.trim().split(' ').all(|word| word == "word" || word == "1.")));
    let long = "x".repeat(300);
    let text = broken(&format!("run {long} end"));
    assert!(text.lines().all(|line| columns(line.trim_end()) <= WIDTH), "{text}");
    assert_eq!(text.replace("\\\n      ", "").trim_end(), format!("1. run {long} end"));
    let fits = "y".repeat(WIDTH - 3);
    assert_eq!(broken(&fits), format!("1. {fits}\n"));
}

#[tokio::test]
async fn input_typed_before_a_question_is_not_read_as_its_answer() {
    let person = Person::at_terminal(SOON);
    person.types(b"yyyy\n");
    // The line is there once its echo is.
    person.sees("yyyy\r\n").await;
    let answer = person.ask(asked());
    person.sees("? ").await;
    person.types(b"n");
    assert_eq!(answer.await.unwrap(), ApprovalOutcome::denied(PERSON));
}

#[tokio::test]
async fn an_unanswered_or_cancelled_question_restores_the_terminal() {
    let person = Person::at_terminal(Duration::from_millis(50));
    assert_eq!(person.ask(asked()).await.unwrap(), ApprovalOutcome::TimedOut);
    assert!(person.is_as_before());

    let person = Person::at_terminal(SOON);
    let answer = person.ask(asked());
    person.sees("? ").await;
    assert!(!person.is_as_before());
    answer.abort();
    assert!(answer.await.unwrap_err().is_cancelled());
    assert!(person.is_as_before(), "a question that is taken back leaves no trace");
}

#[tokio::test]
async fn without_a_terminal_no_approver_is_available() {
    let approver = TerminalApprover::new(Arc::new(Terminal::new(tempfile::tempfile().unwrap())), SOON);
    assert_eq!(approver.ask(asked().request()).await, ApprovalOutcome::Unattended);
}

/// A caller that disconnects on request.
struct Leaving(tokio::sync::Notify);

#[async_trait]
impl Caller for Leaving {
    async fn disconnected(&self) {
        self.0.notified().await;
    }

    fn progress(&self, _: Progress) {}

    fn log(&self, _: LogMessage) {}

    async fn ask(&self, _: InputRequest) -> Result<InputResponse, NotAnswered> {
        Err(NotAnswered::Disconnected)
    }
}

#[tokio::test]
async fn a_question_is_withdrawn_when_its_caller_disconnects() {
    let (person, leaving) = (Person::at_terminal(SOON), Arc::new(Leaving(tokio::sync::Notify::new())));
    let mut question = asked();
    question.caller = leaving.clone();
    let answer = person.ask(question);
    person.sees("? ").await;
    leaving.0.notify_one();
    assert_eq!(tokio::time::timeout(SOON, answer).await.expect("it ends").unwrap(), ApprovalOutcome::Unattended);
    assert!(person.is_as_before());
}

#[tokio::test]
async fn wrapped_foreign_text_stays_indented_on_a_narrow_terminal() {
    let person = Person::at_terminal(SOON);
    let size = Winsize { ws_col: 30, ws_row: 24, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&person.hands, size).unwrap();
    let mut asked = asked();
    asked.preview = Some(format!("+{}1. write `/tmp`", "x".repeat(25)));
    let answer = person.ask(asked);
    let seen = person.sees("? ").await;
    let lines: Vec<&str> = seen.lines().map(|line| line.trim_end_matches('\r')).collect();
    let (prompt, text) = lines.split_last().unwrap();
    assert!(text.iter().all(|line| columns(line) <= 30) && text.contains(&"  : 1. write `/tmp`"), "{text:#?} {prompt}");
    person.types(b"n");
    answer.await.unwrap();
}
