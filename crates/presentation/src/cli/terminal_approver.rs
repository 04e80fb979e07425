//! Asks the user at the terminal for approval.

mod answers;
mod rule_edit;

use self::{answers::PartApprovals, rule_edit::EditableRule};
use super::{
    pager::{Pager, PagerOutcome},
    terminal::{
        CTRL_C, CTRL_D, InputMode, Terminal, TerminalQuestionError, TypedLine, fitted, forget_typed, typed_line,
        wrapped, write_escaped,
    },
};
use crate::approval_question::{ApprovalPartRow, ApprovalQuestion};
use async_trait::async_trait;
use std::{
    fs::File,
    io,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};
use tokio::time::{Instant, timeout_at};
use toolstead_domain::{ApprovalOutcome, ApprovalRequest, ApprovalScope, Approver, NoApprover};

/// Name of the approver in the audit log.
const PERSON: &str = "the user at the terminal";

/// Maximum time for an interrupt to cancel the turn.
const TIME_TO_INTERRUPT: Duration = Duration::from_secs(5);

/// Approver that shows each request on a terminal and reads the answer, as one key for all parts or one for each. It
/// handles one request at a time.
#[derive(Debug)]
pub struct TerminalApprover {
    terminal: Arc<Terminal>,
    patience: Duration,
    pager: Pager,
}

impl TerminalApprover {
    /// Creates an approver for this terminal with this timeout. Without a terminal, the approver answers no request.
    pub fn at(terminal: Option<Arc<Terminal>>, patience: Duration) -> Arc<dyn Approver> {
        match terminal {
            Some(terminal) => Arc::new(Self::new(terminal, patience)),
            None => Arc::new(NoApprover),
        }
    }

    /// Creates an approver for this terminal with this timeout.
    pub fn new(terminal: Arc<Terminal>, patience: Duration) -> Self {
        Self { terminal, patience, pager: Pager::of_process() }
    }
}

#[async_trait]
impl Approver for TerminalApprover {
    async fn ask(&self, request: ApprovalRequest<'_>) -> ApprovalOutcome {
        let Some(question) = ApprovalQuestion::of(&request) else { return ApprovalOutcome::Unattended };
        let after_reading = question.full_text.as_ref().and_then(|_| ApprovalQuestion::after_reading(&request));
        let pager = self.pager.clone();
        let rules = EditableRule::of(&request, after_reading.as_ref().unwrap_or(&question));
        let put = move |terminal: &File, given_up: &AtomicBool| {
            put(terminal, question, after_reading, rules, &pager, given_up)
        };
        let answer = tokio::select! {
            biased;
            // The terminal is used for something else then, and keys typed there are not answers.
            () = request.caller.disconnected() => return ApprovalOutcome::Unattended,
            answer = self.answer(put) => answer,
        };
        match answer {
            Ok(ApprovalAnswer::Granted(grants)) => grants.into_approval(PERSON.into()),
            Ok(ApprovalAnswer::Denied(message)) => ApprovalOutcome::Denied { by: PERSON.into(), message },
            Ok(ApprovalAnswer::Interrupted) => {
                if self.terminal.interrupt() {
                    // The signal cancels the turn of which this call is a part, before the model can be asked again.
                    tokio::time::sleep(TIME_TO_INTERRUPT).await;
                }
                ApprovalOutcome::Cancelled
            }
            Err(TerminalQuestionError::Unavailable) => ApprovalOutcome::Unattended,
            Err(TerminalQuestionError::Late) => ApprovalOutcome::TimedOut,
        }
    }
}

impl TerminalApprover {
    /// Asks, and after a denial with `d` asks for a message. If the user gives none before the timeout, the denial has
    /// no message.
    async fn answer(
        &self,
        put: impl FnOnce(&File, &AtomicBool) -> io::Result<ApprovalKeysAnswer> + Send + 'static,
    ) -> Result<ApprovalAnswer, TerminalQuestionError> {
        let deadline = Instant::now() + self.patience;
        let by_keys = async {
            let turn = self.terminal.quiet().await;
            let answer = self.terminal.ask_in(&turn, InputMode::Keys, put).await?;
            Ok((turn, answer))
        };
        let (turn, answer) = timeout_at(deadline, by_keys).await.unwrap_or(Err(TerminalQuestionError::Late))?;
        Ok(match answer {
            ApprovalKeysAnswer::Granted(grants) => ApprovalAnswer::Granted(grants),
            ApprovalKeysAnswer::Denied => ApprovalAnswer::Denied(None),
            ApprovalKeysAnswer::Interrupted => ApprovalAnswer::Interrupted,
            ApprovalKeysAnswer::DeniedWithMessage => {
                let message = self.terminal.ask_in(&turn, InputMode::Lines, denial_message);
                match timeout_at(deadline, message).await {
                    Ok(Ok(TypedLine::Text(message))) => ApprovalAnswer::Denied(Some(message)),
                    Ok(Ok(TypedLine::Interrupt)) => ApprovalAnswer::Interrupted,
                    Ok(Ok(TypedLine::End) | Err(_)) | Err(_) => ApprovalAnswer::Denied(None),
                }
            }
        })
    }
}

