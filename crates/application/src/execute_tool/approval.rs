//! Approval of a call: from the decision of the policy to permission, or to a refusal that explains itself.

use super::{
    command::ExecuteToolCommand,
    error::ExecuteToolError,
    nesting::NestedCallPosition,
    permitted_call,
    preview::PreviewContext,
    question_channel::QuestionChannel,
    record::{CallRecord, digest},
};
use crate::{
    open_calls::OpenCalls,
    permission_book::{CallFingerprint, PermissionBook, rule_to_remember},
};
use futures::FutureExt;
use serde_json::{Value, json};
use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};
use tokio::time::Instant;
use toolstead_domain::{
    Access, ApprovalOutcome, ApprovalPart, ApprovalRequest, ApprovalScope, Approver, CancelReason, Cause, Decision,
    Finding, PermissionPolicy, RequestScope, Tool, ToolCall, ToolFailure, Verdict, error_kind::ErrorKind,
    invisible_characters::displaces_text, permission::offered_rule::check_written_rule,
};

/// Maximum number of characters of a denial's message that the model receives.
const MESSAGE_CHARACTERS: usize = 1_000;

/// Context of an approval request.
#[derive(Clone, Copy)]
pub(super) struct ApprovalContext<'a> {
    pub(super) approver: &'a dyn Approver,
    pub(super) book: &'a PermissionBook,
    pub(super) policy: &'a PermissionPolicy,
    pub(super) previews: PreviewContext<'a>,
    pub(super) open_calls: &'a Arc<OpenCalls>,
    /// Maximum time for an answer.
    pub(super) timeout: Duration,
}

/// Approval of a call.
#[derive(Debug)]
pub(super) struct CallApproval {
    /// Accesses that a user was asked to approve, and approved. Accesses that the policy allows are not included:
    /// approval of one access does not cover another that requires approval under a different rule.
    pub(super) by_person: Vec<Access>,
    /// `true` if an approver was asked to approve this call, so that time has passed since the decision.
    pub(super) was_asked: bool,
    /// The change that the approver was shown.
    pub(super) preview: Option<String>,
}

impl CallApproval {
    /// Returns `true` if the approver was shown the call in its current form: with these accesses and this preview, and
    /// without a part that is denied or newly requires approval.
    pub(super) fn covers(&self, shown: &[Access], now: &[Access], preview: Option<&str>, decision: &Decision) -> bool {
        decision.verdict != Verdict::Deny
            && shown == now
            && self.preview.as_deref() == preview
            && decision.asked().all(|access| self.by_person.contains(access))
    }
}

