//! A stream that tells a client, for as long as it listens, that the list of tools changed.

use super::{
    call_response::pulse,
    event_stream::{ALIVE, Events, body, events},
    sessions::SessionInUse,
};
use crate::mcp_server::list_changes::ListChanges;
use bytes::Bytes;
use futures::stream;
use std::{future::pending, time::Duration};
use tokio::{sync::watch, time::Interval};
use tokio_util::sync::CancellationToken;

/// What such a stream is made of.
#[derive(Debug)]
pub(super) struct ChangesStream {
    changes: ListChanges,
    first: Option<Vec<u8>>,
    last: Option<Vec<u8>>,
    alive: Interval,
    /// The session that it belongs to, which does not expire meanwhile.
    session: Option<SessionInUse>,
}

impl ChangesStream {
    /// A stream of the changes from now on. When nothing happens for `keep_alive` it shows that it is alive.
    pub(super) fn new(versions: watch::Receiver<u64>, keep_alive: Duration) -> Self {
        let (changes, alive) = (ListChanges::new(versions), pulse(keep_alive));
        Self { changes, first: None, last: None, alive, session: None }
    }

    /// Sends this before anything else.
    pub(super) fn beginning_with(mut self, message: Vec<u8>) -> Self {
        self.first = Some(message);
        self
    }

    /// Sends this when the server ends the stream.
    pub(super) fn ending_with(mut self, message: Vec<u8>) -> Self {
        self.last = Some(message);
        self
    }

    /// Keeps the session in use.
    pub(super) fn of_session(mut self, session: SessionInUse) -> Self {
        self.session = Some(session);
        self
    }

    /// Sends `message` on every change (never, without one), until `end` is given.
    pub(super) fn telling(self, message: Option<Vec<u8>>, end: CancellationToken) -> Events {
        let told = Told { stream: self, message, end, over: false };
        body(stream::unfold(told, Told::next))
    }
}

struct Told {
    stream: ChangesStream,
    message: Option<Vec<u8>>,
    end: CancellationToken,
    over: bool,
}

impl Told {
    async fn next(mut self) -> Option<(Bytes, Self)> {
        if self.over {
            return None;
        }
        let ChangesStream { changes, first, last, alive, .. } = &mut self.stream;
        if let Some(first) = first.take() {
            return Some((events([&first]), self));
        }
        let changed = async {
            match &self.message {
                Some(message) if changes.next().await.is_some() => message,
                _ => pending().await,
            }
        };
        let piece = tokio::select! {
            biased;
            () = self.end.cancelled() => {
                self.over = true;
                events(&last.take())
            }
            message = changed => events([message]),
            _ = alive.tick() => ALIVE,
        };
        (!piece.is_empty()).then_some((piece, self))
    }
}
