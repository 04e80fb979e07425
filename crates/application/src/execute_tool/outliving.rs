//! Work that its caller cannot stop by going away.

use crate::cancel_signal::CancelSignal;
use futures::future::{BoxFuture, FutureExt};
use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};
use tokio::runtime::Handle;
use toolstead_domain::tool_execution::CancelReason;

/// Runs where it is waited for. Once nobody waits any more it is cancelled (reason: client) and runs to its end in a task
/// of its own; only then it needs one, so that the usual call changes no thread.
pub(super) struct Outliving<T: Send + 'static> {
    work: Option<BoxFuture<'static, T>>,
    cancel: CancelSignal,
    runtime: Handle,
}

impl<T: Send + 'static> Outliving<T> {
    /// The work, which ends in good order when the signal is given. To be called within a tokio runtime.
    pub(super) fn new(work: BoxFuture<'static, T>, cancel: CancelSignal) -> Self {
        Self { work: Some(work), cancel, runtime: Handle::current() }
    }
}

impl<T: Send + 'static> Future for Outliving<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let Some(work) = &mut self.work else { return Poll::Pending };
        let done = ready!(work.as_mut().poll(context));
        self.work = None;
        Poll::Ready(done)
    }
}

impl<T: Send + 'static> Drop for Outliving<T> {
    fn drop(&mut self) {
        if let Some(work) = self.work.take() {
            self.cancel.cancel(CancelReason::Client);
            self.runtime.spawn(work.map(drop));
        }
    }
}