impl ApprovalContext<'_> {
    /// Returns at once if the decision allows the call, requests approval if it requires that, and refuses otherwise.
    pub(super) async fn obtain(
        self,
        command: &ExecuteToolCommand,
        call: &ToolCall,
        references: &[String],
        accesses: &[Access],
        decision: &Decision,
        record: &mut CallRecord,
    ) -> Result<CallApproval, ExecuteToolError> {
        match decision.verdict {
            Verdict::Deny => Err(refused(&call.tool, decision)),
            Verdict::Allow => Ok(CallApproval { by_person: Vec::new(), was_asked: false, preview: None }),
            // Boxed: approval is rare, and the future is larger than most of the path.
            Verdict::Ask => Box::pin(self.asked(command, call, references, accesses, decision, record)).await,
        }
    }

    async fn asked(
        self,
        command: &ExecuteToolCommand,
        call: &ToolCall,
        references: &[String],
        accesses: &[Access],
        decision: &Decision,
        record: &mut CallRecord,
    ) -> Result<CallApproval, ExecuteToolError> {
        let by_person: Vec<Access> = decision.asked().cloned().collect();
        let identity = identity(call);
        let mut parts = self.parts(&command.scope, call, decision);
        // An earlier approval covers the parts that ask by default, never those for which a rule or a hook requires
        // approval.
        parts.retain(|part| {
            !matches!(part.cause, Cause::Default(_))
                || !self.book.is_approved(&command.scope, &call.tool, &identity, part.access.as_ref())
        });
        if parts.is_empty() {
            record.approved_by("the approvals of this session, for exactly this call".into());
            return Ok(CallApproval { by_person, was_asked: false, preview: None });
        }
        if self.book.offers_read_only_commands(&call.tool, &parts) {
            for part in &mut parts {
                part.scopes.push(ApprovalScope::ReadOnlyCommands);
                part.scopes.sort_unstable();
            }
        }
        let preview = self.previews.of(command, call, accesses).await?;
        let said = {
            // The wait does not count towards the timeouts of the parent calls, even if the approver is not the client.
            let _wait = command.parent.as_ref().map(|nesting| nesting.waiting().begin());
            let caller = QuestionChannel::new(command, call, record, self.previews.ports, self.open_calls);
            let request = ApprovalRequest {
                call,
                references,
                within: command.parent.as_ref().map(NestedCallPosition::tool),
                agent: command.scope.agent.as_deref(),
                principal: &command.scope.principal,
                preview: preview.as_deref(),
                accesses,
                decision,
                parts: &parts,
                client: &command.client,
                caller: &caller,
                deadline: (Instant::now() + self.timeout).into_std(),
            };
            let answer = AssertUnwindSafe(self.approver.ask(request)).catch_unwind();
            tokio::select! {
                biased;
                reason = command.cancel.cancelled() => return Err(ExecuteToolError::Cancelled(reason)),
                said = answer => said.unwrap_or_else(|panic| {
                    permitted_call::report_panic("the approver", panic.as_ref());
                    ApprovalOutcome::denied("the approver, which panicked")
                }),
            }
        };
        match said {
            ApprovalOutcome::Denied { by, message } => {
                let name = call.tool.name();
                let text = match message.as_deref().and_then(denial_message) {
                    Some(message) => format!("The call of `{name}` was refused by {by}, with this message: {message}"),
                    None => format!("The call of `{name}` was refused by {by}."),
                };
                let failure = ToolFailure::new(ErrorKind::PermissionDenied, text);
                record.approved_by(by);
                Err(ExecuteToolError::Refused(failure))
            }
            ApprovalOutcome::Granted { by, scopes } => {
                record.approved_by(self.remember_approvals(command, call, &parts, &scopes, by).await);
                Ok(CallApproval { by_person, was_asked: true, preview })
            }
            ApprovalOutcome::GrantedWithRules { by, mut scopes, rules } => {
                scopes.resize(parts.len(), ApprovalScope::Once);
                for ((part, scope), rule) in parts.iter_mut().zip(&mut scopes).zip(rules) {
                    if let Some(written) = rule {
                        write_rule(&call.tool, part, scope, &written);
                    }
                }
                record.approved_by(self.remember_approvals(command, call, &parts, &scopes, by).await);
                Ok(CallApproval { by_person, was_asked: true, preview })
            }
            ApprovalOutcome::Cancelled => Err(ExecuteToolError::Cancelled(CancelReason::Client)),
            ApprovalOutcome::Unattended => {
                Err(refusal(ErrorKind::PermissionDenied, &call.tool, decision, " No approver is available."))
            }
            ApprovalOutcome::TimedOut => {
                Err(refusal(ErrorKind::ApprovalTimeout, &call.tool, decision, " No approver answered in time."))
            }
        }
    }

    /// Stores approvals with a scope longer than `Once`. Returns the approver's name with the longest stored scope.
    async fn remember_approvals(
        self,
        command: &ExecuteToolCommand,
        call: &ToolCall,
        parts: &[ApprovalPart],
        scopes: &[ApprovalScope],
        by: String,
    ) -> String {
        let identity = identity(call);
        let mut holds = ApprovalScope::Once;
        for (index, part) in parts.iter().enumerate() {
            let scope = scopes.get(index).copied().unwrap_or(ApprovalScope::Once);
            holds = holds.max(self.book.remember(&command.scope, &identity, part, scope).await);
        }
        match holds {
            ApprovalScope::Once => by,
            longer => format!("{by} ({})", longer.as_str()),
        }
    }

    /// Returns the parts that require approval: the findings about the whole call first, then one per access.
    fn parts(self, scope: &RequestScope, call: &ToolCall, decision: &Decision) -> Vec<ApprovalPart> {
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

    fn part(self, scope: &RequestScope, call: &ToolCall, access: Option<&Access>, cause: Cause) -> ApprovalPart {
        // A rule that requires approval applies to every call: an allow rule cannot override it.
        let access_by_default = access.filter(|_| matches!(cause, Cause::Default(_)));
        let Some(asked) = access_by_default else {
            return ApprovalPart { access: access.cloned(), cause, rule: None, scopes: vec![ApprovalScope::Once] };
        };
        let rule = rule_to_remember(&call.tool, asked, self.policy.workspace());
        let scopes = self.book.scopes(scope, asked, rule.is_some());
        ApprovalPart { access: Some(asked.clone()), cause, rule, scopes }
    }
}

/// Returns the message of a denial as one line of at most [`MESSAGE_CHARACTERS`]; `None` if it is empty.
fn denial_message(message: &str) -> Option<String> {
    let line: String = message.chars().map(|c| if c.is_control() || displaces_text(c) { ' ' } else { c }).collect();
    let line = line.trim();
    (!line.is_empty()).then(|| line.chars().take(MESSAGE_CHARACTERS).collect())
}

/// Replaces the offered rule by the one that the user wrote. If that rule is not valid, the part is approved once.
fn write_rule(tool: &Tool, part: &mut ApprovalPart, scope: &mut ApprovalScope, written: &str) {
    let access = part.access.as_ref().filter(|_| part.rule.is_some());
    match access.map(|access| check_written_rule(written, tool, access)) {
        Some(Ok(rule)) => part.rule = Some(rule),
        refused => {
            tracing::warn!(rule = written, ?refused, "a rule that was written for an approval could not be stored");
            *scope = ApprovalScope::Once;
        }
    }
}

fn identity(call: &ToolCall) -> CallFingerprint {
    let mut arguments = Value::Object(call.arguments.clone());
    arguments.sort_all_objects();
    CallFingerprint { tool: call.tool.rule_name().clone(), digest: digest(&arguments).0.into() }
}

/// Returns the refusal by a decision that denies.
pub(super) fn refused(tool: &Tool, decision: &Decision) -> ExecuteToolError {
    refusal(ErrorKind::PermissionDenied, tool, decision, "")
}

fn refusal(kind: ErrorKind, tool: &Tool, decision: &Decision, more: &str) -> ExecuteToolError {
    let name = tool.name();
    let message = format!("The call of `{name}` is not permitted: {}.{}{more}", decision.reason(), decision.more());
    let failure = ToolFailure::new(kind, message).with_data(json!({"decision": decision.trace_json()}));
    ExecuteToolError::Refused(match decision.suggestion(tool.rule_name().as_str()) {
        Some(suggestion) => failure.suggest(suggestion),
        None => failure,
    })
}
