//! Asks the person at the terminal.

use super::{
    pager::Pager,
    terminal::{CTRL_C, CTRL_D, Input, NoAnswer, Terminal, bell, forget_typed, key, wrapped, write_escaped},
};
use crate::approval_question::{ApprovalQuestion, Row};
use async_trait::async_trait;
use std::{
    fs::File,
    io,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};
use toolstead_domain::ports::approver::{Approval, ApprovalRequest, ApprovalScope, Approver, Unattended};

/// Who answered, for the audit trail.
const PERSON: &str = "the person at the terminal";

/// Puts each question to a terminal and reads the answer from it, one key a part. One question at a time.
#[derive(Debug)]
pub struct TerminalApprover {
    terminal: Arc<Terminal>,
    patience: Duration,
    pager: Pager,
}

impl TerminalApprover {
    /// Asks on this terminal, if there is one, and waits so long for an answer.
    pub fn at(terminal: Option<Arc<Terminal>>, patience: Duration) -> Arc<dyn Approver> {
        match terminal {
            Some(terminal) => Arc::new(Self::new(terminal, patience)),
            None => Arc::new(Unattended),
        }
    }

    /// Asks on this terminal, and waits so long for an answer.
    pub fn new(terminal: Arc<Terminal>, patience: Duration) -> Self {
        Self { terminal, patience, pager: Pager::of_process() }
    }
}

#[async_trait]
impl Approver for TerminalApprover {
    async fn ask(&self, request: ApprovalRequest<'_>) -> Approval {
        let Some(question) = ApprovalQuestion::of(&request) else { return Approval::Unattended };
        let after_reading = question.full_text.as_ref().and_then(|_| ApprovalQuestion::after_reading(&request));
        let pager = self.pager.clone();
        let put =
            move |terminal: &File, given_up: &AtomicBool| put(terminal, question, after_reading, &pager, given_up);
        let answer = tokio::select! {
            biased;
            // The terminal is in use for something else then, and a key that is typed there is no answer.
            () = request.caller.gone() => return Approval::Unattended,
            answer = self.terminal.ask(Input::Keys, self.patience, put) => answer,
        };
        match answer {
            Ok(Some(scopes)) => Approval::Granted { by: PERSON.into(), scopes },
            Ok(None) => Approval::Denied { by: PERSON.into() },
            Err(NoAnswer::Nobody) => Approval::Unattended,
            Err(NoAnswer::Late) => Approval::TimedOut,
        }
    }
}

/// The answer to one question.
enum Answer {
    Granted(Vec<ApprovalScope>),
    Denied,
    /// The user first wants to read all of it.
    View,
}

/// The meaning of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    Approve(ApprovalScope),
    Deny,
    View,
}

/// Asks about each part; `None` for a denial. After the user has read the full text, the question is repeated below it,
/// with the scopes that are offered then.
fn put(
    terminal: &File,
    mut question: ApprovalQuestion,
    mut after_reading: Option<ApprovalQuestion>,
    pager: &Pager,
    given_up: &AtomicBool,
) -> io::Result<Option<Vec<ApprovalScope>>> {
    loop {
        match ask_once(terminal, &question, given_up)? {
            Answer::Granted(scopes) => return Ok(Some(scopes)),
            Answer::Denied => return Ok(None),
            Answer::View => {
                let text = question.full_text.as_deref().unwrap_or_default();
                if pager.show(terminal, text, given_up)? {
                    question = after_reading.take().unwrap_or(question);
                }
            }
        }
    }
}

fn ask_once(terminal: &File, question: &ApprovalQuestion, given_up: &AtomicBool) -> io::Result<Answer> {
    let can_view = question.full_text.is_some();
    write_escaped(terminal, &shown(question))?;
    forget_typed(terminal)?;
    let mut scopes = Vec::new();
    for (index, row) in question.rows.iter().enumerate() {
        let choices: Vec<String> = std::iter::once("[d]eny".to_owned())
            .chain(row.scopes.iter().map(|scope| format!("[{}]{}", &scope.as_str()[..1], &scope.as_str()[1..])))
            .chain(can_view.then(|| "[v]iew all".to_owned()))
            .collect();
        write_escaped(terminal, &format!("{}. {}? ", index + 1, choices.join(" ")))?;
        let choice = loop {
            match key(terminal, given_up)?.and_then(|key| chosen(key, &row.scopes, can_view)) {
                Some(choice) => break choice,
                None => bell(terminal)?,
            }
        };
        let word = match choice {
            Choice::Approve(scope) => scope.as_str(),
            Choice::Deny => "deny",
            Choice::View => "view",
        };
        write_escaped(terminal, &format!("{word}\n"))?;
        match choice {
            Choice::Approve(scope) => scopes.push(scope),
            Choice::Deny => return Ok(Answer::Denied),
            Choice::View => return Ok(Answer::View),
        }
    }
    Ok(Answer::Granted(scopes))
}

/// Returns the meaning of a key; `None` for one that has none here. Enter denies.
fn chosen(key: u8, scopes: &[ApprovalScope], can_view: bool) -> Option<Choice> {
    match key.to_ascii_lowercase() {
        b'd' | b'n' | b'\r' | b'\n' | CTRL_C | CTRL_D => Some(Choice::Deny),
        b'y' => Some(Choice::Approve(ApprovalScope::Once)),
        b'v' if can_view => Some(Choice::View),
        key => {
            scopes.iter().copied().find(|scope| scope.as_str().as_bytes().first() == Some(&key)).map(Choice::Approve)
        }
    }
}

/// The question in lines of at most [`WIDTH`] characters. Only our own lines begin at the left edge. The change comes
/// first: however long it is, the tool and the parts are next to the prompt.
fn shown(question: &ApprovalQuestion) -> String {
    let mut text = String::from("\n");
    for line in &question.change {
        wrapped(&mut text, "", line);
    }
    wrapped(&mut text, "", &question.heading);
    for (index, Row { what, why, covers, .. }) in question.rows.iter().enumerate() {
        wrapped(&mut text, &format!("{}. ", index + 1), what);
        wrapped(&mut text, "   Why: ", why);
        if let Some(covers) = covers {
            wrapped(&mut text, "   For longer than once: ", covers);
        }
    }
    for fact in &question.facts {
        wrapped(&mut text, "", fact);
    }
    text
}

#[cfg(test)]
mod tests;
