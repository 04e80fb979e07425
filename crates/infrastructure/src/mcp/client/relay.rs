//! A call on its way: what comes for it before its answer goes to the one who made it.

use crate::mcp::{
    client::{
        in_flight::{Notice, Waiting},
        request_error::RequestError,
        transport::Transport,
    },
    wire::{
        incoming::Answer,
        message::{Id, RpcError},
    },
};
use serde_json::Value;
use std::{
    future::{Future, pending},
    pin::pin,
    time::Duration,
};
use tokio::time::{Instant, sleep_until};
use toolstead_domain::ports::caller::{Caller, InputRequest, InputResponse};

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
    let mut question = None;
    let mut heard = Instant::now();
    loop {
        let asking = question.is_some();
        tokio::select! {
            biased;
            notice = waiting.notice(!asking) => {
                heard = Instant::now();
                match notice {
                    Notice::Question(id, request) => question = Some(Box::pin(ask(caller, id, request))),
                    other => tell(caller, other),
                }
            }
            outcome = &mut exchange => {
                while let Some(notice) = waiting.ready_notice() {
                    tell(caller, notice);
                }
                return outcome;
            }
            (id, outcome) = or_never(question.as_mut()) => {
                question = None;
                heard = Instant::now();
                transport.respond(&id, &outcome).await;
            }
            // A person who is asked may take their time.
            () = or_never(idle.map(|idle| sleep_until(heard + idle))), if !asking => {
                return Err(RequestError::Late(idle.unwrap_or_default()));
            }
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
        Notice::Question(..) => {}
    }
}

async fn ask(caller: &dyn Caller, id: Id, request: InputRequest) -> (Id, Result<Value, RpcError>) {
    let outcome = match caller.ask(request).await {
        Ok(InputResponse(answer)) => Ok(answer),
        Err(reason) => Err(RpcError::new(RpcError::INTERNAL, reason.to_string())),
    };
    (id, outcome)
}
