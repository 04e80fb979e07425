//! An approver with scripted answers.

use super::{lock, waitable_counter::WaitableCounter};
use crate::{
    access::Access,
    ports::approver::{ApprovalOutcome, ApprovalPart, ApprovalRequest, Approver},
    tool_call::CallId,
};
use async_trait::async_trait;
use std::{collections::VecDeque, sync::Mutex};

/// Approver that answers in the order of the script. After its end, no approver is available.
#[derive(Debug, Default)]
pub struct ScriptedApprover {
    script: Mutex<VecDeque<Answer>>,
    questions: Mutex<Vec<ApprovalQuestion>>,
    asked: WaitableCounter,
    withdrawn: WaitableCounter,
}

/// Approval request as the approver received it.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovalQuestion {
    /// Id of the call.
    pub id: CallId,
    /// Canonical name of the tool.
    pub tool: String,
    /// Principal that makes the call, [`crate::principal::Principal::id`].
    pub principal: String,
    /// Tool whose call makes it.
    pub within: Option<String>,
    /// Agent that makes the call.
    pub agent: Option<String>,
    /// Accesses of the call.
    pub accesses: Vec<Access>,
    /// Reason why it needs approval.
    pub reason: String,
    /// Parts that need approval.
    pub parts: Vec<ApprovalPart>,
}

#[derive(Debug)]
enum Answer {
    Given(ApprovalOutcome),
    Never,
}

impl ScriptedApprover {
    /// Creates an approver with these answers, one per request, and [`ApprovalOutcome::Unattended`] afterwards.
    pub fn answering(answers: impl IntoIterator<Item = ApprovalOutcome>) -> Self {
        let script = answers.into_iter().map(Answer::Given).collect();
        Self { script: Mutex::new(script), ..Self::default() }
    }

    /// Creates an approver that approves this number of requests, as `tester`.
    pub fn granting(questions: usize) -> Self {
        Self::answering(std::iter::repeat_n(ApprovalOutcome::once("tester"), questions))
    }

    /// Leaves the request after the scripted ones unanswered until it is withdrawn.
    #[must_use]
    pub fn then_silent(self) -> Self {
        lock(&self.script).push_back(Answer::Never);
        self
    }

    /// Returns the requests so far, in order.
    pub fn questions(&self) -> Vec<ApprovalQuestion> {
        lock(&self.questions).clone()
    }

    /// Returns once this number of requests was made.
    pub async fn asked(&self, questions: u64) {
        self.asked.reached(questions).await;
    }

    /// Returns the number of requests that were withdrawn before they were answered.
    pub fn withdrawn(&self) -> u64 {
        self.withdrawn.count()
    }
}

#[async_trait]
impl Approver for ScriptedApprover {
    async fn ask(&self, request: ApprovalRequest<'_>) -> ApprovalOutcome {
        lock(&self.questions).push(ApprovalQuestion {
            within: request.within.map(|tool| tool.name().to_string()),
            agent: request.agent.map(str::to_owned),
            id: request.call.id,
            tool: request.call.tool.name().to_string(),
            principal: request.principal.id().to_owned(),
            accesses: request.accesses.to_vec(),
            reason: request.decision.reason(),
            parts: request.parts.to_vec(),
        });
        self.asked.raise();
        let answer = lock(&self.script).pop_front();
        match answer {
            Some(Answer::Given(approval)) => approval,
            Some(Answer::Never) => {
                let _withdrawn = RaiseOnDrop(&self.withdrawn);
                std::future::pending().await
            }
            None => ApprovalOutcome::Unattended,
        }
    }
}

struct RaiseOnDrop<'a>(&'a WaitableCounter);

impl Drop for RaiseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.raise();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        client_profile::ClientProfile,
        permission::{decision::Decision, policy::PermissionPolicy},
        ports::caller::SilentCaller,
        principal::Principal,
        testing::{block_on::block_on, samples},
        tool_call::ToolCall,
    };
    use serde_json::{Map, json};
    use std::{
        pin::pin,
        task::{Context, Poll, Waker},
        time::Instant,
    };

    fn asked() -> (ToolCall, Decision) {
        let call = samples::call(1, samples::tool("send"), json!({}));
        let decision = PermissionPolicy::default().decide(&call.tool, &Map::new(), &[Access::Send("a@b.c".into())]);
        (call, decision)
    }

    #[test]
    fn a_scripted_approval_is_used_once_and_later_questions_are_unattended() {
        let (call, decision) = asked();
        let approver = ScriptedApprover::granting(1);
        let (principal, client) = (Principal::local(), ClientProfile::without_protocol("test"));
        let ask = || {
            let request = ApprovalRequest {
                preview: None,
                call: &call,
                references: &[],
                within: None,
                agent: None,
                principal: &principal,
                accesses: &[],
                decision: &decision,
                parts: &[],
                client: &client,
                caller: &SilentCaller,
                deadline: Instant::now(),
            };
            block_on(approver.ask(request))
        };
        assert_eq!([ask(), ask()], [ApprovalOutcome::once("tester"), ApprovalOutcome::Unattended]);
        assert_eq!(approver.questions()[1].tool, "send");
        block_on(approver.asked(2));
    }

    #[test]
    fn a_silent_approver_counts_a_dropped_question_as_withdrawn() {
        let (call, decision) = asked();
        let approver = ScriptedApprover::granting(0).then_silent();
        let (principal, client) = (Principal::local(), ClientProfile::without_protocol("test"));
        {
            let request = ApprovalRequest {
                preview: None,
                call: &call,
                references: &[],
                within: None,
                agent: None,
                principal: &principal,
                accesses: &[],
                decision: &decision,
                parts: &[],
                client: &client,
                caller: &SilentCaller,
                deadline: Instant::now(),
            };
            let mut asking = pin!(approver.ask(request));
            assert_eq!(asking.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending);
            assert_eq!(approver.withdrawn(), 0);
        }
        assert_eq!(approver.withdrawn(), 1);
    }
}
