//! Rules that the user edits before they are stored.

use super::super::terminal::{CTRL_C, CTRL_D, bell, forget_typed, key, wrapped, write_escaped};
use crate::approval_question::ApprovalQuestion;
use std::{
    fs::File,
    io::{self, Write},
    sync::{Arc, atomic::AtomicBool},
};
use toolstead_domain::{Access, ApprovalPart, ApprovalRequest, Tool, permission::offered_rule::check_written_rule};

/// Maximum length of an edited rule in characters.
const MAX_CHARACTERS: usize = 1_000;
const CTRL_U: u8 = 0x15;
const BACKSPACE: [u8; 2] = [0x08, 0x7f];

/// The rule on one command, as offered and as edited by the user.
#[derive(Debug)]
pub(super) struct EditableRule {
    part: usize,
    offered: String,
    written: Option<String>,
    tool: Arc<Tool>,
    access: Access,
}

impl EditableRule {
    /// Returns the rule of each part; `None` if it cannot be edited.
    pub(super) fn of(request: &ApprovalRequest<'_>, question: &ApprovalQuestion) -> Vec<Option<Self>> {
        let editable = |(index, part): (usize, &ApprovalPart)| {
            let is_offered = question.rows.get(index).is_some_and(|row| row.scopes.len() > 1);
            let access = part.access.as_ref().filter(|access| matches!(access, Access::RunCommand(_)))?;
            let is_typed = |rule: &&String| {
                rule.len() <= MAX_CHARACTERS && rule.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic())
            };
            let offered = part.rule.as_ref().filter(is_typed).filter(|_| is_offered)?.clone();
            let (tool, access) = (request.call.tool.clone(), access.clone());
            Some(Self { part: index + 1, offered, written: None, tool, access })
        };
        request.parts.iter().enumerate().map(editable).collect()
    }

    /// Returns the edited rule, if there is one.
    pub(super) fn written(&self) -> Option<String> {
        self.written.clone()
    }

    /// Resets the rule to the offered one.
    pub(super) fn reset(&mut self) {
        self.written = None;
    }

    /// Lets the user edit the rule until it is valid, or until Ctrl-C leaves it unchanged.
    pub(super) fn edit(&mut self, terminal: &File, given_up: &AtomicBool) -> io::Result<()> {
        let mut text = self.written.clone().unwrap_or_else(|| self.offered.clone());
        loop {
            let label = format!("Rule for part {} (Enter stores it, Ctrl-C cancels): ", self.part);
            write_escaped(terminal, &format!("{label}{text}"))?;
            let Some(typed) = edited(terminal, text, given_up)? else { return Ok(()) };
            let mut answer = String::new();
            match check_written_rule(&typed, &self.tool, &self.access) {
                Ok(rule) => {
                    wrapped(&mut answer, "   If allowed for longer: ", &format!("the rule `{rule}`"));
                    write_escaped(terminal, &answer)?;
                    self.written = Some(rule).filter(|rule| *rule != self.offered);
                    return Ok(());
                }
                Err(reason) => {
                    wrapped(&mut answer, "   ", &format!("The rule is not stored: {reason}"));
                    write_escaped(terminal, &answer)?;
                }
            }
            text = typed;
        }
    }
}

/// Reads a line that starts with this text, key by key. Returns `None` for Ctrl-C and Ctrl-D.
fn edited(terminal: &File, mut text: String, given_up: &AtomicBool) -> io::Result<Option<String>> {
    loop {
        match key(terminal, given_up)? {
            Some(b'\r' | b'\n') => {
                write_escaped(terminal, "\n")?;
                // Further lines of a pasted rule are discarded, so that they do not answer the next question.
                forget_typed(terminal)?;
                return Ok(Some(text));
            }
            Some(CTRL_C | CTRL_D) => {
                write_escaped(terminal, "\n")?;
                return Ok(None);
            }
            Some(CTRL_U) => {
                erase(terminal, text.len())?;
                text.clear();
            }
            Some(byte) if BACKSPACE.contains(&byte) && text.pop().is_some() => erase(terminal, 1)?,
            Some(byte) if (byte == b' ' || byte.is_ascii_graphic()) && text.len() < MAX_CHARACTERS => {
                text.push(char::from(byte));
                write_escaped(terminal, char::from(byte).encode_utf8(&mut [0; 4]))?;
            }
            _ => bell(terminal)?,
        }
    }
}

/// Removes characters before the cursor.
fn erase(mut terminal: &File, characters: usize) -> io::Result<()> {
    terminal.write_all("\x08 \x08".repeat(characters).as_bytes())?;
    terminal.flush()
}
