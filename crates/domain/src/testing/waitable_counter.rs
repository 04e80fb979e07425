//! A rising counter that futures can wait for.

use super::lock;
use std::{
    future::poll_fn,
    sync::Mutex,
    task::{Poll, Waker},
};

/// Counter that wakes waiting futures when it reaches their number.
#[derive(Debug, Default)]
pub(super) struct WaitableCounter {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    count: u64,
    waiting: Vec<Waker>,
}

impl WaitableCounter {
    /// Increments the counter.
    pub(super) fn raise(&self) {
        let waiting = {
            let mut state = lock(&self.state);
            state.count += 1;
            std::mem::take(&mut state.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Returns the current count.
    pub(super) fn count(&self) -> u64 {
        lock(&self.state).count
    }

    /// Returns once the count is at least `count`.
    pub(super) async fn reached(&self, count: u64) {
        poll_fn(|context| {
            let mut state = lock(&self.state);
            if state.count >= count {
                return Poll::Ready(());
            }
            state.waiting.push(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}
