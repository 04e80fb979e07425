//! From a decision to a yes, or a refusal that teaches.

use super::{ExecuteToolCommand, ExecuteToolError, record::Record};
use serde_json::json;
use toolstead_domain::{
    access::Access,
    error_kind::ErrorKind,
    permission::decision::{Decision, Verdict},
    ports::approver::{Approval, ApprovalRequest, Approver},
    tool_call::ToolCall,
    tool_failure::ToolFailure,
};

/// What the call may touch.
#[derive(Debug)]
pub(super) struct Approved {
    /// The accesses that were judged.
    pub(super) accesses: Vec<Access>,
    asked: bool,
}

impl Approved {
    /// What a person was shown and said yes to.
    pub(super) fn by_person(self) -> Vec<Access> {
        if self.asked { self.accesses } else { Vec::new() }
    }
}

/// Goes on where the decision allows it, asks where it says so, and refuses otherwise.
pub(super) async fn obtain(
    approver: &dyn Approver,
    command: &ExecuteToolCommand,
    call: &ToolCall,
    references: &[String],
    accesses: Vec<Access>,
    decision: &Decision,
    record: &mut Record,
) -> Result<Approved, ExecuteToolError> {
    match decision.verdict {
        Verdict::Allow => return Ok(Approved { accesses, asked: false }),
        Verdict::Deny => return Err(refusal(ErrorKind::PermissionDenied, call, decision, "")),
        Verdict::Ask => {}
    }
    let request = ApprovalRequest { call, references, principal: &command.principal, accesses: &accesses, decision };
    let answer = tokio::select! {
        answer = approver.ask(request) => answer,
        reason = command.cancel.cancelled() => return Err(ExecuteToolError::Cancelled(reason)),
    };
    match answer {
        Approval::Granted { by } => {
            record.approved_by(by);
            Ok(Approved { accesses, asked: true })
        }
        Approval::Denied { by } => {
            let failure = ToolFailure::new(
                ErrorKind::PermissionDenied,
                format!("The call of `{}` was refused by {by}.", call.tool.name()),
            );
            record.approved_by(by);
            Err(ExecuteToolError::Refused(failure))
        }
        Approval::Unattended => Err(refusal(ErrorKind::PermissionDenied, call, decision, " Nobody can be asked here.")),
        Approval::TimedOut => Err(refusal(ErrorKind::ApprovalTimeout, call, decision, " Nobody answered in time.")),
    }
}

fn refusal(kind: ErrorKind, call: &ToolCall, decision: &Decision, more: &str) -> ExecuteToolError {
    let name = call.tool.name();
    let message = format!("The call of `{name}` is not permitted: {}.{}{more}", decision.reason(), decision.more());
    let failure = ToolFailure::new(kind, message).with_data(json!({"decision": decision.trace_json()}));
    ExecuteToolError::Refused(match decision.remedy(call.tool.rule_name().as_str()) {
        Some(remedy) => failure.next(remedy),
        None => failure,
    })
}
