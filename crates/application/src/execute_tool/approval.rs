//! From a decision to a yes, or a refusal that teaches.

use super::{
    ExecuteToolCommand, ExecuteToolError, Nesting,
    open_questions::{Brought, OpenQuestions},
    preview::Previews,
    record::{Record, digest},
};
use crate::permission_book::{CallIdentity, PermissionBook, rule_to_remember};
use serde_json::{Value, json};
use std::time::Duration;
use toolstead_domain::{
    access::Access,
    error_kind::ErrorKind,
    permission::{
        decision::{Cause, Decision, Finding, Verdict},
        policy::PermissionPolicy,
        remedy::RemedyWords,
    },
    ports::{
        approver::{Approval, ApprovalPart, ApprovalRequest, ApprovalScope, Approver},
        caller::InputResponses,
        tool_provider::InputRequired,
    },
    scope::Scope,
    tool::Tool,
    tool_call::ToolCall,
    tool_failure::ToolFailure,
};

/// What is there to ask with.
#[derive(Clone, Copy)]
pub(super) struct Asking<'a> {
    pub(super) approver: &'a dyn Approver,
    pub(super) book: &'a PermissionBook,
    pub(super) questions: &'a OpenQuestions,
    /// How long a question that travels to the client stays open.
    pub(super) patience: Duration,
    pub(super) policy: &'a PermissionPolicy,
    pub(super) previews: Previews<'a>,
    pub(super) words: &'a dyn RemedyWords,
}

/// What came of it.
#[derive(Debug)]
pub(super) enum Obtained {
    /// The call may run.
    Approved(Approved),
    /// The client is asked, and calls again with the answer.
    AskedClient(InputRequired),
}

/// What the call may touch.
#[derive(Debug)]
pub(super) struct Approved {
    /// The accesses that were judged.
    pub(super) accesses: Vec<Access>,
    /// Answers that the call brought along for the tool's provider.
    pub(super) answers: Option<InputResponses>,
    /// Those of them that a person was asked about and said yes to. What was allowed anyway is not among them: a yes to
    /// one part of a call is none to what a rule asks about below another.
    pub(super) by_person: Vec<Access>,
}

