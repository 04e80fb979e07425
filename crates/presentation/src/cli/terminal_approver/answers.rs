//! The keys that answer a question: one for all parts, or one for each.

use super::{
    super::terminal::{bell, key, write_escaped},
    ApprovalKeysAnswer, KeyAction, chosen,
    rule_edit::EditableRule,
    words,
};
use crate::approval_question::{ApprovalQuestion, common_scopes};
use std::{fs::File, io, sync::atomic::AtomicBool};
use toolstead_domain::{ApprovalOutcome, ApprovalScope};

/// Approved scope of each part, with the rules that the user edited.
#[derive(Debug, PartialEq)]
pub(super) struct PartApprovals {
    scopes: Vec<ApprovalScope>,
    rules: Vec<Option<String>>,
}

impl PartApprovals {
    /// Returns the approval with the name of the approver.
    pub(super) fn into_approval(self, by: String) -> ApprovalOutcome {
        let Self { scopes, rules } = self;
        match rules.iter().any(Option::is_some) {
            true => ApprovalOutcome::GrantedWithRules { by, scopes, rules },
            false => ApprovalOutcome::Granted { by, scopes },
        }
    }
}

/// A prompt line with choices.
struct ChoicePrompt<'a> {
    label: String,
    scopes: &'a [ApprovalScope],
    can_view: bool,
    has_parts: bool,
}

/// Reads the answer to a question. Returns `None` if the user wants to read the full text first.
pub(super) fn read(
    terminal: &File,
    question: &ApprovalQuestion,
    rules: &mut [Option<EditableRule>],
    given_up: &AtomicBool,
) -> io::Result<Option<ApprovalKeysAnswer>> {
    let (rows, can_view) = (&question.rows, question.full_text.is_some());
    let mut scopes = Vec::new();
    if rows.len() > 1 {
        let (common, label) = (common_scopes(rows), format!("All {} parts:", rows.len()));
        let prompt = ChoicePrompt { label, scopes: &common, can_view, has_parts: true };
        match prompt.answer(terminal, rules, given_up)? {
            KeyAction::Approve(scope) => scopes = vec![scope; rows.len()],
            KeyAction::EachPart => {}
            choice => return Ok(ended_by(choice)),
        }
    }
    for (index, row) in rows.iter().enumerate().skip(scopes.len()) {
        let prompt = ChoicePrompt { label: format!("{}.", index + 1), scopes: &row.scopes, can_view, has_parts: false };
        let own_rule = rules.get_mut(index..=index).unwrap_or_default();
        match prompt.answer(terminal, own_rule, given_up)? {
            KeyAction::Approve(scope) => scopes.push(scope),
            choice => return Ok(ended_by(choice)),
        }
    }
    let rules = rules.iter().map(|rule| rule.as_ref().and_then(EditableRule::written)).collect();
    Ok(Some(ApprovalKeysAnswer::Granted(PartApprovals { scopes, rules })))
}

/// Returns the answer of a key that approves nothing; `None` if the user wants to read the full text first.
fn ended_by(choice: KeyAction) -> Option<ApprovalKeysAnswer> {
    match choice {
        KeyAction::Deny => Some(ApprovalKeysAnswer::DeniedWithMessage),
        KeyAction::DenyWithoutMessage => Some(ApprovalKeysAnswer::Denied),
        KeyAction::Interrupt => Some(ApprovalKeysAnswer::Interrupted),
        KeyAction::View | KeyAction::Approve(_) | KeyAction::EachPart | KeyAction::EditRules => None,
    }
}

impl ChoicePrompt<'_> {
    /// Asks until there is an answer. The user may edit rules in between.
    fn answer(
        &self,
        terminal: &File,
        rules: &mut [Option<EditableRule>],
        given_up: &AtomicBool,
    ) -> io::Result<KeyAction> {
        let has_rules = self.scopes.len() > 1 && rules.iter().any(Option::is_some);
        loop {
            match self.ask(terminal, has_rules, given_up)? {
                KeyAction::EditRules => {
                    for rule in rules.iter_mut().flatten() {
                        rule.edit(terminal, given_up)?;
                    }
                }
                choice => return Ok(choice),
            }
        }
    }

    fn ask(&self, terminal: &File, has_rules: bool, given_up: &AtomicBool) -> io::Result<KeyAction> {
        let choices: Vec<String> = std::iter::once("[d]eny".to_owned())
            .chain(
                self.scopes.iter().map(|scope| words(*scope).split_at(1)).map(|(key, rest)| format!("[{key}]{rest}")),
            )
            .chain(self.has_parts.then(|| "[i]ndividually".to_owned()))
            .chain(has_rules.then(|| "[e]dit rule".to_owned()))
            .chain(self.can_view.then(|| "[v]iew all".to_owned()))
            .collect();
        write_escaped(terminal, &format!("{} {}? ", self.label, choices.join(" ")))?;
        let choice = loop {
            match key(terminal, given_up)?.and_then(|key| self.choice(key, has_rules)) {
                Some(choice) => break choice,
                None => bell(terminal)?,
            }
        };
        let word = match choice {
            KeyAction::Approve(scope) => words(scope),
            KeyAction::Deny | KeyAction::DenyWithoutMessage => "deny",
            KeyAction::View => "view",
            KeyAction::EachPart => "individually",
            KeyAction::EditRules => "edit rule",
            KeyAction::Interrupt => "interrupted",
        };
        write_escaped(terminal, &format!("{word}\n"))?;
        Ok(choice)
    }

    fn choice(&self, key: u8, has_rules: bool) -> Option<KeyAction> {
        match key.to_ascii_lowercase() {
            b'i' if self.has_parts => Some(KeyAction::EachPart),
            b'e' if has_rules => Some(KeyAction::EditRules),
            key => chosen(key, self.scopes, self.can_view),
        }
    }
}
