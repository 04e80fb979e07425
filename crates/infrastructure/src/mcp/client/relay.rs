//! A call on its way: what comes for it before its answer goes to the one who made it.

use crate::mcp::{
    client::{
        in_flight::{Notice, Waiting},
        peer::Reply,
        request_error::RequestError,
        transport::Transport,
    },
    wire::{
        incoming::Answer,
        message::{Id, RpcError},
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
    pin::pin,
    time::Duration,
};
use tokio::time::{Instant, sleep_until};
use toolstead_domain::ports::caller::{Caller, InputRequest, InputResponse, NotAnswered};

/// Runs `exchange` to its end and hands progress, log messages and questions on meanwhile.
///
/// # Errors
/// Those of the exchange, and [`RequestError::Late`] when nothing was heard for `idle`.
pub(super) async fn relay(
    transport: &dyn Transport,
    waiting: &Waiting,
    caller: &dyn Caller,
    idle: Option<Duration>,
    exchange: impl Future<Output = Result<Answer, RequestError>>,
) -> Result<Answer, RequestError> {
    let mut exchange = pin!(exchange);
    let mut asked = Asked { transport, waiting, answers: FuturesUnordered::new(), open: HashMap::new() };
    let mut heard = Instant::now();
    loop {
        let is_asking = !asked.answers.is_empty();
        tokio::select! {
            biased;
            notice = waiting.notice(true) => {
                heard = Instant::now();
                match notice {
                    Notice::Question(id, request) => asked.ask(caller, id, request),
                    Notice::Withdrawn(id) => asked.withdraw(&id),
                    other => tell(caller, other),
                }
            }
            outcome = &mut exchange => {
                while let Some(notice) = waiting.ready_notice() {
                    tell(caller, notice);
                }
                return outcome;
            }
            Some(answer) = asked.answers.next(), if is_asking => {
                heard = Instant::now();
                // One that was taken back wants no answer.
                if let Ok((id, outcome)) = answer {
                    asked.open.remove(&id);
                    transport.respond(&id, &outcome).await;
                }
            }
            // A person who is asked may take their time.
            () = or_never(idle.map(|idle| sleep_until(heard + idle))), if !is_asking => {
                return Err(RequestError::Late(idle.unwrap_or_default()));
            }
        }
    }
}

/// The questions of a call that are with its caller.
struct Asked<'a> {
    transport: &'a dyn Transport,
    waiting: &'a Waiting,
    answers: FuturesUnordered<Abortable<BoxFuture<'a, Reply>>>,
    open: HashMap<Id, (InputRequest, AbortHandle)>,
}

impl Drop for Asked<'_> {
    /// A server that has answered a call waits for nothing of it: what is still open was about another one.
    fn drop(&mut self) {
        let open = self.open.drain().map(|(id, (request, _))| (id, request));
        let questions = open.chain(self.waiting.untaken_questions());
        self.transport.peer().pass_on_questions(self.waiting.id, questions);
    }
}

impl<'a> Asked<'a> {
    fn ask(&mut self, caller: &'a dyn Caller, id: Id, request: InputRequest) {
        let (answer, open) = abortable(ask(caller, id.clone(), request.clone()).boxed());
        self.answers.push(answer);
        self.open.insert(id, (request, open));
    }

    fn withdraw(&mut self, id: &Id) {
        if let Some((_, open)) = self.open.remove(id) {
            open.abort();
        }
    }
}

/// What may not be there is never ready.
pub(super) async fn or_never<T>(future: Option<impl Future<Output = T>>) -> T {
    match future {
        Some(future) => future.await,
        None => pending().await,
    }
}

fn tell(caller: &dyn Caller, notice: Notice) {
    match notice {
        Notice::Progress(progress) => caller.progress(progress),
        Notice::Log(message) => caller.log(message),
        Notice::Completed(page) => caller.elicitation_completed(&page),
        Notice::Question(..) | Notice::Withdrawn(_) => {}
    }
}

async fn ask(caller: &dyn Caller, id: Id, request: InputRequest) -> Reply {
    let outcome = match caller.ask(request).await {
        Ok(InputResponse(answer)) => Ok(answer),
        Err(why) => Err(RpcError::new(code_of(&why), message_of(why))),
    };
    (id, outcome)
}

/// An error of the client is its own word; the others are ours.
fn code_of(why: &NotAnswered) -> i64 {
    match why {
        NotAnswered::Refused { code, .. } => *code,
        NotAnswered::Unsupported => RpcError::METHOD_NOT_FOUND,
        NotAnswered::Unfit(_) => RpcError::INVALID_PARAMS,
        NotAnswered::TimedOut
        | NotAnswered::Gone
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
