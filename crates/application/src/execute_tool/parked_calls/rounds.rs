//! Rounds of a call. Its path runs in the task of the first round until it asks a question, and in a task of its own
//! from then on.

use super::parked_call::{AbandonReason, CallResult, ParkedCall};
use crate::cancel_signal::CancelSignal;
use futures::future::{BoxFuture, FutureExt};
use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{runtime::Handle, time::timeout};
use toolstead_domain::{CallOutcome, CancelReason};

/// Path of a call. Reports when it can make no progress without answers.
struct CallFuture {
    work: BoxFuture<'static, CallResult>,
    call: Arc<ParkedCall>,
    is_asking: bool,
}

impl Future for CallFuture {
    type Output = CallResult;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<CallResult> {
        self.call.waker.register(context.waker());
        let outcome = self.work.as_mut().poll(context);
        if outcome.is_pending() {
            // Polled once more before the questions are sent: a concurrent part of the path may ask as well.
            let has_news = self.call.has_new_questions();
            if has_news {
                context.waker().wake_by_ref();
            } else if self.is_asking {
                self.call.send_questions();
            }
            self.is_asking = has_news;
        }
        outcome
    }
}

/// First round of a call. A call without questions runs to its end in the task that awaits this future, and stays on
/// its thread. Dropping the round cancels the call.
pub(in crate::execute_tool) struct FirstRoundFuture {
    path: Option<CallFuture>,
    call: Arc<ParkedCall>,
    grace: Duration,
    runtime: Handle,
}

impl FirstRoundFuture {
    /// Creates the first round. Requires a tokio runtime.
    pub(in crate::execute_tool) fn new(
        work: BoxFuture<'static, CallResult>,
        call: Arc<ParkedCall>,
        grace: Duration,
    ) -> Self {
        let path = CallFuture { work, call: call.clone(), is_asking: false };
        Self { path: Some(path), call, grace, runtime: Handle::current() }
    }

    fn hand_over(&mut self) {
        if let Some(path) = self.path.take() {
            self.runtime.spawn(keep(path, self.call.clone(), self.grace));
        }
    }
}

impl Future for FirstRoundFuture {
    type Output = CallResult;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<CallResult> {
        let Some(path) = &mut self.path else { return Poll::Pending };
        let outcome = path.poll_unpin(context);
        if outcome.is_pending()
            && let Some(questions) = self.call.due()
        {
            self.hand_over();
            return Poll::Ready(Ok(CallOutcome::InputRequired(questions)));
        }
        let outcome = ready!(outcome);
        self.path = None;
        self.call.terms.room.leave(self.call.terms.id);
        Poll::Ready(outcome)
    }
}

impl Drop for FirstRoundFuture {
    fn drop(&mut self) {
        if self.path.is_some() {
            self.call.cancel();
            self.hand_over();
        }
    }
}

/// Runs a later round, which is attached to its call. Dropping it or signalling `cancel` cancels the call.
pub(in crate::execute_tool) async fn later_round(call: Arc<ParkedCall>, cancel: CancelSignal) -> CallResult {
    let mut attached = CancelOnDrop(Some(&call));
    let outcome = tokio::select! {
        biased;
        outcome = call.round() => outcome,
        reason = cancel.cancelled() => {
            call.terms.cancel.cancel(reason);
            call.round().await
        }
    };
    attached.0 = None;
    outcome
}

struct CancelOnDrop<'a>(Option<&'a Arc<ParkedCall>>);

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(call) = self.0 {
            call.cancel();
        }
    }
}

/// Runs the path to its end, with or without an attached round, and retains its outcome until the client retrieves it.
async fn keep(mut path: CallFuture, call: Arc<ParkedCall>, grace: Duration) {
    let _place = ParkedCallEntryGuard(call.clone());
    let abandoned = tokio::select! {
        biased;
        outcome = &mut path => {
            return hand_out(&call, outcome).await;
        }
        abandoned = call.abandoned() => abandoned,
    };
    let reason = match abandoned {
        // Unanswered questions fail, and the tool has the grace period to end the call itself.
        AbandonReason::Late if timeout(grace, &mut path).await.is_ok() => return,
        AbandonReason::Late => CancelReason::Client,
        AbandonReason::Shutdown => CancelReason::Shutdown,
    };
    call.terms.cancel.cancel(reason);
    drop(path.await);
}

async fn hand_out(call: &ParkedCall, outcome: CallResult) {
    if call.finish(outcome) {
        tokio::select! {
            () = call.outcome_taken() => {}
            _ = call.abandoned() => {}
        }
    }
}

/// The place of a call in the waiting room.
struct ParkedCallEntryGuard(Arc<ParkedCall>);

impl Drop for ParkedCallEntryGuard {
    fn drop(&mut self) {
        self.0.terms.room.leave(self.0.terms.id);
    }
}
