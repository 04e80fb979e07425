//! Asks the person at the terminal.

use super::terminal::{CTRL_C, CTRL_D, Input, NoAnswer, Terminal, forget_typed, key, wrapped};
use crate::approval_question::{ApprovalQuestion, Row};
use async_trait::async_trait;
use std::{
    fs::File,
    io::{self, Write},
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
        Self { terminal, patience }
    }
}

#[async_trait]
impl Approver for TerminalApprover {
    async fn ask(&self, request: ApprovalRequest<'_>) -> Approval {
        let Some(question) = ApprovalQuestion::of(&request) else { return Approval::Unattended };
        let put = move |terminal: &File, given_up: &AtomicBool| put(terminal, &question, given_up);
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

/// Asks about each part; `None` for a no.
fn put(terminal: &File, question: &ApprovalQuestion, given_up: &AtomicBool) -> io::Result<Option<Vec<ApprovalScope>>> {
    let mut output = terminal;
    output.write_all(shown(question).as_bytes())?;
    forget_typed(terminal)?;
    let mut scopes = Vec::new();
    for (index, row) in question.rows.iter().enumerate() {
        let choices: Vec<String> = std::iter::once("[d]eny".to_owned())
            .chain(row.scopes.iter().map(|scope| format!("[{}]{}", &scope.as_str()[..1], &scope.as_str()[1..])))
            .collect();
        write!(output, "{}. {}? ", index + 1, choices.join(" "))?;
        output.flush()?;
        let scope = loop {
            match key(terminal, given_up)?.and_then(|key| chosen(key, &row.scopes)) {
                Some(chosen) => break chosen,
                None => output.write_all(b"\x07")?,
            }
        };
        writeln!(output, "{}", scope.map_or("deny", ApprovalScope::as_str))?;
        match scope {
            Some(scope) => scopes.push(scope),
            None => return Ok(None),
        }
    }
    Ok(Some(scopes))
}

/// What a key says; `None` for one that says nothing here. Enter says no.
fn chosen(key: u8, scopes: &[ApprovalScope]) -> Option<Option<ApprovalScope>> {
    match key.to_ascii_lowercase() {
        b'd' | b'n' | b'\r' | b'\n' | CTRL_C | CTRL_D => Some(None),
        b'y' => Some(Some(ApprovalScope::Once)),
        key => scopes.iter().copied().find(|scope| scope.as_str().as_bytes().first() == Some(&key)).map(Some),
    }
}

/// The question in lines of at most [`WIDTH`] characters. Only our own lines begin at the left edge.
fn shown(question: &ApprovalQuestion) -> String {
    let mut text = String::from("\n");
    wrapped(&mut text, "", &question.heading);
    for (index, Row { what, why, covers, .. }) in question.rows.iter().enumerate() {
        wrapped(&mut text, &format!("{}. ", index + 1), what);
        wrapped(&mut text, "   Why: ", why);
        if let Some(covers) = covers {
            wrapped(&mut text, "   For longer than once: ", covers);
        }
    }
    for fact in question.facts.iter().chain(&question.change) {
        wrapped(&mut text, "", fact);
    }
    text
}

#[cfg(test)]
mod tests;