/// The answer to a question.
enum ApprovalAnswer {
    Granted(PartApprovals),
    /// Denied, with a message for the model.
    Denied(Option<String>),
    /// Interrupted with Ctrl-C.
    Interrupted,
}

/// Answer given by the keys of a question.
enum ApprovalKeysAnswer {
    Granted(PartApprovals),
    Denied,
    DeniedWithMessage,
    Interrupted,
}

/// Reads the message of a denial.
fn denial_message(terminal: &File, given_up: &AtomicBool) -> io::Result<TypedLine> {
    // Before the prompt is shown: input after it is the message.
    forget_typed(terminal)?;
    write_escaped(terminal, "Reason, or what to do instead (Enter for none): ")?;
    let line = typed_line(terminal, given_up)?;
    if line != TypedLine::End {
        // Further lines of a pasted text are discarded.
        forget_typed(terminal)?;
    }
    Ok(line)
}

/// Meaning of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyAction {
    Approve(ApprovalScope),
    /// Deny, then read a message.
    Deny,
    /// Deny immediately.
    DenyWithoutMessage,
    View,
    /// Answer each part separately.
    EachPart,
    EditRules,
    Interrupt,
}

/// Requests approval of all parts, or of each. After the user has read the full text, the question is repeated below
/// it, with the scopes that are offered then.
fn put(
    terminal: &File,
    mut question: ApprovalQuestion,
    mut after_reading: Option<ApprovalQuestion>,
    mut rules: Vec<Option<EditableRule>>,
    pager: &Pager,
    given_up: &AtomicBool,
) -> io::Result<ApprovalKeysAnswer> {
    loop {
        // `None` if the user wants to read the full text first.
        if let Some(answer) = ask_once(terminal, &question, &mut rules, given_up)? {
            return Ok(answer);
        }
        // The question is repeated with the offered rules.
        rules.iter_mut().flatten().for_each(EditableRule::reset);
        match pager.show(terminal, question.full_text.as_deref().unwrap_or_default(), given_up)? {
            PagerOutcome::Complete => question = after_reading.take().unwrap_or(question),
            PagerOutcome::Incomplete => {}
            PagerOutcome::Interrupted => return Ok(ApprovalKeysAnswer::Interrupted),
        }
    }
}

fn ask_once(
    terminal: &File,
    question: &ApprovalQuestion,
    rules: &mut [Option<EditableRule>],
    given_up: &AtomicBool,
) -> io::Result<Option<ApprovalKeysAnswer>> {
    write_escaped(terminal, &fitted(terminal, &shown(question)))?;
    forget_typed(terminal)?;
    answers::read(terminal, question, rules, given_up)
}

/// Returns the meaning of a key at the prompt; `None` for a key without one. Enter denies.
fn chosen(key: u8, scopes: &[ApprovalScope], can_view: bool) -> Option<KeyAction> {
    match key.to_ascii_lowercase() {
        b'd' => Some(KeyAction::Deny),
        b'n' | b'\r' | b'\n' | CTRL_D => Some(KeyAction::DenyWithoutMessage),
        CTRL_C => Some(KeyAction::Interrupt),
        b'y' if scopes.contains(&ApprovalScope::Once) => Some(KeyAction::Approve(ApprovalScope::Once)),
        b'v' if can_view => Some(KeyAction::View),
        key => {
            scopes.iter().copied().find(|scope| words(*scope).as_bytes().first() == Some(&key)).map(KeyAction::Approve)
        }
    }
}

/// Returns the text of a scope in a prompt. Its first letter is its key.
fn words(scope: ApprovalScope) -> &'static str {
    match scope {
        ApprovalScope::ReadOnlyCommands => "commands that only read",
        other => other.as_str(),
    }
}

/// Returns the question in lines of at most [`WIDTH`](super::terminal::WIDTH) characters. Only lines of Toolstead begin
/// at the left edge. The change of the file comes first, so that the tool and the parts are next to the prompt, however
/// long the change is.
fn shown(question: &ApprovalQuestion) -> String {
    let mut text = String::from("\n");
    for line in &question.change {
        wrapped(&mut text, "", line);
    }
    wrapped(&mut text, "", &question.heading);
    for (index, ApprovalPartRow { what, why, covers, .. }) in question.rows.iter().enumerate() {
        wrapped(&mut text, &format!("{}. ", index + 1), what);
        wrapped(&mut text, "   Why: ", why);
        if let Some(covers) = covers {
            wrapped(&mut text, "   If allowed for longer: ", covers);
        }
    }
    for fact in &question.facts {
        wrapped(&mut text, "", fact);
    }
    text
}

#[cfg(test)]
mod tests;
