//! Work that runs to its end when its caller drops it.

use crate::cancel_signal::CancelSignal;
use futures::future::{BoxFuture, FutureExt};
use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};
use tokio::runtime::Handle;
use toolstead_domain::CancelReason;

/// Future that runs in its caller's task, so that a usual call needs no task of its own and stays on its thread.
/// Dropping it cancels the work (reason: client), and a new task runs it to its end.
pub(super) struct DetachOnDrop<T: Send + 'static> {
    work: Option<BoxFuture<'static, T>>,
    cancel: CancelSignal,
    runtime: Handle,
}

impl<T: Send + 'static> DetachOnDrop<T> {
    /// Wraps work that ends in an orderly way once `cancel` is signalled. Requires a tokio runtime.
    pub(super) fn new(work: BoxFuture<'static, T>, cancel: CancelSignal) -> Self {
        Self { work: Some(work), cancel, runtime: Handle::current() }
    }
}

impl<T: Send + 'static> Future for DetachOnDrop<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let Some(work) = &mut self.work else { return Poll::Pending };
        let done = ready!(work.as_mut().poll(context));
        self.work = None;
        Poll::Ready(done)
    }
}

impl<T: Send + 'static> Drop for DetachOnDrop<T> {
    fn drop(&mut self) {
        if let Some(work) = self.work.take() {
            self.cancel.cancel(CancelReason::Client);
            self.runtime.spawn(work.map(drop));
        }
    }
}