impl Asking<'_> {
    /// Goes on where the decision allows it, asks where it says so, and refuses otherwise.
    pub(super) async fn obtain(
        self,
        command: &ExecuteToolCommand,
        call: &ToolCall,
        references: &[String],
        accesses: Vec<Access>,
        decision: &Decision,
        record: &mut Record,
    ) -> Result<Obtained, ExecuteToolError> {
        if decision.verdict == Verdict::Deny {
            return Err(refused(&call.tool, decision, self.words));
        }
        let Brought { answer, answers } = self.questions.take(command, || identity(call))?;
        let is_allowed = decision.verdict == Verdict::Allow;
        if is_allowed && answer.is_none() {
            return Ok(Obtained::Approved(Approved { accesses, answers, by_person: Vec::new() }));
        }
        let by_person: Vec<Access> = decision.asked().filter(|_| !is_allowed).cloned().collect();
        let identity = identity(call);
        let principal = &command.scope.principal;
        let mut parts = if is_allowed { Vec::new() } else { self.parts(&command.scope, call, decision) };
        let has_questions = !parts.is_empty();
        // It answers what is asked by default, and never what a rule or a hook asks.
        parts.retain(|part| {
            !matches!(part.cause, Cause::Default(_))
                || !self.book.is_approved(&command.scope, &identity, part.access.as_ref())
        });
        // Another question may have been answered meanwhile, with a yes that holds here as well.
        let is_open = is_allowed || (has_questions && parts.is_empty());
        let answer = match answer {
            // Whoever said no to this call is heard all the same.
            Some(answer) if is_open => {
                let (response, shown) = answer.whole();
                parts = shown;
                Some(response)
            }
            // What was shown may have changed since: then it is shown again.
            answer => answer.and_then(|answer| answer.to(&parts)),
        };
        if is_open && has_questions {
            record.approved_by("what was approved in this session, for exactly this call".into());
        }
        if is_open && answer.is_none() {
            return Ok(Obtained::Approved(Approved { accesses, answers, by_person }));
        }
        let preview = if is_open { None } else { self.previews.of(command, call, &accesses).await? };
        let request = ApprovalRequest {
            call,
            references,
            within: command.parent.as_ref().map(Nesting::tool),
            principal,
            preview: preview.as_deref(),
            accesses: &accesses,
            decision,
            parts: &parts,
            client: &command.client,
            caller: command.caller.as_ref(),
            answer: answer.as_ref(),
        };
        let said = tokio::select! {
            biased;
            reason = command.cancel.cancelled() => return Err(ExecuteToolError::Cancelled(reason)),
            said = self.approver.ask(request) => said,
        };
        match said {
            Approval::Denied { by } => {
                let failure = ToolFailure::new(
                    ErrorKind::PermissionDenied,
                    format!("The call of `{}` was refused by {by}.", call.tool.name()),
                );
                record.approved_by(by);
                Err(ExecuteToolError::Refused(failure))
            }
            _ if is_open => Ok(Obtained::Approved(Approved { accesses, answers, by_person })),
            Approval::Granted { by, scopes } => {
                let mut holds = ApprovalScope::Once;
                for (index, part) in parts.iter().enumerate() {
                    let scope = scopes.get(index).copied().unwrap_or(ApprovalScope::Once);
                    holds = holds.max(self.book.remember(&command.scope, &identity, part, scope).await);
                }
                record.approved_by(match holds {
                    ApprovalScope::Once => by,
                    longer => format!("{by} ({})", longer.as_str()),
                });
                Ok(Obtained::Approved(Approved { accesses, answers, by_person }))
            }
            Approval::Unattended => {
                Err(self.refusal(ErrorKind::PermissionDenied, &call.tool, decision, " Nobody can be asked here."))
            }
            Approval::TimedOut => {
                Err(self.refusal(ErrorKind::ApprovalTimeout, &call.tool, decision, " Nobody answered in time."))
            }
            Approval::Pending(question) => {
                let required = self.questions.open(principal, identity, parts, question, answers, self.patience)?;
                Ok(Obtained::AskedClient(required))
            }
        }
    }

    fn refusal(self, kind: ErrorKind, tool: &Tool, decision: &Decision, more: &str) -> ExecuteToolError {
        refusal(kind, tool, decision, more, self.words)
    }

    /// What must be said yes to: each finding that asks, those on the call as a whole first.
    fn parts(self, scope: &Scope, call: &ToolCall, decision: &Decision) -> Vec<ApprovalPart> {
        let asks = |finding: &&Finding| finding.verdict == Verdict::Ask;
        let (on_whole, on_accesses): (Vec<&Finding>, Vec<&Finding>) =
            decision.trace.iter().filter(asks).partition(|finding| finding.part.is_none());
        let mut parts: Vec<ApprovalPart> = Vec::new();
        for Finding { part: access, cause, .. } in on_whole.into_iter().chain(on_accesses) {
            if access.is_none() || parts.iter().all(|part| part.access != *access) {
                parts.push(self.part(scope, call, access.as_ref(), cause.clone()));
            }
        }
        parts
    }

    fn part(self, scope: &Scope, call: &ToolCall, access: Option<&Access>, cause: Cause) -> ApprovalPart {
        // What a rule asks about is asked about every time: no allow rule gets past it.
        let access_by_default = access.filter(|_| matches!(cause, Cause::Default(_)));
        let Some(asked) = access_by_default else {
            return ApprovalPart { access: access.cloned(), cause, rule: None, scopes: vec![ApprovalScope::Once] };
        };
        let rule = rule_to_remember(&call.tool, asked, self.policy.workspace());
        let scopes = self.book.scopes(scope, rule.is_some());
        ApprovalPart { access: Some(asked.clone()), cause, rule, scopes }
    }
}

fn identity(call: &ToolCall) -> CallIdentity {
    let mut arguments = Value::Object(call.arguments.clone());
    arguments.sort_all_objects();
    CallIdentity { tool: call.tool.rule_name().clone(), digest: digest(&arguments).0 }
}

/// The refusal by a decision that denies, as it is told.
pub(super) fn refused(tool: &Tool, decision: &Decision, words: &dyn RemedyWords) -> ExecuteToolError {
    refusal(ErrorKind::PermissionDenied, tool, decision, "", words)
}

fn refusal(kind: ErrorKind, tool: &Tool, decision: &Decision, more: &str, words: &dyn RemedyWords) -> ExecuteToolError {
    let name = tool.name();
    let message = format!("The call of `{name}` is not permitted: {}.{}{more}", decision.reason(), decision.more());
    let failure = ToolFailure::new(kind, message).with_data(json!({"decision": decision.trace_json()}));
    ExecuteToolError::Refused(match decision.remedy(tool.rule_name().as_str()).and_then(|remedy| words.say(&remedy)) {
        Some(remedy) => failure.next(remedy),
        None => failure,
    })
}
