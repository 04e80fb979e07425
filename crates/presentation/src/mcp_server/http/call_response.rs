//! Response to a request that may take long. Without notifications before the answer it is plain JSON, which costs a
//! client a third less; otherwise it is a stream of events.

use super::{
    event_stream::{ALIVE, body, events},
    request_context::RequestContext,
    response::{Body, json_in_place, live_events, whole_events},
};
use crate::mcp_server::{
    answer::{HttpStatusHint, SerializedResponse},
    client_caller::ClientCaller,
};
use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture, stream};
use http::{Response, StatusCode};
use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{runtime::Handle, task::JoinHandle, time::Interval};

/// Behavior of a request whose client disconnects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DisconnectBehavior {
    /// The request ends (MCP 2026-07-28, basic/transports/streamable-http, "Cancellation").
    Ends,
    /// The request continues to its end: "disconnection should not be interpreted as the client cancelling its request"
    /// (MCP 2025-11-25, basic/transports).
    RunsOn,
}

/// Future of the answer to a request.
pub(super) struct AnswerFuture {
    future: Option<BoxFuture<'static, Option<SerializedResponse>>>,
    on_disconnect: DisconnectBehavior,
}

impl AnswerFuture {
    #[inline]
    pub(super) fn new(
        future: impl Future<Output = Option<SerializedResponse>> + Send + 'static,
        on_disconnect: DisconnectBehavior,
    ) -> Self {
        let future = Box::into_pin(Box::write(Box::new_uninit(), future));
        Self { future: Some(future), on_disconnect }
    }
}

impl Future for AnswerFuture {
    type Output = Option<SerializedResponse>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(future) = &mut self.future else { return Poll::Ready(None) };
        let answer = ready!(future.as_mut().poll(context));
        self.future = None;
        Poll::Ready(answer)
    }
}

impl Drop for AnswerFuture {
    /// Moves unfinished work that must continue to a task of its own. Most calls end before the drop and need no task.
    fn drop(&mut self) {
        if let (DisconnectBehavior::RunsOn, Some(future), Ok(runtime)) =
            (self.on_disconnect, self.future.take(), Handle::try_current())
        {
            runtime.spawn(future.map(drop));
        }
    }
}

impl AnswerFuture {
    /// Moves the work to a task of its own. A response body is polled only while its client reads, and neither deadline
    /// nor cancellation may depend on that.
    fn start(mut self) -> CallTask {
        let future = self.future.take();
        let running = tokio::spawn(async move { future?.await });
        CallTask { running, on_disconnect: self.on_disconnect }
    }
}

/// Work in a task of its own, which runs even if it is not awaited. Dropping it aborts work that ends with its client.
struct CallTask {
    running: JoinHandle<Option<SerializedResponse>>,
    on_disconnect: DisconnectBehavior,
}

impl Future for CallTask {
    type Output = Option<SerializedResponse>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // Without a panic or a shutdown of the runtime, the task always returns an answer.
        Poll::Ready(ready!(self.running.poll_unpin(context)).ok().flatten())
    }
}

impl Drop for CallTask {
    fn drop(&mut self) {
        if self.on_disconnect == DisconnectBehavior::Ends {
            self.running.abort();
        }
    }
}

/// Running call, with the properties that determine its response.
pub(super) struct RunningCall {
    pub(super) work: AnswerFuture,
    pub(super) caller: Arc<ClientCaller>,
    pub(super) context: RequestContext,
    pub(super) status: fn(HttpStatusHint) -> StatusCode,
}

impl RunningCall {
    /// Waits for the answer or, if the client accepts events, the first notification, and responds with JSON or a
    /// stream.
    pub(super) async fn respond(self, keep_alive: Duration) -> Response<Body> {
        let Self { mut work, caller, context, status } = self;
        if !context.accept.events {
            return answered((&mut work).await, Vec::new(), context, status);
        }
        tokio::select! {
            biased;
            answer = &mut work => {
                let said = caller.finish();
                answered(answer, said, context, status)
            }
            first = caller.next_notification() => {
                let (work, alive) = (work.start(), pulse(keep_alive));
                live_events(body(stream_of(CallStream { work, caller, messages: vec![first], over: false, alive })))
            }
        }
    }
}

/// Returns the complete response to a request: the answer as JSON, or `messages` and the answer as events. Without an
/// answer, the call was cancelled, and the stream is empty.
pub(super) fn answered(
    answer: Option<SerializedResponse>,
    mut messages: Vec<Vec<u8>>,
    context: RequestContext,
    status: fn(HttpStatusHint) -> StatusCode,
) -> Response<Body> {
    let RequestContext { headers, accept, .. } = context;
    let Some(answer) = answer else {
        // The call was cancelled: the stream ends without an answer.
        return whole_events(Bytes::new());
    };
    let status = status(answer.kind);
    // Only a plain response can have another status.
    if (messages.is_empty() && accept.json) || status != StatusCode::OK || !accept.events {
        return json_in_place(headers, status, answer.json);
    }
    messages.push(answer.json);
    whole_events(events(&messages))
}

/// Returns a timer that ticks after each `period` without a reset.
pub(super) fn pulse(period: Duration) -> Interval {
    let mut pulse = tokio::time::interval(period);
    pulse.reset();
    pulse
}

struct CallStream {
    work: CallTask,
    caller: Arc<ClientCaller>,
    /// Messages that are not sent yet.
    messages: Vec<Vec<u8>>,
    over: bool,
    alive: Interval,
}

fn stream_of(live: CallStream) -> impl futures::Stream<Item = Bytes> + Send + 'static {
    stream::unfold(live, |mut live| async move {
        if live.messages.is_empty() && !live.over {
            tokio::select! {
                biased;
                answer = &mut live.work => {
                    live.over = true;
                    live.messages = live.caller.finish();
                    live.messages.extend(answer.map(|answer| answer.json));
                }
                notification = live.caller.next_notification() => live.messages.push(notification),
                _ = live.alive.tick() => return Some((ALIVE, live)),
            }
        }
        if live.messages.is_empty() {
            return None;
        }
        live.alive.reset();
        let piece = events(&live.messages);
        live.messages.clear();
        Some((piece, live))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;

    async fn is_run(abandoned: DisconnectBehavior) -> bool {
        let (finish, finished) = oneshot::channel();
        let (go, wait) = oneshot::channel::<()>();
        let mut work = AnswerFuture::new(
            async move {
                wait.await.unwrap();
                finish.send(()).unwrap();
                None
            },
            abandoned,
        );
        assert!((&mut work).now_or_never().is_none());
        drop(work);
        go.send(()).is_ok() && finished.await.is_ok()
    }

    #[tokio::test]
    async fn abandoned_work_ends_or_continues_according_to_its_disconnect_behavior() {
        assert!(is_run(DisconnectBehavior::RunsOn).await);
        assert!(!is_run(DisconnectBehavior::Ends).await);
    }
}
