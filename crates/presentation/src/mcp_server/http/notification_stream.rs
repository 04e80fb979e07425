//! Stream of notifications outside of requests.

use super::{
    call_response::pulse,
    event_stream::{ALIVE, EventStreamBody, body, events},
    sessions::SessionUseGuard,
};
use crate::mcp_server::{notification_feed::NotificationFeed, subscription::ChangeSubscription};
use bytes::Bytes;
use futures::stream;
use std::time::Duration;
use tokio::time::Interval;
use tokio_util::sync::CancellationToken;

/// Builder of a stream of notifications outside of requests.
#[derive(Debug)]
pub(super) struct NotificationStreamBuilder {
    feed: NotificationFeed,
    subscription: Option<ChangeSubscription>,
    first: Option<Vec<u8>>,
    last: Option<Vec<u8>>,
    alive: Interval,
    /// Session of the stream, which does not expire while the stream is open.
    session: Option<SessionUseGuard>,
}

impl NotificationStreamBuilder {
    /// Creates a stream of these notifications. After each `keep_alive`, the stream sends a comment.
    pub(super) fn new(news: NotificationFeed, keep_alive: Duration) -> Self {
        Self { feed: news, subscription: None, first: None, last: None, alive: pulse(keep_alive), session: None }
    }

    /// Sends the notifications within a subscription: acknowledges it first, and sends `last` when the server ends the
    /// stream.
    pub(super) fn of_subscription(self, subscription: ChangeSubscription, last: Vec<u8>) -> Self {
        let first = Some(subscription.acknowledgement());
        Self { first, last: Some(last), subscription: Some(subscription), ..self }
    }

    /// Retains the session while the stream is open.
    pub(super) fn of_session(mut self, session: SessionUseGuard) -> Self {
        self.session = Some(session);
        self
    }

    /// Returns the stream, which ends when `end` is cancelled.
    pub(super) fn until(self, end: CancellationToken) -> EventStreamBody {
        let state = StreamState { stream: self, end, over: false };
        body(stream::unfold(state, StreamState::next))
    }
}

struct StreamState {
    stream: NotificationStreamBuilder,
    end: CancellationToken,
    over: bool,
}

impl StreamState {
    async fn next(mut self) -> Option<(Bytes, Self)> {
        if self.over {
            return None;
        }
        let NotificationStreamBuilder { feed: news, subscription, first, last, alive, .. } = &mut self.stream;
        if let Some(first) = first.take() {
            return Some((events([&first]), self));
        }
        let piece = tokio::select! {
            biased;
            () = self.end.cancelled() => {
                self.over = true;
                events(&last.take())
            }
            news = news.next() => events([&match subscription {
                Some(subscription) => subscription.encode(news),
                None => news.encode(None),
            }]),
            _ = alive.tick() => ALIVE,
        };
        (!piece.is_empty()).then_some((piece, self))
    }
}
