//! Relay of a call's progress, log messages and questions to its caller.

use crate::mcp::{
    client::{
        connection::{
            in_flight::{CallNotice, PendingRequest},
            peer::ServerRequestResponse,
            request_error::RequestError,
        },
        transport::Transport,
    },
    wire::{
        incoming::RawResponse,
        message::{RequestId, RpcError},
    },
};
use futures::{
    FutureExt, StreamExt,
    future::{AbortHandle, Abortable, BoxFuture, abortable},
    stream::FuturesUnordered,
};
use std::{
    collections::HashMap,
    future::{Future, pending},
    pin::{Pin, pin},
    time::Duration,
};
use tokio::time::{Instant, Sleep, sleep};
use toolstead_domain::{Caller, InputRequest, InputResponse, NotAnswered};

/// Runs `exchange` to its end. Delivers progress, log messages and questions to the caller meanwhile.
///
/// # Errors
/// Returns errors of the exchange, and [`RequestError::Late`] if no message arrived for `idle` while the caller had no
/// open question.
pub(in crate::mcp::client) async fn relay(
    transport: &dyn Transport,
    waiting: &PendingRequest,
    caller: &dyn Caller,
    idle: Option<Duration>,
    exchange: impl Future<Output = Result<RawResponse, RequestError>>,
) -> Result<RawResponse, RequestError> {
    let mut exchange = pin!(exchange);
    let mut asked = PendingQuestions { transport, waiting, questions: None };
    let mut idle_until = idle.map(|idle| Box::pin(sleep(idle)));
    loop {
        let is_asking = asked.is_waiting();
        tokio::select! {
            biased;
            notice = waiting.notice(true) => {
                restart(idle_until.as_mut(), idle);
                match notice {
                    CallNotice::Question(id, request) => asked.ask(caller, id, request),
                    CallNotice::Withdrawn(id) => asked.withdraw(&id),
                    other => deliver(caller, other),
                }
            }
            outcome = &mut exchange => {
                while let Some(notice) = waiting.ready_notice() {
                    deliver(caller, notice);
                }
                return outcome;
            }
            answer = asked.next_answer(), if is_asking => {
                restart(idle_until.as_mut(), idle);
                // A withdrawn question is not answered.
                if let Some((id, outcome)) = answer {
                    transport.respond(&id, &outcome).await;
                }
            }
            // The idle timeout does not apply while the user is asked.
            () = or_never(idle_until.as_mut()), if !is_asking => {
                return Err(RequestError::Late(idle.unwrap_or_default()));
            }
        }
    }
}

/// Resets the idle timeout.
fn restart(idle_until: Option<&mut Pin<Box<Sleep>>>, idle: Option<Duration>) {
    if let (Some(sleep), Some(idle)) = (idle_until, idle) {
        sleep.as_mut().reset(Instant::now() + idle);
    }
}

/// Questions of a call that its caller has not answered yet.
struct PendingQuestions<'a> {
    transport: &'a dyn Transport,
    waiting: &'a PendingRequest,
    /// `None` until the first question, because few calls have any.
    questions: Option<Box<OpenQuestions<'a>>>,
}

#[derive(Default)]
struct OpenQuestions<'a> {
    answers: FuturesUnordered<Abortable<BoxFuture<'a, ServerRequestResponse>>>,
    open: HashMap<RequestId, (InputRequest, AbortHandle)>,
}

impl Drop for PendingQuestions<'_> {
    /// Passes unanswered questions on to another call of the client, if there is one. A server that has answered a call
    /// waits for no further answers about that call, so these questions belong to another.
    fn drop(&mut self) {
        let open = self.questions.take().map(|questions| questions.open).unwrap_or_default();
        let mut questions = self.waiting.untaken_questions();
        questions.splice(..0, open.into_iter().map(|(id, (request, _))| (id, request)));
        if !questions.is_empty() {
            self.transport.peer().pass_on_questions(self.waiting.id, questions);
        }
    }
}

impl<'a> PendingQuestions<'a> {
    fn ask(&mut self, caller: &'a dyn Caller, id: RequestId, request: InputRequest) {
        let questions = self.questions.get_or_insert_default();
        let (answer, open) = abortable(ask(caller, id.clone(), request.clone()).boxed());
        questions.answers.push(answer);
        questions.open.insert(id, (request, open));
    }

    fn withdraw(&mut self, id: &RequestId) {
        if let Some((_, open)) = self.questions.as_mut().and_then(|questions| questions.open.remove(id)) {
            open.abort();
        }
    }

    /// Returns `true` while the caller has an unanswered question.
    fn is_waiting(&self) -> bool {
        self.questions.as_ref().is_some_and(|questions| !questions.answers.is_empty())
    }

    /// Waits for the caller's next answer. Returns `None` if the question was withdrawn, and at once if none is open.
    async fn next_answer(&mut self) -> Option<ServerRequestResponse> {
        let questions = self.questions.as_mut()?;
        let (id, outcome) = questions.answers.next().await?.ok()?;
        questions.open.remove(&id);
        Some((id, outcome))
    }
}

/// Waits for the future, or forever if there is none.
pub(in crate::mcp::client) async fn or_never<T>(future: Option<impl Future<Output = T>>) -> T {
    match future {
        Some(future) => future.await,
        None => pending().await,
    }
}

fn deliver(caller: &dyn Caller, notice: CallNotice) {
    match notice {
        CallNotice::Progress(progress) => caller.progress(progress),
        CallNotice::Log(message) => caller.log(message),
        CallNotice::Completed(page) => caller.elicitation_completed(&page),
        CallNotice::Question(..) | CallNotice::Withdrawn(_) => {}
    }
}

async fn ask(caller: &dyn Caller, id: RequestId, request: InputRequest) -> ServerRequestResponse {
    let outcome = match caller.ask(request).await {
        Ok(InputResponse(answer)) => Ok(answer),
        Err(why) => Err(RpcError::new(code_of(&why), message_of(why))),
    };
    (id, outcome)
}

/// Returns the JSON-RPC error code with which a question of the server fails: that of the client for a refusal, else one
/// for the reason.
fn code_of(why: &NotAnswered) -> i64 {
    match why {
        NotAnswered::Refused { code, .. } => *code,
        NotAnswered::Unsupported => RpcError::METHOD_NOT_FOUND,
        NotAnswered::Unfit(_) => RpcError::INVALID_PARAMS,
        NotAnswered::TimedOut
        | NotAnswered::Disconnected
        | NotAnswered::TooMany
        | NotAnswered::Exhausted
        | NotAnswered::NotRecorded => RpcError::INTERNAL,
    }
}

fn message_of(why: NotAnswered) -> String {
    match why {
        NotAnswered::Refused { message, .. } => message,
        other => other.to_string(),
    }
}
