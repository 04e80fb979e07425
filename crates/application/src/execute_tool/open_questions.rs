//! Questions that travel to a client with the answer of its call, and come back with a retry (MCP 2026-07-28,
//! basic/patterns/mrtr). Nothing has run yet; the retry takes the whole path again.

use super::{ExecuteToolCommand, ExecuteToolError};
use crate::permission_book::CallIdentity;
use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, PoisonError},
    time::Duration,
};
use tokio::time::Instant;
use toolstead_domain::{
    error_kind::ErrorKind,
    permission::decision::Cause,
    ports::{
        approver::ApprovalPart,
        caller::{InputRequest, InputResponse, InputResponses},
        tool_provider::InputRequired,
    },
    principal::Principal,
    tool_failure::ToolFailure,
};
use uuid::Uuid;

/// The key of the question among the `inputRequests`.
const KEY: &str = "toolstead/approval";
/// What tells our states from those of a tool's own provider.
const PREFIX: &str = "toolstead-approval-";
/// Open questions of one principal. The oldest is forgotten, and its answer is refused.
const MAX_OF_ONE: usize = 64;
/// Open questions of all.
const MAX: usize = 4096;

/// The questions that wait for a retry. Each is bound to principal, tool, arguments and the parts that were shown, is
/// answered once, and expires.
#[derive(Debug, Default)]
pub(super) struct OpenQuestions(Mutex<HashMap<String, OpenQuestion>>);

#[derive(Debug)]
struct OpenQuestion {
    principal: Principal,
    call: CallIdentity,
    shown: Vec<ApprovalPart>,
    until: Instant,
    /// Answers for the tool's provider that the call brought along when it was asked about.
    carried: Option<InputResponses>,
}

/// What a call brought along.
#[derive(Debug, Default)]
pub(super) struct Brought {
    /// The answer to our question.
    pub(super) answer: Option<Answered>,
    /// Answers for the tool's provider.
    pub(super) answers: Option<InputResponses>,
}

/// An answer, with what was shown to whoever gave it.
#[derive(Debug)]
pub(super) struct Answered {
    response: InputResponse,
    shown: Vec<ApprovalPart>,
}

impl Answered {
    /// The answer, if these are the parts that it was given to.
    pub(super) fn to(self, parts: &[ApprovalPart]) -> Option<InputResponse> {
        let is_same = self.shown.len() == parts.len() && self.shown.iter().zip(parts).all(|(a, b)| is_same(a, b));
        is_same.then_some(self.response)
    }

    /// The answer, and the parts that it was given to.
    pub(super) fn whole(self) -> (InputResponse, Vec<ApprovalPart>) {
        (self.response, self.shown)
    }
}

/// Whether an answer to the one part is one to the other. A hook may word its reason anew each time it is heard.
fn is_same(shown: &ApprovalPart, part: &ApprovalPart) -> bool {
    let is_same_cause = match (&shown.cause, &part.cause) {
        (Cause::Hook { by: one, .. }, Cause::Hook { by: other, .. }) => one == other,
        (one, other) => one == other,
    };
    is_same_cause && shown.access == part.access && shown.rule == part.rule && shown.scopes == part.scopes
}

impl OpenQuestions {
    /// Opens a question about these parts of a call.
    ///
    /// # Errors
    /// [`ErrorKind::RateLimited`] when too many are open.
    pub(super) fn open(
        &self,
        principal: &Principal,
        call: CallIdentity,
        shown: Vec<ApprovalPart>,
        question: InputRequest,
        carried: Option<InputResponses>,
        patience: Duration,
    ) -> Result<InputRequired, ExecuteToolError> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // What expired is told for as long again, then it is unknown.
        let now = Instant::now();
        open.retain(|_, question| question.until + patience > now);
        let of_one = || open.iter().filter(|(_, question)| question.principal == *principal);
        if of_one().count() >= MAX_OF_ONE
            && let Some(oldest) = of_one().min_by_key(|(_, question)| question.until).map(|(state, _)| state.clone())
        {
            open.remove(&oldest);
        }
        if open.len() >= MAX {
            let failure = ToolFailure::new(ErrorKind::RateLimited, "Too many questions are open.");
            return Err(ExecuteToolError::Refused(failure.next("Call again when some of them are answered.")));
        }
        let state = format!("{PREFIX}{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
        let until = now + patience;
        open.insert(state.clone(), OpenQuestion { principal: principal.clone(), call, shown, until, carried });
        Ok(InputRequired { requests: BTreeMap::from([(KEY.to_owned(), question)]), state: Some(state) })
    }

    /// Takes out what the call brought along. A state of ours is used up by this, whatever comes of it.
    ///
    /// # Errors
    /// When the state is of no question that is open for this principal, tool and arguments.
    pub(super) fn take(
        &self,
        command: &ExecuteToolCommand,
        identity: impl FnOnce() -> CallIdentity,
    ) -> Result<Brought, ExecuteToolError> {
        let Some(state) = command.request_state.as_deref().filter(|state| state.starts_with(PREFIX)) else {
            return Ok(Brought { answer: None, answers: command.answers.clone() });
        };
        let question = {
            let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            // Nobody can use up the question of somebody else.
            match open.get(state) {
                Some(question) if question.principal == command.scope.principal => open.remove(state),
                _ => None,
            }
        };
        let Some(question) = question.filter(|question| question.call == identity()) else {
            let failure = ToolFailure::new(
                ErrorKind::InvalidInput,
                "`requestState` is of no open question about this call: it was used already, or tool or arguments changed.",
            );
            return Err(ExecuteToolError::NotCallable(failure.next("Call again without `requestState`.")));
        };
        if question.until <= Instant::now() {
            let failure = ToolFailure::new(ErrorKind::ApprovalTimeout, "The answer came too late. Nothing has run.");
            return Err(ExecuteToolError::Refused(failure.next("Call again to be asked again.")));
        }
        let given = command.answers.as_ref().and_then(|answers| answers.get(KEY)).cloned();
        let answer = given.map(|response| Answered { response, shown: question.shown });
        Ok(Brought { answer, answers: question.carried })
    }
}
